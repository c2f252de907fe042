"""What elements of buffers are known to hold at a place in a program.

A fact says of some elements of a buffer that they hold a value: after

    for i in range(16):
        A[i] = i * 2

A[x] is x * 2 for 0 <= x and x < 16. Facts come from stores, from `T.assume`, and from conditions.
They end where an element may be written again. Simplify decides conditions by them when it is asked
to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..arith.expr_util import conjuncts
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import (
    EQ, NE, Add, Broadcast, BufferLoad, Call, CmpOp, IntImm, Or, PrimExpr, Ramp, Range, Sub, Var,
)
from ..tir.functor import Mutator, pre_order, substitute, uses_var
from ..tir.op import as_int, const, effect_of
from ..tir.op.intrinsic import OPAQUE, UPDATES
from ..tir.stmt import BufferStore, Stmt

if TYPE_CHECKING:
    from ..arith import Analyzer

_TRUE = IntImm("bool", 1)
#: values below this are far from the ends of int32
_FAR = 1 << 30


@dataclass(frozen=True)
class Fact:
    """buffer[xs] is `value` for all xs where `where` holds, and xs[d] is at[d] if that is given."""

    buffer: Buffer
    xs: tuple[Var, ...]
    at: tuple[PrimExpr | None, ...]
    where: PrimExpr
    value: PrimExpr
    exact: bool  # whether the value is computed without going over the ends of its type

    def mentions(self, var: Var) -> bool:
        """Whether the fact says something in terms of a variable."""
        return any(e is not None and uses_var(e, {var}) for e in (*self.at, self.where, self.value))

    def substituted(self, table: Mapping[Var, PrimExpr]) -> Fact:
        """The fact in other terms."""
        def put(e: PrimExpr) -> PrimExpr:
            return substitute(e, dict(table))

        return replace(self, at=tuple(None if e is None else put(e) for e in self.at),
                       where=put(self.where), value=put(self.value))


class Contents:
    """The facts at a place. `facts` may be kept and put back: it is a tuple."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.facts: tuple[Fact, ...] = ()
        self.closed = False  # whether nothing is learnt

    # ---------------------------------------------------------------- asking

    def known(self, e: PrimExpr) -> PrimExpr:
        """An expression with what is known in place of loads; itself where nothing is."""
        return _Known(self).visit(e) if self.facts else e

    def value_of(self, load: BufferLoad, exact: bool) -> PrimExpr | None:
        """What an element holds, or None."""
        if load.predicate is not None or any("x" in i.dtype for i in load.indices):
            return None
        for fact in self.facts:
            if fact.buffer is not load.buffer or exact and not fact.exact:
                continue
            here = fact.substituted(dict(zip(fact.xs, load.indices)))
            if self._proved(here.where) and all(
                    e is None or self.analyzer.can_prove_equal(e, i)
                    for e, i in zip(here.at, load.indices)):
                return here.value
        return None

    def _proved(self, condition: PrimExpr) -> bool:
        return all(self.analyzer.can_prove(part) for part in conjuncts(condition))

    # ---------------------------------------------------------------- learning

    def learn(self, condition: PrimExpr) -> None:
        """What a condition that holds here says of elements."""
        for part in conjuncts(condition):
            given: PrimExpr = _TRUE
            if type(part) is Or:  # all but one speak of no memory: then that one holds
                sides = _alternatives(part)
                of_memory = [side for side in sides if _reads(side)]
                if len(of_memory) != 1:
                    continue
                given = op.all(*(op.logical_not(s) for s in sides if s is not of_memory[0]))
                part = of_memory[0]
            if type(part) is not EQ:
                continue
            for load, value in ((part.a, part.b), (part.b, part.a)):
                if type(load) is BufferLoad and load.predicate is None:
                    self._add(load.buffer, load.indices, self.known(value), given)

    def stored(self, node: BufferStore) -> None:
        """A store has been done: what it leaves, and what it has ended."""
        value = self.known(node.value)
        kept = []
        for fact in self.facts:
            if fact.buffer.data is node.buffer.data:
                if fact.buffer is not node.buffer:
                    continue  # the same memory by another name
                found = self._outside(fact, node.indices)
                if found is None:
                    continue
                fact = found
            kept.append(fact)
        self.facts = tuple(kept)
        if node.predicate is None:
            self._add(node.buffer, node.indices, value, _TRUE)

    def _outside(self, fact: Fact, indices: Sequence[PrimExpr]) -> Fact | None:
        """What is left of a fact when elements at `indices` have been written."""
        differs: list[PrimExpr] = []
        for x, e, index in zip(fact.xs, fact.at, indices):
            here = x if e is None else e
            if "x" not in index.dtype:
                differs.append(op.not_equal(here, index))
                continue
            step = as_int(index.stride) if type(index) is Ramp else None
            if step is None or step < 1:
                return None
            assert type(index) is Ramp
            differs += [op.less(here, index.base),
                        op.greater(here, index.base + (index.lanes - 1) * step)]
        away = self.analyzer.simplify(op.any(*differs)) if differs else IntImm("bool", 0)
        if as_int(away) is not None:
            return fact if as_int(away) else None
        return replace(fact, where=op.all(fact.where, away))

    def _add(self, buffer: Buffer, indices: Sequence[PrimExpr], value: PrimExpr,
             given: PrimExpr) -> None:
        lane = None
        if self.closed:
            return
        if any("x" in i.dtype for i in indices):
            found = _of_one_lane(indices, value)
            if found is None:
                return
            indices, value, lane, lanes = found
            self.analyzer.bind(lane, Range(0, lanes))
        if any(map(_reads, (*indices, value, given))) or not value.dtype.startswith(
                ("int", "uint", "bool")) or "x" in value.dtype:
            return
        exact = self._is_exact(value)
        if not exact and (type(value) not in (Add, Sub) or any(
                e.children() for e in value.children())):
            return
        xs = tuple(Var(f"x{d}", i.dtype) for d, i in enumerate(indices))
        fact: Fact | None = Fact(buffer, xs, tuple(indices), given, value, exact)
        if lane is not None:
            fact = self._over(fact, lane, const(0, lane.dtype), const(lanes, lane.dtype))
        if fact is not None:
            self.facts = (fact, *self.facts)  # the last is asked first

    def _is_exact(self, value: PrimExpr) -> bool:
        if not value.children() or not value.dtype.startswith("int"):
            return not value.children()
        bounds = [self.analyzer.const_int_bound(e) for e in pre_order(value)
                  if isinstance(e, PrimExpr) and e.dtype.startswith("int")]
        return all(-_FAR <= b.min_value and b.max_value <= _FAR for b in bounds)

    # ---------------------------------------------------------------- scopes

    def forget(self, node: Stmt) -> None:
        """Drop what a statement may change."""
        written, anything = written_by(node)
        self.facts = () if anything else tuple(
            f for f in self.facts if f.buffer.data not in written)

    def without(self, var: Var) -> None:
        """Drop what is said in terms of a variable that is no more."""
        self.facts = tuple(f for f in self.facts if not f.mentions(var))

    def turn(self, before: Sequence[Fact], written: Mapping[Var, Any], var: Var) -> None:
        """What still holds when a turn of a loop begins, of what held before the loop."""
        kept = []
        for fact in before:
            if fact.buffer.data in written:
                place = self.own_place(fact.buffer, written, var)
                if place is None or fact.at[place[0]] is not None:
                    continue
                at = list(fact.at)
                at[place[0]] = place[1]  # of what was written, the turn's own element is as before
                fact = replace(fact, at=tuple(at))
            kept.append(fact)
        self.facts = tuple(kept)

    def after(self, before: Sequence[Fact], written: Mapping[Var, Any], var: Var, low: PrimExpr,
              extent: PrimExpr) -> None:
        """What holds after a loop, from what held before it and at the end of a turn."""
        out = []
        for fact in self.facts:
            changed = fact.buffer.data in written
            if not changed and any(fact is f for f in before):
                out.append(fact)
                continue
            if changed:
                place = self.own_place(fact.buffer, written, var)
                e = None if place is None else fact.at[place[0]]
                if place is None or e is None or not self.analyzer.can_prove_equal(e, place[1]):
                    continue
            found = self._over(fact, var, low, extent)
            if found is not None:
                out.append(found)
        self.facts = tuple(out)

    def own_place(self, buffer: Buffer, written: Mapping[Var, Any], var: Var
                  ) -> tuple[int, PrimExpr] | None:
        """A dimension in which each turn of a loop writes at an index of its own, and that index:
        then no turn writes what another one has written."""
        stores = written[buffer.data]
        if any(s.buffer is not buffer for s in stores):
            return None
        for d, index in enumerate(stores[0].indices):
            if "x" not in index.dtype and self._rest(index, var) is not None and all(
                    "x" not in s.indices[d].dtype
                    and self.analyzer.can_prove_equal(s.indices[d], index) for s in stores):
                return d, index
        return None

    def _rest(self, index: PrimExpr, var: Var) -> PrimExpr | None:
        """What is added to `var` in an index, if nothing else depends on it."""
        if index.dtype != var.dtype:
            return None
        rest = self.analyzer.simplify(index - var)
        return None if uses_var(rest, {var}) or _reads(rest) else rest

    def _over(self, fact: Fact, var: Var, low: PrimExpr, extent: PrimExpr) -> Fact | None:
        """A fact of each turn of a loop as one of all turns."""
        for d, e in enumerate(fact.at):
            rest = None if e is None else self._rest(e, var)
            if rest is None:
                continue
            turn = self.analyzer.simplify(fact.xs[d] - rest)
            at = list(fact.at)
            at[d] = None
            here = replace(fact, at=tuple(at)).substituted({var: turn})
            return replace(here, where=op.all(here.where, op.less_equal(low, turn),
                                              op.less(turn, low + extent)))
        if fact.mentions(var) or not self.analyzer.can_prove(op.less(0, extent)):
            return None
        return fact

    def branched(self, condition: PrimExpr, then: Sequence[Fact], other: Sequence[Fact]) -> None:
        """What holds after an if whose sides end in `then` and `other`."""
        common = [f for f in then if any(f is g for g in other)]
        if _reads(condition):
            self.facts = tuple(common)
            return
        sides = [*((f, condition) for f in then), *((f, op.logical_not(condition)) for f in other)]
        self.facts = (*(replace(f, where=op.all(f.where, c)) for f, c in sides
                        if not any(f is g for g in common)), *common)


def written_by(node: Stmt) -> tuple[dict[Var, list[BufferStore]], bool]:
    """The stores of a statement by their memory, and whether it may write more than these."""
    found: dict[Var, list[BufferStore]] = {}
    anything = False
    for item in pre_order(node):
        if type(item) is BufferStore:
            found.setdefault(item.buffer.data, []).append(item)
        elif type(item) is Call and effect_of(item) in (UPDATES, OPAQUE):
            anything |= not is_assumption(item)
    return found, anything


def is_assumption(e: object) -> bool:
    """Whether an expression is T.assume(...)."""
    return type(e) is Call and getattr(e.op, "name", "") == "tir.assume"


def _reads(e: PrimExpr) -> bool:
    return any(type(item) in (BufferLoad, Call) for item in pre_order(e))


def _alternatives(e: PrimExpr) -> list[PrimExpr]:
    return _alternatives(e.a) + _alternatives(e.b) if type(e) is Or else [e]


def _of_one_lane(indices: Sequence[PrimExpr], value: PrimExpr) -> Any:
    """Indices and value of one lane of a vector store, that lane, and how many there are."""
    ramps = [i for i in indices if "x" in i.dtype]
    ramp = ramps[0]
    if len(ramps) != 1 or type(ramp) is not Ramp or type(value) not in (Ramp, Broadcast):
        return None
    lane = Var("lane", ramp.base.dtype)
    at = ramp.base + ramp.stride * lane
    one = tuple(at if i is ramp else i for i in indices)
    if type(value) is Broadcast:
        return one, value.value, lane, ramp.lanes
    assert type(value) is Ramp
    return one, value.base + value.stride * op.cast(lane, value.base.dtype), lane, ramp.lanes


class _Known(Mutator):
    """Puts what is known in place of loads: sums that may go over the ends of their type only where
    an element is compared for being the same."""

    def __init__(self, contents: Contents) -> None:
        super().__init__()
        self.contents, self.exact = contents, True

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        found = self.contents.value_of(node, self.exact)
        return node if found is None else found

    def visit_CmpOp(self, node: CmpOp) -> PrimExpr:
        before, self.exact = self.exact, not (type(node) in (EQ, NE) and BufferLoad in (
            type(node.a), type(node.b)))
        out = self.default(node)
        self.exact = before
        return out


__all__ = ["Contents", "Fact", "is_assumption", "written_by"]
