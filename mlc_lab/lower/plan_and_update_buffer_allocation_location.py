"""PlanAndUpdateBufferAllocationLocation: buffers are allocated in the innermost place that serves.

Before::

    B = T.alloc_buffer((128,))
    for i in range(8):
        for j in range(16):
            with T.block("B"): B[i * 16 + j] = A[i * 16 + j] * 2
        for j in range(16):
            with T.block("C"): C[i * 16 + j] = B[i * 16 + j] + 1

After::

    for i in range(8):
        with T.block(""):
            B = T.alloc_buffer((128,))
            ...the two loops over j

The place is the innermost loop or block that holds every access, moved outwards until each element
that is read there has been written there before, in the same iteration: a value that one iteration
leaves for the next keeps its buffer outside of that loop. (CompactBufferAllocation then makes B
as small as what one iteration touches. A buffer whose size is symbolic moves if that is a constant:
a kernel's memory has to be, and elsewhere it could grow with each iteration.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..arith.access import Accesses
from ..arith.liveness import innermost_place
from ..ir.transform import Pass
from ..tir.buffer import Buffer
from ..tir.expr import IntImm
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements
from ..tir.op import as_int
from ..tir.stmt import TRUE, Block, BlockRealize, For, Stmt
from .common import function_pass
from .compact_buffer_allocation import compacted

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext


class _Update(Mutator):
    """Moves allocations to their places."""

    def __init__(self, places: dict[Stmt, list[Buffer]], moved: set[Buffer]) -> None:
        super().__init__()
        self.places, self.moved = places, moved

    def visit(self, node: Node) -> Any:
        """Only statements matter."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_For(self, node: For) -> Stmt:
        body = self.visit(node.body)
        buffers = self.places.get(node)
        if buffers:
            body = BlockRealize.from_fields((), TRUE, Block(
                (), (), (), "", body, alloc_buffers=buffers))
        return node if body is node.body else node.replace(body=body)

    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        block = self.visit_Block(node.block)
        extra = self.places.get(node)
        if extra:
            block = block.replace(alloc_buffers=block.alloc_buffers + tuple(extra))
        return node if block is node.block else node.replace(block=block)

    def visit_Block(self, node: Block) -> Block:
        kept = tuple(b for b in node.alloc_buffers if b not in self.moved)
        new = node.map_children(self._statement)
        if len(kept) != len(node.alloc_buffers):
            new = new.replace(alloc_buffers=kept)
        return new

    def _statement(self, item: Any) -> Any:
        return self.visit(item) if isinstance(item, Stmt) else item


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Allocations where they are needed."""
    allocated = {b for s in all_statements(func.body) if type(s) is Block for b in s.alloc_buffers}
    if not allocated:
        return func
    walk = Accesses(allocated.__contains__)
    walk.visit(func.body)
    homes = {}
    for item in all_statements(func.body):
        if type(item) is BlockRealize:
            homes.update((b, item) for b in item.block.alloc_buffers)
    places: dict[Stmt, list[Buffer]] = {}
    moved: set[Buffer] = set()
    for buffer, accesses in walk.found.items():
        if buffer.data in walk.pointers or buffer not in homes:
            continue
        place = innermost_place(buffer, accesses)
        if place is None or place is homes[buffer] or not _inside(place, homes[buffer]):
            continue
        places.setdefault(place, []).append(buffer)
        moved.add(buffer)
    new = func.with_body(_Update(places, moved).visit(func.body)) if moved else func
    symbolic = {b for b in moved if not _is_constant(b)}
    if symbolic:
        small = compacted(new)[1]
        moved -= {b for b in symbolic if not _is_constant(small.get(b, b))}
        places = {place: [b for b in buffers if b in moved] for place, buffers in places.items()}
        new = func.with_body(_Update(places, moved).visit(func.body)) if moved else func
    return new


def _is_constant(buffer: Buffer) -> bool:
    return all(type(d) is IntImm or as_int(d) is not None for d in buffer.shape)


def _inside(place: Stmt, home: Stmt) -> bool:
    return any(item is place for item in all_statements(home))


def PlanAndUpdateBufferAllocationLocation() -> Pass:
    """Allocate buffers in the innermost place that serves."""
    return function_pass("PlanAndUpdateBufferAllocationLocation", _rewrite)
