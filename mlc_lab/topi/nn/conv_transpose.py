"""Transposed convolutions: zeros between the elements, a border, then a convolution.

The kernel is (I, O / groups, ...) and is flipped, so that the whole is the gradient of the
convolution with that kernel. `output_padding` adds to the end of the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ..convolution import Tensors, refuse, transposed_convolution
from ..utils import need, need_rank, number, pair, rounded, simplify, sum_type, text
from .conv import pad_widths
from .pad import dilate, pad

if TYPE_CHECKING:
    from ...tir.expr import PrimExpr


def conv_transpose(data: Tensor, kernel: Tensor, strides: int | Sequence[int],
                   padding: int | str | Sequence[Any], out_dtype: str | None,
                   output_padding: int | Sequence[int], groups: int, dim: int) -> Tensor:
    """data (N, C, ...), kernel (I, O / groups, ...) of `dim` spatial dimensions."""
    name = f"conv{dim}d_transpose"
    need_rank(name, data, dim + 2, "the layout N, C, ...")
    need_rank(name, kernel, dim + 2, "the layout I, O, ...")
    steps = pair(strides, dim, f"{name}: strides")
    extra = pair(output_padding, dim, f"{name}: output_padding")
    channels = data.shape[1]
    for p in extra:
        need(p >= 0, f"{name}: output_padding {p} is negative")
    sizes = kernel.shape[2:]
    before, after = pad_widths(name, padding, [number(k) for k in sizes])
    letters = _letters("", dim)
    extent, needs = transposed_convolution(
        dict(zip(["N", "C", *letters], data.shape)), dict(zip(["I", "O", *letters], kernel.shape)),
        letters, steps, [b + a for b, a in zip(before, after)], extra, [1] * dim, groups,
        lambda: Tensors(f"input {text(data.shape)}", f"kernel {text(kernel.shape)}"))
    refuse(name, needs)
    spread = dilate(data, [1, 1, *steps], name="data_dilate")
    low = [number(simplify(k - 1 - b)) for k, b in zip(sizes, before)]
    high = [number(simplify(k - 1 - a + e)) for k, a, e in zip(sizes, after, extra)]
    framed = pad(spread, [0, 0, *low], [0, 0, *high], name="data_pad")
    flipped = _flipped(kernel, groups, dim)
    per_group, in_group = kernel.shape[1], simplify(O.floordiv(channels, groups))
    dc = te.reduce_axis((0, in_group), name="dc")
    ks = [te.reduce_axis((0, k), name=n) for k, n in zip(sizes, _letters("d", dim))]
    dtype = out_dtype or data.dtype
    wide = sum_type(dtype)

    def element(*i: PrimExpr) -> Any:
        b, c, at = i[0], i[1], i[2:]
        if groups > 1:
            source = O.floordiv(c, per_group) * in_group + dc
            weight = (O.floormod(c, per_group), source)
        else:
            source, weight = dc, (c, dc)
        return te.sum(O.cast(framed(b, source, *[x + k for x, k in zip(at, ks)]), wide)
                      * O.cast(flipped(*weight, *ks), wide), axis=[dc, *ks])

    return rounded(te.compute([*extent.values()], element, name="compute", tag=f"{name}_nc",
                              varargs_names=["b", "c", *letters]), dtype)


def _letters(prefix: str, dim: int) -> list[str]:
    return [prefix + c for c in "dhw"[3 - dim:]]


def _flipped(kernel: Tensor, groups: int, dim: int) -> Tensor:
    """The kernel as (O / groups, I, ...), every spatial dimension reversed."""
    inner, outer, *sizes = kernel.shape
    names = ["o", "i"] if groups == 1 or dim == 1 else ["i", "o"]
    return te.compute(
        [outer, inner, *sizes],
        lambda *i: kernel(i[1], i[0], *[k - 1 - x for k, x in zip(sizes, i[2:])]),
        name="kernel" if dim == 1 else "kernel_transform",
        varargs_names=[*names, *_letters("", dim)])


def conv1d_transpose_ncw(data: Tensor, kernel: Tensor, stride: int | Sequence[int],
                         padding: int | str | Sequence[Any], out_dtype: str | None,
                         output_padding: int | Sequence[int]) -> Tensor:
    """data (N, C, W), kernel (I, O, W)."""
    return conv_transpose(data, kernel, stride, padding, out_dtype, output_padding, 1, 1)


def group_conv1d_transpose_ncw(data: Tensor, kernel: Tensor, stride: int | Sequence[int],
                               padding: int | str | Sequence[Any], out_dtype: str | None,
                               output_padding: int | Sequence[int], groups: int) -> Tensor:
    """data (N, C, W), kernel (I, O / groups, W)."""
    return conv_transpose(data, kernel, stride, padding, out_dtype, output_padding, groups, 1)


def conv2d_transpose_nchw(Input: Tensor, Filter: Tensor, strides: int | Sequence[int],
                          padding: int | str | Sequence[Any], out_dtype: str | None,
                          output_padding: int | Sequence[int]) -> Tensor:
    """Input (N, C, H, W), Filter (I, O, H, W)."""
    return conv_transpose(Input, Filter, strides, padding, out_dtype, output_padding, 1, 2)


def group_conv2d_transpose_nchw(data: Tensor, kernel: Tensor, stride: int | Sequence[int],
                                padding: int | str | Sequence[Any], out_dtype: str | None,
                                output_padding: int | Sequence[int], groups: int) -> Tensor:
    """data (N, C, H, W), kernel (I, O / groups, H, W)."""
    return conv_transpose(data, kernel, stride, padding, out_dtype, output_padding, groups, 2)


def conv3d_transpose_ncdhw(Input: Tensor, Filter: Tensor, strides: int | Sequence[int],
                           padding: int | str | Sequence[Any], out_dtype: str | None,
                           output_padding: int | Sequence[int]) -> Tensor:
    """Input (N, C, D, H, W), Filter (I, O, D, H, W)."""
    return conv_transpose(Input, Filter, strides, padding, out_dtype, output_padding, 1, 3)


def group_conv3d_transpose_ncdhw(data: Tensor, kernel: Tensor, strides: int | Sequence[int],
                                 padding: int | str | Sequence[Any], out_dtype: str | None,
                                 output_padding: int | Sequence[int], groups: int) -> Tensor:
    """data (N, C, D, H, W), kernel (I, O / groups, D, H, W)."""
    return conv_transpose(data, kernel, strides, padding, out_dtype, output_padding, groups, 3)


__all__: Sequence[str] = [
    "conv1d_transpose_ncw", "conv2d_transpose_nchw", "conv3d_transpose_ncdhw",
    "group_conv1d_transpose_ncw", "group_conv2d_transpose_nchw", "group_conv3d_transpose_ncdhw"]
