"""CompactBufferAllocation: an allocation shrinks to the region that is touched.

Before::

    for i in range(8):
        with T.block(""):
            B = T.alloc_buffer((128,))
            for j in range(16): B[i * 16 + j] = A[i * 16 + j] * 2
            for j in range(16): C[i * 16 + j] = B[i * 16 + j] + 1

After::

    for i in range(8):
        with T.block(""):
            B = T.alloc_buffer((16,))
            for j in range(16): B[j] = A[i * 16 + j] * 2
            for j in range(16): C[i * 16 + j] = B[j] + 1

Here too the paddings of `storage_align` (block annotation `buffer_dim_align`) become strides. A
buffer keeps its size where a view of it (`T.match_buffer`) declares the strides of that size.

After LowerOpaqueBlock the same is done to memory (`T.allocate`) that is one buffer and no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..arith import Analyzer
from ..ir.transform import Pass
from ..tir.buffer import Buffer, strides_of
from ..tir.expr import BufferLoad, Call, IntImm, IterVar, PrimExpr, Range
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements
from ..tir.layout import aligned_strides, alignments, stride_misfit
from ..tir.op import as_int, const
from ..tir.stmt import (
    Allocate, AttrStmt, Block, BlockRealize, BufferRegion, BufferStore, DeclBuffer, For, ForKind,
    IfThenElse, MatchBufferRegion, Stmt,
)
from ..arith.access import Access, Accesses, depends_on_data, hull
from .common import bind_loop, function_pass, lane_add
from .lower_opaque_block import memory_of

if TYPE_CHECKING:
    from ..ir.node import Node

#: a symbolic dimension stays as it is where only a larger bound is known: that is just the range of
#: the type of a size such as n or n // 2
_WORTH_A_BOUND = 2 ** 20


class _Touched(Accesses):
    """The accesses under a statement, in programs without blocks too: there memory is a statement
    of the path, and a thread axis the loop over its threads."""

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        super().visit_BufferLoad(node)
        self._by_another_name(node.buffer)

    def visit_BufferStore(self, node: BufferStore) -> None:
        super().visit_BufferStore(node)
        self._by_another_name(node.buffer)

    def _by_another_name(self, buffer: Buffer) -> None:
        if not self.wanted(buffer):  # it may lie in the memory of one that is
            self.pointers.add(buffer.data)

    def visit_Allocate(self, node: Allocate) -> None:
        for extent in node.extents:
            self.visit(extent)
        self.path.append(node)
        declared = _declared(node)
        self.visit(node.body if declared is None else declared.body)
        self.path.pop()

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        self.guards += 1
        self._where(node.condition, node.then_case)
        if node.else_case is not None:
            self.visit(node.else_case)
        self.guards -= 1

    def visit_Call(self, node: Call) -> None:
        if getattr(node.op, "name", "") != "tir.if_then_else":
            return super().visit_Call(node)
        condition, chosen, other = node.args
        self.visit(condition)
        self.guards += 1
        self._where(condition, chosen)
        self.visit(other)
        self.guards -= 1

    def _where(self, condition: PrimExpr, body: Node) -> None:
        """What is touched where a condition holds."""
        if depends_on_data(condition):
            return self.visit(body)
        self.predicates.append((len(self.path), self.resolve(condition)))
        self.visit(body)
        self.predicates.pop()

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        axis = node.node
        if node.attr_key not in ("thread_extent", "virtual_thread") or type(axis) is not IterVar:
            return self.visit_children(node)
        zero = IntImm(axis.var.dtype, 0)
        self.path.append(For(axis.var, zero, node.value, ForKind.THREAD_BINDING, node.body, axis))
        self.visit(node.body)
        self.path.pop()


def _declared(node: Allocate) -> DeclBuffer | None:
    """The buffer that memory is, as LowerOpaqueBlock makes it of a block's buffer; else None."""
    inner = node.body
    if type(inner) is DeclBuffer and inner.buffer.data is node.buffer_var and (
            inner.buffer.dtype == node.dtype and as_int(inner.buffer.elem_offset) == 0):
        return inner
    return None


class _Compact(Mutator):
    def __init__(self, accesses: dict[Buffer, list[Access]], pointers: set,
                 aligned: dict[Buffer, list], views: dict[Buffer, list]) -> None:
        super().__init__()
        self.accesses, self.pointers, self.aligned = accesses, pointers, aligned
        self.views = views  # of each allocated buffer: the views of each block that has one
        self.new: dict[Buffer, tuple[Buffer, tuple]] = {}
        self.analyzer = Analyzer()

    def visit_For(self, node: For) -> Stmt:
        bind_loop(self.analyzer, node)
        return super().visit_For(node)

    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        allocs = node.block.alloc_buffers
        if allocs:
            for buffer in allocs:
                self._plan(buffer, node)
            kept = tuple(self.new[b][0] if b in self.new else b for b in allocs)
            node = node.replace(block=node.block.replace(alloc_buffers=kept))
        return self.default(node)

    def visit_Block(self, node: Block) -> Stmt:
        return self.default(node)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key == "thread_extent" and type(node.node) is IterVar:
            self.analyzer.bind(node.node.var, Range(0, node.value), True)
        return self.default(node)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        declared = _declared(node)
        if declared is None or declared.buffer not in self.accesses:
            return self.default(node)
        buffer = declared.buffer
        self._plan(buffer, node)
        new = self.default(node)
        if buffer not in self.new:
            return new
        small = self.new[buffer][0]
        return new.replace(extents=memory_of(small), body=new.body.replace(buffer=small))

    def _plan(self, buffer: Buffer, home: Stmt) -> None:
        """Decide the new shape of a buffer and where its old index 0 lies in it."""
        accesses = self.accesses.get(buffer, [])
        shape, mins = buffer.shape, (const(0),) * len(buffer.shape)
        if accesses and buffer.data not in self.pointers and not buffer.strides:
            depth = next((at for at, item in enumerate(accesses[0].path) if item is home), 0)
            sets = hull(accesses, depth, self.analyzer)
            if len(sets) == len(buffer.shape):
                pairs = [self._extent(s, d) for s, d in zip(sets, buffer.shape)]
                shape, mins = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
        rows = self.aligned.get(buffer, ())
        strides = aligned_strides(shape, rows)
        if self._misfits(buffer, buffer.replace(shape=shape, strides=strides or buffer.strides)):
            shape, mins = buffer.shape, (const(0),) * len(shape)
            strides = aligned_strides(shape, rows)
        same = all(a is b for a, b in zip(shape, buffer.shape))
        if same and not strides:
            return
        small = buffer.replace(shape=shape, strides=strides or buffer.strides)
        self.new[buffer] = (small, mins)

    def _misfits(self, buffer: Buffer, small: Buffer) -> bool:
        """Whether a view declares strides that the buffer would not have as `small`."""
        def layout(other: Buffer) -> Any:
            if other is buffer:
                return strides_of(small)
            if other in self.new or other not in self.views:
                return strides_of(self.new.get(other, (other,))[0])
            return ()  # not decided yet

        return any(stride_misfit(views, layout) for views in self.views.get(buffer, ()))

    def _extent(self, touched: Any, dim: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """(extent, min) of one dimension; the whole dimension where no smaller size is known."""
        whole = dim, IntImm(dim.dtype, 0)
        if not touched.has_lower_bound() or not touched.has_upper_bound():
            return whole
        low = self.analyzer.simplify(touched.min_value)
        size = self.analyzer.simplify(touched.max_value - low + 1)
        count, limit = as_int(size), as_int(dim)
        if count is None:
            bound = self.analyzer.const_int_bound(size)
            if not 0 < bound.max_value < (2 ** 31 if limit is not None else _WORTH_A_BOUND):
                return whole
            count = bound.max_value
        if limit is not None and count >= limit:
            return whole
        return IntImm(dim.dtype, max(count, 1)), low

    # uses

    def _shift(self, mins: tuple, indices: tuple) -> tuple:
        out = []
        for low, index in zip(mins, indices):
            if as_int(low) == 0:
                out.append(index)
            elif "x" in index.dtype:
                out.append(lane_add(index, const(0, low.dtype) - low))
            else:
                out.append(self.analyzer.simplify(index - low))
        return tuple(out)

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        found = self.new.get(node.buffer)
        new = self.default(node)
        if found is None:
            return new
        return BufferLoad.from_fields(found[0], self._shift(found[1], new.indices), new.predicate)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        found = self.new.get(node.buffer)
        new = self.default(node)
        if found is None:
            return new
        return BufferStore.from_fields(found[0], new.value, self._shift(found[1], new.indices),
                                       new.predicate)

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        found = self.new.get(node.buffer)
        if found is None:
            return node
        mins = self._shift(found[1], tuple(r.min for r in node.region))
        return BufferRegion.from_fields(found[0], tuple(
            Range.from_min_extent(low, r.extent) for low, r in zip(mins, node.region)))

    def visit_MatchBufferRegion(self, node: MatchBufferRegion) -> MatchBufferRegion:
        source = self.visit(node.source)
        return node if source is node.source else MatchBufferRegion.from_fields(
            node.buffer, source)


def compacted(func: PrimFunc, memory: bool = False) -> tuple[PrimFunc, dict[Buffer, Buffer]]:
    """A function whose allocations have the size that is used, and what became of each that is
    smaller; with `memory` those without a block too."""
    parts = list(all_statements(func.body))
    allocated = {b for s in parts if type(s) is Block for b in s.alloc_buffers}
    declared = [_declared(s) for s in parts if type(s) is Allocate] if memory else []
    allocated |= {d.buffer for d in declared if d is not None}
    if not allocated:
        return func, {}
    walk = _Touched(allocated.__contains__)
    walk.visit(func.body)
    views: dict[Buffer, list] = {}
    for item in parts:
        matches = getattr(item, "match_buffers", ())
        for source in {m.source.buffer for m in matches} & allocated:
            views.setdefault(source, []).append(matches)
    mutator = _Compact(walk.found, walk.pointers, alignments(parts), views)
    new = func.with_body(mutator.visit(func.body))
    return new, {buffer: small for buffer, (small, _) in mutator.new.items()}


def CompactBufferAllocation(is_strict: bool = True, memory: bool = True) -> Pass:
    """Shrink allocations to the region that is touched.

    Where not `memory`, what a program allocates without a block keeps the size that it asks for.
    ValueError where not `is_strict`: TVM has a buffer grow then to what is accessed outside of it,
    and here no access is outside.
    """
    if not is_strict:
        raise ValueError("CompactBufferAllocation(is_strict=False) would let buffers grow to what "
                         "is accessed outside of them; here such a program is not well formed: "
                         "allocate the buffer large enough")
    return function_pass("CompactBufferAllocation", lambda func, ctx: compacted(func, memory)[0])
