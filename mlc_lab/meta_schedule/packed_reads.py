"""What packing will do to a program, computed from the program before it is packed.

Most candidates are judged by the cost model and never measured. `RewriteLayout` is several steps of
a schedule, so it is left until a candidate is chosen, and features come from here meanwhile: how
reads move through the panels that the annotation `meta_schedule.pack` asks for, and what the copy
into them costs.
"""

from __future__ import annotations

import math
from typing import Any, Iterator, Mapping

from ..schedule.guards import REDUCE, SPATIAL
from ..tir import expr as e
from ..tir.buffer import decl_buffer
from ..tir.functor import pre_order
from ..tir.op import as_int
from ..tir.stmt import Block, BufferStore, ForKind
from .analysis import Linear, fits_panels

#: annotation of a block: 1 to pack its reads as a whole, 2 for each tile along the vectors
KEY = "meta_schedule.pack"


class PackedRead:
    """A read of a block from panels: `[batch..., v // width, summed..., v % width]`.

    Attributes
    ----------
    load : BufferLoad
        The read as it is written.
    at : int
        Which of its dimensions runs along the vectors.
    width : int
        Elements of a vector, and of a panel's row.
    """

    def __init__(self, load: e.BufferLoad, at: int, width: int, reduced: set, outer: list,
                 inner: list) -> None:
        self.load, self.at, self.width = load, at, width
        self.outer, self.inner = outer, inner
        self.summed = [d for d, ix in enumerate(load.indices) if d != at and ix in reduced]
        self.copy = decl_buffer(load.buffer.shape, load.buffer.dtype, f"{load.buffer.name}_global")
        self.strides = self._strides([as_int(d) or 1 for d in load.buffer.shape])

    def _strides(self, shape: list[int]) -> list[int]:
        """Elements between neighbours in each dimension; along the vectors, between panels."""
        out, step = [1] * len(shape), self.width
        for d in reversed(self.summed):
            out[d] = step
            step *= shape[d]
        out[self.at] = step
        step *= math.ceil(shape[self.at] / self.width)
        for d in reversed(range(len(shape))):
            if d != self.at and d not in self.summed:
                out[d] = step
                step *= shape[d]
        return out

    def steps(self, env: Mapping[Any, Linear]) -> Linear | None:
        """How an access to the panels moves with each loop; None if unknown."""
        out: dict = {}
        for d, index in enumerate(self.load.indices):
            for var, c in (env.get(index) or {}).items():
                if d == self.at:
                    if c % self.width == 0:
                        c = c // self.width * self.strides[d]
                    elif abs(c) >= self.width:
                        return None
                else:
                    c *= self.strides[d]
                out[var] = out.get(var, 0) + c
        return {v: c for v, c in out.items() if c}

    def filling(self, env: Mapping[Any, Linear]) -> tuple[BufferStore, list, dict]:
        """The copy into the panels: its store, (variable, extent, kind) of its loops, outermost
        first, and how its indices move with them."""
        loops = [(lp.var, lp.extent, lp.kind) for lp in self.outer]
        around = {lp.var for lp in self.outer}
        own, inside = [], {}
        for d, index in enumerate(self.load.indices):
            moves = env.get(index) or {}
            extent = 1 + sum(abs(c) * (lp.extent - 1) for lp in self.inner
                             for c in [moves.get(lp.var, 0)])
            extent = min(extent, as_int(self.load.buffer.shape[d]) or extent)
            var = e.Var(f"copy{d}", "int32")
            inside[index] = {v: c for v, c in moves.items() if v in around}
            if d != self.at:
                inside[index][var] = 1
                own.append((var, extent, ForKind.SERIAL))
                continue
            lane = e.Var("lane", "int32")
            inside[index] |= {var: self.width, lane: 1}
            panel = (var, math.ceil(extent / self.width), ForKind.SERIAL)
            last = d == len(self.load.indices) - 1
            row = (lane, self.width, ForKind.VECTORIZED if last else ForKind.UNROLLED)
        loops += [*own[:-1], panel, *own[-1:], row]
        return BufferStore(self.copy, self.load, self.load.indices), loops, inside


def packed_reads(block: Block, loops: list, env: Mapping[Any, Linear]) -> Iterator[PackedRead]:
    """The reads of a block that its annotation asks to be packed, as `RewriteLayout` does it.

    `loops` are those around the block, outermost first, with `var`, `extent` and `kind`; `env`
    gives its iterators in terms of them.
    """
    wanted = block.annotations.get(KEY)
    where = int(getattr(wanted, "value", wanted or 0))
    if not where or type(block.body) is not BufferStore or not loops:
        return
    last = loops[-1]
    along = [iv.var for iv in block.iter_vars
             if iv.iter_type == SPATIAL and (env.get(iv.var) or {}).get(last.var) == 1]
    if last.kind is not ForKind.VECTORIZED or len(along) != 1:
        return
    reduced = {iv.var for iv in block.iter_vars if iv.iter_type == REDUCE}
    cut = 0
    if where == 2:
        cut = 1 + next((i for i, lp in enumerate(loops[:-1])
                        if lp.extent > 1 and (env[along[0]] or {}).get(lp.var)), -1)
    known = set()
    for load in pre_order(block.body.value):
        if type(load) is not e.BufferLoad or load.buffer is block.body.buffer:
            continue
        if load.buffer in known or not fits_panels(load, along[0], reduced):
            continue
        known.add(load.buffer)
        yield PackedRead(load, load.indices.index(along[0]), last.extent, reduced, loops[:cut],
                         loops[cut:])


__all__ = ["KEY", "PackedRead", "packed_reads"]
