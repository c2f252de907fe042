"""Whether the fields of a node hold what its declaration says: checked for what is read from files.

The constructors do not check, since everything is built with them. Annotations of fields are read
here as they are written: `PrimExpr`, `tuple[Var, ...]`, `Stmt | None`, `Mapping[Var, Buffer]`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from . import dtype as dt
from .module import GlobalVar
from .node import NODE_TYPES, Node

Check = Callable[[Any], bool]
_PLAIN: dict[str, Check] = {
    "Any": lambda value: True,
    "None": lambda value: value is None,
    "str": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, int),
    "bool": lambda value: isinstance(value, int),
    "float": lambda value: isinstance(value, (int, float)),
    "dict": lambda value: isinstance(value, dict) and all(isinstance(k, str) for k in value),
    "Mapping": lambda value: isinstance(value, dict),
    "Node": lambda value: isinstance(value, Node),
    "GlobalVar": lambda value: isinstance(value, GlobalVar),
}


#: types of the fields of nodes that were found right; what is in containers is no part of that
_seen: set[tuple] = set()


def misfit(cls: type, values: tuple | list) -> str:
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
    meaning = _MEANINGS.get(cls.node_key)
    return meaning(*values) if meaning is not None else ""


@lru_cache(maxsize=None)
def _checks(cls: type) -> list[tuple[str, str, Check, bool]]:
    """(name, annotation, check, whether it looks at more than the type) of every field."""
    texts: dict[str, tuple[str, str]] = {}
    for base in reversed(cls.__mro__):
        for name, text in base.__dict__.get("__annotations__", {}).items():
            texts[name] = text, base.__module__
    found = []
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
            return lambda value: isinstance(value, tuple)
        item = _check(_split(inside.rstrip("]"), ",")[0], module)
        return lambda value: isinstance(value, tuple) and all(map(item, value))
    if name == "Mapping":
        key, item = (_check(p, module) for p in _split(inside.rstrip("]"), ","))
        return lambda value: isinstance(value, Mapping) and all(
            key(k) and item(v) for k, v in value.items())
    if name in _PLAIN:
        return _PLAIN[name]
    cls = _class(name, module)
    return lambda value: isinstance(value, cls)


def _split(text: str, mark: str) -> list[str]:
    """The parts of a text between marks that stand outside of brackets."""
    parts, depth, start = [], 0, 0
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
def _is_dtype(value: Any) -> bool:
    if not isinstance(value, str) or len(value) > 40:
        return False
    try:
        dt.parse(value)
    except ValueError:
        return False
    return True


# what may be wrong with fields of the right types; each gives words, or ""


def _constant(dtype: str, value: int) -> str:
    low, high = (0, 0) if dtype == "handle" else dt.int_range(dtype)
    return "" if low <= value <= high else f"{value} fits no {dtype}"


def _lanes(lanes: int) -> str:
    return "" if 1 <= lanes <= dt.MAX_LANES else (
        f"a vector has 1 to {dt.MAX_LANES} lanes, not {lanes}")


def _access(buffer: Any, indices: tuple) -> str:
    return "" if len(indices) == len(buffer.shape) else (
        f"{buffer.name} has {len(buffer.shape)} dimension(s), it is accessed with {len(indices)}")


def _numbers(low: Any, extent: Any) -> str:
    wrong = [x.dtype for x in (low, extent) if not x.dtype.startswith(("int", "uint", "bool"))]
    return f"its bounds are whole numbers, not of type {wrong[0]}" if wrong else ""


_MEANINGS: dict[str, Callable[..., str]] = {
    "IntImm": _constant,
    "Range": _numbers,
    "For": lambda var, low, extent, *rest: _numbers(low, extent),
    "Ramp": lambda base, stride, lanes: _lanes(lanes),
    "Broadcast": lambda value, lanes: _lanes(lanes),
    "BufferLoad": lambda buffer, indices, predicate: _access(buffer, indices),
    "BufferStore": lambda buffer, value, indices, predicate: _access(buffer, indices),
    "BufferRegion": _access,
    "BlockRealize": lambda values, predicate, block: "" if len(values) == len(
        block.iter_vars) else "a block's iterators and their values differ in number",
}

__all__ = ["misfit"]
