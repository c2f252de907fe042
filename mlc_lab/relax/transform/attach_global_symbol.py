"""AttachGlobalSymbol: every function gets its name in the module as its global symbol.

Code generation names functions by their symbol, so this runs before it.

before::

    @R.function(private=True)
    def f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return x

after `AttachGlobalSymbol()`::

    @R.function
    def f(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return x
"""

from __future__ import annotations

from ...tir.function import PrimFunc
from .rewriting import Function, IRModule, Pass, PassContext, attr, make_pass, replace_functions


def AttachGlobalSymbol() -> Pass:
    """Set `global_symbol` of every function to its name."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return replace_functions(mod, {
            var: func.with_attr("global_symbol", var.name_hint)
            for var, func in mod.functions.items()
            if isinstance(func, (Function, PrimFunc))
            and attr(func, "global_symbol") != var.name_hint})

    return make_pass("AttachGlobalSymbol", run, AttachGlobalSymbol.__doc__)


__all__ = ["AttachGlobalSymbol"]
