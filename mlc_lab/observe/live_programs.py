"""Programs that are made of one, and what is found of each while somebody looks at them.

The page of choices (`live.py`) and the page of typed text (`typed.py`) show a point: a program and
what follows from it. `Programs` keeps the programs by number, the first one being that with which
results are compared; `count` and `measure` find what takes a while, each once for a program.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..ir.module import IRModule
from ..language import text
from ..machine.caches import as_hierarchy
from ..schedule import ScheduleError
from ..schedule.error import rule_in_words
from .access import accesses
from .beginning import beginning, of_the_whole
from .count_steps import counted, describe_machine
from .inner_loop import statements_run
from .isolate import Isolated
from .measure import Measurement, calls_python, dtype_of
from .nest import Box, cut, nest_of
from .program import number_of
from .recording import Recorder, Recording
from .roofs import lift
from .why import facts_of, reasons

if TYPE_CHECKING:
    from ..target.target import TargetLike

#: statements that a simulated run executes in a second or so; of a longer run the beginning is
#: counted first
QUICK = 50_000_000
#: statements of the longest run that is counted whole: some 20 seconds
_LONG = 1_100_000_000
#: accesses that are shown of a program, and in how many choices of caches
_ACCESSES, _OFFERED = 2048, 2

#: seconds that something is waited for that the hand has moved on from: as long as a new process
#: takes to begin
PATIENCE_S = 0.8

#: a value of a knob: the number of a choice, on or off, or the places of loops in an order
Value = int | bool | list[int]

#: whether what is about to be computed is still wanted
Wanted = Callable[[], bool]


@dataclass
class Point:
    """One state: its program (that before the refused step where there is an `error`), and the
    Python of its schedule."""

    key: str
    state: list[Value]
    program: int
    python: str
    error: dict[str, str] | None = None
    counted: bool = False
    compiled: bool = False
    timed: bool = False
    whole: bool = False


def refused(refusal: ScheduleError) -> dict[str, str]:
    """A refused primitive as the error of a point."""
    parts = [rule_in_words(refusal.rule), refusal.reason, refusal.conflict, refusal.hint]
    return {"call": refusal.call, "rule": refusal.rule.replace("_", " "),
            "message": "\n\n".join(filter(None, parts))}


def always() -> bool:
    """Whether something is wanted that is always wanted."""
    return True


@dataclass(eq=False)
class _Work:
    """What a child is at: until when it is left alone, and whether it was ended."""

    child: Isolated
    until: float
    given_up: bool = False


class Programs:
    """The programs that were made of one, with what was found of each.

    Parameters
    ----------
    start : IRModule
        What results are compared with; program 0.
    title : what it is called.
    caches, sizes, target, trusted : see `live.Choices`
    most : how many statements of a program are counted at first.
    """

    def __init__(self, start: IRModule, title: str, caches: object = None,
                 sizes: Mapping[str, int] | None = None, target: TargetLike = "llvm",
                 trusted: bool = False, most: float = QUICK) -> None:
        self.start, self.title, self.caches, self.sizes = start, title, caches, sizes
        self.target, self.trusted, self.most = target, trusted, most
        self._open()

    def _open(self) -> None:
        self.modules: list[IRModule] = []
        self._recorder = Recorder(self.title, "sch = tvm.tir.Schedule(Module)")
        self.recording: Recording = self._recorder.recording
        self.recording.modules = self.modules
        self._number(self.start)
        self.hierarchy = as_hierarchy(self.caches)
        self._child: Isolated | None = None
        self._watcher: Isolated | None = None
        self._works: list[_Work] = []
        self._finding = threading.Lock()
        self._long: Isolated | None = None
        self._measurement: Measurement | None = None
        self._accesses: dict[int, dict[str, Any]] = {}
        self._nests: dict[int, list[list[Any]]] = {}

    def _number(self, mod: IRModule) -> int:
        found = number_of(mod, self._recorder)
        if found == len(self.modules):
            self.modules.append(mod)
        return found

    def lines(self, point: Point) -> list[str]:
        """The text of a point's program."""
        program = self.recording.programs[point.program]
        return [self.recording.lines[n][0] for n in program.lines]

    def module(self, point: Point) -> IRModule:
        """A point's program."""
        return self.modules[point.program]

    def cost(self, point: Point) -> dict[str, Any]:
        """What was found of a point's program so far: "counts", "inner", "time", ..."""
        return self.recording.programs[point.program].cost or {}

    # ------------------------------------------------------------------- what takes a while

    def count(self, point: Point) -> dict[str, Any]:
        """Count the cache misses of a point's program and find its inner loop: `count_misses` and
        `compile`. The entries that its cost has then; a "message" where there are none."""
        self.count_misses(point)
        return self.compile(point)

    def count_misses(self, point: Point, wanted: Wanted = always, ahead: bool = False
                     ) -> dict[str, Any]:
        """Count the cache misses of a point's program, in a process of its own. Of one that runs
        long its beginning is counted ("part" of "counts" says how much of it). Its cost.

        `wanted` says whether the hand has not moved on before it was begun; see `give_way`. What is
        counted `ahead` is counted in another process, so that what is asked for need not wait."""
        if point.error is not None or point.counted:
            return self.cost(point)
        program = self.recording.programs[point.program]
        mod = self.modules[point.program]
        if "counts" not in (program.cost or {}):  # else another state has the same program
            describe_machine(self.recording, self.modules, self.hierarchy, self.sizes)
            part, short = 1.0, mod
            if statements_run(mod, self.sizes) > self.most:
                made = beginning(mod, self.sizes, self.most)
                if made is None:
                    point.counted = True
                    return self._found(point, {"counts": {
                        "message": "not counted: it runs long, and cannot be cut short"}})
                short, part = made
            with self._at_work(self._counting(ahead), wanted) as work:
                counts = self._counted(work.child, short, self.hierarchy)
            if work.given_up:
                return self.cost(point)
            if short is not mod and "levels" in counts:
                counts = of_the_whole(counts, part)
            self._found(point, {"counts": counts})
        point.counted = True
        return self.cost(point)

    def compile(self, point: Point, wanted: Wanted = always, ahead: bool = False) -> dict[str, Any]:
        """Find the inner loop of a point's program in machine code, in a process of its own. Its
        cost. See `count_misses`."""
        if point.error is not None or point.compiled:
            return self.cost(point)
        if "inner" not in self.cost(point):
            with self._at_work(self._counting(ahead), wanted) as work:
                inner = self._counted(work.child, self.modules[point.program], None)
            if work.given_up:
                return self.cost(point)
            self._found(point, {"inner": inner})
        point.compiled = True
        return self.cost(point)

    def _found(self, point: Point, found: dict[str, Any]) -> dict[str, Any]:
        """Add to the cost of a point's program. Its cost."""
        program = self.recording.programs[point.program]
        with self._finding:  # another thread may have found something else
            program.cost = {**(program.cost or {}), **found}
        lift(self.recording, dtype_of(self.modules[0]))
        return program.cost

    @property
    def child(self) -> Isolated:
        """The process that counts and compiles."""
        child = self._child
        if child is None:
            child = self._child = Isolated(None, self.target, self.sizes, trusted=self.trusted)
        return child

    def _counting(self, ahead: bool) -> Isolated:
        """The process that counts what is asked for; ahead of that, the one that takes times: so
        nothing is counted beside what is timed."""
        return self._timer().child if ahead else self.child

    @property
    def watcher(self) -> Isolated:
        """The process that looks at accesses, so that they need not wait for the counts."""
        child = self._watcher
        if child is None:
            child = self._watcher = Isolated(None, self.target, self.sizes, trusted=self.trusted)
        return child

    def _counted(self, child: Isolated, mod: IRModule, caches: Any) -> dict[str, Any]:
        """The counts of a program in a hierarchy of caches, or, for None, its inner loop; a message
        where there are none."""
        what = "inner" if caches is None else "counts"
        if calls_python(mod):
            found = counted(mod, caches, self.sizes, self.target, self.trusted, caches is None)
        else:
            found = child.counted(mod, None if caches is None else caches.to_dict(), caches is None)
        return found if "message" in found else found[what]

    @contextmanager
    def _at_work(self, child: Isolated, wanted: Wanted, patience_s: float = PATIENCE_S
                 ) -> Iterator[_Work]:
        """While a child works: `give_way` may end it. Then what it answered is no answer."""
        work = _Work(child, time.monotonic() + patience_s)
        self._works.append(work)
        if not wanted():  # the hand moved on just now
            self._leave(work)
        try:
            yield work
        finally:
            self._works.remove(work)

    def give_way(self) -> None:
        """The hand moved on: what another thread computes for longer than it is worth to wait for
        is ended. It is begun again when it is asked for again."""
        self.stop()
        for work in list(self._works):
            self._leave(work)

    def _leave(self, work: _Work) -> None:
        """End what nobody waits for, if it is not done by the time until when it is left alone."""
        left = work.until - time.monotonic()
        if left <= 0:
            work.given_up = True
            work.child.close()
            return
        timer = threading.Timer(left, lambda: self._leave(work) if work in self._works else None)
        timer.daemon = True
        timer.start()

    def partly(self, point: Point) -> bool:
        """Whether the beginning of a point's program was counted, and the whole can be."""
        return (not point.whole and "part" in self.cost(point).get("counts", {})
                and statements_run(self.modules[point.program], self.sizes) <= _LONG)

    def count_whole(self, point: Point, wanted: Wanted = always) -> dict[str, Any]:
        """Count a program of which only the beginning was counted. `stop` ends it."""
        point.whole = True
        child = self._long = Isolated(None, self.target, self.sizes, timeout_s=90.0,
                                      trusted=self.trusted)
        if not wanted():
            self.stop()
        try:
            found = self._counted(child, self.modules[point.program], self.hierarchy) if (
                self._long is child) else {}
        finally:
            stopped = self._long is not child
            if not stopped:
                self._long = None
            child.close()
        if "levels" in found:
            self._found(point, {"counts": found})
        elif stopped:
            point.whole = False  # another time
        return self.cost(point)

    def stop(self) -> None:
        """End `count_whole` in another thread."""
        child, self._long = self._long, None
        if child is not None:
            child.close()

    def accesses(self, point: Point) -> dict[str, Any]:
        """The first accesses of a point's program in time order, and what caches make of them
        (`AccessTrace.shown`), from a process of its own; or {"message"}."""
        if point.error is not None:
            return {"message": text("This step is refused: there is no program to watch.", "views")}
        if point.program not in self._accesses:
            whole = self.modules[point.program]
            # of a long run the beginning makes the same first accesses
            short = beginning(whole, self.sizes, 16 * _ACCESSES)
            mod = short[0] if short else whole
            if calls_python(mod):
                found = accesses(mod, limit=_ACCESSES, sizes=self.sizes, target=self.target).shown(
                    self.hierarchy, _OFFERED)
            else:
                watcher = self.watcher
                found = watcher.accesses(mod, self.hierarchy.to_dict(), _ACCESSES, _OFFERED)
                if self._watcher is not watcher and "message" in found:
                    return found  # it was ended on purpose: another time
            if short and "trace" in found:
                found["trace"]["notes"] = [
                    text("These are the first {kept} accesses of a long run.", "views").format(
                        kept=f"{_ACCESSES:,}")]
            self._accesses[point.program] = found
        return self._accesses[point.program]

    def measure(self, point: Point, wanted: Wanted = always) -> dict[str, Any]:
        """Time and check a point's program, in a process of its own. Its cost."""
        if point.error is not None or point.timed:
            return self.cost(point)
        if "time" not in self.cost(point):
            timer = self._timer()
            # measured again from the beginning: nothing else runs beside what is timed
            with self._at_work(timer.child, wanted, 0.0) as work:
                found = timer.one(point.program)
            if work.given_up:
                return self.cost(point)
            self._found(point, found)
        point.timed = True
        return self.cost(point)

    def _timer(self) -> Measurement:
        if self._measurement is None:
            self._measurement = Measurement(self.recording, self.modules, target=self.target,
                                            sizes=self.sizes, isolate=True, trusted=self.trusted)
        return self._measurement

    def take_over(self, other: Programs) -> None:
        """Go on with the processes of another one that count, compile and measure; it starts new
        ones if it is used again."""
        self._child, other._child = other._child, self._child
        if other._measurement is not None and (child := other._measurement._child) is not None:
            child.refer(self.modules[0])
            self._timer()._child, other._measurement._child = child, None

    def take_watcher(self, other: Programs) -> None:
        """Go on with the process of another one that looks at accesses."""
        self._watcher, other._watcher = other._watcher, self._watcher

    def close(self) -> None:
        """End the processes. What another thread waits for is not found, and begun again when it is
        asked for again."""
        self.stop()
        for work in list(self._works):
            work.given_up = True
        children = [self._child, self._watcher, getattr(self._measurement, "_child", None)]
        self._child = self._watcher = self._measurement = None
        for child in children:
            if child is not None:
                child.close()

    # --------------------------------------------------------------------------- to be shown

    def shown(self, point: Point) -> dict[str, Any]:
        """A point as plain data: its lines, and what is known of it."""
        return {"key": point.key, "state": point.state, "lines": self.lines(point),
                "nest": self._nest(point.program), "python": point.python, "error": point.error,
                "cost": self.cost(point) if point.error is None else {}}

    def _nest(self, program: int) -> list[list[Any]]:
        """The loop nest of a program: of each loop, block and statement how deep it lies, its kind,
        its text, and what kind of loop it is."""
        if program not in self._nests:
            rows: list[list[Any]] = []

            def add(box: Box, depth: int) -> None:
                if box.head.startswith("T.func_attr("):
                    return
                plain = box.kind == "root" or box.head.startswith(("class ", "def "))
                if not plain:
                    rows.append([depth, box.kind, cut(box.head), box.tint])
                for child in box.children:
                    add(child, depth if plain else depth + 1)

            add(nest_of(self.recording, program), 0)
            self._nests[program] = rows
        return self._nests[program]

    def watched(self, point: Point) -> dict[str, Any] | None:
        """The accesses of a point's program, if they were looked at."""
        return self._accesses.get(point.program) if point.error is None else None

    def short(self, point: Point) -> dict[str, Any]:
        """In short what is known of a point: {"misses": {level: number}, "moves" of lines between
        cores where a loop is parallel, "time"}, or {"error"}."""
        if point.error is not None:
            return {"error": point.error["rule"]}
        cost = self.cost(point)
        found: dict[str, Any] = {}
        if (levels := cost.get("counts", {}).get("levels")) is not None:
            found["misses"] = {level["name"]: level["misses"] for level in levels}
            if (sharing := cost["counts"].get("sharing")) is not None:
                found["moves"] = sharing["moves"]
        if cost.get("time"):
            found["time"] = cost["time"]
        return found


def said_of(one: Programs, before: Point, other: Programs, after: Point, op: str = "") -> list[str]:
    """What the counts say of going from a point to another; nothing until both are counted."""
    a, b = facts_of(one.recording, before.program), facts_of(other.recording, after.program)
    known = a.inner and b.inner or a.counts and b.counts
    said = reasons(a, b, op) if known else []
    parts = [p for p in (a.counts.get("part"), b.counts.get("part")) if p]
    if said and parts:
        said.append(f"Counted in the first {min(parts):.2g} of the run, as if the rest were the "
                    "same.")
    return said


__all__ = ["Point", "Programs", "QUICK", "Value", "Wanted", "always", "refused", "said_of"]
