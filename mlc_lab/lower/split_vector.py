"""SplitVector: stores of vectors whose lanes are no power of two become several.

Before::

    C[0:12] = A[0:12] * T.Broadcast(B[0], 12)

After::

    with T.LetStmt(A[0:8] * T.Broadcast(B[0], 8)) as part0:
        part1: T.float32x4 = A[8:12] * T.Broadcast(B[0], 4)
        C[0:8] = part0
        C[8:12] = part1

Registers have a power of two of lanes, and LLVM keeps other vectors that are live across a loop as
scalars. A last single lane is stored as a scalar. All values are computed before one of them
is stored, as they are in the whole vector: a part may read what another one writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..ir import dtype as dt
from ..ir.transform import Pass
from ..tir.expr import (
    Add, And, Broadcast, BufferLoad, Call, Cast, Div, EQ, FloorDiv, FloorMod, GE, GT, LE, LT, Let,
    Max, Min, Mod, Mul, NE, Not, Or, Ramp, Select, Sub, Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements
from ..tir.op import PURE, as_int, effect_of
from ..tir.stmt import BufferStore, LetStmt, Stmt, seq
from .common import function_pass

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext
    from ..tir.expr import PrimExpr


class _Part(NamedTuple):
    """Lanes `start` to `start + count` of vectors of `lanes`, and the variables that hold them."""

    start: int
    count: int
    lanes: int
    names: dict[Var, Var]


class _Indivisible(Exception):
    """An expression whose lanes cannot be taken apart here."""


_LANEWISE = (
    Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, GT, GE, And, Or, Not,
    Select,
)  # fmt: skip
_ELEMENTWISE = {
    f"tir.{name}"
    for name in ("exp", "exp2", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "fabs", "floor",
                 "ceil", "trunc", "round", "sin", "cos", "pow", "fma")
}


def _lanes(e: PrimExpr, part: _Part) -> Any:
    """The lanes of a part of an expression."""
    start, count, lanes = part.start, part.count, part.lanes
    if dt.lanes_of(e.dtype) != lanes:
        raise _Indivisible
    if type(e) is Ramp and dt.lanes_of(e.base.dtype) == 1:
        first = e.base + e.stride * start
        return first if count == 1 else Ramp(first, e.stride, count)
    if type(e) is Broadcast and dt.lanes_of(e.value.dtype) == 1:
        return e.value if count == 1 else Broadcast(e.value, count)
    if type(e) in _LANEWISE:
        return e.map_children(lambda c: _lanes(c, part))
    if type(e) is Cast:
        return Cast(dt.with_lanes(e.dtype, count), _lanes(e.value, part))
    if type(e) is Var and e in part.names:
        return part.names[e]
    if type(e) is Let:
        value = _lanes(e.value, part)
        name = part.names[e.var] = Var(e.var.name, value.dtype)
        return Let(name, value, _lanes(e.body, part))
    if type(e) is BufferLoad and e.predicate is None and len(e.indices) == 1:
        return BufferLoad(e.buffer, [_lanes(e.indices[0], part)])
    if type(e) is Call and effect_of(e) == PURE and e.op.name in _ELEMENTWISE:
        args = [_lanes(a, part) for a in e.args]
        return Call(dt.with_lanes(e.dtype, count), e.op, args)
    raise _Indivisible


def _uneven(s: Stmt) -> Ramp | None:
    """The last index of a store of consecutive elements whose number is no power of two."""
    if type(s) is not BufferStore or not s.indices or s.predicate is not None:
        return None
    last = s.indices[-1]
    return last if (
        type(last) is Ramp and last.lanes & (last.lanes - 1) != 0 and as_int(last.stride) == 1
        and dt.lanes_of(last.base.dtype) == 1 and not s.buffer.strides
        and dt.lanes_of(s.value.dtype) == last.lanes) else None


def _parts(lanes: int) -> Iterator[_Part]:
    """The parts, the largest power of two first."""
    start = 0
    while start < lanes:
        count = 1 << ((lanes - start).bit_length() - 1)
        yield _Part(start, count, lanes, {})
        start += count


class _Split(Mutator):
    def visit(self, node: Node) -> Any:
        """Only statements are split."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        last = _uneven(node)
        if last is None:
            return node
        parts = list(_parts(last.lanes))
        places = [(*node.indices[:-1], _lanes(last, part)) for part in parts]
        try:
            values = [_lanes(node.value, part) for part in parts]
        except _Indivisible:
            return node
        names = [Var(f"part{k}", value.dtype) for k, value in enumerate(values)]
        body = seq(*(BufferStore(node.buffer, name, at) for name, at in zip(names, places)))
        for name, value in reversed(list(zip(names, values))):
            body = LetStmt(name, value, body)
        return body


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Stores of vectors of a power of two of lanes."""
    if all(_uneven(s) is None for s in all_statements(func.body)):
        return func
    return func.with_body(_Split().visit(func.body))


def SplitVector() -> Pass:
    """Make several stores of one of a vector whose lanes are no power of two."""
    return function_pass("SplitVector", _rewrite)
