"""How far a compiler unrolls loops of a kernel: which wholly, and how often it copies the others.

Loops are taken to be unrolled where they say so, where they have at most `UNROLLED` iterations
together with those inside, or at most `UNROLLED_OWN` and their variable picks an element of an
array of the thread, which has to be unrolled to lie in registers; others in part (`copies_of`).
"""

from __future__ import annotations

from typing import Any

from ...tir import expr as E
from ...tir import stmt as S
from ...tir.functor import all_statements, pre_order
from ...tir.op import as_int

#: iterations of a loop of constant extent, with the loops inside, up to which it counts as unrolled
UNROLLED = 64
UNROLLED_OWN = 1024
#: loads that a thread has on their way at once: each takes a register from its start on. NVIDIA's
#: compiler copies the body of a long loop until it has so many, and keeps 16 to 50 on their way
IN_FLIGHT = 16


def iterations(s: S.For) -> int:
    """Iterations of a loop with those inside; many where they are not constants."""
    extent = as_int(s.extent)
    inner = max((iterations(x) for x in all_statements(s.body) if type(x) is S.For), default=1)
    return UNROLLED_OWN + 1 if extent is None else extent * inner


def picking(body: Any) -> set[E.Var]:
    """The variables that indices of a thread's own arrays have."""
    return {v for x in pre_order(body) if type(x) in (E.BufferLoad, S.BufferStore)
            and x.buffer.data.storage_scope.startswith("local")
            for index in x.indices for v in pre_order(index) if isinstance(v, E.Var)}


def copies_of(s: S.For) -> int:
    """How often a compiler copies the body of a loop that it does not unroll: a power of two, as
    many as have `IN_FLIGHT` loads and `UNROLLED` iterations together at most. One where a barrier
    or a loop that is not unrolled is inside."""
    loads = _loads(s.body)
    inner = max((iterations(x) for x in all_statements(s.body) if type(x) is S.For), default=1)
    if loads is None or inner > UNROLLED:
        return 1
    most = min(IN_FLIGHT // max(loads, 1), UNROLLED // max(inner, 1), IN_FLIGHT)
    return 1 << max(most, 1).bit_length() - 1


def _loads(s: Any) -> int | None:
    """Loads of global and shared memory in one iteration; None where there is a barrier, or where
    their number is not a constant."""
    if type(s) is S.While or type(s) is E.Call and (
            getattr(s.op, "name", "") == "tir.tvm_storage_sync"):
        return None
    parts = [_loads(x) for x in s.children() if isinstance(x, (S.Stmt, E.PrimExpr))]
    if None in parts:
        return None
    own = type(s) is E.BufferLoad and s.buffer.data.storage_scope not in ("local", "warp")
    times = as_int(s.extent) if type(s) is S.For else 1
    return None if times is None else times * (own + sum(n for n in parts if n is not None))


__all__ = ["IN_FLIGHT", "UNROLLED", "UNROLLED_OWN", "copies_of", "iterations", "picking"]
