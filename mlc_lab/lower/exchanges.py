"""Through which memory threads of a kernel exchange values, and which elements are their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..arith import Analyzer, normalize_to_iter_sum
from ..arith.expr_util import conjuncts
from ..arith.linear_form import Reader
from ..arith.omega import plus, times
from ..ir.structural import structural_equal
from ..tir.expr import (
    EQ, LT, BufferLoad, IntImm, IterVar, PrimExpr, Ramp, Range, Var,
)
from ..tir.functor import Visitor, pre_order, substitute, uses_var
from ..tir.op import as_int, logical_not
from ..tir.stmt import Allocate, AttrStmt, BufferStore, For, IfThenElse, LetStmt, Stmt


class Accesses(Visitor):
    """The accesses of memory that threads share in a kernel: indices in terms of its axes, and the
    conditions around that depend on the thread."""

    def __init__(self, ranges: Mapping[Var, Range]) -> None:
        self.ranges = ranges  # of axes and loops
        self.axes: dict[str, Var] = {}
        self.same: dict[Var, Var] = {}
        self.moving: set[Var] = set()  # variables that have several values in a thread
        self.conditions: tuple[PrimExpr, ...] = ()
        self.found: dict[Var, list[tuple[PrimExpr, ...]]] = {}
        self.written: set[Var] = set()
        self.loaded: set[Var] = set()

    def exchanged(self) -> set[Var]:
        """Memory of which a thread may read what another has written: all but that of which each
        thread accesses elements of its own at one index."""
        return {memory for memory, (first, *others) in self.found.items()
                if memory in self.written and not (
                    self._own(memory, first) and all(len(first) == len(other) and all(
                        map(structural_equal, first, other)) for other in others))}

    def _own(self, memory: Var, place: tuple[PrimExpr, ...]) -> bool:
        """Whether an element that a thread accesses at one time is not another's at another. Of
        global memory it is taken for granted that it is not another's at the same time, and that
        what is only stored is stored once."""
        shared = is_shared(memory)
        if not shared and memory not in self.loaded:
            return True
        inside = [x for e in place for x in pre_order(e)]
        if any(type(x) is BufferLoad and x.buffer.data in self.written for x in inside):
            return False
        used = {x for x in inside if isinstance(x, Var)}
        if not used & self.moving and not shared:
            return True
        threads = {v for tag, v in self.axes.items() if tag.startswith("threadIdx")}
        several = used & (self.moving | threads) | (threads if shared else set())
        if not several <= self.ranges.keys():
            return False
        several -= {v for e in place[1:] for v in pinned(e)}
        return apart(place[0], {v: r for v, r in self.ranges.items() if v in several})

    def _place(self, memory: Var, indices: Sequence[PrimExpr]) -> None:
        if memory.storage_scope == "global" or is_shared(memory):
            self.found.setdefault(memory, []).append(tuple(
                substitute(e, self.same) for e in (*indices, *self.conditions)))

    def visit_Var(self, node: Var) -> None:
        if node.dtype == "handle" and is_shared(node):  # a pointer may be used for any access
            self.written.add(node)
            self.found.setdefault(node, []).extend([(), (node,)])

    def visit_For(self, node: For) -> None:
        self.moving.add(node.loop_var)
        self.visit_children(node)

    def visit_LetStmt(self, node: LetStmt) -> None:
        self.moving.add(node.var)
        self.visit_children(node)

    def visit_AttrStmt(self, node: AttrStmt) -> None:
        if isinstance(node.node, IterVar):
            var = node.node.var
            self.same[var] = self.axes.setdefault(node.node.thread_tag, var)
        self.visit_children(node)

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        before = self.conditions
        if uses_var(node.condition, self.same.keys()):
            self.conditions = (*before, node.condition)
        self.visit(node.then_case)
        if node.else_case is not None:
            self.visit(node.else_case)
        self.conditions = before

    def visit_Allocate(self, node: Allocate) -> None:
        self.visit_children(node)
        if not is_shared(node.buffer_var):
            self.found.pop(node.buffer_var, None)

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        self.loaded.add(node.buffer.data)
        self._place(node.buffer.data, node.indices)
        self.visit_children(node)

    def visit_BufferStore(self, node: BufferStore) -> None:
        self.written.add(node.buffer.data)
        self._place(node.buffer.data, node.indices)
        self.visit_children(node)


def pinned(condition: PrimExpr) -> set[Var]:
    """Variables that have one value where a condition holds."""
    found: set[Var] = set()
    for e in conjuncts(condition):
        for a, b in ((e.a, e.b), (e.b, e.a)) if type(e) is EQ else ():
            if isinstance(a, Var) and as_int(b) is not None:
                found.add(a)
        if type(e) is LT and isinstance(e.a, Var) and as_int(e.b) == 1:
            found.add(e.a)
    return found


def apart(index: PrimExpr, ranges: Mapping[Var, Range]) -> bool:
    """Whether different values of variables surely give different elements of an index."""
    if type(index) is Ramp:
        lane = Var("lane", index.base.dtype)
        ranges = {**ranges, lane: Range.from_min_extent(0, index.lanes)}
        index = index.base + lane * index.stride
    known = Analyzer()
    for var, r in ranges.items():
        known.bind(var, r)
    return "x" not in index.dtype and is_injective(known.floored(index), ranges)


class _Stores(Visitor):
    """The stores to a memory in a loop: index, loops and conditions around each. `clear` says
    whether these tell all: not where a name stands for a value."""

    def __init__(self, memory: Var) -> None:
        self.memory = memory
        self.around: tuple[Any, ...] = ()  # loops and conditions
        self.found: list[tuple[PrimExpr, tuple[Any, ...]]] = []
        self.clear = True

    def visit_LetStmt(self, node: LetStmt) -> None:
        self.clear = False

    def visit_For(self, node: For) -> None:
        self._in(node, node.body)

    def visit_IfThenElse(self, node: IfThenElse) -> None:
        self._in(node.condition, node.then_case)
        if node.else_case is not None:
            self._in(logical_not(node.condition), node.else_case)

    def _in(self, around: For | PrimExpr, body: Stmt) -> None:
        before, self.around = self.around, (*self.around, around)
        self.visit(body)
        self.around = before

    def visit_BufferStore(self, node: BufferStore) -> None:
        if node.buffer.data is self.memory:
            self.clear &= len(node.indices) == 1 and "x" not in getattr(
                node.indices[0], "base", node.indices[0]).dtype
            self.found.append((node.indices[0], self.around))


#: stores to one memory that are compared
_STORES = 3


def stored_by_one_thread(loop: For, memory: Var, threads: Mapping[Var, Range],
                         ranges: Mapping[Var, Range]) -> bool:
    """Whether no element of a memory is surely stored by different threads in different iterations
    of a loop: two such iterations, of which one comes first, would contradict what is known.
    `ranges` are those of all axes and loops."""
    stores = _Stores(memory)
    stores.visit(loop.body)
    if not stores.clear or len(stores.found) > _STORES:
        return False
    known = Analyzer()
    for var, r in ranges.items():
        known.bind(var, r)

    def meet(first: tuple[PrimExpr, Any], second: tuple[PrimExpr, Any], var: Var, sign: int
             ) -> bool:
        reader = Reader()
        points, elements = [], []
        for side, (index, around) in enumerate((first, second)):
            loops = [(v, r.min, r.extent) for v, r in threads.items()]
            loops += [(s.loop_var, s.min, s.extent) for s in (loop, *around) if type(s) is For]
            if type(index) is Ramp:
                lane = Var("lane", index.base.dtype)
                lanes = IntImm(index.base.dtype, as_int(index.lanes) or 1)
                loops.append((lane, IntImm(index.base.dtype, 0), lanes))
                index = index.base + lane * index.stride
            point = {v: {(v, side): 1} for v, _, _ in loops}
            for v, low, extent in loops:
                at = plus(point[v], reader.form(known.floored(low), point), -1)
                reader.not_negative(at)
                reader.not_negative(plus(plus(reader.form(known.floored(extent), point), at, -1),
                                         {None: -1}))
            for condition in around:
                if type(condition) is not For:
                    reader.require(known.floored(condition), point)
            points.append(point)
            elements.append(reader.form(known.floored(index), point))
        reader.zero(plus(elements[0], elements[1], -1))
        for v, way in ((loop.loop_var, -1), (var, sign)):
            apart = plus(points[0][v], points[1][v], -1)
            reader.not_negative(plus(times(apart, way), {None: -1}))
        return not reader.impossible()

    return not any(meet(a, b, var, sign) for a in stores.found for b in stores.found
                   for var in threads for sign in (1, -1))


def is_injective(index: PrimExpr, ranges: Mapping[Var, Range]) -> bool:
    """Whether different values of variables surely give different values of an index.

    The index is written as a sum of splits of the variables (`arith/iter_map.py`). By rising scale,
    each term must be greater than all below it together (whatever their signs), and the splits of
    each variable must determine it.
    """
    total = normalize_to_iter_sum(index, ranges)
    if isinstance(total.base, PrimExpr) and uses_var(total.base, set(ranges)):
        return False  # a part that is not affine
    parts: dict[int, list[tuple[int, int]]] = {}
    extents: dict[int, int] = {}
    seen: set[Any] = set()
    below = 0
    for split in sorted(total.args, key=lambda a: abs(a.scale) if isinstance(a.scale, int) else 0):
        var = split.source.source
        numbers = [n for n in (split.scale, split.extent, split.lower_factor, split.source.extent)
                   if isinstance(n, int)]
        if len(numbers) < 4 or not isinstance(var, Var):
            return False
        scale, extent, lower, whole = abs(numbers[0]), *numbers[1:]
        if scale <= below:
            return False
        below += scale * (extent - 1)
        seen.add(var)
        parts.setdefault(id(var), []).append((lower, extent))
        extents[id(var)] = whole
    for key, found in parts.items():
        at = 1
        for lower, extent in sorted(found):
            if lower != at:
                return False
            at *= extent
        if at < extents[key]:
            return False
    return all(v in seen or as_int(r.extent) == 1 for v, r in ranges.items())


def is_shared(var: Var) -> bool:
    return var.storage_scope.startswith("shared")


__all__ = ["Accesses", "apart", "is_injective", "is_shared", "pinned",
           "stored_by_one_thread"]
