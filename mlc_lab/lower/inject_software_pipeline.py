"""InjectSoftwarePipeline: the parts of a loop's body work on different iterations at one time.

Before::

    for k in T.serial(8, annotations={"software_pipeline_stage": [0, 1],
                                      "software_pipeline_order": [0, 1]}):
        with T.block(""):
            S = T.alloc_buffer((32,), scope="shared")
            for i in range(32):
                S[i] = A[k, i]
            for i in range(32):
                C[k, i] = S[i] * 2.0

After::

    with T.block(""):
        S = T.alloc_buffer((2, 32), scope="shared")
        for i in range(32):
            S[0, i] = A[0, i]
        for k in range(7):
            for i in range(32):
                S[(k + 1) % 2, i] = A[k + 1, i]
            for i in range(32):
                C[k, i] = S[k % 2, i] * 2.0
        for i in range(32):
            C[7, i] = S[1, i] * 2.0

`software_pipeline_stage` says of each part how many iterations it is behind, and
`software_pipeline_order` which part comes first at one time. What fetches data then runs while what
computes with the data before it does. Memory that an iteration has to itself gets a version for
each iteration that is under way; of other memory, no two accesses may change places: the program is
refused where it is not seen that they do not. A block with the annotation `double_buffer_scope` is
such a part, one iteration ahead of the others, where it can be.

`software_pipeline_async_stages` names stages whose copies from global to shared memory are
asynchronous, where the target has such copies (CUDA from sm_80 on)::

    for k in range(7):
        with T.attr(0, "async_wait_queue_scope", 0):
            with T.attr(0, "async_wait_inflight_count", 0):        # groups that may be under way
                with T.attr(0, "async_commit_queue_scope", 0):     # one group of copies
                    with T.attr(0, "async_scope", 1):
                        for i in range(32):
                            S[(k + 1) % 2, i] = A[k + 1, i]
                for i in range(32):
                    C[k, i] = S[k % 2, i] * 2.0

What was started an iteration before is waited for before new copies start, so that one barrier
serves both. Elsewhere, and to all that runs a program step by step, these are plain copies.

Lam, "Software pipelining: an effective scheduling technique for VLIW machines" (1988).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..arith import Analyzer
from ..ir.transform import Pass
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, Call, IntImm, PrimExpr, Range, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements, leaves_loop, pre_order
from ..tir.op import as_int
from ..tir.op.intrinsic import PURE, effect_of
from ..tir.stmt import (
    EMPTY, TRUE, AttrStmt, Block, BlockRealize, BufferRegion, BufferStore, DeclBuffer, For, ForKind,
    IfThenElse, LetStmt, SeqStmt, Stmt, seq,
)
from .common import LowerError, function_pass

if TYPE_CHECKING:
    from ..ir.transform import PassContext
    from ..target.target import TargetLike

STAGE, ORDER, ASYNC = ("software_pipeline_stage", "software_pipeline_order",
                       "software_pipeline_async_stages")
DOUBLE = "double_buffer_scope"
#: where copies are waited for: the value is how many groups of them may still be under way
WAIT = "async_wait_inflight_count"


@dataclass
class _Part:
    """A statement of the body: its stage, its place at one time, and the memory it touches."""

    stmt: Stmt
    number: int
    stage: int = 0
    order: int = 0
    reads: set[Var] = field(default_factory=set)
    writes: set[Var] = field(default_factory=set)
    #: whether it may touch any memory, or do anything else that is seen
    anything: bool = False

    def __post_init__(self) -> None:
        inner: set[Var] = set()
        for node in pre_order(self.stmt):
            kind = type(node)
            if kind is BufferStore:
                self.writes.add(node.buffer.data)
            elif kind is BufferLoad:
                self.reads.add(node.buffer.data)
            elif kind is Block:
                inner.update(b.data for b in node.alloc_buffers)
            elif isinstance(node, Var) and node.dtype == "handle":
                self.reads.add(node)
                self.writes.add(node)
            elif isinstance(node, Call) and effect_of(node) != PURE:
                held = [n for a in node.args for n in pre_order(a)]
                given = [n.buffer.data for n in held if type(n) is BufferLoad]
                self.writes.update(given)
                self.anything |= not given and not any(
                    isinstance(n, Var) and n.dtype == "handle" for n in held)
            elif isinstance(node, LetStmt) and node.var.dtype == "handle":
                self.anything = True
        self.reads -= inner
        self.writes -= inner

    def touches(self, memory: Var) -> bool:
        """Whether it may read or write this memory."""
        return self.anything or memory in self.reads or memory in self.writes

    def clash(self, other: _Part) -> set[Var]:
        """Memory that both touch, one of them writing; of a part that may do anything, all."""
        found = self.writes & (other.reads | other.writes) | self.reads & other.writes
        if self.anything or other.anything:
            found |= self.reads | self.writes | other.reads | other.writes
        return found

    def comes_before(self, other: _Part, later: int) -> bool:
        """Whether it runs before another part of so many iterations later."""
        return (self.stage, self.order) < (other.stage + later, other.order)


class _Versions(Mutator):
    """One part at one iteration: the loop's variable has a value, memory with versions a slot."""

    def __init__(self, var: Var, value: PrimExpr, new: Mapping[Buffer, Buffer],
                 slots: Mapping[Buffer, PrimExpr]) -> None:
        super().__init__()
        self.var, self.value, self.slots = var, value, slots
        self.buffers.update(new)
        self.by_data = {b.data: b for b in new}

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.value if node is self.var else node

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        new = super().visit_BufferLoad(node)
        slot = self.slots.get(node.buffer)
        return new if slot is None else new.replace(indices=(slot, *new.indices))

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        new = super().visit_BufferStore(node)
        slot = self.slots.get(node.buffer)
        return new if slot is None else new.replace(indices=(slot, *new.indices))

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        new = super().visit_BufferRegion(node)
        slot = self.slots.get(node.buffer)
        if slot is None:
            return new
        return new.replace(region=(Range.from_min_extent(slot, op.const(1, slot.dtype)),
                                   *new.region))

    def visit_Call(self, node: Call) -> PrimExpr:
        args = list(node.args)
        data = args[1] if len(args) > 1 else None
        buffer = self.by_data.get(data) if isinstance(data, Var) else None
        if buffer is None or getattr(node.op, "name", "") != "tir.tvm_access_ptr":
            return self.default(node)
        size: PrimExpr = op.const(1)
        for extent in buffer.shape:
            size = size * extent
        kind, _, offset, *rest = args
        return node.replace(args=(kind, data, self.visit(offset) + self.slots[buffer] * size,
                                  *map(self.visit, rest)))


@dataclass
class _Ahead:
    """Parts that copy asynchronously, those that use it first, how many iterations later that is,
    and how many iterations those are behind the first part of all."""

    copies: list[_Part]
    users: list[_Part]
    distance: int
    behind: int


#: a part, and its statements at one time
_Placed = tuple[_Part, list[Stmt]]


def _stores(s: Stmt) -> list[BufferStore]:
    return [x for x in all_statements(s) if type(x) is BufferStore]


def _copies(s: BufferStore) -> bool:
    """Whether a store copies an element of global memory."""
    return type(s.value) is BufferLoad and s.value.buffer.scope() == "global" and (
        s.value.buffer.dtype == s.buffer.dtype)


def _step(placed: Sequence[_Placed], ahead: _Ahead | None, ending: int | None = None
          ) -> list[Stmt]:
    """The statements of one time, `ending` of them after the last that starts an iteration."""
    if ahead is None:
        return [s for _, stmts in placed for s in stmts]
    out: list[Stmt] = []
    group: list[Stmt] = []
    waits = False
    for part, stmts in placed:
        if part in ahead.copies:
            group += stmts
            if part is ahead.copies[-1]:
                one = IntImm("int32", 1)
                out.append(_scope("async_commit_queue_scope", IntImm("int32", 0),
                                  _scope("async_scope", one, seq(*group))))
        else:
            out += stmts
            waits |= part in ahead.users and bool(stmts)
    if not waits:
        return out
    count = ahead.distance - 1
    if ending is not None:
        count = max(0, min(count, ahead.behind - 1 - ending))
    inner = _scope(WAIT, IntImm("int32", count), seq(*out))
    return [_scope("async_wait_queue_scope", IntImm("int32", 0), inner)]


def _scope(key: str, value: PrimExpr, body: Stmt) -> Stmt:
    return AttrStmt(IntImm("int32", 0), key, value, body)


class _Pipelines(Mutator):
    def __init__(self, name: str, marks: bool, asynchronous: bool) -> None:
        super().__init__()
        self.name, self.marks, self.asynchronous = name, marks, asynchronous

    def visit_For(self, node: For) -> Stmt:
        loop = self.default(node)
        if STAGE in loop.annotations or ORDER in loop.annotations:
            return self.pipelined(loop, *self.told(loop))
        marked = self.marked(loop) if self.marks else None
        if marked is None:
            return loop
        try:
            return self.pipelined(loop, *marked)
        except LowerError:
            return loop  # a mark is a hint

    # ------------------------------------------------------------------------- what is asked for

    def refuse(self, loop: For, why: str) -> LowerError:
        return LowerError(f"{self.name}: loop {loop.loop_var.name} cannot be a software pipeline: "
                          f"{why}")

    @staticmethod
    def body(loop: For) -> tuple[BlockRealize | None, tuple[Stmt, ...]]:
        """The block that is the loop's body, if it is one, and the statements in it."""
        realize = loop.body if type(loop.body) is BlockRealize else None
        if realize is not None and as_int(realize.predicate) != 1:
            realize = None
        inner = realize.block.body if realize is not None else loop.body
        return realize, inner.seq if type(inner) is SeqStmt else (inner,)

    def told(self, loop: For) -> tuple[list[int], list[int]]:
        """Stages and orders as the annotations have them."""
        stages, orders = ([as_int(v) for v in loop.annotations.get(key, ())]
                          for key in (STAGE, ORDER))
        count = len(self.body(loop)[1])
        if not len(stages) == len(orders) == count:
            raise self.refuse(loop, f"its body has {count} statements, {STAGE} {len(stages)} "
                              f"entries and {ORDER} {len(orders)}; one for each is needed")
        if any(s is None or s < 0 for s in stages) or None in orders or (
                len(set(orders)) != count):
            raise self.refuse(loop, f"{STAGE} has numbers from 0 on, and {ORDER} a number of its "
                              f"own for each statement; they are {stages} and {orders}")
        return [s or 0 for s in stages], [o or 0 for o in orders]

    def marked(self, loop: For) -> tuple[list[int], list[int]] | None:
        """Stages where blocks are marked as double buffers: those first, one iteration ahead."""
        realize, stmts = self.body(loop)
        if realize is None or loop.kind is not ForKind.SERIAL:
            return None
        own = {b.data for b in realize.block.alloc_buffers}
        ahead = [any(type(s) is Block and DOUBLE in s.annotations
                     and any(w.buffer.data in own for w in s.writes) for s in all_statements(stmt))
                 for stmt in stmts]
        if all(ahead) or not any(ahead):
            return None
        order = sorted(range(len(stmts)), key=lambda n: (not ahead[n], n))
        return [int(not a) for a in ahead], [order.index(n) for n in range(len(stmts))]

    # ------------------------------------------------------------------------- whether it may be

    def parts(self, loop: For, stages: Sequence[int], orders: Sequence[int],
              own: Sequence[Buffer]) -> list[_Part]:
        """The parts, if they compute the same in their new order."""
        if loop.kind is not ForKind.SERIAL or leaves_loop(loop.body):
            raise self.refuse(loop, "it is not serial, or is left early")
        _, stmts = self.body(loop)
        parts = [_Part(s, n, stages[n], orders[n]) for n, s in enumerate(stmts)]
        private = {b.data for b in own}
        for a in parts:
            for b in parts:
                shared = a.clash(b)
                if a.number < b.number and shared and not a.comes_before(b, 0):
                    raise self._clash(loop, a, b, shared, "of the same iteration")
                if (shared - private or a.anything and b.anything) and not a.comes_before(b, 1):
                    raise self._clash(loop, a, b, shared - private, "of the next iteration")
        for stmt in stmts:
            for s in all_statements(stmt):
                if type(s) is DeclBuffer and s.buffer.data in private:
                    raise self.refuse(loop, f"{s.buffer.name} is another name for memory that "
                                      "would have versions")
        return parts

    def _clash(self, loop: For, a: _Part, b: _Part, memory: set[Var], when: str) -> LowerError:
        names = ", ".join(sorted(v.name for v in memory)) or "what is outside"
        return self.refuse(
            loop, f"statement {a.number} must run before statement {b.number} {when}, since both "
            f"touch {names}; with these stages and orders it does not")

    # ------------------------------------------------------------------------- what it becomes

    def pipelined(self, loop: For, stages: Sequence[int], orders: Sequence[int]) -> Stmt:
        """The loop, with what starts it and what ends it."""
        realize, _ = self.body(loop)
        own = realize.block.alloc_buffers if realize is not None else ()
        parts = sorted(self.parts(loop, stages, orders, own), key=lambda part: part.order)
        new, counts = self.versions(own, parts)
        first = min(stages)
        depth = max(stages) - first
        low, extent, analyzer = loop.min, loop.extent, Analyzer()

        def at(iteration: PrimExpr, part: _Part, condition: PrimExpr = TRUE) -> list[Stmt]:
            """The part of an iteration, counted from 0; nothing where a condition never holds."""
            condition = analyzer.simplify(condition)
            if as_int(condition) == 0:
                return []
            count = analyzer.simplify(iteration)
            slots = {b: analyzer.simplify(op.floormod(count, op.const(n, count.dtype)))
                     for b, n in counts.items()}
            stmt = _Versions(loop.loop_var, analyzer.simplify(low + count), new, slots).visit(
                part.stmt)
            return [stmt if as_int(condition) == 1 else IfThenElse(condition, stmt)]

        ahead = self.ahead(loop, parts, own) if self.asynchronous else None
        kind = loop.loop_var.dtype
        out: list[Stmt] = []
        for time in range(depth):
            step: list[_Placed] = []
            for part in parts:
                behind = time - (part.stage - first)
                if behind >= 0:
                    count = op.const(behind, kind)
                    step.append((part, at(count, part, op.less(count, extent))))
            out += _step(step, ahead)
        steady = analyzer.simplify(op.max(extent - depth, op.const(0, kind)))
        if as_int(steady) != 0:
            middle = _step([(part, at(loop.loop_var - low + (depth - (part.stage - first)), part))
                            for part in parts], ahead)
            rest = {k: v for k, v in loop.annotations.items() if k not in (STAGE, ORDER, ASYNC)}
            out.append(loop.replace(extent=steady, body=seq(*middle), annotations=rest or EMPTY))
        for time in range(depth):
            step = []
            for part in parts:
                if part.stage - first > time:
                    count = extent + (time - (part.stage - first))
                    # fewer iterations than stages: what has run already does not run again
                    step.append((part, at(count, part,
                                          op.all(extent + time >= depth, count >= 0))))
            out += _step(step, ahead, time)
        body = seq(*out)
        if realize is None:
            return body
        block = realize.block.replace(alloc_buffers=tuple(new.get(b, b) for b in own), body=body)
        return realize.replace(block=block)

    def ahead(self, loop: For, parts: Sequence[_Part], own: Sequence[Buffer]) -> _Ahead | None:
        """The parts that are to copy asynchronously, if they can: copies to shared memory of the
        iteration's own, one after the other, that only later stages use."""
        stages = {as_int(n) for n in loop.annotations.get(ASYNC, ())}
        shared = {b.data for b in own if b.scope().startswith("shared")}
        copies = [p for p in parts if p.stage in stages and p.writes and p.writes <= shared
                  and not p.anything and all(map(_copies, _stores(p.stmt)))]
        places = [parts.index(p) for p in copies]
        if not copies or len({p.stage for p in copies}) > 1 or (
                places != list(range(places[0], places[-1] + 1))):
            return None
        written = set().union(*(p.writes for p in copies))
        users = [p for p in parts if p not in copies and any(map(p.touches, written))]
        if not users or min(p.stage for p in users) <= copies[0].stage:
            return None
        soonest = min(p.stage for p in users)
        return _Ahead(copies, [p for p in users if p.stage == soonest],
                      soonest - copies[0].stage, soonest - min(p.stage for p in parts))

    @staticmethod
    def versions(own: Sequence[Buffer], parts: Sequence[_Part]
                 ) -> tuple[dict[Buffer, Buffer], dict[Buffer, int]]:
        """Buffers with a further dimension, and how many versions each has."""
        new: dict[Buffer, Buffer] = {}
        counts: dict[Buffer, int] = {}
        for buffer in own:
            stages = [p.stage for p in parts if p.touches(buffer.data)]
            if not stages or max(stages) == min(stages):
                continue
            counts[buffer] = count = max(stages) - min(stages) + 1
            kind = buffer.shape[0].dtype if buffer.shape else "int32"
            strides = buffer.strides
            if strides:
                strides = (strides[0] * buffer.shape[0], *strides)
            new[buffer] = buffer.replace(shape=(op.const(count, kind), *buffer.shape),
                                         strides=strides)
        return new, counts


def _rewrite(marks: bool, asynchronous: bool) -> Any:
    def rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        """Loops with stages as pipelines."""
        if not any(_asks(s, marks) for s in all_statements(func.body)):
            return func
        name = str(func.attrs.get("global_symbol", "main"))
        return func.with_body(_Pipelines(name, marks, asynchronous).visit(func.body))

    return rewrite


def _asks(s: Stmt, marks: bool) -> bool:
    return type(s) is For and (STAGE in s.annotations or ORDER in s.annotations) or (
        marks and type(s) is Block and DOUBLE in s.annotations)


def has_async_copies(target: TargetLike) -> bool:
    """Whether a target copies from global to shared memory while threads go on."""
    kind = getattr(getattr(target, "kind", None), "name", "")
    found = re.fullmatch(r"sm_(\d+)[a-z]*", str(getattr(target, "arch", "")))
    return kind == "cuda" and found is not None and int(found[1]) >= 80


def InjectSoftwarePipeline(double_buffers: bool = True, asynchronous: bool = False) -> Pass:
    """Let the parts of a loop's body work on different iterations at one time.

    Stages that are marked so copy asynchronously, if the target can (`asynchronous`).

    Blocks that are marked as double buffers are fetched an iteration ahead, if `double_buffers`.
    Raises LowerError where the stages that a loop asks for would change what is computed.
    """
    return function_pass("InjectSoftwarePipeline", _rewrite(double_buffers, asynchronous))


__all__ = ["WAIT", "InjectSoftwarePipeline", "has_async_copies"]
