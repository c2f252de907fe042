"""InjectVirtualThread: virtual threads become iterations of each thread, statement by statement.

Before, with 8 real threads::

    with T.attr(T.iter_var(vthread_x, None, "ThreadIndex", "vthread.x"), "virtual_thread", 2):
        C_local = T.allocate([4], "float32", "local")
        for k in range(64):
            A_shared[threadIdx_x] = A[k * 8 + threadIdx_x]
            for i in range(4):
                C_local[i] = C_local[i] + A_shared[i] * B[vthread_x * 8 + threadIdx_x]

After::

    C_local = T.allocate([8], "float32", "local")
    for k in range(64):
        A_shared[threadIdx_x] = A[k * 8 + threadIdx_x]
        for i in range(4):
            for vthread_x in T.unroll(2):
                C_local[vthread_x * 4 + i] = C_local[vthread_x * 4 + i] + A_shared[i] * B[...]

What a virtual thread is for is the order of its accesses: threads that run in step touch
neighbouring elements, and each works on several parts of a tile that lie apart. What is the same
for all virtual threads is done once, as a tile that they all load from. Memory that differs among
them is allocated for each.

A loop around all of the statements, as the iterations would run one after the other, is left where
statements hold pointers, of which it is not known what is done with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from ..ir.transform import Pass
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, Call, IntImm, IterVar, PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, pre_order, substitute, uses_var
from ..tir.op import as_int
from ..tir.op.intrinsic import OPAQUE, UPDATES, effect_of
from ..tir.stmt import (
    Allocate, AttrStmt, BufferStore, DeclBuffer, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt,
    While,
)
from .common import contains, function_pass, lane_add

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext

#: virtual threads up to which their loop is unrolled
_UNROLLED = 16


class _Inject(Mutator):
    def visit(self, node: Node) -> Any:
        """Expressions hold no threads: they are left alone."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        new = self.default(node)
        if node.attr_key != "virtual_thread" or not isinstance(node.node, IterVar):
            return new
        count = as_int(node.value)
        if count is None or _has_pointers(new.body):
            return For(node.node.var, 0, node.value, ForKind.SERIAL, new.body)
        return _Interleave(node.node.var, count, new.body).place(new.body)


def _has_pointers(body: Stmt) -> bool:
    """Whether memory is used other than by loads and stores, or its size is no constant."""
    for item in pre_order(body):
        if type(item) is Call and effect_of(item) in (UPDATES, OPAQUE):
            return True
        if type(item) is Call and any(isinstance(a, Var) and a.dtype == "handle"
                                      for a in item.args):
            return True
        if type(item) is LetStmt and item.var.dtype == "handle":
            return True
        if type(item) is Allocate and any(as_int(n) is None for n in item.extents):
            return True
        if isinstance(item, (BufferLoad, BufferStore)) and len(item.indices) != 1:
            return True
    return False


class _Interleave:
    """One axis of virtual threads, put around the statements that depend on it."""

    def __init__(self, var: Var, count: int, body: Stmt) -> None:
        self.var, self.count = var, count
        self.sizes = {s.buffer_var: _size(s) for s in pre_order(body) if type(s) is Allocate}
        self._buffers: dict[Buffer, Buffer] = {}
        #: what depends on the virtual thread: names, and memory by its pointer
        self.names: set[Var] = {var}
        while self._grow(body, False):
            pass

    def _grow(self, s: Stmt, under: bool) -> bool:
        """Add what a statement sets that depends on the virtual thread; whether there is more."""
        before = len(self.names)
        self._collect(s, under)
        return len(self.names) > before

    def _collect(self, s: Stmt, under: bool) -> None:
        """`under`: whether it depends on the virtual thread that the statement is run."""
        if type(s) is BufferStore and (under or self.differs(s.value) or any(
                map(self.differs, s.indices))):
            self.names.add(s.buffer.data)
        elif type(s) is LetStmt and (under or self.differs(s.value)):
            self.names.add(s.var)
        elif type(s) is For and (self.differs(s.min) or self.differs(s.extent)):
            self.names.add(s.loop_var)
            under = True
        elif isinstance(s, (IfThenElse, While)):
            under = under or self.differs(s.condition)
        for part in s.children():
            if isinstance(part, Stmt):
                self._collect(part, under)

    def differs(self, e: Node) -> bool:
        """Whether a value depends on the virtual thread."""
        return uses_var(e, self.names) or any(
            type(x) is BufferLoad and x.buffer.data in self.names for x in pre_order(e))

    # -- statements -------------------------------------------------------------------------------

    def place(self, s: Stmt) -> Stmt:
        """The statement with loops over the virtual threads where it needs them."""
        if type(s) is SeqStmt:
            return s.replace(seq=tuple(map(self.place, s.seq)))
        if type(s) is Allocate:
            extents = s.extents
            if s.buffer_var in self.names:
                extents = (IntImm("int32", self.sizes[s.buffer_var] * self.count),)
            return s.replace(extents=extents, body=self.place(s.body))
        if type(s) is DeclBuffer:
            return s.replace(buffer=self._wide(s.buffer), body=self.place(s.body))
        if type(s) is AttrStmt and not self.differs(s.value):
            return s.replace(body=self.place(s.body))
        if type(s) is LetStmt and s.var not in self.names:
            return s.replace(body=self.place(s.body))
        if type(s) is For and not (self.differs(s.min) or self.differs(s.extent)):
            return s.replace(body=self.place(s.body))
        if type(s) is While and not self.differs(s.condition):
            return s.replace(body=self.place(s.body))
        if type(s) is IfThenElse and not self.differs(s.condition):
            other = s.else_case
            return s.replace(then_case=self.place(s.then_case),
                             else_case=None if other is None else self.place(other))
        return self._around(s) if self._depends(s) else s

    def _depends(self, s: Stmt) -> bool:
        return any(isinstance(x, (BufferLoad, BufferStore)) and x.buffer.data in self.names
                   or x in self.names for x in pre_order(s)
                   if isinstance(x, (BufferLoad, BufferStore, Var)))

    def _around(self, s: Stmt) -> Stmt:
        # memory that is made inside the loop is there anew for each virtual thread
        inside = {x.buffer_var for x in pre_order(s) if type(x) is Allocate}
        own = self.var.with_name(self.var.name)
        kind = ForKind.UNROLLED if self.count <= _UNROLLED else ForKind.SERIAL
        widen = _Widen(self._wide, self._moved, inside)
        return For(own, 0, self.count, kind, substitute(widen.visit(s), {self.var: own}))

    # -- memory -----------------------------------------------------------------------------------

    def _wide(self, buffer: Buffer) -> Buffer:
        """A buffer over memory of all virtual threads, where each has its own."""
        data = buffer.data
        if data not in self.sizes or data not in self.names:
            return buffer
        found = self._buffers.get(buffer)
        if found is None:
            size = IntImm("int32", self.sizes[data] * self.count)
            found = self._buffers[buffer] = buffer.replace(shape=(size,), strides=())
        return found

    def _moved(self, buffer: Buffer, index: PrimExpr) -> PrimExpr:
        """An index of memory that each virtual thread has."""
        if buffer.data not in self.sizes or buffer.data not in self.names:
            return index
        start = self.var * self.sizes[buffer.data]
        return lane_add(index, start)


class _Widen(Mutator):
    """Accesses of memory that each virtual thread has, but of what is made `inside`."""

    def __init__(self, wide: Callable[[Buffer], Buffer],
                 moved: Callable[[Buffer, PrimExpr], PrimExpr], inside: Collection[Var]) -> None:
        super().__init__()
        self.wide, self.moved, self.inside = wide, moved, inside

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        new = self.default(node)
        if node.buffer.data in self.inside:
            return new
        return new.replace(buffer=self.wide(node.buffer),
                           indices=(self.moved(node.buffer, new.indices[0]),))

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        new = self.default(node)
        if node.buffer.data in self.inside:
            return new
        return new.replace(buffer=self.wide(node.buffer),
                           indices=(self.moved(node.buffer, new.indices[0]),))


def _size(s: Allocate) -> int:
    size = 1
    for extent in s.extents:
        size *= as_int(extent) or 0
    return size


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """A function without virtual threads."""
    if not contains(func.body, (AttrStmt,)):
        return func
    return func.with_body(_Inject().visit(func.body))


def InjectVirtualThread() -> Pass:
    """Make virtual threads iterations of each thread, statement by statement."""
    return function_pass("InjectVirtualThread", _rewrite)
