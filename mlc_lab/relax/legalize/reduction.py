"""Rows of reductions, running totals and positions."""

from __future__ import annotations

from typing import Any

from ... import te, topi
from ...tir import op as O
from ...topi.utils import axes_of, product, simplify
from .common import attr_row, axis_list, known


def _count(x: Any, axis: Any) -> Any:
    """How many elements each result comes from, in the type of the elements."""
    size = simplify(product([x.shape[k] for k in axes_of("mean", axis, x.ndim)]))
    return O.cast(O.convert(size), x.dtype)


def mean(x: Any, attrs: Any) -> Any:
    """The sum over how many there are."""
    axis = axis_list(attrs.axis)
    return topi.divide(topi.sum(x, axis, attrs.keepdims), _count(x, axis))


def variance(x: Any, attrs: Any) -> Any:
    """The mean square of the distance from the mean (of the whole population, as numpy)."""
    axis = axis_list(attrs.axis)
    count = _count(x, axis)
    away = topi.subtract(x, topi.divide(topi.sum(x, axis, True), count))
    return topi.divide(topi.sum(topi.multiply(away, away), axis, attrs.keepdims), count)


def std(x: Any, attrs: Any) -> Any:
    """The root of the variance."""
    return topi.sqrt(variance(x, attrs))


def _plain(fn: Any) -> Any:
    return lambda x, attrs: fn(x, axis_list(attrs.axis), attrs.keepdims)


def _scan(fn: Any) -> Any:
    return lambda x, attrs: fn(x, attrs.axis, known(attrs.dtype), attrs.exclusive)


for _name in ("sum", "max", "min", "prod"):
    attr_row(_name, _plain(getattr(topi, _name)))
for _fn in (mean, variance, std):
    attr_row(_fn.__name__, _fn)


def _position(fn: Any) -> Any:
    def row(x: Any, attrs: Any) -> Any:
        found = fn(x, attrs.axis, attrs.keepdims)
        # positions are int64 in Relax, as wide as an index
        return found if found.dtype == "int64" else te.compute(
            found.shape, lambda *i: O.cast(found(*i), "int64"), name="T_cast", tag="elemwise")

    return row


attr_row("argmax", _position(topi.argmax))
attr_row("argmin", _position(topi.argmin))
for _name in ("cumsum", "cumprod"):
    attr_row(_name, _scan(getattr(topi, _name)))
