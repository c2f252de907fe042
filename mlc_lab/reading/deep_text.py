"""Syntax trees of texts that are nested deeper than Python's own parser takes.

CPython's tokenizer stops at 100 levels of indentation and at 200 open brackets
(`Parser/tokenizer.h`: MAXINDENT, MAXLEVEL). What is printed may be deeper: 300 loops with
annotations, a maximum of 250 terms. Such a text is cut: what lies some levels inside is taken out,
a name stands in its place, and each piece is parsed by itself. The trees are then put together, and
every node gets the place that it has in the whole text.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from keyword import kwlist
from typing import Any, NamedTuple

from . import limits
from .errors import LimitError

#: what to do about an expression that is too deep
SPLIT = "split the expression, or bind parts of it to names"

#: levels of indentation, and of brackets, that a piece has
BLOCKS, BRACKETS = 50, 60

#: what begins a string, a comment, a bracket, a line, or joins two lines
_MARKS = re.compile(rb"'''|\"\"\"|['\"#()\[\]{}\n]|\\\r?\n")
_CLOSING = {b"(": b")", b"[": b"]", b"{": b"}"}


def too_deep_for_python(error: SyntaxError) -> bool:
    """Whether an error of `ast.parse` says that a text is nested too deeply."""
    return "too many nested parentheses" in str(error.msg) or (
        "too many levels of indentation" in str(error.msg))


def parse_deep(text: str, filename: str, mode: str) -> Any:
    """The tree that `ast.parse` would give if it took texts of any depth.

    Raises SyntaxError, with the line of the whole text, and LimitError where it is too deep.
    """
    source = text.encode()
    name = b"deep_"
    while name in source:
        name += b"_"
    whole = _Whole(name.decode(), filename)
    blocks = _blocks(source, name)
    bodies: dict[str, list[ast.stmt]] = {}
    tree: Any = None
    for number in reversed(range(len(blocks))):  # the inner ones first
        tree = whole.tree(blocks[number], mode if number == 0 else "exec")
        _put(tree, bodies)
        if number:
            bodies[f"{name.decode()}b{number}"] = tree.body[0].body
    return tree


#: fields that hold statements, or what holds statements
_SUITES = ("body", "handlers", "orelse", "finalbody", "cases")


def _put(tree: ast.AST, bodies: dict[str, list[ast.stmt]]) -> None:
    """The statements that were taken out of blocks, in their places."""
    stack, seen = [tree], list[Any]()
    while stack:
        node = stack.pop()
        seen.append(node)
        for field in _SUITES:
            items = getattr(node, field, None)
            if not isinstance(items, list):
                continue
            first = items[0] if len(items) == 1 else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Name) and (
                    first.value.id in bodies):
                setattr(node, field, bodies.pop(first.value.id))
            else:
                stack += items
    for node in reversed(seen):  # a statement ends where the last one in it does
        suites: list[Any] = [getattr(node, field, None) for field in _SUITES]
        inside: list[Any] = [item for suite in suites if isinstance(suite, list) for item in suite]
        if inside and hasattr(node, "end_lineno") and hasattr(inside[-1], "end_lineno"):
            node.end_lineno, node.end_col_offset = inside[-1].end_lineno, inside[-1].end_col_offset


# ------------------------------------------------------------------------------- blocks


class _Block(NamedTuple):
    """Lines that are parsed together: what they are, and the number of each in the whole text."""

    text: bytes
    lines: list[int]


def _blocks(source: bytes, name: bytes) -> list[_Block]:
    """The text without what lies deep in its blocks, then what lies there, the outer ones first."""
    lines = [*re.findall(rb"[^\n]*\n|[^\n]+\Z", source)]
    starts = _logical_lines(source)
    pieces: list[tuple[list[bytes], list[int]]] = [([], [])]
    here, indents = [0], [0]  # the pieces around, and the columns of the levels around
    for number, line in enumerate(lines):
        stripped = line.lstrip(b" \t\f")
        if number in starts and stripped.strip() and not stripped.startswith(b"#"):
            column = len(line[:len(line) - len(stripped)].expandtabs(8))
            while column < indents[-1]:
                if (len(indents) - 1) % BLOCKS == 0:
                    here.pop()
                indents.pop()
            if column > indents[-1]:
                indents.append(column)
                if (len(indents) - 1) % BLOCKS == 0:
                    outer = pieces[here[-1]]
                    here.append(len(pieces))
                    outer[0].append(line[:len(line) - len(stripped)] + name + b"b%d\n" % here[-1])
                    outer[1].append(number)
                    pieces.append(([b"if 1:\n"], [number]))
        pieces[here[-1]][0].append(line)
        pieces[here[-1]][1].append(number)
    return [_Block(b"".join(text), numbers) for text, numbers in pieces]


def _logical_lines(source: bytes) -> set[int]:
    """The lines that begin outside of strings and brackets, and go on with no other."""
    out, line, depth = {0}, 0, 0
    for mark, _, string in _scan(source):
        if string:
            line += string.count(b"\n")
        elif mark in _CLOSING:
            depth += 1
            if depth > limits.DEPTH:
                raise LimitError(f"brackets are nested more than {limits.DEPTH} levels deep",
                                 SPLIT, line + 1)
        elif mark in (b")", b"]", b"}"):
            depth -= 1
        elif mark.endswith(b"\n"):
            line += 1
            if depth <= 0 and mark == b"\n":
                out.add(line)
    return out


def _scan(source: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """(mark, where, string): brackets and ends of lines outside of strings and comments, and the
    strings, whose mark is their quote."""
    at = 0
    while (found := _MARKS.search(source, at)) is not None:
        mark, where, at = found.group(), found.start(), found.end()
        if mark == b"#":
            end = source.find(b"\n", at)
            at = end if end >= 0 else len(source)
        elif mark[:1] in b"'\"":
            while True:
                end = source.find(mark, at)
                if end < 0:
                    at = len(source)
                    break
                slashes = end
                while slashes > at and source[slashes - 1:slashes] == b"\\":
                    slashes -= 1
                at = end + (len(mark) if (end - slashes) % 2 == 0 else 1)
                if (end - slashes) % 2 == 0:
                    break
            yield mark, where, source[where:at]
        else:
            yield mark, where, b""


# ------------------------------------------------------------------------------- brackets


#: what stands around the inside of brackets, so that it can be parsed
_AROUND = {"call": (b"f(", b")"), "group": (b"(", b")"), "slice": (b"a[", b"]"),
           "list": (b"[", b"]"), "set": (b"{", b"}"), "": (b"", b"")}
#: the word before a bracket, if there is one
_WORD = re.compile(rb"([\w\x80-\xff]+|[)\]}'\"])[ \t]*\Z")
_KEYWORDS = frozenset(word.encode() for word in kwlist if word not in ("None", "True", "False"))


def _kind(source: bytes, where: int) -> str:
    """What a bracket is: that of a call, of a slice, or of an expression."""
    mark = source[where:where + 1]
    if mark == b"{":
        return "set"
    word = _WORD.search(source, max(where - 200, 0), where)
    after = word is not None and word.group(1) not in _KEYWORDS
    return ("call" if after else "group") if mark == b"(" else "slice" if after else "list"


class _Piece:
    """What is parsed together: parts of a source, with names for what was taken out."""

    def __init__(self, start: int, kind: str = "") -> None:
        self.kind, self.parts = kind, list[bytes]()
        #: where each part begins in the piece
        self.own: list[int] = []
        #: where it begins and ends in the source, and whether a name stands for what is there
        self.there: list[tuple[int, int, bool]] = []
        self.length, self.start = 0, start

    def add(self, part: bytes, start: int, end: int, name: bool = False) -> None:
        self.parts.append(part)
        self.own.append(self.length)
        self.there.append((start, end, name))
        self.length += len(part)

    def place(self, at: int, is_end: bool) -> int:
        """Where an offset of the piece is in the source."""
        look = max(at - is_end, 0)  # an end belongs to the part that it ends
        number = max(bisect_right(self.own, look) - 1, 0)
        start, end, name = self.there[number]
        if name:
            return end if is_end else start
        return start + (at - self.own[number])


class _Whole:
    """Puts the pieces of a block together."""

    def __init__(self, name: str, filename: str) -> None:
        self.name, self.filename = name, filename

    def tree(self, block: _Block, mode: str) -> Any:
        """The tree of a block; what lies deep in its brackets is parsed apart."""
        self.block = block
        self.starts = _line_starts(block.text)
        self.pieces = _pieces(block.text, self.name.encode())
        tree = self._parsed(self.pieces[0], mode, *_AROUND[""])
        todo: list[Any] = [tree]
        while todo:
            node = todo.pop()
            for field, value in ast.iter_fields(node):
                if isinstance(value, list):
                    for n, item in enumerate(value):
                        if isinstance(item, ast.AST):
                            value[n] = self._instead(node, field, item)
                    todo += [v for v in getattr(node, field) if isinstance(v, ast.AST)]
                elif isinstance(value, ast.AST):
                    new = self._instead(node, field, value)
                    setattr(node, field, new)
                    todo.append(new)
        return tree

    def _piece(self, node: Any) -> _Piece | None:
        """The piece that a node stands for."""
        if isinstance(node, ast.Name) and node.id.startswith(f"{self.name}p"):
            return self.pieces[int(node.id[len(self.name) + 1:])]
        return None

    def _instead(self, parent: ast.AST, field: str, node: Any) -> Any:
        """A node, or what was taken out in its place."""
        while (piece := self._piece(node)) is not None:
            made = self._parsed(piece, "eval", *_AROUND[piece.kind]).body
            if type(node.ctx) is not ast.Load:
                _set_context(made, node.ctx)
            node = made.slice if piece.kind == "slice" else made
        if isinstance(node, ast.Call) and len(node.args) == 1:
            piece = self._piece(node.args[0])
            if piece is not None and piece.kind == "call":
                made = self._parsed(piece, "eval", *_AROUND["call"]).body
                node.args, node.keywords = made.args, made.keywords
        elif isinstance(node, (ast.List, ast.Set)) and len(node.elts) == 1:
            piece = self._piece(node.elts[0])
            if piece is not None and piece.kind in ("list", "set"):
                old = node
                node = self._parsed(piece, "eval", *_AROUND[piece.kind]).body
                for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
                    setattr(node, name, getattr(old, name))
                if isinstance(old, ast.List) and type(old.ctx) is not ast.Load:
                    _set_context(node, old.ctx)
        return node

    def _parsed(self, piece: _Piece, mode: str, left: bytes, right: bytes) -> Any:
        text = left + b"".join(piece.parts) + right
        starts = _line_starts(text)
        try:
            tree = ast.parse(text, self.filename, mode)
        except SyntaxError as error:
            if error.lineno is not None:
                at = starts[min(error.lineno, len(starts)) - 1] - len(left)
                at = min(max(at + (error.offset or 1) - 1, 0), piece.length)
                error.lineno, error.offset = _one_based(self._line_of(piece.place(at, False)))
                error.offset += 1
                error.text = error.end_lineno = error.end_offset = None

            def there(match: re.Match[str]) -> str:
                at = starts[min(int(match[1]), len(starts)) - 1] - len(left)
                line, _ = self._line_of(piece.place(min(max(at, 0), piece.length), False))
                return f"on line {line + 1}"

            error.msg = re.sub(r"on line (\d+)", there, error.msg)
            raise

        def moved(line: int, column: int, is_end: bool) -> tuple[int, int]:
            at = starts[line - 1] + column - len(left)
            if at < 0 or at > piece.length:  # the brackets around
                at = min(max(at, 0), piece.length)
                edge = piece.start - 1 if not is_end else piece.place(at, True) + 1
                return self._line_of(edge)
            return self._line_of(piece.place(at, is_end))

        for node in ast.walk(tree):
            if hasattr(node, "lineno"):
                at: Any = node
                end = moved(at.end_lineno, at.end_col_offset, True)
                at.lineno, at.col_offset = _one_based(moved(at.lineno, at.col_offset, False))
                at.end_lineno, at.end_col_offset = _one_based(end)
        return tree

    def _line_of(self, at: int) -> tuple[int, int]:
        """(line of the whole text, column) of an offset in the block."""
        line = bisect_right(self.starts, at) - 1
        return self.block.lines[min(line, len(self.block.lines) - 1)], at - self.starts[line]


def _set_context(node: Any, ctx: ast.expr_context) -> None:
    """Say that an expression is assigned to."""
    stack = [node]
    while stack:
        node = stack.pop()
        if hasattr(node, "ctx"):
            node.ctx = ctx
        stack += getattr(node, "elts", ())
        if isinstance(node, ast.Starred):
            stack.append(node.value)


def _one_based(place: tuple[int, int]) -> tuple[int, int]:
    return place[0] + 1, place[1]


def _line_starts(text: bytes) -> list[int]:
    return [0, *(m.end() for m in re.finditer(rb"\n", text))]


def _pieces(source: bytes, name: bytes) -> list[_Piece]:
    """The source without what lies deep in brackets, then what lies there."""
    pieces, here, depth = [_Piece(0)], [0], 0
    at = 0
    for mark, where, string in _scan(source):
        if string or mark.endswith(b"\n"):
            continue
        if mark in _CLOSING:
            depth += 1
            if depth % BRACKETS == 0:
                pieces[here[-1]].add(source[at:where + 1], at, where + 1)
                at = where + 1
                here.append(len(pieces))
                pieces.append(_Piece(at, _kind(source, where)))
        else:
            if depth % BRACKETS == 0 and len(here) > 1:
                number = here.pop()
                piece = pieces[number]
                piece.add(source[at:where], at, where)
                if b"".join(piece.parts).strip():
                    pieces[here[-1]].add(name + b"p%d" % number, piece.start, where, True)
                at = where
            depth -= 1
    pieces[here[0]].add(source[at:], at, len(source))
    return pieces


__all__ = ["BLOCKS", "BRACKETS", "SPLIT", "parse_deep", "too_deep_for_python"]
