"""The tuning board as a widget and as a page: charts of a search, live or afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from . import export, picture, saved
from .static import pre
from .view import View, traitlets

#: seconds between two drawings while a search runs
PERIOD = 0.7
STYLES = ("stepper.css", "board.css")


class TuningBoard(View):
    """Shows a board (`mlc_lab.meta_schedule.board.Board`).

    >>> view = database.board().show()              # doctest: +SKIP
    >>> view.on_select(lambda record: print(record.time))
    >>> view.refresh()                              # after more was measured

    Traits
    ------
    selected  key of the trial that is open, "" if none is.
    board     the board as plain data; `refresh` reads it anew from the database.
    running   whether a search is going on; its Stop button interrupts the kernel.
    """

    _entry, _styles = "board.js", STYLES
    _alone = {"live": False, "running": False, "kernel": "", "reply": {}}

    board = traitlets.Dict().tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    reply = traitlets.Dict().tag(sync=True)
    running = traitlets.Bool(False).tag(sync=True)
    live = traitlets.Bool(True).tag(sync=True)
    kernel = traitlets.Unicode("").tag(sync=True)

    def __init__(self, board: Any, running: bool = False, **traits: Any) -> None:
        self.source = board
        self._drawn = time.monotonic()
        self._out = None
        super().__init__(board=board.to_dict(traces=not running), running=running,
                         kernel=_kernel_id(), **traits)
        self.on_msg(self._asked)

    def refresh(self, force: bool = True) -> None:
        """Draw what is in the database now; without `force` at most every `PERIOD` seconds."""
        now = time.monotonic()
        if force or now - self._drawn >= PERIOD:
            self._drawn = now
            self.board = self.source.to_dict(traces=not self.running)

    def finish(self) -> None:
        """The search is over: draw everything, with traces."""
        self.running = False
        self.refresh()
        self._keep()

    def on_select(self, callback: Callable[[Any], None]) -> Callable[[], None]:
        """Call `callback(record)` whenever a trial is opened. Calling the result stops it."""

        def notify(change: Any) -> None:
            if change["new"]:
                callback(self.source.record(change["new"]))

        self.observe(notify, names="selected")
        return lambda: self.unobserve(notify, names="selected")

    def html(self, path: Any = None) -> str:
        """The same board as one HTML page with no kernel; written to `path` if given."""
        return self.source.html(path)

    # -- requests of the view

    def _asked(self, _: Any, content: Any, buffers: Any = None) -> None:
        try:
            if content.get("do") == "measure":
                self._measure(content["key"], content["decisions"])
            elif content.get("do") == "stepper":
                view = self.source.stepper(content["key"])
                self._below(view, "The stepper", "stepper(key) shows the steps")
            elif content.get("do") == "compare":
                view = self.source.compare(content["key"], content["other"])
                self._below(view, "The comparison", "compare(one, other) shows both")
            elif content.get("do") == "baselines":
                found = self.source.measure_baselines()
                self.refresh()
                self.reply = {"text": f"Measured: {', '.join(found) or 'none could be run'}",
                              "at": time.time()}
        except Exception as error:  # shown to the reader, who is not at Python's prompt
            reason = getattr(error, "reason", None) or str(error)
            self.reply = {"text": f"Refused: {reason}", "at": time.time()}

    def _measure(self, key: str, decisions: dict) -> None:
        made = self.source.measure(key, decisions)
        record = self.source.record(made)
        self.refresh()
        self.selected = made
        text = (f"{record.time * 1e6:.4g} us" if record.time else
                f"{record.status}: {record.reason}")
        self.reply = {"text": f"Measured: {text}", "at": time.time()}

    def _below(self, view: Any, what: str, call: str) -> None:
        """Show a view below this one."""
        if self._out is not None:
            self._out.clear_output(wait=True)
            with self._out:
                from IPython.display import display

                display(view)
        self.reply = {"text": f"{what} is below." if self._out is not None else f"board.{call}.",
                      "at": time.time()}

    def _static(self) -> tuple[str, str]:
        return repr(self.source), static_html(self.source)

    def _pictures(self) -> list[str]:
        return [picture.search(self.board)] if any(t["time"] for t in self.board["trials"]) else []

    def _ipython_display_(self) -> None:
        import ipywidgets
        from IPython.display import display

        self._out = ipywidgets.Output()
        super()._ipython_display_()
        made = self._out._repr_mimebundle_() or {}
        place = {**made, "text/plain": "", saved.MIME: saved.NOTHING}
        display(place, raw=True)


def _kernel_id() -> str:
    """The id of the Jupyter kernel this runs in, "" elsewhere."""
    try:
        from ipykernel.connect import get_connection_file

        name = get_connection_file()
    except Exception:  # no kernel, or one of another make
        return ""
    stem = name.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".json")
    return stem.removeprefix("kernel-")


def static_html(board: Any) -> str:
    """The best trials as text, for untrusted notebooks and static renderers."""
    return (f"<details open><summary><b>{escape(board.title)}: the best trials</b></summary>"
            f"{pre(board.table())}</details>")


def page(boards: Sequence[Any], title: str) -> str:
    """One HTML page with each board."""
    views = [({"board": board.to_dict(), "selected": "", **TuningBoard._alone},
              static_html(board)) for board in boards]
    return export.write(views, title, "board.js", STYLES)
