"""Rows of elementwise operators: of one tensor, of two, comparisons, logic, casts."""

from __future__ import annotations

from typing import Any

from ... import topi
from ...tir import op as O
from ...topi.broadcast import broadcast
from ..expr import Call, Expr
from .common import attr_row, immediate, legalize, prim, te_row

_UNARY = ("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos",
          "cosh", "erf", "exp", "floor", "isfinite", "isinf", "isnan", "log", "logical_not",
          "negative", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan",
          "tanh", "trunc")
_BINARY = ("add", "subtract", "multiply", "divide", "floor_divide", "power", "mod", "floor_mod",
           "maximum", "minimum", "log_add_exp", "atan2", "logical_and", "logical_or",
           "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
           "equal", "not_equal", "less", "less_equal", "greater", "greater_equal")

for _name in (*_UNARY, *_BINARY):
    te_row(_name, getattr(topi, _name))


def floor_mod(a: Any, b: Any) -> Any:
    """a % b with the sign of b, exact for floats too, as torch has it."""
    return broadcast("floor_mod", O.floormod, a, b)


te_row("floor_mod", floor_mod)

attr_row("astype", lambda x, attrs: topi.cast(x, attrs.dtype), "cast")
attr_row("wrap_param", lambda x, attrs: topi.cast(x, attrs.dtype), "cast")


@legalize("where")
def _where(bb: Any, call: Call) -> Expr:
    condition, a, b = call.args
    return bb.call_te(topi.where, condition, immediate(a), immediate(b))


@legalize("clip")
def _clip(bb: Any, call: Call) -> Expr:
    x, low, high = call.args
    return bb.call_te(topi.clip, x, prim(low), prim(high))


@legalize("ewise_fma")
def _fma(bb: Any, call: Call) -> Expr:
    def ewise_fma(a: Any, b: Any, c: Any) -> Any:
        return topi.add(topi.multiply(a, b), c)

    return bb.call_te(ewise_fma, *call.args)
