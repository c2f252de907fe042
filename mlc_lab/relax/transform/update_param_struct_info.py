"""UpdateParamStructInfo: parameters get other struct info; what follows from it is inferred again.

before::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            gv = R.exp(x)
            R.output(gv)
        return gv

after `UpdateParamStructInfo(lambda p: relax.TensorStructInfo((4,), "float16"))`::

    @R.function
    def main(x: R.Tensor((4,), "float16")) -> R.Tensor((4,), "float16"):
        with R.dataflow():
            gv = R.exp(x)
            R.output(gv)
        return gv
"""

from __future__ import annotations

from typing import Callable

from .infer_again import infer_again
from .rewriting import Function, Pass, StructInfo, Var, make_function_pass


def UpdateParamStructInfo(sinfo_func: Callable[[Var], StructInfo | None]) -> Pass:
    """`sinfo_func(param)` gives the new struct info of a parameter, or None to keep it."""
    def update(func: Function) -> Function:
        params = []
        for p in func.params:
            info = sinfo_func(p)
            params.append(p if info is None or info == p.struct_info_ else Var(p.name_hint, info))
        return infer_again(func, tuple(params))

    return make_function_pass("UpdateParamStructInfo", lambda func, mod: update(func),
                              UpdateParamStructInfo.__doc__)


__all__ = ["UpdateParamStructInfo"]
