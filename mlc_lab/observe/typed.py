"""A program or a schedule that is being typed, and what follows from it: the page behind `%%live`.

    lab = Typed(text)               # TVMScript, lines of a schedule, or both
    lab.set(text)                   # as typing does: read, never executed
    lab.error                       # what is wrong, at its line: the last program stays
    lab.count(lab.at)               # exact: cache misses, the inner loop in machine code
    lab.measure(lab.at)             # its time, in a process of its own

What follows is found as for the page of choices (`live.py`). A number that the text leaves open,
`live("tile", 8)`, is a knob here too: a state is the text with other numbers at those places.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..above import above
from ..ir.module import IRModule
from .live_knobs import Knob, Knobs, key_of
from .live_programs import Point, Programs, Value, Wanted, always, said_of
from .recording import Recording
from .session import _title
from .typed_text import MOST_TEXT, Number, Read, TextReader, as_module, units

if TYPE_CHECKING:
    from ..target.target import TargetLike

#: texts whose programs are kept, and programs of which what was found is kept
_TEXTS, _STARTS = 256, 16
#: programs of one that are kept
_MOST = 256


@dataclass
class TypedPoint(Point):
    """A text as it was read: its program (that before the `error`), and the programs that it is
    one of (None: it has none)."""

    home: Programs | None = None
    text: str = ""
    skeleton: str = ""
    numbers: Sequence[Number] = ()


class _Start(Programs):
    """The programs that texts made of one; those that read the same are the same."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.numbers: dict[str, int] = {}

    def number(self, mod: IRModule) -> int:
        text = mod.script()
        if text not in self.numbers:
            self.numbers[text] = self._number(mod)
        return self.numbers[text]


class Typed(Knobs):
    """A text that changes, and the last program that was read of it.

    Parameters
    ----------
    text : str
        TVMScript as `from_source` takes it, lines of a schedule, or both.
    mod : IRModule, PrimFunc or Schedule, optional
        What the schedule is of, where the text does not say it.
    names : Mapping, optional
        Values that the text may mention, as the names of a notebook.
    name : what the text may call the schedule, besides `sch`.
    caches, sizes, target, trusted : see `live.Choices`

    Attributes
    ----------
    text    as it is now.
    at      the last text that was read without an error, as a point; before there was one, what
            could be read.
    error   what is wrong with the text: None, or its "line" (from 1), "column" and "end" (from 0),
            "message", "hint", and of a refused primitive "call" and "rule".
    """

    def __init__(self, text: str = "", mod: Any = None, names: Mapping[str, Any] | None = None, *,
                 name: str = "", caches: object = None, sizes: Mapping[str, int] | None = None,
                 target: TargetLike = "llvm", trusted: bool = False, title: str = "") -> None:
        self.reader, self._title = TextReader(names, mod, name), title
        self._options = {"caches": caches, "sizes": sizes, "target": target, "trusted": trusted}
        self._starts: dict[str, _Start] = {}
        self._points: dict[str, TypedPoint] = {}
        #: whose processes were used last, by those that count and those that look at accesses
        self._used: dict[str, Programs] = {}
        self._taking, self._reading = threading.Lock(), threading.RLock()
        self.error: dict[str, Any] | None = None
        self.text = ""
        self.at = _NOTHING
        self.set(text)

    # --------------------------------------------------------------------------------- reading

    def set(self, text: str) -> TypedPoint:
        """Another text. What is shown then: it, or where it has an error, what was shown before."""
        self.text = text = text.replace("\r\n", "\n").replace("\r", "\n")
        point, self.error = self._read(text)
        if self.error is None or self.at.error is not None:
            self.at = point
        return self.at

    def _read(self, text: str, key: str = "") -> tuple[TypedPoint, dict[str, Any] | None]:
        with self._reading:
            point = self._points.pop(text, None) or self._new(text, key)
            self._points[text] = point
            point.key = key or point.key  # of one with an error the text does not tell all numbers
            while len(self._points) > _TEXTS:
                del self._points[next(iter(self._points))]
            return point, point.error

    def _new(self, text: str, key: str) -> TypedPoint:
        read = self.reader.read(text)
        home = self._start(read)
        number = home.number(read.mod) if home is not None and read.mod is not None else 0
        blank = hashlib.sha256(_put(text, [(place, "") for one in read.numbers
                                           for place in one.places]).encode("utf-8", "replace"))
        chosen = [one.labels[one.chosen] for one in read.numbers]
        skeleton = blank.hexdigest()[:12]
        return TypedPoint(key or key_of([skeleton, *chosen]), [one.chosen for one in read.numbers],
                          number, text, read.error, home=home, text=text, skeleton=skeleton,
                          numbers=read.numbers)

    def _start(self, read: Read) -> _Start | None:
        """The programs that a text's one belongs to."""
        if read.start is None:
            return None
        text = read.start.script()
        home = self._starts.pop(text, None)
        if home is None or len(home.modules) > _MOST:
            home = _Start(read.start, self._title or _title(read.start), **self._options)
        self._starts[text] = home
        while len(self._starts) > _STARTS:
            self._starts.pop(next(iter(self._starts))).close()
        return home

    # --------------------------------------------------------------- numbers that are left open

    @property
    def knobs(self) -> list[Knob]:
        """The numbers that the text shown leaves open."""
        return [Knob("number", one.name, 0, "", tuple(one.labels), one.chosen)
                for one in self.at.numbers]

    @property
    def first(self) -> list[Value]:
        """What the text shown has for them."""
        return self.at.state

    def text_of(self, values: Any) -> str:
        """The text shown with other choices for its open numbers. Raises ValueError."""
        state = self.state_of(values)
        return _put(self.at.text, [
            (place, one.labels[value]) for one, value in zip(self.at.numbers, state)
            if isinstance(value, int) for place in one.places])

    def point(self, values: Any) -> TypedPoint:
        """The text shown with other choices for its open numbers, read."""
        state = self.state_of(values)
        if state == self.at.state:
            return self.at
        labels = [one.labels[int(value)] for one, value in zip(self.at.numbers, state)
                  if isinstance(value, int)]
        return self._read(self.text_of(state), key_of([self.at.skeleton, *labels]))[0]

    # ------------------------------------------------------------------- what takes a while

    def count(self, point: TypedPoint) -> dict[str, Any]:
        """See `Programs.count`."""
        home = self._taken(point)
        return home.count(point) if home is not None else {}

    def count_misses(self, point: TypedPoint, wanted: Wanted = always, ahead: bool = False
                     ) -> dict[str, Any]:
        """See `Programs.count_misses`."""
        home = self._taken(point)
        return home.count_misses(point, wanted, ahead) if home is not None else {}

    def compile(self, point: TypedPoint, wanted: Wanted = always, ahead: bool = False
                ) -> dict[str, Any]:
        """See `Programs.compile`."""
        home = self._taken(point)
        return home.compile(point, wanted, ahead) if home is not None else {}

    def measure(self, point: TypedPoint, wanted: Wanted = always) -> dict[str, Any]:
        """See `Programs.measure`."""
        home = self._taken(point)
        return home.measure(point, wanted) if home is not None else {}

    def partly(self, point: TypedPoint) -> bool:
        """See `Programs.partly`."""
        return point.home is not None and point.home.partly(point)

    def count_whole(self, point: TypedPoint, wanted: Wanted = always) -> dict[str, Any]:
        """See `Programs.count_whole`."""
        return point.home.count_whole(point, wanted) if point.home is not None else {}

    def accesses(self, point: TypedPoint) -> dict[str, Any]:
        """See `Programs.accesses`."""
        home = self._taken(point, "accesses")
        return home.accesses(point) if home is not None else {"message": "There is no program."}

    def watched(self, point: TypedPoint) -> dict[str, Any] | None:
        """See `Programs.watched`."""
        return point.home.watched(point) if point.home is not None else None

    def stop(self) -> None:
        """End `count_whole` in another thread."""
        for home in list(self._starts.values()):
            home.stop()

    def give_way(self) -> None:
        """See `Programs.give_way`."""
        for home in list(self._starts.values()):
            home.give_way()

    def _taken(self, point: TypedPoint, lane: str = "rest") -> Programs | None:
        """The programs of a point, with the processes of those that were used before. Those that
        look at accesses are taken apart: another thread may be at work with the rest."""
        home = point.home
        with self._taking:
            used = self._used.get(lane)
            if home is not None and home is not used:
                if used is not None:
                    (home.take_over if lane == "rest" else home.take_watcher)(used)
                self._used[lane] = home
        return home

    def cost(self, point: TypedPoint) -> dict[str, Any]:
        """What was found of a point's program so far: "counts", "inner", "time", ..."""
        return point.home.cost(point) if point.home is not None else {}

    def why(self, before: TypedPoint, after: TypedPoint) -> list[str]:
        """What the counts say of going from one text to another; nothing until both are counted."""
        one, other = before.home, after.home
        if before.error or after.error or one is None or other is None or (
                one is other and before.program == after.program):
            return []
        return said_of(one, before, other, after)

    def close(self) -> None:
        """End the processes."""
        for home in {*list(self._starts.values()), *list(self._used.values())}:
            home.close()

    # --------------------------------------------------------------------------- to be shown

    @property
    def title(self) -> str:
        """What the program shown is called."""
        return self.at.home.title if self.at.home is not None else self._title or "a program"

    @property
    def recording(self) -> Recording:
        """That of the program shown, for the machine that its counts are compared with."""
        return self.at.home.recording if self.at.home is not None else Recording()

    @property
    def points(self) -> dict[str, TypedPoint]:
        """The texts that differ from the one shown in their open numbers, by key."""
        return {p.key: p for p in list(self._points.values())
                if p.key.startswith(f'["{self.at.skeleton}"')}

    def module(self, point: TypedPoint) -> IRModule:
        """The program of a point. Raises ValueError where there is none."""
        if point.home is None:
            raise ValueError("the text has no program yet")
        return point.home.module(point)

    def lines(self, point: TypedPoint) -> list[str]:
        """The text of a point's program."""
        return point.home.lines(point) if point.home is not None else []

    def shown(self, point: TypedPoint) -> dict[str, Any]:
        """A point as plain data: its text, its program, and what is known of it."""
        found = point.home.shown(point) if point.home is not None else {
            "key": point.key, "state": [], "lines": [], "python": ""}
        if point.error is not None:
            none = {"message": "none: the text has an error"}
            found["cost"] = {"counts": none, "inner": none}
        return {**found, "error": None, "text": point.text, "skeleton": point.skeleton,
                "knobs": [Knob("number", one.name, 0, "", tuple(one.labels), one.chosen).to_dict()
                          for one in point.numbers],
                "places": [one.places for one in point.numbers]}

    def short(self, point: TypedPoint) -> dict[str, Any]:
        """See `Programs.short`."""
        return point.home.short(point) if point.home is not None else {}

    def show(self) -> Any:
        """The page as a notebook widget."""
        return above("view of typed text").Typed(self)


#: what is shown before anything could be read
_NOTHING = TypedPoint("[]", [], 0, "", {"message": "nothing was read"})


def _put(text: str, changes: Sequence[tuple[tuple[int, int, int], str]]) -> str:
    """A text with something else at some places."""
    lines = text.split("\n")
    for (line, start, end), new in sorted(changes, reverse=True):
        raw = lines[line - 1].encode("utf-16-le", "surrogatepass")
        head, tail = (part.decode("utf-16-le", "surrogatepass")
                      for part in (raw[:2 * start], raw[2 * end:]))
        lines[line - 1] = head + new + tail
    return "\n".join(lines)


def type_live(text: str = "", mod: Any = None, *, names: Mapping[str, Any] | None = None,
              caches: object = None, sizes: Mapping[str, int] | None = None,
              target: TargetLike = "llvm", trusted: bool = False, title: str = "") -> Any:
    """A page on which a program or a schedule is typed, with all that follows from it as one types.

    What the cell magic `%%live` shows. The text is read, never executed.

    Parameters
    ----------
    text : str
        To begin with: TVMScript, lines of a schedule (``sch.split(...)``), or both.
    mod : IRModule, PrimFunc or Schedule, optional
        What the schedule is of, where the text does not say it.
    names : dict, optional
        Values that the text may mention.
    caches, sizes, target, trusted, title : see `mlc_lab.observe.live.Choices`

    Returns
    -------
    The widget; ``.html(path)`` of it writes a page that needs no kernel.

    Raises ImportError without the notebook parts.
    """
    return Typed(text, mod, names, caches=caches, sizes=sizes, target=target, trusted=trusted,
                 title=title).show()


__all__ = ["MOST_TEXT", "Typed", "TypedPoint", "as_module", "type_live", "units"]
