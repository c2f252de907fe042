"""Loops of a stage whose reduction goes as far as its element says, as in a product with a sparse
matrix: its spatial loops stand around a block, in which those of the reduction are.

Spatial loops that are to come inside of the reduction's go into that block: it becomes a larger one
(`blockize`), and the block of one element in it is taken away (`unblockize`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ..tir.expr import IterVar
    from .replay import Replay
    from .schedule import Stage


class VaryingNest:
    """The loops of one such stage while its steps are replayed; `table` gives the loop of an
    axis."""

    def __init__(self, replay: Replay, stage: Stage, table: dict[IterVar, Any]) -> None:
        self.replay, self.stage, self.table = replay, stage, table
        self.outside = list(stage.op.axis)
        self.inside = list(stage.op.reduce_axis)

    def reordered(self, step: tuple) -> bool:
        """Follow a step of the stage; whether it was a reorder, which is done by this.

        Raises ScheduleError where the order is not legal, as where the bounds of the reduction
        depend on a loop that would come inside of it.
        """
        method, args, results = step
        if method in ("split", "fuse"):
            parents = args[:1] if method == "split" else args
            for loops in (self.outside, self.inside):
                at = [i for i, iv in enumerate(loops) if any(iv is p for p in parents)]
                if at:
                    loops[at[0]:at[-1] + 1] = results
                    return False
            if method == "fuse" and not args:
                self.outside[:0] = results
        if method != "reorder":
            return False
        self._reorder(args)
        return True

    def _reorder(self, axes: Sequence[IterVar]) -> None:
        now = [*self.outside, *self.inside]
        places = sorted(_place(now, axis) for axis in axes)
        wanted = list(now)
        for at, axis in zip(places, axes):
            wanted[at] = axis
        first = min(_place(wanted, axis) for axis in self.inside)
        stay = wanted[:first]
        enter = [a for a in wanted[first:] if any(a is iv for iv in self.outside)]
        self._in_order(self.outside, [*stay, *enter])
        if enter:
            replay, sch = self.replay, self.replay.sch
            block = replay.blocks[self.stage]
            replay.blocks[self.stage] = sch.blockize(self.table[enter[0]])
            sch.unblockize(block)
        self._in_order([*enter, *self.inside], wanted[first:])
        self.outside, self.inside = stay, wanted[first:]

    def _in_order(self, now: Sequence[IterVar], wanted: Sequence[IterVar]) -> None:
        if any(a is not b for a, b in zip(now, wanted)):
            self.replay.sch.reorder(*[self.table[axis] for axis in wanted])


def _place(axes: Sequence[IterVar], axis: IterVar) -> int:
    return next(i for i, iv in enumerate(axes) if iv is axis)


__all__ = ["VaryingNest"]
