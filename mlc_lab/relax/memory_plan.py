"""The memory planner of graphs: which intermediate results share memory, and where it lies.

`share` is what the pass `StaticPlanBlockMemory` asks: tensors that are not alive at the same time
take turns in one piece of memory. A piece is reused for the tensor whose size fits best, and grows
where it is somewhat too small; the factor within which sizes count as near is TVM's. Symbolic sizes
are shared where they are provably equal.

`pack` is what the compiled form of a function asks (`vm/call_plan.py`): the pieces of the program
come to lie in one block of memory, over each other where their uses do not overlap. It knows of the
pieces when each is used first and last, which is less than the whole time between their allocation
and the function's end.

Reference: T. Chen et al., "Training Deep Nets with Sublinear Memory Cost" (2016), the memory plan
of its appendix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.structural import structural_equal

#: pieces start at multiples of this in their block
ALIGN = 128
#: a piece is reused for tensors of at most this many times fewer or more bytes
_NEAR = 16


@dataclass(eq=False)
class Piece:
    """Memory that tensors take turns in: bytes, the steps between which it is used, and its place.

    `size` is a number, or stands for one that is known as the function runs. A piece of known size
    has an `offset` in the block. Of the others those whose uses do not overlap share a `lane`, as
    large as the largest of them. `output` numbers the result that a piece is.
    """

    size: Any
    first: int = -1
    last: int = -1
    offset: int = 0
    output: int = -1
    lane: int = -1
    dtype: str = ""

    def apart(self, other: Piece) -> bool:
        """Whether the two are never in use at one time."""
        return other.last < self.first or self.last < other.first


def share(tensors: Iterable[tuple[Any, str, int, int]]) -> list[Piece]:
    """A piece for each tensor, given as bytes, dtype and the steps between which it is alive, both
    included, in the order in which they are made."""
    pieces: list[Piece] = []
    alive: list[Piece] = []
    free: list[Piece] = []
    for size, dtype, first, last in tensors:
        for ended in sorted((p for p in alive if p.last < first), key=lambda p: p.last):
            alive.remove(ended)
            free.append(ended)
        piece = _take(free, size)
        if piece is None:
            piece = Piece(size, first, dtype=dtype)
        piece.last = last
        alive.append(piece)
        pieces.append(piece)
    return pieces


def _take(free: list[Piece], size: Any) -> Piece | None:
    """The free piece that fits best, taken out of the list; grown where it was too small."""
    if not isinstance(size, int):
        for piece in free:
            if not isinstance(piece.size, int) and structural_equal(piece.size, size) is True:
                free.remove(piece)
                return piece
        return None
    near = [p for p in free if isinstance(p.size, int)]
    larger = [p for p in near if size <= p.size <= size * _NEAR]
    smaller = [p for p in near if p.size < size <= p.size * _NEAR]
    if larger:
        best = min(larger, key=lambda p: p.size)
    elif smaller:
        best = max(smaller, key=lambda p: p.size)
        best.size = size
    else:
        return None
    free.remove(best)
    return best


def pack(pieces: Sequence[Piece]) -> int:
    """Give each piece the lowest place that is free while it is used, large ones first; those of
    unknown size a lane that is free, in the order of their uses. Returns the bytes of the block."""
    placed: list[Piece] = []
    for piece in sorted((p for p in pieces if isinstance(p.size, int)), key=lambda p: -p.size):
        at = 0
        for other in sorted(placed, key=lambda p: p.offset):
            if not piece.apart(other) and at < other.offset + other.size \
                    and other.offset < at + piece.size:
                at = aligned(other.offset + other.size)
        piece.offset = at
        placed.append(piece)
    lanes: list[Piece] = []  # the last piece of each
    for piece in sorted((p for p in pieces if not isinstance(p.size, int)), key=lambda p: p.first):
        piece.lane = next((k for k, last in enumerate(lanes) if piece.apart(last)), len(lanes))
        lanes[piece.lane:piece.lane + 1] = [piece]
    return max((p.offset + aligned(p.size) for p in placed), default=0)


def aligned(size: int) -> int:
    """The next multiple of ALIGN, at least one."""
    return max(1, -(-size // ALIGN)) * ALIGN


__all__ = ["ALIGN", "Piece", "aligned", "pack", "share"]
