"""Python's syntax trees of texts that are read and never executed: scripts, traces, schedules."""

from __future__ import annotations

import ast
import re
from itertools import islice
from typing import Any

from . import limits
from .deep_text import SPLIT, parse_deep, too_deep_for_python
from .errors import DataError, LimitError

#: strings in triple quotes, such as the one with a module's constants
_STRINGS = re.compile(r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""', re.DOTALL)


def parse_python(text: str, filename: str = "<text>", mode: str = "exec") -> Any:
    """The syntax tree of a text.

    Raises SyntaxError for what is no Python, LimitError for what is too long or too deep, and
    RecursionError for a tree that needs a larger stack.
    """
    if len(text) > limits.CODE and len(_STRINGS.sub("", text)) > limits.CODE or (
            len(text) > limits.TEXT):
        raise LimitError(f"the text has {len(text)} characters, which is too long",
                         f"the bound is {limits.CODE}, what stands in strings left out")
    try:
        tree = ast.parse(text, filename, mode)
    except MemoryError:
        raise LimitError("brackets or operators are nested too deeply for Python", SPLIT,
                         line_too_deep(text)) from None
    except ValueError as error:  # a zero byte, half of a surrogate pair
        raise SyntaxError(str(error)) from None
    except SyntaxError as error:
        if not too_deep_for_python(error):
            raise
        tree = parse_deep(text, filename, mode)
    if len(text) > limits.DEPTH and max(map(len, text.split("\n"))) > limits.DEPTH:
        _check_depth(tree)
    return tree


def _check_depth(tree: ast.AST) -> None:
    """Raise LimitError at a node that lies too deep."""
    level, depth = [tree], 0
    while level:
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        depth += 1
        if depth > limits.DEPTH:
            at = next((n for n in level if hasattr(n, "lineno")), tree)
            raise LimitError(f"this is nested more than {limits.DEPTH} levels deep", SPLIT,
                             getattr(at, "lineno", 1), getattr(at, "col_offset", 0) + 1)


def line_too_deep(text: str) -> int:
    """The line with which a text becomes too deep for Python's own parser, which does not say it:
    the last line of the shortest beginning that it gives up."""
    lines = text.splitlines(keepends=True)
    low, high = 1, max(len(lines), 1)
    while low < high:
        middle = (low + high) // 2
        try:
            ast.parse("".join(lines[:middle]))
        except (MemoryError, RecursionError):
            high = middle
            continue
        except (SyntaxError, ValueError):  # what is cut off lies below
            pass
        low = middle + 1
    return low


def parse_expression(text: str) -> ast.expr:
    """The syntax tree of an expression. Raises DataError, and RecursionError as above."""
    try:
        return parse_python(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise DataError(f"{text[:60]!r} is no expression: {error.msg}") from None


def written(node: ast.AST) -> str:
    """What stands at a node of a syntax tree, shortened, for a message."""
    names: list[str] = []
    base = node
    while isinstance(base, ast.Attribute) and len(names) < 8:
        names.append(base.attr)
        base = base.value
    if isinstance(base, ast.Name):
        text = ".".join([base.id, *reversed(names)])
    elif sum(1 for _ in islice(ast.walk(node), 300)) == 300:
        text = "this expression"
    else:
        text = ast.unparse(node)
    return text if len(text) <= 80 else f"{text[:77]}..."


__all__ = ["line_too_deep", "parse_expression", "parse_python", "written"]
