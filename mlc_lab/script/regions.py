"""Extents between two bounds, as slices and loops give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tir import expr as E
from ..tir import op as O

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..tir.expr import PrimExpr


def same_expr(a: Any, b: Any) -> bool:
    """Whether two expressions are written the same over the same variables and buffers."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, E.Var):
        return False
    kind = type(a)
    if kind is E.IntImm or kind is E.FloatImm:
        return a.value == b.value and a.dtype == b.dtype
    if kind is E.BufferLoad and a.buffer is not b.buffer:
        return False
    if kind is E.Call and a.op is not b.op:
        return False
    x, y = a.children(), b.children()
    return a.dtype == b.dtype and len(x) == len(y) and bool(x) and all(map(same_expr, x, y))


def extent_between(start: Any, stop: Any) -> Any:
    """stop - start. `start + n` less `start` is n: what the printer writes as `i:i + n`.

    Other symbolic differences are simplified as TVM does when it parses a slice or a loop.
    """
    if start.dtype != stop.dtype:
        start, stop = O.match_types(start, stop)
    if type(start) is E.IntImm and type(stop) is E.IntImm:
        return O.sub(stop, start)
    if type(start) is E.IntImm and start.value == 0:
        return stop
    if type(stop) is E.Add:
        if same_expr(stop.a, start):
            return stop.b
        if same_expr(stop.b, start):
            return stop.a
    if same_expr(start, stop):
        return E.IntImm(stop.dtype, 0)
    difference = linear(stop)
    for term, factor in linear(start).items():
        difference[term] = difference.get(term, 0) - factor
    if all(factor == 0 for term, factor in difference.items() if term is not None):
        return O.const(difference.get(None, 0), stop.dtype)
    return O.sub(stop, start)


def linear(e: PrimExpr) -> dict[Any, int]:
    """An integer expression as {term: factor}; the constant is under None.

    Terms that are not variables stand for themselves by identity, or by a structurally equal term
    met before.
    """
    out: dict[Any, int] = {}

    def add(node: Node, factor: int) -> None:
        if type(node) is E.IntImm:
            out[None] = out.get(None, 0) + factor * node.value
        elif type(node) is E.Add:
            add(node.a, factor)
            add(node.b, factor)
        elif type(node) is E.Sub:
            add(node.a, factor)
            add(node.b, -factor)
        elif type(node) is E.Mul and type(node.b) is E.IntImm:
            add(node.a, factor * node.b.value)
        elif type(node) is E.Mul and type(node.a) is E.IntImm:
            add(node.b, factor * node.a.value)
        else:
            if not isinstance(node, E.Var):
                node = next((t for t in out if t is not None and same_expr(t, node)), node)
            out[node] = out.get(node, 0) + factor

    add(e, 1)
    return out
