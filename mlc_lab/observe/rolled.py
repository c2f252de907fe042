"""Statements that differ only in constants of their indices, as an unrolled loop leaves them.

Before::

    C[0] = C[0] + A[0] * B[0]
    C[1] = C[1] + A[0] * B[1]
    ...

After, as a `Run`: one statement, and the numbers that its constants have one after the other::

    C[c] = C[c] + A[0] * B[c]        c = 0, 1, ...

Code that only watches what a program does (`report_code.py`) is written as a loop over the copies:
the same accesses in the same order, and LLVM is through in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import tir
from ..ir.node import Node, child
from ..tir.functor import pre_order

#: copies that are worth a loop, and statements of which one copy may consist
_LEAST, _PERIOD = 16, 8


@dataclass
class Run:
    """Copies of a few statements: `items[start:end]` of a sequence, `count` of them.

    `statements` are one copy with variables for what differs; `values` the numbers of each variable
    in the order of the copies; `nodes` gives for the id of each load and store in `statements` what
    stands for it in each copy, and the statement that it is in.
    """

    start: int
    end: int
    count: int
    statements: list[Any]
    values: list[tuple[tir.Var, tuple[int, ...]]]
    nodes: dict[int, list[tuple[Any, Any]]]


def runs(items: Sequence[Any]) -> list[Run]:
    """The runs of copies in a sequence of statements, in its order."""
    if len(items) < _LEAST:
        return []
    forms = [_form(s) if type(s) is tir.BufferStore else None for s in items]
    keys = [form and form[0] for form in forms]
    found, at = [], 0
    while at < len(items):
        period, count = _copies_at(keys, at)
        if count:
            found.append(_run(items, forms, at, period, count))
        at += period * count or 1
    return found


def _copies_at(keys: Sequence[Hashable], at: int) -> tuple[int, int]:
    """Of how many statements the copies consist that begin at a place, and how many there are; none
    where they are few."""
    for period in range(1, _PERIOD + 1):
        end = at + period
        if None in keys[at:end]:
            break
        while end < len(keys) and keys[end] == keys[end - period]:
            end += 1
        if (end - at) // period >= _LEAST:
            return period, (end - at) // period
    return 1, 0


def _run(items: Sequence[Any], forms: Sequence[Any], start: int, period: int, count: int) -> Run:
    known: dict[tuple[str, tuple[int, ...]], tir.Var] = {}
    statements, nodes = [], {}
    for first in range(start, start + period):
        own = range(first, first + count * period, period)
        columns = list(zip(*(forms[n][1] for n in own)))
        new: list[Any] = []
        for constant, column in zip(_constants(items[first]), columns):
            if len(set(column)) == 1:
                new.append(constant)
                continue
            key = constant.dtype, column
            if key not in known:
                known[key] = tir.Var("copy", constant.dtype)
            new.append(known[key])
        template = _with(items[first], iter(new), False)
        statements.append(template)
        for node, *copies in zip(_accesses(template), *(_accesses(items[n]) for n in own)):
            nodes[id(node)] = [(copy, items[n]) for copy, n in zip(copies, own)]
    values = [(var, column) for (_, column), var in known.items()]
    return Run(start, start + count * period, count, statements, values, nodes)


def _accesses(statement: Any) -> list[Any]:
    """The loads and stores of a statement."""
    return [n for n in pre_order(statement) if type(n) in (tir.BufferLoad, tir.BufferStore)]


def _is_free(node: object) -> bool:
    """Whether a node in an index is a constant that may be another number."""
    return type(node) is tir.IntImm and node.dtype in ("int32", "int64")


def _inside(node: Any, name: str, index: bool) -> bool:
    """Whether the field of a node is an index, or a term of one."""
    if name == "indices" and type(node) in (tir.BufferLoad, tir.BufferStore):
        return True
    return index and (type(node) in (tir.Add, tir.Sub) or type(node) is tir.Ramp and name == "base")


def _form(statement: Any) -> tuple[Hashable, list[int]]:
    """What copies of a statement have in common, and the constants in which they may differ."""
    constants: list[int] = []

    def key(node: Any, index: bool) -> Hashable:
        if isinstance(node, tuple):
            return tuple(key(item, index) for item in node)
        if not isinstance(node, Node):
            return (type(node), node) if isinstance(node, Hashable) else id(node)
        if index and type(node) is tir.IntImm and _is_free(node):
            constants.append(node.value)
            return node.dtype
        if isinstance(node, tir.Var) or not node.fields:
            return id(node)
        parts: list[Hashable] = [type(node), getattr(node, "dtype", None)]
        for name, tag in node.fields:
            value = getattr(node, name)
            if tag is child:
                parts.append(key(value, _inside(node, name, index)))
            elif isinstance(value, Node):
                parts.append(id(value))
            else:
                parts.append(key(value, False))
        return tuple(parts)

    return key(statement, False), constants


def _constants(statement: Any) -> list[Any]:
    """The constants of `_form`, as nodes."""
    found: list[Any] = []
    _with(statement, None, False, found)
    return found


def _with(node: Any, new: Any, index: bool, found: list[Any] | None = None) -> Any:
    """A statement with `new` ones for the constants of `_form`; or these, noted in `found`."""
    if isinstance(node, tuple):
        made = tuple(_with(item, new, index, found) for item in node)
        return node if all(a is b for a, b in zip(made, node)) else made
    if not isinstance(node, Node) or isinstance(node, tir.Var):
        return node
    if index and _is_free(node):
        if found is not None:
            found.append(node)
            return node
        return next(new)
    changes = {}
    for name, tag in node.fields:
        if tag is child:
            before = getattr(node, name)
            after = _with(before, new, _inside(node, name, index), found)
            if after is not before:
                changes[name] = after
    return node.replace(**changes) if changes else node


__all__ = ["Run", "runs"]
