"""Filter: of the functions of a module those stay that a condition holds for.

    Filter(lambda func: "tir.is_entry_func" in func.attrs)(mod)
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.module import IRModule
from ..ir.transform import Pass, PassContext, PassInfo
from ..tir.function import PrimFunc


def Filter(fcond: Callable[[PrimFunc], bool]) -> Pass:
    """Keep those functions of a module that a condition holds for.

    Functions that are no PrimFunc stay.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        kept = {v: f for v, f in mod.functions.items()
                if not isinstance(f, PrimFunc) or fcond(f)}
        return IRModule(kept, mod.attrs, mod.global_infos)

    run.__doc__ = "The module without the functions that the condition does not hold for."
    return Pass(run, PassInfo("tir.Filter"))
