"""What the views have in common: callbacks, and a form for where widgets do not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .traits import AnyWidget, traitlets

__all__ = ["StepView", "View", "traitlets"]


class View(AnyWidget):
    """A widget that can also be shown as text and as static HTML."""

    def _static(self) -> tuple[str, str]:
        """The view as text, and as HTML that needs no scripts."""
        raise TypeError(f"{type(self).__name__} does not say what it shows without scripts")

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and beside it text and static HTML for where widgets do not run."""
        found = super()._repr_mimebundle_(**kwargs)
        if found is None:
            return None
        data, metadata = found if isinstance(found, tuple) else (found, {})
        text, html = self._static()
        return {**data, "text/plain": text, "text/html": html}, metadata

    def _on(self, name: str, callback: Callable[[Any], None]) -> Callable[[], None]:
        """Call `callback(value)` whenever the trait `name` changes. Calling the result stops it."""

        def notify(change: Any) -> None:
            callback(change["new"])

        self.observe(notify, names=name)
        return lambda: self.unobserve(notify, names=name)


class StepView(View):
    """A view that shows one of several steps of its `source`.

    Traits
    ------
    step  number of the step shown, from 0; a number outside the steps is moved to their end.
    """

    step = traitlets.Int(0).tag(sync=True)

    def _steps(self) -> int:
        """How many steps there are; 0 while that is not known."""
        raise TypeError(f"{type(self).__name__} does not say how many steps it has")

    @traitlets.validate("step")
    def _clamp(self, proposal: Any) -> int:
        last = self._steps() - 1
        return max(0, min(last, proposal["value"])) if last >= 0 else proposal["value"]

    def on_step(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call `callback(number)` whenever another step is shown. Calling the result stops it."""
        return self._on("step", callback)

    def html(self, path: Any = None) -> str:
        """The same view as one HTML page with no kernel; written to `path` if given."""
        return self.source.html(path)
