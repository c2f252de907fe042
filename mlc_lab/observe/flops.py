"""How many arithmetic operations a tensor program performs, counted from its loops.

Counted are the operations on values: arithmetic, min and max, and each intrinsic (exp, sqrt, ...)
as one. Indices, bounds and conditions are not counted. So a matrix product of n x m x k counts
2 n m k, whatever the loops look like. Of branches the larger one counts.
Loops whose extent is unknown, and `while`, make a program uncountable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..ir.dtype import lanes_of
from ..ir.module import IRModule
from ..tir import expr as e
from ..tir import stmt as s
from ..tir.function import PrimFunc

if TYPE_CHECKING:
    from ..ir.node import Node


class Uncountable(ValueError):
    """The number of operations cannot be told from the program: the message says why."""


_ARITHMETIC = (e.Add, e.Sub, e.Mul, e.Div, e.Mod, e.FloorDiv, e.FloorMod, e.Min, e.Max)
#: calls that compute nothing, and those that count for more than one operation
_CALL_COST = {
    "tir.if_then_else": 0, "tir.likely": 0, "tir.reinterpret": 0, "tir.assume": 0,
    "tir.ret": 0, "tir.fma": 2, "tir.tvm_storage_sync": 0,
}  # fmt: skip


def integer(expr: Any, sizes: Mapping[Any, int]) -> int:
    """Value of an index expression, `sizes` giving that of variables (by Var or by name).

    Raises Uncountable for a variable that `sizes` does not know.
    """
    kind = type(expr)
    if kind is e.IntImm:
        return expr.value
    if isinstance(expr, e.Var):
        for key in (expr, expr.name):
            if key in sizes:
                return sizes[key]
        raise Uncountable(f"the size {expr.name} is not known")
    if kind is e.Cast:
        return integer(expr.value, sizes)
    operation = _INTEGER.get(kind)
    if operation is None:
        raise Uncountable(f"the extent {expr} cannot be evaluated")
    return operation(integer(expr.a, sizes), integer(expr.b, sizes))


_INTEGER = {
    e.Add: lambda a, b: a + b,
    e.Sub: lambda a, b: a - b,
    e.Mul: lambda a, b: a * b,
    e.FloorDiv: lambda a, b: a // b,
    e.FloorMod: lambda a, b: a % b,
    e.Div: lambda a, b: int(a / b),
    e.Min: min,
    e.Max: max,
}


def count_value(expr: Any) -> int:
    """Operations to compute one value, all its lanes."""
    kind = type(expr)
    if kind in _LEAVES:
        return 0
    if kind is e.Select:
        return max(count_value(expr.true_value), count_value(expr.false_value))
    if kind is e.Call:
        name = getattr(expr.op, "name", "")
        if name == "tir.if_then_else":
            return max(map(count_value, expr.args[1:]))
        # LLVM's sum of the lanes of a vector gives one number
        counted = expr.args[-1] if name == "tir.call_llvm_pure_intrin" else expr
        own = _CALL_COST.get(name, 1) * lanes_of(counted.dtype)
        return own + sum(map(count_value, expr.args))
    if kind is e.Let:
        return count_value(expr.value) + count_value(expr.body)
    own = lanes_of(expr.dtype) if kind in _ARITHMETIC else 0
    return own + sum(count_value(child) for child in expr.children()
                     if isinstance(child, e.PrimExpr))


#: what is no computation, and loads, whose indices do not count
_LEAVES = {e.Var, e.SizeVar, e.IntImm, e.FloatImm, e.StringImm, e.BufferLoad, e.Ramp}


def _stmt(node: Node, sizes: Mapping[Any, int]) -> int:
    if isinstance(node, (s.BufferStore, s.Evaluate)):
        return count_value(node.value)
    if isinstance(node, s.For):
        inner = _stmt(node.body, sizes)
        return inner * integer(node.extent, sizes) if inner else 0
    if isinstance(node, s.SeqStmt):
        return sum(_stmt(child, sizes) for child in node.seq)
    if isinstance(node, s.BlockRealize):
        block = node.block
        # The init of a reduction runs once for each element, not once for each iteration.
        init = _stmt(block.init, sizes) if block.init is not None else 0
        if init:
            raise Uncountable("the init of a reduction computes something")
        return _stmt(block.body, sizes)
    if isinstance(node, s.IfThenElse):
        other = _stmt(node.else_case, sizes) if node.else_case is not None else 0
        return max(_stmt(node.then_case, sizes), other)
    if isinstance(node, s.While):
        raise Uncountable("how often a while loop runs is not known")
    if isinstance(node, s.LetStmt):
        return count_value(node.value) + _stmt(node.body, sizes)
    body = getattr(node, "body", None)
    return _stmt(body, sizes) if body is not None else 0


def count(program: object, sizes: Mapping[Any, int] | None = None) -> int:
    """Arithmetic operations of one run of a PrimFunc, or of all functions of an IRModule.

    `sizes` gives the value of symbolic sizes, by variable or by name. Raises Uncountable where the
    program does not tell.
    """
    if isinstance(program, PrimFunc):
        return _stmt(program.body, sizes or {})
    if isinstance(program, IRModule):
        functions = program.functions.values()
        return sum(count(f, sizes) for f in functions if isinstance(f, PrimFunc))
    raise TypeError(f"flops.count takes a PrimFunc or an IRModule, got {type(program).__name__}")
