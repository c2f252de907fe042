"""What the views have in common: callbacks, and forms for where widgets do not run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from . import bundle, saved, static
from .traits import AnyWidget, traitlets

__all__ = ["StepView", "View", "traitlets"]

#: seconds without a change after which the output of a view is written anew, and at the latest
STILL_S, LATE_S = 1.0, 5.0


class View(AnyWidget):
    """A widget that can also be shown as text and as static HTML, and drawn from what a notebook
    that was saved has kept of it.

    Traits
    ------
    wrap  whether long lines of programs and code go on below instead of out of sight.
    """

    wrap = traitlets.Bool(False).tag(sync=True)
    #: its texts in the language in which it was made; none in English
    words = traitlets.Dict().tag(sync=True)

    #: names of the view's script and style sheets in `js/`
    _entry = ""
    _styles: Sequence[str] = ()
    #: values of traits that a view has where no kernel follows it
    _alone: dict[str, Any] = {}
    _place = ""  # the id of the output that shows the view
    _loop: Any = None  # the kernel's, on which that output is written anew
    _soon: Any = None
    _since = 0.0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "_entry" in vars(cls):
            cls._esm = bundle.module(cls._entry, cls._alone)
            cls._css = bundle.style(*cls._styles)
        super().__init_subclass__(**kwargs)

    @traitlets.default("words")
    def _spoken(self) -> dict[str, str]:
        return bundle.words(self._entry)

    def _static(self) -> tuple[str, str]:
        """The view as text, and as HTML that needs no scripts."""
        raise TypeError(f"{type(self).__name__} does not say what it shows without scripts")

    def _pictures(self) -> list[str]:
        """Pictures of the view as SVG, for where scripts do not run."""
        return []

    def _values(self) -> dict[str, Any]:
        """The values of the traits that the view is drawn from."""
        common = set(AnyWidget.class_trait_names())
        names = [n for n in self.trait_names(sync=True) if n not in common and n[0] != "_"]
        values = {name: getattr(self, name) for name in names}
        if not self.words:
            del values["words"]
        return values

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and beside it its recording, text and static HTML for where widgets do not
        run."""
        found = super()._repr_mimebundle_(**kwargs)
        if found is None:
            return None
        data, metadata = found if isinstance(found, tuple) else (found, {})
        text, html = self._static()
        made = saved.recorded(self._entry, self._styles, self._values(), self._alone)
        if "packed" not in made:
            html += ('<p class="mlc-not-kept">The view is too large to be kept in a notebook: run '
                     "the cell again to see it, or write it as a page with "
                     "<code>html(path)</code>.</p>")
        html = "".join(static.image(svg, text) for svg in self._pictures()) + html
        return {**data, saved.MIME: made, "text/plain": text, "text/html": html}, metadata

    # ----------------------------------------------- the output that shows the view, kept current

    def _ipython_display_(self) -> None:
        from IPython.display import display

        found = self._repr_mimebundle_()
        if found is None:
            return
        if not self._place:
            self._place = uuid4().hex
            try:
                self._loop = asyncio.get_running_loop()
            except RuntimeError:  # no kernel: what was shown is not shown again
                self._loop = None
            self.observe(self._changed, names=list(self._values()))
        display(found[0], metadata=found[1], raw=True, display_id=self._place)

    def _changed(self, change: Any) -> None:
        """What is short is kept by the extension, on saving; after other changes this writes."""
        if saved.is_small(change["new"]) and saved.is_small(change["old"]):
            return
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._keep_soon)

    def _keep_soon(self) -> None:
        now = self._loop.time()
        if self._soon is None:
            self._since = now
        else:
            self._soon.cancel()
        wait = STILL_S if now - self._since < LATE_S else 0.0
        self._soon = self._loop.call_later(wait, self._keep)

    def _keep(self) -> None:
        """Write the output that shows the view anew: the notebook keeps it as it is now."""
        self._soon = None
        if not self._place:
            return
        from IPython.display import update_display

        data, metadata = self._repr_mimebundle_()
        update_display(data, metadata=metadata, raw=True, display_id=self._place)

    # --------------------------------------------------------------------------------- callbacks

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
    source: Any

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
