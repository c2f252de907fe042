"""RemoveUnusedParameters: private functions take only what they use; calls pass only that.

before::

    @R.function(private=True)
    def f(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        z = R.exp(x)
        return z

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        gv: R.Tensor((4,), "float32") = cls.f(x, x)
        return gv

after `RemoveUnusedParameters()`::

    @R.function(private=True)
    def f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        z = R.exp(x)
        return z

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        gv: R.Tensor((4,), "float32") = cls.f(x)
        return gv
"""

from __future__ import annotations

from ..struct_info import definable_tir_vars, tir_vars_in_struct_info
from .grouping import dims_used
from .rewriting import (
    Function, IRModule, Pass, PassContext, Var, bindings_of, make_pass, used_vars,
)
from .signatures import change_signatures, private_callees


def RemoveUnusedParameters() -> Pass:
    """Drop parameters that a private function does not use."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        changes, calls = {}, {}
        for var, func in private_callees(mod).items():
            keep = [i for i, p in enumerate(func.params) if p in _needed(func)]
            if len(keep) < len(func.params):
                changes[var] = Function.from_fields(
                    tuple(func.params[i] for i in keep), func.body, func.ret_struct_info,
                    func.is_pure, func.attrs)
                calls[var] = lambda args, keep=keep: [args[i] for i in keep]
        return change_signatures(mod, changes, calls)

    return make_pass("RemoveUnusedParameters", run, RemoveUnusedParameters.__doc__)


def _needed(func: Function) -> set[Var]:
    """The parameters that are used, or that give a symbolic dimension its value."""
    used = set(used_vars(func.body))
    dims = set(dims_used(list(bindings_of(func)))) | set(
        tir_vars_in_struct_info(func.ret_struct_info))
    for p in func.params:
        if p in used:
            dims |= set(tir_vars_in_struct_info(p.struct_info_))
    known = {v for p in func.params if p in used for v in definable_tir_vars(p.struct_info_)}
    needed = {p for p in func.params if p in used}
    for p in func.params:
        gives = set(definable_tir_vars(p.struct_info_))
        if p not in needed and gives & (dims - known):
            needed.add(p)
            known |= gives
    return needed


__all__ = ["RemoveUnusedParameters"]
