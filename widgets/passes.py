"""The pass view as a notebook widget: a pipeline, pass by pass, as programs and as graphs."""

from __future__ import annotations

from typing import Any

import traitlets

from . import bundle
from .passes_page import STYLES, static_html
from .view import StepView


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

    _esm = bundle.module("passes.js")
    _css = bundle.style(*STYLES)

    passes = traitlets.Dict().tag(sync=True)

    def __init__(self, recording: Any, step: int = 0, **traits: Any) -> None:
        self.source = recording
        super().__init__(passes=recording.to_dict(), step=step, **traits)

    def _steps(self) -> int:
        return len(self.passes.get("seconds", ()))

    def _static(self) -> tuple[str, str]:
        return self.source.table(), static_html(self.source)
