"""EliminateCommonSubexpr: what was computed before is not computed again.

A binding whose value has no effects and is structurally equal to one that is known becomes a
renaming of its variable; CanonicalizeBindings and DeadCodeElimination remove those. What a dataflow
block computes is known after it only through the variables that it gives out.

before::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            lv = R.exp(x)
            lv1 = R.exp(x)
            gv = R.add(lv, lv1)
            R.output(gv)
        return gv

after `EliminateCommonSubexpr()`::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            lv = R.exp(x)
            lv1 = lv
            gv = R.add(lv, lv)
            R.output(gv)
        return gv

Value numbering by structural hash, over extended basic blocks (see Muchnick, "Advanced Compiler
Design and Implementation", section 12.4).
"""

from __future__ import annotations

from typing import Any


from ...ir.structural import structural_equal, structural_hash
from .in_order import InOrder
from .in_place import written_in_place
from .rewriting import (
    Binding, BindingBlock, Call, Constant, DataflowBlock, DataflowVar, Expr, Function, If,
    MatchCast, Pass, PrimValue, SeqExpr, ShapeExpr, Var, VarBinding,
    contains_impure_call, make_function_pass, op_name, same_bindings, with_body,
)

_LEAVES = (Var, Constant, ShapeExpr, PrimValue)
#: calls without effects of which each gives a place of its own
_ALLOCATORS = {"relax.builtin.alloc_tensor", "relax.memory.alloc_storage",
               "relax.memory.alloc_tensor", "relax.vm.alloc_storage", "relax.vm.alloc_tensor"}


class _Value:
    """An expression as a key: equal to those that are structurally equal."""

    __slots__ = ("expr", "hash")

    def __init__(self, expr: Expr) -> None:
        self.expr, self.hash = expr, structural_hash(expr)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: Any) -> bool:
        return structural_equal(self.expr, other.expr) is True


def EliminateCommonSubexpr(call_only: bool = False) -> Pass:
    """Compute equal expressions once; with `call_only` only calls are looked at."""
    return make_function_pass(
        "EliminateCommonSubexpr",
        lambda func, mod: with_body(func, _Eliminator(
            call_only, written_in_place(func)).expr(func.body)),
        EliminateCommonSubexpr.__doc__, 1)


class _Eliminator(InOrder):
    def __init__(self, call_only: bool, written: set[Var]) -> None:
        super().__init__()
        self.call_only = call_only
        #: what is written into in place keeps memory of its own
        self.written = written
        #: what was computed before, and the variable that holds it
        self.known: dict[_Value, Var] = {}

    def seq(self, expr: SeqExpr) -> Expr:
        before = self.known
        self.known = dict(before)
        try:
            return super().seq(expr)
        finally:
            self.known = before

    def function(self, func: Function) -> Function:
        before, self.known = self.known, {}
        try:
            return super().function(func)
        finally:
            self.known = before

    def block(self, block: BindingBlock) -> BindingBlock:
        known = self.known
        dataflow = type(block) is DataflowBlock
        out: list[Binding] = []
        outside: dict[_Value, Var] = {}
        for binding in block.bindings:
            value = self.expr(binding.value)
            var = binding.var
            key = None if var in self.written else self.key(binding, value)
            first = known.get(key) if key is not None else None
            if first is not None and first.struct_info_ == var.struct_info_:
                out.append(VarBinding(var, first))
                self.replace.vars[var] = first
            else:
                if key is not None:
                    known[key] = var
                out.append(binding if value is binding.value else (
                    MatchCast(var, value, binding.struct_info) if type(binding) is MatchCast
                    else VarBinding(var, value)))
            if key is not None and type(var) is Var:
                outside.setdefault(key, var)
        if dataflow:  # the variables of the block are not seen after it
            for binding in block.bindings:
                if type(binding.var) is not DataflowVar:
                    self.replace.vars.pop(binding.var, None)
            for key, var in list(known.items()):
                if type(var) is DataflowVar:
                    del known[key]
                    if key in outside:
                        known[key] = outside[key]
        return same_bindings(block, out)

    def key(self, binding: Binding, value: Expr) -> _Value | None:
        """What identifies a computation; None for what must not or need not be shared."""
        if isinstance(value, (*_LEAVES, Function, If)) or contains_impure_call(value):
            return None
        if type(value) is Call and op_name(value) in _ALLOCATORS:
            return None
        if self.call_only and type(value) is not Call:
            return None
        if type(binding) is MatchCast:
            return None
        return _Value(value)


__all__ = ["EliminateCommonSubexpr"]
