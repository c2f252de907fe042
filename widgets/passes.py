"""The pass view as a widget and as a page: a pipeline, pass by pass, as programs and as graphs."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from mlc_lab.observe.alignment import slots_of
from mlc_lab.observe.graph import Graph

from . import export
from .static import pre
from .view import StepView, traitlets

STYLES = ("stepper.css", "graph.css", "passes.css")


class PassView(StepView):
    """Shows what a pipeline did (`mlc_lab.observe.passes.PassRecording`).

    >>> view = PassView(recording)              # doctest: +SKIP
    >>> view.step = 3                           # the third pass
    >>> view.on_step(lambda n: print(n))

    Traits
    ------
    step    number of the pass shown, from 1; 0 is the module as it was.
    passes  the recording as plain data.
    """

    _entry, _styles = "passes.js", STYLES

    passes = traitlets.Dict().tag(sync=True)

    def __init__(self, recording: Any, step: int = 0, **traits: Any) -> None:
        self.source = recording
        super().__init__(passes=packed(recording), step=step, **traits)

    def _steps(self) -> int:
        return len(self.passes.get("seconds", ()))

    def _static(self) -> tuple[str, str]:
        return self.source.table(), static_html(self.source)

    def _pictures(self) -> list[str]:
        last = self.passes["graphs"][-1]
        return [Graph.from_dict(last).svg()] if last else []


def packed(recording: Any) -> dict[str, Any]:
    """A recording as plain data for a view: with the `slots` that align its programs."""
    data = recording.to_dict()
    return {**data, "recording": {**data["recording"], "slots": slots_of(data["recording"])}}


def static_html(recording: Any) -> str:
    """The passes with their times, for untrusted notebooks and static renderers."""
    return (f"<details open><summary><b>{escape(recording.title)}</b></summary>"
            f"{pre(recording.table())}</details>")


def page(recordings: Sequence[Any], title: str) -> str:
    """One HTML page with the pass view of each recording."""
    views = [({"passes": packed(r), "step": 0}, static_html(r)) for r in recordings]
    return export.write(views, title, "passes.js", STYLES)
