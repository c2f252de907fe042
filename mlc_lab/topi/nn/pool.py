"""Pooling: the maximum or the mean of windows."""

from __future__ import annotations

import re
from typing import Any, Callable, Sequence

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ...tir.expr import PrimExpr
from ..convolution import pooling, refuse
from ..reduction import lowest, max_from_lowest
from ..utils import (
    axes, dilated, need, need_rank, number, pair, product, simplify, sum_type, text,
)
from .conv import pad_widths
from .pad import pad


def _spatial(name: str, layout: str, dim: int, data: Tensor) -> list[int]:
    """The positions of D, H, W in a layout, whose batch or channels may be split (NCHW4c)."""
    letters = "DHW"[3 - dim:]
    dimensions = re.findall(r"[A-Z]|\d+[a-z]", layout)
    outer = [d for d in dimensions if d[0].isupper()]
    parts = [d[-1] for d in dimensions if not d[0].isupper()]
    need("".join(dimensions) == layout and sorted(outer) == sorted("NC" + letters)
         and set(parts) <= {"n", "c"} and len(set(parts)) == len(parts),
         f"{name}: the layout {layout} is not made of NC{letters}")
    need_rank(name, data, len(dimensions), f"the layout {layout}")
    return [dimensions.index(c) for c in letters]


def _max(exact: bool) -> tuple[Callable, Callable]:
    """The value of the padding of an image, and the maximum of a window that starts from it.

    TVM starts from the smallest finite number, which is larger than -inf. `exact` gives what torch
    gives for windows of nothing but -inf.
    """
    return (lowest, max_from_lowest) if exact else (O.min_value, te.max)


class Windows:
    """The windows of a pooling: where they lie, and how many elements each has."""

    def __init__(self, name: str, data: Tensor, kernel: Any, stride: Any, dilation: Any,
                 padding: Any, ceil_mode: bool, layout: str, dim: int) -> None:
        self.data, self.ceil_mode = data, ceil_mode
        self.where = _spatial(name, layout, dim, data)
        self.sizes = pair(kernel, dim, f"{name}: kernel")
        self.steps = pair(stride, dim, f"{name}: stride")
        self.spread = pair(dilation, dim, f"{name}: dilation")
        self.reach = list(map(dilated, self.sizes, self.spread))
        self.before, self.after = pad_widths(name, padding, self.reach)
        # in ceil mode a window may hang over the end by less than a stride
        self.beyond = [a + (s - 1 if ceil_mode else 0) for a, s in zip(self.after, self.steps)]
        self.framed = any(b or a for b, a in zip(self.before, self.beyond))
        letters = "DHW"[3 - dim:]
        size = {c: data.shape[d] for c, d in zip(letters, self.where)}
        around = [b + a for b, a in zip(self.before, self.after)]
        extent, needs = pooling(
            size, letters, self.sizes, self.steps, around, self.spread, ceil_mode,
            lambda: f"{text(data.shape)} ({layout}) with padding {padding}")
        refuse(name, needs)
        self.shape = list(data.shape)
        for c, d in zip(letters, self.where):
            self.shape[d] = extent[c]

    def over(self) -> list[Any]:
        """New reduction axes over the places of a window."""
        return [te.reduce_axis((0, k), f"rv{n}") for n, k in enumerate(self.sizes)]

    def place(self, i: Sequence[Any], ks: Sequence[Any]) -> list[Any]:
        """Where in the padded data place `ks` of window `i` is."""
        at = list(i)
        for d, s, k, r in zip(self.where, self.steps, ks, self.spread):
            at[d] = i[d] * s + k * r
        return at

    def elements(self, i: Sequence[Any], dtype: str, count_include_pad: bool) -> PrimExpr:
        """How many elements the mean of window `i` is over."""
        if (count_include_pad and not self.ceil_mode) or not self.framed:
            # with padding counted, every window holds as many elements
            return O.const(product(self.sizes), dtype)
        counts, extents = [], [self.data.shape[d] for d in self.where]
        if count_include_pad:  # windows that hang over the padding are cut there
            for d, n, s, k, r, b, a in zip(self.where, extents, self.steps, self.reach, self.spread,
                                           self.before, self.after):
                first = i[d] * s - b
                reach = O.min_value_of(first + k, n + a) - first
                counts.append(O.floordiv(reach + (r - 1), r))
            return O.cast(product(counts), dtype)
        for d, n, s, k, r, b in zip(self.where, extents, self.steps, self.sizes, self.spread,
                                    self.before):
            first = i[d] * s - b
            if r == 1:
                last = O.min_value_of(first + k, n)
                counts.append(last - O.max_value_of(first, 0))
            else:  # every r-th place of the window, as far as it lies inside
                skip = O.floordiv(O.max_value_of(-first, 0) + (r - 1), r)
                stop = O.min_value_of(O.floordiv(n - first + (r - 1), r), k)
                counts.append(stop - skip)
        return O.cast(O.max_value_of(product(counts), 1), dtype)


def pool(data: Tensor, kernel: int | Sequence[int], stride: int | Sequence[int],
         dilation: int | Sequence[int], padding: int | str | Sequence[Any], pool_type: str,
         ceil_mode: bool, layout: str, count_include_pad: bool, dim: int, exact: bool) -> Tensor:
    """Windows over `dim` dimensions; see pool2d."""
    name = f"pool{dim}d"
    need(pool_type in ("max", "avg"), f'{name}: pool_type "{pool_type}" is none of "max", "avg"')
    windows = Windows(name, data, kernel, stride, dilation, padding, ceil_mode, layout, dim)
    low, high = [0] * data.ndim, [0] * data.ndim
    for k, d in enumerate(windows.where):
        low[d], high[d] = windows.before[k], windows.beyond[k]
    ks, names, shape = windows.over(), axes(data.ndim), windows.shape

    def source(tensor: Tensor, i: Sequence[Any]) -> PrimExpr:
        return tensor(*windows.place(i, ks))

    if pool_type == "max":
        padding_value, largest = _max(exact)
        temp = pad(data, low, high, padding_value(data.dtype), "pad_temp", varargs_names=names
                   ) if windows.framed else data
        return te.compute(shape, lambda *i: largest(source(temp, i), axis=ks), name="pool_max",
                          tag="pool_max", attrs={"schedule_rule": "meta_schedule.pool_max"},
                          varargs_names=names)
    temp = pad(data, low, high, 0, "pad_temp", varargs_names=names) if windows.framed else data
    wide = sum_type(data.dtype)
    total = te.compute(shape, lambda *i: te.sum(O.cast(source(temp, i), wide), axis=ks),
                       name="pool_sum", tag="pool_sum", varargs_names=names)
    return te.compute(
        shape, lambda *i: O.cast(
            total(*i) / windows.elements(i, wide, count_include_pad), data.dtype),
        name="pool_avg", tag="pool_avg", attrs={"schedule_rule": "meta_schedule.pool_avg"},
        varargs_names=names)


def pool1d(data: Tensor, kernel: int | Sequence[int], stride: int | Sequence[int],
           dilation: int | Sequence[int], padding: int | str | Sequence[Any], pool_type: str,
           ceil_mode: bool = False, layout: str = "NCW", count_include_pad: bool = True, *,
           exact: bool = False) -> Tensor:
    """Windows over W. Padding is for each dimension, or before and then after all of them."""
    return pool(data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout,
                 count_include_pad, 1, exact)


def pool2d(data: Tensor, kernel: int | Sequence[int], stride: int | Sequence[int],
           dilation: int | Sequence[int], padding: int | str | Sequence[Any], pool_type: str,
           ceil_mode: bool = False, layout: str = "NCHW", count_include_pad: bool = True, *,
           exact: bool = False) -> Tensor:
    """Windows over H and W. `padding` is (top, left, bottom, right) or shorter.

    With ceil_mode, windows that begin inside and hang over the end count too. The mean is over the
    whole window, or with count_include_pad=False over what lies inside. `exact` begins a maximum
    with -inf, as torch does, not with the smallest finite number.
    """
    return pool(data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout,
                 count_include_pad, 2, exact)


def pool3d(data: Tensor, kernel: int | Sequence[int], stride: int | Sequence[int],
           dilation: int | Sequence[int], padding: int | str | Sequence[Any], pool_type: str,
           ceil_mode: bool = False, layout: str = "NCDHW", count_include_pad: bool = True, *,
           exact: bool = False) -> Tensor:
    """Windows over D, H and W."""
    return pool(data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout,
                 count_include_pad, 3, exact)


def adaptive(data: Tensor, output_size: int | Sequence[int], pool_type: str, layout: str, dim: int,
             exact: bool = False) -> Tensor:
    """Windows from floor(i * in / out) to ceil((i + 1) * in / out), as torch and TVM have them."""
    name = f"adaptive_pool{dim}d"
    need(pool_type in ("max", "avg"), f'{name}: pool_type "{pool_type}" is none of "max", "avg"')
    where = _spatial(name, layout, dim, data)
    outs = pair(output_size, dim, f"{name}: output_size")
    shape = list(data.shape)
    for d, n in zip(where, outs):
        shape[d] = O.cast(O.convert(n), data.shape[d].dtype)
    sizes = (O.as_int(data.shape[d]) for d in where)
    even = all(size is not None and isinstance(n, int) and size % n == 0 or n == 1
               for size, n in zip(sizes, outs))
    names = axes(data.ndim)

    def first(i: PrimExpr, d: int, n: PrimExpr | int) -> PrimExpr:
        size = data.shape[d]
        return i * simplify(O.floordiv(size, n)) if even else O.floordiv(i * size, n)

    def count(i: PrimExpr, d: int, n: PrimExpr | int) -> PrimExpr:
        size = data.shape[d]
        if even:
            return simplify(O.floordiv(size, n))
        return O.floordiv((i + 1) * size + (n - 1), n) - first(i, d, n)

    def windows(i: Sequence[Any]) -> tuple[PrimExpr, list[Any]]:
        ks = [te.reduce_axis((0, count(i[d], d, n)), f"rv{r}")
              for r, (d, n) in enumerate(zip(where, outs))]
        at = list(i)
        for d, n, k in zip(where, outs, ks):
            at[d] = first(i[d], d, n) + k
        return data(*at), ks

    attrs = {"schedule_rule": f"meta_schedule.adaptive_pool_{pool_type}"}
    if pool_type == "max":
        def largest(*i: PrimExpr) -> PrimExpr:
            value, ks = windows(i)
            return _max(exact)[1](value, axis=ks)

        return te.compute(shape, largest, name="adaptive_pool_max", tag="adaptive_pool_max",
                          attrs=attrs, varargs_names=names)

    def added(*i: PrimExpr) -> PrimExpr:
        value, ks = windows(i)
        return te.sum(O.cast(value, wide), axis=ks)

    wide = sum_type(data.dtype)
    total = te.compute(shape, added, name="adaptive_pool_sum", tag="adaptive_pool_sum",
                       varargs_names=names)

    def mean(*i: PrimExpr) -> PrimExpr:
        number_of = product([count(i[d], d, n) for d, n in zip(where, outs)])
        return O.cast(total(*i) / O.cast(O.convert(number(number_of)), wide), data.dtype)

    return te.compute(shape, mean, name="adaptive_pool_avg", tag="adaptive_pool_avg", attrs=attrs,
                      varargs_names=names)


def adaptive_pool1d(data: Tensor, output_size: int | Sequence[int], pool_type: str,
                    layout: str = "NCW", *, exact: bool = False) -> Tensor:
    """W divided into output_size windows."""
    return adaptive(data, output_size, pool_type, layout, 1, exact)


def adaptive_pool(data: Tensor, output_size: int | Sequence[int], pool_type: str,
                  layout: str = "NCHW", *, exact: bool = False) -> Tensor:
    """H and W divided into output_size windows."""
    return adaptive(data, output_size, pool_type, layout, 2, exact)


def adaptive_pool3d(data: Tensor, output_size: int | Sequence[int], pool_type: str,
                    layout: str = "NCDHW", *, exact: bool = False) -> Tensor:
    """D, H and W divided into output_size windows."""
    return adaptive(data, output_size, pool_type, layout, 3, exact)


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """One window over H and W."""
    return adaptive(data, (1, 1), pool_type, layout, 2)


__all__ = ["adaptive_pool", "adaptive_pool1d", "adaptive_pool3d", "global_pool", "pool1d",
           "pool2d", "pool3d"]
