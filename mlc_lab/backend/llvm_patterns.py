"""Statements that LLVM takes long for, or does badly, as it is given them, in a form it likes.

Stores of vectors whose lanes are no power of two become several, and a loop that adds up a few
neighbours, such as the lanes of partial sums, becomes one addition of all lanes of a vector.
"""

from __future__ import annotations

from typing import Any

from .. import tir
from ..ir import dtype as dt
from ..ir.structural import structural_equal
from .llvm_emit import const_int

#: lanes that are added up at once
_LANES = (4, 8, 16)


def even_pieces(s: tir.BufferStore) -> list[tir.BufferStore] | None:
    """A vector store as several, when its number of lanes is no power of two.

    LLVM keeps such vectors in single lanes when they live across a loop. A last single lane is
    stored as a scalar. Gives None where the store is to stay as it is.
    """
    if not s.indices or s.predicate is not None:
        return None
    last = s.indices[-1]
    if type(last) is not tir.Ramp or last.lanes & (last.lanes - 1) == 0:
        return None
    if const_int(last.stride) != 1 or dt.lanes_of(last.base.dtype) > 1 or s.buffer.strides:
        return None
    if dt.lanes_of(s.value.dtype) != last.lanes:
        return None
    pieces, start = [], 0
    while start < last.lanes:
        count = 1 << ((last.lanes - start).bit_length() - 1)
        try:
            value, at = (_piece(e, start, count, last.lanes) for e in (s.value, last))
        except _Indivisible:
            return None
        pieces.append(tir.BufferStore(s.buffer, value, (*s.indices[:-1], at)))
        start += count
    return pieces


class _Indivisible(Exception):
    """An expression whose lanes cannot be taken apart here."""


_LANEWISE = (
    tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max,
    tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE, tir.And, tir.Or, tir.Not, tir.Select,
)  # fmt: skip


def _piece(e: Any, start: int, count: int, lanes: int) -> Any:
    """Lanes ``start`` to ``start + count`` of an expression of ``lanes`` lanes."""
    kind = type(e)
    if dt.lanes_of(e.dtype) != lanes:
        raise _Indivisible
    if kind is tir.Ramp and dt.lanes_of(e.base.dtype) == 1:
        first = e.base + e.stride * start
        return first if count == 1 else tir.Ramp(first, e.stride, count)
    if kind is tir.Broadcast and dt.lanes_of(e.value.dtype) == 1:
        return e.value if count == 1 else tir.Broadcast(e.value, count)
    if kind in _LANEWISE:
        return e.map_children(lambda c: _piece(c, start, count, lanes))
    if kind is tir.Cast:
        value = _piece(e.value, start, count, lanes)
        return tir.Cast(dt.with_lanes(e.dtype, count), value)
    if kind is tir.BufferLoad and e.predicate is None and len(e.indices) == 1:
        return tir.BufferLoad(e.buffer, [_piece(e.indices[0], start, count, lanes)])
    if kind is tir.Call and tir.op.effect_of(e) == tir.op.PURE and e.op.name in _ELEMENTWISE:
        args = [_piece(a, start, count, lanes) for a in e.args]
        return tir.Call(dt.with_lanes(e.dtype, count), e.op, args)
    raise _Indivisible


_ELEMENTWISE = {
    f"tir.{name}"
    for name in ("exp", "exp2", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "fabs", "floor",
                 "ceil", "trunc", "round", "sin", "cos", "pow", "fma")
}


def sum_of_lanes(s: tir.For) -> tuple[tir.BufferStore, tir.BufferLoad] | None:
    """A loop that adds neighbours in memory to one number, as its store and the load of a vector.

    ``for k in range(8): C[i] = C[i] + R[i * 8 + k]`` gives the store, and ``R[i * 8:i * 8 + 8]``,
    whose lanes are added to ``C[i]`` from the first to the last. None for other loops.
    """
    store, lanes = s.body, const_int(s.extent)
    if s.kind is not tir.ForKind.SERIAL or lanes not in _LANES:
        return None
    if type(store) is not tir.BufferStore:
        return None
    value = store.value
    if type(value) is not tir.Add or value.dtype not in ("float32", "float64"):
        return None
    old, term = value.a, value.b
    if type(old) is not tir.BufferLoad or type(term) is not tir.BufferLoad or not term.indices:
        return None
    if old.buffer is not store.buffer or term.buffer.data is store.buffer.data:
        return None
    if store.predicate is not None or term.predicate is not None or term.buffer.strides:
        return None
    if any(tir.uses_var(index, s.loop_var) for index in (*store.indices, *term.indices[:-1])):
        return None
    if any(structural_equal(a, b) is not True for a, b in zip(old.indices, store.indices)):
        return None
    index = term.indices[-1]
    if not _counts(index, s.loop_var):
        return None
    first = tir.substitute(index, {s.loop_var: s.min})
    row = tir.Ramp(first, tir.IntImm(first.dtype, 1), lanes)
    return store, tir.BufferLoad(term.buffer, [*term.indices[:-1], row])


def _counts(e: Any, var: tir.Var) -> bool:
    """Whether an expression is a sum of which one term is the variable, and no other uses it."""
    if type(e) is not tir.Add:
        return e is var
    a, b = (e.a, e.b) if tir.uses_var(e.a, var) else (e.b, e.a)
    return _counts(a, var) and not tir.uses_var(b, var)


__all__ = ["even_pieces", "sum_of_lanes"]
