"""loop_partition: one loop becomes several that follow one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...arith import Analyzer
from ...ir import dtype as dt
from ...tir import op
from ...tir.expr import IntImm, IterVar, PrimExpr, Range, Var
from ...tir.functor import Mutator, pre_order, substitute, uses_var
from ...tir.stmt import Block, BlockRealize, For, ForKind, Stmt, seq
from ..error import Refusal
from ..guards import REDUCE, is_loop, loop_is_not_left, loop_is_plain
from ..instruction import primitive
from ..provenance import came_from, renewed
from ..rewrite import copied_loop
from ..state import ScheduleState, StmtSRef, child_realizes
from ..truth import with_true_regions

if TYPE_CHECKING:
    from ...tir.buffer import Buffer
    from ..instruction import LoopRV

#: what may stand under the loop: all that these bind is renewed in each copy
_COPIED = {"For", "Block", "BlockRealize", "SeqStmt", "IfThenElse", "BufferStore", "Evaluate",
           "AssertStmt", "While"}


@primitive("LoopPartition")
def loop_partition(state: ScheduleState, loop: StmtSRef,
                   factors: Sequence[int | PrimExpr | None],
                   preserve_unit_iters: bool = True) -> list[LoopRV]:
    """Cut a loop into loops that follow one another, each over as many iterations as its factor.

    At most one factor may be None: it takes what the others leave. Where they leave something and
    none is None, one more loop runs over the rest. Each loop has a copy of the body: a block `B`
    under loop `i` becomes `B_i0`, `B_i1` and so on, around each is a block `B_i0_partition`, and
    around all a block `B_i_common`, with an iterator for each loop around that is used in it. With
    `preserve_unit_iters=False` a loop of one iteration binds
    a number in place of its variable.

    Before::

        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] * T.float32(2.0)

    After `sch.loop_partition(i, factors=[None, 16])`::

        with T.block("root"):
            with T.block("B_i_common"):
                with T.block("B_i0_partition"):
                    for i0 in range(112):
                        with T.block("B_i0"):
                            vi = T.axis.spatial(112, i0)
                            B[vi] = A[vi] * T.float32(2.0)
                with T.block("B_i1_partition"):
                    for i1 in range(112, 128):
                        with T.block("B_i1"):
                            vi = T.axis.spatial((112, 128), i1)
                            B[vi] = A[vi] * T.float32(2.0)

    Errors: the loop has a constant start and extent and no annotation or thread binding; factors
    are positive numbers and not more than the extent together; a reduction that the loop runs over
    is decomposed before; blocks under the loop allocate nothing.
    """
    is_loop(loop)
    loop_is_plain(loop)
    loop_is_not_left(loop, "would leave one of the new loops only")
    stmt: For = loop.stmt
    start, sizes = _sizes(stmt, factors)
    _can_be_copied(stmt)
    realizes = list(child_realizes(stmt))
    outer = _outer_iterators(state, loop, realizes)
    _no_reduction_is_cut(stmt)
    state.accepted()
    name = "_".join([*(r.block.name_hint for r in realizes[:1]), stmt.loop_var.name])
    owners = {r.buffer.data: r.buffer for n in pre_order(stmt.body) if type(n) is Block
              for r in (*n.reads, *n.writes)}
    parts: list[Stmt] = []
    made: list[For] = []
    for k, size in enumerate(sizes):
        new = _part(state, loop, k, start, size, preserve_unit_iters, outer)
        made.append(new)
        parts.append(_around(f"{name}{k}_partition", new, owners, stmt))
        start += size
    block = _around(f"{name}_common", stmt, owners, stmt).block  # parts touch what it does
    table = {var: iv.var for var, iv in outer.items()}
    block = came_from(block.replace(
        iter_vars=tuple(outer.values()), body=seq(*parts),
        reads=tuple(substitute(r, table) for r in block.reads),
        writes=tuple(substitute(w, table) for w in block.writes)), stmt)
    state.replace(loop, BlockRealize(list(outer), IntImm("bool", 1), block))
    return [state.refs[new] for new in made]


def _sizes(stmt: For, factors: Sequence[Any]) -> tuple[int, list[int]]:
    """Where the first loop starts, and the extents of all."""
    name = stmt.loop_var.name
    start, extent = op.as_int(stmt.min), op.as_int(stmt.extent)
    if start is None or extent is None:
        raise Refusal("extent_is_known", f"loop {name} runs over {stmt.extent!r} iterations from "
                      f"{stmt.min!r}: where to cut it is known for constants only", nodes=[stmt])
    if not factors:
        raise Refusal("partition_needs_factors", "factors= is empty: give the extents of the new "
                      "loops, for example [None, 16]", nodes=[stmt])
    if sum(f is None for f in factors) > 1:
        raise Refusal("one_factor_is_inferred", "at most one factor can be None: the rest must say "
                      "how large they are", nodes=[stmt])
    sizes: list[int] = []
    for factor in factors:
        value = 1 if factor is None else op.as_int(op.convert(factor))
        if value is None or factor is not None and not dt.is_integer(op.convert(factor).dtype):
            raise Refusal("factors_are_integers", f"factor {factor!r} is not a number of "
                          "iterations", nodes=[stmt])
        if value <= 0:
            raise Refusal("factors_are_positive", f"factor {factor} is not positive: a loop of "
                          "that extent would never run", nodes=[stmt])
        sizes.append(value)
    rest = extent - sum(sizes)
    if rest < 0:
        needs = " and an iteration for None" if None in factors else ""
        raise Refusal("factors_fit_extent", f"the factors{needs} add up to {sum(sizes)}, more than "
                      f"the {extent} iterations of loop {name}", nodes=[stmt],
                      hint="the factors of a partition are added, those of a split multiplied")
    if None in factors:
        sizes[list(factors).index(None)] += rest
    elif rest:
        sizes.append(rest)
    return start, sizes


def _can_be_copied(stmt: For) -> None:
    for node in pre_order(stmt.body):
        if type(node) is Block and (node.alloc_buffers or node.match_buffers):
            raise Refusal("copies_share_no_memory", f"block {node.name_hint} has buffers of its "
                          "own, of which each copy would need one", nodes=[node],
                          hint="partition the loop before sch.compute_at or sch.cache_read put "
                          "buffers under it")
        if isinstance(node, Stmt) and type(node).__name__ not in _COPIED:
            raise Refusal("copies_share_no_memory", f"under loop {stmt.loop_var.name} stands a "
                          f"{type(node).__name__}, which is not copied", nodes=[stmt])


def _no_reduction_is_cut(stmt: For) -> None:
    moved = {stmt.loop_var}  # the loop, and iterators that are bound to it
    for node in pre_order(stmt.body):
        if type(node) is not BlockRealize:
            continue
        for iv, value in zip(node.block.iter_vars, node.iter_values):
            if uses_var(value, moved):
                moved.add(iv.var)
                if iv.iter_type == REDUCE and node.block.init is not None:
                    raise Refusal("reduction_is_not_cut", f"block {node.block.name_hint} reduces "
                                  "over the loop: each part would begin with the start value anew",
                                  nodes=[node.block], hint="sch.decompose_reduction first")


def _around(name: str, body: Stmt, owners: dict[Var, Buffer], stmt: For) -> BlockRealize:
    """A block without iterators around `body`, which says what is touched in it."""
    block = came_from(with_true_regions(Block([], [], [], name, body), owners), stmt)
    return BlockRealize([], IntImm("bool", 1), block)


def _outer_iterators(state: ScheduleState, loop: StmtSRef, realizes: Sequence[BlockRealize]
                     ) -> dict[Var, IterVar]:
    """Iterators for the loops around that are used under a loop: what is in a block names loops
    around it in its bindings only."""
    around = [s.stmt for s in _in_reach(state, loop)]
    variables = {lp.loop_var for lp in around}
    found: dict[Var, IterVar] = {}
    for lp in around:
        var = lp.loop_var
        if not uses_var(loop.stmt, var):
            continue
        if uses_var(lp.min, variables) or uses_var(lp.extent, variables):
            raise Refusal("loops_around_are_even", f"loop {var.name} around runs as often as "
                          "another loop says, and a block around the parts cannot say so",
                          nodes=[lp], hint="partition a loop that stands outside of it")
        kinds = {iv.iter_type for r in realizes for iv, value in zip(
            r.block.iter_vars, r.iter_values) if uses_var(value, var)}
        kind = kinds.pop() if len(kinds) == 1 else IterVar.Opaque
        found[var] = IterVar(Range.from_min_extent(lp.min, lp.extent),
                             came_from(Var(f"v{var.name}", var.dtype), lp), kind)
    return found


def _in_reach(state: ScheduleState, loop: StmtSRef) -> list[StmtSRef]:
    """The loops around that may be named here: up to a block with iterators, outermost first."""
    found: list[StmtSRef] = []
    for at in state.ancestors(loop):
        if type(at.stmt) is For:
            found.insert(0, at)
        elif at.stmt.iter_vars:
            break
    return found


def _part(state: ScheduleState, loop: StmtSRef, k: int, start: int, size: int,
          preserve_unit_iters: bool, outer: dict[Var, IterVar]) -> For:
    """The loop number `k`, with a copy of the body."""
    stmt: For = loop.stmt
    dtype = stmt.loop_var.dtype
    var = came_from(Var(f"{stmt.loop_var.name}{k}", dtype), stmt)
    table: dict[Var, Var] = {}
    for node in pre_order(stmt.body):
        if type(node) is For:
            table[node.loop_var] = renewed(node.loop_var)
        elif type(node) is Block:
            table.update((iv.var, renewed(iv.var)) for iv in node.iter_vars)
    here: PrimExpr = var if size > 1 or preserve_unit_iters else IntImm(dtype, start)
    analyzer = Analyzer()
    if loop.parent is not None:
        state.loop_domains_into(loop.parent, analyzer)
    for old, iv in outer.items():
        analyzer.bind(iv.var, iv.dom)
        table[old] = iv.var
    analyzer.bind(var, Range.from_min_extent(IntImm(dtype, start), IntImm(dtype, size)))
    copy = _Copy(f"_{stmt.loop_var.name}{k}", table, stmt.loop_var, here, analyzer)
    return For(var, IntImm(dtype, start), IntImm(dtype, size), ForKind.SERIAL,
               copy.visit(stmt.body))


class _Copy(Mutator):
    """A body once more: its variables renewed, its blocks with a name and with the domains of
    their own."""

    def __init__(self, suffix: str, table: dict[Var, Var], old: Var, here: PrimExpr,
                 analyzer: Analyzer) -> None:
        super().__init__()
        self.suffix, self.table, self.analyzer = suffix, table, analyzer
        self.all: dict[Var, PrimExpr] = {**table, old: here}
        self.moved = {old}  # the loop, and iterators that are bound to it

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.all.get(node, node)

    def visit_For(self, node: For) -> Stmt:
        new = copied_loop(node, self.all, node.body)
        self.analyzer.bind(new.loop_var, Range.from_min_extent(new.min, new.extent))
        return new.replace(body=self.visit(node.body))

    def visit_BlockRealize(self, node: BlockRealize) -> Stmt:
        block = node.block
        iters: list[IterVar] = []
        values: list[PrimExpr] = []
        for iv, value in zip(block.iter_vars, node.iter_values):
            new = substitute(value, self.all)
            dom = substitute(iv.dom, self.all)
            if any(uses_var(value, v) for v in self.moved):
                self.moved.add(iv.var)
                dom = self._narrowed(dom, new)
            iters.append(iv.replace(var=self.table[iv.var], dom=dom))
            self.analyzer.bind(self.table[iv.var], dom)
            values.append(new)
        made = block.replace(
            iter_vars=tuple(iters), name_hint=block.name_hint + self.suffix,
            reads=tuple(substitute(r, self.all) for r in block.reads),
            writes=tuple(substitute(w, self.all) for w in block.writes),
            init=None if block.init is None else self.visit(block.init),
            body=self.visit(block.body))
        return BlockRealize(values, substitute(node.predicate, self.all), came_from(made, block))

    def _narrowed(self, dom: Range, value: PrimExpr) -> Range:
        """The values that an iterator takes in this part, where they are known."""
        low, high = self.analyzer.const_int_bound_tuple(value)
        first, extent = op.as_int(dom.min), op.as_int(dom.extent)
        if first is None or extent is None:
            return dom
        low, high = max(low, first), min(high, first + extent - 1)
        if low > high:  # the predicate lets nothing of this part through
            return dom
        dtype = dom.min.dtype
        return Range.from_min_extent(IntImm(dtype, low), IntImm(dtype, high - low + 1))
