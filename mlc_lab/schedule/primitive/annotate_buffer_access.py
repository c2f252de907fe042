"""annotate_buffer_access: say what a block reads or writes where analysis cannot see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...arith import Analyzer
from ...tir import op
from ...ir.containers import is_sequence
from ...tir.expr import PrimExpr, Range
from ...tir.function import IndexMap
from ...tir.stmt import Block, BufferRegion, annotation_value
from ..arguments import mapping
from ..buffers import READ, WRITE, block_argument, nth_region
from ..error import Refusal
from ..guards import is_block
from ..instruction import RangesMap, primitive
from ..state import ScheduleState, StmtSRef
from ..truth import undeclared

if TYPE_CHECKING:
    from ..schedule import Schedule


def _ranges(sch: Schedule, args: dict[str, Any]) -> None:
    """A function of the iterators that gives points and (begin, end) pairs, as a RangesMap."""
    block = block_argument(sch, args)
    given = args["gen_new_ranges"]
    if isinstance(given, IndexMap):
        return
    args["gen_new_ranges"] = mapping("gen_new_ranges", given, lambda: _ends(block, given))


def _ends(block: Block, given: Callable[..., Any]) -> RangesMap:
    initial = [iv.var.with_name(iv.var.name) for iv in block.iter_vars]
    found = given(*initial)
    ends: list[PrimExpr] = []
    for item in found if is_sequence(found) else [found]:
        if is_sequence(item):
            if len(item) != 2:
                raise Refusal("range_is_a_pair", f"{item!r} is no range: give (begin, end)",
                              nodes=[block])
            ends += [op.convert(item[0]), op.convert(item[1])]
        else:
            point = op.convert(item)
            ends += [point, op.add(point, 1)]
    return RangesMap(initial, ends)


@primitive("AnnotateBufferAccess", normalize=_ranges)
def annotate_buffer_access(state: ScheduleState, block: StmtSRef, buffer_index: int, buf_type: str,
                           gen_new_ranges: Any) -> None:
    """Declare the region that a block reads or writes of a buffer, in place of what was found.

    `gen_new_ranges` is a function of the block's iterators that gives, for each dimension, a point
    or a pair (begin, end). Later passes keep the region as it is declared. It must hold all that is
    touched; of indices that are computed with floats this is found by computing them all.

    Before::

        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] * T.float32(2.0)

    After `sch.annotate_buffer_access(B, 0, "read", lambda vi: ((vi, vi + 2),))`::

        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                T.reads(A[vi:vi + 2])
                T.writes(B[vi])
                T.block_attr({"explicit_read_region": [0]})
                B[vi] = A[vi] * T.float32(2.0)

    Errors: the buffer has as many dimensions as ranges are given; the region holds what the block
    touches.
    """
    is_block(block)
    if buf_type not in (READ, WRITE):
        raise Refusal("buffer_is_named", f'buf_type={buf_type!r} is neither "read" nor "write"',
                      nodes=[block.stmt])
    stmt = block.stmt
    region = nth_region(stmt, buffer_index, buf_type)
    ends = gen_new_ranges.map_indices([iv.var for iv in stmt.iter_vars])
    if len(ends) != 2 * len(region.buffer.shape):
        raise Refusal("one_range_a_dimension", f"{len(ends) // 2} ranges are given for "
                      f"{region.buffer.name}, which has {len(region.buffer.shape)} dimensions",
                      nodes=[stmt])
    analyzer = Analyzer()
    ranges = tuple(Range.from_min_extent(op.cast(a, dim.dtype), analyzer.simplify(
        op.cast(op.sub(b, a), dim.dtype)))
        for a, b, dim in zip(ends[::2], ends[1::2], region.buffer.shape))
    field, key = ("reads", "explicit_read_region") if buf_type == READ else (
        "writes", "explicit_write_region")
    regions = list(getattr(stmt, field))
    regions[buffer_index] = BufferRegion(region.buffer, ranges)
    known = [op.as_int(v) for v in stmt.annotations.get(key, ())]
    if buffer_index not in known:
        known.append(buffer_index)
    new = stmt.replace(**{
        field: tuple(regions), "annotations": {**stmt.annotations, key: annotation_value(known)}})
    left = [a for a in undeclared(new) if a.memory is region.buffer.data]
    if left:
        verb = "writes" if left[0].write else "reads"
        raise Refusal("region_holds_the_access", f"block {stmt.name_hint} {verb} "
                      f"{left[0].node!r}, which is not (or not surely) in the region that would be "
                      "declared: what moves the block would leave it out",
                      nodes=[left[0].node, stmt],
                      hint="declare a region that holds all that the block touches")
    state.replace(block, new)
