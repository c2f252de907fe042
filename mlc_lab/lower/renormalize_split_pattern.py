"""RenormalizeSplitPattern: quotients and remainders of an index fused of loops, loop by loop.

Before::

    A[(i * 32 + j) // 64, (i * 32 + j) % 64 // 32, (i * 32 + j) % 32]

After::

    A[(i + j // 32) // 2, (i + j // 32) % 2, j % 32]

Where j < 32, `Simplify` finds the rest: j // 32 is 0. A comparison with a number, `x < 64`, becomes
`x // 64 < 1`, and is written loop by loop as well. All of it holds for any values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.transform import Pass
from ..tir.expr import Add, BufferLoad, FloorDiv, FloorMod, GE, GT, LE, LT, Mul, PrimExpr
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, pre_order
from ..tir.op import add, as_int, const, floordiv, floormod, less, logical_not, mul
from .common import function_pass

if TYPE_CHECKING:
    from ..ir.transform import PassContext


def _terms(e: PrimExpr) -> tuple[PrimExpr, int, PrimExpr | None] | None:
    """x, c and y of x * c + y with a positive number c (y is None for x * c alone)."""
    parts: list[PrimExpr] = []
    stack = [e]
    while stack:
        item = stack.pop()
        if type(item) is Add:
            stack += [item.b, item.a]
        else:
            parts.append(item)
    for at, part in enumerate(parts):
        factor = as_int(part.b) if type(part) is Mul else None
        if type(part) is Mul and factor is not None and factor > 1:
            rest = None
            for other in (*parts[:at], *parts[at + 1:]):
                rest = other if rest is None else add(rest, other)
            return part.a, factor, rest
    return None


def quotient(a: PrimExpr, by: int) -> PrimExpr:
    """a // by."""
    if by == 1:
        return a
    inner = as_int(a.b) if isinstance(a, (FloorDiv, FloorMod)) else None
    if isinstance(a, FloorMod) and inner is not None and inner > 0 and inner % by == 0:
        return remainder(quotient(a.a, by), inner // by)
    if isinstance(a, FloorDiv) and inner is not None and inner > 0:
        return quotient(a.a, inner * by)
    found = _terms(a)
    if found is not None:
        x, factor, y = found
        if factor % by == 0:
            whole = mul(x, const(factor // by, x.dtype))
            return whole if y is None else add(whole, quotient(y, by))
        if by % factor == 0:
            return quotient(x if y is None else add(x, quotient(y, factor)), by // factor)
    return floordiv(a, const(by, a.dtype))


def remainder(a: PrimExpr, by: int) -> PrimExpr:
    """a % by."""
    if by == 1:
        return const(0, a.dtype)
    found = _terms(a)
    if found is not None:
        x, factor, y = found
        if factor % by == 0:
            return const(0, a.dtype) if y is None else remainder(y, by)
        if by % factor == 0:
            whole = x if y is None else add(x, quotient(y, factor))
            out = mul(remainder(whole, by // factor), const(factor, a.dtype))
            return out if y is None else add(out, remainder(y, factor))
    return floormod(a, const(by, a.dtype))


class _Renormalize(Mutator):
    def visit_FloorDiv(self, node: FloorDiv) -> PrimExpr:
        a, by = self.visit(node.a), as_int(node.b)
        if by is None or by <= 0:
            return self.default(node)
        return quotient(a, by)

    def visit_FloorMod(self, node: FloorMod) -> PrimExpr:
        a, by = self.visit(node.a), as_int(node.b)
        if by is None or by <= 0:
            return self.default(node)
        return remainder(a, by)

    def visit_LT(self, node: LT) -> PrimExpr:
        return self.less(node, node.a, node.b, False)

    def visit_GT(self, node: GT) -> PrimExpr:
        return self.less(node, node.b, node.a, False)

    def visit_LE(self, node: LE) -> PrimExpr:
        return self.less(node, node.b, node.a, True)

    def visit_GE(self, node: GE) -> PrimExpr:
        return self.less(node, node.a, node.b, True)

    def less(self, node: PrimExpr, a: PrimExpr, b: PrimExpr, negated: bool) -> PrimExpr:
        """a < b, or its contrary, by a quotient where b is a number."""
        bound = as_int(b)
        if bound is None or bound <= 0 or a.dtype not in ("int32", "int64") or any(
                isinstance(n, BufferLoad) for n in pre_order(a)):
            return self.default(node)
        new = less(quotient(self.visit(a), bound), const(1, a.dtype))
        return logical_not(new) if negated else new


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Fused indices loop by loop."""
    return func.with_body(_Renormalize().visit(func.body))


def RenormalizeSplitPattern() -> Pass:
    """Write quotients and remainders of an index that was fused of loops loop by loop."""
    return function_pass("RenormalizeSplitPattern", _rewrite)


__all__ = ["RenormalizeSplitPattern", "quotient", "remainder"]
