"""Convolutions of one, two and three dimensions: a padding block, then one reduction block.

All of them are `conv`, which reads the layouts as text ("NCHW" with "OIHW", "NHWC" with "HWIO",
...). A kernel of O x (I / groups) makes a grouped convolution; the input channel of a group is
`o // (O / groups) * (I / groups) + rc`, affine for a constant number of groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ..convolution import Tensors, convolution, depthwise_convolution, refuse
from ..utils import dilated, need, need_rank, number, pair, rounded, simplify, sum_type, text
from .pad import pad

if TYPE_CHECKING:
    from ...tir.expr import PrimExpr


def pad_widths(name: str, padding: int | str | Sequence[Any], kernel: Sequence[Any]
               ) -> tuple[list[Any], list[Any]]:
    """Padding before and after each spatial dimension.

    `padding` is one number, one for each dimension, first those before and then those after all
    dimensions, or "VALID" (none) or "SAME" (the output is the input over the stride).
    `kernel` gives the sizes of the dilated kernel.
    """
    count = len(kernel)
    if isinstance(padding, str):
        if padding == "VALID":
            return [0] * count, [0] * count
        need(padding == "SAME", f'{name}: padding "{padding}" is none of "VALID", "SAME"')
        before = [simplify(O.floordiv(O.convert(k), 2)) if not isinstance(k, int) else k // 2
                  for k in kernel]
        return before, [k - 1 - b for k, b in zip(kernel, before)]
    if isinstance(padding, (list, tuple)) and len(padding) == 2 * count and count * 2 != 2:
        given = [number(p) for p in padding]
        return given[:count], given[count:]
    if count == 1 and isinstance(padding, (list, tuple)) and len(padding) == 2:
        return [number(padding[0])], [number(padding[1])]
    if isinstance(padding, (list, tuple)) and len(padding) not in (1, count):
        raise ValueError(f"{name}: padding takes one number, {count}, or {2 * count}, and got "
                         f"{tuple(padding)}")
    both = pair(padding, count, f"{name}: padding")
    return both, list(both)


def get_pad_tuple(padding: int | str | Sequence[Any], kernel: Sequence[Any]) -> tuple[Any, ...]:
    """The padding (top, left, bottom, right) of a window of two dimensions, from any of the forms
    that operators take."""
    before, after = pad_widths("get_pad_tuple", padding, kernel)
    return (*before, *after)


def conv(inp: Tensor, filt: Tensor, stride: int | Sequence[int], padding: int | str | Sequence[Any],
         dilation: int | Sequence[int], groups: int, data_layout: str, kernel_layout: str = "",
         out_dtype: str | None = None, auto_scheduler_rewritten_layout: str | None = None,
         meta_schedule_original_shape: object = None,
         auto_scheduler_should_rewrite_layout: bool = False) -> Tensor:
    """A convolution of any number of spatial dimensions.

    `data_layout` is written with N, C and the spatial letters, `kernel_layout` with O, I and them;
    by default O and I first for "NC...", last for "N...C".
    """
    dim = len(data_layout) - 2
    name = f"{'group_' if groups > 1 else ''}conv{dim}d_{data_layout.lower()}"
    spatial = [c for c in data_layout if c not in "NC"]
    if not kernel_layout:
        inner = "".join(spatial)
        kernel_layout = f"OI{inner}" if data_layout.index("C") == 1 else f"{inner}IO"
    for tensor, layout, needed in ((inp, data_layout, "NC"), (filt, kernel_layout, "OI")):
        need(sorted(layout) == sorted([*needed, *spatial]),
             f"{name}: the layout {layout} is not made of {needed}{''.join(spatial)}")
        need_rank(name, tensor, dim + 2, f"the layout {layout}")
    strides = pair(stride, dim, f"{name}: strides")
    dilations = pair(dilation, dim, f"{name}: dilation")
    size = dict(zip(data_layout, inp.shape))
    kernel = dict(zip(kernel_layout, filt.shape))
    need(groups >= 1, f"{name}: {groups} groups")
    before, after = pad_widths(name, padding, [number(dilated(kernel[c], d))
                                               for c, d in zip(spatial, dilations)])
    extent, needs = convolution(
        size, kernel, spatial, strides, [b + a for b, a in zip(before, after)], dilations, groups,
        lambda: Tensors(f"input {data_layout} {text(inp.shape)}",
                        f"kernel {kernel_layout} {text(filt.shape)}"))
    refuse(name, needs)
    widths = {c: (b, a) for c, b, a in zip(spatial, before, after)}
    temp = pad(inp, [widths.get(c, (0, 0))[0] for c in data_layout],
               [widths.get(c, (0, 0))[1] for c in data_layout], name="pad_temp")
    names = {"N": "nn", "C": "ff", **dict(zip(spatial, ("yy", "xx", "zz")))}
    sum_name = {"I": "rc", **dict(zip(spatial, ("ry", "rx", "rz")))}
    ks = {c: te.reduce_axis((0, kernel[c]), name=sum_name[c]) for c in kernel_layout if c != "O"}
    per_group = kernel["I"]
    out_group = simplify(O.floordiv(kernel["O"], groups))
    dtype = out_dtype or inp.dtype
    wide = sum_type(dtype)

    def element(*i: PrimExpr) -> Any:
        at = dict(zip(data_layout, i))
        channel = ks["I"]
        if groups > 1:
            channel = O.floordiv(at["C"], out_group) * per_group + ks["I"]
        read = {"N": at["N"], "C": channel}
        for c, s, d in zip(spatial, strides, dilations):
            read[c] = at[c] * s + ks[c] * d
        where = {"O": at["C"], **ks}
        return te.sum(O.cast(temp(*[read[c] for c in data_layout]), wide)
                      * O.cast(filt(*[where[c] for c in kernel_layout]), wide),
                      axis=[ks[c] for c in _reduction_order(data_layout, spatial)])

    return rounded(te.compute([extent[c] for c in data_layout], element, name=name, tag=name,
                              varargs_names=[names[c] for c in data_layout]), dtype)


def _reduction_order(data_layout: str, spatial: Sequence[str]) -> list[str]:
    """The reduced letters in the order in which the data has them."""
    return ["I" if c == "C" else c for c in data_layout if c != "N"]


def conv1d(data: Tensor, kernel: Tensor, strides: int | Sequence[int] = 1,
           padding: int | str | Sequence[Any] = "VALID", dilation: int | Sequence[int] = 1,
           groups: int = 1, data_layout: str = "NCW", kernel_layout: str = "",
           out_dtype: str | None = None) -> Tensor:
    """A convolution over one dimension."""
    return conv(data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout,
                out_dtype)


def conv1d_ncw(data: Tensor, kernel: Tensor, strides: int | Sequence[int] = 1,
               padding: int | str | Sequence[Any] = "VALID", dilation: int | Sequence[int] = 1,
               out_dtype: str | None = None) -> Tensor:
    """data (N, C, W), kernel (O, I, W)."""
    return conv(data, kernel, strides, padding, dilation, 1, "NCW", "", out_dtype)


def conv1d_nwc(data: Tensor, kernel: Tensor, strides: int | Sequence[int] = 1,
               padding: int | str | Sequence[Any] = "VALID", dilation: int | Sequence[int] = 1,
               out_dtype: str | None = None) -> Tensor:
    """data (N, W, C), kernel (W, I, O)."""
    return conv(data, kernel, strides, padding, dilation, 1, "NWC", "", out_dtype)


def group_conv1d_ncw(data: Tensor, kernel: Tensor, strides: int | Sequence[int] = 1,
                     padding: int | str | Sequence[Any] = "VALID",
                     dilation: int | Sequence[int] = 1, groups: int = 1,
                     out_dtype: str | None = None) -> Tensor:
    """data (N, C, W), kernel (O, I / groups, W)."""
    return conv(data, kernel, strides, padding, dilation, groups, "NCW", "", out_dtype)


def group_conv1d_nwc(data: Tensor, kernel: Tensor, strides: int | Sequence[int] = 1,
                     padding: int | str | Sequence[Any] = "VALID",
                     dilation: int | Sequence[int] = 1, groups: int = 1,
                     out_dtype: str | None = None) -> Tensor:
    """data (N, W, C), kernel (W, I / groups, O)."""
    return conv(data, kernel, strides, padding, dilation, groups, "NWC", "", out_dtype)


def conv2d(input: Tensor, filter: Tensor, strides: int | Sequence[int],
           padding: int | str | Sequence[Any], dilation: int | Sequence[int],
           data_layout: str = "NCHW", kernel_layout: str = "", out_dtype: str | None = None
           ) -> Tensor:
    """A convolution over two dimensions."""
    return conv(input, filter, strides, padding, dilation, 1, data_layout, kernel_layout,
                out_dtype)


def conv2d_nchw(Input: Tensor, Filter: Tensor, stride: int | Sequence[int],
                padding: int | str | Sequence[Any], dilation: int | Sequence[int],
                out_dtype: str | None = None) -> Tensor:
    """Input (N, C, H, W), Filter (O, I, H, W)."""
    return conv(Input, Filter, stride, padding, dilation, 1, "NCHW", "", out_dtype)


def conv2d_hwcn(Input: Tensor, Filter: Tensor, stride: int | Sequence[int],
                padding: int | str | Sequence[Any], dilation: int | Sequence[int],
                out_dtype: str | None = None) -> Tensor:
    """Input (H, W, C, N), Filter (H, W, I, O)."""
    return conv(Input, Filter, stride, padding, dilation, 1, "HWCN", "HWIO", out_dtype)


def conv2d_nhwc(Input: Tensor, Filter: Tensor, stride: int | Sequence[int],
                padding: int | str | Sequence[Any], dilation: int | Sequence[int],
                out_dtype: str | None = None, auto_scheduler_rewritten_layout: str = "",
                meta_schedule_original_shape: object = None) -> Tensor:
    """Input (N, H, W, C), Filter (H, W, I, O)."""
    return conv(Input, Filter, stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype)


def group_conv2d_nchw(Input: Tensor, Filter: Tensor, stride: int | Sequence[int],
                      padding: int | str | Sequence[Any], dilation: int | Sequence[int],
                      groups: int, out_dtype: str | None = None) -> Tensor:
    """Input (N, C, H, W), Filter (O, I / groups, H, W)."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCHW", "", out_dtype)


def group_conv2d_nhwc(Input: Tensor, Filter: Tensor, stride: int | Sequence[int],
                      padding: int | str | Sequence[Any], dilation: int | Sequence[int],
                      groups: int, out_dtype: str | None = None) -> Tensor:
    """Input (N, H, W, C), Filter (H, W, I / groups, O)."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NHWC", "HWIO", out_dtype)


def conv3d_ncdhw(Input: Tensor, Filter: Tensor, stride: int | Sequence[int],
                 padding: int | str | Sequence[Any], dilation: int | Sequence[int], groups: int,
                 out_dtype: str | None = None) -> Tensor:
    """Input (N, C, D, H, W), Filter (O, I / groups, D, H, W)."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCDHW", "OIDHW", out_dtype)


def conv3d_ndhwc(Input: Tensor, Filter: Tensor, stride: int | Sequence[int],
                 padding: int | str | Sequence[Any], dilation: int | Sequence[int], groups: int,
                 out_dtype: str | None = None, auto_scheduler_rewritten_layout: str = "",
                 meta_schedule_origin_shape: object = None) -> Tensor:
    """Input (N, D, H, W, C), Filter (D, H, W, I / groups, O)."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NDHWC", "DHWIO", out_dtype)


def _depthwise(Input: Tensor, Filter: Tensor, stride: int | Sequence[int],
               padding: int | str | Sequence[Any], dilation: int | Sequence[int],
               out_dtype: str | None, layout: str, kernel_layout: str) -> Tensor:
    """A separate kernel for each channel; `O` of the kernel counts the outputs of a channel."""
    name = "depthwise_conv2d_" + layout.lower()
    need_rank(name, Input, 4, f"the layout {layout}")
    need_rank(name, Filter, 4, f"the layout {kernel_layout}")
    strides = pair(stride, 2, f"{name}: strides")
    dilations = pair(dilation, 2, f"{name}: dilation")
    size, kernel = dict(zip(layout, Input.shape)), dict(zip(kernel_layout, Filter.shape))
    before, after = pad_widths(name, padding, [number(dilated(kernel[c], d))
                                               for c, d in zip("HW", dilations)])
    extent, needs = depthwise_convolution(
        size, kernel, "HW", strides, [b + a for b, a in zip(before, after)], dilations,
        lambda: Tensors(f"input {layout} {text(Input.shape)}",
                        f"kernel {kernel_layout} {text(Filter.shape)}"))
    refuse(name, needs)
    times = kernel["M"]
    widths = {"H": (before[0], after[0]), "W": (before[1], after[1])}
    temp = pad(Input, [widths.get(c, (0, 0))[0] for c in layout],
               [widths.get(c, (0, 0))[1] for c in layout], name="PaddedInput")
    di = te.reduce_axis((0, kernel["H"]), name="di")
    dj = te.reduce_axis((0, kernel["W"]), name="dj")
    dtype = out_dtype or Input.dtype
    wide = sum_type(dtype)
    names = {"N": "b", "C": "c", "H": "i", "W": "j"}

    def element(*i: PrimExpr) -> Any:
        at = dict(zip(layout, i))
        channel, out = O.floordiv(at["C"], times), O.floormod(at["C"], times)
        read = {"N": at["N"], "C": channel, "H": at["H"] * strides[0] + di * dilations[0],
                "W": at["W"] * strides[1] + dj * dilations[1]}
        where = {"C": channel, "M": out, "H": di, "W": dj}
        return te.sum(O.cast(temp(*[read[c] for c in layout]), wide)
                      * O.cast(Filter(*[where[c] for c in kernel_layout]), wide), axis=[di, dj])

    return rounded(te.compute([extent[c] for c in layout], element, name="DepthwiseConv2d",
                              tag=f"depthwise_conv2d_{layout.lower()}",
                              varargs_names=[names[c] for c in layout]), dtype)


def depthwise_conv2d_nchw(Input: Tensor, Filter: Tensor, stride: int | Sequence[int],
                          padding: int | str | Sequence[Any], dilation: int | Sequence[int],
                          out_dtype: str | None = None) -> Tensor:
    """Input (N, C, H, W), Filter (C, M, H, W): M outputs for each channel."""
    return _depthwise(Input, Filter, stride, padding, dilation, out_dtype, "NCHW", "CMHW")


def depthwise_conv2d_nhwc(Input: Tensor, Filter: Tensor, stride: int | Sequence[int],
                          padding: int | str | Sequence[Any], dilation: int | Sequence[int],
                          kernel_layout: str = "HWOI", out_dtype: str | None = None) -> Tensor:
    """Input (N, H, W, C), Filter (H, W, C, M): M outputs for each channel ("HWOI"), or
    (H, W, M, C) ("HWIO")."""
    need(kernel_layout in ("HWOI", "HWIO"),
         f'depthwise_conv2d_nhwc: kernel_layout "{kernel_layout}" is none of "HWOI", "HWIO"')
    return _depthwise(Input, Filter, stride, padding, dilation, out_dtype, "NHWC",
                      "HWCM" if kernel_layout == "HWOI" else "HWMC")


__all__ = ["conv", "conv1d", "conv1d_ncw", "conv1d_nwc", "conv2d", "conv2d_hwcn", "conv2d_nchw",
           "conv2d_nhwc", "conv3d_ncdhw", "conv3d_ndhwc", "depthwise_conv2d_nchw",
           "depthwise_conv2d_nhwc", "group_conv1d_ncw", "group_conv1d_nwc", "group_conv2d_nchw",
           "get_pad_tuple", "group_conv2d_nhwc", "pad_widths"]
