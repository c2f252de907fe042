"""LowerIntrin: operations take the form that is fastest on the machine.

Before::

    B[i // 8] = A[i % 8]                                  # i in 0 .. 63, so never negative
    C[i] = T.pow(X[i], T.float32(3))
    D[i] = T.if_then_else(i < 60, T.float32(1), T.float32(0))

After::

    B[T.Div(i, 8)] = A[T.Mod(i, 8)]
    C[i] = X[i] * X[i] * X[i]
    D[i] = T.Select(i < 60, T.float32(1), T.float32(0))

- The machine's division rounds toward zero; where both operands are provably not negative, that is
  the same. (Where they are not, the code generator adds the correction.)
- A square or a cube is a product (strength reduction): a call of `pow` takes some fifty times as
  long.
- A choice of which both sides are safe to evaluate and cost less than a branch evaluates both
  (if-conversion).

Intrinsics that have a rule for the target (`register_intrin_lowering`) are replaced by what it
gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from ..arith import Analyzer
from ..ir import dtype as dt
from ..ir.transform import Pass
from ..tir.expr import (
    EQ, GE, GT, LE, LT, NE, Add, And, BinaryOp, Broadcast, BufferLoad, Call, Cast, Div, FloatImm,
    FloorDiv, FloorMod, IntImm, IterVar, Let, Max, Min, Mod, Mul, Not, Or, PrimExpr, Range, Select,
    SizeVar, Sub, Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import Mutator
from ..tir.op import const, intrin_lowerings, shift_left, shift_right
from ..tir.stmt import AttrStmt, For, Stmt
from .common import bind_loop, contains, function_pass

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext
    from ..target.target import TargetLike


def _small_power(call: Call) -> PrimExpr:
    """x ** 2 and x ** 3 of floats as products; of 16 bits they are computed in float32."""
    x, exponent = call.args
    by = exponent.value if type(exponent) is Broadcast else exponent
    if type(by) is not FloatImm or by.value not in (2, 3):
        return call
    wide = dt.with_lanes("float32", dt.lanes_of(x.dtype)) if dt.bits_of(x.dtype) < 32 else x.dtype
    base = x if wide == x.dtype else Cast(wide, x)
    var = Var("base", wide)
    name = base if type(base) in (Var, BufferLoad) else var
    product = Mul(name, name) if by.value == 2 else Mul(Mul(name, name), name)
    value = product if name is base else Let(var, base, product)
    return value if wide == x.dtype else Cast(x.dtype, value)


_LEAVES = (IntImm, FloatImm, Var, SizeVar)
_CHEAP = (Add, Sub, Mul, Min, Max, Cast, Select, Not, And, Or, EQ, NE, LT, LE, GT, GE)


def _is_cheap(e: Node, depth: int = 3) -> bool:
    """Whether an expression is safe to evaluate speculatively, and costs less than a branch."""
    return type(e) in _LEAVES or (
        depth > 0 and type(e) in _CHEAP and all(_is_cheap(c, depth - 1) for c in e.children()))


def _cheap_choice(call: Call) -> PrimExpr:
    """A choice between two cheap values as a Select. (A choice by a vector is lane by lane already.
    Of a condition of several parts one may guard a load in another.)"""
    condition, *sides = call.args
    guarded = contains(condition, (And, Or)) and contains(condition, (BufferLoad,))
    if "x" in condition.dtype or guarded or not all(map(_is_cheap, sides)):
        return call
    return Select(condition, *sides)


def _fixed_point(call: Call) -> PrimExpr:
    """round(x * 2^left * y * 2^-(right + q)), in 64 bits."""
    lanes = dt.lanes_of(call.dtype)
    wide = dt.with_lanes("int64", lanes)
    x, y, left, right, q = (Cast(wide, a) for a in call.args[:5])
    shift = Add(right, q)
    one = const(1, wide)
    shifts_left = NE(call.args[5], const(0, call.args[5].dtype))
    product = Mul(Select(shifts_left, shift_left(x, left), x), y)
    half = shift_left(one, Sub(shift, one))
    return Cast(call.dtype, shift_right(Add(product, half), shift))


_RULES: dict[str, Callable[[Call], PrimExpr]] = {
    "tir.pow": _small_power, "tir.if_then_else": _cheap_choice,
    "tir.q_multiply_shift_per_axis": _fixed_point}


class _LowerIntrin(Mutator):
    def __init__(self, rules: dict[str, Callable[[Call], PrimExpr]]) -> None:
        super().__init__()
        self.rules = rules
        self.analyzer = Analyzer()

    def visit_For(self, node: For) -> Stmt:
        bind_loop(self.analyzer, node)
        return super().visit_For(node)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if isinstance(node.node, IterVar):
            var = node.node.var
            self.analyzer.bind(var, Range.from_min_extent(const(0, var.dtype), node.value), True)
        return self.default(node)

    def visit_FloorDiv(self, node: FloorDiv) -> PrimExpr:
        new = self.default(node)
        return Div(new.a, new.b) if self._natural(new) else new

    def visit_FloorMod(self, node: FloorMod) -> PrimExpr:
        new = self.default(node)
        return Mod(new.a, new.b) if self._natural(new) else new

    def visit_Call(self, node: Call) -> PrimExpr:
        node = self.default(node)
        rule = self.rules.get(getattr(node.op, "name", ""))
        new = None if rule is None else rule(node)
        return node if new is None or new is node else self.visit(new)

    def _natural(self, node: BinaryOp) -> bool:
        if node.dtype not in ("int32", "int64"):
            return node.dtype.startswith("uint") and "x" not in node.dtype
        bounds = self.analyzer.const_int_bound
        return bounds(node.a).min_value >= 0 and bounds(node.b).min_value >= 0


def LowerIntrin(target: TargetLike = None) -> Pass:
    """Bring operations into the form that is fastest on the machine.

    Without a target only rules for every target are used.
    """
    kind = getattr(getattr(target, "kind", None), "name", None) or str(target or "").split(" ")[0]

    def rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        """Divisions as the machine does them, intrinsics as the target has them."""
        if not contains(func.body, (FloorDiv, FloorMod, Call)):
            return func
        rules = {**_RULES, **intrin_lowerings(kind)}
        return func.with_body(_LowerIntrin(rules).visit(func.body))

    return function_pass("LowerIntrin", rewrite)
