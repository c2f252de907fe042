"""Cooperative fetching: the threads of a block make a copy together, neighbours by neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...schedule import ScheduleError


def vector_length(extent: int, threads: int, most: int) -> int:
    """The longest vector of at most `most` elements, halved until all threads have whole ones."""
    while most > 1 and extent % (threads * most):
        most //= 2
    return most


def fetch_together(sch: Any, loops: Sequence[Any], axes: Sequence[tuple[str, int]],
                   length: int = 1) -> None:
    """Share the loops of a copy among threads::

        for ax0, ax1 in T.grid(32, 32):                             # before
            A_shared[...] = A[...]

        for ax_0 in range(4):                                       # after, with vectors of 4
            for ax_1 in T.thread_binding(64, thread="threadIdx.x"):
                for ax_2 in T.vectorized(4):
                    A_shared[...] = A[...]

    `axes` are the axes of the block's threads with their extents, the outermost first. A vector
    that the primitive refuses, as where rows are shorter, stays a loop.
    """
    fused = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    vector = [length] if length > 1 else []
    parts = sch.split(fused, factors=[None, *(n for _, n in axes), *vector])
    for part, (tag, _) in zip(parts[1:], axes):
        sch.bind(part, tag)
    if vector:
        try:
            sch.vectorize(parts[-1])
        except ScheduleError:
            return


def threads_of(axes: Sequence[tuple[str, int]]) -> int:
    """How many threads the axes have."""
    return math.prod(n for _, n in axes)


__all__ = ["fetch_together", "threads_of", "vector_length"]
