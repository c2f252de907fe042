"""The page of choices as a widget and as HTML: change a number, and see all that follows from it.

>>> view = sch.live()                             # doctest: +SKIP
>>> view.set("tile", 16)                          # as dragging the slider does
>>> view.cost()                                   # what was counted and measured, as plain data
>>> view.html("page.html")                        # what was computed, without a kernel
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from mlc_lab.observe import accesses
from mlc_lab.observe.live import Choices, Point, key_of

from . import export, picture
from .view import View, traitlets

ENTRY = "live.js"
STYLES = ("stepper.css", "counts.css", "access.css", "live.css")
PRE = "margin:2px 0;padding:4px 8px;font-size:12px;line-height:1.45;overflow-x:auto"
#: seconds after which processes that have nothing to do are ended; they start again when asked
IDLE_S = 60.0
#: choices of one knob that are computed without being asked for
_NEAR = 32
#: states that a page has when it has all of them
_ALL = 96


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
    why      what the counts say of the last change.
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
        self._threads: dict[str, threading.Thread] = {}
        self._busy: dict[str, str] = {}
        self._wake = threading.Event()
        self._moved, self._knob, self._closed = 0.0, 0, False
        self._idle: threading.Timer | None = None
        #: what can be computed: its name for the reader, and what does it
        self._acts: dict[str, tuple[str, Callable[[Point], dict]]] = {
            "count": ("counting", choices.count_misses),
            "compile": ("compiling", choices.compile), "measure": ("measuring", choices.measure),
            "accesses": ("watching the accesses", choices.accesses),
            "whole": ("counting the whole run", choices.count_whole)}
        first = choices.point(choices.first)
        self._before = self._at = first
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
            at_work = [thread for thread in list(self._threads.values()) if thread.is_alive()]
            if not at_work:
                return True
            at_work[0].join(0.05)
        return False

    def on_state(self, callback: Callable[[list], None]) -> Callable[[], None]:
        """Call `callback(state)` whenever something else is chosen. Calling the result stops it."""
        return self._on("state", callback)

    def close(self) -> None:
        """Stop computing, and take the view down."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        self.source.close()
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
        self.source.give_way()
        with self._lock:
            point = self.source.point(change["new"])
            if point is self._at:
                return
            changed = [n for n, (a, b) in enumerate(zip(self._at.state, point.state)) if a != b]
            self._before, self._at = self._at, point
            self._moved, self._knob = time.monotonic(), changed[0] if changed else 0
            with self.hold_sync():
                self._show(point)
                self._say_why()
        self._go_on()

    def _show(self, *points: Point) -> None:
        """Show what is known of some points, and of the one that is chosen."""
        self.point = self.source.shown(self._at)
        self.points = {**self.points, **{p.key: self.source.short(p) for p in points}}

    def _say_why(self) -> None:
        before, at = self._before, self._at
        known = before.counted and before.compiled and at.counted and at.compiled
        self.why = {"from": before.key, "to": at.key,
                    "said": self.source.why(before, at) if known else []}

    def _go_on(self) -> None:
        self._wake.set()
        if self._idle is not None:
            self._idle.cancel()
        for lane, following in (("accesses", self._watched), ("rest", self._next)):
            thread = self._threads.get(lane)
            if thread is None or not thread.is_alive():
                self._threads[lane] = threading.Thread(target=self._work, args=(lane, following),
                                                       daemon=True)
                self._threads[lane].start()

    def _work(self, lane: str, following: Callable[[], tuple[str, Point] | None]) -> None:
        """Compute what is missing: in one thread the accesses, where the reader looks at them; in
        another one first of the state that is shown its counts, its machine code, then its time
        when the hand is still; then all that of the other choices of the knob that was moved last,
        the nearest first."""
        try:
            while not self._closed:
                self._wake.clear()
                todo = following()
                if todo is None:
                    break
                what, point = todo
                if what == "wait":
                    self._wake.wait(0.05)
                    continue
                said, compute = self._acts[what]
                self._say_busy(lane, said)
                found = compute(point)
                with self._lock, self.hold_sync():
                    if what == "accesses":
                        self.watched = {"key": point.key, **found}
                    self.machine = dict(self.source.recording.machine)
                    self._show(point)
                    self._say_why()
        except Exception as error:  # a view says what went wrong, and goes on with what is there
            self._say_busy(lane, f"stopped: {type(error).__name__}: {error}")
        else:
            self._say_busy(lane, "")
        # a cell that is run again and again leaves views behind, but no processes
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            self._idle = threading.Timer(IDLE_S, self.source.close)
            self._idle.daemon = True
            self._idle.start()

    def _say_busy(self, lane: str, said: str) -> None:
        with self._lock:
            self._busy[lane] = said
            self.busy = self._busy.get("rest") or self._busy.get("accesses", "")

    def _watched(self) -> tuple[str, Point] | None:
        """The accesses to look at next."""
        with self._lock:
            at = self._at
            return ("accesses", at) if self.follow and self.watched.get("key") != at.key else None

    def _next(self) -> tuple[str, Point] | None:
        """What to compute next, and of which point."""
        with self._lock:
            at, before, knob = self._at, self._before, self._knob
            if at.error is None and not at.counted:
                return "count", at
            if at.error is None and not at.compiled:
                return "compile", at
            if before.error is None and not (before.counted and before.compiled):
                return "compile" if before.counted else "count", before
            rest = time.monotonic() - self._moved
            still = rest >= self.still_s and self._watched() is None
            if at.error is None and not at.timed:
                return ("measure", at) if still else ("wait", at)
            if at.error is None and self.source.partly(at):
                return ("whole", at) if still else ("wait", at)
            if rest < self.ahead_s:
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
        for what, done in (("count", "counted"), ("compile", "compiled"), ("measure", "timed")):
            for point in others:
                if point.error is None and not getattr(point, done):
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
        text = f"Choices of {self.title}: {', '.join(k.name for k in self.source.knobs)}"
        with self._lock:  # which the thread holds while it adds points
            return text, static(self.source, self.state)

    def _values(self) -> dict[str, Any]:
        with self._lock:
            found = values(self.source, self.state)
        for key, point in found["all"].items():
            if key != self._at.key:
                del point["watched"]  # a notebook keeps the accesses of one program
        return found

    def _pictures(self) -> list[str]:
        return [picture.program_nest(self.source.recording, self._at.program)]


def compute(source: Choices, state: Any, budget_s: float) -> None:
    """Count and measure the states around one, for at most about `budget_s` seconds: the nearest
    first, and all where there are at most `_ALL`."""
    end = time.monotonic() + budget_s
    near: dict[str, Point] = {}
    states = [list(state)]
    for distance in range(len(source.knobs)):
        ring = [s for at in states for knob in range(len(source.knobs))
                for s in nearest(source, at, knob)]
        new = {key_of(s): s for s in ring if key_of(s) not in near}
        if distance and len(near) + len(new) > _ALL:
            break
        for key, one in new.items():
            if not near or time.monotonic() < end:
                near[key] = source.point(one)
        states = list(new.values())
    for acts in ((source.count, source.accesses), (source.measure,)):
        for point in near.values():
            if time.monotonic() < end:
                for act in acts:
                    act(point)


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


def values(source: Choices, state: Any) -> dict[str, Any]:
    """What the view is drawn from where no kernel computes: with all points that are known."""
    return {
        "state": list(state), "knobs": [k.to_dict() for k in source.knobs],
        "point": source.shown(source.point(state)),
        "points": {key: source.short(point) for key, point in source.points.items()},
        "all": {key: {**source.shown(point), "watched": source.watched(point)}
                for key, point in source.points.items()},
        "reasons": _reasons(source), "why": {}, "machine": source.recording.machine,
        "title": source.title, "prose": source.prose, **Live._alone,
    }  # fmt: skip


def write(source: Choices, state: Any) -> str:
    """A page with all points that are known."""
    view = {**values(source, state), "addressed": True}, static(source, state)
    return export.write([view], f"Choices of {source.title}", ENTRY, STYLES)


def _reasons(source: Choices) -> dict[str, list[str]]:
    """What the counts say of going between points that differ in one knob: "from to" -> why."""
    points, found = list(source.points.values()), {}
    for a in points:
        for b in points:
            if sum(x != y for x, y in zip(a.state, b.state)) == 1:
                said = source.why(a, b)
                if said:
                    found[f"{a.key} {b.key}"] = said
    return found


def static(source: Choices, state: Any) -> str:
    """The choices as HTML without scripts: a table of what was found, and the program."""
    rows = []
    for point in source.points.values():
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
            mark = "<b>shown: </b>" if point.key == key_of(source.plain(state)) else ""
            rows.append(f"<tr><td>{mark}{escape(chosen)}</td>"
                        f"<td>{escape(', '.join(told))}</td></tr>")
    lines = escape("\n".join(source.lines(source.point(state))))
    return (f"<div><p><b>Choices of {escape(source.title)}</b></p>{_prose(source, state)}"
            f"<table>{''.join(rows)}</table>"
            f'<details><summary>The program</summary><pre style="{PRE}">{lines}</pre></details>'
            "</div>")


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


__all__ = ["Live", "compute", "nearest", "static", "values", "write"]
