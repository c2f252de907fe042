"""Recognising what a reduction block computes: which combiner, with which identity.

A reduction block of n buffers has an init of n stores and an update of n stores whose values are
a known associative and commutative combiner of (what is there, what comes in). The known ones are
the sum, the product, minimum and maximum, sums of two values at once, argmin and argmax.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Collection, NamedTuple, Sequence

from ..ir.dtype import is_float
from ..ir.structural import structural_equal
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, PrimExpr, Select, Var
from ..tir.functor import pre_order, substitute
from ..tir.stmt import Block, BufferStore, LetStmt, SeqStmt
from .expr_util import same


class UnknownReduction(ValueError):
    """The pattern of a reduction block is not known; the text says why."""


class Reduction(NamedTuple):
    """The parts of a reduction block.

    `stores` are the update's stores in order, `identities` the init values, `incoming` what is
    combined in, and `combine(lhs, rhs)` gives the combined values of two lists of values.
    `ordered` says that of equal integers the first one wins: then the order matters. (Of equal
    floats another one may win in another order, as sums of floats differ in their last digits.)
    """

    stores: list[BufferStore]
    identities: list[PrimExpr]
    incoming: list[PrimExpr]
    combine: Callable[[Sequence[PrimExpr], Sequence[PrimExpr]], list[PrimExpr]]
    bound: bool
    ordered: bool


def _arg(better: Callable[[Any, Any], PrimExpr], ties: bool, nan: bool = False) -> Callable:
    """Keep the (index, value) with the better value; NaN is better than any number, or worse."""

    def combine(x: Sequence[PrimExpr], y: Sequence[PrimExpr]) -> list[PrimExpr]:
        first, equal = better(x[1], y[1]), op.equal(x[1], y[1])
        if nan:
            a, b = op.isnan(x[1]), op.isnan(y[1])
            first = op.logical_or(first, op.logical_and(a, op.logical_not(b)))
            equal = op.logical_or(equal, op.logical_and(a, b))
        keep = op.logical_or(first, op.logical_and(equal, op.less(x[0], y[0]))) if ties else first
        return [Select(keep, x[0], y[0]), Select(first, x[1], y[1])]

    return combine


def _lowest(dtype: str) -> PrimExpr:
    return op.const(-math.inf, dtype) if is_float(dtype) else op.min_value(dtype)


def _highest(dtype: str) -> PrimExpr:
    return op.infinity(dtype) if is_float(dtype) else op.max_value(dtype)


#: (number of values, combiner, identities of given dtypes; None accepts any)
_KNOWN: list[tuple[int, Callable, list]] = [
    (1, lambda x, y: [op.add(x[0], y[0])], [lambda t: op.const(0, t)]),
    (1, lambda x, y: [op.mul(x[0], y[0])], [lambda t: op.const(1, t)]),
    (1, lambda x, y: [op.min_value_of(x[0], y[0])], [op.max_value]),
    (1, lambda x, y: [op.max_value_of(x[0], y[0])], [op.min_value]),
    (2, lambda x, y: [op.add(x[0], y[0]), op.add(x[1], y[1])], [lambda t: op.const(0, t)] * 2),
    (2, _arg(op.greater_equal, False), [None, op.min_value]),
    (2, _arg(op.less_equal, False), [None, op.max_value]),
    (2, _arg(op.greater, True), [None, op.min_value]),
    (2, _arg(op.less, True), [None, op.max_value]),
    (1, lambda x, y: [op.min_value_of(x[0], y[0])], [_highest]),
    (1, lambda x, y: [op.max_value_of(x[0], y[0])], [_lowest]),
    (2, _arg(op.greater, True, True), [None, _lowest]),
    (2, _arg(op.less, True, True), [None, _highest]),
]


#: combiners that keep the first of equal values
_FIRST_WINS = [combine for _, combine, _ in _KNOWN[5:7]]


def match_reduction(block: Block) -> Reduction:
    """Take a reduction block apart; UnknownReduction if its pattern is not known."""
    inits = _stores(block.init)
    lets: dict[Var, PrimExpr] = {}
    body = block.body
    while type(body) is LetStmt:
        lets[body.var] = substitute(body.value, lets)
        body = body.body
    stores = _stores(body)
    if inits is None or stores is None or len(inits) != len(stores):
        raise UnknownReduction("its init and its update are not the same number of plain stores")
    by_buffer = {s.buffer: s for s in inits}
    if any(s.buffer not in by_buffer for s in stores) or len(by_buffer) != len(stores):
        raise UnknownReduction("its init and its update do not store to the same buffers")
    if not all(same_places(s.indices, by_buffer[s.buffer].indices) for s in stores):
        raise UnknownReduction("its init and its update do not store to the same elements")
    if any(reads_any((store.value,), {s.buffer.data for s in stores[:n]})
           for n, store in enumerate(stores)):
        raise UnknownReduction("a store of its update reads what the one before it has stored")
    order = {s.buffer: n for n, s in enumerate(inits)}
    if lets:  # all are computed before any is stored: the stores have no order
        stores.sort(key=lambda s: order[s.buffer])
    found = _known(stores, by_buffer, lets)
    if found is None and lets and len(stores) == 2:  # (value, index) for (index, value)
        found = _known(stores[::-1], by_buffer, lets)
    if found is not None:
        return found
    raise UnknownReduction("its update is not a known combination of what is there (on the left) "
                   "and what comes in: a sum, product, min, max, argmin or argmax with their "
                   "identity as init")


def _known(stores: list[BufferStore], inits: dict[Buffer, BufferStore],
           lets: dict[Var, PrimExpr]) -> Reduction | None:
    """The known reduction that stores in this order are."""
    identities = [inits[s.buffer].value for s in stores]
    values = [substitute(s.value, lets) if lets else s.value for s in stores]
    old = [BufferLoad(s.buffer, s.indices) for s in stores]
    outputs = {s.buffer.data for s in stores}
    for count, combine, expected in _KNOWN:
        if count != len(stores):
            continue
        if not all(e is None or _same_constant(e(i.dtype), i)
                   for e, i in zip(expected, identities)):
            continue
        incoming = _match(combine, old, values)
        if incoming is not None and not reads_any(incoming, outputs):
            return Reduction(stores, identities, incoming, combine, bool(lets),
                             combine in _FIRST_WINS and not is_float(identities[1].dtype))
    return None


def reads_any(values: Sequence[PrimExpr], memory: Collection[Var]) -> bool:
    return any(type(n) is BufferLoad and n.buffer.data in memory
               for value in values for n in pre_order(value))


def same_places(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> bool:
    return len(a) == len(b) and all(map(same, a, b))


def _stores(stmt: Any) -> list[BufferStore] | None:
    items = stmt.seq if type(stmt) is SeqStmt else (stmt,)
    stores = [s for s in items if isinstance(s, BufferStore)]
    return stores if items and len(stores) == len(items) else None


def _same_constant(a: PrimExpr, b: PrimExpr) -> bool:
    return getattr(a, "value", None) == getattr(b, "value", object()) and a.dtype == b.dtype


def _match(combine: Callable, old: Sequence[PrimExpr], values: Sequence[PrimExpr]
           ) -> list[PrimExpr] | None:
    """The y for which combine(old, y) is `values`; None if there is none."""
    params = [Var(f"y{n}", v.dtype) for n, v in enumerate(old)]
    found: dict[Var, PrimExpr] = {}
    if not all(_unify(p, v, params, found) for p, v in zip(combine(old, params), values)):
        return None
    return [found[p] for p in params] if all(p in found for p in params) else None


def _unify(pattern: Any, value: Any, params: Sequence[Var], found: dict[Var, PrimExpr]) -> bool:
    if isinstance(pattern, Var) and any(pattern is p for p in params):
        known = found.setdefault(pattern, value)
        return known is value or bool(structural_equal(known, value))
    if type(pattern) is not type(value):
        return False
    if type(pattern) is BufferLoad:
        return pattern.buffer is value.buffer and bool(structural_equal(pattern.indices,
                                                                        value.indices))
    kids, others = pattern.children(), value.children()
    if not kids:
        return bool(structural_equal(pattern, value))
    return len(kids) == len(others) and all(
        _unify(a, b, params, found) for a, b in zip(kids, others))
