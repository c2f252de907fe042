"""A schedule whose numbers, steps and orders are left open, and what follows from each choice.

    j0, j1 = sch.split(j, factors=[None, live("tile", 8, choices=[4, 8, 16])])
    sch.vectorize(j1)
    lab = Choices(sch)
    point = lab.point([1, True])        # tile = 8, vectorize on: the program, or why it is refused
    lab.count(point)                    # exact: cache misses, the inner loop in machine code
    lab.measure(point)                  # its time, in a process of its own
    lab.accesses(point)                 # the first accesses in time order, and caches

What can be chosen (`Knob`) is read from the trace: a number that `live` left open or that a search
would decide, an instruction that nothing after it needs, a copy with the steps that are about it,
the order that a `reorder` gives. A state has a value for each knob, and is a replay of the trace
with these values. Every state that was shown is kept, with its program and what was found of it;
nothing is computed twice.

What no primitive reaches is another form of the program, with a schedule of its own:

    lab = Choices({"three passes": one, "online": other})

Then the first knob is the form; knobs of several forms that are called alike and have the same
choices are one.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..above import above
from ..ir.module import IRModule
from ..schedule import Schedule, ScheduleError
from ..schedule.instruction import Instruction
from ..schedule.trace import ReplayTable, Trace, pair_outputs, translate_argument
from ..tir.stmt import For
from .live_pages import PAGES, opened
from .live_programs import QUICK, Point, Programs, Value, refused, said_of
from .session import _title

if TYPE_CHECKING:
    from ..target.target import TargetLike

#: ways to split a loop that one knob may have
_MOST_TILINGS = 256
#: steps that can be left out together with all that is about what they make
_COPIES = ("CacheRead", "CacheWrite", "ReindexCacheRead", "ReindexCacheWrite")


@dataclass(frozen=True)
class Knob:
    """What can be chosen at one instruction of a trace.

    `kind` is "number" or "form" (a value is the index of one of `labels`), "switch" (True or
    False), or "order" (a value is a permutation of the indices of `labels`). `at` is the number of
    the instruction, `text` its Python, `start` the value that the schedule has, `where` the block
    that it is about, `forms` the numbers of the forms of the program that have it (empty: all).
    """

    kind: str
    name: str
    at: int
    text: str
    labels: tuple[str, ...]
    start: Value
    decisions: tuple[Any, ...] = ()
    where: str = ""
    forms: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The knob as plain data."""
        return {"kind": self.kind, "name": self.name, "text": self.text,
                "labels": list(self.labels), "start": self.start, "where": self.where,
                "forms": list(self.forms)}


class Knobs:
    """What can be chosen, and the states that there are."""

    knobs: list[Knob]
    #: text above the page
    prose: str = ""

    def state_of(self, values: Any) -> list[Value]:
        """Values as a state. Raises ValueError where they do not fit the knobs."""
        if not isinstance(values, (list, tuple)) or len(values) != len(self.knobs):
            raise ValueError(f"a state has a value for each of the {len(self.knobs)} knobs")
        state: list[Value] = []
        for knob, value in zip(self.knobs, values):
            if knob.kind == "order":
                if not isinstance(value, (list, tuple)) or sorted(value) != list(
                        range(len(knob.labels))):
                    raise ValueError(f"{value!r} is no order of {', '.join(knob.labels)}")
                state.append([int(v) for v in value])
            elif knob.kind == "switch":
                state.append(bool(value))
            elif isinstance(value, int) and 0 <= value < len(knob.labels):
                state.append(int(value))
            else:
                raise ValueError(f"{value!r} is the number of no choice of {knob.name}: there are "
                                 f"{len(knob.labels)}")
        return state

    def named(self, name: str, value: Any) -> tuple[int, Value]:
        """The number of a knob, and the value of it for what a person says: a number by its
        value, a step on or off, an order by the names of loops.

        `name` may be the beginning of a knob's name, if no other one begins so. Raises ValueError
        for what there is not.
        """
        names = [k.name for k in self.knobs]
        found = [n for n in names if n == name] or [n for n in names if n.startswith(name)]
        if len(found) != 1:
            raise ValueError(f"there is no knob {name!r}, or more than one: there are "
                             f"{', '.join(names)}")
        at = names.index(found[0])
        knob = self.knobs[at]
        if knob.kind == "switch":
            return at, bool(value)
        if knob.kind == "order":
            return at, [knob.labels.index(v) if v in knob.labels else -1 for v in value]
        if str(value) not in knob.labels:
            raise ValueError(f"{name} is one of {', '.join(knob.labels)}")
        return at, knob.labels.index(str(value))

    def plain(self, state: Sequence[Value]) -> list[Value]:
        """A state in which knobs that its form of the program does not have are as at first."""
        return [value if not knob.forms or state[0] in knob.forms else knob.start
                for knob, value in zip(self.knobs, state)]

    def neighbours(self, state: Sequence[Value], knob: int) -> Iterator[list[Value]]:
        """The states that differ from one in the value of a knob, and it itself, in the order of
        the knob's choices; of an order, those in which two neighbours change places."""
        one = self.knobs[knob]
        if one.forms and state[0] not in one.forms:
            yield self.plain(state)
            return
        values: list[Value] = list(range(len(one.labels))) if one.kind in ("number", "form") else (
            [False, True] if one.kind == "switch" else [])
        if one.kind == "order":
            order = _places(state[knob])
            values.append(order)
            for n in range(len(order) - 1):
                values.append([*order[:n], order[n + 1], order[n], *order[n + 2:]])
        for value in values:
            yield self.plain([*state[:knob], value, *state[knob + 1:]])


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
        for number, (form, sch) in enumerate(zip(self.forms, schedules)):
            for knob in _told_apart([*_knobs(form.trace, form.start, sch.open_numbers)]):
                same = [n for n, other in enumerate(knobs) if n not in form.own and
                        (other.kind, other.name, other.labels, other.at >= 0)
                        == (knob.kind, knob.name, knob.labels, True)]
                if not same:
                    same = [len(knobs)]
                    knobs.append(knob)
                    has.append([])
                form.own[same[0]] = knob
                has[same[0]].append(number)
        often = Counter(knob.name for knob in knobs)
        for n, (knob, forms) in enumerate(zip(knobs, has)):
            if len(names) > 1 and 0 < len(forms) < len(names):
                name = f"{knob.name} ({names[forms[0]]})" if often[knob.name] > 1 else knob.name
                knobs[n] = replace(knob, name=name, forms=tuple(forms))
        self.knobs = knobs

    @property
    def first(self) -> list[Value]:
        """The state that the schedule has itself."""
        return [knob.start for knob in self.knobs]

    def point(self, values: Any) -> Point:
        """The program of a state: that of its replay, or what refused a step of it."""
        state = self.plain(self.state_of(values))
        key = key_of(state)
        if key not in self.points:
            form = self._form_of(state)
            trace = self._trace(form, state)
            sch, error = Schedule(form.start), None
            try:
                trace.apply_to_schedule(sch)
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
        chosen = {(own.at, own.kind): (own, state[n]) for n, own in form.own.items()}
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
                order = tuple(loops[n] for n in _places(chosen[at, "order"][1]))
                inst = Instruction(inst.kind, {**inst.args, "ordered_loops": order}, inst.outputs)
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


def _places(value: Value) -> list[int]:
    return value if isinstance(value, list) else []


def key_of(state: Sequence[Any]) -> str:
    """A state as a text: what points are kept by, here and in the view."""
    return json.dumps(list(state), separators=(",", ":"))


# ------------------------------------------------------------------------------ reading a trace


def _knobs(trace: Trace, start: IRModule, names: Mapping[str, Any]) -> Iterator[Knob]:
    """What can be chosen in a trace; `names` are those of numbers that were left open."""
    used: set[Any] = set()
    needed: list[bool] = []
    for inst in reversed(trace.insts):
        needed.append(any(rv in used for rv in inst.output_list))
        used.update(inst.inputs)
    needed.reverse()
    called = {rv: name for name, rv in names.items()}
    texts, decisions = trace.as_python(), trace.decisions
    for at, (inst, sch, table) in enumerate(_replayed(trace, start)):
        text = texts[at]
        if inst.kind.sampling and not needed[at]:
            continue  # of a step that was refused
        if inst.kind.name == "SampleCategorical":
            labels = tuple(str(int(c)) for c in inst.args["candidates"])
            name = called.get(inst.outputs, f"number {at}")
            yield Knob("number", name, at, text, labels, int(decisions[at]),
                       tuple(range(len(labels))))
        elif inst.kind.name == "SamplePerfectTile":
            found = _tilings(sch, table, inst, list(map(int, decisions[at])))
            if len(found) > 1:
                name = f"tiles of {sch.get(table[inst.args['loop']]).loop_var.name}"
                yield Knob("number", name, at, text, tuple(" × ".join(map(str, t)) for t in found),
                           found.index(tuple(map(int, decisions[at]))), tuple(map(list, found)))
        elif inst.kind.name == "Reorder" and len(inst.args["ordered_loops"]) > 1:
            loops = tuple(_name_of(sch, table[rv]) for rv in inst.args["ordered_loops"])
            where = _block_under(sch, table[inst.args["ordered_loops"][-1]])
            yield Knob("order", "order of loops", at, text, loops, list(range(len(loops))),
                       where=where)
        elif inst.kind.name in _COPIES or not inst.kind.pure and not needed[at]:
            said = [_copied(sch, table, inst)] if inst.kind.name in _COPIES else [
                _name_of(sch, table[rv]) for rv in inst.inputs if rv in table]
            name = f"{inst.kind.method} {', '.join(filter(None, said))}".strip()
            where = next((_block_under(sch, table[rv]) for rv in inst.inputs if rv in table), "")
            yield Knob("switch", name, at, text, ("off", "on"), True, where=where)


def _replayed(trace: Trace, start: IRModule
              ) -> Iterator[tuple[Instruction, Schedule, dict[Any, Any]]]:
    """Each instruction with the schedule before it, and what variables of the trace are there."""
    sch = Schedule(start)
    table: Any = ReplayTable(sch)
    decisions = trace.decisions
    for at, inst in enumerate(trace.insts):
        yield inst, sch, table
        args = {name: translate_argument(value, table) for name, value in inst.args.items()}
        if inst.kind.sampling:
            args["decision"] = decisions.get(at)
        pair_outputs(inst.outputs, sch.apply(inst.kind, args), table, inst)


def _told_apart(knobs: Sequence[Knob]) -> list[Knob]:
    """Knobs of one name are called after the blocks that they are about, too."""
    often = Counter(knob.name for knob in knobs)
    return [replace(knob, name=f"{knob.name} of {knob.where}")
            if often[knob.name] > 1 and knob.where else knob for knob in knobs]


def _block_under(sch: Schedule, rv: Any) -> str:
    """The first block under a loop; "" for anything else."""
    if not isinstance(sch.get(rv), For):
        return ""
    return next((sch.get(b).name_hint for b in sch.get_child_blocks(rv)), "")


def _name_of(sch: Schedule, rv: object) -> str:
    """What the program calls a loop or block; "" for a number."""
    stmt = sch.get(rv)
    return stmt.loop_var.name if isinstance(stmt, For) else getattr(stmt, "name_hint", "")


def _copied(sch: Schedule, table: Mapping[Any, Any], inst: Instruction) -> str:
    """The buffer that a step copies."""
    block, index = sch.get(table[inst.args["block"]]), inst.args.get(
        "read_buffer_index", inst.args.get("write_buffer_index", inst.args.get("buffer_index", 0)))
    regions = block.reads if "Read" in inst.kind.name else block.writes
    return regions[index].buffer.name if isinstance(index, int) else str(index)


def _tilings(sch: Schedule, table: Mapping[Any, Any], inst: Instruction, chosen: list[int]
             ) -> list[tuple[int, ...]]:
    """The ways to split a loop that a sampled tiling may choose, its own among them."""
    extent = math.prod(chosen)
    limit = int(inst.args.get("max_innermost_factor", 0) or 0)
    found: list[tuple[int, ...]] = []

    def further(head: tuple[int, ...], left: int, count: int) -> None:
        if len(found) >= _MOST_TILINGS:
            return
        if count == 1:
            if limit <= 0 or left <= limit or (*head, left) == tuple(chosen):
                found.append((*head, left))
            return
        for n in range(1, left + 1):
            if left % n == 0:
                further((*head, n), left // n, count - 1)

    further((), extent, len(chosen))
    return found if tuple(chosen) in found else [tuple(chosen)]


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
