"""storage_align: padding between the rows of a buffer."""

from __future__ import annotations

from typing import Any

from ...tir import op
from ...tir.buffer import Buffer
from ...tir.layout import DIM_ALIGN, alignments, layout_with
from ...tir.stmt import Block, annotation_value
from ..buffers import (
    WRITE, allocated_by, index_of, no_pointer, nth_region, one_name, views_fit,
)
from ..error import Refusal
from ..guards import is_block
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef, blocks_under


@primitive("StorageAlign", normalize=index_of(WRITE, "buffer_index"))
def storage_align(state: ScheduleState, block: StmtSRef, buffer_index: int | str | Buffer,
                  axis: int, factor: int, offset: int) -> None:
    """Make the stride of an axis of a buffer a multiple of `factor` plus `offset` when lowered.

    Rows of 128 floats with factor 32 and offset 8 are stored 136 apart: on a GPU a column then
    falls into different banks of shared memory, on a CPU into different sets of the cache.

    Before::

        B = T.alloc_buffer((128, 128))
        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1.0)

    After `sch.storage_align(B, 0, axis=0, factor=128, offset=1)`::

        B = T.alloc_buffer((128, 128))
        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"buffer_dim_align": [[0, 0, 128, 1]]})
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1.0)

    Errors: the buffer must be allocated by a block, not be used through its pointer, have that
    axis, and `factor` be positive; no view of it (`T.match_buffer`, of a tensor intrinsic) declares
    strides as numbers that it would not have any more.
    """
    is_block(block)
    buffer = nth_region(block.stmt, buffer_index, WRITE).buffer
    rank = len(buffer.shape)
    if not -rank <= axis < rank:
        raise Refusal("axis_in_range", f"axis={axis}: buffer {buffer.name} has {rank} dimensions, "
                      f"so the axis is in {-rank} .. {rank - 1}", nodes=[block.stmt])
    if factor <= 0:
        raise Refusal("factor_is_positive", f"factor={factor} is not positive: a stride is a "
                      "multiple of it", nodes=[block.stmt])
    site = allocated_by(block, buffer)
    one_name(site.stmt.body, buffer)
    no_pointer(site.stmt, buffer)
    row = [buffer_index, axis % rank, factor, offset]
    stmt = block.stmt
    rows: list[list[Any]] = [[op.as_int(v) for v in r] for r in stmt.annotations.get(DIM_ALIGN, ())]
    for position, old in enumerate(rows):
        if old[:2] == row[:2]:
            rows[position] = row
            break
    else:
        rows.append(row)
    new = stmt.replace(annotations={**stmt.annotations, DIM_ALIGN: annotation_value(rows)})
    if any(type(ref.stmt) is Block and ref.stmt.match_buffers for ref in state.refs.values()):
        nodes = [new if b is stmt else b for b in blocks_under(site.stmt)]
        views_fit(nodes, layout_with(alignments(nodes)), [buffer])
    state.replace(block, new)
