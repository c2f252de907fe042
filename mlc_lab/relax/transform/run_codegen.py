"""RunCodegen: functions marked `Codegen` are handed to the library of that name.

A library is a function registered by `register_library(name, make)`: `make(func)` gets the Relax
function and answers a function f(*inputs, *outputs) that writes into its last arguments. It is
registered under the function's global symbol, and calls become `R.call_dps_packed`.

before::

    @R.function
    def fused_relax_matmul_numpy(x: R.Tensor((4, 8), "float32"),
                                 w: R.Tensor((8, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        R.func_attr({"Codegen": "numpy"})
        @R.function
        def local_func(x_1: R.Tensor((4, 8), "float32"),
                       w_1: R.Tensor((8, 4), "float32")) -> R.Tensor((4, 4), "float32"):
            R.func_attr({"Composite": "numpy.matmul"})
            with R.dataflow():
                gv_1 = R.matmul(x_1, w_1)
                R.output(gv_1)
            return gv_1

        output: R.Tensor((4, 4), "float32") = local_func(x, w)
        return output

    @R.function
    def main(x: R.Tensor((4, 8), "float32"),
             w: R.Tensor((8, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        cls = Module
        with R.dataflow():
            gv: R.Tensor((4, 4), "float32") = cls.fused_relax_matmul_numpy(x, w)
            R.output(gv)
        return gv

after `RunCodegen()`::

    @R.function
    def main(x: R.Tensor((4, 8), "float32"),
             w: R.Tensor((8, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        with R.dataflow():
            gv = R.call_dps_packed("fused_relax_matmul_numpy", (x, w),
                                   out_sinfo=R.Tensor((4, 4), "float32"))
            R.output(gv)
        return gv
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ...ir.diagnostics import MLCError
from ...runtime import register_func
from ...tir import expr as E
from ..libraries import LIBRARIES
from .rewriting import (
    CALL_DPS_PACKED, Call, Expr, ExternFunc, Function, GlobalVar, IRModule, Pass, PassContext,
    Replacer, Tuple, attr, make_pass, replace_functions,
)


class LibraryError(MLCError, ValueError):
    """A function is marked for a library that is not there."""


def RunCodegen(target_options: Mapping[str, Any] | None = None,
               entry_functions: Sequence[str] | None = None) -> Pass:
    """Dispatch functions marked `Codegen` to registered libraries.

    `target_options` maps a library's name to keyword arguments for it. Raises LibraryError for a
    library that is not registered.
    """
    options = dict(target_options or {})

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        externs: dict[GlobalVar, ExternFunc] = {}
        for var, func in mod.functions.items():
            library = attr(func, "Codegen") if isinstance(func, Function) else None
            if library is None:
                continue
            if library not in LIBRARIES:
                have = ", ".join(sorted(LIBRARIES)) or "none"
                raise LibraryError(f"function {var.name_hint!r} is for library {library!r}, which "
                                   f"is not registered (those that are: {have}); register it with "
                                   "relax.register_library(name, make)")
            symbol = attr(func, "global_symbol", var.name_hint)
            register_func(symbol, LIBRARIES[library](func, **dict(options.get(library, {}))),
                          override=True)
            externs[var] = ExternFunc(symbol)
        if not externs:
            return mod
        calls = _Dispatch(externs)
        changes = {v: new for v, f in mod.functions.items()
                   if isinstance(f, Function) and v not in externs
                   and (new := calls(f)) is not f}
        return replace_functions(mod, changes, removed=externs)

    return make_pass("RunCodegen", run, RunCodegen.__doc__)


class _Dispatch(Replacer):
    def __init__(self, externs: Mapping[Any, ExternFunc]) -> None:  # by GlobalVar
        super().__init__()
        self.externs = externs

    def _call(self, node: Call) -> Expr:
        extern = self.externs.get(node.op)
        if extern is None:
            return super()._call(node)
        return Call.from_fields(E.Op.get(CALL_DPS_PACKED), (extern, Tuple(self._many(node.args))),
                                None, (node.struct_info_,), node.struct_info_)

    _METHODS = {**Replacer._METHODS, Call: _call}


__all__ = ["LibraryError", "RunCodegen"]
