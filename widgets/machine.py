"""A run of the virtual machine as a notebook widget: bytecode, registers, memory over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from . import bundle
from .machine_page import STYLES, static_html


class MachineView(anywidget.AnyWidget):
    """Shows a run (`mlc_lab.observe.machine_run.MachineRun`).

    >>> view = vm.trace("main", x).show().show()     # doctest: +SKIP
    >>> view.step = 12
    >>> view.on_step(lambda n: print(n))

    Traits
    ------
    step  number of the instruction shown, from 0, in the order they ran.
    run   the run as plain data.
    """

    _esm = bundle.script("machine.js")
    _css = "\n".join(bundle.style(name) for name in STYLES)

    run = traitlets.Dict().tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)

    def __init__(self, run: Any, step: int = 0, **traits: Any) -> None:
        self.source = run
        super().__init__(run=run.to_dict(), step=step, **traits)

    @traitlets.validate("step")
    def _clamp(self, proposal: Any) -> int:
        last = len(self.run.get("steps", ())) - 1
        return max(0, min(last, proposal["value"])) if last >= 0 else proposal["value"]

    def on_step(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call `callback(number)` whenever another step is shown. Returns what ends that."""

        def notify(change: Any) -> None:
            callback(change["new"])

        self.observe(notify, names="step")
        return lambda: self.unobserve(notify, names="step")

    def html(self, path: Any = None) -> str:
        """The same view as one HTML page with no kernel; written to `path` if given."""
        return self.source.html(path)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and beside it the kernels as text for where widgets do not run."""
        found = super()._repr_mimebundle_(**kwargs)
        if found is None:
            return None
        data, metadata = found if isinstance(found, tuple) else (found, {})
        return {**data, "text/plain": self.source.table(),
                "text/html": static_html(self.source)}, metadata
