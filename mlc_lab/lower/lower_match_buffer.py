"""LowerMatchBuffer: accesses through a matched buffer go to the buffer it is a window of.

Before::

    W = T.match_buffer(A[i * 16:i * 16 + 16, 0:16], (16, 16), strides=(s0, 1), offset_factor=1)
    T.evaluate(T.call_extern("fill", W.data, W.elem_offset, s0))
    W[a, b] = 0.0

After::

    T.evaluate(T.call_extern("fill", A.data, i * 16 * 128, 128))
    A[i * 16 + a, b] = 0.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..arith import Analyzer
from ..ir.transform import Pass
from ..tir.buffer import Buffer, strides_of
from ..tir.expr import BufferLoad, Call, PrimExpr, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements
from ..tir.op import as_int
from ..tir.stmt import Block, BufferRegion, BufferStore, MatchBufferRegion, Stmt
from .common import LowerError, function_pass, lane_add

if TYPE_CHECKING:
    from ..ir.transform import PassContext


class _LowerMatch(Mutator):
    def __init__(self) -> None:
        super().__init__()
        self.sources: dict[Buffer, BufferRegion] = {}
        self.values: dict[Var, PrimExpr] = {}
        self.analyzer = Analyzer()

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.values.get(node, node)

    def visit_Block(self, node: Block) -> Stmt:
        for match in node.match_buffers:
            self._define(match)
        if node.match_buffers:
            node = node.replace(match_buffers=())
        return super().visit_Block(node)

    def _define(self, match: MatchBufferRegion) -> None:
        buffer, source = match.buffer, self.visit(match.source)
        base = source.buffer
        self.sources[buffer] = source
        self._bind(buffer.data, base.data, buffer, "the data pointer")
        strides = strides_of(base)
        offset = base.offset_of([r.min for r in source.region])[0]
        if isinstance(buffer.elem_offset, Var):
            self._bind(buffer.elem_offset, self.analyzer.simplify(offset), buffer, "elem_offset")
        tail = len(base.shape) - len(buffer.shape)
        for own, theirs in zip(buffer.strides, strides[tail:]):
            self._bind(own, theirs, buffer, "a stride")
        for own, rng in zip(buffer.shape, source.region[tail:]):
            self._bind(own, rng.extent, buffer, "a dimension")

    def _bind(self, own: PrimExpr, value: PrimExpr, buffer: Buffer, what: str) -> None:
        if isinstance(own, Var):
            known = self.values.get(own)
            if known is None:
                self.values[own] = value
                return
            own = known
        if own is value or own.dtype == "handle":
            return
        if as_int(own) is not None and as_int(value) is not None and as_int(own) != as_int(value):
            raise LowerError(f"match_buffer {buffer.name}: {what} is declared as {own!r}, but the "
                             f"region matched has {value!r} there")

    def visit_buffer(self, buffer: Buffer) -> Buffer:
        return self.buffers.get(buffer, buffer)

    def _indices(self, source: BufferRegion, indices: tuple) -> tuple:
        tail = len(source.region) - len(indices)
        head = tuple(r.min for r in source.region[:tail])
        return head + tuple(lane_add(r.min, i) for r, i in zip(source.region[tail:], indices))

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        new = super().visit_BufferLoad(node)
        source = self.sources.get(node.buffer)
        if source is None:
            return new
        return BufferLoad.from_fields(source.buffer, self._indices(source, new.indices),
                                      new.predicate)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        new = super().visit_BufferStore(node)
        source = self.sources.get(node.buffer)
        if source is None:
            return new
        return BufferStore.from_fields(source.buffer, new.value,
                                       self._indices(source, new.indices), new.predicate)

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        new = super().visit_BufferRegion(node)
        source = self.sources.get(node.buffer)
        if source is None:
            return new
        tail = len(source.region) - len(new.region)
        shifted = tuple(r.replace(min=s.min + r.min)
                        for s, r in zip(source.region[tail:], new.region))
        return BufferRegion.from_fields(source.buffer, source.region[:tail] + shifted)

    def visit_Call(self, node: Call) -> PrimExpr:
        if any(type(a) is Buffer and a in self.sources for a in node.args):
            raise LowerError("a matched buffer is passed whole to a function: pass its pointer "
                             "(buffer.access_ptr or T.address_of) instead")
        return self.default(node)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """No match_buffers in blocks."""
    if not any(type(s) is Block and s.match_buffers for s in all_statements(func.body)):
        return func
    return func.with_body(_LowerMatch().visit(func.body))


def LowerMatchBuffer() -> Pass:
    """Let accesses through a matched buffer go to the buffer it is a window of."""
    return function_pass("LowerMatchBuffer", _rewrite)
