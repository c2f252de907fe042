"""What a warp asks of memory at once: 32-byte sectors of global memory, banks of shared memory.

Global memory. The addresses of the active lanes of a warp, at one load or store, fall into sectors
of 32 bytes; each different sector is fetched once (NVIDIA, "CUDA C++ Best Practices Guide",
Coalesced Access to Global Memory; Nsight Compute's "sectors/request").

Shared memory has 32 banks, each 4 bytes wide; word w lies in bank w % 32. Lanes that want the same
word share one access (broadcast); different words in one bank come one after the other ("CUDA C++
Programming Guide", Shared Memory). Lanes that ask for 8 bytes each are served in two halves of a
warp, those that ask for 16 bytes in four quarters. A *pass* is one such turn; the conflicts are the
passes beyond those that a request of that width needs in any case.
"""

from __future__ import annotations

import numpy as np

SECTOR = 32
#: bytes of a line of the first-level cache
LINE = 128
BANKS = 32
WORD = 4
#: the address of a lane that takes no part
NONE = -1


def _different(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each row its numbers, each once: (rows, numbers), sorted. `NONE` does not count."""
    ordered = np.sort(rows, axis=1)
    new = np.ones(ordered.shape, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    new &= ordered != NONE
    where = np.nonzero(new)
    return where[0], ordered[where]


def _pieces(addresses: np.ndarray, nbytes: int, size: int) -> np.ndarray:
    """The pieces of `size` bytes that accesses of `nbytes` touch, a column of each more."""
    first = np.where(addresses == NONE, NONE, addresses // size)
    last = np.where(addresses == NONE, NONE, (addresses + nbytes - 1) // size)
    columns = [first]
    for step in range(1, -(-nbytes // size) + 1):
        more = first + step
        inside = (first != NONE) & (more <= last)
        if not inside.any():
            break
        columns.append(np.where(inside, more, NONE))
    return np.concatenate(columns, axis=1) if len(columns) > 1 else first


def sectors(addresses: np.ndarray, nbytes: int) -> tuple[np.ndarray, np.ndarray]:
    """The different sectors that each warp asks for, as (number of the warp, number of the sector).

    `addresses` has a row a warp and a column a lane; `NONE` stands for a lane that takes no part.
    """
    return _different(_pieces(addresses, nbytes, SECTOR))


def passes(addresses: np.ndarray, nbytes: int) -> tuple[int, int]:
    """(passes, passes without conflicts) that all warps together need for one access of shared
    memory. `addresses` is as for `sectors`; `nbytes` is what a lane asks for, at most 16."""
    groups = max(1, nbytes // WORD)  # parts of a warp that are served one after the other
    lanes = addresses.shape[1] // groups
    rows = addresses.reshape(-1, lanes) if lanes else addresses
    row, word = _different(_pieces(rows, nbytes, WORD))
    if not row.size:
        return 0, 0
    taken = np.bincount(row * BANKS + word % BANKS, minlength=rows.shape[0] * BANKS)
    most = taken.reshape(-1, BANKS).max(axis=1)
    return int(most.sum()), int(np.count_nonzero(most))


__all__ = ["BANKS", "LINE", "NONE", "SECTOR", "WORD", "passes", "sectors"]
