"""LimitUnroll: loops are annotated with how often LLVM is to copy their bodies.

Before::

    for i in range(128):
        B[i] = A[i] * T.float32(2)

After::

    for i in T.serial(128, annotations={"unroll_count": 1}):
        B[i] = A[i] * T.float32(2)

`unroll_count` is the number of copies that LLVM makes of the body: 1 leaves the loop as it is, 2
halves its iterations. A loop without it is unrolled by LLVM's own rules. An annotation that a loop
has already is kept.

Loops are not unrolled where more copies cost time to compile and gain nothing:

- loops that only store elements: LLVM vectorizes them, and when it unrolls them first, as it does
  with short ones, it takes longer to arrive at the same code;
- loops with many vector accesses: the schedule has blocked them for the registers. An innermost one
  is unrolled by two where that leaves no remainder; a product of 128 gains 3 %;
- loops around one that stays a loop, and loops of vectors around others, which LLVM would unroll
  completely.

Loops of few iterations are unrolled all the same, as long as the copies within each other stay few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir import dtype as dt
from ..ir.transform import Pass
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, Call, IntImm, PrimExpr, Ramp
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements, uses_var
from ..tir.op import as_int
from ..tir.stmt import BufferStore, For, ForKind, Stmt
from .common import annotation_int, function_pass, statements

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext

#: the annotation of a loop
UNROLL_COUNT = "unroll_count"

# A body with so many vector accesses is large; one with more than `_MANY` is not doubled.
_LARGE, _MANY = 8, 64
# Loops of few iterations are unrolled, up to so many vector accesses: of an innermost loop; of a
# nest (fewer: LLVM then takes a tenth less for a packed convolution, which is no slower); of loops
# of very few iterations that accumulate in registers (more), such as those over a 3 by 3 filter.
_FEW, _VERY_FEW = 8, 4
_COPIES, _COPIES_OF_NEST, _COPIES_OF_SUM = 32, 8, 256


class _Limit(Mutator):
    """Counts what has been visited so far; a loop compares before and after its body."""

    def __init__(self) -> None:
        super().__init__()
        self.accesses = 0  # vector loads and stores
        self.copied = 0  # further ones, by unrolling loops of few iterations
        self.sums = 0  # vector loads of the buffer that the same statement stores to
        self.loops = 0  # loops of more than one iteration
        self.kept = 0  # loops whose unrolling is limited
        self.stored: Buffer | None = None

    def visit(self, node: Node) -> Any:
        """Statements are rewritten, and the vectors in expressions counted."""
        if isinstance(node, Stmt):
            return super().visit(node)
        stack = [node]
        while stack:
            item = stack.pop()
            if "x" in getattr(item, "dtype", ""):
                if type(item) is BufferLoad:
                    self.accesses += _accesses(item, load=True)
                    self.sums += item.buffer is self.stored
                stack.extend(item.children())
            elif type(item) is Call:  # it may reduce a vector to a number
                stack.extend(a for a in item.args if isinstance(a, PrimExpr))
        return node

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        self.accesses += _accesses(node, load=False)
        self.stored = node.buffer
        self.default(node)
        self.stored = None
        return node

    def visit_For(self, node: For) -> Stmt:
        if node.kind is ForKind.PARALLEL:  # its body becomes a function of its own
            inner = _Limit()
            return inner.limit(node, inner.visit(node.body), [0] * 5, None)
        before = self.counts()
        body = self.visit(node.body)
        count = as_int(node.extent)
        if count is not None and count <= 1:
            return _with(node, body, None)
        return self.limit(node, body, before, count)

    def counts(self) -> list[int]:
        return [self.accesses, self.copied, self.sums, self.loops, self.kept]

    def limit(self, node: For, body: Stmt, before: list[int], count: int | None) -> For:
        """The loop of `count` iterations (None: unknown), whose body has been visited."""
        accesses, copied, sums, loops, kept = (a - b for a, b in zip(self.counts(), before))
        self.loops += 1
        own = annotation_int(node.annotations.get(UNROLL_COUNT))
        nest = accesses > 0 and loops > 0
        copies = accesses + copied
        few = count is not None and count <= _FEW and copies * count <= (
            _COPIES_OF_SUM if count <= _VERY_FEW and sums else _COPIES_OF_NEST if nest else _COPIES)
        if own <= 0 and not kept and (few or not (
                accesses >= _LARGE or nest or _only_stores_elements(node))):
            if few and count is not None:
                self.copied += copies * (count - 1)
            return _with(node, body, None)
        self.kept += 1
        even = count is not None and count % 2 == 0
        twice = _LARGE <= accesses <= _MANY and even and not kept
        return _with(node, body, own if own > 0 else 2 if twice else 1)


def _with(node: For, body: Stmt, copies: int | None) -> For:
    """A loop with another body, and how often it is copied."""
    notes = node.annotations
    if copies is not None and annotation_int(notes.get(UNROLL_COUNT)) != copies:
        notes = {**notes, UNROLL_COUNT: IntImm("int32", copies)}
    if body is node.body and notes is node.annotations:
        return node
    return For.from_fields(node.loop_var, node.min, node.extent, node.kind, body,
                           node.thread_binding, notes)


def _accesses(node: BufferLoad | BufferStore, load: bool) -> int:
    """How many vectors a load or store moves: of consecutive elements one, or as many as
    SplitVector makes of them; a load with stride 2 two."""
    last = node.indices[-1] if node.indices else None
    if type(last) is not Ramp:
        return int(dt.lanes_of(node.buffer.dtype) > 1)
    parts = (last.lanes >> 1).bit_count()  # a last single lane is no vector
    return {1: parts, -1: int(load), 2: 2 * load}.get(as_int(last.stride) or 0, 0)


def _only_stores_elements(loop: For) -> bool:
    """Whether a loop only stores to elements that differ from one iteration to the next. (Vector
    reductions are no such stores: LLVM does not vectorize these.)"""
    return loop.kind is not ForKind.PARALLEL and all(
        type(s) is BufferStore and any(uses_var(index, loop.loop_var) for index in s.indices)
        and getattr(getattr(s.value, "op", None), "name", "") != "tir.call_llvm_pure_intrin"
        for s in statements(loop.body))


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Loops that say how often their bodies may be copied."""
    if not any(type(s) is For for s in all_statements(func.body)):
        return func
    return func.with_body(_Limit().visit(func.body))


def LimitUnroll() -> Pass:
    """Annotate loops with how often LLVM is to copy their bodies."""
    return function_pass("LimitUnroll", _rewrite)
