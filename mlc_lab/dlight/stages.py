"""What rules look at: the blocks of a function in order, and how each reads and writes.

Also the steps that all rules share: inlining what is cheap to compute again, and giving a nest of
loops its vectors and threads.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Sequence

from ..arith import Analyzer
from ..schedule import Schedule, ScheduleError
from ..tir.expr import BufferLoad, Call, PrimExpr, Var
from ..tir.functor import pre_order, substitute, uses_var
from ..tir.op import as_int
from ..tir.stmt import Block, BufferStore
from .base import Machine

if TYPE_CHECKING:
    from ..schedule.instruction import BlockRV
    from ..tir.buffer import Buffer

#: calls that cost no more than an addition
_CHEAP_CALLS = {"tir.if_then_else", "tir.likely", "tir.fabs", "tir.bitwise_and", "tir.bitwise_or",
                "tir.bitwise_xor", "tir.shift_left", "tir.shift_right", "tir.reinterpret"}


class Stage:
    """A block directly under the root, as it is now.

    Attributes
    ----------
    rv : BlockRV
    block : Block
    spatial, reduced : list of Var
        Its iterators by kind.
    extents : dict
        The extent of each iterator; None where it is not a constant.
    store : BufferStore or None
        Its body, where that is a single store.
    """

    def __init__(self, sch: Schedule, rv: BlockRV) -> None:
        self.rv = rv
        self.block: Block = sch.get(rv)
        self.spatial = [iv.var for iv in self.block.iter_vars if iv.iter_type == 0]
        self.reduced = [iv.var for iv in self.block.iter_vars if iv.iter_type == 2]
        self.plain = len(self.spatial) + len(self.reduced) == len(self.block.iter_vars)
        self.extents = {iv.var: as_int(iv.dom.extent) for iv in self.block.iter_vars}
        self.store = self.block.body if type(self.block.body) is BufferStore else None

    @property
    def stored(self) -> BufferStore:
        """The store that its body is."""
        assert self.store is not None, f"block {self.block.name_hint} is no single store"
        return self.store

    def size(self, v: Var) -> int:
        """The extent of an iterator, which is a constant."""
        extent = self.extents[v]
        assert extent is not None, f"{v.name} of block {self.block.name_hint} varies in extent"
        return extent

    @property
    def is_spatial(self) -> bool:
        """Whether it stores one value for each iteration, none of them twice."""
        return self.plain and not self.reduced and self.store is not None

    @property
    def is_reduction(self) -> bool:
        """Whether it accumulates, starting from an init."""
        return self.plain and bool(self.reduced) and self.block.init is not None

    @property
    def work(self) -> int | None:
        """Iterations in all; None where that is not a constant."""
        return volume(self.extents.values())

    def loads(self) -> list[BufferLoad]:
        """What the value stored is read from, the stored buffer itself left out."""
        found = []
        for node in pre_order(self.block.body):
            if type(node) is BufferLoad and (
                    self.store is None or node.buffer is not self.store.buffer):
                found.append(node)
        return found

    @property
    def pads(self) -> bool:
        """Whether it chooses between a value and a constant by the place, as padding does."""
        if self.store is None:
            return False
        value = self.store.value
        return type(value) is Call and getattr(value.op, "name", "") == "tir.if_then_else"

    @property
    def costly(self) -> bool:
        """Whether a value takes more than additions and products."""
        return any(type(node) is Call and getattr(node.op, "name", "") not in _CHEAP_CALLS
                   for node in pre_order(self.block.body))


def volume(extents: Any) -> int | None:
    """The product of extents, None where one is not a constant."""
    extents = list(extents)
    return None if any(e is None for e in extents) else prod(extents)


def stages(sch: Schedule) -> list[Stage]:
    """The blocks under the root, in order."""
    return [Stage(sch, rv) for rv in sch.get_child_blocks(sch.get_block("root"))]


def strided_by(index: PrimExpr, var: Var) -> int | None:
    """By how much an index grows with a variable; None where that differs from place to place."""
    if not uses_var(index, var):
        return 0
    step = substitute(index, {var: var + 1}) - index
    return as_int(Analyzer().simplify(step))


def memory_stride(load: BufferLoad, var: Var) -> int | None:
    """How many elements apart in memory an access lies for neighbours in `var`; None: unknown."""
    if not any(uses_var(index, var) for index in load.indices):
        return 0
    shape = [as_int(extent) for extent in load.buffer.shape]
    if None not in shape[1:]:
        flat: Any = 0
        for index, extent in zip(load.indices, shape):
            flat = index + flat * (extent or 1)
        return strided_by(Analyzer().simplify(flat), var)
    total, scale = 0, 1
    for index, extent in zip(reversed(load.indices), reversed(shape)):
        step = strided_by(index, var)
        if step is None:
            return None
        if step and scale is None:
            return 1 << 30  # far apart, by a symbolic extent
        total += step * (scale or 0)
        scale = None if extent is None or scale is None else scale * extent
    return total


# ------------------------------------------------------------------------------ inlining


def inline_cheap(sch: Schedule, keep: Any = ()) -> None:
    """Compute every intermediate result where it is used, unless that repeats costly work.

    Padding that feeds a reduction stays a stage of its own, and so does what has a name in `keep`.
    """
    for stage in stages(sch):
        if not stage.is_spatial or stage.block.name_hint in keep:
            continue
        consumers = [Stage(sch, rv) for rv in sch.get_consumers(stage.rv)]
        if not consumers or (len(consumers) > 1 and stage.costly):
            continue
        if any(c.is_reduction for c in consumers) and _worth_keeping(stage, consumers):
            continue
        try:
            sch.compute_inline(stage.rv)
        except ScheduleError:
            continue


def _worth_keeping(stage: Stage, consumers: Sequence[Stage]) -> bool:
    """Whether a reduction would compute the stage's values many times over."""
    again = any(_reads_again(consumer, stage) for consumer in consumers)
    if stage.pads:
        return not _pads_nothing(stage)
    return again and type(stage.stored.value) is not BufferLoad


def _reads_again(consumer: Stage, producer: Stage) -> bool:
    """Whether a stage reads a value of the producer in several of its iterations."""
    for load in consumer.loads():
        if load.buffer is producer.stored.buffer:
            used = {v for index in load.indices for v in consumer.extents if uses_var(index, v)}
            idle = [v for v, e in consumer.extents.items() if v not in used and e != 1]
            if idle or len(used) > len(load.indices):
                return True
    return False


def _pads_nothing(stage: Stage) -> bool:
    """Whether a padding adds nothing: it reads an input of its own shape."""
    return any([as_int(d) for d in load.buffer.shape] == [
        as_int(d) for d in stage.stored.buffer.shape] and None not in map(as_int, load.buffer.shape)
        for load in stage.loads())


# ------------------------------------------------------------------------------ nests


def schedule_elementwise(sch: Schedule, rv: BlockRV, machine: Machine, below: int = 0,
                         threads: bool = True) -> None:
    """Vectors, and threads where they pay, for a block that stores one value an iteration.

    The first `below` loops around the block are left alone. Trailing dimensions that all accesses
    run through in the same order become one loop, so that short rows fill vectors too.
    """
    stage = Stage(sch, rv)
    loops = sch.get_loops(rv)[below:]
    if not loops:
        return
    joined = _joinable(stage, len(loops)) if len(loops) == len(stage.extents) else 1
    inner = sch.fuse(*loops[-joined:]) if joined > 1 else loops[-1]
    outer = loops[:len(loops) - joined]
    extent = as_int(sch.get(inner).extent)
    lanes = machine.lanes(stage.store.buffer.dtype if stage.store is not None else "float32")
    spread = threads and machine.threads_pay(stage.work)
    if spread and outer and not _many(sch, outer[0], machine.cores) and len(outer) > 1:
        outer = [sch.fuse(*outer)]
    if extent is None or extent >= 2:
        width = lanes if extent is None or extent >= lanes else extent
        chunk, vector = sch.split(inner, [None, width])
        sch.vectorize(vector)
        outer = [*outer, chunk]
    if spread and outer:
        sch.parallel(outer[0])


def _many(sch: Schedule, loop: Any, count: int) -> bool:
    extent = as_int(sch.get(loop).extent)
    return extent is None or extent >= count


def _joinable(stage: Stage, count: int) -> int:
    """How many of the innermost dimensions every access runs through as one."""
    if stage.store is None:
        return 1
    vars_ = [iv.var for iv in stage.block.iter_vars]
    accesses = [(stage.store.buffer, stage.store.indices)]
    accesses += [(load.buffer, load.indices) for load in stage.loads()]
    if any(any(uses_var(node, v) for v in vars_) and type(node) is not BufferLoad
           for node in _outside_loads(stage.store.value)):
        return 1
    best = 1
    for joined in range(2, count + 1):
        suffix = vars_[-joined:]
        sizes = [stage.extents[v] for v in suffix]
        if not all(_runs_through(buffer, indices, suffix, sizes) for buffer, indices in accesses):
            break
        best = joined
    return best


def _outside_loads(e: PrimExpr) -> list[Any]:
    """The variables of an expression that stand outside of loads' indices."""
    if type(e) is BufferLoad:
        return []
    if type(e) is Var:
        return [e]
    out = []
    for child in e.children():
        if isinstance(child, PrimExpr):
            out += _outside_loads(child)
    return out


def _runs_through(buffer: Buffer, indices: Sequence[PrimExpr], suffix: Sequence[Var],
                  sizes: Sequence[int | None]) -> bool:
    """Whether an access goes through dimensions in row-major order, or does not move at all."""
    if not any(uses_var(index, v) for index in indices for v in suffix):
        return True
    count = len(suffix)
    if len(indices) < count or any(uses_var(i, v) for i in indices[:-count] for v in suffix):
        return False
    if not all(index is v for index, v in zip(indices[-count:], suffix)):
        return False
    inner = [as_int(d) for d in buffer.shape[-count + 1:]]
    return None not in inner and inner == list(sizes[1:])
