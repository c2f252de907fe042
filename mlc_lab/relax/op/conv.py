"""Convolutions of one, two and three dimensions, and transposed ones, in any layout of letters.

A layout may split an axis, as NCHW16c does: such tensors are unpacked, computed on and packed
again.
"""

from __future__ import annotations

from typing import Any, Callable, Iterable

from ...tir import op as O
from ...tir.data_layout import Layout
from ..expr import Call, Expr
from ..struct_info import StructInfo, TensorStructInfo, as_dim
from .common import (
    dim_text, join_dtype, misfit, need_at_least, need_multiple, need_ndim, need_numbers, need_same,
    show, tensor_of,
)
from .declare import Dtype, Ints, Tensor, Text, Whole, operator
from .later import convolution, topi, utils
from .reshaping import permute_dims


def per_axis(name: str, values: tuple, count: int, what: str) -> tuple:
    """One number for each spatial axis; one for all is repeated."""
    if len(values) == 1:
        values *= count
    if len(values) != count:
        raise misfit(name, f"{what} needs 1 or {count} numbers, it has {len(values)}")
    return values


def padding_of(name: str, values: tuple, count: int) -> tuple:
    """Padding before every spatial axis, then after: from 1, `count` or 2 * `count` numbers."""
    if len(values) == 1:
        return values * (2 * count)
    if len(values) == count:
        return values * 2
    if len(values) != 2 * count:
        raise misfit(name, f"padding needs 1, {count} or {2 * count} numbers, it has "
                           f"{len(values)}")
    return values


def windows(rank: int) -> Callable[[str, dict[str, Any]], dict[str, Any]]:
    """Completes attributes: a number for each spatial axis, and the layout of the result."""
    def complete(name: str, attrs: dict[str, Any]) -> dict[str, Any]:
        for key in ("pool_size", "strides", "output_padding", "dilation"):
            if key in attrs:
                attrs[key] = per_axis(name, attrs[key], rank, key)
        attrs["padding"] = padding_of(name, attrs["padding"], rank)
        layout = attrs["data_layout" if "data_layout" in attrs else "layout"]
        attrs["out_layout"] = attrs["out_layout"] or layout
        return attrs

    return complete


def unpacked(layout: str) -> str:
    """A layout without the splits of its axes: NCHW of NCHW16c."""
    return "".join(filter(str.isupper, layout))


def is_packed(layout: str) -> bool:
    """Whether a layout splits an axis."""
    return not layout.isupper()


def need_letters(call: Any, layout: str, wanted: str, name: str) -> Layout:
    """Refuse a layout of other letters."""
    try:
        found = Layout(layout)
    except ValueError as error:
        raise misfit(call, f"{error}; it is that of {name}") from None
    if sorted(unpacked(layout)) != sorted(wanted):
        raise misfit(call, f"the layout {layout!r} of {name} must be made of the letters of "
                           f"{wanted!r}")
    return found


def by_letter(call: Any, info: TensorStructInfo, layout: str, wanted: str,
              name: str) -> dict[str, Any]:
    """The dimensions of a tensor by the letters of its layout; those of a split axis as one."""
    found = need_letters(call, layout, wanted, name)
    need_ndim(call, info, len(found), name)
    if info.dims is None:
        return {}
    dims = {letter: d for (letter, _), d in zip(found.parts, info.dims) if letter.isupper()}
    for (letter, factor), d in zip(found.parts, info.dims):
        if factor is not None:
            need_same(call, d, as_dim(factor), lambda d=d, letter=letter, factor=factor: (
                f"{name} is {show(info)}: dimension {letter} of its layout {layout} has "
                f"{factor} elements, not {dim_text(d)}"))
            dims[letter.upper()] = O.mul(dims[letter.upper()], as_dim(factor))
    return dims


def in_order(call: Any, dims: dict[str, Any], layout: str) -> list[Any]:
    """The dimensions of a result in the order of its layout, axes split as it says."""
    found, out = Layout(layout), []
    for letter, own in found.parts:
        factor = found.factor_of(letter)
        if own is None and factor > 0:
            need_multiple(call, dims[letter], factor, lambda letter=letter, factor=factor: (
                f"the layout {layout} of the result splits {letter}, which has "
                f"{dim_text(dims[letter])} elements, by {factor}"))
            out.append(utils.simplify(O.floordiv(dims[letter], as_dim(factor))))
        else:
            out.append(dims[letter] if own is None else as_dim(own))
    return out


def _said(data: TensorStructInfo, weight: TensorStructInfo) -> Any:
    return convolution.Tensors(f"data {show(data)}", f"weight {show(weight)}")


def meet(call: Call, needs: Iterable[Any]) -> None:
    """Refuse a call whose sizes do not meet its needs, now or at run time."""
    for size, must, other, text in needs:
        if must == "same":
            need_same(call, size, as_dim(other), text)
        elif must == "multiple":
            need_multiple(call, size, other, text)
        else:
            need_at_least(call, size, as_dim(other), text)


def to_layout(bb: Any, value: Expr, layout: str, wanted: str) -> Expr:
    """A tensor in another layout of the same letters."""
    if layout == wanted:
        return value
    value = bb.emit(value)
    if is_packed(layout) or is_packed(wanted):
        return bb.call_te(topi.layout_transform, value, layout, wanted,
                          primfunc_name_hint="layout_transform")
    return permute_dims(value, [layout.index(c) for c in wanted])


def in_out_layout(bb: Any, call: Call, out: Expr) -> Expr:
    """A result, which is in the unpacked layout of the data, in the layout asked for."""
    layout = call.attrs.get("layout") or call.attrs["data_layout"]
    return to_layout(bb, out, unpacked(layout), call.attrs.out_layout)


def unpack(data: Any, layout: str) -> Any:
    """A tensor of TE in its unpacked layout."""
    return topi.layout_transform(data, layout, unpacked(layout)) if is_packed(layout) else data


def _out_dtype(call: Call, data: TensorStructInfo, weight: TensorStructInfo) -> str:
    given = call.attrs.out_dtype
    return given if given != "void" else join_dtype(
        call, data.dtype, weight.dtype, ("data", "weight"))


def _conv(name: str, letters: str, **facts: Any) -> Callable[..., Expr]:
    rank, data_default, kernel_default = len(letters), f"NC{letters}", f"OI{letters}"

    def infer(call: Call, data: TensorStructInfo, weight: TensorStructInfo) -> StructInfo:
        a = call.attrs
        need_numbers(call, 1, "strides", "dilation", "groups")
        need_numbers(call, 0, "padding")
        x = by_letter(call, data, a.data_layout, data_default, "data")
        w = by_letter(call, weight, a.kernel_layout, kernel_default, "weight")
        need_letters(call, a.out_layout, data_default, "the result")
        dtype = _out_dtype(call, data, weight)
        if not x or not w:
            return TensorStructInfo(None, dtype, ndim=len(Layout(a.out_layout)))
        around = [a.padding[k] + a.padding[k + rank] for k in range(rank)]
        out, needs = convolution.convolution(x, w, letters, a.strides, around, a.dilation,
                                             a.groups, lambda: _said(data, weight))
        meet(call, needs)
        return tensor_of(in_order(call, out, a.out_layout), dtype)

    def fn(data: Tensor, weight: Tensor, strides: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
           groups: Whole = 1, data_layout: Text = data_default,
           kernel_layout: Text = kernel_default, out_layout: Text | None = None,
           out_dtype: Dtype = None) -> Any:
        return topi.nn.conv(
            unpack(data, data_layout), unpack(weight, kernel_layout), strides, padding, dilation,
            groups, unpacked(data_layout), unpacked(kernel_layout), out_dtype)

    fn.__doc__ = f"Convolution over {letters} of {data_default} data with {kernel_default} " \
                 "weights (or other layouts of these letters)."
    return operator(name, infer, attrs=windows(rank), then=in_out_layout, layout="conv",
                    **facts)(fn)


def _conv_transpose(name: str, letters: str, **facts: Any) -> Callable[..., Expr]:
    rank, data_default, kernel_default = len(letters), f"NC{letters}", f"IO{letters}"
    short = name.removeprefix("relax.nn.")

    def infer(call: Call, data: TensorStructInfo, weight: TensorStructInfo) -> StructInfo:
        a = call.attrs
        need_numbers(call, 1, "strides", "dilation", "groups")
        need_numbers(call, 0, "padding", "output_padding")
        x = by_letter(call, data, a.data_layout, data_default, "data")
        w = by_letter(call, weight, a.kernel_layout, kernel_default, "weight")
        need_letters(call, a.out_layout, data_default, "the result")
        dtype = _out_dtype(call, data, weight)
        for k in range(rank):
            if a.output_padding[k] >= max(a.strides[k], a.dilation[k]):
                raise misfit(call, f"output_padding {a.output_padding[k]} must be less than the "
                                   f"stride {a.strides[k]}")
        if not x or not w:
            return TensorStructInfo(None, dtype, ndim=len(Layout(a.out_layout)))
        around = [a.padding[k] + a.padding[k + rank] for k in range(rank)]
        out, needs = convolution.transposed_convolution(
            x, w, letters, a.strides, around, a.output_padding, a.dilation, a.groups,
            lambda: _said(data, weight))
        meet(call, needs)
        return tensor_of(in_order(call, out, a.out_layout), dtype)

    def legalize(bb: Any, call: Call) -> Expr:
        a, (data, kernel) = call.attrs, call.args
        data = bb.emit(to_layout(bb, data, a.data_layout, data_default))
        kernel = bb.emit(to_layout(bb, kernel, a.kernel_layout, kernel_default))

        def conv_transpose(data: Any, kernel: Any) -> Any:
            if any(d != 1 for d in a.dilation):
                kernel = topi.nn.dilate(kernel, [1, 1, *a.dilation])
            return topi.nn.conv_transpose.conv_transpose(
                data, kernel, a.strides, a.padding,
                data.dtype if a.out_dtype == "void" else a.out_dtype, a.output_padding, a.groups,
                rank)

        out = bb.call_te(conv_transpose, data, kernel, primfunc_name_hint=short)
        return to_layout(bb, out, data_default, a.out_layout)

    def fn(data: Tensor, weight: Tensor, strides: Ints = 1, padding: Ints = 0,
           output_padding: Ints = 0, dilation: Ints = 1, groups: Whole = 1,
           data_layout: Text = data_default, kernel_layout: Text = kernel_default,
           out_layout: Text | None = None, out_dtype: Dtype = None) -> Any:
        pass

    fn.__doc__ = f"Transposed convolution over {letters}, as torch's ConvTranspose{rank}d."
    return operator(name, infer, attrs=windows(rank), legalize=legalize, layout="conv",
                    **facts)(fn)


conv1d = _conv("relax.nn.conv1d", "W", precision="always")
conv2d = _conv("relax.nn.conv2d", "HW", precision="always")
conv3d = _conv("relax.nn.conv3d", "DHW", precision="always")
conv1d_transpose = _conv_transpose("relax.nn.conv1d_transpose", "W", precision="always")
conv2d_transpose = _conv_transpose("relax.nn.conv2d_transpose", "HW", precision="always")
conv3d_transpose = _conv_transpose("relax.nn.conv3d_transpose", "DHW")

#: by the number of spatial dimensions
CONVS = {1: conv1d, 2: conv2d, 3: conv3d}
CONVS_TRANSPOSED = {1: conv1d_transpose, 2: conv2d_transpose, 3: conv3d_transpose}
