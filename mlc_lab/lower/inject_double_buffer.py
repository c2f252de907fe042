"""InjectDoubleBuffer: memory is filled for the next iteration while this one uses it.

Before::

    for i in range(16):
        B = T.allocate([32], "float32", "shared")
        with T.attr(B, "double_buffer_scope", 1):
            for j in range(32):
                B[j] = A[i * 32 + j]
        for j in range(32):
            C[i * 32 + j] = B[j] + 1.0

After::

    B = T.allocate([64], "float32", "shared")
    for j in range(32):
        B[j] = A[j]
    for i in range(15):
        with T.attr(B, "double_buffer_write", 1):
            for j in range(32):
                B[(i + 1) % 2 * 32 + j] = A[(i + 1) * 32 + j]
        for j in range(32):
            C[i * 32 + j] = B[i % 2 * 32 + j] + 1.0
    for j in range(32):
        C[480 + j] = B[32 + j] + 1.0

It works on flat memory. The statement under `double_buffer_scope` moves an iteration ahead of the
rest of the loop's body, which is legal where the two touch no common memory but the buffer, and
where the rest of the body only reads the buffer. A scope of which that is not seen, or whose loop
is not serial, stays as it is: it is a hint.

The option `tir.InjectDoubleBuffer` of a PassContext has `split_loop`: how many iterations are
written out in the loop's body (1, or an even number, so that the half in use is a constant); 0
keeps the loop whole, with the next iteration under a condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, Call, PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.functor import (
    Mutator, all_statements, free_vars, leaves_loop, pre_order, substitute,
)
from ..tir.op import as_int
from ..tir.op.intrinsic import PURE, effect_of
from ..tir.stmt import (
    Allocate, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, ForKind, IfThenElse, LetStmt,
    SeqStmt, Stmt, seq,
)
from .common import function_pass, lane_add
from .convert_ssa import bound_once, bound_variables

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext

SCOPE, WRITE = "double_buffer_scope", "double_buffer_write"


@dataclass
class _Found:
    """A scope in the body of a loop, and the allocation that it fills."""

    scope: AttrStmt
    allocate: Allocate

    @property
    def memory(self) -> Var:
        return self.allocate.buffer_var


class _Inject(Mutator):
    def __init__(self, split: int) -> None:
        super().__init__()
        self.split = split

    def visit(self, node: Node) -> Any:
        """Only statements hold loops."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_For(self, node: For) -> Stmt:
        loop = super().visit_For(node)
        assert type(loop) is For
        if loop.kind is not ForKind.SERIAL or as_int(loop.min) != 0 or leaves_loop(loop.body):
            return loop
        scopes = _scopes(loop.body)
        memory = [f.memory for f in scopes]
        found = [f for f in scopes if memory.count(f.memory) == 1 and _may_run_ahead(f, loop)]
        return self._doubled(loop, found) if found else loop

    def _doubled(self, loop: For, found: list[_Found]) -> Stmt:
        """The loop over memory of two halves, with the first fills before it."""
        var, extent = loop.loop_var, loop.extent
        zero, one, two = (op.const(n, var.dtype) for n in range(3))
        body, first, halves = loop.body, [], []
        for f in found:
            memory = _Halves(f)
            halves.append(memory)
            start = substitute(memory.fill(zero), {var: zero})
            first.append(_if(op.less(zero, extent), start))
            after = op.add(var, one)
            fill = substitute(memory.fill(op.floormod(var, two)), {var: after})
            ahead = _if(op.less(after, extent), AttrStmt(f.memory, WRITE, one, fill))
            body = memory.use(body, ahead, op.floormod(var, two))
        loop = loop.replace(body=body)
        out = seq(*first, *(self._split(loop) if self.split else (loop,)))
        for memory in halves:
            out = memory.declare(out)
        return out

    def _split(self, loop: For) -> list[Stmt]:
        """All iterations but the last in a loop of `split` at once, and those that are left."""
        var, kind = loop.loop_var, loop.loop_var.dtype
        factor = op.const(self.split, kind)
        count = op.floordiv(op.sub(loop.extent, op.const(1, kind)), factor)
        count = op.max(count, op.const(0, kind))  # an empty loop has no last iteration
        outer = Var(f"{var.name}_outer", kind)

        def at(body: Stmt, base: PrimExpr, i: int) -> Stmt:
            return substitute(body, {var: op.add(base, op.const(i, kind))})

        inner = [at(loop.body, op.mul(outer, factor), i) for i in range(self.split)]
        base = op.mul(count, factor)
        last = [_if(op.less(op.add(base, op.const(i, kind)), loop.extent),
                    at(_Unmark().visit(loop.body), base, i)) for i in range(self.split)]
        return [loop.replace(loop_var=outer, extent=count, body=seq(*inner)), *last]


def _if(condition: PrimExpr, body: Stmt) -> Stmt:
    known = as_int(condition)
    return body if known == 1 else IfThenElse(condition, body)


def _scopes(body: Stmt) -> list[_Found]:
    """The scopes that each iteration reaches, with the allocation of the iteration that they fill:
    under no condition and no further loop."""
    found, made = [], {}

    def walk(s: Stmt) -> None:
        if type(s) is SeqStmt:
            for part in s.seq:
                walk(part)
        elif type(s) is AttrStmt and s.attr_key == SCOPE:
            if s.node in made:
                found.append(_Found(s, made[s.node]))
        elif isinstance(s, (Allocate, DeclBuffer, LetStmt, AttrStmt)):
            if type(s) is Allocate:
                made[s.buffer_var] = s
            walk(s.body)

    walk(body)
    return found


def _may_run_ahead(found: _Found, loop: For) -> bool:
    """Whether the scope's statement may run an iteration before the rest of the loop's body."""
    memory, scope, allocate = found.memory, found.scope, found.allocate
    rest = _Without(scope).visit(loop.body)
    inside = bound_variables(loop.body)
    if len(allocate.extents) != 1 or as_int(allocate.condition) != 1 or (
            {loop.loop_var, *inside} & set(free_vars(allocate.extents[0]))):
        return False
    # no name or memory that the rest of the body gives to the scope
    given = set(free_vars(scope.body)) - bound_variables(scope.body) - {memory}
    if given & inside:
        return False
    for node in pre_order(loop.body):
        if type(node) is Call and (effect_of(node) != PURE or memory in node.args):
            return False
        if type(node) is LetStmt and node.var.dtype == "handle":
            return False
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer.data is memory and (
                len(node.indices) != 1 or node.buffer.dtype != allocate.dtype):
            return False
    reads, writes = _touched(scope.body)
    left, changed = _touched(rest)
    return not (reads & changed or writes - {memory} & (left | changed) or memory in changed)


def _touched(s: Stmt) -> tuple[set[Var], set[Var]]:
    """The memory that a statement reads, and that which it writes."""
    reads = {n.buffer.data for n in pre_order(s) if type(n) is BufferLoad}
    return reads, {n.buffer.data for n in pre_order(s) if type(n) is BufferStore}


class _Without(Mutator):
    """A body without a scope."""

    def __init__(self, scope: AttrStmt) -> None:
        super().__init__()
        self.scope = scope

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        return Evaluate(op.const(0)) if node is self.scope else self.default(node)


class _Halves(Mutator):
    """The memory of one scope, for two iterations."""

    def __init__(self, found: _Found) -> None:
        super().__init__()
        self.scope, self.allocate, self.memory = found.scope, found.allocate, found.memory
        self.size = found.allocate.extents[0]
        self.half: PrimExpr | None = None
        self.ahead: Stmt | None = None
        self.wide: dict[Buffer, Buffer] = {}
        self.declared: list[Buffer] = []

    def fill(self, half: PrimExpr) -> Stmt:
        """The scope's statement, on one half."""
        self.half = half
        return self.visit(self.scope.body)

    def use(self, body: Stmt, ahead: Stmt, half: PrimExpr) -> Stmt:
        """The loop's body on one half, with what runs ahead in the place of the scope."""
        self.half, self.ahead = half, ahead
        return self.visit(body)

    def declare(self, body: Stmt) -> Stmt:
        """A statement with the memory around it."""
        for buffer in reversed(self.declared):
            body = DeclBuffer(buffer, body)
        size = op.mul(self.size, op.const(2, self.size.dtype))
        return self.allocate.replace(extents=(size,), body=body)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        return self.visit(node.body) if node is self.allocate else self.default(node)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        if node.buffer.data is not self.memory:
            return self.default(node)
        self.declared.append(self._wide(node.buffer))
        return self.visit(node.body)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node is self.scope and self.ahead is not None:
            return self.ahead
        return self.default(node)

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        return self._moved(node)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        return self._moved(node)

    def _moved(self, node: BufferLoad | BufferStore) -> Any:
        new = self.default(node)
        if node.buffer.data is not self.memory:
            return new
        start = op.mul(self.half, self.size)
        return new.replace(buffer=self._wide(node.buffer),
                           indices=(lane_add(new.indices[0], start),))

    def _wide(self, buffer: Buffer) -> Buffer:
        found = self.wide.get(buffer)
        if found is None:
            shape = (op.add(buffer.shape[0], self.size),)
            found = self.wide[buffer] = buffer.replace(shape=shape)
        return found


class _Unmark(Mutator):
    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        new = self.default(node)
        return new.body if node.attr_key == WRITE else new


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """A function whose double buffers are filled an iteration ahead."""
    config = ctx.config.get("tir.InjectDoubleBuffer") or {}
    split = int(config.get("split_loop", 1))
    if split != 1 and (split < 0 or split % 2):
        raise ValueError(f"tir.InjectDoubleBuffer: split_loop is 0, 1 or even, not {split}")
    if not any(type(s) is AttrStmt and s.attr_key == SCOPE for s in all_statements(func.body)):
        return func
    new = _Inject(split).visit(func.body)
    return func if new is func.body else func.with_body(bound_once(new, set(func.params)))


def InjectDoubleBuffer() -> Pass:
    """Fill memory that is marked as a double buffer for the next iteration while one uses it."""
    return function_pass("InjectDoubleBuffer", _rewrite)
