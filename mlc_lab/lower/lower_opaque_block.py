"""LowerOpaqueBlock: blocks become allocations and ifs; loops of one iteration disappear.

Before::

    for i in range(1):
        for j in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B"):
                T.where(j < 30)
                C = T.alloc_buffer((4,), "float32", scope="local")
                B[i, j] = C[0]

After::

    threadIdx_x = T.launch_thread("threadIdx.x", 32)
    if threadIdx_x < 30:
        C = T.allocate([4], "float32", "local")
        B[0, threadIdx_x] = C[0]

Annotations `pragma_...` of loops and blocks become attribute statements; all others stay on loops
and go with blocks. A loop bound to a thread axis needs a machine that has one: the way to a CPU
refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..tir.buffer import Buffer
from ..tir.expr import IntImm, IterVar, PrimExpr, Range, StringImm, Var, const_index
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, leaves_loop
from ..tir.op import as_int, const
from ..tir.stmt import (
    EMPTY, TRUE, Allocate, AttrStmt, Block, BlockRealize, DeclBuffer, For, ForKind, IfThenElse,
    Stmt,
)
from .common import LowerError, function_pass, may_change

if TYPE_CHECKING:
    from ..ir.transform import PassContext


#: the node of a pragma statement, which applies to its body
_NOTHING = IntImm("int32", 0)


class _LowerOpaque(Mutator):
    def __init__(self, gpu: bool, name: str) -> None:
        super().__init__()
        self.gpu, self.name = gpu, name
        self.values: dict[Var, PrimExpr] = {}
        self.axes: dict[str, IterVar] = {}

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.values.get(node, node)

    # blocks

    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        block: Block = node.block
        predicate = self.visit(node.predicate)
        buffers = [self.visit_buffer_def(b) for b in block.alloc_buffers]
        body = self.visit(block.body)
        if block.init is not None or block.iter_vars or block.match_buffers:
            raise LowerError(f"block {block.name_hint!r} is not opaque yet: LowerOpaqueBlock comes "
                             "after LowerInitBlock, ConvertBlocksToOpaque and LowerMatchBuffer")
        for buffer in reversed(buffers):
            body = _allocate(buffer, body)
        for key, value in reversed(list(block.annotations.items())):
            if key.startswith("pragma_"):
                body = AttrStmt(_NOTHING, key, _as_expr(value), body)
        if as_int(predicate) != 1:
            body = IfThenElse(predicate, body)
        return body

    def visit_Block(self, node: Block) -> Stmt:
        return self.visit_BlockRealize(BlockRealize((), TRUE, node))

    # loops

    def visit_For(self, node: For) -> Stmt:
        low, extent = self.visit(node.min), self.visit(node.extent)
        if node.kind is ForKind.THREAD_BINDING:
            return self._thread(node, low, extent)
        if as_int(extent) == 1 and not node.annotations and not leaves_loop(node.body) and (
                not may_change((low,), node.body)):
            self.values[node.loop_var] = low
            return self.visit(node.body)
        pragmas = {k: v for k, v in node.annotations.items() if k.startswith("pragma_")}
        rest = node.annotations
        if pragmas:
            rest = {k: v for k, v in rest.items() if k not in pragmas} or EMPTY
        body = self.visit(node.body)
        if low is node.min and extent is node.extent and body is node.body and not pragmas:
            return node
        loop: Stmt = For.from_fields(node.loop_var, low, extent, node.kind, body,
                                     node.thread_binding, rest)
        for key, value in reversed(pragmas.items()):
            loop = AttrStmt(_NOTHING, key, _as_expr(value), loop)
        return loop

    def _thread(self, node: For, low: PrimExpr, extent: PrimExpr) -> Stmt:
        tag = node.thread_tag
        virtual = tag.startswith("vthread") or tag == "cthread"
        if not self.gpu and not virtual:
            raise LowerError(
                f"{self.name}: loop {node.loop_var.name!r} is bound to the GPU thread axis {tag}, "
                "and the target is a CPU, which has no such axis. Schedule for the CPU: "
                "sch.parallel(loop) runs iterations on all cores, sch.vectorize(loop) in the "
                "lanes of a vector. Or leave the target out, lower(program), to see the GPU "
                "kernel; mlc_lab.backend.interp.interpret runs it")
        if virtual and not self.gpu:  # virtual threads are iterations one after the other
            self.values.pop(node.loop_var, None)
            return For.from_fields(node.loop_var, low, extent, ForKind.SERIAL,
                                   self.visit(node.body), None, EMPTY)
        known = self.axes.get(tag)
        if known is not None and not virtual:  # the same axis again: the same thread
            if as_int(known.dom.extent) != as_int(extent):
                raise LowerError(f"{self.name}: two nested loops are bound to {tag} with extents "
                                 f"{known.dom.extent!r} and {extent!r}: one axis has one extent")
            self.values[node.loop_var] = _plus(low, known.var)
            return self.visit(node.body)
        var = Var(tag.replace(".", "_"), node.loop_var.dtype)
        axis = IterVar.from_fields(Range.from_min_extent(const(0, var.dtype), extent), var,
                                   IterVar.ThreadIndex, tag)
        self.values[node.loop_var] = _plus(low, var)
        self.axes[tag] = axis
        body = self.visit(node.body)
        if known is None:
            del self.axes[tag]
        else:
            self.axes[tag] = known
        return AttrStmt(axis, "virtual_thread" if virtual else "thread_extent", extent, body)


def _plus(low: PrimExpr, var: Var) -> PrimExpr:
    return var if as_int(low) == 0 else low + var


def _as_expr(value: Any) -> PrimExpr:
    return StringImm(value) if isinstance(value, str) else const_index(value)


def _allocate(buffer: Buffer, body: Stmt) -> Stmt:
    """Memory for a buffer around a body."""
    return Allocate.from_fields(buffer.data, buffer.dtype, memory_of(buffer), TRUE,
                                DeclBuffer.from_fields(buffer, body), EMPTY)


def memory_of(buffer: Buffer) -> tuple[PrimExpr, ...]:
    """The extents of memory for a buffer; strides may need more than the shape does."""
    extents = buffer.shape or (IntImm("int32", 1),)
    if buffer.strides:
        extents = (buffer.strides[0] * buffer.shape[0],)
        for dim, stride in zip(buffer.shape[1:], buffer.strides[1:]):
            extents = (_max(extents[0], stride * dim),)
    return extents


def _max(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    x, y = as_int(a), as_int(b)
    if x is not None and y is not None:
        return a if x >= y else b
    return a + b  # a bound is enough


def _rewrite(gpu: bool) -> Any:
    def rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        """A body without blocks."""
        name = str(func.attrs.get("global_symbol", "main"))
        return func.with_body(_LowerOpaque(gpu, name).visit(func.body))

    return rewrite


def LowerOpaqueBlock(gpu: bool = True) -> Pass:
    """Turn blocks into allocations and ifs, and drop loops of one iteration.

    Where not `gpu`, thread axes are refused, and virtual threads are loops.
    """
    return function_pass("LowerOpaqueBlock", _rewrite(gpu))
