"""ThreadSync: barriers between GPU threads where they exchange values through memory.

Before::

    S[threadIdx_x] = A[threadIdx_x]
    B[threadIdx_x] = S[31 - threadIdx_x]

After::

    S[threadIdx_x] = A[threadIdx_x]
    T.tvm_storage_sync("shared")
    B[threadIdx_x] = S[31 - threadIdx_x]

A barrier goes before a statement that reads what was written, or writes what was read or written,
since the last barrier. The body of a loop is analysed twice: its second iteration follows its
first. All threads must reach a barrier, so one that is needed inside of a branch or of a loop that
threads take differently is put in front of it.

Threads exchange values through memory that they share: shared memory, and global memory that a
kernel writes, unless it is allocated inside of the kernel (each thread has its own then), or each
thread accesses one element of its own only.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, Any

from ..ir.structural import structural_equal
from ..ir.transform import Pass
from ..tir.expr import BufferLoad, Call, IterVar, PrimExpr, StringImm, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, Visitor, pre_order, substitute, uses_var
from ..tir.stmt import (
    Allocate, AttrStmt, BufferStore, Evaluate, For, IfThenElse, SeqStmt, Stmt, While, seq,
)
from .common import function_pass

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext


def barrier() -> Stmt:
    """The statement that waits for all threads of the block."""
    return Evaluate(Call("int32", "tir.tvm_storage_sync", (StringImm("shared"),)))


class _State:
    """Shared memory read and written since the last barrier."""

    __slots__ = ("reads", "writes")

    def __init__(self, reads: Set[Var] = frozenset(), writes: Set[Var] = frozenset()) -> None:
        self.reads, self.writes = set(reads), set(writes)

    def clashes(self, reads: Set[Var], writes: Set[Var]) -> bool:
        return bool(self.writes & (reads | writes) or self.reads & writes)

    def add(self, reads: set[Var], writes: set[Var]) -> None:
        self.reads |= reads
        self.writes |= writes

    def copy(self) -> "_State":
        return _State(self.reads, self.writes)


class _GlobalAccesses(Visitor):
    """The accesses of global memory in a kernel: indices in terms of its axes, and the conditions
    around that depend on the thread."""

    def __init__(self) -> None:
        self.axes: dict[str, Var] = {}
        self.same: dict[Var, Var] = {}
        self.conditions: tuple[PrimExpr, ...] = ()
        self.found: dict[Var, list[tuple[PrimExpr, ...]]] = {}
        self.written: set[Var] = set()

    def exchanged(self) -> set[Var]:
        """Memory of which a thread may read what another has written."""
        return {memory for memory, (first, *others) in self.found.items()
                if memory in self.written and any(
                    len(first) != len(other) or not all(map(structural_equal, first, other))
                    for other in others)}

    def _place(self, memory: Var, indices: Sequence[PrimExpr]) -> None:
        if memory.storage_scope == "global":
            self.found.setdefault(memory, []).append(tuple(
                substitute(e, self.same) for e in (*indices, *self.conditions)))

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
        self.found.pop(node.buffer_var, None)

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        self._place(node.buffer.data, node.indices)
        self.visit_children(node)

    def visit_BufferStore(self, node: BufferStore) -> None:
        self.written.add(node.buffer.data)
        self._place(node.buffer.data, node.indices)
        self.visit_children(node)


class _Sync:
    def __init__(self, exchanged: set[Var]) -> None:
        self.exchanged = exchanged
        self.threads: set[Var] = set()
        self.touched: dict[Stmt, tuple[set[Var], set[Var]]] = {}

    def accesses(self, s: Stmt) -> tuple[set[Var], set[Var]]:
        """(shared memory read, written) anywhere under a statement."""
        found = self.touched.get(s)
        if found is None:
            reads, writes = set(), set()
            for item in pre_order(s):
                if type(item) is BufferLoad and self._shared(item.buffer.data):
                    reads.add(item.buffer.data)
                elif type(item) is BufferStore and self._shared(item.buffer.data):
                    writes.add(item.buffer.data)
                elif isinstance(item, Var) and item.dtype == "handle" and _is_shared(item):
                    reads.add(item)
                    writes.add(item)
            found = self.touched[s] = reads, writes
        return found

    def _shared(self, memory: Var) -> bool:
        return memory in self.exchanged or _is_shared(memory)

    def visit(self, s: Stmt, state: _State) -> Stmt:
        """`s` with barriers; `state` is brought up to date."""
        if type(s) is SeqStmt:
            return seq(*[self.visit(item, state) for item in s.seq])
        if type(s) is AttrStmt and isinstance(s.node, IterVar):
            if s.node.thread_tag.startswith("threadIdx"):
                self.threads.add(s.node.var)
            return s.replace(body=self.visit(s.body, state))
        if type(s) is For and not self._differs(s.min) and not self._differs(s.extent):
            return self._loop(s, state)
        if type(s) is IfThenElse and not self._differs(s.condition):
            return self._branch(s, state)
        inner = getattr(s, "body", None)
        if inner is None or type(s) in (For, IfThenElse, While, BufferStore, Evaluate):
            return self._leaf(s, state)
        body = self.visit(inner, state)
        return s if body is inner else s.replace(body=body)

    def _leaf(self, s: Stmt, state: _State) -> Stmt:
        if type(s) is Evaluate and getattr(getattr(s.value, "op", None), "name", "") == (
                "tir.tvm_storage_sync"):
            state.reads.clear()
            state.writes.clear()
            return s
        reads, writes = self.accesses(s)
        waits = state.clashes(reads, writes)
        if waits:
            state.reads.clear()
            state.writes.clear()
        state.add(reads, writes)
        return seq(barrier(), s) if waits else s

    def _loop(self, s: For, state: _State) -> Stmt:
        if not any(self.accesses(s.body)):
            return s
        first = state.copy()
        self.visit(s.body, first)
        state.add(first.reads, first.writes)  # of the previous iteration
        body = self.visit(s.body, state)
        return s if body is s.body else s.replace(body=body)

    def _branch(self, s: IfThenElse, state: _State) -> Stmt:
        other = state.copy()
        then = self.visit(s.then_case, state)
        case = self.visit(s.else_case, other) if s.else_case is not None else None
        state.add(other.reads, other.writes)
        if then is s.then_case and case is s.else_case:
            return s
        return IfThenElse(s.condition, then, case)

    def _differs(self, e: PrimExpr) -> bool:
        """Whether threads may see different values of an expression."""
        return uses_var(e, self.threads) or any(type(item) is BufferLoad for item in pre_order(e))


def _is_shared(var: Var) -> bool:
    return var.storage_scope.startswith("shared")


class _Kernels(Mutator):
    """Barriers in each kernel: outside of kernels none are needed, as they run one after the other.
    """

    def visit(self, node: Node) -> Any:
        """Expressions hold no kernels: they are left alone."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != "thread_extent":
            return self.default(node)
        places = _GlobalAccesses()
        places.visit(node)
        sync = _Sync(places.exchanged())
        return sync.visit(node, _State()) if any(sync.accesses(node)) else node


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Barriers in kernels whose threads exchange values."""
    return func.with_body(_Kernels().visit(func.body))


def ThreadSync() -> Pass:
    """The pass, see the file's text."""
    return function_pass("ThreadSync", _rewrite)
