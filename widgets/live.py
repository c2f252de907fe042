"""The page of choices as a widget and as HTML: change a number, and see all that follows from it.

>>> view = sch.live()                             # doctest: +SKIP
>>> view.set("tile", 16)                          # as dragging the slider does
>>> view.cost()                                   # what was counted and measured, as plain data
>>> view.html("page.html")                        # what was computed, without a kernel
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from mlc_lab.language import text
from mlc_lab.observe import accesses
from mlc_lab.observe.live import Choices, Point, key_of

from . import export, picture
from .static import pre
from .view import View, traitlets

ENTRY = "live.js"
STYLES = ("stepper.css", "counts.css", "access.css", "live.css")
#: seconds after which processes that have nothing to do are ended; they start again when asked
IDLE_S = 60.0
#: choices of one knob that are computed without being asked for
_NEAR = 32
#: states that a page has when it has all of them
_ALL = 96
#: states that a notebook keeps, which has room for less, and rows of a table
_KEPT = 250
#: bytes of a page as it is written, with its scripts and all else
BUDGET = 10_000_000


@dataclass
class _Lane:
    """What one thread computes, one after the other: `following` says what is next and of which
    point, None where nothing is. `wake` is set when there may be more; while `running` the thread
    looks once more before it ends."""

    following: Callable[[], tuple[str, Point] | None]
    wake: threading.Event = field(default_factory=threading.Event)
    running: bool = False
    thread: threading.Thread | None = None
    busy: str = ""


class Live(View):
    """Shows what a schedule leaves open, and what follows from each choice.

    Traits
    ------
    state    the value of each knob: the number of a choice, on or off, the order of loops.
    knobs    what can be chosen, as plain data (see `mlc_lab/observe/live.py`).
    point    what is shown, as plain data: lines of the program, what refused it, counts, inner loop
             in machine code, time (see `Choices.shown`).
    points   in short what is known of each state (as JSON) that was looked at: misses, moves of
             lines between cores, time.
    why      what the counts say of the last change, and whether they are "known".
    machine  what the counts are compared with: peak, bandwidths, caches.
    busy     what is being computed, in words; empty if nothing is.
    title    what the page is called.
    prose    text above it; `{live:tile}` in it, and in the notebook's own text, can be dragged.
    follow   whether the reader looks at the accesses, so that those of each state are wanted.
    watched  of the program that is shown the first accesses in time order and what caches make of
             them (`AccessTrace.shown`), with the "key" of its state; or a "message".
    live     whether there is a Python that computes what is asked for.
    """

    _entry, _styles = ENTRY, STYLES
    _alone = {"busy": "", "live": False}

    #: seconds that the hand is still before a program is timed
    still_s = 0.4
    #: and before what nobody asked for is computed ahead, in the way of what is asked for next
    ahead_s = 1.0
    #: and at most for what the other knobs would choose, of each program that is shown
    spare_s = 30.0

    state = traitlets.List().tag(sync=True)
    knobs = traitlets.List().tag(sync=True)
    point = traitlets.Dict().tag(sync=True)
    points = traitlets.Dict().tag(sync=True)
    why = traitlets.Dict().tag(sync=True)
    machine = traitlets.Dict().tag(sync=True)
    busy = traitlets.Unicode("").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    prose = traitlets.Unicode("").tag(sync=True)
    follow = traitlets.Bool(False).tag(sync=True)
    watched = traitlets.Dict().tag(sync=True)
    live = traitlets.Bool(True).tag(sync=True)

    def __init__(self, choices: Choices, **traits: Any) -> None:
        """`choices` is a `mlc_lab.observe.live.Choices`."""
        self.source = choices
        self._lock = threading.RLock()
        self._lanes = {"rest": _Lane(self._next), "accesses": _Lane(self._watched),
                       "ahead": _Lane(self._ahead)}
        self._moved, self._knob, self._closed = 0.0, 0, False
        self._moves = 0  # how often the hand moved
        self._spare: tuple[Point | None, float] = None, 0.0  # since when, and around which point
        self._failed: set[tuple[str, str]] = set()  # what is not tried again, and of which point
        self._idle: threading.Timer | None = None
        #: what can be computed: its name for the reader, and what does it
        self._acts: dict[str, tuple[str, Callable[..., dict]]] = {
            "count": ("counting", choices.count_misses),
            "compile": ("compiling", choices.compile), "measure": ("measuring", choices.measure),
            "accesses": ("watching the accesses", choices.accesses),
            "whole": ("counting the whole run", choices.count_whole)}
        first = choices.point(choices.first)
        self._before = self._at = self._legal = first  # the last one that was not refused
        self._motion = -1  # the one knob that the last change moved
        super().__init__(state=choices.first, knobs=[k.to_dict() for k in choices.knobs],
                         point=choices.shown(first), points={first.key: choices.short(first)},
                         title=choices.title, prose=choices.prose, **traits)
        self._go_on()

    # ------------------------------------------------------------------------- from Python

    def set(self, name: str, value: Any) -> None:
        """Choose: a number by its value, a step on or off, an order by the names of loops.

        `name` may be the beginning of a knob's name, if no other one begins so. Raises ValueError
        for what there is not.
        """
        at, chosen = self.source.named(name, value)
        self.state = self.source.state_of([*self.state[:at], chosen, *self.state[at + 1:]])

    def cost(self) -> dict[str, Any]:
        """What is known of the program that is shown: "counts", "inner", "time", ..."""
        return self.source.cost(self._at)

    def accesses(self, **options: Any) -> Any:
        """What the program that is shown reads and writes, in time order; `.show()` draws it.

        Options are those of `mlc_lab.observe.accesses`, as `sizes` or `limit`.
        """
        return accesses(self.source.module(self._at), **options)

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until all that was asked for is computed. Whether it is."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            at_work = [lane.thread for lane in self._lanes.values() if lane.running and lane.thread]
            if not at_work:
                return True
            at_work[0].join(0.05)
        return False

    def on_state(self, callback: Callable[[list], None]) -> Callable[[], None]:
        """Call `callback(state)` whenever something else is chosen. Calling the result stops it."""
        return self._on("state", callback)

    def close(self) -> None:
        """Stop computing, and take the view down."""
        with self._lock:
            self._closed = True
            for lane in self._lanes.values():
                lane.wake.set()
            self._rest()
        self.source.close()  # ends what threads wait for, and so these
        super().close()

    # ------------------------------------------------------------------------- following

    @traitlets.validate("state")
    def _fits(self, proposal: Any) -> list[Any]:
        return self.source.state_of(proposal["value"])

    @traitlets.observe("follow")
    def _followed(self, change: Any) -> None:
        self._go_on()

    @traitlets.observe("state")
    def _chosen(self, change: Any) -> None:
        """The program at once; what takes longer from a thread."""
        with self._lock:
            point = self.source.point(change["new"])
            if point is self._at:
                return
            self._moves += 1
            changed = [n for n, (a, b) in enumerate(zip(self._at.state, point.state)) if a != b]
            # One motion of the hand is one change: where a drag began is what its steps are held
            # against, not the notch before. What is refused has no counts: after it the last
            # point that was not refused is compared with.
            goes_on = changed == [self._motion] and point is not self._before and (
                time.monotonic() - self._moved < self.still_s)
            if not goes_on:
                self._before = self._legal
            self._at = point
            if point.error is None:
                self._legal = point
            self._motion = changed[0] if len(changed) == 1 else -1
            self._moved, self._knob = time.monotonic(), changed[0] if changed else 0
            with self.hold_sync():
                self._show(point)
                self._say_why()
        self.source.give_way()
        self._go_on()

    def _show(self, *points: Point) -> None:
        """Show what is known of some points, and of the one that is chosen."""
        self.point = self.source.shown(self._at)
        self.points = {**self.points, **{p.key: self.source.short(p) for p in points}}

    def _say_why(self) -> None:
        before, at = self._before, self._at
        known = before.counted and before.compiled and at.counted and at.compiled
        self.why = {"from": before.key, "to": at.key, "known": known,
                    "said": self.source.why(before, at) if known else []}

    def _go_on(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._rest()
            for lane in self._lanes.values():
                lane.wake.set()
                if not lane.running:
                    lane.running = True
                    lane.thread = threading.Thread(target=self._work, args=(lane,), daemon=True)
                    lane.thread.start()

    def _work(self, lane: _Lane) -> None:
        """Compute what is missing: in one thread the accesses, where the reader looks at them; in
        another one of the state that is shown its counts, its machine code, then its time when the
        hand is still; after that, in a third one, all that of the other choices of the knob that
        was moved last, the nearest first. What cannot be computed is said, and the rest goes on."""
        trouble = ""
        while True:
            lane.wake.clear()
            moves, todo = self._moves, None
            try:
                todo = None if self._closed else lane.following()
                if todo is not None and todo[0] == "wait":
                    lane.wake.wait(0.05)
                elif todo is not None:
                    self._compute(lane, *todo, wanted=lambda moves=moves: self._moves == moves)
            except Exception as error:  # a view says what went wrong, and goes on
                trouble = f"stopped: {type(error).__name__}: {error}"
                if todo is not None:
                    self._failed.add((todo[0], todo[1].key))
            with self._lock:  # so that nobody asks for more between the last look and the end
                if todo is None and (self._closed or not lane.wake.is_set()):
                    lane.running = False
                    self._say_busy(lane, trouble)
                    self._rest()
                    return

    def _compute(self, lane: _Lane, what: str, point: Point, wanted: Callable[[], bool]) -> None:
        """One of the acts, and show what was found."""
        said, act = self._acts[what]
        self._say_busy(lane, said)
        if what == "accesses":
            found = act(point)
        elif lane is self._lanes["ahead"] and what != "measure":
            found = act(point, wanted, ahead=True)
        else:
            found = act(point, wanted)
        with self._lock:
            if self._closed:
                return
            with self.hold_sync():
                if what == "accesses":
                    self.watched = {"key": point.key, **found}
                self.machine = dict(self.source.recording.machine)
                self._show(point)
                self._say_why()

    def _rest(self) -> None:
        """A cell that is run again and again leaves views behind, but no processes: where nothing
        is computed, they are ended after a while."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if any(lane.running for lane in self._lanes.values()):
            return
        if self._closed:
            self.source.close()
            return
        self._idle = threading.Timer(IDLE_S, self._sleep)
        self._idle.daemon = True
        self._idle.start()

    def _sleep(self) -> None:
        with self._lock:
            if not any(lane.running for lane in self._lanes.values()):
                self.source.close()

    def _say_busy(self, lane: _Lane, said: str) -> None:
        with self._lock:
            lane.busy = said
            if not self._closed:
                self.busy = next(filter(None, (one.busy for one in self._lanes.values())), "")

    def _done(self, what: str, point: Point) -> bool:
        """Whether an act has been done, or cannot be."""
        done = {"count": point.counted, "compile": point.compiled, "measure": point.timed,
                "whole": not self.source.partly(point)}  # fmt: skip
        return point.error is not None or done[what] or (what, point.key) in self._failed

    def _watched(self) -> tuple[str, Point] | None:
        """The accesses to look at next."""
        with self._lock:
            at = self._at
            known = self.watched.get("key") == at.key or ("accesses", at.key) in self._failed
            return ("accesses", at) if self.follow and not known else None

    def _next(self) -> tuple[str, Point] | None:
        """What to compute next, and of which point."""
        with self._lock:
            at, before = self._at, self._before
            for what in ("count", "compile"):
                if not self._done(what, at):
                    return what, at
            for what in ("count", "compile"):
                if not self._done(what, before):
                    return what, before
            rest = time.monotonic() - self._moved
            still = rest >= self.still_s and self._watched() is None
            for what in ("measure", "whole"):
                if not self._done(what, at):
                    return (what, at) if still else ("wait", at)
        return None

    def _ahead(self) -> tuple[str, Point] | None:
        """What to compute ahead, and of which point, once all is known of what is shown."""
        with self._lock:
            at, knob = self._at, self._knob
            if self._next() is not None or time.monotonic() - self._moved < self.ahead_s:
                return "wait", at
            states = nearest(self.source, at.state, knob)
            if knob and self.source.knobs[0].kind == "form":  # to compare with
                for form in self.source.neighbours(at.state, 0):
                    states += nearest(self.source, form, knob)
            value = at.state[knob] if knob < len(at.state) else 0
            if isinstance(value, int):
                states.sort(key=lambda state: abs(state[knob] - value))
        others = []
        for state in states:
            with self._lock:  # a replay each, so that the hand never waits for more than one
                if self._at is not at:
                    return "wait", self._at
                point = self.source.point(state)
                if point.key not in self.points:
                    self._show(point)
            others.append(point)
        for what in ("count", "compile", "measure"):
            for point in others:
                if not self._done(what, point):
                    return what, point
        return self._other_knobs(at)

    def _other_knobs(self, at: Point) -> tuple[str, Point] | None:
        """What the counts of the other knobs' choices need: then they are there at once when one
        is moved, and in a notebook that is handed out."""
        if self._spare[0] is not at:
            self._spare = at, time.monotonic()
        for state in _around(self.source, at.state)[:_ALL]:
            if time.monotonic() - self._spare[1] > self.spare_s:
                return None
            with self._lock:
                if self._at is not at:
                    return "wait", self._at
                point = self.source.point(state)
            for what in ("count", "compile"):
                if not self._done(what, point):
                    return what, point
        return None

    # ------------------------------------------------------------------------- without a kernel

    def html(self, path: Any = None, budget_s: float = 60.0) -> str:
        """The page as one HTML file that needs no kernel; written to `path` if given.

        All states are in it where there are few, else every choice of each knob with the others as
        they are now: with what can be counted and measured in `budget_s` seconds.
        """
        self.wait(budget_s)
        compute(self.source, self.state, budget_s)
        text = write(self.source, self.state)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _static(self) -> tuple[str, str]:
        said = (text("Choices of {title}", "views").format(title=self.title)
                + f": {', '.join(k.name for k in self.source.knobs)}")
        with self._lock:  # which the thread holds while it adds points
            return said, static(self.source, self.state)

    def _values(self) -> dict[str, Any]:
        with self._lock:
            found = values(self.source, self.state, _KEPT)
        for key, point in found["all"].items():
            if key != self._at.key:
                del point["watched"]  # a notebook keeps the accesses of one program
        return found

    def _pictures(self) -> list[str]:
        return [picture.program_nest(self.source.recording, self._at.program)]


def compute(source: Choices, state: Any, budget_s: float) -> None:
    """Count and measure a state and those around it, for at most about `budget_s` seconds: the
    nearest first, and all where there are at most `_ALL`."""
    end = time.monotonic() + budget_s
    own = source.point(state)
    near: dict[str, Point] = {own.key: own}
    states = [own.state]
    for distance in range(len(source.knobs)):
        ring = [one for at in states for one in _around(source, at)]
        new = {key_of(s): s for s in ring if key_of(s) not in near}
        if distance and len(near) + len(new) > _ALL:
            break
        for key, one in new.items():
            if time.monotonic() < end:
                near[key] = source.point(one)
        states = list(new.values())
    counts, time_it = (source.count, source.accesses), (source.measure,)
    for acts, points in ((counts, [own]), (time_it, [own]), (counts, near.values()),
                         (time_it, near.values())):  # fmt: skip
        for point in points:
            if time.monotonic() < end:
                for act in acts:
                    act(point)


def _around(source: Choices, state: Any) -> list[Any]:
    """The states that differ in the value of one knob, of each knob the nearest values first."""
    found = []
    for knob in range(len(source.knobs)):
        states, now = nearest(source, state, knob), state[knob]
        if isinstance(now, int):
            states.sort(key=lambda s: abs(s[knob] - now))
        found += enumerate(states)
    return [state for _, state in sorted(found, key=lambda one: one[0])]


def nearest(source: Choices, state: Any, knob: int) -> list[Any]:
    """The states that differ in the value of a knob: of many choices those near the chosen one."""
    if knob >= len(source.knobs):
        return []
    found = list(source.neighbours(state, knob))
    at = state[knob]
    if len(found) > _NEAR and isinstance(at, int):
        first = max(0, min(at - _NEAR // 2, len(found) - _NEAR))
        found = found[first:first + _NEAR]
    return found


def values(source: Choices, state: Any, most: int | None = None) -> dict[str, Any]:
    """What the view is drawn from where no kernel computes: with all points that are known, or so
    many that are nearest."""
    points = _nearest_points(source, state, most)
    return {
        "state": list(state), "knobs": [k.to_dict() for k in source.knobs],
        "point": source.shown(source.point(state)),
        "points": {point.key: source.short(point) for point in points},
        "all": {point.key: {**source.shown(point), "watched": source.watched(point)}
                for point in points},
        "reasons": _reasons(source, points), "why": {},
        "machine": source.recording.machine,
        "title": source.title, "prose": source.prose, **Live._alone,
    }  # fmt: skip


def _nearest_points(source: Choices, state: Any, most: int | None) -> list[Point]:
    """All points that are known, or so many that are nearest to a state."""
    points = list(source.points.values())  # a thread may add one
    if most is not None:
        now = source.point(state)
        points.sort(key=lambda one: (one is not now, _far(one.state, now.state)))
        points = points[:most]
    return points


def write(source: Choices, state: Any) -> str:
    """A page with all points that are known, as far as they go into `BUDGET`."""
    found = {**values(source, state), "addressed": True}
    title = text("Choices of {title}", "views").format(title=source.title)
    return fitted((found, static(source, state)), title, ENTRY, STYLES, source, state)


def fitted(view: tuple[dict[str, Any], str], title: str, entry: str, styles: Sequence[str],
           source: Any, state: Any) -> str:
    """A page of a view, its values and what is there without scripts, of at most `BUDGET` bytes as
    far as states can be left out. Takes what is left out from the values."""
    written = export.write([view], title, entry, styles)
    if _fit(view[0], _weight(written), source, state):
        written = export.write([view], title, entry, styles)
    return written


def _weight(written: str) -> int:
    return len(written.encode("utf-8"))


def _fit(found: dict[str, Any], weight: int, source: Choices, state: Any) -> bool:
    """Leave out what is too much for a page of so many bytes: the accesses of the states that are
    farthest from the one that is shown, and then those states, with all that is said of them. The
    page says what it does not have. Whether anything was left out."""
    state, points, left = source.plain(state), source.points, weight
    shown, short, reasons = found["all"], found["points"], found["reasons"]
    pairs: dict[str, list[str]] = {key: [] for key in shown}
    for pair in reasons:
        for key in pair.split(" "):
            pairs[key].append(pair)

    def takes(part: dict[str, Any], key: str) -> int:
        return _weight(export.embed({key: part.pop(key)})) - len("{}") if key in part else 0

    def far(key: str) -> int:
        return _far(points[key].state, state)

    def accesses_of(key: str) -> int:
        return takes(shown[key], "watched")

    def all_of(key: str) -> int:
        return takes(shown, key) + takes(short, key) + sum(takes(reasons, p) for p in pairs[key])

    for drop in (accesses_of, all_of):
        for key in sorted(shown, key=far, reverse=True):
            if left <= BUDGET or not far(key):
                break
            left -= drop(key)
    return left < weight


def _far(one: Any, other: Any) -> int:
    """In how many knobs two states differ."""
    return sum(a != b for a, b in zip(one, other))


def _reasons(source: Choices, points: list[Point]) -> dict[str, list[str]]:
    """What the counts say of going between points that differ in one knob, and of going back to the
    first one: "from to" -> why. What was compared is in it also where there is nothing to say."""
    found, first = {}, key_of(source.plain(source.first))
    known = [(p, {what for what in ("counts", "inner") if source.cost(p).get(what)})
             for p in points if p.error is None]
    for a, of_a in known:
        for b, of_b in known:
            near = b.key == first or _far(a.state, b.state) == 1
            if near and a is not b and of_a & of_b:
                found[f"{a.key} {b.key}"] = source.why(a, b)
    return found


def static(source: Choices, state: Any) -> str:
    """The choices as HTML without scripts: a table of what was found, and the program."""
    rows, shown = [], source.point(state)
    for point in _nearest_points(source, state, _KEPT):
        cost = source.cost(point) if point.error is None else {}
        chosen = ", ".join(_said(knob, value) for knob, value in zip(source.knobs, point.state)
                           if source.in_force(point.state, knob))
        levels = (cost.get("counts") or {}).get("levels") or []
        told = [f"{level['misses']:,} {level['name']} misses" for level in levels]
        sharing = (cost.get("counts") or {}).get("sharing")
        if sharing:
            told.append(f"{sharing['moves']:,} moves between cores")
        if cost.get("time"):
            told.append(f"{cost['time'] * 1e6:.3g} µs")
        if point.error is not None:
            told = [f"refused: {point.error['rule']}"]
        if told:
            mark = "<b>shown: </b>" if point.key == shown.key else ""
            rows.append(f"<tr><td>{mark}{escape(chosen)}</td>"
                        f"<td>{escape(', '.join(told))}</td></tr>")
    more = len(source.points) - _KEPT
    said = text("{count} other states are not in this table.", "views").format(count=more)
    left_out = f"<p>{escape(said)}</p>" if more > 0 else ""
    lines = pre("\n".join(source.lines(shown)))
    title = escape(text("Choices of {title}", "views").format(title=source.title))
    program = escape(text("The program", "views"))
    return (f"<div><p><b>{title}</b></p>{_prose(source, state)}"
            f"<table>{''.join(rows)}</table>{left_out}"
            f"<details><summary>{program}</summary>{lines}</details></div>")


def _prose(source: Choices, state: Any) -> str:
    """The text of a page with the numbers as they are."""
    text = source.prose
    for knob, value in zip(source.knobs, state):
        if knob.kind in ("number", "form"):
            text = text.replace(f"{{live:{knob.name}}}", knob.labels[int(value)])
    return f"<p>{escape(text)}</p>" if text else ""


def _said(knob: Any, value: Any) -> str:
    if knob.kind == "order":
        return " ".join(knob.labels[n] for n in value)
    return f"{knob.name} {knob.labels[int(value)]}"


__all__ = ["Live", "compute", "fitted", "nearest", "static", "values", "write"]
