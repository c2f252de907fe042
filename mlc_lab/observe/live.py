"""A schedule whose numbers, steps and orders are left open, and what follows from each choice.

    j0, j1 = sch.split(j, factors=[None, live("tile", 8, choices=[4, 8, 16])])
    sch.vectorize(j1)
    lab = Choices(sch)
    point = lab.point([1, True])        # tile = 8, vectorize on: the program, or why it is refused
    lab.count(point)                    # exact: cache misses, the inner loop in machine code
    lab.measure(point)                  # its time, in a process of its own
    lab.accesses(point)                 # the first accesses in time order, and caches

What can be chosen (`Knob`) is read from the trace (`live_knobs.py`): a number that `live` left
open or that a search would decide, an instruction that nothing after it needs, a copy with the
steps that are about it, the order that a `reorder` gives. A state has a value for each knob, and is
a replay of the trace with these values. Every state that was shown is kept, with its program and
what was found of it; nothing is computed twice.

What no primitive reaches is another form of the program, with a schedule of its own:

    lab = Choices({"three passes": one, "online": other})

Then the first knob is the form; knobs of several forms that are called alike and have the same
choices are one.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..above import above
from ..ir.module import IRModule
from ..reading.collector import makes_many
from ..schedule import Schedule, ScheduleError
from ..schedule.trace import Trace
from .live_knobs import Knob, Knobs, key_of, knobs_of, needs_of, places, replayed, told_apart
from .live_pages import PAGES, opened
from .live_programs import QUICK, Point, Programs, Value, refused, said_of
from .session import _title

if TYPE_CHECKING:
    from ..target.target import TargetLike


@dataclass
class _Form:
    """One form of the program: its schedule's trace, what that starts with, and its own knobs by
    the numbers that they have on the page."""

    name: str
    trace: Trace
    start: IRModule
    own: dict[int, Knob] = field(default_factory=dict)


@dataclass
class Choices(Knobs, Programs):
    """The knobs of a schedule, and the states that were looked at.

    Parameters
    ----------
    sch : Schedule, or a dict of name to Schedule
        Its trace is replayed from the program that it started with. Of several, one is chosen:
        they take the same arguments and compute the same as the first one does.
    caches : see `count_accesses`
        By default those of this machine.
    sizes : dict of str to int, optional
        Symbolic sizes by name.
    target : for which machine code is made.
    trusted : bool
        Whether programs that call code outside of themselves are run.
    prose : str
        Text above the page; in it ``{live:tile}`` is the number of that name, and can be dragged.

    form : str
        What several schedules differ in, as the page calls it.
    begin : dict
        What is chosen at first, by the names of knobs, where that is not what the schedules say.

    Raises ValueError where nothing can be chosen, and for what there is not.
    """

    sch: Schedule | Mapping[str, Schedule]
    caches: object = None
    sizes: Mapping[str, int] | None = None
    target: TargetLike = "llvm"
    trusted: bool = False
    title: str = ""
    prose: str = ""
    most: float = QUICK
    form: str = "form"
    begin: Mapping[str, Any] = field(default_factory=dict)
    knobs: list[Knob] = field(default_factory=list)
    points: dict[str, Point] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._making = threading.RLock()
        given = self.sch if isinstance(self.sch, Mapping) else {"": self.sch}
        if not given:
            raise ValueError("there is no schedule: give one, or a dict of name to Schedule")
        self.forms = [_Form(name, sch.trace.copy(), sch.steps[0].before if sch.steps else sch.mod)
                      for name, sch in given.items()]
        self.start = self.forms[0].start
        self.title = self.title or _title(self.start)
        self._open()
        self._collect(list(given.values()))
        if not self.knobs:
            raise ValueError(
                "there is nothing to choose in this schedule: leave a number open, as in "
                'sch.split(j, factors=[None, live("tile", 8)]), or take a step that can be left '
                "out, as sch.vectorize(j1)")
        for name, value in self.begin.items():
            at, chosen = self.named(name, value)
            self.knobs[at] = replace(self.knobs[at], start=chosen)

    def _collect(self, schedules: Sequence[Schedule]) -> None:
        """The knobs of all forms; the first is the form where there are several."""
        names = tuple(form.name for form in self.forms)
        kind = "number" if all(name.isdecimal() for name in names) else "form"
        knobs = [Knob(kind, self.form, -1, "", names, 0)] if len(names) > 1 else []
        has: list[list[int]] = [[] for _ in knobs]  # the forms that have each knob
        needs: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for number, (form, sch) in enumerate(zip(self.forms, schedules)):
            own = told_apart([*knobs_of(form.trace, form.start, sch.open_numbers)])
            for knob in own:
                same = [n for n, other in enumerate(knobs) if n not in form.own and
                        (other.kind, other.name, other.labels, other.at >= 0)
                        == (knob.kind, knob.name, knob.labels, True)]
                if not same:
                    same = [len(knobs)]
                    knobs.append(knob)
                    has.append([])
                form.own[same[0]] = knob
                has[same[0]].append(number)
            number_at = {knob.at: n for n, knob in form.own.items()}
            for at, switches in needs_of(form.trace, form.start, own).items():
                needs[number_at[at]] += [(number if len(names) > 1 else -1, number_at[switch])
                                         for switch in switches]
        often = Counter(knob.name for knob in knobs)
        for n, (knob, forms) in enumerate(zip(knobs, has)):
            if len(names) > 1 and 0 < len(forms) < len(names):
                name = f"{knob.name} ({names[forms[0]]})" if often[knob.name] > 1 else knob.name
                knobs[n] = replace(knob, name=name, forms=tuple(forms))
        self.knobs = [replace(knob, needs=tuple(needs[n])) for n, knob in enumerate(knobs)]

    @property
    def first(self) -> list[Value]:
        """The state that the schedule has itself."""
        return [knob.start for knob in self.knobs]

    @makes_many  # a search of a large notebook for garbage takes longer than the replay
    def point(self, values: Any) -> Point:
        """The program of a state: that of its replay, or what refused a step of it."""
        state = self.plain(self.state_of(values))
        key = key_of(state)
        with self._making:  # one point for each key, whichever threads ask for it
            return self.points.get(key) or self._made(key, state)

    def _made(self, key: str, state: list[Value]) -> Point:
        form = self._form_of(state)
        trace = self._trace(form, state)
        sch, error = Schedule(form.start), None
        try:
            for at, (inst, _, _) in enumerate(replayed(trace, sch)):
                trace.insts[at] = inst
        except ScheduleError as refusal:
            error = refused(refusal)
        except ValueError as mistake:  # the trace does not fit what another choice made
            error = {"call": "", "rule": "the steps do not fit", "message": str(mistake)}
        self.points[key] = Point(key, state, self._number(sch.mod), self._python(trace), error)
        return self.points[key]

    def _python(self, trace: Trace) -> str:
        """The Python of a schedule with the chosen numbers in it."""
        names, lines = trace.names(), [self.recording.prelude]
        for at, inst in enumerate(trace.insts):
            decision = trace.decisions.get(at)
            if inst.kind.name == "SampleCategorical":
                names[inst.outputs] = str(int(inst.args["candidates"][decision or 0]))
            elif inst.kind.name == "SamplePerfectTile":
                names.update(zip(inst.output_list, map(str, decision or ())))
            else:
                lines.append(inst.as_python(names, decision))
        return "\n".join(lines)

    def _form_of(self, state: Sequence[Value]) -> _Form:
        several = len(self.forms) > 1
        return self.forms[state[0]] if several and isinstance(state[0], int) else self.forms[0]

    def _trace(self, form: _Form, state: Sequence[Value]) -> Trace:
        # a step that needs one that is off is off, too
        chosen = {(own.at, own.kind): (own, state[n] if self.in_force(state, self.knobs[n])
                                       else own.kind != "switch" and own.start)
                  for n, own in form.own.items()}
        decisions, new = form.trace.decisions, Trace()
        without: set[Any] = set()  # what steps that are switched off would have made
        for at, inst in enumerate(form.trace.insts):
            decision = decisions.get(at)
            if not chosen.get((at, "switch"), (None, True))[1] or any(
                    rv in without for rv in inst.inputs):
                without.update(inst.output_list)
                continue
            if (at, "number") in chosen:
                knob, value = chosen[at, "number"]
                assert isinstance(value, int)
                decision = knob.decisions[value]
            if (at, "order") in chosen:
                loops = inst.args["ordered_loops"]
                order = tuple(loops[n] for n in places(chosen[at, "order"][1]))
                inst = inst.with_args({**inst.args, "ordered_loops": order})
            new.append(inst, decision)
        return new

    def why(self, before: Point, after: Point) -> list[str]:
        """What the counts say of going from one state to another; nothing until both are counted,
        and where a step is refused."""
        if before.error or after.error or before.program == after.program:
            return []
        form = self._form_of(after.state)
        changed = [n for n, (x, y) in enumerate(zip(before.state, after.state)) if x != y]
        own = form.own.get(changed[0]) if len(changed) == 1 else None
        op = form.trace.insts[own.at].kind.method if own else ""
        return said_of(self, before, self, after, op)

    def show(self) -> Any:
        """The page as a notebook widget."""
        return above("view of choices").Live(self)


def explore_live(sch: Any, *, caches: object = None, sizes: Mapping[str, int] | None = None,
                 target: TargetLike = "llvm", trusted: bool = False, title: str = "",
                 prose: str = "", form: str = "form", begin: Mapping[str, Any] | None = None
                 ) -> Any:
    """One page on which what a schedule leaves open can be changed, with all that follows from it.

    Parameters
    ----------
    sch : Schedule, IRModule, PrimFunc, dict or str
        With numbers left open: ``sch.split(j, factors=[None, live("tile", 8)])``. Steps that
        nothing after them needs can be switched off, loops of a ``reorder`` dragged, and numbers
        that a search decides can be chosen. Of a program without a schedule the loops of the
        largest block are put in tiles, whose sizes are left open. Of a dict of such, by name, one
        is chosen: forms of a program that no primitive leads to, as
        ``{"three passes": sch, "online": other}``. Or the name of a ready-made page:
        "matrix product", "transpose", "stencil", "convolution", "softmax", "attention",
        "online softmax", "online attention", "parallel sum".
    caches, sizes, target, trusted, title, prose, form, begin : see `Choices`

    Returns
    -------
    The widget; ``.html(path)`` of it writes a page that needs no kernel.

    Raises ValueError where nothing can be chosen, ImportError without the notebook parts.
    """
    if isinstance(sch, str):
        if sch not in PAGES:
            raise ValueError(f"there is no ready-made page {sch!r}; there are {', '.join(PAGES)}")
        page = PAGES[sch]
        sch, title, prose, form = page.make(), title or sch, prose or page.prose, page.form
        begin = begin or page.begin
    elif isinstance(sch, Mapping):
        sch = {str(name): one if isinstance(one, Schedule) else opened(one)
               for name, one in sch.items()}
    elif not isinstance(sch, Schedule):
        sch = opened(sch)
    return Choices(sch, caches=caches, sizes=sizes, target=target, trusted=trusted,
                   title=title, prose=prose, form=form, begin=begin or {}).show()


__all__ = ["Choices", "Knob", "Point", "explore_live", "key_of"]
