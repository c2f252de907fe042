"""Loops whose iterations do alike: one is run, and what it did is multiplied.

The iterations of a loop that is not unrolled do alike where none of its conditions, bounds and
numbers depends on the loop's variable, and indices of memory depend on it by a factor only::

    for k in range(64):                     # A is moved by 32 bytes in each iteration: all alike
        A_shared[t] = A[t * 512 + k * 8]
        ...

An access asks for as many sectors where it is moved by whole sectors, and has the same conflicts
where it is moved by whole words. Where one iteration moves less, several together do alike: the
*period*. So the counts are exact, and so is the list of sectors, which is the same one moved.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from ...ir import dtype as dt
from ...tir import expr as E
from ...tir import stmt as S
from ...tir.functor import pre_order, uses_var
from .expressions import linear_terms
from .requests import LINE, WORD


@dataclass(frozen=True)
class Repeats:
    """`period` iterations do what the next ones do; `moved` has for each load and store, by the
    identity of its node, the elements by which one iteration moves it."""

    period: int
    moved: dict[int, int]


def repeats_of(loop: S.For, needed: Collection[E.Var], given: Collection[E.Var] = ()
               ) -> Repeats | None:
    """How the iterations of a loop repeat; None where they do not. `needed` is the memory, and the
    names, whose numbers indices and conditions depend on (`needed.py`); `given` are the kernel's
    parameters, memory of the device whatever their scope."""
    var = {loop.loop_var}
    moved: dict[int, int] = {}
    period = 1
    nodes: list[Any] = list(pre_order(loop.body))
    for x in nodes:
        if isinstance(x, (E.BufferLoad, S.BufferStore)):
            step = _moved(x, loop.loop_var)
            if x.buffer.data in needed:
                if type(x) is S.BufferStore or step != 0:
                    return None
                continue
            scope = "global" if x.buffer.data in given else x.buffer.data.storage_scope
            if scope.startswith("local"):
                continue
            if step is None:
                return None
            moved[id(x)] = step
            period = math.lcm(period, _period(x, step, scope))
        elif any(uses_var(part, var) for part in _decides(x, needed)):
            return None
    return Repeats(period, moved)


def _decides(x: Any, needed: Collection[E.Var]) -> Iterator[Any]:
    """What of a node decides what is done next."""
    if type(x) is S.For:
        yield from (x.min, x.extent)
    elif isinstance(x, (S.IfThenElse, S.While)):
        yield x.condition
    elif type(x) is E.Call and getattr(x.op, "name", "") == "tir.if_then_else":
        yield x.args[0]
    elif isinstance(x, (S.LetStmt, E.Let)) and x.var in needed:
        yield x.value


def _moved(access: Any, var: E.Var) -> int | None:
    """Elements by which an access is moved when the variable grows by one; None where that is not
    the same number everywhere."""
    (index,) = access.indices
    if type(index) is E.Ramp:
        if uses_var(index.stride, {var}):
            return None
        index = index.base
    step = 0
    for term, factor in linear_terms(index):
        if term is var:
            step += factor
        elif uses_var(term, {var}):
            return None
    return step


def _period(access: Any, step: int, scope: str) -> int:
    """Iterations until an access stands to the sectors, or to the banks, as at the first."""
    element = dt.bytes_of(access.buffer.dtype)
    (index,) = access.indices
    unit = max(WORD, element * dt.lanes_of(index.dtype)) if scope.startswith("shared") else LINE
    return unit // math.gcd(unit, step * element) if step else 1


__all__ = ["Repeats", "repeats_of"]
