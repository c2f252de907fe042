"""LowerThreadAllreduce: threads combine their values through shared memory, in halves.

Before::

    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", 0):
        T.tvm_thread_allreduce(T.uint32(1), own[0], T.bool(True), all[0], threadIdx_x)   # 8 threads

After::

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
a barrier goes first: the last results must have been read. (The method is that of M. Harris,
"Optimizing Parallel Reduction in CUDA", 2007, with sequential addressing.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..ir.transform import Pass
from ..tir import op
from ..tir.buffer import Buffer, decl_buffer
from ..tir.expr import BufferLoad, Call, CommReducer, PrimExpr, Var
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


class _Lower(Mutator):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.axes: dict[Var, int] = {}  # of threads in a block, with their extents
        self.reducer: CommReducer | None = None
        self.repeats = False

    def visit(self, node: Node) -> Any:
        """Expressions hold no such calls: they are left alone."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if is_axis(node) and node.node.thread_tag.startswith("threadIdx"):
            outside = dict(self.axes)
            self.axes[node.node.var] = op.as_int(node.value) or 0
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
        results, sharing = call.args[2 + count:2 + 2 * count], call.args[2 + 2 * count:]
        reducing = [v for v in self.axes if v in set(sharing)]
        grouping = [v for v in self.axes if v not in set(sharing)]
        place, size = self._number(reducing)
        group, groups = self._number(grouping)
        memory = [decl_buffer((groups * size,), b.dtype, "red_" + b.buffer.name, scope="shared")
                  for b in results]  # type: ignore[union-attr]
        at = op.add(op.mul(group, op.const(size)), place)
        own: list[PrimExpr] = list(values)  # type: ignore[arg-type]
        if op.as_int(condition) != 1:
            own = [op.if_then_else(condition, v, e)
                   for v, e in zip(own, self.reducer.identity_element)]
        steps: list[Stmt] = [barrier()] if self.repeats else []
        steps += [BufferStore(m, v, (at,)) for m, v in zip(memory, own)]
        steps.append(barrier())
        half = 1
        while half * 2 < size:
            half *= 2
        while half and size > 1:
            more = size - half if half * 2 > size else half  # rows that are no power of two
            steps += [IfThenElse(op.less(place, op.const(more)),
                                 self._combine(memory, at, half)), barrier()]
            half //= 2
        first = op.mul(group, op.const(size))
        steps += [BufferStore(r.buffer, BufferLoad(m, (first,)), r.indices)  # type: ignore[union-attr]
                  for r, m in zip(results, memory)]
        body: Stmt = seq(*steps)
        for m in reversed(memory):
            body = Allocate.from_fields(m.data, m.dtype, m.shape, TRUE,
                                        DeclBuffer.from_fields(m, body), EMPTY)
        return body

    def _number(self, axes: Sequence[Var]) -> tuple[PrimExpr, int]:
        """A thread's number among those on some axes, the first varying fastest, and how many
        there are."""
        total: PrimExpr = op.const(0)
        size = 1
        for var in sorted(axes, key=lambda v: v.name):
            if not self.axes[var]:
                raise LowerError(f"{self.name}: threads of a block combine values, and the number "
                                 f"of threads on {var.name} is not a constant: bind a loop of "
                                 "fixed extent, with sch.split(loop, [None, threads])")
            total = op.add(total, op.mul(op.cast(var, "int32"), op.const(size)))
            size *= self.axes[var]
        return total, size

    def _combine(self, memory: Sequence[Buffer], at: PrimExpr, half: int) -> Stmt:
        """Each memory's element, combined with the one `half` further; all before one is stored."""
        assert self.reducer is not None
        table: dict[Var, PrimExpr] = {}
        for m, x, y in zip(memory, self.reducer.lhs, self.reducer.rhs):
            table[x] = BufferLoad(m, (at,))
            table[y] = BufferLoad(m, (op.add(at, op.const(half)),))
        new = [substitute(e, table) for e in self.reducer.result]
        if len(memory) == 1:
            return BufferStore(memory[0], new[0], (at,))
        names = [Var(f"v_{m.name}", m.dtype) for m in memory]
        body: Stmt = seq(*(BufferStore(m, n, (at,)) for m, n in zip(memory, names)))
        for name, value in reversed([*zip(names, new)]):
            body = LetStmt(name, value, body)
        return body


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Reductions across threads through shared memory."""
    if not contains(func.body, (AttrStmt,)):
        return func
    name = str(func.attrs.get("global_symbol", "main"))
    return func.with_body(_Lower(name).visit(func.body))


def LowerThreadAllreduce() -> Pass:
    """Let threads combine their values through shared memory, in halves."""
    return function_pass("LowerThreadAllreduce", _rewrite)
