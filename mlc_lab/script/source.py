"""Where a script's source text is: files, notebook cells, text; and errors that point into it."""

from __future__ import annotations

import ast
import linecache
import textwrap
import types
from collections import ChainMap
from functools import lru_cache
from typing import Any, Mapping

from ..ir.diagnostics import DiagnosticError
from ..reading import LimitError
from ..reading.python_text import parse_python


class Source:
    """A text with its file name. `column` is what dedenting cut off each line."""

    def __init__(self, text: str, filename: str = "<script>", first_line: int = 1,
                 column: int = 0) -> None:
        self.text, self.filename = text, filename
        self.first_line, self.column = first_line, column
        self.lines = text.split("\n")

    def error(self, node: Any, message: str, hint: str = "") -> DiagnosticError:
        """The error at a node of the syntax tree."""
        line = getattr(node, "lineno", 0) or 0
        start = getattr(node, "col_offset", 0) or 0
        content = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        if getattr(node, "end_lineno", line) == line:
            stop = getattr(node, "end_col_offset", None) or start + 1
        else:
            stop = len(content.encode(errors="replace"))
        raw = content.encode(errors="replace")  # the tree counts bytes, people count characters
        first = len(raw[:start].decode(errors="replace"))
        last = len(raw[:stop].decode(errors="replace"))
        pad = " " * self.column
        return DiagnosticError(message, self.filename, line + self.first_line - 1,
                               first + 1 + self.column, last + 1 + self.column, pad + content,
                               hint)

    @staticmethod
    def environment_of(fn: types.FunctionType, local: Mapping[str, Any] | None = None
                       ) -> ChainMap[str, Any]:
        """The names visible to a function: its closure, what surrounds it, globals."""
        cells: dict[str, Any] = {}
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
            try:
                cells[name] = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        return ChainMap(cells, dict(local or {}), fn.__globals__)


@lru_cache(maxsize=64)
def parse_text(text: str, filename: str) -> ast.Module:
    """The syntax tree of a text; cached, since a file holds many scripts.

    Raises SyntaxError, and RecursionError, with the `text`, for one that needs a larger stack.
    """
    try:
        return parse_python(text, filename)
    except RecursionError as error:
        vars(error)["text"] = text
        raise


def file_text(filename: str, module_globals: Any = None) -> str | None:
    """The text of a file or notebook cell; None where it cannot be had."""
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, module_globals)
    return "".join(lines) if lines else None


def _definitions(tree: ast.AST, kind: type[ast.FunctionDef | ast.ClassDef], name: str) -> list[Any]:
    return [n for n in ast.walk(tree) if isinstance(n, kind) and n.name == name]


def _first_line(node: Any) -> int:
    return min([node.lineno, *[d.lineno for d in node.decorator_list]])


def find_function(fn: types.FunctionType) -> tuple[Source, ast.FunctionDef | None]:
    """The source and syntax tree of a Python function (a lambda as a function that returns)."""
    code = fn.__code__
    text = file_text(code.co_filename, fn.__globals__)
    if text is None:
        return Source("", code.co_filename), None
    source, tree = _parse_around(text, code.co_filename, code.co_firstlineno)
    line = code.co_firstlineno - source.first_line + 1
    if fn.__name__ == "<lambda>":
        found = [n for n in ast.walk(tree) if isinstance(n, ast.Lambda) and n.lineno == line]
        if len(found) != 1:
            return source, None
        body = ast.Return(found[0].body, lineno=line, col_offset=0)
        return source, ast.FunctionDef("lambda", found[0].args, [body], [], lineno=line,
                                       col_offset=0)
    for node in _definitions(tree, ast.FunctionDef, fn.__name__):
        if _first_line(node) <= line <= node.lineno:
            return source, node
    return source, None


def find_class(cls: type, frame: Any) -> tuple[Source, ast.ClassDef | None]:
    """The source and syntax tree of a class, seen from the frame that decorates it."""
    filename = frame.f_code.co_filename
    text = file_text(filename, frame.f_globals)
    if text is None:
        return Source("", filename), None
    lines = [v.__code__.co_firstlineno for v in vars(cls).values()
             if isinstance(v, types.FunctionType) and v.__code__.co_filename == filename]
    at = lines[0] if lines else frame.f_lineno
    source, tree = _parse_around(text, filename, frame.f_lineno)
    candidates = _definitions(tree, ast.ClassDef, cls.__name__)
    for line in (at, frame.f_lineno):
        line -= source.first_line - 1
        around = [n for n in candidates if _first_line(n) <= line <= (n.end_lineno or 0)]
        if around:
            return source, max(around, key=lambda n: n.lineno)
    return source, candidates[-1] if len(candidates) == 1 else None


def _parse_around(text: str, filename: str, line: int) -> tuple[Source, ast.Module]:
    """The tree of a whole file; where another part of it is no Python, of the block at `line`."""
    try:
        return Source(text, filename), parse_text(text, filename)
    except SyntaxError:
        import inspect

        block = "".join(inspect.getblock(text.splitlines(keepends=True)[line - 1:]))
        source, tree = parse_dedented(block, filename)
        source.first_line = line
        return source, tree


def parse_dedented(text: str, filename: str) -> tuple[Source, ast.Module]:
    """A text that may be indented as a whole. Raises DiagnosticError for a syntax error."""
    plain = textwrap.dedent(text)
    first = next((k for k, line in enumerate(plain.split("\n")) if line.strip()), 0)
    column = len(text.split("\n")[first]) - len(plain.split("\n")[first])
    source = Source(plain, filename, column=column)
    try:
        return source, parse_text(plain, filename)
    except LimitError as error:
        raise DiagnosticError(
            str(error), filename, error.line, error.column + column, error.column + column + 1,
            " " * column + source.lines[error.line - 1], error.hint) from None
    except SyntaxError as error:
        content = error.text or ""
        raise DiagnosticError(
            f"this is no Python: {error.msg}", filename, error.lineno or 1,
            (error.offset or 1) + column, (error.end_offset or 0) + column,
            " " * column + content.rstrip("\n"),
            "scripts use Python's syntax; check brackets, colons and indentation") from error


__all__ = ["Source", "file_text", "find_class", "find_function", "parse_dedented", "parse_text"]
