"""graph: what a Relax program becomes: how many kernels it calls, how many bytes it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tir.expr import Op
from ...relax import expr as rx
from ...relax import transform
from ...relax.expr_functor import post_order_visit
from ...relax.transform.static_plan_block_memory import memory_use
from ...tir.function import PrimFunc
from ..result import Found

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ..answers import Answer
    from ..exercise import Variant


def graph(answer: Answer, variant: Variant, *, kernels: int | None = None,
          planned: int | None = None, calls: dict[str, int] | None = None) -> Found:
    """Whether `main` calls so many `kernels` at most once its operators are lowered, its
    intermediate results take `planned` bytes at most, and it calls operators so often (`calls`, by
    name, at most)."""
    mod = answer.mod
    assert mod is not None
    have = operator_calls(mod)
    for name, most in (calls or {}).items():
        if have.get(name, 0) > most:
            return Found(False, f"{name} is called {have[name]} times; {most} suffice")
    lowered = transform.LegalizeOps()(mod)
    count = sum(1 for _ in kernel_calls(lowered))
    if kernels is not None and count > kernels:
        return Found(False, f"{count} kernels are called; {kernels} suffice")
    if planned is not None:
        held = planned_bytes(lowered)
        if held > planned:
            return Found(False, f"intermediate results take {held:,} bytes once memory is planned; "
                         f"{planned:,} suffice")
    return Found(True, f"{count} kernels")


def operator_calls(mod: IRModule) -> dict[str, int]:
    """How often `main` calls each operator."""
    found: dict[str, int] = {}

    def look(e: object) -> None:
        if isinstance(e, rx.Call) and isinstance(e.op, Op):
            found[e.op.name] = found.get(e.op.name, 0) + 1

    post_order_visit(mod["main"], look)
    return found


def kernel_calls(mod: IRModule) -> list[str]:
    """The kernels that `main` calls, in order."""
    kernels = {gv.name_hint for gv, f in mod.functions.items() if isinstance(f, PrimFunc)}
    found: list[str] = []

    def look(e: object) -> None:
        if isinstance(e, rx.Call) and e.args:
            name = getattr(e.args[0], "name_hint", None)
            if name in kernels:
                found.append(name)

    post_order_visit(mod["main"], look)
    return found


def planned_bytes(mod: IRModule) -> int:
    """Bytes of intermediate results of a lowered `main`, once memory is planned."""
    for step in (transform.RewriteDataflowReshape(), transform.ToNonDataflow(),
                 transform.RemovePurityChecking(), transform.CallTIRRewrite()):
        mod = step(mod)
    return memory_use(mod["main"], mod)["planned"]


__all__ = ["graph", "kernel_calls", "operator_calls", "planned_bytes"]
