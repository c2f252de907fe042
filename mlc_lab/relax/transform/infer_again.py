"""Struct info inferred again for a whole function, after its parameters changed."""

from __future__ import annotations

from typing import Mapping

from ..expr_functor import PyExprMutator
from .rewriting import Expr, Function, MatchCast, Var, VarBinding


class _Infer(PyExprMutator):
    """Rebuilds every binding, so that the variables get the struct info of the new values."""

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        var = binding.var
        if value is not binding.value and value.struct_info_ is not None:
            var = self.with_struct_info(var, value.struct_info_)
            if var is not binding.var:
                self.set_var_remap(binding.var, var)
        self.builder_.emit_normalized(
            binding if value is binding.value and var is binding.var else VarBinding(var, value))

    def visit_match_cast_(self, binding: MatchCast) -> None:
        value = self.visit_expr(binding.value)
        self.builder_.emit_normalized(
            binding if value is binding.value else MatchCast(
                binding.var, value, binding.struct_info))


def infer_again(func: Function, params: tuple[Var, ...]) -> Function:
    """The function with other parameters, everything inferred from them."""
    if all(a is b for a, b in zip(params, func.params)):
        return func
    return infer_with(func, params, dict(zip(func.params, params)))


def infer_with(func: Function, params: tuple[Var, ...], table: Mapping[Var, Expr]) -> Function:
    """The function of `params`, with variables replaced by other values, inferred again."""
    mutator = _Infer()
    for old, new in table.items():
        if new is not old:
            mutator.set_var_remap(old, new)
    body = mutator.visit_with_new_scope(func.body, params)
    return Function(params, body, None, func.is_pure, func.attrs)


__all__ = ["infer_again", "infer_with"]
