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
    return make_pass("Normalize", _normalize, Normalize.__doc__)


def _normalize(mod: IRModule, ctx: PassContext) -> IRModule:
    return map_functions(mod, BlockBuilder(mod).normalize)


def normalize_functions(mod: IRModule, before: IRModule) -> IRModule:
    """The module with the functions that are not as in `before` in normal form."""
    if mod is before:
        return mod
    builder = BlockBuilder(mod)
    old = set(map(id, before.functions.values()))
    return map_functions(mod, lambda f: f if id(f) in old else builder.normalize(f))


__all__ = ["Normalize", "normalize_functions"]
