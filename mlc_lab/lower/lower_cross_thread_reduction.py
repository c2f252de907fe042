"""LowerCrossThreadReduction: partial results of threads are combined across the threads.

Before::

    for k in T.thread_binding(32, thread="threadIdx.x"):
        for r in range(4):
            with T.block("C"):
                vk = T.axis.reduce(128, r * 32 + k)
                with T.init():
                    C[0] = 0
                C[0] = C[0] + A[vk]

After::

    own, all = T.alloc_buffer((1,), scope="local"), T.alloc_buffer((1,), scope="local")
    for k in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("C_in_thread_init"):
            own[0] = 0
        for r in range(4):
            with T.block("C_in_thread"):
                vk = T.axis.reduce(128, r * 32 + k)
                own[0] = own[0] + A[vk]
        with T.block("C_cross_thread"):
            tvm_thread_allreduce(1, own[0], True, all[0], k)
        with T.block("C_write_back"):
            T.where(k == 0)
            C[0] = all[0]

Where threads have one iteration each, without a condition, `own` is left out: they combine what
comes in. The block around has the memory; under a condition, a block of its own.

Where the result is in local memory, all threads store it; else one of them does. The loops that
drive the reduction are the innermost ones around the block; a loop of threads may stand among them.
Where all of the loops around are of threads, other blocks may stand before the one that reduces:
each thread does them for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..arith.access import conjuncts
from ..arith.reducer import Reduction, UnknownReduction, match_reduction
from ..ir.transform import Pass
from ..tir import op
from ..tir.buffer import Buffer, decl_buffer
from ..tir.expr import (
    BufferLoad, Call, CommReducer, IterVar, PrimExpr, Range, Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, free_vars, pre_order, substitute, uses_var
from ..tir.stmt import (
    TRUE, AttrStmt, Block, BlockRealize, BufferRegion, BufferStore, Evaluate, For, ForKind,
    IfThenElse, LetStmt, SeqStmt, Stmt, seq,
)
from .common import LowerError, function_pass

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext


class _CrossThread(Mutator):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.threads: dict[Var, str] = {}
        self.around: set[Var] = set()
        #: the iterators of the blocks around, and the variables that statements around define
        self.iterators: set[Var] = set()
        #: memory of reductions, for the innermost block around
        self.memory: list[Buffer] = []
        self.conditional = False  # whether a condition stands around, in the innermost block

    def visit(self, node: Node) -> Any:
        """Expressions hold no blocks: they are left alone."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_For(self, node: For) -> Stmt:
        chain, inner = [node], node.body
        while type(inner) is For:
            chain.append(inner)
            inner = inner.body
        before: Sequence[Stmt] = ()
        if type(inner) is SeqStmt and all(map(_is_thread, chain)):
            *before, inner = inner.seq
            while type(inner) is For:
                chain.append(inner)
                inner = inner.body
        if type(inner) is BlockRealize:
            driven = _driven(inner)
            if node.loop_var in driven and not driven & self.around and any(
                    _is_thread(lp) and lp.loop_var in driven for lp in chain) and not (
                    _uses(before, {r.buffer for r in inner.block.writes})):
                known = {lp.loop_var for lp in chain}
                self.around |= known
                before = [self.visit(stmt) for stmt in before]
                self.around -= known
                moving = {*self.around, *known, *self.iterators}
                made = _Reduction(self.name, chain, inner, driven, moving, before)
                nest = made.nest()
                if self.conditional:
                    return BlockRealize((), TRUE, Block((), (), (), "", nest,
                                                        alloc_buffers=made.memory))
                self.memory += made.memory
                return nest
        if node.kind is ForKind.THREAD_BINDING:
            self.threads[node.loop_var] = node.thread_tag
        self.around.add(node.loop_var)
        new = super().visit_For(node)
        self.around.remove(node.loop_var)
        return new

    def visit_IfThenElse(self, node: IfThenElse) -> Stmt:
        before, self.conditional = self.conditional, True
        new = self.default(node)
        self.conditional = before
        return new

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        self.iterators.add(node.var)
        new = self.default(node)
        self.iterators.discard(node.var)
        return new

    def visit_Block(self, node: Block) -> Stmt:
        outside, self.memory = self.memory, []
        before, self.conditional = self.conditional, False
        own = {iv.var for iv in node.iter_vars}
        self.iterators |= own
        new = self.default(node)
        self.iterators -= own
        self.conditional = before
        if self.memory:
            new = new.replace(alloc_buffers=(*new.alloc_buffers, *self.memory))
        self.memory = outside
        return new

    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        for var in _driven(node) & self.threads.keys() if self.threads else ():
            tag = self.threads[var]
            if tag.startswith(("threadIdx", "blockIdx")):
                raise LowerError(
                    f"{self.name}: block {node.block.name_hint!r} reduces over loop {var.name!r}, "
                    f"which is bound to {tag}, and " + (
                        "a loop of its reduction holds more than this block: threads would "
                        "combine what they have before all of it is there. Move other blocks out, "
                        "or give each thread a partial result with sch.rfactor(loop, "
                        "factor_axis=0)" if tag.startswith("threadIdx") else
                        "blocks of threads cannot wait for each other. Give each a partial result "
                        "with sch.rfactor(loop, factor_axis=0), and reduce those in another "
                        "kernel"))
        return self.default(node)


def _uses(stmts: Sequence[Stmt], buffers: set[Buffer]) -> bool:
    """Whether statements read or write any of some buffers."""
    return any(type(node) in (BufferLoad, BufferStore) and node.buffer in buffers
               for stmt in stmts for node in pre_order(stmt))


def _driven(realize: BlockRealize) -> set[Var]:
    """The loop variables that drive the reduction of a block."""
    if realize.block.init is None and _stores_apart(realize.block):
        return set()
    return {v for iv, value in zip(realize.block.iter_vars, realize.iter_values)
            if iv.iter_type == IterVar.CommReduce for v in free_vars(value)}


def _stores_apart(block: Block) -> bool:
    """Whether each iteration has an element of its own, and nothing is reduced then."""
    reduced = [iv.var for iv in block.iter_vars if iv.iter_type == IterVar.CommReduce]
    stores = [n for n in pre_order(block.body) if type(n) is BufferStore]
    return all(any(i is v for i in s.indices) for s in stores for v in reduced)


def _is_thread(loop: For) -> bool:
    return loop.kind is ForKind.THREAD_BINDING and loop.thread_tag.startswith("threadIdx")


class _Reduction:
    """A block that is reduced across threads, in the loops from the first that drives the
    reduction."""

    def __init__(self, name: str, chain: Sequence[For], realize: BlockRealize,
                 driven: set[Var], moving: set[Var], before: Sequence[Stmt] = ()) -> None:
        #: the variables of loops and blocks around; others are sizes, which stand still
        self.moving = moving
        #: what each thread does before it reduces, such as to compute what it reads then
        self.before = before
        self.realize, self.block = realize, realize.block
        self.where = f"{name}: block {self.block.name_hint!r}, whose reduction runs on threads,"
        self.threads = [lp for lp in chain if lp.kind is ForKind.THREAD_BINDING]
        self.serial = [lp for lp in chain if lp.kind is not ForKind.THREAD_BINDING]
        self.driven = driven
        #: variables of the loops of threads that start at 0, as the axes of threads do
        self.axis = {lp.loop_var: Var(lp.loop_var.name, lp.loop_var.dtype)
                     for lp in self.threads if op.as_int(lp.min) != 0}
        self._check()

    def _check(self) -> None:
        for loop in self.serial:
            if loop.loop_var not in self.driven and op.as_int(loop.extent) != 1:
                raise LowerError(f"{self.where} has loop {loop.loop_var.name!r}, which drives no "
                                 "reduction, inside of loops that do: move it outside with "
                                 "sch.reorder")
        around = {lp.loop_var for lp in self.serial}
        for loop in self.threads:
            if uses_var(loop.extent, around) or uses_var(loop.min, around):
                raise LowerError(f"{self.where} has another number of threads in each iteration "
                                 "of a loop around: bind a loop of fixed extent")
        if self.block.match_buffers or self.block.alloc_buffers:
            raise LowerError(f"{self.where} has buffers or views of its own: bind before tensorize")

    def nest(self) -> Stmt:
        """The loops of threads around all of it."""
        try:
            found = match_reduction(self.block)
        except UnknownReduction as why:
            raise LowerError(f"{self.where} is no reduction that threads can share: {why}. Bind "
                             "before sch.decompose_reduction, or give each thread a partial result "
                             "with sch.rfactor(loop, factor_axis=0)") from None
        joint = [self._memory(s.buffer, "cross_thread") for s in found.stores]
        self.memory = list(joint)
        parts = [*self.before]
        if self.serial or op.as_int(self.realize.predicate) != 1:
            own = [self._memory(s.buffer, "in_thread") for s in found.stores]
            self.memory += own
            starts = seq(*(BufferStore(b, v, (0,)) for b, v in zip(own, found.identities)))
            loads = [BufferLoad(b, (0,)) for b in own]
            parts = [self._block("in_thread_init", starts, (), own), *parts,
                     self._partial(found, own),
                     self._block("cross_thread", self._all_reduce(found, loads, joint), own, joint)]
        else:  # what comes in is all that a thread has
            parts.append(self.realize.replace(block=self.block.replace(
                name_hint=f"{self.block.name_hint}_cross_thread", init=None,
                body=self._all_reduce(found, found.incoming, joint),
                writes=tuple(_whole(b) for b in joint))))
        body = seq(*parts, self._result(found, joint))
        table: dict[Var, PrimExpr] = {}
        for loop in self.threads:
            if loop.loop_var in self.axis:
                table[loop.loop_var] = op.add(self.axis[loop.loop_var], loop.min)
        body = substitute(body, table) if table else body
        for loop in reversed(self.threads):
            var = self.axis.get(loop.loop_var)
            body = loop.replace(body=body) if var is None else loop.replace(
                loop_var=var, min=op.const(0, var.dtype), body=body)
        return body

    def _memory(self, buffer: Buffer, word: str) -> Buffer:
        return decl_buffer((1,), buffer.dtype, f"{word}_{buffer.name}", strides=(1,),
                           scope="local")

    def _block(self, word: str, body: Stmt, reads: Sequence[Buffer], writes: Sequence[Buffer]
               ) -> Stmt:
        """A block of one thread without iterators."""
        return BlockRealize((), True, Block(
            (), [_whole(b) for b in reads], [_whole(b) for b in writes],
            f"{self.block.name_hint}_{word}", body))

    def _partial(self, found: Reduction, own: Sequence[Buffer]) -> Stmt:
        """The partial reduction of one thread."""
        loads = [BufferLoad(b, (0,)) for b in own]
        values = found.combine(loads, found.incoming)
        if len(own) == 1:
            body: Stmt = BufferStore(own[0], values[0], (0,))
        else:  # all are computed before one is stored
            names = [Var(f"v_{b.name}", b.dtype) for b in own]
            body = seq(*(BufferStore(b, n, (0,)) for b, n in zip(own, names)))
            for name, value in reversed([*zip(names, values)]):
                body = LetStmt(name, value, body)
        nest: Stmt = self.realize.replace(block=self.block.replace(
            name_hint=f"{self.block.name_hint}_in_thread", init=None, body=body,
            writes=tuple(_whole(b) for b in own)))
        for loop in reversed(self.serial):
            nest = loop.replace(body=nest)
        return nest

    def _all_reduce(self, found: Reduction, own: Sequence[PrimExpr], joint: Sequence[Buffer]
                    ) -> Stmt:
        """The partial results of all threads that agree on the other axes, combined."""
        lhs, rhs = ([Var(f"{x}{n}", b.dtype) for n, b in enumerate(joint)] for x in "xy")
        reducer = CommReducer(tuple(lhs), tuple(rhs), tuple(found.combine(lhs, rhs)),
                              tuple(found.identities))
        threads = [self.axis.get(lp.loop_var, lp.loop_var) for lp in self._sharing()]
        call = Call("handle", "tir.tvm_thread_allreduce", (
            op.const(len(own), "uint32"), *own, TRUE,
            *(BufferLoad(b, (0,)) for b in joint), *threads))
        nothing = Call("handle", "tir.reinterpret", (op.const(0, "uint64"),))
        return AttrStmt(reducer, "reduce_scope", nothing, Evaluate(call))

    def _sharing(self) -> list[For]:
        """The loops of threads that share the reduction."""
        return [lp for lp in self.threads if lp.loop_var in self.driven]

    def _result(self, found: Reduction, joint: Sequence[Buffer]) -> Stmt:
        """The result is stored, by one thread where others would store the same."""
        bound = {iv.var: value for iv, value in zip(self.block.iter_vars, self.realize.iter_values)
                 if iv.iter_type != IterVar.CommReduce}
        outside = {lp.loop_var for lp in (*self.serial, *self._sharing())}
        parts = conjuncts(self.realize.predicate)
        spatial = {v for value in bound.values() for v in free_vars(value) if v in self.moving}
        if spatial & outside or any(uses_var(p, outside) and uses_var(p, spatial) for p in parts):
            raise LowerError(f"{self.where} has a loop or a condition that speaks of spatial "
                             "iterators and of the reduction at once: do not fuse such loops")
        spatial_iters = [iv for iv in self.block.iter_vars if iv.var in bound]
        own = {iv.var: Var(iv.var.name, iv.var.dtype) for iv in spatial_iters}
        stores = [BufferStore(s.buffer, BufferLoad(b, (0,)), [substitute(i, own)
                                                              for i in s.indices])
                  for s, b in zip(found.stores, joint)]
        kept = [p for p in parts if not uses_var(p, outside) and op.as_int(p) != 1]
        if any(not s.buffer.scope().startswith("local") for s in stores):
            kept += [op.equal(lp.loop_var, lp.min) for lp in self._sharing()]
        condition = op.all(*kept) if kept else TRUE
        return BlockRealize([bound[iv.var] for iv in spatial_iters], condition, Block(
            [iv.replace(var=own[iv.var]) for iv in spatial_iters], [_whole(b) for b in joint],
            [BufferRegion(s.buffer, tuple(
                Range.from_min_extent(i, op.const(1, i.dtype)) for i in s.indices))
             for s in stores],
            f"{self.block.name_hint}_write_back", seq(*stores)))


def _whole(buffer: Buffer) -> BufferRegion:
    return BufferRegion(buffer, tuple(Range.from_min_extent(0, d) for d in buffer.shape))


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Reductions that threads share."""
    name = str(func.attrs.get("global_symbol", "main"))
    return func.with_body(_CrossThread(name).visit(func.body))


def LowerCrossThreadReduction() -> Pass:
    """Combine the partial results of threads across the threads."""
    return function_pass("LowerCrossThreadReduction", _rewrite)
