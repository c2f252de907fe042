"""Pooling: max and average over windows, and adaptive average."""

from __future__ import annotations

from typing import Any, Callable

from ...tir.data_layout import Layout
from ..expr import Call, Expr
from ..struct_info import StructInfo, TensorStructInfo, as_dim
from .common import misfit, need_numbers, show, tensor_of
from .conv import (
    by_letter, in_order, in_out_layout, meet, need_letters, unpack, unpacked, windows,
)
from .declare import Flag, Ints, Tensor, Text, operator
from .later import convolution, topi

_ORDER = ("pool_size", "strides", "dilation", "padding", "ceil_mode", "count_include_pad", "layout",
          "out_layout")


def _pool(name: str, kind: str, letters: str, include: bool = False, **facts: Any
          ) -> Callable[..., Expr]:
    """Pooling by "max" or "avg"; `include` is TVM's default for whether padding counts."""
    rank, default, complete = len(letters), f"NC{letters}", windows(len(letters))

    def infer(call: Call, data: TensorStructInfo) -> StructInfo:
        a = call.attrs
        need_numbers(call, 1, "pool_size", "strides", "dilation")
        need_numbers(call, 0, "padding")
        x = by_letter(call, data, a.layout, default, "data")
        need_letters(call, a.out_layout, default, "the result")
        if not x:
            return TensorStructInfo(None, data.dtype, ndim=len(Layout(a.out_layout)))
        around = [a.padding[k] + a.padding[k + rank] for k in range(rank)]
        out, needs = convolution.pooling(x, letters, a.pool_size, a.strides, around, a.dilation,
                                         a.ceil_mode, lambda: f"the data {show(data)}")
        meet(call, needs)
        out = {"N": x["N"], "C": x["C"], **out}
        return tensor_of(in_order(call, out, a.out_layout), data.dtype)

    def attrs(name: str, given: dict[str, Any]) -> dict[str, Any]:
        given = complete(name, given)
        return {key: given[key] for key in _ORDER}

    def fn(data: Tensor, pool_size: Ints = 1, strides: Ints = 1, padding: Ints = 0,
           dilation: Ints = 1, ceil_mode: Flag = False, count_include_pad: Flag = include,
           layout: Text = default, out_layout: Text | None = None) -> Any:
        return topi.nn.pool.pool(unpack(data, layout), pool_size, strides, dilation, padding, kind,
                                 ceil_mode, unpacked(layout), count_include_pad, rank, exact=True)

    fn.__doc__ = f"The {kind} of each window over {letters}."
    return operator(name, infer, attrs=attrs, then=in_out_layout, layout="pool", **facts)(fn)


def adaptive_pool(name: str, letters: str, kind: str = "avg", **facts: Any) -> Callable[..., Expr]:
    """Pooling by "max" or "avg" over windows such that so many values are left."""
    rank, default = len(letters), f"NC{letters}"

    def infer(call: Call, data: TensorStructInfo) -> StructInfo:
        a = call.attrs
        x = by_letter(call, data, a.layout, default, "data")
        need_letters(call, a.out_layout, default, "the result")
        if not x:
            return TensorStructInfo(None, data.dtype, ndim=len(Layout(a.out_layout)))
        if a.output_size is not None:
            need_numbers(call, 1, "output_size")
            if len(a.output_size) != rank:
                raise misfit(call, f"output_size has {len(a.output_size)} number(s), data is "
                                   f"{show(data)}")
            x.update(zip(letters, map(as_dim, a.output_size)))
        return tensor_of(in_order(call, x, a.out_layout), data.dtype)

    def attrs(name: str, given: dict[str, Any]) -> dict[str, Any]:
        size = given["output_size"]
        return {"output_size": size * rank if size is not None and len(size) == 1 else size,
                "layout": given["layout"], "out_layout": given["out_layout"] or given["layout"]}

    def fn(data: Tensor, output_size: Ints | None = None, layout: Text = default,
           out_layout: Text | None = None) -> Any:
        data, plain = unpack(data, layout), unpacked(layout)
        sizes = output_size or [data.shape[plain.index(c)] for c in letters]
        return topi.nn.pool.adaptive(data, list(sizes), kind, plain, rank)

    what = "Averages" if kind == "avg" else "Maxima"
    fn.__doc__ = f"{what} over {letters} such that `output_size` values are left."
    return operator(name, infer, attrs=attrs, then=in_out_layout, layout="pool", **facts)(fn)


max_pool1d = _pool("relax.nn.max_pool1d", "max", "W")
max_pool2d = _pool("relax.nn.max_pool2d", "max", "HW", precision="follow")
max_pool3d = _pool("relax.nn.max_pool3d", "max", "DHW")
avg_pool1d = _pool("relax.nn.avg_pool1d", "avg", "W", include=True)
avg_pool2d = _pool("relax.nn.avg_pool2d", "avg", "HW", precision="follow")
avg_pool3d = _pool("relax.nn.avg_pool3d", "avg", "DHW", include=True)
adaptive_avg_pool1d = adaptive_pool("relax.nn.adaptive_avg_pool1d", "W")
adaptive_avg_pool2d = adaptive_pool("relax.nn.adaptive_avg_pool2d", "HW", precision="follow")
adaptive_avg_pool3d = adaptive_pool("relax.nn.adaptive_avg_pool3d", "DHW")

#: by the number of spatial dimensions
MAX_POOLS = {1: max_pool1d, 2: max_pool2d, 3: max_pool3d}
AVG_POOLS = {1: avg_pool1d, 2: avg_pool2d, 3: avg_pool3d}
ADAPTIVE_AVG_POOLS = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
