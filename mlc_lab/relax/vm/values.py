"""What a tensor holds, in few numbers: for the recording of a run, which keeps no tensors.

A **summary** is {"shape", "dtype", "min", "max", "mean" (of the finite elements; null where there
are none), "nan", "inf", "zeros" (how many elements are that), "numbers": all elements in order, of
a small tensor, else null, "picture": of a large one, else null}.

A **picture** is {"rows", "columns", "low", "high", "cells"}: the tensor as a matrix (its last
dimension across, all others down) in blocks, and of each block the mean as a digit in `cells`, row
by row: 0 is `low`, 8 is `high`, "x" a block in which something is not finite. Where there are
negative and positive means, `low` is -`high`, so that 4 is zero.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

#: elements up to which a tensor is told in numbers, and from which on it is not looked at
SMALL = 64
HUGE = 1 << 26
#: blocks of a picture, at most
ROWS, COLUMNS = 24, 48
LEVELS = 9


class Summaries:
    """Summaries of tensors, as long as there is time: None after so many seconds of looking, for
    more than so many tensors, and for a huge one."""

    def __init__(self, seconds: float = 2.0, most: int = 1000) -> None:
        self.left, self.most = seconds, most

    def of(self, tensor: Any) -> dict[str, Any] | None:
        """The summary of a tensor."""
        array = tensor._view()
        if self.left <= 0 or self.most <= 0 or array.size >= HUGE:
            return None
        start = time.perf_counter()
        if str(tensor.dtype) == "bfloat16":
            array = (array.view("uint16").astype("uint32") << 16).view("float32")
        try:
            return {**summary(array), "dtype": str(tensor.dtype)}
        except TypeError:  # elements that are no numbers
            return None
        finally:
            self.left -= time.perf_counter() - start
            self.most -= 1


def summary(array: np.ndarray) -> dict[str, Any]:
    """The summary of an array, see the head of this file."""
    found: dict[str, Any] = {
        "shape": [int(d) for d in array.shape], "dtype": str(array.dtype), "min": None,
        "max": None, "mean": None, "nan": 0, "inf": 0, "zeros": 0, "numbers": None,
        "picture": None}
    if array.dtype == np.float16 or array.dtype.kind == "V":  # float8 and the like
        array = array.astype("float32")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"elements of {array.dtype} are no numbers")
    known = array
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            found["nan"] = int(np.isnan(array).sum())
            found["inf"] = int(array.size - finite.sum()) - found["nan"]
            known = array[finite]
    found["zeros"] = int(array.size - np.count_nonzero(array))
    if known.size:
        found["min"], found["max"] = _number(known.min()), _number(known.max())
        found["mean"] = _number(known.mean(dtype="float64"))
    if array.size <= SMALL:
        found["numbers"] = [_number(v) for v in array.reshape(-1)]
    else:
        found["picture"] = picture(array)
    return found


def picture(array: np.ndarray) -> dict[str, Any]:
    """Means of blocks as digits, see the head of this file."""
    matrix = array.reshape(-1, array.shape[-1])
    rows, columns = min(ROWS, matrix.shape[0]), min(COLUMNS, matrix.shape[1])
    ends = [np.linspace(0, n, parts + 1).astype(int)
            for n, parts in zip(matrix.shape, (rows, columns))]
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.add.reduceat(matrix, ends[1][:-1], axis=1, dtype="float64")
        sums = np.add.reduceat(sums, ends[0][:-1], axis=0)
        means = sums / np.outer(np.diff(ends[0]), np.diff(ends[1]))
    good = np.isfinite(means)
    low, high = (float(means[good].min()), float(means[good].max())) if good.any() else (0.0, 0.0)
    if low < 0 < high:
        high = max(-low, high)
        low = -high
    scale = (LEVELS - 1) / (high - low) if high > low else 0.0
    levels = np.rint((np.where(good, means, low) - low) * scale).astype(int)
    cells = "".join(str(v) if ok else "x" for v, ok in zip(levels.flat, good.flat))
    return {"rows": rows, "columns": columns, "low": _number(low), "high": _number(high),
            "cells": cells}


def _number(value: Any) -> Any:
    """A number as JSON has it: six digits are enough to look at; "nan" and "inf" as words."""
    if isinstance(value, (bool, np.bool_, int, np.integer)):
        return int(value)
    value = float(value)
    return float(f"{value:.6g}") if np.isfinite(value) else str(value)


__all__ = ["Summaries", "picture", "summary"]
