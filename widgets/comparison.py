"""Two schedules side by side, as a notebook widget and as a page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mlc_lab.language import text
from mlc_lab.observe.compare import joined

from . import export, picture, static
from .view import View, traitlets


class Compare(View):
    """Shows a step of one recording beside a step of another.

    >>> view = Compare(naive, tiled)       # doctest: +SKIP
    >>> view.left, view.right = 0, 4       # go to steps; the sliders follow

    Traits
    ------
    left, right  numbers of the steps shown, from 0; at first the last of each.
    selection    the line selected last: {"side" ("left" or "right"), "step", "line", "text"}, and
                 of a loop, block, iterator or buffer its "kind" and "name"; empty at first.
    comparison   both recordings as plain data (see `mlc_lab.observe.compare`).
    """

    _entry, _styles = "comparison.js", ("stepper.css",)

    comparison = traitlets.Dict().tag(sync=True)
    left = traitlets.Int(0).tag(sync=True)
    right = traitlets.Int(0).tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)

    def __init__(self, first: Any, second: Any, title: str | None = None,
                 names: Sequence[str] | None = None, **traits: Any) -> None:
        """`first` and `second` are `mlc_lab.observe.recording.Recording`s, `names` what they are
        called."""
        self.sources, self._called = (first, second), (title, names)
        traits.setdefault("left", len(first.steps) - 1)
        traits.setdefault("right", len(second.steps) - 1)
        super().__init__(comparison=joined(first, second, title, names), **traits)
        self.on_msg(self._answer)

    def _answer(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """The view asks for times."""
        if isinstance(content, dict) and content.get("type") == "measure":
            self.measure()

    def measure(self, budget_s: float = 60.0) -> None:
        """Time and check the programs of both that were not measured yet, and show what comes of
        it; half of the seconds are for each. What was read from a file cannot be measured: the view
        says so."""
        from mlc_lab.observe.measure import Measurement

        offset, error = 0, ""
        for source in self.sources:
            modules = getattr(source, "modules", None)
            if not modules:
                error = "a recording read from a file has no programs to run"
            else:
                if source.measurement is None:
                    source.measurement = Measurement(source, modules, isolate=True)
                source.measurement.all(budget_s / 2, progress=False, on_program=self._tell(
                    source, offset))
            offset += len(source.programs)
        self.send({"type": "measure", "done": True, "error": error})
        self.comparison = joined(*self.sources, *self._called)

    def _tell(self, source: Any, offset: int) -> Callable[[int], None]:
        return lambda number: self.send({
            "type": "measure", "program": offset + number, "cost": source.programs[number].cost,
            "machine": source.machine})

    @traitlets.validate("left", "right")
    def _clamp(self, proposal: Any) -> int:
        source = self.sources[0 if proposal["trait"].name == "left" else 1]
        return max(0, min(len(source.steps) - 1, proposal["value"]))

    def on_step(self, callback: Callable[[int, int], None]) -> Callable[[], None]:
        """Call `callback(left, right)` whenever a step changes. Calling the result stops it."""

        def notify(_change: Any) -> None:
            callback(self.left, self.right)

        self.observe(notify, names=["left", "right"])
        return lambda: self.unobserve(notify, names=["left", "right"])

    def html(self, path: Any = None) -> str:
        """The same view as one HTML page with no kernel; written to `path` if given."""
        values = {name: getattr(self, name) for name in ("comparison", "left", "right")}
        title = self.comparison["title"]
        view = {**values, "selection": {}}, self._static()[1]
        made = export.write([view], title, "comparison.js")
        if path is not None:
            Path(path).write_text(made, encoding="utf-8")
        return made

    def _static(self) -> tuple[str, str]:
        html = "".join(static.html(source, name)
                       for source, name in zip(self.sources, self.comparison["names"]))
        return text("Comparison of {title}", "views").format(title=self.comparison["title"]), html

    def _pictures(self) -> list[str]:
        shown = zip(self.sources, (self.left, self.right), self.comparison["names"])
        return [picture.program_nest(source, source.steps[step].after, name)
                for source, step, name in shown]


def compare(first: Any, second: Any, title: str | None = None,
            names: Sequence[str] | None = None) -> Compare:
    """Two schedules side by side: recordings, or schedules, which are recorded without costs.

    `names` says what they are called; by default as the variables of the caller, or the function.
    """
    from mlc_lab.observe.session import record

    if names is None:
        frame = sys._getframe(1)
        found = [_variable(one, {**frame.f_globals, **frame.f_locals}) for one in (first, second)]
        names = [name for name in found if name] if len(set(found)) == 2 else None
        names = names if names and len(names) == 2 else None

    left, right = (one if hasattr(one, "programs") else record(one).recording
                   for one in (first, second))  # fmt: skip
    return Compare(left, right, title, names)


def _variable(value: Any, scope: dict[str, Any]) -> str:
    """The name under which somebody has a value, "" for none."""
    return next((name for name, other in scope.items()
                 if other is value and not name.startswith("_")), "")
