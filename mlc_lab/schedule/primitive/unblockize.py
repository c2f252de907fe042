"""unblockize: what a block holds takes its place, under the loops around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...arith import Analyzer, eval_set
from ...tir import op
from ...tir.expr import IterVar, PrimExpr, Range, Var
from ...tir.functor import Mutator, substitute, uses_var
from ...tir.stmt import Block, BlockRealize, For, ForKind, SeqStmt, Stmt, seq
from ..error import Refusal
from ..footprint import reads_memory
from ..guards import SPATIAL, complete_block, is_block, loop_is_plain
from ..independence import has_one_to_one_binding, labels_are_true
from ..instruction import primitive
from ..provenance import renewed
from ..rewrite import copied_loop, pair_blocks, with_regions
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@primitive("Unblockize")
def unblockize(state: ScheduleState, block: StmtSRef) -> None:
    """Put what a block inside another block holds in its place, under the loops around it.

    Statements that stand in it one after another get loops of their own: the loops that there were
    stay around the last one. `sch.blockize` with this after it makes a block larger, so that its
    loops can be interchanged with those it held, also where these go as far as data say.

    Before::

        for i_0 in range(8):
            with T.block("B_o"):
                vi_o = T.axis.spatial(8, i_0)
                for i_1 in range(16):
                    with T.block("B"):
                        vi_i = T.axis.spatial(16, i_1)
                        with T.block("B_init"):
                            vi = T.axis.spatial(128, vi_o * 16 + vi_i)
                            B[vi] = T.float32(0.0)
                        for k in range(64):
                            with T.block("B_update"):
                                vi = T.axis.spatial(128, vi_o * 16 + vi_i)
                                vk = T.axis.reduce(64, k)
                                B[vi] = B[vi] + A[vi, vk]

    After `sch.unblockize(sch.get_block("B"))`::

        for i_0 in range(8):
            with T.block("B_o"):
                vi_o = T.axis.spatial(8, i_0)
                for i_1 in range(16):
                    with T.block("B_init"):
                        vi = T.axis.spatial(128, vi_o * 16 + i_1)
                        B[vi] = T.float32(0.0)
                for i_1, k in T.grid(16, 64):
                    with T.block("B_update"):
                        vi = T.axis.spatial(128, vi_o * 16 + i_1)
                        vk = T.axis.reduce(64, k)
                        B[vi] = B[vi] + A[vi, vk]

    Errors: the block stands in another one than the function's outermost; it is complete, its
    iterations touch nothing of each other's and are run once each, without a condition; it has
    neither memory of its own nor an init; what stands in it are blocks and loops around blocks,
    which name its iterators in bindings, domains and bounds only.
    """
    is_block(block)
    stmt: Block = block.stmt
    if block.parent is None:
        raise _only_inside(stmt)
    scope = state.scope_root(block)
    if scope.parent is None:
        raise _only_inside(stmt)
    realize = state.realize_of(block)
    loops = state.loops_above(block)
    _is_open(state, block, scope, realize, loops)
    table: dict[Var, PrimExpr] = {
        iv.var: value for iv, value in zip(stmt.iter_vars, realize.iter_values)}
    moved = {s.stmt.loop_var: Range.from_min_extent(s.stmt.min, s.stmt.extent) for s in loops}
    parts = list(stmt.body.seq) if type(stmt.body) is SeqStmt else [stmt.body]
    own = {iv.var for iv in stmt.iter_vars}
    for part in parts:
        _names_in_place(part, own, stmt)
    analyzer = Analyzer()
    for var, dom in moved.items():
        analyzer.bind(var, dom)
    made: list[Stmt] = []
    reuse: dict[Block, Block] = {}
    for number, part in enumerate(parts):
        new = _Opened(table, moved, analyzer, stmt).visit(part)
        nest = [s.stmt for s in loops]
        if number + 1 < len(parts):
            new, nest = _copied(new, nest)
        pair_blocks(part, new, reuse)
        for loop in reversed(nest):
            new = loop.replace(body=new)
        made.append(new)
    state.accepted()
    if loops:
        state.replace(loops[0], seq(*made), reuse)
    else:
        old = scope.stmt
        new_scope = old.replace(body=_swap(old.body, realize, seq(*made)))
        state.replace(scope, new_scope, {**reuse, old: new_scope})


def _only_inside(stmt: Block) -> Refusal:
    return Refusal("block_is_inside_another", f"block {stmt.name_hint} stands in no block but the "
                   "outermost one: what its loops read would be in no block's T.reads",
                   nodes=[stmt], hint="sch.blockize a loop around it first")


def _is_open(state: ScheduleState, block: StmtSRef, scope: StmtSRef, realize: BlockRealize,
             loops: Sequence[StmtSRef]) -> None:
    """The block can be taken away, and its iterations do not meet."""
    stmt: Block = block.stmt
    name = stmt.name_hint
    if stmt.init is not None or stmt.alloc_buffers or stmt.match_buffers:
        what = "an init" if stmt.init is not None else "memory of its own"
        raise Refusal("block_holds_statements_only", f"block {name} has {what}, which has no place "
                      "without it", nodes=[stmt])
    if not op.is_const_int(realize.predicate, 1):
        raise Refusal("block_runs_always", f"block {name} is run under a condition, which its "
                      "parts would lose", nodes=[stmt],
                      hint="split loops by factors that divide their extents")
    complete_block(state, block, scope)
    once = all(op.is_const_int(s.stmt.extent, 1) for s in loops)
    if any(iv.iter_type != SPATIAL for iv in stmt.iter_vars) or not labels_are_true(
            state, block) or not (once or has_one_to_one_binding(state, block)):
        raise Refusal("iterations_are_apart", f"iterations of block {name} may touch what others "
                      "of them do: only where they do not, all may do one part before any does "
                      "the next", nodes=[stmt])
    at = loops[0].stmt if loops else realize
    while type(at) is For:
        at = at.body
    if at is not realize:
        raise Refusal("single_branch", f"something stands beside block {name} under its loops",
                      nodes=[stmt])
    for loop in loops:
        loop_is_plain(loop)
        if loop.stmt.kind is not ForKind.SERIAL:
            raise Refusal("loop_has_no_annotation", f"loop {loop.stmt.loop_var.name} is no serial "
                          "loop: of the loops that are made of it each is to be told how it runs",
                          nodes=[loop.stmt], hint="restructure loops first, annotate them last")


def _names_in_place(part: Stmt, own: set[Var], stmt: Block) -> None:
    """What stands in the block: blocks, and loops around them."""
    at: Any = part
    while type(at) is For:
        at = at.body
    if type(at) is SeqStmt:
        for item in at.seq:
            _names_in_place(item, own, stmt)
        return
    if type(at) is not BlockRealize:
        raise Refusal("block_holds_statements_only", f"in block {stmt.name_hint} stands a "
                      f"{type(at).__name__} that is in no block", nodes=[stmt])
    inner = at.block
    inside: list[Any] = [inner.body, inner.init, *inner.alloc_buffers, *inner.match_buffers]
    inside += [e for e in inner.annotations.values() if isinstance(e, PrimExpr)]
    if any(uses_var(e, own) for e in inside if e is not None):
        raise Refusal("iterators_are_bound", f"block {inner.name_hint} uses iterators of block "
                      f"{stmt.name_hint} around it: in a block its own iterators are used",
                      nodes=[inner])


class _Opened(Mutator):
    """What a block held, with the values of its iterators in their place. Domains that named them
    are over all iterations of the loops around."""

    def __init__(self, table: Mapping[Var, PrimExpr], moved: Mapping[Var, Range],
                 analyzer: Analyzer, stmt: Block) -> None:
        super().__init__()
        self.table, self.moved, self.analyzer, self.stmt = table, moved, analyzer, stmt

    def visit_For(self, node: For) -> Stmt:
        low, extent = (self.analyzer.simplify(substitute(e, self.table))
                       for e in (node.min, node.extent))
        return node.replace(min=low, extent=extent, body=self.visit(node.body))

    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        block = node.block
        iters = tuple(iv.replace(dom=self.domain(iv)) for iv in block.iter_vars)
        regions = {name: tuple(substitute(r, self.table) for r in getattr(block, name))
                   for name in ("reads", "writes")}
        new = with_regions(block.replace(iter_vars=iters, **regions))
        if any(uses_var(r, set(self.moved)) for r in (*new.reads, *new.writes)):
            raise Refusal("iterators_are_bound", f"what block {block.name_hint} touches is said by "
                          f"iterators of block {self.stmt.name_hint}", nodes=[block])
        values = [self.analyzer.simplify(substitute(v, self.table)) for v in node.iter_values]
        return BlockRealize(values, substitute(node.predicate, self.table), new)

    def domain(self, iv: IterVar) -> Range:
        low, extent = (substitute(e, self.table) for e in (iv.dom.min, iv.dom.extent))
        if not any(uses_var(e, set(self.moved)) for e in (low, extent)):
            return Range.from_min_extent(low, extent)
        if reads_memory(low) or reads_memory(extent):
            raise Refusal("domain_is_known", f"how far iterator {iv.var.name} goes is read from "
                          "memory at places that the loops around block "
                          f"{self.stmt.name_hint} say, so that it has no bounds over all of them",
                          nodes=[self.stmt],
                          hint="leave the loops that say it outside of the larger block")
        found = eval_set(Range.from_min_extent(low, extent), self.moved)
        if not (found.has_lower_bound() and found.has_upper_bound()):
            raise Refusal("domain_is_known", f"the domain of iterator {iv.var.name} has no bounds "
                          "over the loops around", nodes=[self.stmt])
        simplify = self.analyzer.simplify
        return Range.from_min_extent(simplify(found.min_value), simplify(
            op.add(op.sub(found.max_value, found.min_value), 1)))


def _copied(part: Stmt, loops: Sequence[For]) -> tuple[Stmt, list[For]]:
    """A part with variables of its own for the loops, and these loops."""
    table: dict[Var, Any] = {lp.loop_var: renewed(lp.loop_var) for lp in loops}
    return substitute(part, table), [copied_loop(lp, table, lp.body) for lp in loops]


def _swap(body: Stmt, old: Stmt, new: Stmt) -> Stmt:
    if body is old:
        return new
    return body.map_children(lambda s: _swap(s, old, new) if isinstance(s, Stmt) else s)

