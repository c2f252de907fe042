"""Type and see, as a widget and as HTML: a program or a schedule is typed, and all follows from it.

>>> view = mlc_lab.type_live(text)                # doctest: +SKIP
>>> view.type(text.replace("8", "16"))            # as typing does
>>> view.error                                    # what is wrong with the text; None if nothing is
>>> view.cost()                                   # what was counted and measured of its program
>>> view.html("page.html")                        # the last text and what followed
"""

from __future__ import annotations

import time
from html import escape
from pathlib import Path
from typing import Any

from mlc_lab.language import text

from .live import Live, compute, fitted, static, values
from .static import PRE
from .view import traitlets

ENTRY = "typed.js"
STYLES = ("stepper.css", "counts.css", "access.css", "live.css", "typed.css")


class Typed(Live):
    """Shows a text that is typed, and what follows from the last one that could be read.

    Traits
    ------
    typed    the text as {"text", "n"}: with each change `n` is larger.
    answer   {"n", "error"}: what is wrong with the text of that number, see
             `mlc_lab.observe.typed.Typed`; None where nothing is.
    start    the text that it began with.

    The others are those of `Live`: a knob is a number that the text leaves open, `live("tile", 8)`.
    """

    _entry, _styles = ENTRY, STYLES

    typed = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
    start = traitlets.Unicode("").tag(sync=True)

    source: Any
    still_s = 1.0  # a hand that types pauses for longer

    def __init__(self, source: Any, **traits: Any) -> None:
        """`source` is a `mlc_lab.observe.typed.Typed`."""
        super().__init__(source, typed={"text": source.text, "n": 0}, start=source.text,
                         answer={"n": 0, "error": source.error}, **traits)  # fmt: skip

    # ------------------------------------------------------------------------- from Python

    @property
    def text(self) -> str:
        """The text as it is now."""
        return self.source.text

    @property
    def error(self) -> dict[str, Any] | None:
        """What is wrong with the text: its line, a message, ...; None where nothing is."""
        return self.source.error

    @property
    def mod(self) -> Any:
        """The program that is shown, an IRModule. Raises ValueError before there is one."""
        return self.source.module(self._at)

    def type(self, text: str) -> None:
        """Another text, as typing does."""
        self.typed = {"text": text, "n": self.typed["n"] + 1}

    # ------------------------------------------------------------------------- following

    @traitlets.validate("typed")
    def _is_text(self, proposal: Any) -> dict[str, Any]:
        value = proposal["value"]
        if not isinstance(value.get("text"), str) or not isinstance(value.get("n"), int):
            raise ValueError("what is typed is a text with its number")
        return value

    @traitlets.observe("typed")
    def _retyped(self, change: Any) -> None:
        """The program at once; what takes longer from a thread, as for `Live`."""
        with self._lock:
            point = self.source.set(change["new"]["text"])
            self._moved, self._moves = time.monotonic(), self._moves + 1
            with self.hold_sync():
                self.answer = {"n": change["new"]["n"], "error": self.source.error}
                if point is not self._at:
                    if self._at.counted:  # what came and went while one typed is not compared with
                        self._before = self._at
                    self._knob = next((n for n, (a, b) in enumerate(
                        zip(self._at.state, point.state)) if a != b), 0)
                    self._at = point
                    self.knobs = [knob.to_dict() for knob in self.source.knobs]
                    self.state = list(point.state)
                    self._show(point)
                    self._say_why()
        self.source.give_way()
        self._go_on()

    @traitlets.observe("state")
    def _chosen(self, change: Any) -> None:
        """Other choices for the open numbers are another text."""
        if change["new"] != self.source.first:
            self.type(self.source.text_of(change["new"]))

    def _show(self, *points: Any) -> None:
        known = self.source.points
        self.point = self.source.shown(self._at)
        self.points = {key: self.source.short(point) for key, point in known.items()}

    # ------------------------------------------------------------------------- without a kernel

    def html(self, path: Any = None, budget_s: float = 60.0) -> str:
        """The text and what followed as one HTML file that needs no kernel; written to `path` if
        given. The numbers that it leaves open can be changed there too, as far as that was computed
        in `budget_s` seconds."""
        self.wait(budget_s)
        for act in (self.source.count, self.source.measure):
            act(self._at)
        compute(self.source, self.source.first, budget_s)
        text = write(self.source)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _static(self) -> tuple[str, str]:
        with self._lock:
            return f"Typed:\n{self.source.text}", static_text(self.source)

    def _values(self) -> dict[str, Any]:
        return {**super()._values(), "typed": self.typed, "answer": self.answer,
                "start": self.start}  # fmt: skip

    def _pictures(self) -> list[str]:
        return super()._pictures() if self.source.lines(self._at) else []


def write(source: Any) -> str:
    """A page with a text, and what is known of it with the choices for its open numbers, as far as
    they go into `mlc_lab_widgets.live.BUDGET`."""
    found = {
        "typed": {"text": source.text, "n": 0}, "answer": {"n": 0, "error": source.error},
        "start": source.text, **values(source, source.first),
    }  # fmt: skip
    title = text("Typed: {title}", "views").format(title=source.title)
    view = found, static_text(source)
    return fitted(view, title, ENTRY, STYLES, source, source.first)


def static_text(source: Any) -> str:
    """The text with its error, what was found, and the program, as HTML without scripts."""
    lines = [escape(line) for line in source.text.split("\n")]
    if source.error is not None:
        said = "\n".join(filter(None, (source.error["rule"], source.error["message"],
                                       source.error["hint"])))  # fmt: skip
        lines[source.error["line"] - 1] += f"\n<b>✗ {escape(said)}</b>"
    text = "\n".join(lines)
    return f'<div><pre style="{PRE}">{text}</pre>{static(source, source.first)}</div>'


__all__ = ["Typed", "static_text", "write"]
