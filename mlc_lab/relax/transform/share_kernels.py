"""ShareKernels: kernels that are the same function become one.

Before::

    lv = R.call_tir(cls.add, (x, y), out_sinfo=R.Tensor((4,), "float32"))
    gv = R.call_tir(cls.add1, (lv, y), out_sinfo=R.Tensor((4,), "float32"))

After, where `add` and `add1` are structurally equal::

    lv = R.call_tir(cls.add, (x, y), out_sinfo=R.Tensor((4,), "float32"))
    gv = R.call_tir(cls.add, (lv, y), out_sinfo=R.Tensor((4,), "float32"))

A kernel that is called by its name as a string (`R.call_dps_packed("add", ...)`) stays. Each
kernel is scheduled and compiled once; the blocks of a network mostly repeat each other.
"""

from __future__ import annotations

from ...ir.module import GlobalVar, IRModule
from ...ir.structural import structural_equal, structural_hash
from ...ir.transform import Pass, PassContext
from ...tir.function import PrimFunc
from ..expr import ExternFunc, Function
from .rewriting import Replacer, make_pass, walk


def _rewrite(mod: IRModule, ctx: PassContext) -> IRModule:
    by_name = {node.global_symbol for func in mod.functions.values() if isinstance(func, Function)
               for node in walk(func) if type(node) is ExternFunc}
    first: dict[int, list[tuple[GlobalVar, PrimFunc]]] = {}
    same: dict[GlobalVar, GlobalVar] = {}
    for var, func in mod.functions.items():
        if not isinstance(func, PrimFunc) or var.name_hint in by_name:
            continue
        bare = func.without_attr("global_symbol")
        group = first.setdefault(structural_hash(bare), [])
        for other, have in group:
            if structural_equal(have, bare) is True:
                same[var] = other
                break
        else:
            group.append((var, bare))
    if not same:
        return mod
    replace = Replacer(globals_=same)
    return IRModule({v: replace(f) if isinstance(f, Function) else f
                     for v, f in mod.functions.items() if v not in same},
                    mod.attrs, mod.global_infos)


def ShareKernels() -> Pass:
    """The pass, see the file's text."""
    return make_pass("ShareKernels", _rewrite, __doc__)
