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
as small as what one iteration touches.)
"""

from __future__ import annotations

from typing import Any

from ..arith import Analyzer, estimate_region_strict_bound
from ..ir.transform import Pass
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import LE, LT, IntImm, IterVar, PrimExpr, Range, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, pre_order, substitute, uses_var
from ..tir.op import as_int
from ..tir.stmt import TRUE, Block, BlockRealize, For, ForKind, Stmt
from .access import Access, Accesses, bind_loops, conjuncts, is_about
from .common import all_statements, function_pass


def _place(buffer: Buffer, accesses: list[Access]) -> Stmt | None:
    """The loop or block realization in which `buffer` is to be allocated; None: where it is."""
    common = accesses[0].path
    for access in accesses[1:]:
        depth = 0
        for a, b in zip(common, access.path):
            if a is not b:
                break
            depth += 1
        common = common[:depth]
    limit = len(common)
    for at, item in enumerate(common):
        if type(item) is not For:
            continue
        tag = item.thread_binding.thread_tag if item.thread_binding is not None else ""
        on_gpu = tag.startswith(("threadIdx", "blockIdx")) and buffer.scope == "global"
        if item.kind is ForKind.VECTORIZED or on_gpu:
            limit = min(limit, at)
    analyzer = Analyzer()
    bind_loops(analyzer, common[:limit])
    for depth in range(limit, 0, -1):
        item = common[depth - 1]
        if type(item) is BlockRealize and item.block.iter_vars and depth == len(common):
            continue  # inside of the one block that touches it: there is nothing to allocate for
        if _serves(accesses, depth, analyzer):
            return item
    return None


def _serves(accesses: list[Access], depth: int, analyzer: Analyzer) -> bool:
    """Whether inside of `path[depth - 1]` every read follows a write that covers it."""
    written = {a.order: _written(a, depth, analyzer) for a in accesses if a.write}
    for access in accesses:
        if access.write:
            continue
        read = None
        for order, box in written.items():
            if order > access.order or box is None:
                continue
            read = read or access.bounds(depth, analyzer)
            if all(_covers(w, r, dim, analyzer)
                   for w, r, dim in zip(box, read, access.buffer.shape)):
                break
        else:
            return False
    return True


def _written(write: Access, depth: int, analyzer: Analyzer) -> list | None:
    """The box that a write surely fills in each iteration of `path[depth - 1]`, as far as it lies
    inside of the buffer; None if it may leave gaps.

    The init of a reduction counts if the reduction runs inside of the place.
    """
    if write.guarded or write.lets:
        return None
    if write.init:
        outer = {item.loop_var for item in write.path[:depth] if type(item) is For}
        realize = write.path[-1]
        for iv, value in zip(realize.block.iter_vars, realize.iter_values):
            if iv.iter_type == IterVar.CommReduce and outer and uses_var(value, outer):
                return None
    parts = [c for at, predicate in write.predicates if at >= depth
             for c in conjuncts(predicate)]
    cuts = [c for c in parts if not _only_bounds(c, write, depth, analyzer)]
    domains = write.domains(depth)
    if any(not is_about(c, domains) for c in cuts):
        return None
    region = [Range.from_min_extent(low, size) for low, size in write.region]
    return estimate_region_strict_bound(region, domains, op.all(*cuts) if cuts else TRUE, analyzer)


def _only_bounds(e: PrimExpr, write: Access, depth: int, analyzer: Analyzer) -> bool:
    """Whether a predicate skips no element of the buffer, as the bounds of splits do.

    Either it says that the index written lies inside of the buffer (`i * 16 + j < 100` for an
    element i * 16 + j of 100), or it cuts iterations of a reduction, of which the first is left.
    """
    if type(e) not in (LT, LE):
        return False
    limit = e.b if type(e) is LT else e.b + 1
    for (index, size), dim in zip(write.region, write.buffer.shape):
        if as_int(size) == 1 and analyzer.can_prove_equal(e.a, index):
            return analyzer.can_prove(dim <= limit)
    inner = {item.loop_var: item.min for item in write.path[depth:] if type(item) is For}
    used = [item for item in pre_order(e) if isinstance(item, Var)]
    if not all(v in inner for v in used) or any(
            uses_var(index, v) for index, _ in write.region for v in used):
        return False
    return analyzer.can_prove(substitute(e, inner))


def _covers(write: Any, read: Any, dim: PrimExpr, analyzer: Analyzer) -> bool:
    """Whether one interval holds another, as far as both lie inside of the buffer."""
    if not write.has_lower_bound() or not write.has_upper_bound():
        return False
    if not read.has_lower_bound() or not read.has_upper_bound():
        low_ok = analyzer.can_prove(write.min_value <= 0)
        return low_ok and analyzer.can_prove(write.max_value >= dim - 1)
    low = write.min_value is read.min_value or analyzer.can_prove(
        write.min_value <= read.min_value) or analyzer.can_prove(write.min_value <= 0)
    if not low:
        return False
    return write.max_value is read.max_value or analyzer.can_prove(
        write.max_value >= read.max_value) or analyzer.can_prove(write.max_value >= dim - 1)


class _Update(Mutator):
    """Moves allocations to their places."""

    def __init__(self, places: dict[Stmt, list[Buffer]], moved: set[Buffer]) -> None:
        super().__init__()
        self.places, self.moved = places, moved

    def visit(self, node: Any) -> Any:
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

    def visit_Block(self, node: Block) -> Stmt:
        kept = tuple(b for b in node.alloc_buffers if b not in self.moved)
        new = node.map_children(self._statement)
        if len(kept) != len(node.alloc_buffers):
            new = new.replace(alloc_buffers=kept)
        return new

    def _statement(self, item: Any) -> Any:
        return self.visit(item) if isinstance(item, Stmt) else item


def _rewrite(func: PrimFunc, ctx: Any) -> PrimFunc:
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
        if buffer.data in walk.pointers or buffer not in homes or any(
                type(d) is not IntImm and as_int(d) is None for d in buffer.shape):
            continue
        place = _place(buffer, accesses)
        if place is None or place is homes[buffer] or not _inside(place, homes[buffer]):
            continue
        places.setdefault(place, []).append(buffer)
        moved.add(buffer)
    if not moved:
        return func
    return func.with_body(_Update(places, moved).visit(func.body))


def _inside(place: Stmt, home: Stmt) -> bool:
    return any(item is place for item in all_statements(home))


def PlanAndUpdateBufferAllocationLocation() -> Pass:
    """The pass, see the file's text."""
    return function_pass("PlanAndUpdateBufferAllocationLocation", _rewrite)
