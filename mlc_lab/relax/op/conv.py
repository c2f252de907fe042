"""Convolutions of one, two and three dimensions, and transposed ones, in any layout of letters."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ...arith import Analyzer
from ...tir import op as O
from ..expr import Call, Expr, as_expr
from ..struct_info import StructInfo, TensorStructInfo, as_dim
from .common import (
    dim_text, dtype_attr, ints, join_dtype, misfit, need_at_least, need_multiple, need_ndim,
    need_numbers, need_same, show, tensor_info, tensor_of, whole,
)
from .registry import make_call, register_op

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def per_axis(name: str, value: Any, count: int, what: str) -> tuple:
    """One number for each spatial axis; one for all is repeated."""
    values = ints(value)
    if len(values) == 1:
        values *= count
    if len(values) != count:
        raise misfit(name, f"{what} needs 1 or {count} numbers, it has {len(values)}")
    return values


def padding_of(name: str, value: Any, count: int) -> tuple:
    """Padding before every spatial axis, then after: from 1, `count` or 2 * `count` numbers."""
    values = ints(value)
    if len(values) == 1:
        return values * (2 * count)
    if len(values) == count:
        return values * 2
    if len(values) != 2 * count:
        raise misfit(name, f"padding needs 1, {count} or {2 * count} numbers, it has "
                           f"{len(values)}")
    return values


def by_letter(call: Any, info: TensorStructInfo, layout: str, wanted: str,
              name: str) -> dict[str, Any]:
    """The dimensions of a tensor by the letters of its layout."""
    if sorted(layout) != sorted(wanted):
        raise misfit(call, f"the layout {layout!r} of {name} must be made of the letters of "
                           f"{wanted!r}")
    need_ndim(call, info, len(layout), name)
    return dict(zip(layout, info.dims)) if info.dims is not None else {}


def _check_positive(call: Call, dims: dict[str, Any], data: TensorStructInfo,
                    weight: Any) -> None:
    for letter, dim in dims.items():
        if letter in "NC":  # of a batch of none there is nothing to compute
            continue
        need_at_least(call, dim, as_dim(1), lambda dim=dim, letter=letter: (
            f"the window does not fit: data is {show(data)}, {weight}, which leaves "
            f"{dim_text(dim)} along {letter}"))


def _check_window(call: Call, dims: Sequence[Any], weight: TensorStructInfo) -> None:
    for dim in dims:
        need_at_least(call, dim, as_dim(1), lambda: f"weight is {show(weight)}: it has no extent")


def _conv(rank: int) -> Callable[..., Expr]:
    name, letters = f"nn.conv{rank}d", SPATIAL[rank]
    full = f"relax.{name}"
    data_default, kernel_default = f"NC{letters}", f"OI{letters}"

    def infer(call: Call) -> StructInfo:
        a = call.attrs
        need_numbers(call, 1, "strides", "dilation", "groups")
        data, weight = tensor_info(call, 0, "data"), tensor_info(call, 1, "weight")
        x = by_letter(call, data, a.data_layout, data_default, "data")
        w = by_letter(call, weight, a.kernel_layout, kernel_default, "weight")
        if sorted(a.out_layout) != sorted(data_default):
            raise misfit(call, f"out_layout {a.out_layout!r} must be made of {data_default!r}")
        dtype = a.out_dtype if a.out_dtype != "void" else join_dtype(
            call, data.dtype, weight.dtype, ("data", "weight"))
        if not x or not w:
            return TensorStructInfo(None, dtype, ndim=rank + 2)
        groups = as_dim(a.groups)
        need_same(call, x["C"], O.mul(w["I"], groups), lambda: (
            f"data is {show(data)} with {dim_text(x['C'])} channels, weight is {show(weight)}, "
            f"which with groups={a.groups} takes {dim_text(O.mul(w['I'], groups))}"))
        need_multiple(call, w["O"], a.groups, lambda: (
            f"weight is {show(weight)}: its {w['O'].value} output channels do not make "
            f"{a.groups} groups"))
        analyzer = Analyzer()
        out = {"N": x["N"], "C": w["O"]}
        _check_window(call, [w[s] for s in letters], weight)
        for k, s in enumerate(letters):
            span = O.add(x[s], as_dim(a.padding[k] + a.padding[k + rank]))
            reach = O.mul(as_dim(a.dilation[k]), O.sub(w[s], as_dim(1)))
            out[s] = analyzer.simplify(O.add(O.floordiv(
                O.sub(O.sub(span, reach), as_dim(1)), as_dim(a.strides[k])), as_dim(1)))
        _check_positive(call, out, data, f"weight is {show(weight)}")
        return tensor_of([out[c] for c in a.out_layout], dtype)

    register_op(full, infer)

    def build(data: Any, weight: Any, strides: Any = 1, padding: Any = 0, dilation: Any = 1,
              groups: int = 1, data_layout: str = data_default,
              kernel_layout: str = kernel_default, out_layout: str | None = None,
              out_dtype: Any = None) -> Expr:
        return make_call(full, (as_expr(data), as_expr(weight)), {
            "strides": per_axis(name, strides, rank, "strides"),
            "padding": padding_of(name, padding, rank),
            "dilation": per_axis(name, dilation, rank, "dilation"),
            "groups": whole("groups", groups),
            "data_layout": data_layout, "kernel_layout": kernel_layout,
            "out_layout": out_layout or data_layout, "out_dtype": dtype_attr(out_dtype)})

    build.__name__ = build.__qualname__ = f"conv{rank}d"
    build.__doc__ = f"Convolution over {letters} of {data_default} data with {kernel_default} " \
                    "weights (or other layouts of these letters)."
    return build


def _conv_transpose(rank: int) -> Callable[..., Expr]:
    name, letters = f"nn.conv{rank}d_transpose", SPATIAL[rank]
    full = f"relax.{name}"
    data_default, kernel_default = f"NC{letters}", f"IO{letters}"

    def infer(call: Call) -> StructInfo:
        a = call.attrs
        need_numbers(call, 1, "strides", "dilation", "groups")
        need_numbers(call, 0, "output_padding")
        data, weight = tensor_info(call, 0, "data"), tensor_info(call, 1, "weight")
        x = by_letter(call, data, a.data_layout, data_default, "data")
        w = by_letter(call, weight, a.kernel_layout, kernel_default, "weight")
        dtype = a.out_dtype if a.out_dtype != "void" else join_dtype(
            call, data.dtype, weight.dtype, ("data", "weight"))
        for k in range(rank):
            if a.output_padding[k] >= max(a.strides[k], a.dilation[k]):
                raise misfit(call, f"output_padding {a.output_padding[k]} must be less than the "
                                   f"stride {a.strides[k]}")
        if not x or not w:
            return TensorStructInfo(None, dtype, ndim=rank + 2)
        need_same(call, x["C"], w["I"], lambda: (
            f"data is {show(data)} with {dim_text(x['C'])} channels, weight is {show(weight)}, "
            f"which takes {dim_text(w['I'])}"))
        need_multiple(call, x["C"], a.groups, lambda: (
            f"data is {show(data)}: its {x['C'].value} channels do not make {a.groups} groups"))
        analyzer = Analyzer()
        out = {"N": x["N"], "C": O.mul(w["O"], as_dim(a.groups))}
        _check_window(call, [w[s] for s in letters], weight)
        for k, s in enumerate(letters):
            spread = O.mul(O.sub(x[s], as_dim(1)), as_dim(a.strides[k]))
            reach = O.mul(as_dim(a.dilation[k]), O.sub(w[s], as_dim(1)))
            less = a.padding[k] + a.padding[k + rank] - a.output_padding[k] - 1
            out[s] = analyzer.simplify(O.sub(O.add(spread, reach), as_dim(less)))
        _check_positive(call, out, data, f"weight is {show(weight)}")
        return tensor_of([out[c] for c in a.out_layout], dtype)

    register_op(full, infer)

    def build(data: Any, weight: Any, strides: Any = 1, padding: Any = 0, output_padding: Any = 0,
              dilation: Any = 1, groups: int = 1, data_layout: str = data_default,
              kernel_layout: str = kernel_default, out_layout: str | None = None,
              out_dtype: Any = None) -> Expr:
        return make_call(full, (as_expr(data), as_expr(weight)), {
            "strides": per_axis(name, strides, rank, "strides"),
            "padding": padding_of(name, padding, rank),
            "output_padding": per_axis(name, output_padding, rank, "output_padding"),
            "dilation": per_axis(name, dilation, rank, "dilation"),
            "groups": whole("groups", groups),
            "data_layout": data_layout, "kernel_layout": kernel_layout,
            "out_layout": out_layout or data_layout, "out_dtype": dtype_attr(out_dtype)})

    build.__name__ = build.__qualname__ = f"conv{rank}d_transpose"
    build.__doc__ = f"Transposed convolution over {letters}, as torch's ConvTranspose{rank}d."
    return build


conv1d, conv2d, conv3d = map(_conv, (1, 2, 3))
conv1d_transpose, conv2d_transpose, conv3d_transpose = map(_conv_transpose, (1, 2, 3))

__all__ = ["conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d",
           "conv3d_transpose"]
