"""Whether the fields of a node hold what its declaration says: checked for what is read from files.

The constructors do not check, since everything is built with them. Annotations of fields are read
here as they are written: `PrimExpr`, `tuple[Var, ...]`, `Stmt | None`, `Mapping[Var, Buffer]`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Sequence

from . import dtype as dt
from .containers import is_dict, is_mapping, is_tuple
from .module import GlobalVar
from .node import NODE_TYPES, Node

if TYPE_CHECKING:
    from ..tir.buffer import Buffer
    from ..tir.expr import PrimExpr
    from ..tir.stmt import Block


Check = Callable[[Any], bool]
_PLAIN: dict[str, Check] = {
    "Any": lambda value: True,
    "None": lambda value: value is None,
    "str": lambda value: isinstance(value, str),
    "int": lambda value: type(value) in (int, bool),  # no member of an enum
    "bool": lambda value: type(value) in (int, bool),
    "float": lambda value: type(value) in (int, float, bool),
    "dict": lambda value: is_dict(value) and all(isinstance(k, str) for k in value),
    "Mapping": is_dict,
    "Node": lambda value: isinstance(value, Node),
    "GlobalVar": lambda value: isinstance(value, GlobalVar),
}


#: types of the fields of nodes that were found right; what is in containers is no part of that
_seen: set[tuple[type, ...]] = set()


def misfit(cls: type[Node], values: Sequence[Any]) -> str:
    """What is wrong with the values of a node's fields, in words; "" if nothing is."""
    rows = _checks(cls)
    if len(rows) != len(values):
        return f"it has {len(values)} fields in place of {len(rows)}"
    types = (cls, *map(type, values))
    known = types in _seen
    for (name, text, check, inside), value in zip(rows, values):
        if (inside or not known) and not check(value):
            return f"its field {name!r} is a {type(value).__name__} and should be {text}"
    _seen.add(types)
    if cls.node_key not in _MEANINGS:
        return ""
    meaning, places = _MEANINGS[cls.node_key]
    return meaning(*[values[place] for place in places])


@lru_cache(maxsize=None)
def _checks(cls: type[Node]) -> list[tuple[str, str, Check, bool]]:
    """(name, annotation, check, whether it looks at more than the type) of every field."""
    texts: dict[str, tuple[str, str]] = {}
    for base in reversed(cls.__mro__):
        for name, text in base.__dict__.get("__annotations__", {}).items():
            texts[name] = text, base.__module__
    found: list[tuple[str, str, Check, bool]] = []
    for name, _ in cls.fields:
        text, module = texts[name]
        check = _is_dtype if name == "dtype" else _check(text, module)
        found.append((name, text, check, "[" in text or "dict" in text or name == "dtype"))
    return found


def _check(text: str, module: str) -> Check:
    """The check that an annotation means."""
    text = text.strip()
    parts = _split(text, "|")
    if len(parts) > 1:
        checks = [_check(p, module) for p in parts]
        return lambda value: any(c(value) for c in checks)
    name, _, inside = text.partition("[")
    if name == "tuple":
        if not inside:
            return is_tuple
        item = _check(_split(inside.rstrip("]"), ",")[0], module)
        return lambda value: is_tuple(value) and all(map(item, value))
    if name == "Mapping":
        key, item = (_check(p, module) for p in _split(inside.rstrip("]"), ","))
        return lambda value: is_mapping(value) and all(
            key(k) and item(v) for k, v in value.items())
    if name in _PLAIN:
        return _PLAIN[name]
    cls = _class(name, module)
    return lambda value: isinstance(value, cls)


def _split(text: str, mark: str) -> list[str]:
    """The parts of a text between marks that stand outside of brackets."""
    parts: list[str] = []
    depth = start = 0
    for at, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == mark and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _class(name: str, module: str) -> type:
    """The class that an annotation of a module names."""
    scope: Any = sys.modules[module]
    *path, last = name.split(".")
    for part in path:
        scope = getattr(scope, part)
    found = getattr(scope, last, None) or NODE_TYPES.get(last)
    if not isinstance(found, type):
        raise TypeError(f"{module} annotates a field with {name!r}, which is no class")
    return found


@lru_cache(maxsize=1024)
def _is_dtype(value: object) -> bool:
    if not isinstance(value, str) or len(value) > 40:
        return False
    try:
        dt.parse(value)
    except ValueError:
        return False
    return True


# what may be wrong with fields of the right types; each gives words, or ""


def _constant(dtype: str, value: int) -> str:
    if type(value) is not int:
        return f"its value is {value}, which is no whole number"
    low, high = (0, 0) if dtype == "handle" else dt.int_range(dtype)
    return "" if low <= value <= high else f"{value} fits no {dtype}"


def _lanes(lanes: int) -> str:
    return "" if 1 <= lanes <= dt.MAX_LANES else (
        f"a vector has 1 to {dt.MAX_LANES} lanes, not {lanes}")


def _access(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> str:
    return "" if len(indices) == len(buffer.shape) else (
        f"{buffer.name} has {len(buffer.shape)} dimension(s), it is accessed with {len(indices)}")


def _numbers(low: PrimExpr, extent: PrimExpr) -> str:
    wrong = [x.dtype for x in (low, extent) if not x.dtype.startswith(("int", "uint", "bool"))]
    if wrong:
        return f"its bounds are whole numbers, not of type {wrong[0]}"
    first, count = getattr(low, "value", None), getattr(extent, "value", None)
    if type(first) is int and type(count) is int and (
            first + count - 1 > dt.int_range(low.dtype)[1]):
        return f"{count} numbers from {first} on do not fit {low.dtype}"
    return ""


def _real(dtype: str) -> str:
    return "" if dt.is_float(dtype) else f"a number of type {dtype} is an IntImm"


def _same_types(a: PrimExpr, b: PrimExpr) -> str:
    return "" if a.dtype == b.dtype else f"its parts are of the types {a.dtype} and {b.dtype}"


def _arithmetic(a: PrimExpr, b: PrimExpr) -> str:
    if a.dtype.startswith(("handle", "void")):
        return f"one computes with numbers, not with a {a.dtype}"
    return _same_types(a, b)


def _conditions(*parts: PrimExpr) -> str:
    wrong = [p.dtype for p in parts if not p.dtype.startswith("bool")]
    return f"a condition is a bool, not of type {wrong[0]}" if wrong else ""


def _select(condition: PrimExpr, a: PrimExpr, b: PrimExpr) -> str:
    return _conditions(condition) or _same_types(a, b)


def _call(op: object, args: tuple[Any, ...]) -> str:
    for arg in args:
        if not hasattr(arg, "dtype"):
            return f"a call takes expressions, no {type(arg).__name__}"
    if getattr(op, "name", "") == "tir.if_then_else":
        if len(args) != 3:
            return f"if_then_else takes 3 values, not {len(args)}"
        return _select(*args)
    return ""


#: kinds of a block's iterators: spatial, reduction, scan and opaque
_BLOCK_AXES = (0, 2, 3, 4)


def _block(iter_vars: tuple[Any, ...]) -> str:
    for iv in iter_vars:
        if iv.dom is None or iv.iter_type not in _BLOCK_AXES:
            return f"iterator {iv.var.name} of a block has no domain, or is of a wrong kind"
    return ""


def _block_values(values: tuple[PrimExpr, ...], block: Block) -> str:
    return "" if len(values) == len(block.iter_vars) else (
        "a block's iterators and their values differ in number")


def _buffer(shape: tuple[PrimExpr, ...], strides: tuple[PrimExpr, ...], offset: PrimExpr | None,
            name: str, alignment: int, factor: int, separators: tuple[int, ...]) -> str:
    for what, number in (("data_alignment", alignment), ("offset_factor", factor)):
        if not 0 <= number < 1 << 31:
            return f"{what} of buffer {name} is {number}: it is a number from 0 on"
    if strides and len(strides) != len(shape):
        return f"buffer {name} has {len(shape)} dimension(s) and {len(strides)} strides"
    if not all(0 < s < len(shape) for s in separators):
        return f"axis separators of buffer {name} do not lie between its dimensions"
    wrong = [d.dtype for d in (*shape, *strides, *(() if offset is None else (offset,)))
             if not dt.is_integer(d.dtype)]
    return f"a size of buffer {name} is of type {wrong[0]}" if wrong else ""


def _returned(ret_type: object) -> str:
    fits = ret_type is None or isinstance(ret_type, str) and _is_dtype(ret_type) or isinstance(
        ret_type, Node) and type(ret_type).node_key in ("PrimType", "PointerType", "TupleType")
    return "" if fits else f"what it returns is no type: a {type(ret_type).__name__}"


#: the name of a node -> what may be wrong with it, and the places of the fields that decide it
_MEANINGS: dict[str, tuple[Callable[..., str], tuple[int, ...]]] = {
    "IntImm": (_constant, (0, 1)),
    "FloatImm": (_real, (0,)),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max"),
                    (_arithmetic, (0, 1))),
    **dict.fromkeys(("EQ", "NE", "LT", "LE", "GT", "GE"), (_same_types, (0, 1))),
    **dict.fromkeys(("And", "Or"), (_conditions, (0, 1))),
    "Not": (_conditions, (0,)),
    "Select": (_select, (0, 1, 2)),
    "Call": (_call, (1, 2)),
    "Block": (_block, (0,)),
    "Buffer": (_buffer, (2, 3, 4, 5, 6, 7, 9)),
    "PrimFunc": (_returned, (3,)),
    "Range": (_numbers, (0, 1)),
    "For": (_numbers, (1, 2)),
    "Ramp": (_lanes, (2,)),
    "Broadcast": (_lanes, (1,)),
    "BufferLoad": (_access, (0, 1)),
    "BufferStore": (_access, (0, 2)),
    "BufferRegion": (_access, (0, 1)),
    "BlockRealize": (_block_values, (0, 2)),
}

__all__ = ["misfit"]
