"""graph: what a Relax program becomes: how many kernels it calls, how many bytes it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tir.expr import Op
from ...relax import expr as rx
from ...relax import transform
from ...relax.expr_functor import post_order_visit
from ...relax.transform.static_plan_block_memory import memory_use, plan
from ...tir.function import PrimFunc
from ..answers import read
from ..result import Found
from .models import model_of

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ..answers import Answer
    from ..exercise import Variant


def graph(answer: Answer, variant: Variant, *, kernels: int | None = None,
          planned: int | None = None, calls: dict[str, int] | None = None,
          library: dict[str, int] | None = None, of_reference: float | None = None,
          fused: bool = False) -> Found:
    """Whether `main` calls so many `kernels` at most once its operators are lowered, its
    intermediate results take `planned` bytes at most, and it calls operators so often (`calls`, by
    name, at most) and functions by their names so often (`library`, exactly). With `of_reference`
    the planned bytes are at most so many times those of the reference. With `fused` kernels are
    counted, and memory is planned, once those that can be are one: AnnotateTIROpPattern,
    FuseOps, FuseTIR."""
    mod = answer.mod
    assert mod is not None
    if model_of(mod) is None:
        return Found(False, "there is no function main of Relax: write it under @R.function")
    named = library_calls(mod)
    for name, times in (library or {}).items():
        if named.count(name) != times:
            return Found(False, f"{name} is called {named.count(name)} times; {times} are asked "
                         f'for: R.call_dps_packed("{name}", ...)')
    if of_reference is not None:
        best = read(variant, variant.reference).mod
        assert best is not None
        planned = int(of_reference * planned_bytes(_lowered(best, fused)))
    have = operator_calls(mod)
    for name, most in (calls or {}).items():
        if have.get(name, 0) > most:
            return Found(False, f"{name} is called {have[name]} times; {most} suffice")
    lowered = _lowered(mod, fused)
    count = sum(1 for _ in kernel_calls(lowered))
    if kernels is not None and count > kernels:
        return Found(False, f"{count} kernels are called; {kernels} suffice")
    if planned is not None:
        held = planned_bytes(lowered)
        if held > planned:
            return Found(False, f"intermediate results take {held:,} bytes once memory is planned; "
                         f"{planned:,} suffice. {_fullest(lowered)}")
        return Found(True, f"intermediate results take {held:,} bytes")
    return Found(True, f"{count} kernels")


def _lowered(mod: IRModule, fused: bool) -> IRModule:
    """A module whose operators have become kernels, and with `fused` those that can be are one."""
    passes = [transform.LegalizeOps()]
    if fused:
        passes += [transform.AnnotateTIROpPattern(), transform.FuseOps(), transform.FuseTIR()]
    for step in passes:
        mod = step(mod)
    return mod


def operator_calls(mod: IRModule) -> dict[str, int]:
    """How often `main` calls each operator."""
    found: dict[str, int] = {}

    def look(e: object) -> None:
        if isinstance(e, rx.Call) and isinstance(e.op, Op):
            found[e.op.name] = found.get(e.op.name, 0) + 1

    post_order_visit(mod["main"], look)
    return found


def library_calls(mod: IRModule) -> list[str]:
    """The functions that `main` calls by their names."""
    found: list[str] = []

    def look(e: object) -> None:
        if isinstance(e, rx.Call):
            found.extend(x.global_symbol for x in [e.op, *e.args[:1]]
                         if isinstance(x, rx.ExternFunc))

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
    mod = _with_memory(mod)
    return memory_use(mod["main"], mod)["planned"]


def _with_memory(mod: IRModule) -> IRModule:
    """A lowered module whose results get memory, and whose kernels are called to fill it."""
    for step in (transform.RewriteDataflowReshape(), transform.ToNonDataflow(),
                 transform.RemovePurityChecking(), transform.CallTIRRewrite()):
        mod = step(mod)
    return mod


def _fullest(mod: IRModule) -> str:
    """Which results of a lowered `main` are held when most bytes are."""
    mod = _with_memory(mod)
    lives = [life for life in plan(mod["main"], mod) if isinstance(life.size, int)]
    held = max(([x for x in lives if x.first <= at <= x.last]
                for at in {life.first for life in lives}),
               key=lambda xs: sum(x.size for x in xs), default=[])
    names = {binding.value: binding.var.name_hint  # the memory `alloc` becomes the result `h`
             for block in mod["main"].body.blocks for binding in block.bindings
             if isinstance(getattr(binding, "value", None), rx.Var)}
    return "Most is held where these are still needed: " + ", ".join(
        f"{names.get(x.var, x.var.name_hint)} ({x.size:,} bytes)" for x in held)


__all__ = ["graph", "kernel_calls", "library_calls", "operator_calls", "planned_bytes"]
