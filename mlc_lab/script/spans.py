"""Where each node stands in the printed text, for underlining and for views.

The printer's own text is marked with control characters around each node (they cannot occur in a
script, whose strings are escaped); one scan at the end turns the marks into positions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Sequence

from ..ir.diagnostics import render_source
from ..ir.recursion import grows_stack
from ..tir import stmt as S
from ..tir.buffer import Buffer
from ..tir.expr import IterVar
from .printer import Printer

if TYPE_CHECKING:
    from ..ir.node import Node

_MARK = re.compile("\x01(\\d+)\x02|\x03")


class Span(tuple):
    """(node, first line, first column, last line, end column); lines and columns from 0.

    `role` says which part of the node this is: "stmt", "block" (a whole statement or block),
    "loop" (a loop variable), "extent", "body", "buffer" (a definition) or "expr".
    """

    role: str

    def __new__(cls, values: Sequence[Any], role: str) -> "Span":
        self = super().__new__(cls, values)
        self.role = role
        return self


class Printed(NamedTuple):
    """A script and where its nodes stand in it; `spans` in order of their start."""

    text: str
    spans: list

    def of(self, node: Node, role: str | None = None) -> list:
        """The places of one node."""
        return [s for s in self.spans if s[0] is node and (role is None or s.role == role)]

    def find(self, node: Node) -> Any:
        """The first place of a node as (line0, col0, line1, col1), or None."""
        for span in self.spans:
            if span[0] is node:
                return tuple(span[1:])
        return None


class SpanPrinter(Printer):
    """A printer that leaves marks."""

    expressions = False

    def __init__(self, **options: Any) -> None:
        self.marked: list[tuple[Any, str]] = []
        self.pending = ""
        super().__init__(**options)

    def open(self, node: Node, role: str) -> str:
        self.marked.append((node, role))
        return f"\x01{len(self.marked) - 1}\x02"

    def mark(self, node: Node, text: str, role: str) -> str:
        return f"{self.open(node, role)}{text}\x03"

    def line(self, text: str, defines: Sequence[S.For | IterVar] = ()) -> None:
        self.out.append(self.indent + self.pending + text)
        self.pending = ""

    def expr(self, node: Any, outer: int = 0) -> str:
        text = super().expr(node, outer)
        return self.mark(node, text, "expr") if self.expressions else text

    def exprs(self, nodes: Any) -> str:
        return ", ".join([self.expr(n) for n in nodes])

    def region(self, region: Any) -> str:
        text = super().region(region)
        return self.mark(region, text, "expr") if self.expressions else text

    def stmt(self, node: Any) -> None:
        before = self.pending
        if type(node) is S.SeqStmt:
            super().stmt(node)
            return
        self.pending = before + self.open(node, "stmt")
        if type(node) is S.BlockRealize:
            self.pending += self.open(node.block, "block")
        super().stmt(node)
        self.out[-1] += "\x03\x03" if type(node) is S.BlockRealize else "\x03"

    def loop_name(self, loop: Any) -> str:
        return self.mark(loop, super().loop_name(loop), "loop")

    def loop_extent(self, loop: Any) -> str:
        return self.mark(loop, super().loop_extent(loop), "extent")

    def loop_body(self, loop: Any, body: Any) -> None:
        at = len(self.out)
        super().loop_body(loop, body)
        first = self.out[at]
        content = first.lstrip(" ")
        self.out[at] = first[:len(first) - len(content)] + self.open(loop, "body") + content
        self.out[-1] += "\x03"

    def buffer_line(self, text: str, buffer: Buffer) -> None:
        self.line(self.mark(buffer, text, "buffer"))

    def param(self, buffer: Buffer, text: str) -> str:
        return self.mark(buffer, text, "buffer")

    def insert(self, frame: Any, text: str, node: Node | None = None) -> None:
        super().insert(frame, self.mark(node, text, "buffer") if node is not None else text, node)

    def function(self, func: Any, name: str) -> None:
        self.pending += self.open(func, "stmt")
        super().function(func, name)
        self.out[-1] += "\x03"

    def root_comment(self, root: S.Block, realize: S.BlockRealize) -> None:
        self.pending += self.open(root, "block") + self.open(realize, "stmt")
        super().root_comment(root, realize)
        self.out[-1] += "\x03\x03"


class _ExprSpanPrinter(SpanPrinter):
    expressions = True


def print_with_spans(obj: object, *, exprs: bool = False, **options: object) -> Printed:
    """The script of `obj` and where its nodes stand in it.

    Every statement, block, loop and buffer definition has a span; every expression too where
    `exprs` is set. In a T.grid each loop has its own "loop" (variable) and "extent" spans.
    Options are those of `script`.
    """
    @grows_stack
    def attempt() -> tuple[str, SpanPrinter]:
        printer = (_ExprSpanPrinter if exprs else SpanPrinter)(**options)
        return printer.print(obj), printer

    marked, printer = attempt()
    spans: list[Span] = []
    clean: list[str] = []
    stack: list[tuple[int, int, int]] = []
    for number, line in enumerate(marked.split("\n")):
        if "\x01" not in line and "\x03" not in line:
            clean.append(line)
            continue
        parts, column, last = [], 0, 0
        for match in _MARK.finditer(line):
            piece = line[last:match.start()]
            parts.append(piece)
            column += len(piece)
            last = match.end()
            if match.group(1) is not None:
                stack.append((int(match.group(1)), number, column))
            else:
                index, line0, col0 = stack.pop()
                node, role = printer.marked[index]
                spans.append(Span((node, line0, col0, number, column), role))
        parts.append(line[last:])
        clean.append("".join(parts))
    spans.sort(key=lambda s: (s[1], s[2], -s[3], -s[4]))
    return Printed("\n".join(clean), spans)


def script_with_marks(obj: object, underline: Sequence[Any], annotate: Mapping[Any, str],
                      context: int | None = None, **options: object) -> str:
    """The script with the places of some nodes underlined, and comments after others."""
    printed = print_with_spans(obj, exprs=True, **options)
    lines = printed.text.split("\n")
    for node, note in annotate.items():
        place = printed.find(node)
        if place is not None:
            lines[place[0]] += f"  # {note}"
    loops = {id(s[0]) for s in printed.spans if s.role == "loop"}
    wanted = []
    for span in printed.spans:
        node, line0, col0, line1, col1 = span
        if span.role == "body" or not any(node is n for n in underline):
            continue
        if span.role == "stmt" and id(node) in loops:
            continue  # its variable and extent are underlined instead
        if line1 > line0:  # of a statement of several lines, the first says which it is
            line1, col1 = line0, len(lines[line0])
        wanted.append((line0, col0, line1, col1))
    return render_source("\n".join(lines), wanted, context if context and context > 0 else None)


def script_underlined(obj: object, nodes: Sequence[Any], context: int | None = None,
                      **options: object) -> str:
    """The script with `nodes` underlined, for errors; `context` keeps that many lines around."""
    return script_with_marks(obj, nodes, {}, context, **options)


__all__ = ["Printed", "Span", "SpanPrinter", "print_with_spans",
           "script_underlined", "script_with_marks"]
