"""Activations: functions of one element that networks put between layers.

Those of several steps are computed in float32 where the elements have 16 bits, and rounded once.
"""

from __future__ import annotations

import math
from typing import Callable

from ... import te
from ...te.tensor import Tensor
from ...tir import op as O
from ...tir.expr import PrimExpr
from ..utils import axis_of, differ, need, sum_type, text


def _elementwise(x: Tensor, fn: Callable[[PrimExpr], PrimExpr], name: str = "compute") -> Tensor:
    return te.compute(x.shape, lambda *i: fn(x(*i)), name=name, tag="elemwise")


def _in_steps(x: Tensor, fn: Callable[[PrimExpr], PrimExpr], name: str = "compute") -> Tensor:
    """fn of every element, which takes more than one operation."""
    wide = sum_type(x.dtype)
    return _elementwise(x, lambda e: O.cast(fn(O.cast(e, wide)), x.dtype), name)


def _const(value: float, like: PrimExpr) -> PrimExpr:
    return O.const(value, like.dtype)


def relu(x: Tensor) -> Tensor:
    """max(x, 0)"""
    return _elementwise(x, lambda e: te.max(e, _const(0, e)))


def relu6(x: Tensor) -> Tensor:
    """min(max(x, 0), 6)"""
    return _elementwise(x, lambda e: te.min(te.max(e, _const(0, e)), _const(6, e)))


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """x where it is positive, alpha * x elsewhere."""
    return _in_steps(x, lambda e: O.select(_const(0, e) < e, e, e * _const(alpha, e)))


def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """x where it is positive, slope * x elsewhere, with one slope for each index of `axis`."""
    k = axis_of("prelu", axis, x.ndim)
    need(slope.ndim == 1 and (O.is_const_int(slope.shape[0], 1) or not differ(
        slope.shape[0], x.shape[k])),
        f"prelu: slope {text(slope.shape)} does not fit axis {k} of {text(x.shape)}")
    one = O.is_const_int(slope.shape[0], 1) and not O.is_const_int(x.shape[k], 1)

    def element(*i: PrimExpr) -> PrimExpr:
        e = x(*i)
        return O.select(_const(0, e) < e, e, e * slope(O.const(0, i[k].dtype) if one else i[k]))

    return te.compute(x.shape, element)


def silu(x: Tensor) -> Tensor:
    """x * sigmoid(x)"""
    return _in_steps(x, lambda e: e * O.sigmoid(e), "T_silu")


def gelu(x: Tensor) -> Tensor:
    """x * Phi(x), with the distribution function Phi of the normal distribution, by erf."""
    return _in_steps(x, lambda e: e * (_const(0.5, e) + O.erf(
        e * _const(math.sqrt(0.5), e)) * _const(0.5, e)), "T_gelu")


def gelu_tanh(x: Tensor) -> Tensor:
    """gelu approximated with tanh: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    def element(e: PrimExpr) -> PrimExpr:
        inner = _const(math.sqrt(2 / math.pi), e) * e * (
            _const(1, e) + _const(0.044715, e) * e * e)
        return _const(0.5, e) * e * (_const(1, e) + O.tanh(inner))

    return _in_steps(x, element, "T_gelu_tanh")


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold."""
    def element(e: PrimExpr) -> PrimExpr:
        scaled = e * _const(beta, e)
        soft = O.log(_const(1, e) + O.exp(scaled)) / _const(beta, e)
        return O.select(_const(threshold, e) < scaled, e, soft)

    return _in_steps(x, element)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere."""
    return _in_steps(x, lambda e: O.select(
        e < _const(0, e), _const(alpha, e) * (O.exp(e) - _const(1, e)), e), "T_elu")


def selu(x: Tensor) -> Tensor:
    """elu scaled so that mean and variance are kept (Klambauer et al., 2017)."""
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return _in_steps(x, lambda e: _const(scale, e) * O.select(
        e < _const(0, e), _const(alpha, e) * (O.exp(e) - _const(1, e)), e), "T_selu")


def hard_sigmoid(x: Tensor) -> Tensor:
    """min(max(x + 3, 0), 6) / 6"""
    return _in_steps(x, lambda e: te.min(te.max(
        e + _const(3, e), _const(0, e)), _const(6, e)) / _const(6, e), "T_hard_sigmoid")


def hard_swish(x: Tensor) -> Tensor:
    """x * hard_sigmoid(x)"""
    return _in_steps(x, lambda e: e * te.min(te.max(
        e + _const(3, e), _const(0, e)), _const(6, e)) / _const(6, e), "T_hard_swish")


__all__ = ["elu", "gelu", "gelu_tanh", "hard_sigmoid", "hard_swish", "leaky_relu", "prelu", "relu",
           "relu6", "selu", "silu", "softplus"]
