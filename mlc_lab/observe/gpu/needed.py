"""Which numbers a kernel's indices and conditions depend on, so that a run computes no others."""

from __future__ import annotations

from typing import Any

from ...tir import expr as E
from ...tir import stmt as S
from ...tir.functor import pre_order


def needed_numbers(body: Any, everything: bool = False) -> set[E.Var]:
    """The memory and the names whose numbers indices and conditions depend on."""
    needed: set[E.Var] = set()

    def take(e: Any) -> None:
        for x in pre_order(e):
            if type(x) is E.BufferLoad:
                needed.add(x.buffer.data)
            elif isinstance(x, E.Var):
                needed.add(x)

    nodes: list[Any] = list(pre_order(body))
    for x in nodes:
        if everything and type(x) in (E.BufferLoad, S.BufferStore):
            needed.add(x.buffer.data)
        elif everything and type(x) is S.LetStmt:
            needed.add(x.var)
        if isinstance(x, (E.BufferLoad, S.BufferStore)):
            for index in x.indices:
                take(index)
        elif type(x) is S.For:
            take(x.min)
            take(x.extent)
        elif isinstance(x, (S.IfThenElse, S.While)):
            take(x.condition)
        elif type(x) is E.Call and getattr(x.op, "name", "") == "tir.if_then_else":
            take(x.args[0])
    while True:
        before = len(needed)
        for x in nodes:
            if type(x) is S.BufferStore and x.buffer.data in needed or (
                    type(x) is S.LetStmt and x.var in needed):
                take(x.value)
        if len(needed) == before:
            return needed


__all__ = ["needed_numbers"]
