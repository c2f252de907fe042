"""The pass view as a notebook widget: a pipeline, pass by pass, as programs and as graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from . import bundle
from .passes_page import STYLES, static_html


class PassView(anywidget.AnyWidget):
    """Shows what a pipeline did (`mlc_lab.observe.passes.PassRecording`).

    >>> view = PassView(recording)              # doctest: +SKIP
    >>> view.step = 3                           # the third pass
    >>> view.on_step(lambda n: print(n))

    Traits
    ------
    step    number of the pass shown, from 1; 0 is the module as it was.
    passes  the recording as plain data.
    """

    _esm = bundle.script("passes.js")
    _css = "\n".join(bundle.style(name) for name in STYLES)

    passes = traitlets.Dict().tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)

    def __init__(self, recording: Any, step: int = 0, **traits: Any) -> None:
        self.source = recording
        super().__init__(passes=recording.to_dict(), step=step, **traits)

    @traitlets.validate("step")
    def _clamp(self, proposal: Any) -> int:
        last = len(self.passes.get("seconds", ())) - 1
        return max(0, min(last, proposal["value"])) if last >= 0 else proposal["value"]

    def on_step(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call `callback(number)` whenever another pass is shown. Returns what ends that."""

        def notify(change: Any) -> None:
            callback(change["new"])

        self.observe(notify, names="step")
        return lambda: self.unobserve(notify, names="step")

    def html(self, path: Any = None) -> str:
        """The same view as one HTML page with no kernel; written to `path` if given."""
        return self.source.html(path)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and beside it the list of passes for where widgets do not run."""
        found = super()._repr_mimebundle_(**kwargs)
        if found is None:
            return None
        data, metadata = found if isinstance(found, tuple) else (found, {})
        return {**data, "text/plain": self.source.table(),
                "text/html": static_html(self.source)}, metadata
