"""Blocks that say what they do: `T.reads` and `T.writes` made to hold what the body touches.

Every rule about moving and reordering rests on the regions of blocks, and a hand-written block may
declare too little: by mistake, or because its body was changed and the declaration was not. A
schedule starts by making declarations true: what a body touches outside of what its block declares
takes the place of the declaration; what is declared and not touched stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakSet

from ..arith import Analyzer, union
from ..arith.int_set import IntSet
from ..ir.structural import structural_equal
from ..tir import op
from ..tir.access import block_access_regions
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, IntImm, PrimExpr, Range, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, pre_order
from ..tir.stmt import Block, BufferRegion, BufferStore
from .executed import knowing
from .footprint import WORLD, Access, footprint, hands_on
from .reducer import same_places
from .repeatable import changes_itself, fills_itself, iterators
from .witness import Unknown, holds_everywhere

#: blocks whose declarations hold what they touch, with all blocks in them
_true: "WeakSet[Block]" = WeakSet()


def truthful(func: PrimFunc) -> PrimFunc:
    """The function with declarations that hold; the same object if they did."""
    root = func.root
    if root in _true:
        return func
    owners = {b.data: b for b in func.buffer_map.values()}
    mutator = _Truth(owners, root)
    body = mutator.visit(func.body)
    if body is not func.body:
        func = func.with_body(body)
    _true.add(func.root)
    return func


class _Truth(Mutator):
    """Makes the declarations of all blocks true, inner blocks first."""

    def __init__(self, owners: dict[Var, Buffer], root: Block) -> None:
        super().__init__()
        self.owners, self.root = owners, root

    def visit_Block(self, node: Block) -> Block:
        if node in _true:
            return node
        self.owners.update((b.data, b) for b in node.alloc_buffers)
        self.owners.update((m.buffer.data, m.buffer) for m in node.match_buffers)
        new = node.map_children(self.visit)
        declares = node.reads or node.writes or node.iter_vars
        if declares or node is not self.root:  # which is the whole of a function, and says nothing
            new = with_true_regions(new, self.owners)
            _true.add(new)
        return new


def with_true_regions(block: Block, owners: Mapping[Var, Buffer]) -> Block:
    """The block with what it touches added to what it declares; itself if nothing is missing.

    `owners` gives the buffer of a pointer where only the pointer is seen, or another name for its
    memory; the buffers that the block declares are known besides.
    """
    if _plainly_declared(block):
        return block
    missing = undeclared(block)
    if not missing:
        return block
    owners = {**{r.buffer.data: r.buffer for r in (*block.writes, *block.reads)}, **owners}
    found_reads, found_writes, _ = block_access_regions(block)
    # what a reduction goes on with is among what the block writes, and in no list of reads
    reads = _united(block.reads, [*found_writes, *found_reads],
                    [a for a in missing if not a.write], owners, block)
    writes = _united(block.writes, found_writes, [a for a in missing if a.write], owners, block)
    return block.replace(reads=reads, writes=writes)


def _plainly_declared(block: Block) -> bool:
    """Whether it is seen at a glance that a block declares what it touches: it is one store, and
    each element, at places that read no memory, is declared by itself; of what it stores to it
    reads what its init has set."""
    store, init = block.body, block.init
    if type(store) is not BufferStore or block.match_buffers or block.alloc_buffers or (
            not _is_a_region(store, block.writes)):
        return False
    if init is not None and (type(init) is not BufferStore or init.buffer is not store.buffer
                             or not same_places(init.indices, store.indices)):
        return False
    nodes = [store.value, store.predicate] if init is None else [
        store.value, store.predicate, init.value, init.predicate]
    while nodes:
        node = nodes.pop()
        if type(node) is BufferLoad:
            own = init is not None and node.buffer is store.buffer and same_places(
                node.indices, store.indices)
            if not own and not _is_a_region(node, block.reads):
                return False
        elif node is not None:
            if hands_on(node):
                return False
            nodes += node.children()
    return True


def _is_a_region(access: BufferLoad | BufferStore, regions: Iterable[BufferRegion]) -> bool:
    """Whether an access of an element, at places that read no memory, is one of some regions."""
    if access.predicate is not None or any(
            type(index) is not Var and any(type(n) is BufferLoad or hands_on(n)
                                           for n in pre_order(index)) for index in access.indices):
        return False
    return any(r.buffer is access.buffer and all(
        op.is_const_int(rng.extent, 1) and _same(rng.min, index)
        for rng, index in zip(r.region, access.indices)) for r in regions)


def undeclared(block: Block) -> list[Access]:
    """The accesses of a block that its `T.reads` and `T.writes` do not hold, or not surely."""
    return [a for a in footprint(block) if not _is_declared(block, a)]


def _is_declared(block: Block, access: Access) -> bool:
    """Whether a declared region holds an access."""
    if access.memory is WORLD:
        return True  # no buffer shows what it is
    regions = block.writes if access.write else block.reads
    for region in regions:
        if region.buffer is access.buffer:
            if _holds(region, access, block):
                return True
        elif region.buffer.data is access.memory and _is_whole(region):
            return True  # accessed by another name, made inside the block
    return not access.write and fills_itself(block, access)


def _is_whole(region: BufferRegion) -> bool:
    return all(op.is_const_int(rng.min, 0) and _same(rng.extent, dim)
               for rng, dim in zip(region.region, region.buffer.shape))


def _holds(region: BufferRegion, access: Access, block: Block) -> bool:
    """Whether all of an access lies in a region."""
    analyzer = None
    spans = access.spans if access.spans is not None else (None,) * len(region.region)
    for span, rng, dim in zip(spans, region.region, region.buffer.shape):
        if op.is_const_int(rng.min, 0) and _same(rng.extent, dim):
            continue
        if span is None:
            return False
        low, extent = span
        if type(rng.min) is not Var and changes_itself(block, (rng.min, rng.extent)):
            return False  # it is something else where the block is entered
        if _same(low, rng.min) and (op.is_const_int(extent, 1) or _same(extent, rng.extent)):
            continue
        analyzer = analyzer or knowing(block, access)
        inside = (op.less_equal(rng.min, low),
                  op.less_equal(op.add(low, extent), op.add(rng.min, rng.extent)))
        if not all(map(analyzer.can_prove, inside)) and not _tried(inside, access, block):
            return False
    return True


def _tried(conditions: Sequence[PrimExpr], access: Access, block: Block) -> bool:
    """Whether conditions hold in every iteration, found by trying all: of indices that are computed
    with floats nothing else can be said."""
    try:
        return holds_everywhere(conditions, (*iterators(block), *access.loops), access.conditions)
    except Unknown:
        return False


def _same(a: PrimExpr, b: PrimExpr) -> bool:
    return a is b or bool(structural_equal(a, b))


def _united(declared: tuple[BufferRegion, ...], found: Iterable[BufferRegion],
            missing: list[Access], owners: Mapping[Var, Buffer], block: Block
            ) -> tuple[BufferRegion, ...]:
    """Declared regions with those put right, or added, that do not hold what is missing."""
    if not missing:
        return declared
    touched = {r.buffer: r for r in found}
    out = list(declared)
    for memory in dict.fromkeys(a.memory for a in missing):
        buffer = next((a.buffer for a in missing if a.memory is memory and a.buffer is not None),
                      owners.get(memory))
        if memory in owners and buffer is not owners[memory]:
            buffer = owners[memory]  # another name for the memory, made inside the block
        if buffer is None:
            continue
        places = [n for n, r in enumerate(out) if r.buffer is buffer]
        region = touched.get(buffer)
        mine = [a for a in missing if a.memory is memory]
        if region is None or any(a.buffer is not buffer or a.spans is None for a in mine) or not (
                all(_holds(region, a, block) for a in mine)):
            region = BufferRegion.full_region(buffer)
        if any(a.pointer and a.memory is memory for a in footprint(block)):
            region = _hull([*(out[n] for n in places), region], block)
        if places:
            out[places[0]] = region
            out = [r for n, r in enumerate(out) if n not in places[1:]]
        else:
            out.append(region)
    return tuple(out)


def _hull(regions: list[BufferRegion], block: Block) -> BufferRegion:
    """One region around several of one buffer."""
    if len(regions) == 1:
        return regions[0]
    analyzer = Analyzer()
    for iv in block.iter_vars:
        analyzer.bind(iv.var, iv.dom)
    out: list[Range] = []
    for axis, dim in enumerate(regions[0].buffer.shape):
        both = union([IntSet.from_range(r.region[axis]) for r in regions], analyzer)
        low = analyzer.simplify(both.min_value)
        extent: Any = analyzer.simplify(op.add(op.sub(both.max_value, low), 1))
        out.append(Range.from_min_extent(low, extent) if type(extent) is IntImm else
                   Range.from_min_extent(IntImm(dim.dtype, 0), dim))
    return BufferRegion(regions[0].buffer, tuple(out))


__all__ = ["truthful", "undeclared", "with_true_regions"]
