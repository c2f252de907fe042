"""How wide the index arithmetic of a program is: what its integer expressions come to.

For the passes that give indices a narrower type: `NarrowDataType` and `ForceNarrowIndexToInt32`.
"""

from __future__ import annotations

from typing import Any

from ..arith import Analyzer
from ..ir.dtype import int_range
from ..tir.expr import BufferLoad, Call, Cast, IterVar, PrimExpr, Range, Var
from ..tir.functor import Visitor
from ..tir.op import const
from ..tir.stmt import AttrStmt, Block, For

_WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


class Widths(Visitor):
    """Walks a program; afterwards `beyond` has the integer expressions that may come to more than
    `dtype` holds, with their bounds, and `local` the variables of loops, threads and blocks."""

    def __init__(self, dtype: str) -> None:
        self.low, self.high = int_range(dtype)
        self.analyzer = Analyzer()
        self.beyond: list[tuple[PrimExpr, int, int]] = []
        self.local: dict[Var, Range] = {}

    def _enter(self, var: Var, dom: Range) -> None:
        if var in self.local and dom is not self.local[var]:
            self.analyzer.unbind(var)  # bound twice: nothing is said of it
        else:
            self.analyzer.bind(var, dom, True)
        self.local[var] = dom
        self._note(dom.extent)

    def _note(self, e: PrimExpr) -> None:
        if e.dtype in _WIDTHS:
            low, high = self.analyzer.const_int_bound_tuple(e)
            if low < self.low or high > self.high:
                self.beyond.append((e, low, high))

    def visit_PrimExpr(self, node: PrimExpr) -> None:
        """Any expression."""
        self._note(node)
        self.visit_children(node)

    def visit_For(self, node: For) -> None:
        """A loop and its variable."""
        self._enter(node.loop_var, Range.from_min_extent(node.min, node.extent))
        self.visit_children(node)

    def visit_Block(self, node: Block) -> None:
        """A block and its iterators."""
        for iv in node.iter_vars:
            self._enter(iv.var, iv.dom)
        super().visit_Block(node)

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        """A launch of a thread axis."""
        if node.attr_key in ("thread_extent", "virtual_thread") and isinstance(node.node, IterVar):
            var = node.node.var
            self._enter(var, Range.from_min_extent(const(0, var.dtype), node.value))
        self.visit_children(node)

    def wide(self) -> set[Var]:
        """The variables that arithmetic beyond the type is done with."""
        found: set[Var] = set()
        stack: list[Any] = [e for e, _, _ in self.beyond]
        while stack:
            item = stack.pop()
            if isinstance(item, Var):
                found.add(item)
            elif not isinstance(item, (BufferLoad, Call, Cast)):  # what is in these is noted apart
                stack += item.children()
        return found


__all__ = ["Widths"]
