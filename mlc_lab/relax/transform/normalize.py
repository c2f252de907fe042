"""Normalize: every function in normal form.

Nested values are bound to variables of their own, every expression learns its struct info, and the
body of a function is a SeqExpr. BlockBuilder makes normal form by itself; this is for functions put
together by hand.

before::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.add(R.exp(x), x)

after `Normalize()`::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        gv = R.exp(x)
        gv1 = R.add(gv, x)
        return gv1
"""

from __future__ import annotations

from ..block_builder import BlockBuilder
from .rewriting import IRModule, Pass, PassContext, make_pass, map_functions


def Normalize() -> Pass:
    """Bring every Relax function to normal form."""
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        builder = BlockBuilder(mod)
        return map_functions(mod, builder.normalize)

    return make_pass("Normalize", run, Normalize.__doc__)


__all__ = ["Normalize"]
