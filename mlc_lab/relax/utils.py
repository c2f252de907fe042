"""Small services under TVM's names: `relax.utils.convert_to_expr`, `gen_call_tir_inputs`, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tir import expr as E
from ..tir.functor import substitute
from .analysis import defined_symbolic_vars
from .args_converter import args_converter
from .block_builder import BlockBuilder
from .expr import Expr, Function, Tuple, as_expr, const
from .expr_functor import PyExprMutator
from .te_call import call_te

if TYPE_CHECKING:
    from collections.abc import Callable


def convert_to_expr(value: object) -> Expr:
    """A Python value as a Relax expression; tuples and lists become Tuples."""
    return as_expr(value)


def gen_call_tir_inputs(func: Callable[..., Any], *args: object, **kwargs: object) -> tuple:
    """(PrimFunc, call arguments, out_sinfo, tir_vars) of a tensor expression's function."""
    builder = BlockBuilder()
    call = call_te(builder, func, args, dict(kwargs))
    prim = builder.lookup_function(call.args[0])
    return prim, call.args[1], list(call.sinfo_args), call.args[2] if len(call.args) > 2 else None


class _Copier(PyExprMutator):
    """A function with variables and symbolic dimensions of its own."""

    def __init__(self, func: Function) -> None:
        super().__init__()
        self.dims = {v: type(v)(v.name, v.dtype) for v in defined_symbolic_vars(func)}

    def visit_prim_expr(self, expr: E.PrimExpr) -> E.PrimExpr:
        return substitute(expr, self.dims) if self.dims else expr

    def visit_var_def_(self, var: Any) -> Any:
        new = type(var).from_fields(var.name_hint, self.visit_struct_info(var.struct_info_))
        self.set_var_remap(var, new)
        return new


def copy_with_new_vars(func: Function) -> Function:
    """The same function, with new variables, symbolic ones too: both can stand in a module."""
    return _Copier(func).visit_expr(func)


__all__ = ["Tuple", "args_converter", "const", "convert_to_expr", "copy_with_new_vars",
           "gen_call_tir_inputs"]
