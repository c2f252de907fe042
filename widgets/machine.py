"""A run of the virtual machine as a widget and as a page: its kernels over time, each with what it
wrote, its program and its schedule; bytecode, registers and memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape
from typing import Any

from . import export, picture
from .saved import gzipped
from .static import duration, pre
from .stepper import packed
from .view import StepView, traitlets

STYLES = ("stepper.css", "machine.css")
#: seconds for the schedules of kernels that a page gets, those that took longest first
BUDGET_S = 20.0


class MachineView(StepView):
    """Shows a run (`mlc_lab.observe.machine_run.MachineRun`).

    >>> view = vm.trace("main", x).show().show()     # doctest: +SKIP
    >>> view.step = 12
    >>> view.on_step(lambda n: print(n))
    >>> view.stepper("fused_matmul_relu")            # a kernel's schedule, to be measured

    Traits
    ------
    step     number of the instruction shown, from 0, in the order they ran.
    run      the run as plain data.
    kernels  by name the kernels whose program and schedule were asked for.
    """

    _entry, _styles = "machine.js", STYLES

    run = traitlets.Dict().tag(sync=True)
    kernels = traitlets.Dict().tag(sync=True)

    def __init__(self, run: Any, step: int = 0, **traits: Any) -> None:
        self.source = run
        super().__init__(run=run.to_dict(), step=step, **traits)
        self.on_msg(self._answer)

    def _answer(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """The view asks for the program and the schedule of a kernel."""
        if isinstance(content, dict) and content.get("type") == "kernel":
            name = str(content.get("name"))
            self.kernels = {**self.kernels, name: kernel(self.source, name)}

    def stepper(self, name: str) -> Any:
        """The stepper of a kernel's schedule. Raises KeyError if there is no program of it."""
        return self.source.kernels.recording(name)[0].show()

    def _steps(self) -> int:
        return len(self.run.get("steps", ()))

    def _static(self) -> tuple[str, str]:
        return self.source.table(), static_html(self.source)

    def _pictures(self) -> list[str]:
        spent = seconds_of(self.run)
        most = sorted(spent, key=lambda name: -spent[name])[:30]
        rows = [(name, spent[name], duration(spent[name])) for name in most]
        return [picture.bars(repr(self.source)[1:-1], rows)]


def seconds_of(run: dict[str, Any]) -> dict[str, float]:
    """The time that each kernel of a run took in all, by name."""
    spent: dict[str, float] = {}
    for step in run["steps"]:
        if step["kernel"]:
            spent[step["name"]] = spent.get(step["name"], 0.0) + step["seconds"]
    return spent


def static_html(run: Any) -> str:
    """The kernels of the run, for untrusted notebooks and static renderers."""
    return (f"<details open><summary><b>{escape(repr(run)[1:-1])}</b></summary>"
            f"{pre(run.table())}</details>")


def kernel(run: Any, name: str) -> dict[str, Any]:
    """A kernel as the view has it: {"recording", "note"}, or {"error"}."""
    try:
        recording, note = run.kernels.recording(name)
    except KeyError:
        return {"error": "there is no program of it: it is not of this module, or the executable "
                         "was read from a file"}
    return {"recording": packed(recording), "note": note}


def page(runs: Sequence[Any], title: str) -> str:
    """One HTML page with the view of each run, and with the schedules of its kernels."""
    views = []
    for run in runs:
        data, ends = run.to_dict(), time.monotonic() + BUDGET_S
        spent = seconds_of(data)
        names = sorted(spent, key=lambda name: -spent[name])
        kernels = {name: kernel(run, name) for name in names if time.monotonic() < ends}
        views.append(({"run": data, "step": 0, "kernels": gzipped(kernels)}, static_html(run)))
    return export.write(views, title, "machine.js", STYLES)
