"""What answers have in common when what differs from variant to variant is left out.

Two answers are of one *shape* where they are the same Python or TVMScript but for names, spaces,
comments and constants: constants and names are numbered in the order in which they come. They have
the same *wording* where they are the same but for constants alone, and for the names of blocks and
buffers, which differ from variant to variant. 0, 1 and -1 count as they are:
they are rarely what a variant draws.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
from typing import Any

from ...reading import MISTAKES, MLCError
from ...reading.python_text import parse_python

#: names that mean the same in every answer
_KEPT = frozenset(("sch", "T", "R", "I", "tvm", "range", "int", "min", "max", "len", "None"))
#: calls whose text is the name of something of the program
_NAMING = frozenset(("block", "get_block", "get_loops", "alloc_buffer"))
#: characters of a text whose digest is kept
SHORT = 4000


def shape(text: str) -> str:
    """A digest that is the same for programs, or schedules, of one shape."""
    return _digest(text, rename=True)[0]


def wording(text: str) -> tuple[str, int]:
    """A digest that is the same for texts of the same wording, and how many words those have."""
    return _digest(text, rename=False)


def shape_of_values(values: Any, reference: Any) -> str:
    """What a prediction says, by field, of the right values: "right", a ratio, or itself."""
    if not isinstance(values, dict):
        values = {"": values}
    if not isinstance(reference, dict):
        reference = dict.fromkeys(values, reference)
    return json.dumps([[str(name), _beside(values[name], reference.get(name))]
                       for name in sorted(values, key=str)])


def _beside(value: Any, right: Any) -> Any:
    if value == right:
        return "right"
    numbers = (int, float)
    if isinstance(value, numbers) and isinstance(right, numbers) and value and right:
        try:
            return f"{value / right:.4g} times what is right"
        except OverflowError:
            return value
    return value


def _digest(text: str, rename: bool) -> tuple[str, int]:
    """The digest and the count; those of short texts, which many have, are kept."""
    return (_kept if len(text) <= SHORT else _made)(text, rename)


def _made(text: str, rename: bool) -> tuple[str, int]:
    """Of what Python reads the words of its syntax tree, of anything else those of the text."""
    try:
        words = _words(parse_python(text), rename)
    except (SyntaxError, RecursionError, MLCError, *MISTAKES):
        words = text.split()
    return hashlib.sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:16], len(words)


_kept = functools.lru_cache(8192)(_made)


def _words(tree: ast.AST, rename: bool) -> list[str]:
    """The tree from its root on, each node before what is in it."""
    words: list[str] = []
    numbers: dict[Any, str] = {}
    names: dict[str, str] = {}
    naming: set[int] = set()  # texts that are names of blocks and buffers

    def name(text: str) -> str:
        if not rename or text in _KEPT:
            return text
        return names.setdefault(text, f"v{len(names)}")

    stack: list[Any] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            words.append(node)
        elif isinstance(node, ast.Constant):
            words.append(numbers.setdefault((str, node.value), f"b{len(numbers)}")
                         if id(node) in naming else _constant(node.value, numbers))
        elif isinstance(node, ast.Name):
            words.append(name(node.id))
        elif isinstance(node, ast.arg):
            words.append(name(node.arg))
            stack.append(node.annotation)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a text that stands alone is a comment
        elif isinstance(node, ast.AST):
            words.append(type(node).__name__)
            if isinstance(node, ast.Call):
                naming.update(map(id, _names_in(node)))
            for field in reversed(node._fields):
                value = getattr(node, field, None)
                if isinstance(value, list):
                    stack.append(")")
                    stack.extend(reversed(value))
                elif isinstance(value, ast.AST):
                    stack.append(value)
                elif value is not None and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    stack.append(str(value))
    return words


def _names_in(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that are the name of a block or buffer."""
    function = call.func
    if not isinstance(function, ast.Attribute):
        return []
    of_schedule = isinstance(function.value, ast.Name) and function.value.id == "sch"
    if not of_schedule and function.attr not in _NAMING:
        return []
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg in ("name", "block"))]
    return [a for a in given if isinstance(a, ast.Constant) and isinstance(a.value, str)]


def _constant(value: Any, numbers: dict[Any, str]) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value not in (0, 1):
        return numbers.setdefault((type(value), value), f"n{len(numbers)}")
    return repr(value)


__all__ = ["shape", "shape_of_values", "wording"]
