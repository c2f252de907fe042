"""ShareKernels: kernels that are the same function become one.

before::

    @T.prim_func(private=True)
    def exp(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("y"):
                vi = T.axis.spatial(8, i)
                y[vi] = T.exp(x[vi])

    @T.prim_func(private=True)
    def exp1(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("y"):
                vi = T.axis.spatial(8, i)
                y[vi] = T.exp(x[vi])

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        y = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((8,), "float32"))
        z = R.call_tir(cls.exp1, (y,), out_sinfo=R.Tensor((8,), "float32"))
        return z

after `ShareKernels()`::

    @T.prim_func(private=True)
    def exp(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("y"):
                vi = T.axis.spatial(8, i)
                y[vi] = T.exp(x[vi])

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        y = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((8,), "float32"))
        z = R.call_tir(cls.exp, (y,), out_sinfo=R.Tensor((8,), "float32"))
        return z

A kernel that is called by its name as a string (`R.call_dps_packed("add", ...)`) stays. Each
kernel is scheduled and compiled once; the blocks of a network mostly repeat each other.
"""

from __future__ import annotations

from ...ir.module import GlobalVar, IRModule
from ...ir.structural import structural_equal
from ...ir.transform import Pass, PassContext
from ...tir.function import PrimFunc
from ..expr import ExternFunc, Function
from .rewriting import Replacer, make_pass, walk


def _rewrite(mod: IRModule, ctx: PassContext) -> IRModule:
    by_name = {node.global_symbol for func in mod.functions.values() if isinstance(func, Function)
               for node in walk(func) if type(node) is ExternFunc}
    first: dict[tuple, list[tuple[GlobalVar, PrimFunc]]] = {}
    same: dict[GlobalVar, GlobalVar] = {}
    for var, func in mod.functions.items():
        if not isinstance(func, PrimFunc) or var.name_hint in by_name:
            continue
        bare = func.without_attr("global_symbol")
        group = first.setdefault(bare.outline(), [])
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
    """Kernels that are the same function become one.

    The file's text has an example.
    """
    return make_pass("ShareKernels", _rewrite, __doc__)
