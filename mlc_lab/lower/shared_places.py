"""Where statements of a kernel touch memory: which bytes, in each phase of a loop.

A software pipeline keeps versions of a tile::

    for k in range(7):
        S[(k + 1) % 2 * 32 + i] = ...
        ... = S[k % 2 * 32 + i]

In every iteration the two lie apart, though over all iterations both touch all of `S`. So a place
is told for each remainder of `k` by 2, the phases of that loop: where it is even the store is to
bytes 128 to 255 and the load from 0 to 127. An iteration later the load is seen in the other phase.

What is not known to lie in a part of memory lies everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..arith import Analyzer
from ..arith.const_int_bound import ConstIntBound
from ..arith.modular_set import ModularSet
from ..ir import dtype as dt
from ..tir.buffer import Buffer
from ..tir.expr import (
    Add, BufferLoad, FloorMod, IntImm, IterVar, Mod, PrimExpr, Ramp, Range, Sub, Var,
)
from ..tir.functor import pre_order
from ..tir.op import as_int
from ..tir.stmt import AttrStmt, BufferStore, For, Stmt

#: the first and the last byte, in each phase; the last is before the first where nothing is touched
Place = tuple[tuple[int, int], ...]

_EVERYWHERE = (-(1 << 62), 1 << 62)
_NOWHERE = (1, 0)
#: versions of one memory, and phases of all loops together, up to which they are told apart
_VERSIONS, _PHASES = 16, 64


def overlap(a: Place, b: Place) -> bool:
    """Whether two places have a byte in common in a phase."""
    return any(x[0] <= y[1] and y[0] <= x[1] and x[0] <= x[1] and y[0] <= y[1]
               for x, y in zip(a, b))


def covers(a: Place, b: Place) -> bool:
    """Whether a place has all bytes of another, in each phase."""
    return all(y[0] > y[1] or x[0] <= y[0] and y[1] <= x[1] for x, y in zip(a, b))


def union(places: Iterable[Place]) -> Place:
    """One place that has them all."""
    return tuple(map(_joined, zip(*places)))


def _joined(parts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    held = [p for p in parts if p[0] <= p[1]]
    return (min(p[0] for p in held), max(p[1] for p in held)) if held else _NOWHERE


class Places:
    """The places of a kernel's accesses."""

    def __init__(self, kernel: Stmt) -> None:
        loops: dict[Var, list[tuple[PrimExpr, PrimExpr]]] = {}
        for s in pre_order(kernel):
            if type(s) is For:
                loops.setdefault(s.loop_var, []).append((s.min, s.extent))
            elif type(s) is AttrStmt and isinstance(s.node, IterVar):
                loops.setdefault(s.node.var, []).append((IntImm(s.node.var.dtype, 0), s.value))
        counts = _versions(kernel)
        #: the loops that have phases, and how many
        self.loops: dict[Var, int] = {}
        for var, count in counts.items():
            if math.prod(self.loops.values()) * count <= _PHASES:
                self.loops[var] = count
        self.phases = math.prod(self.loops.values())
        self.everywhere: Place = (_EVERYWHERE,) * self.phases
        bounds = _bounds(loops)
        #: the values of axes and of variables of loops, or more
        self.ranges = {var: Range.from_min_extent(low, high - low + 1)
                       for var, (low, high) in bounds.items()}
        self.analyzers = [self._in_phase(bounds, n) for n in range(self.phases)]
        self.known: dict[tuple[Buffer, PrimExpr], Place] = {}

    def _remainders(self, phase: int) -> Iterator[tuple[Var, int, int]]:
        """Each loop that has phases, how many, and its remainder in a phase of the kernel."""
        for var, count in self.loops.items():
            yield var, count, phase % count
            phase //= count

    def _in_phase(self, bounds: dict[Var, tuple[int, int]], phase: int) -> Analyzer | None:
        """What is known of variables in a phase; None where no iteration has it."""
        known = Analyzer()
        for var, (low, high) in bounds.items():
            known.update(var, ConstIntBound(low, high), True)
        for var, count, rest in self._remainders(phase):
            low, high = bounds[var]
            low += (rest - low) % count
            high -= (high - rest) % count
            if low > high:
                return None
            known.update(var, ConstIntBound(low, high), True)
            known.update(var, ModularSet(count, rest), True)
        return known

    def of(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> Place:
        """Where an access of a buffer lies."""
        if len(indices) != 1 or as_int(0 if buffer.elem_offset is None else buffer.elem_offset):
            return self.everywhere
        key = buffer, indices[0]
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = tuple(
                _NOWHERE if known is None else self._bytes(known, buffer, indices[0])
                for known in self.analyzers)
        return found

    def _bytes(self, known: Analyzer, buffer: Buffer, index: PrimExpr) -> tuple[int, int]:
        more = 0
        if type(index) is Ramp:
            stride = as_int(index.stride)
            if stride is None or as_int(index.lanes) is None:
                return _EVERYWHERE
            more = stride * (index.lanes - 1)
            index = index.base
        if "x" in index.dtype or dt.bits_of(buffer.dtype) % 8:
            return _EVERYWHERE
        if self.loops:
            index = _with_remainders(index, known)
        low, high = known.const_int_bound_tuple(index)
        size = dt.bytes_of(buffer.dtype)
        if max(abs(low), abs(high)) >= 1 << 31:
            return _EVERYWHERE
        return (low + min(more, 0)) * size, (high + max(more, 0) + 1) * size - 1

    def _moved(self, place: Place, var: Var, move: Callable[[int, int], Sequence[int]]) -> Place:
        """A place whose phases are those that `move` gives for a remainder of a loop."""
        if var not in self.loops:
            return place
        step = 1
        for other, count in self.loops.items():
            if other is var:
                break
            step *= count
        count = self.loops[var]
        out = []
        for phase in range(self.phases):
            rest = phase // step % count
            out.append(_joined([place[phase + (r - rest) * step] for r in move(rest, count)]))
        return tuple(out)

    def later(self, var: Var, place: Place) -> Place:
        """The place of what the iteration before touched."""
        return self._moved(place, var, lambda rest, count: [(rest - 1) % count])

    def whenever(self, var: Var, place: Place) -> Place:
        """The place of what any iteration touched."""
        return self._moved(place, var, lambda rest, count: range(count))


def _bounds(loops: dict[Var, list[tuple[PrimExpr, PrimExpr]]]) -> dict[Var, tuple[int, int]]:
    """The smallest and largest value of each variable of a loop or axis."""
    known = Analyzer()
    bounds: dict[Var, tuple[int, int]] = {}
    for var, found in loops.items():
        lows, highs = [], []
        for low, extent in found:
            first = known.const_int_bound_tuple(low)
            lows.append(first[0])
            highs.append(first[1] + known.const_int_bound_tuple(extent)[1] - 1)
        bounds[var] = min(lows), max(max(highs), min(lows))
        known.update(var, ConstIntBound(*bounds[var]), True)
    return bounds


def _versions(kernel: Stmt) -> dict[Var, int]:
    """How many phases each loop has: what its variable, with a number added, is divided by in
    indices."""
    counts: dict[Var, int] = {}
    loops = {s.loop_var for s in pre_order(kernel) if type(s) is For}
    for s in pre_order(kernel):
        if type(s) in (BufferLoad, BufferStore):
            for e in (x for index in s.indices for x in pre_order(index)):
                if type(e) in (Mod, FloorMod):
                    var, by = _counter(e.a), as_int(e.b)
                    if var is not None and var in loops and by and 1 < by <= _VERSIONS:
                        counts[var] = math.lcm(counts.get(var, 1), by)
    return {var: count for var, count in counts.items() if count <= _VERSIONS}


def _counter(e: Any) -> Var | None:
    """The variable of an expression that is one, with a number added or not."""
    if type(e) in (Add, Sub) and as_int(e.b) is not None:
        e = e.a
    return e if isinstance(e, Var) else None


def _with_remainders(index: PrimExpr, known: Analyzer) -> PrimExpr:
    """An index with numbers for remainders that are known."""
    table: dict[Any, PrimExpr] = {}
    for e in pre_order(index):
        if type(e) in (Mod, FloorMod) and _counter(e.a) is not None:
            by, (step, base) = as_int(e.b), known.modular_set(e.a)
            if by and by > 0 and step % by == 0 and (
                    type(e) is FloorMod or known.const_int_bound_tuple(e.a)[0] >= 0):
                table[e] = IntImm(e.dtype, base % by)
    return _replaced(index, table) if table else index


def _replaced(e: Any, table: dict[Any, PrimExpr]) -> Any:
    found = table.get(e)
    return e.map_children(lambda child: _replaced(child, table)) if found is None else found


__all__ = ["Place", "Places", "covers", "overlap", "union"]
