"""A run of the virtual machine as a widget and as a page: bytecode, registers, memory over time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from . import bundle, export
from .view import StepView, traitlets

STYLES = ("stepper.css", "machine.css")


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


def static_html(run: Any) -> str:
    """The kernels of the run, for untrusted notebooks and static renderers."""
    return (f"<details open><summary><b>{escape(repr(run)[1:-1])}</b></summary>"
            f'<pre style="font-size:12px;overflow-x:auto">{escape(run.table())}</pre></details>')


def page(runs: Sequence[Any], title: str) -> str:
    """One HTML page with the view of each run."""
    views = [({"run": run.to_dict(), "step": 0}, static_html(run)) for run in runs]
    return export.write(views, title, "machine.js", STYLES)
