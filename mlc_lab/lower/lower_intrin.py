"""LowerIntrin: divisions that round down become the machine's, where the operands allow it.

Before::

    B[i // 8] = A[i % 8]          # i in 0 .. 63, so never negative

After::

    B[T.Div(i, 8)] = A[T.Mod(i, 8)]

The machine's division rounds toward zero; where both operands are provably not negative, that is
the same. (Where they are not, the code generator adds the correction.)

Intrinsics that have a rule for the target (`register_intrin_lowering`) are replaced by what it
gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from ..arith import Analyzer
from ..ir.transform import Pass
from ..tir.expr import BinaryOp, Call, Div, FloorDiv, FloorMod, IterVar, Mod, PrimExpr, Range
from ..tir.function import PrimFunc
from ..tir.functor import Mutator
from ..tir.op import const, intrin_lowerings
from ..tir.stmt import AttrStmt, For, Stmt
from .common import contains, function_pass

if TYPE_CHECKING:
    from ..ir.transform import PassContext
    from ..target.target import TargetLike


class _LowerIntrin(Mutator):
    def __init__(self, rules: dict[str, Callable[[Call], PrimExpr]]) -> None:
        super().__init__()
        self.rules = rules
        self.analyzer = Analyzer()

    def visit_For(self, node: For) -> Stmt:
        self.analyzer.bind(node.loop_var, Range.from_min_extent(node.min, node.extent), True)
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
    """The pass, see the file's text; without a target only rules for every target are used."""
    kind = getattr(getattr(target, "kind", None), "name", None) or str(target or "").split(" ")[0]

    def rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        """Divisions as the machine does them, intrinsics as the target has them."""
        rules = intrin_lowerings(kind)
        if not contains(func.body, (FloorDiv, FloorMod, Call) if rules else (FloorDiv, FloorMod)):
            return func
        return func.with_body(_LowerIntrin(rules).visit(func.body))

    return function_pass("LowerIntrin", rewrite)
