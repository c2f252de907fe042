"""A run of the virtual machine as a notebook widget: bytecode, registers, memory over time."""

from __future__ import annotations

from typing import Any

import traitlets

from . import bundle
from .machine_page import STYLES, static_html
from .view import StepView


class MachineView(StepView):
    """Shows a run (`mlc_lab.observe.machine_run.MachineRun`).

    >>> view = vm.trace("main", x).show().show()     # doctest: +SKIP
    >>> view.step = 12
    >>> view.on_step(lambda n: print(n))

    Traits
    ------
    step  number of the instruction shown, from 0, in the order they ran.
    run   the run as plain data.
    """

    _esm = bundle.module("machine.js")
    _css = bundle.style(*STYLES)

    run = traitlets.Dict().tag(sync=True)

    def __init__(self, run: Any, step: int = 0, **traits: Any) -> None:
        self.source = run
        super().__init__(run=run.to_dict(), step=step, **traits)

    def _steps(self) -> int:
        return len(self.run.get("steps", ()))

    def _static(self) -> tuple[str, str]:
        return self.source.table(), static_html(self.source)
