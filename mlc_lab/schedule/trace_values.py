"""The values that a trace may mention, read from syntax trees: numbers, RVs, arithmetic, maps."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from ..ir.containers import is_sequence, is_tuple
from ..reading import LimitError, limits
from ..reading.python_text import written
from ..tir import op
from ..tir.expr import Broadcast, Cast, PrimExpr, Var
from ..tir.function import IndexMap
from ..tir.functor import pre_order
from .instruction import RangesMap


def checked(value: Any) -> Any:
    """A plain value of a trace."""
    if isinstance(value, (bytes, complex)) or value is ...:
        raise ValueError(f"a trace cannot contain {type(value).__name__}")
    if isinstance(value, int) and value.bit_length() > limits.INT_BITS:
        raise LimitError(f"a whole number of {value.bit_length()} bits fits no type")
    return value


_TYPES = {"bool", *(f"int{b}" for b in (8, 16, 32, 64)), *(f"uint{b}" for b in (8, 16, 32, 64)),
          "float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"}


_COMPARE: dict[type[ast.cmpop], Callable[..., Any]] = {
    ast.Lt: op.less, ast.LtE: op.less_equal, ast.Gt: op.greater, ast.GtE: op.greater_equal,
    ast.Eq: op.equal, ast.NotEq: op.not_equal}
#: functions that the values of a layout's padding are computed with, as they are printed
_FUNCTIONS = {"Div": op.div, "Select": op.select, **{name: getattr(op, name) for name in (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_not",
    "bitwise_or", "bitwise_xor", "ceil", "clz", "copysign", "cos", "cosh", "erf", "exp", "exp10",
    "exp2", "fabs", "floor", "fma", "fmod", "hypot", "if_then_else", "isfinite", "isinf", "isnan",
    "ldexp", "likely", "log", "log10", "log1p", "log2", "nearbyint", "nextafter", "popcount", "pow",
    "round", "rsqrt", "shift_left", "shift_right", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
    "trunc", "truncdiv", "truncmod")}}


class ValueReader:
    """Evaluates the values a trace may mention: literals, RVs, arithmetic, lambdas."""

    _OPERATORS: dict[type[ast.operator], Callable[..., Any]] = {
        ast.Add: op.add, ast.Sub: op.sub, ast.Mult: op.mul, ast.FloorDiv: op.floordiv,
        ast.Mod: op.floormod, ast.Div: op.div}

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self.scope = scope

    def _applied(self, body: ast.expr, names: Sequence[str], dtype: str
                 ) -> tuple[list[Var], Any]:
        """The parameters of a lambda, of a type, and what it gives."""
        initial = [Var(n, dtype) for n in names]
        return initial, ValueReader({**self.scope, **dict(zip(names, initial))}).of(body)

    def of(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return checked(node.value)
        if isinstance(node, ast.Name):
            if node.id in self.scope:
                return self.scope[node.id]
            raise ValueError(f"{node.id!r} is not defined before this line")
        if isinstance(node, ast.List):
            return [self.of(e) for e in node.elts]
        if isinstance(node, ast.Tuple):
            return tuple(self.of(e) for e in node.elts)
        if isinstance(node, ast.Dict) and None not in node.keys:
            keys = [self.of(k) for k in node.keys if k is not None]
            return dict(zip(keys, map(self.of, node.values)))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.of(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in self._OPERATORS:
            left, right = self.of(node.left), self.of(node.right)
            return self._OPERATORS[type(node.op)](left, right)
        if isinstance(node, ast.Lambda):
            names = [a.arg for a in node.args.args]
            initial, body = self._applied(node.body, names, "int32")
            if _casts(body, initial) and not _says_casts(node.body, names):
                initial, body = self._applied(node.body, names, "int64")
            final = body if is_sequence(body) else [body]
            if final and all(is_tuple(pair) for pair in final):
                return RangesMap(initial, [end for pair in final for end in pair])
            return IndexMap(initial, final)
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(
                node.func, "id", None)
            args = [self.of(a) for a in node.args]
            if name == "Var" and len(args) == 2 and args[1] in ("int32", "int64"):
                return Var(str(args[0]), args[1])  # found by its name: see ReplayTable
            if name in ("min", "max") and len(args) == 2:
                return (op.min_value_of if name == "min" else op.max_value_of)(*args)
            if name in ("Cast", "cast") and len(args) == 2 and args[0] in _TYPES:
                return op.cast(op.convert(args[1]), args[0])
            if name == "float" and args in (["nan"], ["inf"], ["-inf"]):
                return float(args[0])
            if name == "vscale" and not args:
                return op.call_intrin("int32", "tir.vscale")
            if name == "Broadcast" and len(args) == 2 and type(args[1]) is int:
                return Broadcast(op.convert(args[0]), args[1])
            if name in _TYPES and len(args) == 1 and not node.keywords:  # T.int64(4)
                value = float(args[0]) if args[0] in ("nan", "inf", "-inf") else args[0]
                return op.const(value, name)
            if name in _FUNCTIONS and not node.keywords:
                return _FUNCTIONS[name](*args)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return op.logical_not(self.of(node.operand))
        if isinstance(node, ast.BoolOp):
            join = op.logical_and if isinstance(node.op, ast.And) else op.logical_or
            return reduce(join, map(self.of, node.values))
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and (
                type(node.ops[0]) in _COMPARE):
            return _COMPARE[type(node.ops[0])](self.of(node.left), self.of(node.comparators[0]))
        raise ValueError(f"a schedule cannot contain {written(node)!r}: its values are numbers, "
                         "names, arithmetic and what primitives give")


def _casts(value: Any, indices: Sequence[Var]) -> bool:
    """Whether an index is cast somewhere: it met a number of another type."""
    if is_sequence(value):
        return any(_casts(v, indices) for v in value)
    return isinstance(value, PrimExpr) and any(
        type(n) is Cast and any(n.value is v for v in indices) for n in pre_order(value))


def _says_casts(body: ast.expr, names: Sequence[str]) -> bool:
    """Whether the text itself casts an index. If not, and one is cast, it is of the wider type.
    (A map within a map is none, and is not read twice.)"""
    for n in ast.walk(body):
        if isinstance(n, ast.Lambda):
            return True
        if isinstance(n, ast.Call) and n.args and getattr(n.args[-1], "id", "") in names:
            name = n.func.attr if isinstance(n.func, ast.Attribute) else getattr(n.func, "id", "")
            if name in ("Cast", "cast"):
                return True
    return False


__all__ = ["ValueReader", "checked"]
