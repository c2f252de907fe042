"""Gradients of operators on single elements: arithmetic, functions of one variable, choices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Callable

from .. import op as R
from ..expr import Expr
from .common import dtype_of, fitted, number, rule

if TYPE_CHECKING:
    from ..block_builder import BlockBuilder
    from ..expr import Call, Var


# ------------------------------------------------------------------------------- of one variable


def _of_one(name: str, slope: Callable[[Expr, Expr, Expr], Expr]) -> None:
    """A function of one variable: `slope(x, y, grad)` is the gradient of x, of y and its own."""
    rule(name)(lambda var, call, grad, bb: [slope(call.args[0], var, grad)])


def _one_minus(x: Expr) -> Expr:
    return R.subtract(number(1, x), x)


def _chosen(condition: Expr, grad: Expr) -> Expr:
    """The gradient where a condition holds, else 0."""
    return R.where(condition, grad, number(0, grad))


_of_one("relax.abs", lambda x, y, g: R.multiply(g, R.sign(x)))
_of_one("relax.negative", lambda x, y, g: R.negative(g))
_of_one("relax.exp", lambda x, y, g: R.multiply(g, y))
_of_one("relax.log", lambda x, y, g: R.divide(g, x))
_of_one("relax.sqrt", lambda x, y, g: R.divide(R.multiply(number(0.5, x), g), y))
_of_one("relax.rsqrt", lambda x, y, g: R.multiply(
    R.multiply(number(-0.5, x), g), R.divide(y, x)))
_of_one("relax.square", lambda x, y, g: R.multiply(R.multiply(number(2, x), x), g))
_of_one("relax.sin", lambda x, y, g: R.multiply(g, R.cos(x)))
_of_one("relax.cos", lambda x, y, g: R.multiply(R.negative(g), R.sin(x)))
_of_one("relax.tan", lambda x, y, g: R.multiply(g, R.add(number(1, x), R.multiply(y, y))))
_of_one("relax.sinh", lambda x, y, g: R.multiply(g, R.cosh(x)))
_of_one("relax.cosh", lambda x, y, g: R.multiply(g, R.sinh(x)))
_of_one("relax.tanh", lambda x, y, g: R.multiply(g, _one_minus(R.multiply(y, y))))
_of_one("relax.asin", lambda x, y, g: R.divide(g, R.sqrt(_one_minus(R.multiply(x, x)))))
_of_one("relax.acos", lambda x, y, g: R.divide(
    R.negative(g), R.sqrt(_one_minus(R.multiply(x, x)))))
_of_one("relax.atan", lambda x, y, g: R.divide(g, R.add(number(1, x), R.multiply(x, x))))
_of_one("relax.sigmoid", lambda x, y, g: R.multiply(R.multiply(g, y), _one_minus(y)))
_of_one("relax.erf", lambda x, y, g: R.multiply(g, R.multiply(
    number(2 / math.sqrt(math.pi), x), R.exp(R.negative(R.multiply(x, x))))))
_of_one("relax.nn.relu", lambda x, y, g: _chosen(R.greater(x, number(0, x)), g))


def _silu(x: Expr, y: Expr, g: Expr) -> Expr:
    s = R.sigmoid(x)
    return R.multiply(g, R.add(s, R.multiply(y, _one_minus(s))))


def _gelu(x: Expr, y: Expr, g: Expr) -> Expr:
    below = R.multiply(number(0.5, x), R.add(
        number(1, x), R.erf(R.multiply(x, number(math.sqrt(0.5), x)))))
    density = R.multiply(number(1 / math.sqrt(2 * math.pi), x),
                         R.exp(R.multiply(number(-0.5, x), R.multiply(x, x))))
    return R.multiply(g, R.add(below, R.multiply(x, density)))


def _gelu_tanh(x: Expr, y: Expr, g: Expr) -> Expr:
    c, k = math.sqrt(2 / math.pi), 0.044715
    squared = R.multiply(x, x)
    t = R.tanh(R.multiply(number(c, x), R.multiply(x, R.add(
        number(1, x), R.multiply(number(k, x), squared)))))
    inner = R.multiply(number(c, x), R.add(number(1, x), R.multiply(number(3 * k, x), squared)))
    slope = R.add(R.multiply(number(0.5, x), R.add(number(1, x), t)), R.multiply(
        R.multiply(number(0.5, x), x), R.multiply(_one_minus(R.multiply(t, t)), inner)))
    return R.multiply(g, slope)


_of_one("relax.nn.silu", _silu)
_of_one("relax.nn.gelu", _gelu)
_of_one("relax.nn.gelu_tanh", _gelu_tanh)


@rule("relax.nn.leakyrelu")
def leakyrelu(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """1 above zero, alpha below."""
    x = call.args[0]
    return [R.where(R.greater(x, number(0, x)), grad,
                    R.multiply(number(call.attrs.alpha, x), grad))]


@rule("relax.nn.softplus")
def softplus(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """A sigmoid of beta * x, 1 above the threshold."""
    x, beta = call.args[0], call.attrs.beta
    scaled = x if beta == 1 else R.multiply(number(beta, x), x)
    return [R.where(R.greater(scaled, number(call.attrs.threshold, x)), grad,
                    R.multiply(grad, R.sigmoid(scaled)))]


@rule("relax.clip")
def clip(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """1 where the value was kept."""
    return [_chosen(R.equal(call.args[0], var), grad), None, None]


@rule("relax.astype", "relax.wrap_param")
def astype(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient in the dtype of the argument."""
    return [R.astype(grad, dtype_of(call.args[0]))]


# ------------------------------------------------------------------------------- of two variables


@rule("relax.add")
def add(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient of the sum for each."""
    return [fitted(bb, grad, x) for x in call.args]


@rule("relax.subtract")
def subtract(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient, and its opposite."""
    x, y = call.args
    return [fitted(bb, grad, x), fitted(bb, R.negative(grad), y)]


@rule("relax.multiply")
def multiply(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient times the other factor."""
    x, y = call.args
    return [fitted(bb, R.multiply(grad, y), x), fitted(bb, R.multiply(grad, x), y)]


@rule("relax.divide")
def divide(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """grad / y, and -grad * (x / y) / y."""
    x, y = call.args
    return [fitted(bb, R.divide(grad, y), x),
            fitted(bb, R.divide(R.multiply(R.negative(grad), var), y), y)]


@rule("relax.power")
def power(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """y * x ** (y - 1), and x ** y * log(x), which is of use where x is positive."""
    x, y = call.args
    less = R.power(x, R.subtract(y, number(1, var)))
    return [fitted(bb, R.multiply(R.multiply(grad, y), less), x),
            fitted(bb, R.multiply(R.multiply(grad, var), R.log(x)), y)]


def _of_larger(wins: Callable[[Expr, Expr], Expr]) -> Callable[..., list]:
    """The gradient for the operand that wins; half of it for each of two that are equal."""
    def gradient(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
        x, y = call.args
        half, zero = R.multiply(number(0.5, grad), grad), number(0, grad)
        equal = R.equal(x, y)
        return [fitted(bb, R.where(equal, half, R.where(wins(a, b), grad, zero)), a)
                for a, b in ((x, y), (y, x))]

    return gradient


rule("relax.maximum")(_of_larger(lambda a, b: R.greater(a, b)))
rule("relax.minimum")(_of_larger(lambda a, b: R.less(a, b)))


@rule("relax.where")
def where(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The gradient for what was chosen."""
    condition, x, y = call.args
    zero = number(0, grad)
    return [None, fitted(bb, R.where(condition, grad, zero), x),
            fitted(bb, R.where(condition, zero, grad), y)]


# ------------------------------------------------------------------------------- none


@rule("relax.equal", "relax.not_equal", "relax.less", "relax.less_equal", "relax.greater",
      "relax.greater_equal", "relax.logical_and", "relax.logical_or", "relax.logical_xor",
      "relax.logical_not", "relax.isfinite", "relax.isinf", "relax.isnan", "relax.ceil",
      "relax.floor", "relax.round", "relax.sign", "relax.trunc", "relax.zeros", "relax.ones",
      "relax.full", "relax.zeros_like", "relax.ones_like", "relax.full_like", "relax.arange",
      "relax.eye", "relax.eye_like", "relax.argmax", "relax.argmin", "relax.argsort",
      "relax.one_hot", "relax.shape_of", "relax.grad.no_grad")
def nothing(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The result does not change with small changes of the arguments."""
    return [None] * len(call.args)


@rule("relax.tril", "relax.triu")
def triangle(var: Var, call: Call, grad: Expr, bb: BlockBuilder) -> list:
    """The same triangle of the gradient."""
    build = R.tril if getattr(call.op, "name", "") == "relax.tril" else R.triu
    return [build(grad, *call.args[1:], **(call.attrs or {})), *[None] * (len(call.args) - 1)]
