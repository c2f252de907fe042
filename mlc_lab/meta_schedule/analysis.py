"""What rules, postprocessors and features ask of a program: linear indices, axes of a block.

An index is taken apart into coefficients of loop variables. Division and remainder by a constant,
as packed layouts have them, are followed where the parts do not mix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping

from ..schedule.guards import REDUCE, SPATIAL
from ..tir import expr as e
from ..tir.functor import pre_order
from ..tir.op import as_int
from ..tir.stmt import Block, BufferStore

if TYPE_CHECKING:
    from ..schedule.instruction import BlockRV
    from ..tir.buffer import Buffer
    from ..tir.expr import PrimExpr

#: variable -> coefficient; the constant part is left out
Linear = dict


def linear(expr: PrimExpr, env: Mapping[Any, Linear], extents: Mapping[Any, int]) -> Linear | None:
    """Coefficients of the loop variables in an index; None where it is not linear.

    `env` gives block iterators in terms of loops, `extents` the extent of each loop variable.
    """
    if type(expr) is e.IntImm:
        return {}
    if isinstance(expr, e.Var):
        return env.get(expr, {expr: 1} if expr in extents else {})
    if isinstance(expr, (e.Add, e.Sub)):
        a, b = linear(expr.a, env, extents), linear(expr.b, env, extents)
        if a is None or b is None:
            return None
        sign = 1 if type(expr) is e.Add else -1
        out = dict(a)
        for var, c in b.items():
            out[var] = out.get(var, 0) + sign * c
        return out
    if type(expr) is e.Mul:
        for x, y in ((expr.a, expr.b), (expr.b, expr.a)):
            factor = as_int(x)
            if factor is not None:
                rest = linear(y, env, extents)
                return None if rest is None else {v: c * factor for v, c in rest.items()}
        return None
    if isinstance(expr, (e.FloorDiv, e.FloorMod)):
        factor, rest = as_int(expr.b), linear(expr.a, env, extents)
        if factor is None or rest is None or factor <= 0:
            return None
        high = {v: c // factor for v, c in rest.items() if c % factor == 0}
        low = {v: c for v, c in rest.items() if c % factor}
        if sum(abs(c) * (extents.get(v, 1) - 1) for v, c in low.items()) < factor:
            return high if type(expr) is e.FloorDiv else low
        if type(expr) is e.FloorMod:
            return low
        # other terms change the quotient by c / factor on average
        return {**high, **{v: c / factor for v, c in low.items()}}
    if type(expr) is e.Cast:
        return linear(expr.value, env, extents)
    return None


def strides(buffer: Buffer) -> list[int] | None:
    """Elements from one index to the next in each dimension, of a compact buffer."""
    shape = [n for d in buffer.shape if (n := as_int(d)) is not None]
    if len(shape) != len(buffer.shape):
        return None
    given = [n for s in buffer.strides if (n := as_int(s)) is not None]
    if given and len(given) == len(buffer.strides):
        return given
    out, step = [], 1
    for extent in reversed(shape):
        out.append(step)
        step *= extent
    return out[::-1]


def memory_step(buffer: Buffer, indices: Any, env: Mapping, extents: Mapping) -> Linear | None:
    """How many elements an access moves by for one step of each loop; None if unknown."""
    steps = strides(buffer)
    if steps is None or len(steps) != len(indices):
        return None
    out: dict = {}
    for index, step in zip(indices, steps):
        part = linear(index, env, extents)
        if part is None:
            return None
        for var, c in part.items():
            out[var] = out.get(var, 0) + c * step
    return {v: c for v, c in out.items() if c}


@dataclass
class Axis:
    """One iterator of a block with the loop that drives it."""

    var: Any
    extent: int
    reduce: bool
    loop: Any
    position: int = -1


class BlockFacts:
    """A leaf block and its iterators.

    `axes` in the order of the iterators; `simple` if each is driven by a loop of its own, as before
    scheduling (an axis has no loop otherwise); `store` the only store (None if several); `reads`
    the loads other than of the result.
    """

    def __init__(self, sch: Any, block: BlockRV) -> None:
        self.sch, self.block = sch, block
        sref = sch.get_sref(block)
        self.stmt: Block = sref.stmt
        realize = sch.state.realize_of(sref)
        loops = sch.get_loops(block)
        by_var = {sch.get(lp).loop_var: (i, lp) for i, lp in enumerate(loops)}
        self.loops, self.axes, self.simple = loops, [], True
        for iv, value in zip(self.stmt.iter_vars, realize.iter_values):
            extent = as_int(iv.dom.extent)
            found = by_var.pop(value, None) if isinstance(value, e.Var) else None
            if extent is None or iv.iter_type not in (SPATIAL, REDUCE):
                self.simple = False
                continue
            if found is None:
                self.simple &= extent == 1 and as_int(value) is not None
                found = (-1, None)
            self.axes.append(Axis(iv.var, extent, iv.iter_type == REDUCE, found[1], found[0]))
        if by_var:
            self.simple = False
        self.extents = {a.var: a.extent for a in self.axes}
        stores = [n for n in pre_order(self.stmt.body) if type(n) is BufferStore]
        self.store = stores[0] if len(stores) == 1 else None
        self.reads: list[Any] = []
        if self.store is not None:
            for node in pre_order(self.store.value):
                if type(node) is e.BufferLoad and node.buffer is not self.store.buffer:
                    self.reads.append(node)

    @property
    def result(self) -> Buffer:
        """Where the only store goes. Raises ValueError for a block with several."""
        if self.store is None:
            raise ValueError(f"block {self.stmt.name_hint!r} has several results")
        return self.store.buffer

    @property
    def spatial(self) -> list[Axis]:
        """Axes that are not summed over."""
        return [a for a in self.axes if not a.reduce]

    @property
    def reduced(self) -> list[Axis]:
        """Axes that are summed over."""
        return [a for a in self.axes if a.reduce]

    def steps(self, access: Any) -> Linear | None:
        """How an access moves in memory with each axis."""
        return memory_step(access.buffer, access.indices, {}, self.extents)

    def has_reuse(self) -> bool:
        """Whether some read does not move along some spatial axis that is longer than one."""
        for read in self.reads:
            steps = self.steps(read)
            if steps is None:
                continue
            if any(a.extent > 1 and a.var not in steps for a in self.spatial):
                return True
        return False


def vector_axis(facts: BlockFacts) -> Axis | None:
    """The spatial axis along which the result is contiguous, if longer than one; None for a block
    with several results."""
    if facts.store is None:
        return None
    steps = facts.steps(facts.store)
    if steps is None:
        return None
    found = [a for a in facts.spatial if steps.get(a.var) == 1 and a.extent > 1]
    return found[0] if found else None


def reused_along(facts: BlockFacts, axis: Axis) -> bool:
    """Whether a tile along `axis` uses a vector of some input several times."""
    if axis.extent == 1:
        return False
    for read in facts.reads:
        steps = facts.steps(read)
        if steps is not None and axis.var not in steps:
            return True
    return False


def prefers_partial_sums(facts: BlockFacts) -> bool:
    """Whether vectors along the sum are better than vectors along the result.

    They are where the result has no direction in which the inputs are contiguous too, unless an
    input is used so often that packing it pays.
    """
    vector = vector_axis(facts)
    if vector is None:
        return True
    for read in facts.reads:
        steps = facts.steps(read) or {}
        if vector.var in steps and steps[vector.var] != 1:
            uses = 1
            for axis in facts.spatial:
                if axis.var not in steps:
                    uses *= axis.extent
            return not packable(facts, vector) or uses < 4
    return False


def needs_tiling(facts: BlockFacts) -> bool:
    """Whether the block is a sum with reuse, its loops untouched."""
    return (facts.simple and facts.store is not None and bool(facts.reduced)
            and bool(facts.spatial) and len(facts.reads) >= 2 and facts.has_reuse()
            and facts.stmt.init is not None and not prefers_partial_sums(facts)
            and vector_axis(facts) is not None)


def packable(facts: BlockFacts, vector: Axis) -> list[Any]:
    """Reads that move with the vector axis in one dimension, and that packing makes contiguous."""
    out = []
    for read in facts.reads:
        steps = facts.steps(read)
        if steps is None or vector.var not in steps:
            continue
        if fits_panels(read, vector.var, {a.var for a in facts.reduced}):
            out.append(read)
    return out


def fits_panels(read: e.BufferLoad, vector: Any, reduced: set) -> bool:
    """Whether a read moves with the vector iterator and a summed one, each in a dimension of its
    own. The image of a convolution does not: its panels would overlap."""
    return (all(type(ix) is e.Var for ix in read.indices) and vector in read.indices
            and any(ix in reduced for ix in read.indices))


__all__ = ["Axis", "BlockFacts", "Linear", "fits_panels", "linear", "memory_step", "needs_tiling",
           "packable", "prefers_partial_sums", "reused_along", "strides", "vector_axis"]
