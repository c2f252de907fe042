"""StorageRewrite: memory that is no longer needed is used again.

Before::

    A1 = T.allocate([4096], "float32")
    B1 = T.allocate([4096], "float32")
    for i in range(4096): A1[i] = A[i] * 2.0
    for i in range(4096): B1[i] = A1[i] + 1.0      # last use of A1
    for i in range(4096): B[i] = B1[i]

After::

    A1 = T.allocate([4096], "float32")
    for i in range(4096): A1[i] = A[i] * 2.0
    for i in range(4096): A1[i] = A1[i] + 1.0      # B1 lives in A1's memory
    for i in range(4096): B[i] = A1[i]

Buffers that are allocated side by side are compared by the statements that use them. A buffer takes
over memory (of the same type and at least its size) whose last use came before its own first, or
happens in the same statement element by element (in place). Small constant buffers are left alone:
they become registers, which sharing would prevent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..arith import detect_iter_map
from ..ir import dtype as dt
from ..ir.structural import structural_equal
from ..ir.transform import Pass
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, Ramp, Range, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements, pre_order
from ..tir.op import as_int, const
from ..tir.stmt import Allocate, BufferStore, DeclBuffer, For, Stmt
from .common import function_pass, statements

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext

#: allocations of at most this many bytes are left to become registers
_REGISTERS = 4096


class InOtherMemory(Mutator):
    """Buffers whose memory is in `storage` lie in the memory that it names for theirs."""

    def __init__(self, storage: dict[Var, Var]) -> None:
        super().__init__()
        self.storage = storage
        self.renamed: dict[Buffer, Buffer] = {}

    def visit(self, node: Node) -> Any:
        """Expressions are rewritten only once something shares memory."""
        if not isinstance(node, Stmt) and not self.storage:
            return node
        return super().visit(node)

    def visit_Var(self, node: Var) -> Any:
        return self.storage.get(node, node)

    def visit_buffer(self, buffer: Buffer) -> Buffer:
        if buffer.data not in self.storage:
            return buffer
        found = self.renamed.get(buffer)
        if found is None:
            found = self.renamed[buffer] = buffer.replace(data=self.storage[buffer.data])
        return found

    visit_buffer_def = visit_buffer


class _Reuse(InOtherMemory):
    def visit_Allocate(self, node: Allocate) -> Stmt:
        chain, body = _chain(node)
        if len([s for s in chain if type(s) is Allocate]) > 1:
            self._plan(chain, statements(body))
        if any(type(s) is Allocate and s.buffer_var in self.storage for s in chain):
            # a declaration may name memory that comes later in the chain
            chain.sort(key=lambda s: type(s) is DeclBuffer)
        body = self.visit(body)
        for item in reversed(chain):
            if isinstance(item, Allocate):
                if item.buffer_var in self.storage:
                    continue
                body = item if item.body is body else item.replace(body=body)
            else:
                buffer = self.visit_buffer(item.buffer)
                body = item if item.body is body and buffer is item.buffer else (
                    DeclBuffer.from_fields(buffer, body))
        return body

    def _plan(self, chain: list[Allocate | DeclBuffer], body: tuple[Stmt, ...]) -> None:
        """Give each buffer its own memory, or that of one that is no longer live."""
        first: dict[Var, int] = {}
        last: dict[Var, int] = {}
        for at, s in enumerate(body):
            for var in _pointers(s):
                first.setdefault(var, at)
                last[var] = at
        owners: list[list] = []  # [Allocate, index of the last use of its memory, its last user]
        allocs = [s for s in chain if type(s) is Allocate and s.buffer_var in first]
        for item in sorted(allocs, key=lambda s: first[s.buffer_var]):
            var = item.buffer_var
            if not _shareable(item):
                continue
            for owner in owners:
                base, end, user = owner
                if not _fits(item, base):
                    continue
                inplace = end == first[var] and _elementwise(body[end], user, var)
                if end < first[var] or inplace:
                    self.storage[var] = base.buffer_var
                    owner[1:] = last[var], var
                    break
            else:
                owners.append([item, last[var], var])


def _chain(node: Stmt) -> tuple[list[Allocate | DeclBuffer], Stmt]:
    """Allocations and declarations directly inside of each other, and what they are for."""
    chain: list[Allocate | DeclBuffer] = []
    while isinstance(node, (Allocate, DeclBuffer)):
        chain.append(node)
        node = node.body
    return chain, node


def _pointers(s: Stmt) -> set[Var]:
    out: set[Var] = set()
    for item in pre_order(s):
        if type(item) in (BufferLoad, BufferStore):
            out.add(item.buffer.data)
        elif isinstance(item, Var) and item.dtype == "handle":
            out.add(item)
        elif type(item) is Buffer:
            out.add(item.data)
    return out


def _shareable(item: Allocate) -> bool:
    """Main memory, not tiny."""
    if item.buffer_var.storage_scope not in ("global", "") or item.annotations:
        return False
    size = as_int(item.extents[0]) if len(item.extents) == 1 else None
    return size is None or size * dt.bytes_of(item.dtype) > _REGISTERS


def _fits(item: Allocate, base: Allocate) -> bool:
    if item.dtype != base.dtype or len(item.extents) != 1 or len(base.extents) != 1:
        return False
    need, have = as_int(item.extents[0]), as_int(base.extents[0])
    if need is not None and have is not None:
        return need <= have
    return structural_equal(item.extents[0], base.extents[0]) is True


def _elementwise(s: Stmt, old: Var, new: Var) -> bool:
    """Whether a statement writes each element of `new` once, and reads `old` only at the very
    element that it writes."""
    domains: dict[Var, Range] = {}
    while type(s) is For:
        domains[s.loop_var] = Range.from_min_extent(s.min, s.extent)
        s = s.body
    if type(s) is not BufferStore or s.buffer.data is not new or len(s.indices) != 1:
        return False
    for item in pre_order(s.value):
        if type(item) is BufferLoad and item.buffer.data in (old, new):
            if item.buffer.data is new or structural_equal(item.indices, s.indices) is not True:
                return False
        if isinstance(item, Var) and item is old:
            return False
    index = s.indices[0]
    if type(index) is Ramp:
        lane = Var("lane", index.base.dtype)
        domains[lane] = Range.from_min_extent(const(0, lane.dtype), const(index.lanes, lane.dtype))
        index = index.base + lane * index.stride
    if "x" in index.dtype:
        return False
    found = detect_iter_map([index], domains, True, "bijective")
    return bool(found.indices)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Shared memory."""
    if ctx.config.get("tir.disable_storage_rewrite"):
        return func
    count = sum(type(s) is Allocate for s in all_statements(func.body))
    return func if count < 2 else func.with_body(_Reuse({}).visit(func.body))


def StorageRewrite() -> Pass:
    """Use memory that is no longer needed again."""
    return function_pass("StorageRewrite", _rewrite)
