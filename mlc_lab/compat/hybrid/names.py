"""Where the names of a hybrid script are written and read: which of them are memory, and where.

Python's variables live on from one iteration to the next. A name whose first assignment every
iteration of a loop begins anew, and that nothing outside of the loop asks for, is memory of that
loop; any other is memory of the whole function. One that is assigned once is the value itself.
"""

from __future__ import annotations

import ast
from typing import NamedTuple


class Place(NamedTuple):
    """Where a name is met: the loops around it, and whether a branch may pass it by."""

    loops: tuple[ast.For, ...]
    maybe: bool


class Uses:
    """All places of one name."""

    def __init__(self) -> None:
        self.stores: list[Place] = []
        self.loads: list[Place] = []
        self.changed = False

    @property
    def home(self) -> tuple[ast.For, ...]:
        """The loops in which the memory of the name is made."""
        first = self.stores[0]
        count = len(first.loops)
        inside = all(p.loops[:count] == first.loops for p in (*self.stores, *self.loads))
        return first.loops if inside and not first.maybe else ()

    @property
    def once(self) -> bool:
        """Whether it is assigned in one place, and in no other."""
        return len(self.stores) == 1 and not self.changed

    @property
    def fixed(self) -> bool:
        """Whether what is assigned in that place is the value wherever the name is read."""
        return self.once and self.home == self.stores[0].loops and not self.stores[0].maybe


def is_const_range(node: ast.For) -> bool:
    """Whether the iterations of a loop are written one after another."""
    return isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) and (
        node.iter.func.id == "const_range")


class _Walk(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: dict[str, Uses] = {}
        self.loops: tuple[ast.For, ...] = ()
        self.maybe = False

    def visit_Name(self, node: ast.Name) -> None:
        uses = self.found.setdefault(node.id, Uses())
        place = Place(self.loops, self.maybe)
        (uses.loads if isinstance(node.ctx, ast.Load) else uses.stores).append(place)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        self.visit(node.target)
        if isinstance(node.target, ast.Name):
            self.found[node.target.id].changed = True

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        saved = self.loops, self.maybe
        if not is_const_range(node):
            self.loops, self.maybe = (*self.loops, node), False
        for part in node.body:
            self.visit(part)
        self.loops, self.maybe = saved

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        saved, self.maybe = self.maybe, True
        for part in (*node.body, *node.orelse):
            self.visit(part)
        self.maybe = saved


def uses_of(body: list[ast.stmt]) -> dict[str, Uses]:
    """The places of each name of a function."""
    walk = _Walk()
    for part in body:
        walk.visit(part)
    return walk.found


__all__ = ["Place", "Uses", "is_const_range", "uses_of"]
