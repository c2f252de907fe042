"""Two schedules side by side, as a notebook widget and as a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlc_lab.observe.compare import joined

from . import bundle, export, static
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

    _esm = bundle.module("comparison.js")
    _css = bundle.style("stepper.css")

    comparison = traitlets.Dict().tag(sync=True)
    left = traitlets.Int(0).tag(sync=True)
    right = traitlets.Int(0).tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)

    def __init__(self, first: Any, second: Any, title: str | None = None, **traits: Any) -> None:
        """`first` and `second` are `mlc_lab.observe.recording.Recording`s."""
        self.sources = first, second
        traits.setdefault("left", len(first.steps) - 1)
        traits.setdefault("right", len(second.steps) - 1)
        super().__init__(comparison=joined(first, second, title), **traits)

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
        text = export.write([view], title, "comparison.js")
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _static(self) -> tuple[str, str]:
        html = "".join(static.html(source) for source in self.sources)
        return f"Comparison of {self.comparison['title']}", html


def compare(first: Any, second: Any, title: str | None = None) -> Compare:
    """Two schedules side by side: recordings, or schedules, which are recorded without costs."""
    from mlc_lab.observe.session import record

    recordings = [one if hasattr(one, "programs") else record(one).recording
                  for one in (first, second)]  # fmt: skip
    return Compare(*recordings, title)
