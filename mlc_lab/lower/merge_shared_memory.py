"""MergeSharedMemory: shared memory that is no longer needed is used again.

Before::

    P = T.allocate([64], "float32", "shared")
    Q = T.allocate([64], "float32", "shared")
    R = T.allocate([64], "float32", "shared")
    P[threadIdx_x] = A[threadIdx_x]
    Q[threadIdx_x] = P[63 - threadIdx_x]          # the last use of P
    R[threadIdx_x] = Q[63 - threadIdx_x]
    B[threadIdx_x] = R[63 - threadIdx_x]

After::

    P = T.allocate([64], "float32", "shared")
    Q = T.allocate([64], "float32", "shared")
    P[threadIdx_x] = A[threadIdx_x]
    Q[threadIdx_x] = P[63 - threadIdx_x]
    P[threadIdx_x] = Q[63 - threadIdx_x]          # R lives in P's memory
    B[threadIdx_x] = P[63 - threadIdx_x]

The statements of a kernel are numbered in program order. An array lives from its first access to
its last; where these are in a loop inside of which it is not allocated, from the loop's beginning
to its end. Arrays of one type that do not live at the same time share memory of the size of the
largest, which is then allocated around the whole kernel. (Linear scan: Poletto and Sarkar, "Linear
Scan Register Allocation", 1999, with arrays for registers.)

ThreadSync, which comes next, puts a barrier where one thread may still read what another already
overwrites. Where memory that is shared would need more barriers than memory that is not, it is
shared only if a block would have too much otherwise. Arrays that are used by their pointer, or
written by copies that go on in the background, keep memory of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir import dtype as dt
from ..ir.transform import Pass
from ..target.limits import limits_of
from ..tir.expr import BufferLoad, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements, pre_order
from ..tir.op import as_int
from ..tir.stmt import (
    Allocate, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, Stmt, While,
)
from .common import LowerError, function_pass
from .exchanges import is_shared
from .storage_rewrite import InOtherMemory
from .thread_sync import with_barriers
from .unify_thread_binding import is_axis

if TYPE_CHECKING:
    from ..ir.transform import PassContext
    from ..target.target import Target


class _Lifetimes:
    """When the shared arrays of a kernel are accessed, by the number of the statement."""

    def __init__(self, kernel: Stmt) -> None:
        self.allocated: dict[Var, Allocate] = {}
        self.first: dict[Var, int] = {}
        self.last: dict[Var, int] = {}
        self.by_pointer: set[Var] = set()
        self.in_background = False
        self._depth: dict[Var, int] = {}
        #: of each loop around: where it begins, and what it keeps until its end
        self._loops: list[tuple[int, set[Var]]] = []
        self._now = 0
        self._statement(kernel)

    def _statement(self, s: Stmt) -> None:
        self._now += 1
        if type(s) is Allocate and is_shared(s.buffer_var):
            self.allocated[s.buffer_var] = s
            self._depth[s.buffer_var] = len(self._loops)
        elif type(s) is AttrStmt and s.attr_key == "async_scope":
            self.in_background = True
        if type(s) is BufferStore:
            self._access(s.buffer.data)
        if type(s) is While:  # its condition is read in each round
            self._loops.append((self._now, set()))
        if type(s) is not DeclBuffer:
            for part in s.children():
                if not isinstance(part, Stmt):
                    self._expression(part)
        if type(s) is For:
            self._loops.append((self._now, set()))
        for part in s.children():
            if isinstance(part, Stmt):
                self._statement(part)
        if type(s) is For or type(s) is While:
            self._now += 1
            for var in self._loops.pop()[1]:
                self.last[var] = self._now

    def _expression(self, root: Any) -> None:
        for node in pre_order(root):
            if type(node) is BufferLoad:
                self._access(node.buffer.data)
            elif isinstance(node, Var) and node in self.allocated:
                self.by_pointer.add(node)

    def _access(self, var: Var) -> None:
        if var not in self.allocated:
            return
        depth, at = self._depth[var], self._now
        if depth < len(self._loops):  # of the next round it is needed as well
            at = self._loops[depth][0]
            self._loops[depth][1].add(var)
        self.first.setdefault(var, at)
        self.last[var] = self._now

    def shared_memory(self) -> list[list[Var]]:
        """The arrays that may share memory, the largest of each group first."""
        if self.in_background:
            return []
        groups: list[list[Var]] = []
        ends: list[int] = []
        found = [v for v in self.first if self._mergeable(v)]
        for var in sorted(found, key=lambda v: self.first[v]):
            for at, group in enumerate(groups):
                if ends[at] < self.first[var] and self.allocated[group[0]].dtype == (
                        self.allocated[var].dtype) and group[0].storage_scope == var.storage_scope:
                    group.append(var)
                    ends[at] = self.last[var]
                    break
            else:
                groups.append([var])
                ends.append(self.last[var])
        return [sorted(g, key=lambda v: -self.elements(v)) for g in groups if len(g) > 1]

    def _mergeable(self, var: Var) -> bool:
        made = self.allocated[var]
        return (var not in self.by_pointer and not made.annotations and len(made.extents) == 1
                and as_int(made.extents[0]) is not None)

    def elements(self, var: Var) -> int:
        return as_int(self.allocated[var].extents[0]) or 0


class _Merge(InOtherMemory):
    """Memory of a group is allocated once, around the kernel."""

    def __init__(self, groups: list[list[Var]], allocated: dict[Var, Allocate]) -> None:
        super().__init__({var: group[0] for group in groups for var in group[1:]})
        self.taken = {var for group in groups for var in group}
        self.outside = [allocated[group[0]] for group in groups]

    def kernel(self, s: Stmt) -> Stmt:
        """A kernel from its first axis on."""
        if is_axis(s):
            assert isinstance(s, AttrStmt)
            return s.replace(body=self.kernel(s.body))
        body = self.visit(s)
        for made in reversed(self.outside):
            body = made.replace(body=body)
        return body

    def visit_Allocate(self, node: Allocate) -> Stmt:
        return self.visit(node.body) if node.buffer_var in self.taken else self.default(node)


class _Kernels(Mutator):
    def __init__(self, most_bytes: int | None) -> None:
        super().__init__()
        self.most_bytes = most_bytes

    def visit(self, node: Any) -> Any:
        """Expressions hold no kernels: they are left alone."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if not is_axis(node):
            return self.default(node)
        found = _Lifetimes(node)
        groups = found.shared_memory()
        if not groups:
            return node
        merged = _Merge(groups, found.allocated).kernel(node)
        total = sum(dt.bytes_of(s.dtype) * (as_int(s.extents[0]) or 0)
                    for s in found.allocated.values())
        if self.most_bytes is not None and total > self.most_bytes:
            return merged
        return merged if _barriers(merged) <= _barriers(node) else node


def _barriers(kernel: Stmt) -> float:
    """How many barriers a kernel will have."""
    try:
        found = with_barriers(kernel)
    except LowerError:  # one is needed where not all threads come
        return float("inf")
    return sum(type(s) is Evaluate and getattr(getattr(s.value, "op", None), "name", "")
               == "tir.tvm_storage_sync" for s in all_statements(found))


def MergeSharedMemory(target: Target | None = None) -> Pass:
    """Use shared memory that is no longer needed again."""
    limits = limits_of(target) if target is not None else None

    def rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        if sum(type(s) is Allocate and is_shared(s.buffer_var)
               for s in all_statements(func.body)) < 2:
            return func
        most = limits.shared_bytes if limits is not None else None
        return func.with_body(_Kernels(most).visit(func.body))

    return function_pass("MergeSharedMemory", rewrite)


__all__ = ["MergeSharedMemory"]
