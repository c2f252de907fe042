"""Pooling: max and average over windows, and adaptive average."""

from __future__ import annotations

from typing import Any, Callable

from ...arith import Analyzer
from ...tir import op as O
from ..expr import Call, Expr, as_expr
from ..struct_info import StructInfo, TensorStructInfo, as_dim
from .common import ints, misfit, need_numbers, show, tensor_info, tensor_of
from .conv import SPATIAL, _check_positive, by_letter, padding_of, per_axis
from .registry import make_call, register_op


def _pool(kind: str, rank: int) -> Callable[..., Expr]:
    name, letters = f"nn.{kind}_pool{rank}d", SPATIAL[rank]
    full, default = f"relax.{name}", f"NC{letters}"
    include = kind == "avg" and rank != 2  # TVM's defaults

    def infer(call: Call) -> StructInfo:
        a = call.attrs
        need_numbers(call, 1, "pool_size", "strides", "dilation")
        data = tensor_info(call, 0, "data")
        x = by_letter(call, data, a.layout, default, "data")
        if not x:
            return TensorStructInfo(None, data.dtype, ndim=rank + 2)
        analyzer = Analyzer()
        out = {"N": x["N"], "C": x["C"]}
        for k, s in enumerate(letters):
            reach = a.dilation[k] * (a.pool_size[k] - 1) + 1
            room = O.add(x[s], as_dim(a.padding[k] + a.padding[k + rank] - reach))
            steps = (O.ceildiv if a.ceil_mode else O.floordiv)(room, as_dim(a.strides[k]))
            out[s] = analyzer.simplify(O.add(steps, as_dim(1)))
        _check_positive(call, out, data, f"pool_size is {list(a.pool_size)}")
        return tensor_of([out[c] for c in a.out_layout], data.dtype)

    register_op(full, infer)

    def build(data: Any, pool_size: Any = 1, strides: Any = 1, padding: Any = 0, dilation: Any = 1,
              ceil_mode: bool = False, count_include_pad: bool = include, layout: str = default,
              out_layout: str | None = None) -> Expr:
        return make_call(full, (as_expr(data),), {
            "pool_size": per_axis(name, pool_size, rank, "pool_size"),
            "strides": per_axis(name, strides, rank, "strides"),
            "dilation": per_axis(name, dilation, rank, "dilation"),
            "padding": padding_of(name, padding, rank), "ceil_mode": bool(ceil_mode),
            "count_include_pad": bool(count_include_pad), "layout": layout,
            "out_layout": out_layout or layout})

    build.__name__ = build.__qualname__ = f"{kind}_pool{rank}d"
    build.__doc__ = f"The {kind} of each window over {letters}."
    return build


def _adaptive(rank: int) -> Callable[..., Expr]:
    name, letters = f"nn.adaptive_avg_pool{rank}d", SPATIAL[rank]
    full, default = f"relax.{name}", f"NC{letters}"

    def infer(call: Call) -> StructInfo:
        a = call.attrs
        data = tensor_info(call, 0, "data")
        x = by_letter(call, data, a.layout, default, "data")
        if not x:
            return TensorStructInfo(None, data.dtype, ndim=rank + 2)
        if a.output_size is not None:
            need_numbers(call, 1, "output_size")
            if len(a.output_size) != rank:
                raise misfit(call, f"output_size has {len(a.output_size)} number(s), data is "
                                   f"{show(data)}")
            x.update(zip(letters, map(as_dim, a.output_size)))
        return tensor_of([x[c] for c in a.out_layout], data.dtype)

    register_op(full, infer)

    def build(data: Any, output_size: Any = None, layout: str = default,
              out_layout: str | None = None) -> Expr:
        size = ints(output_size)
        if size is not None and len(size) == 1:
            size *= rank
        return make_call(full, (as_expr(data),), {
            "output_size": size, "layout": layout, "out_layout": out_layout or layout})

    build.__name__ = build.__qualname__ = f"adaptive_avg_pool{rank}d"
    build.__doc__ = f"Averages over {letters} such that `output_size` values are left."
    return build


max_pool1d, max_pool2d, max_pool3d = (_pool("max", r) for r in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_pool("avg", r) for r in (1, 2, 3))
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive, (1, 2, 3))

__all__ = ["adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d",
           "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"]
