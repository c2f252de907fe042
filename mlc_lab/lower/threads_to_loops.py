"""ThreadsToLoops: a kernel for a processor without threads of a GPU, with the same results.

Before::

    blockIdx_x = T.launch_thread("blockIdx.x", 4)
    threadIdx_x = T.launch_thread("threadIdx.x", 8)
    S = T.allocate([8], "float32", "shared")
    x = T.allocate([1], "float32", "local")
    x[0] = A[blockIdx_x * 8 + threadIdx_x]
    S[threadIdx_x] = x[0]
    T.tvm_storage_sync("shared")
    B[blockIdx_x * 8 + threadIdx_x] = S[7 - threadIdx_x] + x[0]

After::

    for blockIdx_x in T.parallel(4):
        S = T.allocate([8], "float32")
        x = T.allocate([8], "float32")                       # an x for each thread
        for threadIdx_x in range(8):
            x[threadIdx_x] = A[blockIdx_x * 8 + threadIdx_x]
            S[threadIdx_x] = x[threadIdx_x]
        for threadIdx_x in range(8):
            B[blockIdx_x * 8 + threadIdx_x] = S[7 - threadIdx_x] + x[threadIdx_x]

Blocks run in parallel. The statements between two barriers become a loop over the threads of the
block (loop fission; J. Stratton et al., "MCUDA", 2008). Statements with a barrier inside are
reached by all threads, so they stand around such loops. Memory of a thread that lives across a
barrier has a place for each thread. A shuffle is a place where threads wait as well: what a thread
reads is then what the other one has in memory of its own::

    y[0] = T.tvm_warp_shuffle_down(T.uint32(255), x[0], 4, 32, 32)

becomes::

    for threadIdx_x in range(8):
        y[threadIdx_x] = x[T.Select(threadIdx_x + 4 < 8, threadIdx_x + 4, threadIdx_x)]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir import dtype as dt
from ..ir.transform import Pass
from ..tir import op
from ..tir.buffer import Buffer, decl_buffer
from ..tir.expr import BufferLoad, Call, PointerType, PrimExpr, Ramp, Select, Var
from ..tir.function import PrimFunc
from ..tir.functor import (
    Mutator, all_statements, leaves_loop, pre_order, substitute, uses_var,
)
from ..tir.shuffles import shuffles_of, source_of
from ..tir.stmt import (
    EMPTY, TRUE, Allocate, AssertStmt, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, ForKind,
    IfThenElse, LetStmt, SeqStmt, Stmt, While, seq,
)
from .common import LowerError, function_pass, lane_add
from .split_host_device import axes_of, is_kernel
from .thread_sync import is_barrier
from .unify_thread_binding import is_axis

if TYPE_CHECKING:
    from ..ir.transform import PassContext


class _Block:
    """The statements of a kernel, as those of one block of threads."""

    def __init__(self, name: str, axes: Sequence[AttrStmt]) -> None:
        self.name = name
        #: the threads of a block, slowest axis first, as on a device
        self.axes = sorted(((s.node.var, s.value, s.node.thread_tag) for s in axes
                            if s.node.thread_tag.startswith("threadIdx")),
                           key=lambda a: a[2], reverse=True)
        self.threads = {var for var, _, _ in self.axes}
        self.waiting: dict[Stmt, bool] = {}
        #: memory in which each thread has a place of its own
        self.own: set[Var] = set()

    def waits(self, s: Stmt) -> bool:
        """Whether a statement has a barrier or a shuffle inside, or leaves the loop around."""
        found = self.waiting.get(s)
        if found is None:
            found = self.waiting[s] = leaves_loop(s) or any(
                is_barrier(x) or bool(shuffles_of(x)) for x in all_statements(s))
        return found

    def run(self, s: Stmt) -> Stmt:
        """`s` done by all threads of a block."""
        if not self.waits(s):
            return self._each(s)
        if is_barrier(s):
            return seq()
        if type(s) is Evaluate and leaves_loop(s):
            return s
        shuffles = shuffles_of(s)
        if shuffles:
            return self._shuffle(s, shuffles[0])
        if type(s) is SeqStmt:
            return self._chunks(s.seq)
        if type(s) is Allocate:
            return self._allocate(s)
        if type(s) is DeclBuffer or type(s) is AttrStmt:
            return s.replace(body=self.run(s.body))
        if type(s) is LetStmt:
            return self._let(s)
        if type(s) is For:
            self._uniform(s, s.min, s.extent)
            return For(s.loop_var, s.min, s.extent, ForKind.SERIAL, self.run(s.body))
        if type(s) is While:
            self._uniform(s, s.condition)
            return While(s.condition, self.run(s.body))
        if type(s) is IfThenElse:
            self._uniform(s, s.condition)
            return IfThenElse(s.condition, self.run(s.then_case),
                              None if s.else_case is None else self.run(s.else_case))
        if type(s) is AssertStmt:
            return seq(self._each(AssertStmt(s.condition, s.message, seq())), self.run(s.body))
        raise LowerError(f"{self.name}: a barrier inside of {type(s).__name__} cannot be run on "
                         "the simulated device")

    def _uniform(self, s: Stmt, *parts: PrimExpr) -> None:
        """All threads take the same way through a statement with a barrier inside."""
        for e in parts:
            if uses_var(e, self.threads) or any(
                    type(x) is BufferLoad and self._is_own(x.buffer.data) for x in pre_order(e)):
                inside = list(all_statements(s))
                what = "T.tvm_storage_sync" if any(map(is_barrier, inside)) else (
                    "a shuffle" if any(map(shuffles_of, inside)) else
                    "the end of a loop with T.tvm_storage_sync or shuffles")
                raise LowerError(
                    f"{self.name}: {what} stands under {e!r}, which differs from "
                    "thread to thread: on a GPU some would wait for ever. Move it out, to where "
                    "all threads of the block come")

    def _shuffle(self, s: Stmt, shuffle: Call) -> Stmt:
        """A statement after a shuffle that it needs."""
        if type(s) not in (BufferStore, LetStmt, Evaluate):
            raise LowerError(f"{self.name}: {shuffle!r} stands in the head of a "
                             f"{type(s).__name__}: give it a name before")
        _, value, by, width, _ = shuffle.args
        store: Any = s
        read = {x.buffer.data for x in pre_order(value) if type(x) is BufferLoad}
        plain = type(s) is BufferStore and s.value is shuffle and len(shuffles_of(s)) == 1
        if plain and read <= self.own - {store.buffer.data}:
            place, count = self._number()
            number = source_of(shuffle, place, count, by, width, Select)
            table = {}
            slowest = self.axes[0][0] if self.axes else None
            for var, extent, _ in reversed(self.axes):
                many = op.cast(extent, "int32")
                own = number if var is slowest else op.floormod(number, many)
                table[var] = op.cast(own, var.dtype)
                number = op.floordiv(number, many)
            return self._each(store.replace(value=substitute(value, table)))
        memory = decl_buffer((1,), shuffle.dtype, "lane", scope="local")
        load = BufferLoad(memory, (0,))
        if plain:  # what is read must be of the thread
            mask, _, *rest = shuffle.args
            told = shuffle.replace(args=(mask, load, *rest))
            body = seq(BufferStore(memory, value, (0,)), store.replace(value=told))
        else:
            instead = _Instead(shuffle, load)
            later = instead.visit(s) if type(s) is BufferStore else store.replace(
                value=instead.visit(store.value))
            body = seq(BufferStore(memory, shuffle, (0,)), later)
        return self.run(Allocate.from_fields(memory.data, memory.dtype, memory.shape, TRUE,
                                             DeclBuffer.from_fields(memory, body), EMPTY))

    def _is_own(self, memory: Var) -> bool:
        return memory.storage_scope.startswith("local")

    def _chunks(self, items: Sequence[Stmt]) -> Stmt:
        """Statements in order: those without a barrier share a loop over the threads."""
        out: list[Stmt] = []
        together: list[Stmt] = []
        for item in items:
            if not self.waits(item):
                together.append(item)
                continue
            if together:
                out.append(self._each(seq(*together)))
                together = []
            if not is_barrier(item):
                out.append(self.run(item))
        if together:
            out.append(self._each(seq(*together)))
        return seq(*out)

    def _each(self, s: Stmt) -> Stmt:
        """A loop over the threads around a statement without barriers."""
        if type(s) is Evaluate and type(s.value) is not Call:
            return s
        table: dict[Var, PrimExpr] = {}
        loops = []
        for var, extent, _ in reversed(self.axes):
            if op.as_int(extent) == 1:
                table[var] = op.const(0, var.dtype)
                continue
            table[var] = own = var.with_name(var.name)  # each loop has a variable of its own
            loops.append((own, extent))
        body = _fresh(substitute(s, table))
        for own, extent in loops:
            body = For(own, 0, extent, ForKind.SERIAL, body)
        return body

    def _number(self) -> tuple[PrimExpr, PrimExpr]:
        """A thread's number in its block, x varying fastest, and how many there are."""
        place: PrimExpr = op.const(0)
        count: PrimExpr = op.const(1)
        for var, extent, _ in reversed(self.axes):
            place = op.add(place, op.mul(op.cast(var, "int32"), count))
            count = op.mul(count, op.cast(extent, "int32"))
        return place, count

    def _allocate(self, s: Allocate) -> Stmt:
        """Shared memory is there once a block, other memory once a thread."""
        body = s.body
        extents = s.extents
        data = Var(s.buffer_var.name, PointerType(dt.element_of(s.dtype), ""))
        if not s.buffer_var.storage_scope.startswith("shared"):
            size = extents[0]
            for extent in extents[1:]:
                size = op.mul(size, extent)
            place, count = self._number()
            size = op.cast(size, "int32")
            extents = (op.mul(count, size),)
            body = Shifted(s.buffer_var, data, op.mul(place, size), extents).visit(body)
            self.own.add(data)
        else:
            body = substitute(body, {s.buffer_var: data})
        return Allocate.from_fields(data, s.dtype, extents, s.condition, self.run(body),
                                    s.annotations)

    def _let(self, s: LetStmt) -> Stmt:
        """A value that is needed after a barrier is kept in memory of the thread."""
        if not uses_var(s.value, self.threads) and not any(
                type(x) is BufferLoad for x in pre_order(s.value)):
            return LetStmt(s.var, s.value, self.run(s.body))
        memory = decl_buffer((1,), s.var.dtype, s.var.name, scope="local")
        body = seq(BufferStore(memory, s.value, (0,)),
                   substitute(s.body, {s.var: BufferLoad(memory, (0,))}))
        return self.run(Allocate.from_fields(memory.data, memory.dtype, memory.shape, TRUE,
                                             DeclBuffer.from_fields(memory, body), EMPTY))


class _Instead(Mutator):
    """One expression in place of another."""

    def __init__(self, old: PrimExpr, new: PrimExpr) -> None:
        super().__init__()
        self.old, self.new = old, new

    def visit_Call(self, node: Call) -> PrimExpr:
        return self.new if node is self.old else self.default(node)


class Shifted(Mutator):
    """Memory of one thread or warp, as its part of memory of all."""

    def __init__(self, old: Var, new: Var, start: PrimExpr, shape: tuple[PrimExpr, ...]) -> None:
        super().__init__()
        self.old, self.new, self.start, self.shape = old, new, start, shape
        self.buffers: dict[Buffer, Buffer] = {}

    def visit_Var(self, node: Var) -> PrimExpr:
        if node is self.old:
            raise LowerError(f"a pointer to {node.name}, which is a part of the memory of all "
                             "threads of a block here, cannot be passed to a function")
        return node

    def visit_buffer(self, buffer: Buffer) -> Buffer:
        if buffer.data is not self.old:
            return buffer
        found = self.buffers.get(buffer)
        if found is None:
            found = self.buffers[buffer] = Buffer.from_fields(
                self.new, buffer.dtype, self.shape, (), op.const(0), buffer.name,
                buffer.data_alignment, buffer.offset_factor, buffer.buffer_type, ())
        return found

    visit_buffer_def = visit_buffer

    def _index(self, index: PrimExpr) -> PrimExpr:
        if type(index) is Ramp:
            return Ramp(op.add(op.cast(self.start, index.base.dtype), index.base), index.stride,
                        index.lanes)
        return lane_add(op.cast(self.start, dt.element_of(index.dtype)), index)

    def visit_BufferLoad(self, node: BufferLoad) -> Any:
        new = node.map_children(self.visit)
        if node.buffer.data is not self.old:
            return new
        return BufferLoad(self.visit_buffer(node.buffer), tuple(map(self._index, new.indices)),
                          new.predicate)

    def visit_BufferStore(self, node: BufferStore) -> Any:
        new = node.map_children(self.visit)
        if node.buffer.data is not self.old:
            return new
        return BufferStore(self.visit_buffer(node.buffer), new.value,
                           tuple(map(self._index, new.indices)), new.predicate)


class _Fresh(Mutator):
    """Memory on the processor has no scope."""

    def visit_Allocate(self, node: Allocate) -> Stmt:
        body = self.visit(node.body)
        if node.buffer_var.storage_scope == "global":
            return node.replace(body=body)
        data = Var(node.buffer_var.name, PointerType(dt.element_of(node.dtype), ""))
        return node.replace(buffer_var=data, body=substitute(body, {node.buffer_var: data}))


def _fresh(s: Stmt) -> Stmt:
    return _Fresh().visit(s)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """A kernel as loops over blocks and threads."""
    if not is_kernel(func):
        return func
    name = str(func.attrs.get("global_symbol", "main"))
    axes, inner = axes_of(func)
    body = _Block(name, axes).run(inner)
    blocks = [s for s in axes if s.node.thread_tag.startswith("blockIdx")]
    many = [s for s in blocks if op.as_int(s.value) != 1]
    table = {s.node.var: op.const(0, s.node.var.dtype) for s in blocks if s not in many}
    body = substitute(body, table)
    if len(many) == 1:
        body = For(many[0].node.var, 0, many[0].value, ForKind.PARALLEL, body)
    elif many:
        rest: PrimExpr = Var("blockIdx", "int32")
        whole, total = rest, op.const(1)
        for s in reversed(many):
            extent = op.cast(s.value, "int32")
            index = rest if s is many[0] else op.truncmod(rest, extent)
            body = LetStmt(s.node.var, op.cast(index, s.node.var.dtype), body)
            rest = op.truncdiv(rest, extent)
            total = op.mul(total, extent)
        body = For(whole, 0, total, ForKind.PARALLEL, body)  # type: ignore[arg-type]
    outer: list[DeclBuffer] = []
    s: Any = func.body
    while type(s) is DeclBuffer or is_axis(s):
        if type(s) is DeclBuffer:
            outer.append(s)
        s = s.body
    for decl in reversed(outer):
        body = DeclBuffer.from_fields(decl.buffer, body)
    return func.with_body(body).with_attr("tir.noalias", func.attrs.get("tir.noalias", False))


def ThreadsToLoops() -> Pass:
    """Turn the threads of a kernel into loops, with the same results."""
    return function_pass("ThreadsToLoops", _rewrite)


__all__ = ["Shifted", "ThreadsToLoops"]
