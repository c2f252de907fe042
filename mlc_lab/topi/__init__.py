"""TOPI: tensor operators as tensor expressions, under TVM's names and with its block names."""

from ..te.tensor import TENSOR_OPERATORS as _OPERATORS
from . import nn
from .broadcast import (
    add, broadcast_to, divide, equal, floor_divide, floor_mod, greater, greater_equal, less,
    less_equal, maximum, minimum, mod, multiply, not_equal, power, subtract,
)
from .elementwise import (
    abs, cast, ceil, cos, erf, exp, floor, identity, log, negative, rsqrt, sigmoid, sin, sqrt,
    tanh,
)
from .nn import matmul
from .reduction import max, min, prod, sum
from .transform import reshape, transpose

_OPERATORS.update({
    "add": add, "subtract": subtract, "multiply": multiply, "divide": divide,
    "floor_divide": floor_divide, "floor_mod": floor_mod, "negative": negative, "cast": cast})

__all__ = [
    "abs", "add", "broadcast_to", "cast", "ceil", "cos", "divide", "equal", "erf", "exp", "floor",
    "floor_divide", "floor_mod", "greater", "greater_equal", "identity", "less", "less_equal",
    "log", "matmul", "max", "maximum", "min", "minimum", "mod", "multiply", "negative", "nn",
    "not_equal", "power", "prod", "reshape", "rsqrt", "sigmoid", "sin", "sqrt", "subtract", "sum",
    "tanh", "transpose",
]
