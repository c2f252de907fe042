"""unsafe_set_dtype: the element type of a buffer that a block writes."""

from __future__ import annotations

from ...ir import dtype as dt
from ...tir import op
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, PrimExpr
from ...tir.stmt import BufferStore, Stmt
from ..buffers import (
    WRITE, Redirect, allocated_by, buffer_like, index_of, no_pointer, nth_region, replace_buffer,
)
from ..error import Refusal
from ..guards import is_block
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("UnsafeSetDType", normalize=index_of(WRITE, "buffer_index"))
def unsafe_set_dtype(state: ScheduleState, block: StmtSRef, buffer_index: int | str | Buffer,
                     dtype: str) -> None:
    """Store a buffer in another data type: values are cast when written and cast back when read.

    The result may differ: that is what "unsafe" says. It is meant for mixed precision.

    Before::

        B = T.alloc_buffer((128,))
        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] * T.float32(2.0)
        for i in range(128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                C[vi] = B[vi] + T.float32(1.0)

    After `sch.unsafe_set_dtype(B, 0, "float16")`::

        B = T.alloc_buffer((128,), "float16")
        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = T.Cast("float16", A[vi] * T.float32(2.0))
        for i in range(128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                C[vi] = T.Cast("float32", B[vi]) + T.float32(1.0)

    Errors: the buffer must be allocated by a block of the function, and not be used through its
    pointer.
    """
    is_block(block)
    buffer = nth_region(block.stmt, buffer_index, WRITE).buffer
    site = allocated_by(block, buffer)
    try:
        dtype = dt.canonical(dtype)
    except ValueError as err:
        raise Refusal("dtype_exists", str(err)) from None
    code, _, lanes = dt.parse(dtype)
    if code in ("void", "handle") or lanes != 1:
        raise Refusal("elements_are_numbers", f"{dtype!r} is no type of numbers that "
                      f"{buffer.name} could hold", nodes=[block.stmt])
    if buffer.dtype == dtype:
        return
    no_pointer(site.stmt, buffer, views=True)
    new = buffer_like(buffer, buffer.name, dtype=dtype)
    replace_buffer(state, site, _Retype(buffer, new))


class _Retype(Redirect):
    def __init__(self, old: Buffer, new: Buffer) -> None:
        super().__init__({old: new})
        self.dtype = new.dtype

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        new = super().visit_BufferLoad(node)
        if new.dtype == node.dtype:
            return new
        fresh = BufferLoad(new.buffer, new.indices, new.predicate)
        return op.cast(fresh, node.dtype)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        new = super().visit_BufferStore(node)
        if new.buffer.dtype == node.buffer.dtype:
            return new
        return new.replace(value=op.cast(new.value, dt.with_lanes(
            self.dtype, dt.lanes_of(new.value.dtype))))
