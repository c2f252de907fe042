"""Where the rows of a buffer lie: the padding that storage_align asks for, and what views of the
buffer (`T.match_buffer`) say about its strides."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Sequence

from .buffer import Buffer, strides_of
from .expr import IntImm, PrimExpr, Var
from .op import as_int
from .stmt import Block, MatchBufferRegion

#: annotation of a block: [[index of the written buffer, axis, factor, offset], ...]
DIM_ALIGN = "buffer_dim_align"


def alignments(nodes: Iterable[Any]) -> dict[Buffer, list[tuple[int, int, int]]]:
    """What storage_align asks for in the blocks among `nodes`: (axis, factor, offset) by buffer."""
    out: dict[Buffer, list[tuple[int, int, int]]] = {}
    for item in nodes:
        if type(item) is not Block or DIM_ALIGN not in item.annotations:
            continue
        for entry in item.annotations[DIM_ALIGN]:
            index, axis, factor, offset = map(int, entry)
            buffer = item.writes[index].buffer
            axis = axis if axis >= 0 else axis + len(buffer.shape)
            out.setdefault(buffer, []).append((axis, factor, offset))
    return out


def aligned_strides(shape: Sequence[PrimExpr], entries: Iterable[tuple[int, int, int]]
                    ) -> tuple[PrimExpr, ...]:
    """Row-major strides with the asked padding; () where there is none."""
    sizes = [d.value for d in shape if type(d) is IntImm]
    if not entries or len(sizes) < len(shape):
        return ()
    wanted = {axis: (factor, offset) for axis, factor, offset in entries}
    strides: list[PrimExpr] = []
    stride = 1
    for axis in reversed(range(len(sizes))):
        if axis in wanted:
            factor, offset = wanted[axis]
            stride += (factor + offset - stride % factor) % factor
        strides.append(IntImm(shape[axis].dtype, stride))
        stride *= sizes[axis]
    return tuple(reversed(strides))


def layout_with(aligned: dict[Buffer, list[tuple[int, int, int]]]
                ) -> Callable[[Buffer], Sequence[PrimExpr]]:
    """The strides of a buffer as it is declared, with these paddings."""
    return lambda buffer: aligned_strides(buffer.shape, aligned.get(buffer, ())) or (
        strides_of(buffer))


def stride_misfit(views: Iterable[MatchBufferRegion],
                  layout: Callable[[Buffer], Sequence[PrimExpr]]
                  ) -> tuple[MatchBufferRegion, int, int] | None:
    """(view, stride it declares, stride that is there) where a view of a block does not fit the
    buffer behind it. A variable takes the first stride that it stands for."""
    known: dict[Var, int] = {}
    for view in views:
        own, there = view.buffer.strides, layout(view.source.buffer)
        for mine, theirs in zip(own, there[len(there) - len(own):]):
            have = as_int(theirs)
            want = as_int(mine) if not isinstance(mine, Var) else (
                known.setdefault(mine, have) if have is not None else None)
            if want is not None and have is not None and want != have:
                return view, want, have
    return None


def nested_stride_misfit(blocks: Iterable[Block], layout: Callable[[Buffer], Sequence[PrimExpr]]
                         ) -> tuple[Block, tuple[MatchBufferRegion, int, int]] | None:
    """The same for views of views: of the first among `blocks`, which come outermost first, where
    one does not fit. A view that declares no strides has those of what it is a view of."""
    found: dict[Buffer, Sequence[PrimExpr]] = {}

    def of(buffer: Buffer) -> Sequence[PrimExpr]:
        return found[buffer] if buffer in found else layout(buffer)

    for block in blocks:
        misfit = stride_misfit(block.match_buffers, of)
        if misfit is not None:
            return block, misfit
        for view in block.match_buffers:
            there = of(view.source.buffer)
            own = view.buffer.strides
            there = there[len(there) - len(view.buffer.shape):]
            found[view.buffer] = [theirs if isinstance(mine, Var) else mine
                                  for mine, theirs in zip(own, there)] if own else there
    return None


__all__ = ["DIM_ALIGN", "aligned_strides", "alignments", "layout_with", "nested_stride_misfit",
           "stride_misfit"]
