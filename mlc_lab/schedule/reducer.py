"""Recognising what updates an element: which combiner, and whether its order may be changed."""

from __future__ import annotations

from typing import Any, Callable, Sequence
from weakref import WeakKeyDictionary

from ..arith import reducer
from ..arith.reducer import Reduction, UnknownReduction, reads_any, same_places
from ..tir.expr import Add, And, BinaryOp, BufferLoad, Call, Max, Min, Mul, Or, PrimExpr, Sub
from ..tir.functor import pre_order
from ..tir.stmt import Block, BufferStore, LetStmt, SeqStmt
from .error import Refusal


_matched: "WeakKeyDictionary[Block, Reduction]" = WeakKeyDictionary()


def match_reduction(block: Block) -> Reduction:
    """Take a reduction block apart; Refusal if its pattern is not known."""
    found = _matched.get(block)
    if found is not None:
        return found
    try:
        found = _matched[block] = reducer.match_reduction(block)
        return found
    except UnknownReduction as why:
        raise Refusal("known_reduction", f"block {block.name_hint} is not a reduction whose order "
                      f"may be changed: {why}", nodes=[block], hint="write the update as C[...] = "
                      "C[...] + value, with the init of the sum") from None


_OPERATORS = {Add: "+", Sub: "+", Mul: "*", Min: "min", Max: "max", And: "and", Or: "or"}
_BITWISE = {"tir.bitwise_and": "&", "tir.bitwise_or": "|", "tir.bitwise_xor": "^"}


def update_of(store: BufferStore) -> tuple[str | None, Sequence[BufferLoad]]:
    """The operator by which a store combines what is there with other values, as in
    C[x] = C[x] + y, and the load of what is there; None if it does something else.

    Any two updates of an element by one operator commute, up to the rounding of floats.
    """
    name = _operator(store.value)
    own: list[BufferLoad] = []
    others: list[PrimExpr] = list(store.indices)
    stack = [(store.value, True)]
    while stack and name is not None:
        e, plain = stack.pop()
        if _operator(e) == name:
            a, b = (e.a, e.b) if isinstance(e, BinaryOp) else e.children()
            stack += [(a, plain), (b, plain and type(e) is not Sub)]
        elif plain and type(e) is BufferLoad and e.buffer is store.buffer and same_places(
                e.indices, store.indices):
            own.append(e)
        else:
            others.append(e)
    if len(own) != 1 or reads_any(others, (store.buffer.data,)):
        return None, ()
    return name, own


def _operator(e: Any) -> str | None:
    if type(e) is Call:
        return _BITWISE.get(getattr(e.op, "name", ""))
    return _OPERATORS.get(e.__class__)


def tuple_update(block: Block) -> tuple[Callable[..., Any], Sequence[BufferLoad]] | None:
    """The same for a block that updates several buffers at once, as an argmax does; None for all
    others."""
    body: Any = block.body
    while type(body) is LetStmt:
        body = body.body
    if type(body) is not SeqStmt or block.init is None:
        return None
    try:
        reduction = reducer.match_reduction(block)
    except UnknownReduction:
        return None
    if reduction.ordered:
        return None
    outputs = {s.buffer for s in reduction.stores}
    return reduction.combine, [n for n in pre_order(block.body)
                        if type(n) is BufferLoad and n.buffer in outputs]


__all__ = ["Reduction", "match_reduction", "tuple_update", "update_of"]
