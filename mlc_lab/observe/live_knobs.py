"""What can be chosen in a schedule (`Knob`), as read from its trace, and states: a value for each.

A switch that others cannot do without says so (`Knob.needs`): `compute_at` of a producer below a
loop needs that of its consumer. What needs a step that is switched off is not in force: it is left
out, too, and comes back with that step.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ir.module import IRModule
from ..language import text
from ..reading import MISTAKES, DataError, MLCError, reason
from ..schedule import Schedule
from ..schedule.instruction import Instruction, LoopRV
from ..schedule.trace import ReplayTable, Trace, pair_outputs, translate_argument
from ..tir.stmt import For
from .live_programs import Value

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
    `needs` are the switches without which it is not in force, each as (form, number of the knob);
    a form of -1 is any one.
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
    needs: tuple[tuple[int, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The knob as plain data."""
        return {"kind": self.kind, "name": self.name, "text": self.text,
                "labels": list(self.labels), "start": self.start, "where": self.where,
                "forms": list(self.forms), "needs": [list(one) for one in self.needs]}


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
                if not isinstance(value, (list, tuple)) or len(value) != len(knob.labels) or not (
                        all(n in value for n in range(len(value)))):
                    raise ValueError(f"{value!r} is no order of {', '.join(knob.labels)}")
                state.append([int(v) for v in value])
            elif knob.kind == "switch":
                if value not in (True, False):
                    raise ValueError(f"{knob.name} is True or False, not {value!r}")
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
        found = [n for n in names if n == name] or [n for n in names if n.startswith(str(name))]
        if len(found) != 1:
            raise ValueError(f"there is no knob {name!r}, or more than one: there are "
                             f"{', '.join(names)}")
        at = names.index(found[0])
        knob = self.knobs[at]
        if knob.kind == "switch":
            if isinstance(value, str) and value in knob.labels:
                return at, bool(knob.labels.index(value))
            if value not in (True, False):
                raise ValueError(f"{knob.name} is on or off, True or False; {value!r} was given")
            return at, bool(value)
        if knob.kind == "order":
            loops = list(value) if isinstance(value, (list, tuple)) else []
            if sorted(map(str, loops)) != sorted(knob.labels):
                raise ValueError(f"{value!r} is no order of {', '.join(knob.labels)}")
            return at, [knob.labels.index(str(loop)) for loop in loops]
        if str(value) not in knob.labels:
            raise ValueError(f"{name} is one of {', '.join(knob.labels)}")
        return at, knob.labels.index(str(value))

    def in_force(self, state: Sequence[Value], knob: Knob) -> bool:
        """Whether a knob has an effect: the form of the program has it, and the switches that it
        needs are on."""
        return (not knob.forms or state[0] in knob.forms) and all(
            state[n] for form, n in knob.needs if form in (-1, state[0]))

    def plain(self, state: Sequence[Value]) -> list[Value]:
        """A state in which knobs that are not in force are as at first."""
        return [value if self.in_force(state, knob) else knob.start
                for knob, value in zip(self.knobs, state)]

    def neighbours(self, state: Sequence[Value], knob: int) -> Iterator[list[Value]]:
        """The states that differ from one in the value of a knob, and it itself, in the order of
        the knob's choices; of an order, those in which two neighbours change places."""
        one = self.knobs[knob]
        if not self.in_force(state, one):
            yield self.plain(state)
            return
        values: list[Value] = list(range(len(one.labels))) if one.kind in ("number", "form") else (
            [False, True] if one.kind == "switch" else [])
        if one.kind == "order":
            order = places(state[knob])
            values.append(order)
            for n in range(len(order) - 1):
                values.append([*order[:n], order[n + 1], order[n], *order[n + 2:]])
        for value in values:
            yield self.plain([*state[:knob], value, *state[knob + 1:]])


def places(value: Value) -> list[int]:
    return value if isinstance(value, list) else []


def key_of(state: Sequence[Any]) -> str:
    """A state as a text: what points are kept by, here and in the view."""
    return json.dumps(list(state), separators=(",", ":"))


# ------------------------------------------------------------------------------ reading a trace


def knobs_of(trace: Trace, start: IRModule, names: Mapping[str, Any]) -> Iterator[Knob]:
    """What can be chosen in a trace; `names` are those of numbers that were left open."""
    used: set[Any] = set()
    needed: list[bool] = []
    for inst in reversed(trace.insts):
        needed.append(any(rv in used for rv in inst.output_list))
        used.update(inst.inputs)
    needed.reverse()
    called = {rv: name for name, rv in names.items()}
    pythons, decisions = trace.as_python(), trace.decisions
    for at, (inst, sch, table) in enumerate(replayed(trace, Schedule(start))):
        python = pythons[at]
        if inst.kind.sampling and not needed[at]:
            continue  # of a step that was refused
        if inst.kind.name == "SampleCategorical":
            labels = tuple(str(int(c)) for c in inst.args["candidates"])
            name = called.get(inst.outputs, f"number {at}")
            yield Knob("number", name, at, python, labels, int(decisions[at]),
                       tuple(range(len(labels))))
        elif inst.kind.name == "SamplePerfectTile":
            found = _tilings(inst, list(map(int, decisions[at])))
            if len(found) > 1:
                loop = sch.get(table[inst.args["loop"]]).loop_var.name
                name = text("tiles of {loop}", "views").format(loop=loop)
                labels = tuple(" × ".join(map(str, t)) for t in found)
                yield Knob("number", name, at, python, labels,
                           found.index(tuple(map(int, decisions[at]))), tuple(map(list, found)))
        elif inst.kind.name == "Reorder" and len(inst.args["ordered_loops"]) > 1:
            loops = tuple(_name_of(sch, table[rv]) for rv in inst.args["ordered_loops"])
            where = _block_under(sch, table[inst.args["ordered_loops"][-1]])
            yield Knob("order", text("order of loops", "views"), at, python, loops,
                       list(range(len(loops))), where=where)
        elif inst.kind.name in _COPIES or not inst.kind.pure and not needed[at]:
            said = [_copied(sch, table, inst)] if inst.kind.name in _COPIES else [
                _name_of(sch, table[rv]) for rv in inst.inputs if rv in table]
            name = f"{inst.kind.method} {', '.join(filter(None, said))}".strip()
            where = next((_block_under(sch, table[rv]) for rv in inst.inputs if rv in table), "")
            yield Knob("switch", name, at, python, ("off", "on"), True, where=where)


def replayed(trace: Trace, sch: Schedule) -> Iterator[tuple[Instruction, Schedule, ReplayTable]]:
    """Apply a trace. Each instruction, as it fits (`_fitted`), with the schedule before it, and
    what variables of the trace are there. Raises ScheduleError for what is refused, DataError where
    the trace does not fit what another choice made."""
    table, used = ReplayTable(sch), _used(trace)
    for at, inst in enumerate(trace.insts):
        try:
            inst = _fitted(inst, sch, table, used)
            yield inst, sch, table
            _apply(inst, trace.decisions.get(at), sch, table)
        except MLCError:
            raise
        except MISTAKES as error:
            raise DataError(f"step {at + 1}, {inst.kind.method}: {reason(error)}") from error


def _apply(inst: Instruction, decision: Any, sch: Schedule, table: ReplayTable) -> None:
    args = {name: translate_argument(value, table) for name, value in inst.args.items()}
    if inst.kind.sampling:
        args["decision"] = decision
    pair_outputs(inst, sch.apply(inst.kind, args), table)


def _used(trace: Trace) -> set[Any]:
    return {rv for inst in trace.insts for rv in inst.inputs}


def _fitted(inst: Instruction, sch: Schedule, table: ReplayTable, used: set[Any]) -> Instruction:
    """A `get_loops` of a block that another choice has put into more or fewer loops, with as many
    results: counted from the innermost loop where later steps use that one and not the outermost,
    from the outermost where it is the other way round. ValueError where both are used."""
    if inst.kind.name != "GetLoops":
        return inst
    block = sch.get_sref(translate_argument(inst.args["block"], table))
    old, count = inst.output_list, len(sch.state.loops_above(block))
    more = [LoopRV() for _ in range(count - len(old))]
    ends = [rv in used for rv in (old[0], old[-1])] if old else []
    if count == len(old):
        return inst
    if ends == [True, False]:
        kept = [*old[:count], *more]
    elif ends == [False, True]:
        kept = [*more, *old[max(0, len(old) - count):]]
    else:
        kept = more
    if any(rv in used and rv not in kept for rv in old):
        raise ValueError(f"the block is in {count} loops here, and the steps after this one are "
                         f"about {len(old)}")
    return Instruction.of(inst.kind, inst.args, kept)


def needs_of(trace: Trace, start: IRModule, knobs: Sequence[Knob]) -> dict[int, list[int]]:
    """The instructions of the switches that each knob, by its instruction, needs: what is about
    something that a step made is left out with it, and so is a step that is refused without it. A
    number needs the steps that it is for."""
    found: dict[int, list[int]] = {knob.at: [] for knob in knobs}
    switches = {knob.at for knob in knobs if knob.kind == "switch"}
    users = {knob.at: {at for at, inst in enumerate(trace.insts)
                       if not set(inst.inputs).isdisjoint(trace.insts[knob.at].output_list)}
             for knob in knobs if knob.kind == "number"}
    for at, (_, sch, table) in enumerate(replayed(trace, Schedule(start))):
        if at in switches:
            gone = {*_gone(trace, at, sch, table, switches)}
            gone |= {number for number, steps in users.items() if steps <= {at, *gone}}
            for other in found.keys() & gone:
                found[other].append(at)
    return found


def _gone(trace: Trace, at: int, sch: Schedule, table: ReplayTable, switches: set[int]
          ) -> Iterator[int]:
    """The instructions that go with one that is switched off."""
    sch = sch.copy()
    table, used = ReplayTable(sch, table), _used(trace)
    without, fits = set(trace.insts[at].output_list), True
    for later, inst in enumerate(trace.insts[at + 1:], at + 1):
        refused = False
        if fits and not any(rv in without for rv in inst.inputs):
            try:
                _apply(_fitted(inst, sch, table, used), trace.decisions.get(later), sch, table)
            except MISTAKES:
                refused = later in switches
                fits = refused  # else what comes after it is refused as well
        if refused or any(rv in without for rv in inst.inputs):
            without.update(inst.output_list)
            yield later


def told_apart(knobs: Sequence[Knob]) -> list[Knob]:
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


def _tilings(inst: Instruction, chosen: list[int]) -> list[tuple[int, ...]]:
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


__all__ = ["Knob", "Knobs", "key_of", "knobs_of", "needs_of", "places", "replayed", "told_apart"]
