"""How many arithmetic operations a tensor program performs, counted from its loops.

Counted are the operations on values: arithmetic, min and max, and each intrinsic (exp, sqrt, ...)
as one. Indices, bounds and conditions are not counted. So a matrix product of n x m x k counts
2 n m k, whatever the loops look like: an iteration that a condition on loops leaves out, as after a
split with a remainder, does not count. Of two branches the larger one counts.
Loops whose extent is unknown, and `while`, make a program uncountable.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arith.expr_util import conjuncts
from ..ir.dtype import lanes_of
from ..ir.module import IRModule
from ..ir.recursion import grows_stack
from ..tir import expr as e
from ..tir import stmt as s
from ..tir.function import PrimFunc
from ..tir.functor import free_vars

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


#: loops by their variables
_Loops = dict[e.Var, s.For]


def _stmt(node: Node, sizes: Mapping[Any, int], loops: _Loops) -> int | Fraction:
    """Operations of a statement in one iteration of the `loops` around it, on average."""
    if isinstance(node, (s.BufferStore, s.Evaluate)):
        return count_value(node.value)
    if isinstance(node, s.For):
        inner = _stmt(node.body, sizes, {**loops, node.loop_var: node})
        return inner * integer(node.extent, sizes) if inner else 0
    if isinstance(node, s.SeqStmt):
        return sum(_stmt(child, sizes, loops) for child in node.seq)
    if isinstance(node, s.BlockRealize):
        block = node.block
        # The init of a reduction runs once for each element, not once for each iteration.
        init = _stmt(block.init, sizes, loops) if block.init is not None else 0
        if init:
            raise Uncountable("the init of a reduction computes something")
        inner = _stmt(block.body, sizes, loops)
        return inner * _share(node.predicate, sizes, loops) if inner else 0
    if isinstance(node, s.IfThenElse):
        then = _stmt(node.then_case, sizes, loops)
        if node.else_case is not None:
            return max(then, _stmt(node.else_case, sizes, loops))
        return then * _share(node.condition, sizes, loops) if then else 0
    if isinstance(node, s.While):
        raise Uncountable("how often a while loop runs is not known")
    if isinstance(node, s.LetStmt):
        return count_value(node.value) + _stmt(node.body, sizes, loops)
    body = getattr(node, "body", None)
    return _stmt(body, sizes, loops) if body is not None else 0


#: iterations that are tried, of the loops of which one condition speaks
_TRIED = 1 << 20


def _share(condition: e.PrimExpr, sizes: Mapping[Any, int], loops: _Loops) -> Fraction:
    """The part of the iterations of some loops in which a condition holds. What cannot be tried, or
    speaks of something else than loops, counts as true."""
    share = Fraction(1)
    groups: list[tuple[set[e.Var], list[e.PrimExpr]]] = []  # that have no loop in common
    for part in conjuncts(condition):
        used, parts = {v for v in free_vars(part) if v in loops}, [part]
        for group in [g for g in groups if g[0] & used]:
            groups.remove(group)
            used, parts = used | group[0], parts + group[1]
        groups.append((used, parts))
    for used, parts in groups:
        try:
            share *= _tried(parts, [loops[v] for v in loops if v in used], sizes)
        except Uncountable:
            continue
    return share


def _tried(conditions: list[e.PrimExpr], loops: list[s.For], sizes: Mapping[Any, int]) -> Fraction:
    ranges = [(integer(lp.min, sizes), integer(lp.extent, sizes)) for lp in loops]
    total = prod(n for _, n in ranges)
    if not 0 < total <= _TRIED:
        raise Uncountable("too many iterations to try, or none")
    grids = np.ix_(*(np.arange(low, low + n) for low, n in ranges))
    values = {lp.loop_var: grid for lp, grid in zip(loops, grids)}
    holds = np.ones([n for _, n in ranges], bool)
    for condition in conditions:
        holds &= _array(condition, values, sizes)
    return Fraction(int(holds.sum()), total)


def _array(expr: Any, values: Mapping[e.Var, Any], sizes: Mapping[Any, int]) -> Any:
    """An expression over whole grids of loop variables."""
    if expr in values:
        return values[expr]
    kind = type(expr)
    if kind is e.Not:
        return np.logical_not(_array(expr.a, values, sizes))
    if kind is e.Call and getattr(expr.op, "name", "") == "tir.likely":
        return _array(expr.args[0], values, sizes)
    if kind is e.Cast:
        return _array(expr.value, values, sizes)
    if kind in _OVER_GRIDS:
        return _OVER_GRIDS[kind](_array(expr.a, values, sizes), _array(expr.b, values, sizes))
    return integer(expr, sizes)


_OVER_GRIDS: dict[type, Any] = {
    e.Add: operator.add, e.Sub: operator.sub, e.Mul: operator.mul,
    e.FloorDiv: operator.floordiv, e.FloorMod: operator.mod, e.Min: np.minimum, e.Max: np.maximum,
    e.LT: operator.lt, e.LE: operator.le, e.GT: operator.gt, e.GE: operator.ge,
    e.EQ: np.equal, e.NE: np.not_equal, e.And: np.logical_and, e.Or: np.logical_or,
}


@grows_stack
def count(program: object, sizes: Mapping[Any, int] | None = None) -> int:
    """Arithmetic operations of one run of a PrimFunc, or of all functions of an IRModule.

    `sizes` gives the value of symbolic sizes, by variable or by name. Raises Uncountable where the
    program does not tell.
    """
    if isinstance(program, PrimFunc):
        return int(_stmt(program.body, sizes or {}, {}))
    if isinstance(program, IRModule):
        functions = program.functions.values()
        return sum(count(f, sizes) for f in functions if isinstance(f, PrimFunc))
    raise TypeError(f"flops.count takes a PrimFunc or an IRModule, got {type(program).__name__}")
