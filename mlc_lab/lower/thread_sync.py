"""ThreadSync: barriers between GPU threads where they exchange values through shared memory.

Before::

    S[threadIdx_x] = A[threadIdx_x]
    B[threadIdx_x] = S[31 - threadIdx_x]

After::

    S[threadIdx_x] = A[threadIdx_x]
    T.tvm_storage_sync("shared")
    B[threadIdx_x] = S[31 - threadIdx_x]

A statement waits if it reads what was written, or writes what was read or written, since the last
barrier. The body of a loop is looked at twice: its second round follows its first. A barrier must
be reached by all threads, so one that is needed inside of a branch or of a loop that threads take
differently is put in front of it.
"""

from __future__ import annotations

from typing import Any

from ..ir.transform import Pass
from ..tir.expr import BufferLoad, Call, IterVar, StringImm, Var
from ..tir.function import PrimFunc
from ..tir.functor import pre_order, uses_var
from ..tir.stmt import (
    AttrStmt, BufferStore, Evaluate, For, IfThenElse, SeqStmt, Stmt, While, seq,
)
from .common import all_statements, function_pass


def barrier() -> Stmt:
    """The statement that waits for all threads of the block."""
    return Evaluate(Call("int32", "tir.tvm_storage_sync", (StringImm("shared"),)))


class _State:
    """Shared memory read and written since the last barrier."""

    __slots__ = ("reads", "writes")

    def __init__(self, reads: set[Var] = frozenset(), writes: set[Var] = frozenset()) -> None:
        self.reads, self.writes = set(reads), set(writes)

    def clashes(self, reads: set[Var], writes: set[Var]) -> bool:
        return bool(self.writes & (reads | writes) or self.reads & writes)

    def add(self, reads: set[Var], writes: set[Var]) -> None:
        self.reads |= reads
        self.writes |= writes

    def copy(self) -> "_State":
        return _State(self.reads, self.writes)


class _Sync:
    def __init__(self) -> None:
        self.threads: set[Var] = set()
        self.touched: dict[Stmt, tuple[set[Var], set[Var]]] = {}

    def accesses(self, s: Stmt) -> tuple[set[Var], set[Var]]:
        """(shared memory read, written) anywhere under a statement."""
        found = self.touched.get(s)
        if found is None:
            reads, writes = set(), set()
            for item in pre_order(s):
                if type(item) is BufferLoad and _is_shared(item.buffer.data):
                    reads.add(item.buffer.data)
                elif type(item) is BufferStore and _is_shared(item.buffer.data):
                    writes.add(item.buffer.data)
                elif isinstance(item, Var) and item.dtype == "handle" and _is_shared(item):
                    reads.add(item)
                    writes.add(item)
            found = self.touched[s] = reads, writes
        return found

    def visit(self, s: Stmt, state: _State) -> Stmt:
        """`s` with barriers; `state` is brought up to date."""
        kind = type(s)
        if kind is SeqStmt:
            return seq(*[self.visit(item, state) for item in s.seq])
        if kind is AttrStmt and isinstance(s.node, IterVar):
            if s.node.thread_tag.startswith("threadIdx"):
                self.threads.add(s.node.var)
            return s.replace(body=self.visit(s.body, state))
        if kind is For and not self._differs(s.min) and not self._differs(s.extent):
            return self._loop(s, state)
        if kind is IfThenElse and not self._differs(s.condition):
            return self._branch(s, state)
        if kind in (For, IfThenElse, While, BufferStore, Evaluate) or not hasattr(s, "body"):
            return self._leaf(s, state)
        body = self.visit(s.body, state)
        return s if body is s.body else s.replace(body=body)

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
        state.add(first.reads, first.writes)  # what the round before leaves
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

    def _differs(self, e: Any) -> bool:
        """Whether threads may see different values of an expression."""
        return uses_var(e, self.threads) or any(type(item) is BufferLoad for item in pre_order(e))


def _is_shared(var: Var) -> bool:
    return var.storage_scope.startswith("shared")


def _rewrite(func: PrimFunc, ctx: Any) -> PrimFunc:
    """Barriers in kernels with shared memory."""
    if not any(type(s) is AttrStmt and s.attr_key == "thread_extent"
               for s in all_statements(func.body)):
        return func
    sync = _Sync()
    if not any(sync.accesses(func.body)):
        return func
    return func.with_body(sync.visit(func.body, _State()))


def ThreadSync() -> Pass:
    """The pass, see the file's text."""
    return function_pass("ThreadSync", _rewrite)
