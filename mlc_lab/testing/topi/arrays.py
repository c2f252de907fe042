"""References in numpy: elements taken, moved, and put elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def dilate_python(input_np: np.ndarray, strides: Sequence[int], dilation_value: float = 0.0,
                  out_dtype: str | None = None) -> np.ndarray:
    """Elements set apart by `strides`, with a value between them."""
    out = np.full([(n - 1) * s + 1 for n, s in zip(input_np.shape, strides, strict=True)],
                  dilation_value, out_dtype or input_np.dtype)
    out[tuple(slice(None, None, s) for s in strides)] = input_np
    return out


def _slices(shape: Sequence[int], begin: Sequence[int], end: Sequence[int],
            strides: Sequence[int] | None, mode: str = "end", axes: Sequence[int] | None = None
            ) -> tuple[slice, ...]:
    strides, made = strides or (), [slice(None)] * len(shape)
    for at, axis in enumerate(range(len(shape)) if axes is None else axes):
        first = begin[at] if at < len(begin) else None
        last = end[at] if at < len(end) else None
        step = strides[at] if at < len(strides) and mode == "end" else None
        if mode == "size" and last is not None:
            last = None if last < 0 else (first or 0) + last
        made[axis] = slice(first, last, step)
    return tuple(made)


def strided_slice_python(data: np.ndarray, begin: Sequence[int], end: Sequence[int],
                         strides: Sequence[int] | None, slice_mode: str = "end",
                         axes: Sequence[int] | None = None) -> np.ndarray:
    """data[begin:end:strides], along all axes or `axes`; with "size", end is how many."""
    return data[_slices(data.shape, begin, end, strides, slice_mode, axes)]


def strided_set_python(data: np.ndarray, v: np.ndarray, begin: Sequence[int], end: Sequence[int],
                       strides: Sequence[int] | None) -> np.ndarray:
    """A copy of data in which the slice is v."""
    out = data.copy()
    out[_slices(data.shape, begin, end, strides)] = v
    return out


def slice_axis_python(data: np.ndarray, axis: int, begin: int, end: int | None = None
                      ) -> np.ndarray:
    """data[begin:end] along an axis."""
    made = [slice(None)] * data.ndim
    made[axis] = slice(begin, end)
    return data[tuple(made)]


def one_hot(indices: np.ndarray, on_value: float, off_value: float, depth: int, axis: int,
            dtype: str) -> np.ndarray:
    """on_value where the index along a new axis is the one given, off_value elsewhere."""
    axis = axis if axis >= 0 else indices.ndim
    places = np.arange(depth).reshape([-1 if a == axis else 1 for a in range(indices.ndim + 1)])
    return np.where(np.expand_dims(indices, axis) == places, on_value, off_value).astype(dtype)


def gather_python(data: np.ndarray, axis: int, indices: np.ndarray) -> np.ndarray:
    """The element at each index along an axis."""
    return np.take_along_axis(data[tuple(
        slice(None) if a == axis % data.ndim else slice(n) for a, n in enumerate(indices.shape))],
        indices, axis)


def gather_nd_python(a_np: np.ndarray, indices_np: np.ndarray) -> np.ndarray:
    """a[indices[0], indices[1], ...]."""
    return a_np[tuple(indices_np.astype("int32"))]


def sequence_mask(data: np.ndarray, valid_length: np.ndarray, mask_value: float, axis: int
                  ) -> np.ndarray:
    """Data of which all from the valid length on is mask_value; axis 0 or 1 is the time."""
    time = np.arange(data.shape[axis])
    late = time[:, None] >= valid_length if axis == 0 else time >= valid_length[:, None]
    return np.where(late.reshape(late.shape + (1,) * (data.ndim - 2)), mask_value, data).astype(
        data.dtype)


def matrix_set_diag(input_np: np.ndarray, diagonal: np.ndarray, k: Any = 0,
                    align: str = "RIGHT_LEFT") -> np.ndarray:
    """Matrices whose diagonals k (or k[0] to k[1]) are those given; `align` says where the shorter
    of several stand in their rows, above and below the main one."""
    out = input_np.copy()
    rows, columns = out.shape[-2:]
    low, high = (k, k) if not isinstance(k, (tuple, list)) else (k[0], k[-1])
    above, below = align.split("_")
    for number in range(low, high + 1):
        length = min(columns - max(number, 0), rows + min(number, 0))
        values = diagonal if low == high else diagonal[..., high - number, :]
        first = 0
        if low != high and (above if number >= 0 else below) == "RIGHT":
            first = diagonal.shape[-1] - length
        at = np.arange(length)
        out[..., at - min(number, 0), at + max(number, 0)] = values[..., first:first + length]
    return out


def searchsorted_ref(sorted_sequence: np.ndarray, values: np.ndarray, right: bool, out_dtype: str
                     ) -> np.ndarray:
    """Where each value would stand in its sorted row (or in the one row there is)."""
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.searchsorted(sorted_sequence, values, side).astype(out_dtype)
    out = np.empty(values.shape, out_dtype)
    for row in np.ndindex(*sorted_sequence.shape[:-1]):
        out[row] = np.searchsorted(sorted_sequence[row], values[row], side)
    return out


def depth_to_space_python(data: np.ndarray, block_size: int, mode: str = "DCR") -> np.ndarray:
    """Blocks of channels as blocks of pixels, of (N, C, H, W)."""
    n, c, h, w = data.shape
    b, left = block_size, c // block_size ** 2
    if mode == "DCR":
        parts = data.reshape(n, b, b, left, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = data.reshape(n, left, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, left, h * b, w * b)


def space_to_depth_python(data: np.ndarray, block_size: int) -> np.ndarray:
    """Blocks of pixels as blocks of channels, of (N, C, H, W)."""
    n, c, h, w = data.shape
    b = block_size
    parts = data.reshape(n, c, h // b, b, w // b, b).transpose(0, 3, 5, 1, 2, 4)
    return parts.reshape(n, c * b * b, h // b, w // b)


def space_to_batch_nd_python(data: np.ndarray, block_shape: Sequence[int],
                             pad_before: Sequence[int], pad_after: Sequence[int],
                             pad_value: float = 0) -> np.ndarray:
    """Blocks of space as parts of the batch."""
    count = len(block_shape)
    rest = data.ndim - 1 - count
    data = np.pad(data, [(0, 0), *zip(pad_before, pad_after), *[(0, 0)] * rest],
                  constant_values=pad_value)
    cut = [data.shape[0]]
    for n, b in zip(data.shape[1:], block_shape):
        cut += [n // b, b]
    parts = data.reshape(cut + list(data.shape[1 + count:]))
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2),
             *range(2 * count + 1, parts.ndim)]
    return parts.transpose(order).reshape(
        -1, *(n // b for n, b in zip(data.shape[1:], block_shape)), *data.shape[1 + count:])


def batch_to_space_nd_python(data: np.ndarray, block_shape: Sequence[int],
                             crop_begin_list: Sequence[int], crop_end_list: Sequence[int]
                             ) -> np.ndarray:
    """Parts of the batch as blocks of space: the inverse of space_to_batch_nd."""
    count, whole = len(block_shape), int(np.prod(block_shape))
    parts = data.reshape(*block_shape, data.shape[0] // whole, *data.shape[1:])
    order = [count]
    for at in range(count):
        order += [count + 1 + at, at]
    parts = parts.transpose(*order, *range(2 * count + 1, parts.ndim))
    sizes = [n * b for n, b in zip(data.shape[1:], block_shape)]
    out = parts.reshape(data.shape[0] // whole, *sizes, *data.shape[1 + count:])
    return out[(slice(None), *(slice(b, n - e) for b, e, n in zip(
        crop_begin_list, crop_end_list, sizes)))]


__all__ = ["batch_to_space_nd_python", "depth_to_space_python", "dilate_python",
           "gather_nd_python", "gather_python", "matrix_set_diag", "one_hot", "searchsorted_ref",
           "sequence_mask", "slice_axis_python", "space_to_batch_nd_python",
           "space_to_depth_python", "strided_set_python", "strided_slice_python"]
