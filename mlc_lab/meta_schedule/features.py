"""Features of a candidate for cost models, computed from its TensorIR without lowering.

For every store of the program: how much it computes, how its loops run (vector, unrolled, serial,
parallel), how many vector registers the unrolled part holds, how each access moves, and how many
bytes have to come from each level of the memory. The last follow from the footprint of the loops:
what fits a cache is loaded into it once.

After the per-store features of Zheng et al., "Ansor" (OSDI 2020), with the traffic estimated as in
Wolf and Lam, "A data locality optimizing algorithm" (PLDI 1991).
"""

from __future__ import annotations

import functools
import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Mapping

import numpy as np

from ..ir.structural import structural_hash
from ..observe import flops
from ..machine.caches import CacheLevel
from ..machine.hardware import Hardware
from ..tir import expr as e
from ..tir.functor import pre_order
from ..tir.op import as_int
from ..tir.stmt import (
    Block, BlockRealize, BufferStore, For, ForKind, IfThenElse, SeqStmt,
)
from .analysis import linear, memory_step
from .packed_reads import KEY, PackedRead, packed_reads

if TYPE_CHECKING:
    from ..tir.function import PrimFunc

#: stores that get features, the most expensive ones first
STORES = 4
#: numbers of one store, see `StoreFeatures.vector`
WIDTH = 28
#: cycles that any call, or any parallel loop, costs
_CALL_CYCLES = 400.0
#: ratio of the lines that map to a set to its ways from which on all of them are conflict misses;
#: caches are not strictly LRU, so a few lines too many do little harm
_THRASH = 2.0


class Loop:
    """A loop around a store."""

    __slots__ = ("extent", "kind", "var")

    def __init__(self, var: Any, extent: int, kind: object) -> None:
        self.var, self.extent, self.kind = var, extent, kind


class StoreFeatures:
    """One store with its loops, outermost first, and what follows from them."""

    def __init__(self, store: BufferStore, loops: list[Loop], env: dict, hardware: Hardware,
                 packed: Mapping[Any, PackedRead] = MappingProxyType({})) -> None:
        self.store, self.loops, self.hw = store, loops, hardware
        extents = {lp.var: lp.extent for lp in loops}
        self.iterations = math.prod(extents.values())
        self.flop = _flop(store.value)
        self.bytes = _bytes(store.buffer.dtype)
        self.lanes = hardware.lanes(store.buffer.dtype)
        vector = [lp for lp in loops if lp.kind is ForKind.VECTORIZED]
        self.vector_var = vector[-1].var if vector else None
        self.vector = vector[-1].extent if vector else 1
        accesses = [store, *(n for n in pre_order(store.value) if type(n) is e.BufferLoad)]
        self.accesses = []
        for access in _distinct(accesses):
            panels = packed.get(access.buffer)
            steps = (memory_step(access.buffer, access.indices, env, extents) if panels is None
                     else panels.steps(env))
            self.accesses.append((access, steps))
        self._inner()
        self._traffic()
        self._cycles()

    def _inner(self) -> None:
        """The unrolled part: its size, the registers and loads it takes."""
        inner: list[Loop] = []
        for loop in reversed(self.loops):
            if loop.kind in (ForKind.VECTORIZED, ForKind.UNROLLED) or loop.extent == 1:
                inner.append(loop)
            else:
                break
        rest = self.loops[: len(self.loops) - len(inner)]
        self.serial = rest[-1] if rest else None
        self.unrolled = math.prod(lp.extent for lp in inner if lp.var is not self.vector_var)
        self.vectors = math.ceil(self.vector / self.lanes)
        write = self.accesses[0][1] or {}
        serial = self.serial
        # a result that does not move with the innermost serial loop stays in registers over it
        self.in_registers = serial is not None and bool(serial.var not in write)
        # reductions on one element: a chain of dependent operations
        self.accumulators, self.loads, self.scalar_loads, self.stores = 0, 0, 0, 0
        self.gathers = 0
        for index, (_, steps) in enumerate(self.accesses):
            steps = steps or {}
            copies = math.prod(lp.extent for lp in inner
                               if lp.var in steps and lp.var is not self.vector_var)
            step = steps.get(self.vector_var, 0) if self.vector_var is not None else None
            if step is None:
                units, kind = copies, "scalar"
            elif step == 1:
                units, kind = copies * self.vectors, "vector"
            elif step == 0:
                units, kind = copies, "scalar"
            else:
                units, kind = copies * self.vector, "gather"
            if index == 0:
                self.accumulators = units
                self.stores = 0 if self.in_registers else units
                if kind == "gather":
                    self.gathers += 0 if self.in_registers else units
            else:
                if self.accesses[index][0].buffer is self.store.buffer and self.in_registers:
                    continue
                self.loads += units if kind == "vector" else 0
                self.scalar_loads += units if kind == "scalar" else 0
                self.gathers += units if kind == "gather" else 0
        self.is_sum = any(a.buffer is self.store.buffer for a, _ in self.accesses[1:])
        row = max(self.vectors, 1) + 1
        self.registers = self.accumulators + row if self.is_sum else min(
            self.accumulators + row, self.hw.registers)

    def _traffic(self) -> None:
        """Bytes that come from beyond L1, beyond L2, and from memory."""
        line = 64
        self.missed = []
        sizes = []  # footprint in bytes of every access over the loops from position p inward
        for position in range(len(self.loops) + 1):
            row = []
            for access, steps in self.accesses:
                row.append(_footprint(steps, self.loops[position:], _bytes(access.buffer.dtype),
                                      line))
            sizes.append(row)
        self.footprint = sum(sizes[0])
        for cache in self.hw.caches:
            position = next((p for p in range(len(sizes)) if self._fits(sizes[p], p, cache)),
                            len(sizes) - 1)
            total = 0.0
            for index, (_, steps) in enumerate(self.accesses):
                # One loop more goes through adjacent lines. What fits is loaded once for each
                # iteration of the loops outside; a loop that does not move the access finds it in
                # the cache, unless a loop inside of that one moves it.
                last = max(position - 1, 0)
                need = sizes[last][index]
                moved = any(steps is None or x.var in steps for x in self.loops[last:position])
                for loop in reversed(self.loops[:last]):
                    moved = moved or steps is None or loop.var in steps
                    if moved:
                        need *= loop.extent
                total += need
            self.missed.append(total)
        self.conflict = max((_conflict(steps, self.loops, _bytes(a.buffer.dtype), self.hw.caches[0])
                             for a, steps in self.accesses), default=0.0)

    def _fits(self, sizes: list[float], position: int, cache: CacheLevel) -> bool:
        """Whether what the loops from a position on touch stays in a cache."""
        return sum(sizes) <= cache.size * 0.8 and (cache is self.hw.caches[-1] or all(
            _conflict(steps, self.loops[position:], _bytes(access.buffer.dtype), cache) < _THRASH
            for access, steps in self.accesses))

    def _cycles(self) -> None:
        """A rough estimate of the cycles: the slowest of computing, loading, and each memory."""
        hw = self.hw
        operations = max(1, self.flop)
        chunk = self.unrolled * self.vector  # elements of one iteration of the unrolled part
        rounds = self.iterations / max(1, chunk)
        per = math.ceil(self.vector / self.lanes) * self.unrolled
        arithmetic = operations / 2 if self.is_sum else operations
        compute = per * arithmetic / hw.fma
        if self.is_sum and self.in_registers:
            compute = max(compute, hw.latency * per / max(1, self.accumulators))
        move = (self.loads + self.scalar_loads + 2 * self.gathers) / hw.loads + self.stores
        spilled = max(0, self.registers - hw.registers)
        move += 2.0 * spilled
        overhead = 1.0
        self.issue = rounds * (max(compute, move) + overhead)
        l1, l2, l3 = self.missed
        self.memory = l1 / hw.vector_bytes + l2 / 12 + l3 / 6
        self.cycles = max(self.issue, self.memory) + 0.3 * min(self.issue, self.memory)

    def vector_of(self) -> list[float]:
        """The numbers of this store, WIDTH of them."""
        log = _log
        serial = self.serial.extent if self.serial is not None else 1
        write = self.accesses[0][1] or {}
        outer = [lp for lp in self.loops if lp.kind not in (ForKind.VECTORIZED, ForKind.UNROLLED)]
        out = [
            log(self.flop * self.iterations), log(self.iterations), log(self.vector),
            log(self.unrolled), log(self.vectors), log(self.accumulators), self.registers,
            self.registers - self.hw.registers, self.loads, self.scalar_loads, self.gathers,
            self.stores, float(self.in_registers), float(self.is_sum), log(serial),
            float(self.serial is not None and self.serial.var not in write),
            log(self.missed[0]), log(self.missed[1]), log(self.missed[2]), log(self.footprint),
            self.conflict, log(self.issue), log(self.memory), log(self.cycles),
            len(outer), float(self.vector % self.lanes == 0 and self.vector > 1),
            log(math.prod(lp.extent for lp in self.loops if lp.kind is ForKind.PARALLEL)),
            log(outer[0].extent if outer else 1),
        ]
        assert len(out) == WIDTH
        return out


def _log(x: float) -> float:
    return math.log2(x + 1)


@functools.cache
def _bytes(dtype: str) -> int:
    digits = "".join(c for c in dtype.split("x")[0] if c.isdigit())
    return max(1, int(digits or 8) // 8)


def _flop(value: Any) -> int:
    try:
        return flops.count_value(value)
    except flops.Uncountable:
        return 1


def _distinct(accesses: list) -> list:
    seen, out = set(), []
    for access in accesses:
        key = (access.buffer, type(access), tuple(map(structural_hash, access.indices)))
        if key not in seen:
            seen.add(key)
            out.append(access)
    return out


def _footprint(steps: dict | None, loops: list[Loop], size: int, line: int) -> float:
    """Bytes of the cache lines that the loops touch, for an access with these steps."""
    if steps is None:
        return float(size * math.prod(lp.extent for lp in loops))
    moves = sorted((abs(steps[lp.var]) * size, lp.extent) for lp in loops
                   if steps.get(lp.var) and lp.extent > 1)
    covered, pieces = float(size), 1.0  # a run of bytes, and how many such runs
    for step, extent in moves:
        if step <= max(covered, line):
            covered = max(covered, step * (extent - 1) + covered)
        else:
            pieces *= extent
    return max(covered, line) * pieces


def _conflict(steps: dict | None, loops: list[Loop], size: int, cache: CacheLevel) -> float:
    """Conflict misses: the ratio of lines that map to one set to its ways, at worst."""
    if not steps:
        return 0.0
    worst = 0.0
    way = cache.size // cache.ways
    reduced = [lp for lp in loops if lp.kind not in (ForKind.VECTORIZED,)]
    for loop in reduced[-3:]:
        step = abs(steps.get(loop.var, 0)) * size
        if step < cache.line or step != int(step):
            continue
        step = int(step)
        period = way // math.gcd(step, way)  # steps until the same set is reached again
        lines = loop.extent / max(1, period)
        worst = max(worst, lines / cache.ways)
    return worst


def stores_of(func: PrimFunc, hardware: Hardware) -> list[StoreFeatures]:
    """Features of every store of a scheduled function, the most expensive first.

    Reads that are to be packed count as packed already, and so do the copies.
    """
    out: list[StoreFeatures] = []

    def walk(node: Any, loops: list[Loop], env: dict) -> None:
        kind = type(node)
        if kind is For:
            extent = as_int(node.extent) or 1
            walk(node.body, [*loops, Loop(node.loop_var, extent, node.kind)], env)
        elif kind is BlockRealize:
            block: Block = node.block
            extents = {lp.var: lp.extent for lp in loops}
            inner = dict(env)
            for iv, value in zip(block.iter_vars, node.iter_values):
                inner[iv.var] = linear(value, env, extents) or {}
            packed = {}
            if KEY in block.annotations:
                packed = {read.load.buffer: read for read in packed_reads(block, loops, inner)}
            for read in packed.values():
                copy, around, moves = read.filling(inner)
                out.append(StoreFeatures(copy, [Loop(*loop) for loop in around], moves, hardware,
                                         {read.copy: read}))
            if packed and isinstance(block.body, BufferStore):
                out.append(StoreFeatures(block.body, loops, inner, hardware, packed))
            else:
                walk(block.body, loops, inner)
        elif kind is SeqStmt:
            for part in node.seq:
                walk(part, loops, env)
        elif kind is BufferStore:
            out.append(StoreFeatures(node, loops, env, hardware))
        elif kind is IfThenElse:
            walk(node.then_case, loops, env)
            if node.else_case is not None:
                walk(node.else_case, loops, env)
        else:
            body = getattr(node, "body", None)
            if body is not None:
                walk(body, loops, env)

    walk(func.body, [], {})
    out.sort(key=lambda s: -s.cycles)
    return out


def features_of(mod: Any, hardware: Hardware) -> tuple[np.ndarray, float]:
    """Features of a module's function (STORES x WIDTH + 3 numbers), and the estimated cycles."""
    func = mod["main"] if "main" in mod else next(iter(mod.functions.values()))
    stores = stores_of(func, hardware)
    row: list[float] = []
    for store in stores[:STORES]:
        row += store.vector_of()
    row += [0.0] * (STORES * WIDTH - len(row))
    cycles = sum(s.cycles for s in stores) + _CALL_CYCLES
    row += [len(stores), math.log2(cycles), math.log2(sum(s.issue for s in stores) + 1)]
    return np.array(row, dtype=np.float32), cycles


__all__ = ["STORES", "StoreFeatures", "WIDTH", "features_of", "stores_of"]
