"""Functions of one element."""

from __future__ import annotations

from typing import Any, Callable

from .. import te
from ..te.tensor import Tensor
from ..tir import op as O


def elementwise(x: Tensor, fn: Callable, name: str) -> Tensor:
    """fn of every element."""
    return te.compute(x.shape, lambda *i: fn(x(*i)), name=name, tag="elemwise")


def _function(name: str) -> Callable:
    fn = getattr(O, name)

    def operator(x: Tensor) -> Tensor:
        return elementwise(x, fn, "compute")

    operator.__name__, operator.__doc__ = name, f"{fn.__doc__}, of every element"
    return operator


exp, log, sqrt, rsqrt = map(_function, ("exp", "log", "sqrt", "rsqrt"))
sin, cos, tanh, erf, sigmoid = map(_function, ("sin", "cos", "tanh", "erf", "sigmoid"))
floor, ceil, abs = map(_function, ("floor", "ceil", "abs"))  # noqa: A001


def negative(x: Tensor) -> Tensor:
    """-x"""
    return elementwise(x, O.neg, "compute")


def identity(x: Tensor) -> Tensor:
    """A copy."""
    return elementwise(x, lambda e: e, "T_identity")


def cast(x: Tensor, dtype: str) -> Any:
    """Every element as `dtype`."""
    return elementwise(x, lambda e: O.cast(e, dtype), "compute")
