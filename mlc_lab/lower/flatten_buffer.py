"""FlattenBuffer: multi-dimensional buffers become one-dimensional ones, indices flat offsets.

Before::

    A: T.Buffer((128, 128), "float32")
    for i, j in T.grid(128, 128):
        A[i, j] = A[i, j] + 1

After::

    A_1 = T.decl_buffer((16384,), data=A.data)
    for i, j in T.grid(128, 128):
        A_1[i * 128 + j] = A_1[i * 128 + j] + 1

Strides and the elem_offset of a buffer are worked into the indices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..tir.buffer import Buffer, elements, strides_of
from ..tir.expr import BufferLoad, Call, IntImm, PrimExpr
from ..tir.function import PrimFunc
from ..tir.functor import Mutator
from ..tir.op import as_int, const, mul
from ..tir.stmt import (
    Allocate, BufferRegion, BufferStore, DeclBuffer, Stmt,
)
from .common import function_pass, lane_add, lane_mul

if TYPE_CHECKING:
    from ..ir.transform import PassContext


class _Flatten(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.flat: dict[Buffer, Buffer] = {}

    def flattened(self, buffer: Buffer) -> Buffer:
        """The 1-D buffer for `buffer` (itself if it is flat already)."""
        found = self.flat.get(buffer)
        if found is None:
            found = self.flat[buffer] = self._make(buffer)
        return found

    def _make(self, buffer: Buffer) -> Buffer:
        plain = not buffer.strides or (len(buffer.strides) == 1 and as_int(buffer.strides[0]) == 1)
        if len(buffer.shape) == 1 and plain and as_int(buffer.elem_offset) == 0:
            return buffer
        return Buffer.from_fields(
            buffer.data, buffer.dtype, (_extent(buffer),), (), IntImm("int32", 0), buffer.name,
            buffer.data_alignment, buffer.offset_factor, buffer.buffer_type, ())

    def _index(self, buffer: Buffer, indices: tuple) -> tuple:
        if buffer is self.flat[buffer]:
            return indices
        total: Any = None
        for index, stride in zip(indices, strides_of(buffer)):
            if as_int(index) == 0:
                continue
            term = lane_mul(index, stride)
            total = term if total is None else lane_add(total, term)
        offset = buffer.elem_offset
        if offset is not None and as_int(offset) != 0:
            total = offset if total is None else lane_add(total, offset)
        return (const(0) if total is None else total,)

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        flat = self.flattened(node.buffer)
        new = node.map_children(self.visit)
        if flat is node.buffer:
            return new
        return BufferLoad.from_fields(flat, self._index(node.buffer, new.indices), new.predicate)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        flat = self.flattened(node.buffer)
        new = node.map_children(self.visit)
        if flat is node.buffer:
            return new
        return BufferStore.from_fields(flat, new.value, self._index(node.buffer, new.indices),
                                       new.predicate)

    def visit_Call(self, node: Call) -> PrimExpr:
        """Packed calls take whole buffers, with their shape: those stay as they are."""
        if any(type(a) is Buffer for a in node.args):
            args = tuple(a if type(a) is Buffer else self.visit(a) for a in node.args)
            return Call.from_fields(node.dtype, node.op, args, node.annotations)
        return self.default(node)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        flat = self.flattened(node.buffer)
        body = self.visit(node.body)
        if flat is node.buffer and body is node.body:
            return node
        return DeclBuffer.from_fields(flat, body)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        new = self.default(node)
        if len(new.extents) <= 1:
            return new
        return new.replace(extents=(elements(new.extents),))

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        return node


def _extent(buffer: Buffer) -> PrimExpr:
    """Elements from the first to the last of a buffer, offset included."""
    if buffer.strides and buffer.shape:
        strides = strides_of(buffer)
        total = mul(strides[0], buffer.shape[0])
        sizes = [as_int(mul(s, d)) for s, d in zip(strides, buffer.shape)]
        known = [n for n in sizes if n is not None]
        if len(known) == len(sizes):
            total = IntImm(strides[0].dtype, max(known))
    else:
        total = elements(buffer.shape)
    if buffer.elem_offset is not None and as_int(buffer.elem_offset) != 0:
        total = total + buffer.elem_offset
    return total


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """One-dimensional buffers; the parameters keep theirs for the caller's sake."""
    mutator = _Flatten()
    body = mutator.visit(func.body)
    for buffer in reversed(list(func.buffer_map.values())):
        flat = mutator.flat.get(buffer)
        if flat is not None and flat is not buffer:
            body = DeclBuffer.from_fields(flat, body)
    return func.with_body(body)


def FlattenBuffer() -> Pass:
    """Make buffers one-dimensional, and their indices offsets."""
    return function_pass("FlattenBuffer", _rewrite)
