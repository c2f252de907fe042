"""BindSymbolicVars: symbolic dimensions of functions become numbers (or other expressions).

before::

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            gv = R.exp(x)
            R.output(gv)
        return gv

after `BindSymbolicVars({"n": 8})`::

    @R.function
    def main(x: R.Tensor((8, 4), "float32")) -> R.Tensor((8, 4), "float32"):
        with R.dataflow():
            gv = R.exp(x)
            R.output(gv)
        return gv
"""

from __future__ import annotations

from typing import Any, Mapping

from ...tir import expr as E
from ..struct_info import as_dim, tir_vars_in_struct_info
from .bind_params import BindError
from .rewriting import Function, IRModule, Pass, PassContext, Replacer, make_pass, replace_functions


def BindSymbolicVars(binding_map: Mapping[Any, Any], func_name: str | None = None) -> Pass:
    """Fix symbolic dimensions, given by name or as tir.Var, of `func_name` (or of all functions
    that have a global symbol). Raises ValueError for one that no function has."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        if func_name is not None:
            var = mod.get_global_var(func_name)
            return replace_functions(mod, {var: bind_symbolic_vars(mod[var], binding_map)})
        changes, used = {}, set()
        for var, func in mod.functions.items():
            if isinstance(func, Function):
                table = {k: v for k, v in binding_map.items() if _find(func, k)}
                used.update(table)
                if table:
                    changes[var] = bind_symbolic_vars(func, table)
        missing = [k for k in binding_map if k not in used]
        if missing:
            raise BindError("no function has the symbolic dimension(s) "
                            + ", ".join(repr(getattr(k, "name", k)) for k in missing))
        return replace_functions(mod, changes)

    return make_pass("BindSymbolicVars", run, BindSymbolicVars.__doc__)


def bind_symbolic_vars(func: Function, binding_map: Mapping[Any, Any]) -> Function:
    """The function with symbolic dimensions fixed; see BindSymbolicVars."""
    dims: dict[E.Var, E.PrimExpr] = {}
    for key, value in binding_map.items():
        found = _find(func, key)
        if not found:
            have = ", ".join(v.name for v in _dims_of(func)) or "none"
            raise BindError(f"the function has no symbolic dimension {getattr(key, 'name', key)!r}"
                            f"; its parameters have: {have}")
        if len(found) > 1:
            raise BindError(f"several symbolic dimensions are called {key!r}: pass the tir.Var")
        dims[found[0]] = as_dim(value)
    return Replacer(dims=dims)(func) if dims else func


def _dims_of(func: Function) -> list[E.Var]:
    found: dict[E.Var, None] = {}
    for param in func.params:
        found.update(dict.fromkeys(tir_vars_in_struct_info(param.struct_info_)))
    return list(found)


def _find(func: Function, key: Any) -> list[E.Var]:
    if isinstance(key, E.Var):
        return [v for v in _dims_of(func) if v is key]
    return [v for v in _dims_of(func) if v.name == str(key)]


__all__ = ["BindSymbolicVars", "bind_symbolic_vars"]
