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

The same is done where threads reduce together inside of such a branch, all of which have to come
there; those whose condition does not hold bring nothing along.

Where it cannot (the condition reads memory that changes, or a loop runs a different number of times
in each thread), the program is refused.

Between iterations of a loop a barrier is needed only where a thread stores to what another one
stores to or reads in another iteration: not where places are provably different, as when threads
fetch a tile together, nor where only the same thread comes back to a place. Nor is one needed
between two statements that surely touch different parts of a memory, such as two versions of a tile
in a software pipeline (`shared_places.py`).

Threads exchange values through memory that they share: shared memory, and global memory that a
kernel writes, unless it is allocated inside of the kernel (each thread has its own then). Of what
each thread accesses at one index, elements that are its own, nothing is exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import TYPE_CHECKING, Any

from ..ir.structural import structural_equal
from ..ir.transform import Pass
from ..tir import op
from ..tir.expr import (
    BufferLoad, Call, IterVar, PrimExpr, Range, StringImm, Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements, leaves_loop, pre_order, uses_var
from ..tir.op import as_int
from ..tir.stmt import (
    Allocate, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, IfThenElse, LetStmt, SeqStmt, Stmt,
    While, seq,
)
from .common import LowerError, function_pass
from .exchanges import Accesses, apart, is_shared, pinned, stored_by_one_thread
from .inject_software_pipeline import WAIT
from .shared_places import Place, Places, covers, overlap, union

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext


def barrier() -> Stmt:
    """The statement that waits for all threads of the block."""
    return Evaluate(Call("int32", "tir.tvm_storage_sync", (StringImm("shared"),)))


#: where each memory is accessed
_Where = dict[Var, set[Place]]
#: places of one memory that are told apart at a time; more are seen as one
_APART = 8


def _join(into: _Where, more: Mapping[Var, Set[Place]]) -> None:
    for memory, places in more.items():
        held = into.setdefault(memory, set())
        held |= places
        if len(held) > _APART:
            into[memory] = {union(held)}


class _State:
    """Where shared memory was read and written since the last barrier."""

    __slots__ = ("reads", "writes")

    def __init__(self) -> None:
        self.reads: _Where = {}
        self.writes: _Where = {}

    def clashes(self, reads: _Where, writes: _Where) -> bool:
        return (_touch(self.writes, reads) or _touch(self.writes, writes)
                or _touch(self.reads, writes))

    def add(self, reads: _Where, writes: _Where) -> None:
        _join(self.reads, reads)
        _join(self.writes, writes)

    def clear(self) -> None:
        self.reads, self.writes = {}, {}

    def has(self, other: "_State") -> bool:
        """Whether all of another state is part of this one."""
        return all(any(covers(held, place) for held in mine.get(memory, ()))
                   for mine, its in ((self.reads, other.reads), (self.writes, other.writes))
                   for memory, places in its.items() for place in places)

    def mapped(self, change: Callable[[Place], Place]) -> "_State":
        """The state with other places."""
        new = _State()
        new.add(*({memory: set(map(change, places)) for memory, places in side.items()}
                  for side in (self.reads, self.writes)))
        return new

    def copy(self) -> "_State":
        return self.mapped(lambda place: place)


def _touch(a: _Where, b: _Where) -> bool:
    return any(overlap(x, y) for memory, places in a.items() if memory in b
               for x in places for y in b[memory])


class _Sync:
    def __init__(self, exchanged: set[Var], stored: set[Var], places: Places,
                 arriving: Set[Var] = frozenset()) -> None:
        self.exchanged, self.stored, self.places = exchanged, stored, places
        #: what asynchronous copies write, which is there when they are waited for
        self.arriving: _Where = {memory: {places.everywhere} for memory in arriving}
        self.threads: set[Var] = set()  # the axes of threads, and names of what depends on them
        self.extents: dict[Var, Range] = {}  # of the axes of threads
        self.touched: dict[Stmt, tuple[_Where, _Where]] = {}

    def accesses(self, s: Stmt) -> tuple[_Where, _Where]:
        """Where shared memory is (read, written) anywhere under a statement."""
        found = self.touched.get(s)
        if found is None:
            state = _State()
            for item in pre_order(s):
                kind = type(item)
                if kind in (BufferLoad, BufferStore) and self._shared(item.buffer.data):
                    _join(state.reads if kind is BufferLoad else state.writes,
                          {item.buffer.data: {self.places.of(item.buffer, item.indices)}})
                elif isinstance(item, Var) and item.dtype == "handle" and is_shared(item):
                    where = {item: {self.places.everywhere}}
                    state.add(where, where)
            for item in all_statements(s):
                if type(item) is For and item.loop_var in self.places.loops:
                    state = state.mapped(partial(self.places.whenever, item.loop_var))
            found = self.touched[s] = state.reads, state.writes
        return found

    def _shared(self, memory: Var) -> bool:
        return memory in self.exchanged

    def visit(self, s: Stmt, state: _State) -> Stmt:
        """`s` with barriers; `state` is brought up to date."""
        if type(s) is SeqStmt:
            return seq(*[self.visit(item, state) for item in s.seq])
        if type(s) is AttrStmt and isinstance(s.node, IterVar):
            if s.node.thread_tag.startswith("threadIdx"):
                self.threads.add(s.node.var)
                self.extents[s.node.var] = self.places.ranges[s.node.var]
            return s.replace(body=self.visit(s.body, state))
        if type(s) is For and not self._differs(s.min) and not self._differs(s.extent) and not (
                self._left_apart(s.body)):
            return self._loop(s, state)
        if type(s) is IfThenElse and not self._differs(s.condition):
            return self._branch(s, state)
        if type(s) is LetStmt and self._differs(s.value):
            self.threads.add(s.var)
        if type(s) is AttrStmt and s.attr_key == WAIT:
            state.add({}, self.arriving)
        inner = getattr(s, "body", None)
        if inner is None or type(s) in (For, IfThenElse, While, BufferStore, Evaluate):
            return self._leaf(s, state)
        body = self.visit(inner, state)
        return s if body is inner else s.replace(body=body)

    def _leaf(self, s: Stmt, state: _State) -> Stmt:
        if is_barrier(s):
            state.clear()
            return s
        if type(s) in (For, IfThenElse, While) and self._exchanges(s):
            return self.visit(self._uniform(s), state)
        reads, writes = self.accesses(s)
        waits = state.clashes(reads, writes)
        if waits:
            state.clear()
        state.add(reads, writes)
        return seq(barrier(), s) if waits else s

    def _exchanges(self, s: Stmt) -> bool:
        """Whether threads exchange values between the statements inside of a branch or a loop that
        they take differently: through memory of which each has more than an element of its own, or
        to reduce together."""
        if type(s) is not While and any(map(_is_allreduce, all_statements(s))):
            return True
        reads, writes = self.accesses(s)
        shared = {memory for memory in reads.keys() & writes.keys()
                  if not self._own_elements(s, memory)}
        if not shared:
            return False
        inside = _Inside(shared, set(), self.places)
        state = _State()
        around: Any = s
        bodies = ([s.then_case, s.else_case] if type(s) is IfThenElse
                  else [around.body, around.body])
        return any(is_barrier(x) for body in bodies if body is not None
                   for x in all_statements(inside.visit(body, state)))

    def _own_elements(self, s: Stmt, memory: Var) -> bool:
        """Whether all accesses under a statement are of one element, another in each thread."""
        places = [x.indices for x in pre_order(s)
                  if isinstance(x, (BufferLoad, BufferStore)) and x.buffer.data is memory]
        if any(isinstance(x, Var) and x is memory for x in pre_order(s)) or not places or not all(
                len(place) == 1 and structural_equal(place, places[0]) for place in places):
            return False
        return apart(places[0][0], self.extents)

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
        before = _State()  # what earlier iterations have touched since the last barrier
        while True:
            inner = before.copy()
            body = self.visit(s.body, inner)
            # the iteration before, or any, where none surely has a barrier
            moved = self.places.later if self._head(body)[2] else self.places.whenever
            carried = inner.mapped(partial(moved, s.loop_var))
            for memory in apart:
                carried.writes.pop(memory, None)
            if before.has(carried):
                break
            before.add(carried.reads, carried.writes)
        inner = inner.mapped(partial(self.places.whenever, s.loop_var))
        reads, writes, stops = self._head(body)
        waits = state.clashes(reads, writes)
        if waits or (stops and (as_int(s.extent) or 0) > 0):
            state.clear()
        state.add(inner.reads, inner.writes)
        new = s if body is s.body else s.replace(body=body)
        return seq(barrier(), new) if waits else new

    def _head(self, s: Stmt) -> tuple[_Where, _Where, bool]:
        """What a statement reads and writes before its first barrier, and whether it surely has
        one."""
        if is_barrier(s):
            return {}, {}, True
        if not any(map(is_barrier, all_statements(s))):
            return (*self.accesses(s), False)
        inner: Any = s
        parts = (s.seq if type(s) is SeqStmt else [s.then_case, s.else_case]
                 if type(s) is IfThenElse else [inner.body])
        heads = []
        for part in parts:
            if part is not None:
                heads.append(self._head(part))
                if heads[-1][2] and type(s) is SeqStmt:
                    break
        found = _State()
        for reads, writes, _ in heads:
            found.add(reads, writes)
        if type(s) is IfThenElse:
            stops = len(heads) == 2 and all(h[2] for h in heads)
        else:
            stops = heads[-1][2] and type(s) is not While and (
                type(s) is not For or (as_int(s.extent) or 0) > 0)
        if leaves_loop(inner.body if type(s) is For else s):
            stops = False  # what leaves may come before it
        return found.reads, found.writes, stops

    def _written_apart(self, loop: For, memory: Var) -> bool:
        """Whether different threads, in different iterations of a loop, store to different places
        of memory that they do not read."""
        if memory in self.accesses(loop.body)[0]:
            return False
        if self._stored_once(loop, memory):
            return True
        named = self.threads - self.extents.keys()  # what depends on threads
        return not uses_var(loop.body, named) and stored_by_one_thread(
            loop, memory, self.extents, self.places.ranges)

    def _stored_once(self, loop: For, memory: Var) -> bool:
        """Whether the iterations of a loop, in all threads, store to different places by their one
        store to a memory."""
        stores = [x for x in pre_order(loop) if type(x) is BufferStore and x.buffer.data is memory]
        if len(stores) != 1 or len(stores[0].indices) != 1:
            return False
        ranges = {x.loop_var: self.places.ranges[x.loop_var]
                  for x in pre_order(loop) if type(x) is For}
        ranges.update(self.extents)
        for x in pre_order(loop):
            if type(x) is IfThenElse and any(y is stores[0] for y in all_statements(x.then_case)):
                for var in pinned(x.condition):
                    ranges.pop(var, None)
        return apart(stores[0].indices[0], ranges)

    def _branch(self, s: IfThenElse, state: _State) -> Stmt:
        other = state.copy()
        then = self.visit(s.then_case, state)
        case = self.visit(s.else_case, other) if s.else_case is not None else None
        state.add(other.reads, other.writes)
        if then is s.then_case and case is s.else_case:
            return s
        return IfThenElse(s.condition, then, case)

    def _left_apart(self, body: Stmt) -> bool:
        """Whether threads may leave a loop, or a round of it, apart from others."""
        if not leaves_loop(body):
            return False
        if type(body) is IfThenElse and self._differs(body.condition):
            return True
        return any(self._left_apart(s) for s in body.children() if isinstance(s, Stmt))

    def _differs(self, e: PrimExpr) -> bool:
        """Whether threads may see different values of an expression."""
        return uses_var(e, self.threads) or any(
            type(item) is BufferLoad and (
                item.buffer.data in self.stored or item.buffer.scope() != "global")
            for item in pre_order(e))


class _Inside(_Sync):
    """Where barriers were needed in statements, if all threads ran them."""

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
    if _is_allreduce(s):
        return Evaluate(_with_condition(s.value, condition))  # type: ignore[attr-defined]
    return s if is_barrier(s) else IfThenElse(condition, s, None)


def _with_condition(call: Call, condition: PrimExpr) -> Call:
    """A reduction across threads to which those bring a value for which a condition holds too."""
    at = 1 + (as_int(call.args[0]) or 0)
    both = condition if as_int(call.args[at]) == 1 else op.logical_and(condition, call.args[at])
    return call.replace(args=(*call.args[:at], both, *call.args[at + 1:]))


def _reads(e: PrimExpr) -> bool:
    """Whether an expression may only be computed where it was written."""
    return any(type(item) in (BufferLoad, Call) for item in pre_order(e))


def _title(s: Stmt) -> str:
    """A branch or a loop, in a message."""
    if type(s) is For:
        return f"the loop over {s.loop_var.name}"
    condition: Any = s
    return f"the {'loop' if type(s) is While else 'branch'} under `{condition.condition!r}`"


def is_barrier(s: Stmt) -> bool:
    return type(s) is Evaluate and (
        getattr(getattr(s.value, "op", None), "name", "") == "tir.tvm_storage_sync")


def _is_allreduce(s: Stmt) -> bool:
    return type(s) is Evaluate and (
        getattr(getattr(s.value, "op", None), "name", "") == "tir.tvm_thread_allreduce")


class _Kernels(Mutator):
    """Barriers in each kernel: outside of kernels none are needed, as they run one after the other.
    """

    def visit(self, node: Node) -> Any:
        """Expressions hold no kernels: they are left alone."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if node.attr_key != "thread_extent":
            return self.default(node)
        places = Places(node)
        found = Accesses(places.ranges)
        found.visit(node)
        arriving = {x.buffer.data for s in all_statements(node)
                    if type(s) is AttrStmt and s.attr_key == "async_scope"
                    for x in all_statements(s) if type(x) is BufferStore}
        sync = _Sync(found.exchanged() | arriving, found.written, places, arriving)
        needed = any(sync.accesses(node)) or any(map(_is_allreduce, all_statements(node)))
        return sync.visit(node, _State()) if needed else node


def with_barriers(body: Stmt) -> Stmt:
    """A statement with barriers in its kernels. Raises LowerError where not all threads come."""
    return _Kernels().visit(body)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Barriers in kernels whose threads exchange values."""
    return func.with_body(with_barriers(func.body))


def ThreadSync() -> Pass:
    """Put barriers between threads of a GPU where they exchange values through memory."""
    return function_pass("ThreadSync", _rewrite)
