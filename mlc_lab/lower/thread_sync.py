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
first. What its first iteration does before its first barrier is compared with what came before the
loop: a barrier that only this needs stands in front of the loop, where it is reached once.

All threads must reach a barrier. One that is needed before a branch that threads take differently
is put in front of it. Where one is needed inside, the condition moves to the statements::

    if threadIdx_x < 24:
        S[threadIdx_x] = A[threadIdx_x]
        B[threadIdx_x] = S[23 - threadIdx_x]

becomes::

    if threadIdx_x < 24:
        S[threadIdx_x] = A[threadIdx_x]
    T.tvm_storage_sync("shared")
    if threadIdx_x < 24:
        B[threadIdx_x] = S[23 - threadIdx_x]

Where it cannot (the condition reads memory that changes, or a loop runs a different number of times
in each thread), the program is refused.

Iterations of a loop that store to places that are provably different, as when threads fetch a tile
together, need no barrier between them.

Threads exchange values through memory that they share: shared memory, and global memory that a
kernel writes, unless it is allocated inside of the kernel (each thread has its own then), or each
thread accesses one element of its own only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from ..arith import normalize_to_iter_sum
from ..ir.structural import structural_equal
from ..ir.transform import Pass
from ..tir import op
from ..tir.expr import BufferLoad, Call, IterVar, PrimExpr, Ramp, Range, StringImm, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, Visitor, all_statements, pre_order, substitute, uses_var
from ..tir.op import as_int
from ..tir.stmt import (
    Allocate, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, IfThenElse, LetStmt, SeqStmt, Stmt,
    While, seq,
)
from .common import LowerError, function_pass

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
    def __init__(self, exchanged: set[Var], stored: set[Var]) -> None:
        self.exchanged, self.stored = exchanged, stored
        self.threads: set[Var] = set()  # the axes of threads, and names of what depends on them
        self.extents: dict[Var, Range] = {}  # of the axes of threads
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
                self.extents[s.node.var] = Range.from_min_extent(0, s.value)
            return s.replace(body=self.visit(s.body, state))
        if type(s) is For and not self._differs(s.min) and not self._differs(s.extent):
            return self._loop(s, state)
        if type(s) is IfThenElse and not self._differs(s.condition):
            return self._branch(s, state)
        if type(s) is LetStmt and self._differs(s.value):
            self.threads.add(s.var)
        inner = getattr(s, "body", None)
        if inner is None or type(s) in (For, IfThenElse, While, BufferStore, Evaluate):
            return self._leaf(s, state)
        body = self.visit(inner, state)
        return s if body is inner else s.replace(body=body)

    def _leaf(self, s: Stmt, state: _State) -> Stmt:
        if _is_barrier(s):
            state.reads.clear()
            state.writes.clear()
            return s
        if type(s) in (For, IfThenElse, While) and self._exchanges(s):
            return self.visit(self._uniform(s), state)
        reads, writes = self.accesses(s)
        waits = state.clashes(reads, writes)
        if waits:
            state.reads.clear()
            state.writes.clear()
        state.add(reads, writes)
        return seq(barrier(), s) if waits else s

    def _exchanges(self, s: Stmt) -> bool:
        """Whether threads exchange values between the statements inside of a branch or a loop that
        they take differently: through memory of which each has more than an element of its own."""
        reads, writes = self.accesses(s)
        shared = {memory for memory in reads & writes if not self._own_elements(s, memory)}
        if not shared:
            return False
        inside = _Inside(shared)
        state = _State()
        around: Any = s
        bodies = ([s.then_case, s.else_case] if type(s) is IfThenElse
                  else [around.body, around.body])
        return any(_is_barrier(x) for body in bodies if body is not None
                   for x in all_statements(inside.visit(body, state)))

    def _own_elements(self, s: Stmt, memory: Var) -> bool:
        """Whether all accesses under a statement are of one element, another in each thread."""
        places = [x.indices for x in pre_order(s)
                  if isinstance(x, (BufferLoad, BufferStore)) and x.buffer.data is memory]
        if any(isinstance(x, Var) and x is memory for x in pre_order(s)) or not places or not all(
                len(place) == 1 and structural_equal(place, places[0]) for place in places):
            return False
        (index,) = places[0]
        return "x" not in index.dtype and is_injective(index, self.extents)

    def _uniform(self, s: Stmt) -> Stmt:
        """The parts of a branch, each under its condition, so that all threads pass between."""
        refusal = LowerError(
            f"{_title(s)}: threads exchange values inside of it, which takes a barrier that all "
            "of them reach, but they do not all run it, or not equally often. Let all threads "
            "run its loops, and put the condition around each statement")
        stored = {x.buffer.data for x in pre_order(s) if type(x) is BufferStore}
        if type(s) is not IfThenElse or any(
                isinstance(x, Call) or type(x) is BufferLoad and x.buffer.data in stored
                for x in pre_order(s.condition)):
            raise refusal
        parts = _guarded(s.condition, s.then_case)
        if s.else_case is not None:
            parts = seq(parts, _guarded(op.logical_not(s.condition), s.else_case))
        if any(type(x) is IfThenElse and x.condition is s.condition and self._exchanges(x)
               for x in all_statements(parts)):
            raise refusal
        return parts

    def _loop(self, s: For, state: _State) -> Stmt:
        if not any(self.accesses(s.body)):
            return s
        apart = {memory for memory in self.accesses(s.body)[1] if self._written_apart(s, memory)}
        inner = _State()
        self.visit(s.body, inner)
        inner.writes -= apart
        body = self.visit(s.body, inner)  # after the previous iteration
        inner.writes |= apart
        reads, writes, stops = self._head(body)
        waits = state.clashes(reads, writes)
        if waits or (stops and (as_int(s.extent) or 0) > 0):
            state.reads.clear()
            state.writes.clear()
        state.add(inner.reads, inner.writes)
        new = s if body is s.body else s.replace(body=body)
        return seq(barrier(), new) if waits else new

    def _head(self, s: Stmt) -> tuple[Set[Var], Set[Var], bool]:
        """What a statement reads and writes before its first barrier, and whether it surely has
        one."""
        if _is_barrier(s):
            return set(), set(), True
        if type(s) is SeqStmt:
            reads: set[Var] = set()
            writes: set[Var] = set()
            for item in s.seq:
                more, stores, stops = self._head(item)
                reads |= more
                writes |= stores
                if stops:
                    return reads, writes, True
            return reads, writes, False
        if not any(map(_is_barrier, all_statements(s))):
            return (*self.accesses(s), False)
        if type(s) is IfThenElse:
            heads = [self._head(case) for case in (s.then_case, s.else_case) if case is not None]
            return (set().union(*(h[0] for h in heads)), set().union(*(h[1] for h in heads)),
                    len(heads) == 2 and all(h[2] for h in heads))
        inner: Any = s
        more, stores, stops = self._head(inner.body)
        runs = type(s) is not While and (type(s) is not For or (as_int(s.extent) or 0) > 0)
        return more, stores, stops and runs

    def _written_apart(self, loop: For, memory: Var) -> bool:
        """Whether the iterations of a loop, in all threads, store to different places of memory
        that they do not read."""
        if memory in self.accesses(loop.body)[0]:
            return False
        stores = [x for x in pre_order(loop) if type(x) is BufferStore and x.buffer.data is memory]
        if len(stores) != 1 or len(stores[0].indices) != 1:
            return False
        ranges = {x.loop_var: Range.from_min_extent(x.min, x.extent)
                  for x in pre_order(loop) if type(x) is For}
        ranges.update(self.extents)
        (index,) = stores[0].indices
        if type(index) is Ramp:
            lane = Var("lane", index.base.dtype)
            ranges[lane] = Range.from_min_extent(0, index.lanes)
            index = index.base + lane * index.stride
        return "x" not in index.dtype and is_injective(index, ranges)

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
        return uses_var(e, self.threads) or any(
            type(item) is BufferLoad and (
                item.buffer.data in self.stored or item.buffer.scope() != "global")
            for item in pre_order(e))


class _Inside(_Sync):
    """Where barriers were needed in statements, if all threads ran them."""

    def __init__(self, memory: set[Var]) -> None:
        super().__init__(memory, set())

    def _shared(self, memory: Var) -> bool:
        return memory in self.exchanged

    def _differs(self, e: PrimExpr) -> bool:
        return False


def _guarded(condition: PrimExpr, s: Stmt) -> Stmt:
    """The statements of sequences and of loops under `s`, each under a condition of its own."""
    if type(s) is SeqStmt:
        return seq(*[_guarded(condition, item) for item in s.seq])
    if type(s) is For and not _reads(s.min) and not _reads(s.extent) or (
            type(s) is LetStmt and not _reads(s.value)) or (
            type(s) in (AttrStmt, Allocate, DeclBuffer)):
        inner: Any = s
        return inner.replace(body=_guarded(condition, inner.body))
    return s if _is_barrier(s) else IfThenElse(condition, s, None)


def _reads(e: PrimExpr) -> bool:
    """Whether an expression may only be computed where it was written."""
    return any(type(item) in (BufferLoad, Call) for item in pre_order(e))


def _title(s: Stmt) -> str:
    """A branch or a loop, in a message."""
    if type(s) is For:
        return f"the loop over {s.loop_var.name}"
    condition: Any = s
    return f"the {'loop' if type(s) is While else 'branch'} under `{condition.condition!r}`"


def _is_barrier(s: Stmt) -> bool:
    return type(s) is Evaluate and (
        getattr(getattr(s.value, "op", None), "name", "") == "tir.tvm_storage_sync")


def is_injective(index: PrimExpr, ranges: Mapping[Var, Range]) -> bool:
    """Whether different values of variables surely give different values of an index.

    The index is written as a sum of splits of the variables (`arith/iter_map.py`). By rising scale,
    each term must be greater than all below it together, and the splits of each variable must
    determine it.
    """
    total = normalize_to_iter_sum(index, ranges)
    if isinstance(total.base, PrimExpr) and uses_var(total.base, set(ranges)):
        return False  # a part that is not affine
    parts: dict[int, list[tuple[int, int]]] = {}
    extents: dict[int, int] = {}
    seen: set[Any] = set()
    below = 0
    for split in sorted(total.args, key=lambda a: a.scale if isinstance(a.scale, int) else 0):
        var = split.source.source
        numbers = [n for n in (split.scale, split.extent, split.lower_factor, split.source.extent)
                   if isinstance(n, int)]
        if len(numbers) < 4 or not isinstance(var, Var):
            return False
        scale, extent, lower, whole = numbers
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
        sync = _Sync(places.exchanged(), places.written)
        return sync.visit(node, _State()) if any(sync.accesses(node)) else node


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Barriers in kernels whose threads exchange values."""
    return func.with_body(_Kernels().visit(func.body))


def ThreadSync() -> Pass:
    """Put barriers between threads of a GPU where they exchange values through memory."""
    return function_pass("ThreadSync", _rewrite)
