"""AnnotateEntryFunc: the function that a module is run by is marked as its entry.

Before::

    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        A[0] = A[0] + T.float32(1)

After::

    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        T.func_attr({"tir.is_entry_func": True})
        A[0] = A[0] + T.float32(1)

That is the only function, or the only one that is called from outside.
"""

from __future__ import annotations

from ..ir.module import IRModule
from ..ir.transform import Pass, PassContext, PassInfo
from ..tir.function import PrimFunc
from .common import LowerError


def _run(mod: IRModule, ctx: PassContext) -> IRModule:
    """The module with its entry marked."""
    funcs = {v: f for v, f in mod.functions.items() if isinstance(f, PrimFunc)}
    if len(funcs) > 1:
        funcs = {v: f for v, f in funcs.items() if "global_symbol" in (f.attrs or {})}
    if len(funcs) != 1:
        raise LowerError(f"AnnotateEntryFunc: there are {len(funcs)} functions that could be the "
                         "entry; leave one of them a global symbol")
    (var, func), = funcs.items()
    out = mod.copy()
    out.functions[var] = func.with_attr("tir.is_entry_func", True)
    return out


def AnnotateEntryFunc() -> Pass:
    """Mark the function that a module is run by as its entry."""
    return Pass(_run, PassInfo("tir.AnnotateEntryFunc"))
