"""BindTarget: each function says what it is compiled for, in its attribute "target".

Before::

    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        A[0] = A[0] + T.float32(1)

After `BindTarget(Target("llvm"))`::

    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        T.func_attr({"target": T.target("llvm")})
        A[0] = A[0] + T.float32(1)

A function that has a target keeps it. The host is said only of functions that are called from
outside, which have a global symbol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..target import Target
from ..tir.function import PrimFunc
from .common import function_pass

if TYPE_CHECKING:
    from ..ir.transform import PassContext


def BindTarget(target: Any) -> Pass:
    """Write into each function what it is compiled for."""
    target = Target(target)
    host = target.host
    inside = Target({k: v for k, v in target.export().items() if k != "host"})

    def rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        """The function with its target."""
        exposed = "global_symbol" in (func.attrs or {})
        own = (func.attrs or {}).get("target")
        own = None if own is None else Target(own)
        if own is None:
            return func.with_attr("target", target if exposed else inside)
        if exposed and host is not None and own.host is None:
            return func.with_attr("target", Target(own, host))
        return func

    return function_pass("BindTarget", rewrite)
