"""Blocks that are alone in their loops, each iterator bound to a loop of its own.

What transform_block_layout and pad_einsum ask for, and how they put a new nest in the place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..arith import Analyzer, iter_map_simplify
from ..tir import op
from ..tir.expr import BufferLoad, IterVar, PrimExpr, Range, Var
from ..tir.functor import Mutator, uses_var
from ..tir.stmt import (
    TRUE, BlockRealize, BufferRegion, BufferStore, For, Stmt, seq,
)
from .error import Refusal
from .state import ScheduleState, StmtSRef, swap


def alone_in_its_loops(state: ScheduleState, block: StmtSRef) -> None:
    """All loops around the block, up to its scope, hold nothing else."""
    inner: Any = state.realize_of(block)
    for loop in reversed(state.loops_above(block)):
        if loop.stmt.body is not inner:
            raise Refusal("alone_in_its_loops", f"block {block.stmt.name_hint} shares loop "
                          f"{loop.stmt.loop_var.name} with other statements, which would be torn "
                          "from it", nodes=[loop.stmt],
                          hint="do this before compute_at and decompose_reduction")
        inner = loop.stmt


def trivially_bound(state: ScheduleState, block: StmtSRef) -> tuple[BlockRealize, list[Range]]:
    """Each iterator is bound to a loop variable of its own, each loop binds one iterator. With the
    realization, what each iterator really runs over: the loop's range, where that is shorter than
    the iterator's domain."""
    realize = state.realize_of(block)
    loops = {s.stmt.loop_var: s.stmt for s in state.loops_above(block)}
    bound: set[Var] = set()
    ranges: list[Range] = []
    for iv, value in zip(block.stmt.iter_vars, realize.iter_values):
        loop = loops.get(value) if isinstance(value, Var) else None
        if op.is_const_int(iv.dom.extent, 1) and not isinstance(value, Var):
            same = Analyzer().can_prove_equal(value, iv.dom.min)
        else:
            same = loop is not None and value not in bound
        if not same:
            raise Refusal("trivial_bindings", f"iterator {iv.var.name} of block "
                          f"{block.stmt.name_hint} is bound to {value!r}, not to a loop of its own",
                          nodes=[realize], hint="do this before splitting and fusing loops")
        if loop is not None:
            bound.add(loop.loop_var)
        ranges.append(iv.dom if loop is None else _run_over(block, iv, loop, loops))
    extra = [v.name for v, lp in loops.items()
             if v not in bound and not op.is_const_int(lp.extent, 1)]
    if extra:
        raise Refusal("trivial_bindings", f"loop {extra[0]} binds no iterator of block "
                      f"{block.stmt.name_hint}", nodes=[realize])
    if not op.is_const_int(realize.predicate, 1):
        raise Refusal("trivial_bindings", f"block {block.stmt.name_hint} has the predicate "
                      f"{realize.predicate!r}", nodes=[realize])
    return realize, ranges


def _run_over(block: StmtSRef, iv: IterVar, loop: For, loops: Collection[Var]) -> Range:
    """The values of an iterator that is bound to a loop; they start where its domain does."""
    analyzer = Analyzer()
    if uses_var(loop.extent, loops) or uses_var(loop.min, loops):
        raise Refusal("loops_make_a_box", f"how far loop {loop.loop_var.name} runs depends on "
                      "another loop: its iterations together are no box", nodes=[loop],
                      hint="this primitive wants loops of fixed extents")
    if not analyzer.can_prove_equal(loop.min, iv.dom.min) or not (
            analyzer.can_prove(op.less_equal(loop.extent, iv.dom.extent))):
        raise Refusal("iterators_run_over_their_domain", f"loop {loop.loop_var.name} runs over "
                      f"{loop.extent!r} values from {loop.min!r} on, iterator {iv.var.name} of "
                      f"block {block.stmt.name_hint} has {iv.dom.extent!r} from {iv.dom.min!r} on",
                      nodes=[loop, block.stmt])
    return Range.from_min_extent(iv.dom.min, op.cast(loop.extent, iv.dom.extent.dtype))


def replace_nest(state: ScheduleState, scope: StmtSRef, block: StmtSRef, *new: Stmt) -> Stmt:
    """The scope's body with the block's whole nest replaced, under the conditions and definitions
    it stands in."""
    loops = state.loops_above(block)
    return swap(scope.stmt.body, loops[0].stmt if loops else block.stmt, seq(*new))


class SubstituteAccesses(Mutator):
    """Variables replaced by expressions over iterators, with indices brought to normal form."""

    def __init__(self, table: dict[Var, PrimExpr], iters: Sequence[IterVar]) -> None:
        super().__init__()
        self.table, self.analyzer = table, Analyzer()
        self.domains: dict[Var, Range] = {}
        for iv in iters:
            self.domains[iv.var] = iv.dom
            self.analyzer.bind(iv.var, iv.dom)

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.table.get(node, node)

    def simplified(self, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        """Indices rewritten and brought to normal form. One that is an iterator stays it, also
        where that has one value."""
        plain = [self.visit(i) for i in indices]
        new = [self.analyzer.rewrite_simplify(i) for i in plain]
        normal = iter_map_simplify(new, self.domains, TRUE, "nocheck", self.analyzer)
        return tuple(i if isinstance(i, Var) else n for i, n in zip(plain, normal))

    def visit_For(self, node: For) -> Stmt:
        domain = Range.from_min_extent(self.visit(node.min), self.visit(node.extent))
        self.domains[node.loop_var] = domain
        self.analyzer.bind(node.loop_var, domain)
        return super().visit_For(node)

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        return BufferLoad(node.buffer, self.simplified(node.indices), node.predicate)

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        return BufferStore(node.buffer, self.visit(node.value), self.simplified(node.indices),
                           node.predicate)

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        mins = self.simplified(tuple(r.min for r in node.region))
        return BufferRegion(node.buffer, tuple(
            Range.from_min_extent(m, self.analyzer.simplify(self.visit(r.extent)))
            for m, r in zip(mins, node.region)))


__all__ = ["SubstituteAccesses", "alone_in_its_loops", "replace_nest", "trivially_bound"]
