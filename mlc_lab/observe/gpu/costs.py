"""What instructions an expression of a kernel is made of, by kind.

    fma       a product and a sum in one, of floats
    float     other arithmetic on floats
    special   exp, sqrt, division of floats and the like, which few units compute
    integer   arithmetic on whole numbers that are data
    convert   between types
    select    conditions and choices
    shuffle   values read from other lanes of the warp
    index     arithmetic of indices, as it is written: a compiler drops or shares most of it
    branch, barrier   what statements add

Loads and stores are counted where they are made.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...ir import dtype as dt
from ...tir import expr as E
from ...tir.shuffles import is_shuffle

KINDS = ("fma", "float", "special", "integer", "convert", "select", "shuffle", "branch", "barrier",
         "index")
#: intrinsics that are one instruction of the float units, or of the integer ones
_CHEAP = {"fabs", "fmin", "fmax", "abs", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
          "shift_left", "shift_right", "isnan", "isinf", "isfinite"}
_FREE = {"if_then_else", "likely", "reinterpret", "address_of"}


def cost_of(value: E.PrimExpr, index: E.PrimExpr | None = None, local: bool = False
            ) -> dict[str, int]:
    """The instructions of a value, and of the index it is stored at. The index of `local` memory is
    the name of a register."""
    found: Counter[str] = Counter()
    _value(value, found)
    if index is not None and not local:
        _index(index, found)
    return dict(found)


def _index(e: E.PrimExpr, out: Counter[str]) -> None:
    """An index: its arithmetic is `index`, what it loads is data."""
    if type(e) is E.BufferLoad:
        _value(e, out)
        return
    if isinstance(e, (E.BinaryOp, E.CmpOp, E.And, E.Or, E.Select)):
        out["index"] += 1
    for part in e.children():
        if isinstance(part, E.PrimExpr):
            _index(part, out)


def _value(e: Any, out: Counter[str]) -> None:
    if type(e) is E.BufferLoad:
        if not e.buffer.data.storage_scope.startswith("local"):
            for index in e.indices:
                _index(index, out)
        return
    is_float = dt.is_float(e.dtype)
    if type(e) in (E.Add, E.Sub) and is_float and E.Mul in (type(e.a), type(e.b)):
        out["fma"] += 1
        product, other = (e.b, e.a) if type(e.b) is E.Mul else (e.a, e.b)
        for part in (product.a, product.b, other):
            _value(part, out)
        return
    if isinstance(e, E.BinaryOp):
        slow = is_float and type(e) in (E.Div, E.Mod, E.FloorDiv, E.FloorMod)
        out["special" if slow else "float" if is_float else "integer"] += 1
    elif isinstance(e, (E.CmpOp, E.And, E.Or, E.Not, E.Select)):
        out["select"] += 1
    elif type(e) is E.Cast:
        out["convert"] += e.dtype != e.value.dtype
    elif type(e) is E.Call:
        name = getattr(e.op, "name", "").removeprefix("tir.")
        if is_shuffle(e):
            # the mask and the sizes are parts of the instruction; 64 bits are two words
            out["shuffle"] += max(dt.bits_of(e.dtype) // 32, 1)
            _value(e.args[1], out)
            _value(e.args[2], out)
            return
        if name == "if_then_else":
            out["select"] += 1
        elif name in _CHEAP:
            out["float" if is_float else "integer"] += 1
        elif name == "fma":
            out["fma"] += 1
        elif name not in _FREE:
            out["special"] += 1
    for part in e.children():
        if isinstance(part, E.PrimExpr):
            _value(part, out)


__all__ = ["KINDS", "cost_of"]
