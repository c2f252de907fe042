"""Rows of convolutions, transposed ones, and pooling. Layouts TOPI has not are transposed to."""

from __future__ import annotations

from typing import Any

from ... import topi
from ..expr import Call, Expr
from .common import attr_row, known, legalize, to_layout

def _ordered(bb: Any, out: Expr, layout: str, wanted: str) -> Expr:
    """A result in the layout asked for."""
    return out if layout == wanted else to_layout(bb.emit(out), layout, wanted)


_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _conv(rank: int) -> None:
    @legalize(f"nn.conv{rank}d")
    def row(bb: Any, call: Call) -> Expr:
        a = call.attrs

        def conv(data: Any, kernel: Any) -> Any:
            return topi.nn.conv(data, kernel, a.strides, a.padding, a.dilation, a.groups,
                                a.data_layout, a.kernel_layout, known(a.out_dtype))

        out = bb.call_te(conv, *call.args, primfunc_name_hint=f"conv{rank}d")
        return _ordered(bb, out, a.data_layout, a.out_layout)


def _conv_transpose(rank: int) -> None:
    name = f"conv{rank}d_transpose"
    inner = _SPATIAL[rank]
    compiled = getattr(topi.nn, f"group_{name}_nc{inner.lower()}")

    @legalize(f"nn.{name}")
    def row(bb: Any, call: Call) -> Expr:
        a = call.attrs
        data, kernel = call.args
        if a.data_layout != f"NC{inner}":
            data = bb.emit(to_layout(data, a.data_layout, f"NC{inner}"))
        if a.kernel_layout != f"IO{inner}":
            kernel = bb.emit(to_layout(kernel, a.kernel_layout, f"IO{inner}"))

        def conv_transpose(data: Any, kernel: Any) -> Any:
            if any(d != 1 for d in a.dilation):
                kernel = topi.nn.dilate(kernel, [1, 1, *a.dilation])
            return compiled(data, kernel, a.strides, a.padding, known(a.out_dtype) or data.dtype,
                            a.output_padding, a.groups)

        out = bb.call_te(conv_transpose, data, kernel, primfunc_name_hint=name)
        return to_layout(out, f"NC{inner}", a.out_layout)


def _pool(kind: str, rank: int) -> None:
    compiled = getattr(topi.nn, f"pool{rank}d")

    @legalize(f"nn.{kind}_pool{rank}d")
    def row(bb: Any, call: Call) -> Expr:
        a = call.attrs

        def pool(data: Any) -> Any:
            return compiled(data, a.pool_size, a.strides, a.dilation, a.padding, kind, a.ceil_mode,
                            a.layout, a.count_include_pad, exact=True)

        out = bb.call_te(pool, call.args[0], primfunc_name_hint=f"{kind}_pool{rank}d")
        return _ordered(bb, out, a.layout, a.out_layout)


def _adaptive(rank: int) -> None:
    compiled = getattr(topi.nn, "adaptive_pool" + {1: "1d", 2: "", 3: "3d"}[rank])

    @legalize(f"nn.adaptive_avg_pool{rank}d")
    def row(bb: Any, call: Call) -> Expr:
        a = call.attrs
        dims = call.args[0].struct_info.dims
        sizes = a.output_size or [dims[a.layout.index(c)] for c in _SPATIAL[rank]]

        def pool(data: Any, sizes: Any) -> Any:
            return compiled(data, sizes, "avg", a.layout)

        out = bb.call_te(pool, call.args[0], list(sizes),
                         primfunc_name_hint=f"adaptive_avg_pool{rank}d")
        return _ordered(bb, out, a.layout, a.out_layout)


for _rank in (1, 2, 3):
    _conv(_rank)
    _conv_transpose(_rank)
    _pool("max", _rank)
    _pool("avg", _rank)
    _adaptive(_rank)


def _resize2d(data: Any, size: Any, a: Any) -> Any:
    return topi.image.resize2d(
        data, a.roi, size, a.layout, a.method, a.coordinate_transformation_mode,
        a.rounding_method, a.cubic_alpha, a.cubic_exclude, a.extrapolation_value,
        known(a.out_dtype))


attr_row("image.resize2d", _resize2d)
