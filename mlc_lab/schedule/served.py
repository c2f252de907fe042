"""Whether a write has filled what a read needs, in the same iteration of the loops around both.

For each read there must be an iteration of the write's own loops that touches the same element and
comes first. It is found by solving the write's indices for these loops: `C[i * 4 + x]` fills
`C[j]` at x = j - i * 4, and `C[(i * 4 + x) // 8, ...]` is solved digit by digit. What is left is to
prove that this x is within its loop and that the write happens there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arith import (
    Analyzer, detect_iter_map, detect_linear_equation, inverse_affine_iter_map,
)
from ..arith.linear_form import follows
from ..tir import op
from ..tir.expr import BufferLoad, PrimExpr, Range, Var
from ..tir.functor import pre_order, substitute, uses_var
from .footprint import Access, Loop


def all_served(accesses: Sequence[Access], around: Sequence[Loop]) -> bool:
    """Whether every read of some memory, of which `accesses` are all there are in one iteration of
    the loops `around`, in program order, finds what a write before it has left."""
    for place, read in enumerate(accesses):
        if not read.write and not any(
                w.write and serves(w, read, around) for w in accesses[:place]):
            return False
    return True


def serves(write: Access, read: Access, around: Sequence[Loop]) -> bool:
    """Whether a write that comes first in the program has filled all that a read touches."""
    if write.spans is None or read.spans is None or write.buffer is not read.buffer or (
            write.buffer is None or write.pointer or None in write.spans):
        return False
    same = write.init and write.block is read.block
    shared = _shared(write, read, same)
    own = write.loops[len(shared):]
    loops, place, known = _place_of(read, around)
    if place is None:
        return False
    table = _solve(write, own, place)
    if table is None:
        table = _inverted(write, own, place)
    if table is None:
        return False
    known = [*known, *read.conditions]
    goals = [g for v, low, extent in own for g in (
        op.less_equal(substitute(low, table), table[v]),
        op.less(table[v], op.add(substitute(low, table), substitute(extent, table))))]
    goals += [op.equal(substitute(s[0], table), p)
              for s, p in zip(write.spans, place) if s is not None]
    goals += [substitute(c, table) for c in write.conditions]
    if same:  # the init of an element, not of one further on
        goals += [op.less_equal(table[v], v) for v, _, _ in own
                  if any(v is u for u, _, _ in read.loops)]
    if any(_reads(g) for g in goals):
        return False
    return all(follows(g, loops, known) for g in goals)


def _shared(write: Access, read: Access, init: bool) -> Sequence[Loop]:
    """The loops around both; for the init of the reduction that reads, up to the first loop that
    the reduction runs over."""
    out: list[Loop] = []
    for a, b in zip(write.loops, read.loops):
        if a[0] is not b[0] or init and any(uses_var(c, a[0]) for c in write.conditions):
            break
        out.append(a)
    return out


def _place_of(read: Access, around: Sequence[Loop]
              ) -> tuple[list[Loop], list[PrimExpr] | None, list[PrimExpr]]:
    """The element that a read touches, as expressions over loops, and what is known of it. Of a
    region each element is one of a further loop."""
    loops = [*around, *read.loops]
    place: list[PrimExpr] = []
    known: list[PrimExpr] = []
    for span, dim in zip(read.spans or (), read.buffer.shape if read.buffer is not None else ()):
        if span is None:
            return loops, None, known
        low, extent = span
        index = low
        if not op.is_const_int(extent, 1):
            index = Var("element", low.dtype)
            loops.append((index, low, extent))
        if _reads(index):
            return loops, None, known
        known += [op.less_equal(0, index), op.less(index, dim)]  # it is in the buffer
        place.append(index)
    return loops, place, known


def _reads(e: PrimExpr) -> bool:
    return any(type(n) is BufferLoad for n in pre_order(e))


def _solve(write: Access, own: Sequence[Loop], place: Sequence[PrimExpr]
           ) -> dict[Var, PrimExpr] | None:
    """Values of the write's own loops at which it touches an element; the first value where the
    indices say nothing."""
    extents = {v: extent for v, _, extent in own}
    lows = {v: low for v, low, _ in own}
    table: dict[Var, PrimExpr] = {}
    analyzer = Analyzer()
    for span, at in zip(write.spans or (), place):
        if span is None or not op.is_const_int(span[1], 1):
            if span is not None and any(uses_var(span[0], v) for v in extents):
                return None
            continue
        index = substitute(span[0], table)
        open_ = [v for v in extents if v not in table and uses_var(index, v)]
        if not open_:
            continue
        linear = detect_linear_equation(index, open_)
        factors = [op.as_int(c) for c in linear[:-1]]
        if not linear or None in factors or any(uses_var(lows[v], set(open_)) for v in open_):
            return None
        rest = analyzer.simplify(op.sub(at, op.cast(linear[-1], at.dtype)))
        if not _digits(rest, open_, factors, lows, extents, table):
            return None
    for v, low, _ in own:
        table.setdefault(v, substitute(low, table))
    return table


def _inverted(write: Access, own: Sequence[Loop], place: Sequence[PrimExpr]
              ) -> dict[Var, PrimExpr] | None:
    """The same for indices that are quotients and remainders of sums of loops."""
    spans = [s for s in write.spans or () if s is not None]
    domains = {v: Range.from_min_extent(low, extent) for v, low, extent in own}
    if not domains or len(spans) != len(place) or not all(
            op.is_const_int(size, 1) for _, size in spans):
        return None
    found = detect_iter_map([low for low, _ in spans], domains, True, "bijective", Analyzer())
    if not found.indices:
        return None
    names = [Var(f"p{i}", low.dtype) for i, (low, _) in enumerate(spans)]
    inverse = inverse_affine_iter_map(found.indices, names)
    places = {name: op.cast(at, name.dtype) for name, at in zip(names, place)}
    return {v: op.cast(substitute(inverse[v], places), v.dtype) if v in inverse else low
            for v, low, _ in own}


def _digits(rest: PrimExpr, unknown: list[Var], factors: list[Any], lows: dict[Var, PrimExpr],
            extents: dict[Var, PrimExpr], table: dict[Var, PrimExpr]) -> bool:
    """Solve rest = factors[0] * unknown[0] + ...: one unknown with a factor of 1 or -1, or digits
    of a mixed radix, each of which counts from 0."""
    if len(unknown) == 1 and abs(factors[0]) == 1:
        value = rest if factors[0] == 1 else op.sub(0, rest)
        table[unknown[0]] = op.cast(value, unknown[0].dtype)
        return True
    order = sorted(range(len(unknown)), key=lambda i: factors[i])
    unit = 1
    for position, i in enumerate(order):
        v = unknown[i]
        if factors[i] != unit or not op.is_const_int(lows[v], 0):
            return False
        digit: PrimExpr = op.floordiv(rest, unit)
        if position + 1 < len(order):
            extent = op.as_int(extents[v])
            if extent is None:
                return False
            digit = op.floormod(digit, extent)
            unit *= extent
        table[v] = op.cast(digit, v.dtype)
    return True


__all__ = ["all_served", "serves"]
