"""BindParams: parameters of a function become constants.

Symbolic dimensions that the constants' shapes fix are replaced everywhere in the function.

before::

    @R.function
    def main(x: R.Tensor((1, "m"), "float32"),
             w: R.Tensor(("m",), "float32")) -> R.Tensor((1, "m"), "float32"):
        with R.dataflow():
            gv = R.multiply(x, w)
            R.output(gv)
        return gv

after `BindParams("main", {"w": np.ones(4, "float32")})`::

    @R.function
    def main(x: R.Tensor((1, 4), "float32")) -> R.Tensor((1, 4), "float32"):
        with R.dataflow():
            gv = R.multiply(x, R.const([1.0, 1.0, 1.0, 1.0], "float32"))
            R.output(gv)
        return gv
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ...ir.diagnostics import MLCError
from ...tir import expr as E
from ..expr import as_expr
from ..normal import match_struct_info
from ..struct_info import BaseCheck, struct_info_base_check
from .infer_again import infer_with
from .rewriting import (
    Constant, Expr, Function, IRModule, Pass, PassContext, Replacer, Tuple, Var, make_pass,
    replace_functions,
)


class BindError(MLCError, ValueError):
    """What is bound is no parameter or dimension of the function, or does not fit it."""


def BindParams(func_name: str, params: Mapping[Any, Any] | Sequence[Any]) -> Pass:
    """Fix parameters of function `func_name`.

    `params` maps names (or the Vars) to tensors, numpy arrays, numbers or expressions. Raises
    ValueError for a name the function does not have or a value that does not fit.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        var = mod.get_global_var(func_name)
        new = bind_params(mod[var], params)
        return mod if new is mod[var] else replace_functions(mod, {var: new})

    return make_pass("BindParams", run, BindParams.__doc__)


def bind_params(func: Function, params: Mapping[Any, Any] | Sequence[Any]) -> Function:
    """The function with parameters fixed; see BindParams."""
    if not isinstance(params, Mapping):
        params = dict(zip((p.name_hint for p in func.params[-len(params):]), params))
    table: dict[Var, Expr] = {}
    dims: dict[E.Var, E.PrimExpr] = {}
    for key, value in params.items():
        param = _parameter(func, key)
        value = _as_value(value, param)
        info = value.struct_info_
        if info is not None and struct_info_base_check(param.struct_info, info) is (
                BaseCheck.FAIL_L0):
            raise BindError(f"parameter {param.name_hint!r} has struct info {param.struct_info_}; "
                            f"a value of {info} cannot be bound to it")
        table[param] = value
        if info is not None:
            match_struct_info(param.struct_info, info, dims)
    if not table:
        return func
    dims = {k: v for k, v in dims.items() if k is not v}
    _check_dims(func, table, dims)
    rest = tuple(p for p in func.params if p not in table)
    replace = Replacer(dims=dims)
    if all(replace.info(p.struct_info_) == v.struct_info_ for p, v in table.items()
           if v.struct_info_ is not None):
        return Replacer(table, dims)(Function.from_fields(
            rest, func.body, func.ret_struct_info, func.is_pure, func.attrs))
    # more is known of the values than the parameters said
    whole = replace(func)
    names = dict(zip(func.params, whole.params))
    kept = tuple(names[p] for p in rest)
    return infer_with(whole, kept, {names[p]: v for p, v in table.items()})


def _check_dims(func: Function, table: Mapping[Var, Expr], dims: Mapping) -> None:
    """Two values must not give one dimension two sizes."""
    replace = Replacer(dims=dims)
    for param, value in table.items():
        want = replace.info(param.struct_info_)
        if value.struct_info_ is not None and struct_info_base_check(
                want, value.struct_info_) is BaseCheck.FAIL_L0:
            raise BindError(f"the value bound to {param.name_hint!r} has struct info "
                            f"{value.struct_info_}, but the other values bound make it {want}")


def _parameter(func: Function, key: Any) -> Var:
    if isinstance(key, Var):
        if key in func.params:
            return key
        raise BindError(f"{key.name_hint!r} is no parameter of the function")
    found = [p for p in func.params if p.name_hint == str(key)]
    if len(found) == 1:
        return found[0]
    have = ", ".join(p.name_hint for p in func.params) or "none"
    if found:
        raise BindError(f"several parameters are called {key!r}: pass the Var itself")
    raise BindError(f"the function has no parameter {key!r}; it has: {have}")


def _as_value(value: Any, param: Var) -> Expr:
    """A Python value as a constant of the parameter's dtype."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, (list, tuple)) and not getattr(param.struct_info_, "dtype", ""):
        return Tuple([_as_value(v, param) for v in value])
    detach = getattr(value, "detach", None)
    if detach is not None:  # a torch tensor that wants gradients
        value = detach()
    if type(value).__name__ == "NDArray":
        return Constant(value)
    if isinstance(value, (int, float, bool)):
        from ..expr import const

        return const(value, getattr(param.struct_info_, "dtype", None) or None)
    return as_expr(value)


__all__ = ["BindError", "BindParams", "bind_params"]
