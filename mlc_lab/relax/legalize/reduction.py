"""Rows of reductions, running totals and positions."""

from __future__ import annotations

from typing import Any

from ... import te, topi
from ...ir import dtype as dt
from ...tir import op as O
from ...topi.reduction import exact_argmax, exact_argmin, exact_max, exact_min, reduce, wide_sum
from ...topi.utils import axes_of, product, rounded, simplify, sum_type
from .common import attr_row, axis_list, known, widened


def _elements(x: Any, axis: Any) -> Any:
    """How many elements each result comes from."""
    return simplify(product([x.shape[k] for k in axes_of("mean", axis, x.ndim)]))


def _count(x: Any, axis: Any) -> Any:
    """How many, in the type in which they are summed up."""
    return O.cast(O.convert(_elements(x, axis)), sum_type(x.dtype))


def mean(x: Any, attrs: Any) -> Any:
    """The sum over how many there are; of integers exact, and rounded toward zero."""
    axis = axis_list(attrs.axis)
    if dt.is_integer(x.dtype):
        wide = "uint64" if x.dtype == "uint64" else "int64"
        total = reduce("mean", x, axis, attrs.keepdims,
                       lambda i, ks: te.sum(O.cast(x(*i), wide), axis=ks))
        count = O.cast(O.convert(_elements(x, axis)), wide)
        return te.compute(total.shape, lambda *i: O.cast(O.truncdiv(O.cast(
            total(*i), wide), count), x.dtype), name="T_divide", tag="elemwise")
    return rounded(topi.divide(wide_sum(x, axis, attrs.keepdims), _count(x, axis)), x.dtype)


def _variance(x: Any, attrs: Any) -> Any:
    axis = axis_list(attrs.axis)
    if dt.is_integer(x.dtype):
        x = topi.cast(x, "float64")
    count, x = _count(x, axis), widened(x)
    away = topi.subtract(x, topi.divide(topi.sum(x, axis, True), count))
    return topi.divide(topi.sum(topi.multiply(away, away), axis, attrs.keepdims), count)


def variance(x: Any, attrs: Any) -> Any:
    """The mean square of the distance from the mean (of the whole population, as numpy)."""
    return _as(_variance(x, attrs), x.dtype)


def std(x: Any, attrs: Any) -> Any:
    """The root of the variance."""
    return _as(topi.sqrt(_variance(x, attrs)), x.dtype)


def _as(out: Any, dtype: str) -> Any:
    return topi.cast(out, dtype) if dt.is_integer(dtype) else rounded(out, dtype)


def _plain(fn: Any) -> Any:
    return lambda x, attrs: fn(x, axis_list(attrs.axis), attrs.keepdims)


def _scan(fn: Any) -> Any:
    return lambda x, attrs: fn(x, attrs.axis, known(attrs.dtype), attrs.exclusive)


for _name, _fn in (("sum", topi.sum), ("prod", topi.prod), ("max", exact_max), ("min", exact_min)):
    attr_row(_name, _plain(_fn))
for _fn in (mean, variance, std):
    attr_row(_fn.__name__, _fn)


def _position(fn: Any) -> Any:
    def row(x: Any, attrs: Any) -> Any:
        found = fn(x, attrs.axis, attrs.keepdims)
        # positions are int64 in Relax, as wide as an index
        return found if found.dtype == "int64" else te.compute(
            found.shape, lambda *i: O.cast(found(*i), "int64"), name="T_cast", tag="elemwise")

    return row


attr_row("argmax", _position(exact_argmax))
attr_row("argmin", _position(exact_argmin))
for _name in ("cumsum", "cumprod"):
    attr_row(_name, _scan(getattr(topi, _name)))
