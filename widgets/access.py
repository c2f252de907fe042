"""The access view as a widget and as a page: which elements a program uses, and when.

>>> view = accesses(matmul).show("1K:2:32")       # doctest: +SKIP
>>> view.position = 100                           # go to an access
>>> view.on_position(print)                       # called when the reader stops somewhere
>>> view.use("32K:8")                             # simulate other caches, and show them
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from mlc_lab.language import text
from mlc_lab.observe.access import results_to_dict

from . import export, picture
from .static import pre
from .view import View, traitlets

ENTRY = "access.js"
STYLES = ("stepper.css", "access.css")


class AccessView(View):
    """Shows an access trace in time order, and where in simulated caches each access was found.

    Traits
    ------
    position       number of the access shown, from 0. While the view plays, Python hears of it when
                   it stops.
    configuration  which of `results` is shown.
    results        what each choice of caches made of the accesses, as plain data (see
                   `mlc_lab/observe/access.py`). To add one, call `use`.
    trace          the accesses as plain data.
    request        what the reader asks to simulate: {"levels": [...], "serial": number}.
    error          why the last request cannot be, in words; empty if it can.
    live           whether there is a Python that answers requests.
    """

    _entry, _styles = ENTRY, STYLES
    _alone = {"request": {}, "error": "", "live": False}

    trace = traitlets.Dict().tag(sync=True)
    results = traitlets.List().tag(sync=True)
    configuration = traitlets.Int(0).tag(sync=True)
    position = traitlets.Int(0).tag(sync=True)
    request = traitlets.Dict().tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)
    live = traitlets.Bool(True).tag(sync=True)

    def __init__(self, trace: Any, caches: Any = None, position: int = 0, **traits: Any) -> None:
        """`trace` is an `mlc_lab.observe.access.AccessTrace`, `caches` those shown first."""
        self.source = trace
        self.shown = trace.results(caches)
        super().__init__(trace=trace.to_dict(), results=results_to_dict(self.shown),
                         position=position, **traits)
        self.observe(self._answer, names="request")

    @traitlets.validate("position")
    def _clamp(self, proposal: Any) -> int:
        last = len(self.source) - 1
        return max(0, min(last, proposal["value"]))

    @traitlets.validate("configuration")
    def _existing(self, proposal: Any) -> int:
        return max(0, min(len(self.shown) - 1, proposal["value"]))

    def use(self, caches: Any, name: str | None = None) -> Any:
        """Simulate the accesses in other caches and show that. Returns the CacheResult.

        Raises CacheError for caches that cannot be.
        """
        made = self.source.result(caches, name)
        for number, known in enumerate(self.shown):
            if known.hierarchy == made.hierarchy:
                self.configuration = number
                return known
        self.shown.append(made)
        self.results = results_to_dict(self.shown)
        self.configuration = len(self.shown) - 1
        return made

    @property
    def result(self) -> Any:
        """The CacheResult that is shown."""
        return self.shown[self.configuration]

    def _answer(self, change: Any) -> None:
        try:
            self.error = ""
            self.use(change["new"].get("levels", []))
        except ValueError as error:
            self.error = str(error)

    def on_position(self, callback: Callable[[int], None]) -> Callable[[], None]:
        """Call `callback(number)` when another access is shown. Calling the result stops it."""
        return self._on("position", callback)

    def html(self, path: Any = None, title: str | None = None) -> str:
        """The view as one HTML page, with all caches simulated so far; written to `path`."""
        made = write(self.source, self.shown, self.configuration, title)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(made)
        return made

    def _static(self) -> tuple[str, str]:
        said = text("Accesses of {title}: {count}", "views").format(
            title=self.source.title, count=f"{self.source.total:,}")
        return said, static(self.source, self.shown)

    def _pictures(self) -> list[str]:
        found = text("{misses} misses, {hits} found here", "views")
        rows = [(x.name, x.misses, found.format(misses=f"{x.misses:,}", hits=f"{x.hits:,}"))
                for x in self.result.counts]  # fmt: skip
        title = text("Accesses of {title} in {caches}", "views")
        return [picture.bars(title.format(title=self.source.title, caches=self.result.name), rows)]


def write(trace: Any, results: list[Any], configuration: int, title: str | None) -> str:
    """A page with the view of a trace in these results, of which one is shown first."""
    values = {
        "trace": trace.to_dict(), "results": results_to_dict(results),
        "configuration": configuration, "position": 0, **AccessView._alone,
    }  # fmt: skip
    title = title or text("Accesses of {title}", "views").format(title=trace.title)
    return export.write([(values, static(trace, results))], title, ENTRY, styles=STYLES)


def page(trace: Any, caches: Any = None, title: str | None = None) -> str:
    """The access view of a trace as one HTML page that needs no kernel and no network."""
    return write(trace, trace.results(caches), 0, title)


def static(trace: Any, results: list[Any]) -> str:
    """The trace as HTML without scripts: what each choice of caches counts, and the beginning."""
    parts = [f"<p><b>Accesses of {escape(trace.title)}</b>: {trace.total:,}</p>"]
    for result in results:
        lines = [f"{'':8}{'found here':>14}{'misses':>14}{'bytes in':>16}{'bytes back':>16}"]
        lines += [f"{x.name:8}{x.hits:>14,}{x.misses:>14,}{x.bytes_in:>16,}{x.bytes_out:>16,}"
                  for x in result.counts]
        title = result.name if result.name == str(result.hierarchy) else (
            f"{result.name}: {result.hierarchy}")
        body = pre("\n".join(lines))
        parts.append(f"<details><summary>{escape(title)}</summary>{body}</details>")
    texts = {"The first accesses": trace.table(60), "The lowered program": trace.text}
    for head, said in texts.items():
        parts.append(f"<details><summary>{head}</summary>{pre(said)}</details>")
    parts += [f"<p>{escape(note)}</p>" for note in trace.notes]
    return f"<div>{''.join(parts)}</div>"
