"""Sparse matrices to try programs with."""

from __future__ import annotations

from typing import Any


def random_bsr_matrix(m: int, n: int, bs_r: int, bs_c: int, density: float, dtype: str) -> Any:
    """A `scipy.sparse.bsr_matrix` (m, n) of blocks (bs_r, bs_c) at random places of a grid, with
    random elements; `density` is about which part of all elements the blocks hold.

    Raises ValueError where blocks do not divide the matrix, or more of them are asked for than
    there are places. Needs scipy.
    """
    import numpy as np
    import scipy.sparse as sp

    if m % bs_r or n % bs_c:
        raise ValueError(f"blocks of {bs_r} times {bs_c} do not divide a matrix of {m} times {n}")
    rows, columns = m // bs_r, n // bs_c
    count = int(int(density * m * n) / (bs_r * bs_c)) + 1
    if not 0 < count <= rows * columns:
        raise ValueError(f"a density of {density} makes {count} blocks, and there are "
                         f"{rows * columns} places for them")
    places = np.sort(np.random.choice(rows * columns, size=count, replace=False))
    indptr = np.searchsorted(places, np.arange(rows + 1) * columns).astype("int32")
    data = np.random.randn(count, bs_r, bs_c).astype(dtype)
    return sp.bsr_matrix((data, (places % columns).astype("int32"), indptr), shape=(m, n))


__all__ = ["random_bsr_matrix"]
