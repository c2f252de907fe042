"""LowerThreadAllreduce: threads combine their values, in halves.

Where the target has shuffles, the lanes of a warp read each other's registers. Before::

    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", 0):
        T.tvm_thread_allreduce(T.uint32(1), own[0], T.bool(True), all[0], threadIdx_x)   # 8 threads

After::

    red = T.allocate([1], "float32", "local")
    other = T.allocate([1], "float32", "local")
    red[0] = own[0]
    other[0] = T.tvm_warp_shuffle_down(T.uint32(255), red[0], 4, 32, 32)
    red[0] = red[0] + other[0]                              # the same for 2 and 1
    ...
    all[0] = T.tvm_warp_shuffle(T.uint32(255), red[0], 0, 32, 32)

The sum of more threads than a warp has goes on in shared memory, where the first lane of each warp
stores that of its warp. After one barrier all warps add these up, each for itself, by shuffles
(where the last warp has too few lanes for that, it waits for the first one).

This takes threads whose numbers in the block follow each other, and groups of threads that do not
lie across the ends of warps. Else, and where the target has no shuffles (`target/lanes.py`)::

    red = T.allocate([8], "float32", "shared")
    red[threadIdx_x] = own[0]
    T.tvm_storage_sync("shared")
    if threadIdx_x < 4:
        red[threadIdx_x] = red[threadIdx_x] + red[threadIdx_x + 4]
    T.tvm_storage_sync("shared")
    if threadIdx_x < 2:
        red[threadIdx_x] = red[threadIdx_x] + red[threadIdx_x + 2]
    T.tvm_storage_sync("shared")
    if threadIdx_x < 1:
        red[threadIdx_x] = red[threadIdx_x] + red[threadIdx_x + 1]
    T.tvm_storage_sync("shared")
    all[0] = red[0]

Threads that agree on the other axes form a group, and each group has a row of the memory. In a loop
a barrier goes first: the last results must have been read. (The methods are those of M. Harris,
"Optimizing Parallel Reduction in CUDA", 2007, with sequential addressing, and of J. Luitjens,
"Faster Parallel Reductions on Kepler", 2014.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..target import Target
from ..target.lanes import lanes_of_warp
from ..tir import op
from ..tir.buffer import Buffer, decl_buffer
from ..tir.expr import BufferLoad, Call, CommReducer, IntImm, PrimExpr, Select, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, substitute
from ..tir.stmt import (
    EMPTY, TRUE, Allocate, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, IfThenElse, LetStmt,
    Stmt, While, seq,
)
from .common import LowerError, contains, function_pass
from .thread_sync import barrier
from .unify_thread_binding import is_axis

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext
    from ..target.target import TargetLike


class _Lower(Mutator):
    def __init__(self, name: str, target: Target | None) -> None:
        super().__init__()
        self.name, self.target = name, target
        #: of threads in a block, x first, with their extents
        self.axes: dict[Var, int] = {}
        self.tags: dict[Var, str] = {}
        self.reducer: CommReducer | None = None
        self.repeats = False

    def visit(self, node: Node) -> Any:
        """Expressions hold no such calls: they are left alone."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if is_axis(node) and node.node.thread_tag.startswith("threadIdx"):
            outside = self.axes
            self.tags[node.node.var] = node.node.thread_tag
            own = {**outside, node.node.var: op.as_int(node.value) or 0}
            self.axes = dict(sorted(own.items(), key=lambda item: self.tags[item[0]]))
            new = self.default(node)
            self.axes = outside  # the next kernel has axes of its own
            return new
        if node.attr_key != "reduce_scope" or not isinstance(node.node, CommReducer):
            return self.default(node)
        before, self.reducer = self.reducer, node.node
        body = self.visit(node.body)
        self.reducer = before
        return body

    def visit_For(self, node: For) -> Stmt:
        return self._loop(node)

    def visit_While(self, node: While) -> Stmt:
        return self._loop(node)

    def _loop(self, node: Any) -> Stmt:
        before, self.repeats = self.repeats, True
        new = self.default(node)
        self.repeats = before
        return new

    def visit_Evaluate(self, node: Evaluate) -> Stmt:
        call = node.value
        if type(call) is Call and getattr(call.op, "name", "") == "tir.tvm_thread_allreduce":
            return self._reduce(call)
        return node

    def _reduce(self, call: Call) -> Stmt:
        if self.reducer is None:
            raise LowerError(f"{self.name}: T.tvm_thread_allreduce needs an attribute reduce_scope "
                             "around it, which says what combines two values")
        count = int(call.args[0])  # type: ignore[arg-type]
        values, condition = call.args[1:1 + count], call.args[1 + count]
        results: Any = call.args[2 + count:2 + 2 * count]
        sharing = set(call.args[2 + 2 * count:])
        own: list[PrimExpr] = list(values)  # type: ignore[arg-type]
        if op.as_int(condition) != 1:
            own = [op.if_then_else(condition, v, e)
                   for v, e in zip(own, self.reducer.identity_element)]
        reducing = [v for v in self.axes if v in sharing]
        grouping = [v for v in self.axes if v not in sharing]
        place, size = self._number(reducing)
        group, groups = self._number(grouping)
        lanes = lanes_of_warp(self.target, [b.dtype for b in results])
        used = [v for v, extent in self.axes.items() if extent > 1]
        follow = used[:len([v for v in reducing if self.axes[v] > 1])]  # the fastest axes
        if lanes and size > 1 and all(v in sharing for v in follow) and size <= lanes * lanes and (
                groups == 1 or lanes % size == 0 or size % lanes == 0):
            return _Shuffled(self, lanes, place, size, group, groups).reduce(own, results)
        return self._in_memory(own, results, place, size, group, groups)

    def _in_memory(self, own: Sequence[PrimExpr], results: Sequence[BufferLoad], place: PrimExpr,
                   size: int, group: PrimExpr, groups: int) -> Stmt:
        """The results by way of shared memory."""
        memory = [decl_buffer((groups * size,), b.dtype, "red_" + b.buffer.name, scope="shared")
                  for b in results]
        at = op.add(op.mul(group, op.const(size)), place)
        steps: list[Stmt] = [barrier()] if self.repeats else []
        steps += [BufferStore(m, v, (at,)) for m, v in zip(memory, own)]
        steps.append(barrier())
        half = first_half(size)
        while half and size > 1:
            more = size - half if half * 2 > size else half  # rows that are no power of two
            others = [BufferLoad(m, (op.add(at, op.const(half)),)) for m in memory]
            steps += [IfThenElse(op.less(place, op.const(more)),
                                 self.combine(memory, at, others)), barrier()]
            half //= 2
        first = op.mul(group, op.const(size))
        steps += [BufferStore(r.buffer, BufferLoad(m, (first,)), r.indices)
                  for r, m in zip(results, memory)]
        return having(memory, seq(*steps))

    def _number(self, axes: Sequence[Var]) -> tuple[PrimExpr, int]:
        """A thread's number among those on some axes, the first varying fastest, and how many
        there are."""
        total: PrimExpr = op.const(0)
        size = 1
        for var in axes:
            if not self.axes[var]:
                raise LowerError(f"{self.name}: threads of a block combine values, and the number "
                                 f"of threads on {var.name} is not a constant: bind a loop of "
                                 "fixed extent, with sch.split(loop, [None, threads])")
            total = op.add(total, op.mul(op.cast(var, "int32"), op.const(size)))
            size *= self.axes[var]
        return total, size

    def combine(self, memory: Sequence[Buffer], at: PrimExpr, others: Sequence[PrimExpr]) -> Stmt:
        """Each memory's element, combined with another value; all before one is stored."""
        assert self.reducer is not None
        table: dict[Var, PrimExpr] = {}
        for m, other, x, y in zip(memory, others, self.reducer.lhs, self.reducer.rhs):
            table[x], table[y] = BufferLoad(m, (at,)), other
        new = [substitute(e, table) for e in self.reducer.result]
        if len(memory) == 1:
            return BufferStore(memory[0], new[0], (at,))
        names = [Var(f"v_{m.name}", m.dtype) for m in memory]
        body: Stmt = seq(*(BufferStore(m, n, (at,)) for m, n in zip(memory, names)))
        for name, value in reversed([*zip(names, new)]):
            body = LetStmt(name, value, body)
        return body


class _Shuffled:
    """A reduction by shuffles: a group of `size` threads has its lanes in one warp, or whole
    warps."""

    def __init__(self, outer: _Lower, lanes: int, place: PrimExpr, size: int, group: PrimExpr,
                 groups: int) -> None:
        self.combine, self.repeats = outer.combine, outer.repeats
        self.lanes, self.place, self.size = lanes, place, size
        self.group, self.groups = group, groups
        self.number = number = op.add(op.mul(group, op.const(size)), place)
        alone = size * groups <= lanes
        self.lane = number if alone else op.floormod(number, op.const(lanes))
        self.warp = op.floordiv(number, op.const(lanes))
        self.mask = _mask(number, size * groups, lanes)

    def reduce(self, own: Sequence[PrimExpr], results: Sequence[BufferLoad]) -> Stmt:
        """The results in all threads."""
        mine, other = ([decl_buffer((1,), r.dtype, name + r.buffer.name, scope="local")
                        for r in results] for name in ("red_", "other_"))
        steps: list[Stmt] = [BufferStore(m, v, (0,)) for m, v in zip(mine, own)]
        stage: list[Buffer] = []
        last = self.place, self.size
        if self.size > self.lanes:
            steps += self._halves(mine, other, self.place, self.size)
            warps = -(-self.size // self.lanes)  # of a group
            stage = [decl_buffer((self.groups * warps,), r.dtype, "warps_" + r.buffer.name,
                                 scope="shared") for r in results]
            first = op.mul(self.group, op.const(warps))
            steps += [barrier()] if self.repeats else []
            steps.append(IfThenElse(op.equal(self.lane, op.const(0)), seq(*(
                BufferStore(s, BufferLoad(m, (0,)), (self.warp,)) for s, m in zip(stage, mine)))))
            steps.append(barrier())
            among = op.floormod(self.number if self.lanes % warps == 0 else self.lane,
                                op.const(warps))
            steps += [BufferStore(m, BufferLoad(s, (op.add(first, among),)), (0,))
                      for s, m in zip(stage, mine)]
            last = self.lane, warps
        steps += self._halves(mine, other, *last)
        if self.size > self.lanes and 0 < self.size % self.lanes < last[1]:
            # the last warp has fewer lanes than there are warps: it takes what the first has
            whole = [decl_buffer((1,), r.dtype, "whole_" + r.buffer.name, scope="shared")
                     for r in results]
            steps.append(IfThenElse(op.equal(self.place, op.const(0)), seq(*(
                BufferStore(w, BufferLoad(m, (0,)), (0,)) for w, m in zip(whole, mine)))))
            steps.append(barrier())
            steps += [BufferStore(r.buffer, BufferLoad(w, (0,)), r.indices)
                      for r, w in zip(results, whole)]
            return having([*stage, *whole, *mine, *other], seq(*steps))
        start = op.const(0)
        if self.size <= self.lanes and self.groups > 1:
            start = op.sub(self.lane, self.place) if self.size * self.groups <= self.lanes else (
                op.mul(op.floordiv(self.lane, op.const(self.size)), op.const(self.size)))
        steps += [BufferStore(r.buffer, self._shuffle("", m, start), r.indices)
                  for r, m in zip(results, mine)]
        return having([*stage, *mine, *other], seq(*steps))

    def _halves(self, mine: Sequence[Buffer], other: Sequence[Buffer], place: PrimExpr, size: int
                ) -> list[Stmt]:
        """The first lane has the sum of those of its warp whose place is less than `size`."""
        steps: list[Stmt] = []
        half = min(first_half(size), self.lanes // 2)
        while half:
            steps += [BufferStore(o, self._shuffle("_down", m, op.const(half)), (0,))
                      for o, m in zip(other, mine)]
            both = self.combine(mine, op.const(0), [BufferLoad(o, (0,)) for o in other])
            there = size % (2 * half) == 0 or 2 * half <= size <= self.lanes
            steps.append(both if there else IfThenElse(
                op.less(op.add(place, op.const(half)), op.const(size)), both))
            half //= 2
        return steps

    def _shuffle(self, way: str, memory: Buffer, lane: PrimExpr) -> PrimExpr:
        many = op.const(self.lanes)
        return Call(memory.dtype, f"tir.tvm_warp_shuffle{way}", (
            self.mask, BufferLoad(memory, (0,)), lane, many, many))


def _mask(number: PrimExpr, threads: int, lanes: int) -> PrimExpr:
    """The lanes of a thread's warp that threads have, as bits: the last warp may have fewer."""
    def bits(count: int) -> PrimExpr:
        return IntImm("uint32", (1 << min(count, 32)) - 1)

    left = threads % lanes
    if not left or threads < lanes:
        return bits(left or lanes)
    return Select(op.less(number, op.const(threads - left)), bits(lanes), bits(left))


def first_half(size: int) -> int:
    """The greatest power of two that is less than a number, at least 1."""
    return 1 << max(size - 1, 1).bit_length() - 1


def having(memory: Sequence[Buffer], body: Stmt) -> Stmt:
    """A statement with memory of its own."""
    for m in reversed(memory):
        body = Allocate.from_fields(m.data, m.dtype, m.shape, TRUE,
                                    DeclBuffer.from_fields(m, body), EMPTY)
    return body


def LowerThreadAllreduce(target: TargetLike = None) -> Pass:
    """Let threads combine their values, in halves: by shuffles where the target has them, else
    through shared memory."""
    where = target if isinstance(target, Target) else None

    def rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        if not contains(func.body, (AttrStmt,)):
            return func
        name = str(func.attrs.get("global_symbol", "main"))
        return func.with_body(_Lower(name, where).visit(func.body))

    return function_pass("LowerThreadAllreduce", rewrite)
