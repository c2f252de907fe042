"""loop_partition: one loop becomes several that follow each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from ...tir import op
from ...tir.expr import IntImm, IterVar, PrimExpr, Var
from ...tir.functor import Mutator, pre_order, substitute, uses_var
from ...tir.stmt import (
    Allocate, AllocateConst, Block, BlockRealize, For, ForKind, LetStmt, Stmt, seq,
)
from ..error import Refusal
from ..guards import is_loop, loop_is_not_left, loop_is_plain
from ..instruction import primitive
from ..provenance import came_from, renewed
from ..rewrite import pair_blocks, simplify_bindings, with_regions
from ..state import ScheduleState, StmtSRef, child_realizes

if TYPE_CHECKING:
    from ..instruction import LoopRV


@primitive("LoopPartition", moves=True)
def loop_partition(state: ScheduleState, loop: StmtSRef,
                   factors: Sequence[int | PrimExpr | None],
                   preserve_unit_iters: bool = True) -> list[LoopRV]:
    """Partition a loop into loops that follow each other, of the given extents.

    What is left makes one more loop; a factor of None takes it instead. Each loop stands in a block
    of its own, and the blocks in it get the number of the loop in their names.
    `preserve_unit_iters` keeps loops of extent 1 in the bindings.

    Before::

        for i, j in T.grid(8, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)

    After `sch.loop_partition(j, [4])`::

        for i in range(8):
            with T.block("B_j_common"):
                T.reads(A[i, 0:16])
                T.writes(B[i, 0:16])
                with T.block("B_j0_partition"):
                    T.reads(A[i, 0:4])
                    T.writes(B[i, 0:4])
                    for j0 in range(4):
                        with T.block("B_j0"):
                            vi = T.axis.spatial(8, i)
                            vj = T.axis.spatial(16, j0)
                            B[vi, vj] = A[vi, vj] * T.float32(2.0)
                with T.block("B_j1_partition"):
                    T.reads(A[i, 4:16])
                    T.writes(B[i, 4:16])
                    for j1 in range(4, 16):
                        with T.block("B_j1"):
                            vi = T.axis.spatial(8, i)
                            vj = T.axis.spatial(16, j1)
                            B[vi, vj] = A[vi, vj] * T.float32(2.0)

    Errors: the loop has a constant extent, carries no annotation or thread binding, and drives no
    reduction; factors are positive and no more than the extent together.
    """
    is_loop(loop)
    loop_is_plain(loop)
    loop_is_not_left(loop, "would leave one of the new loops only")
    stmt: For = loop.stmt
    if stmt.kind is not ForKind.SERIAL:
        raise Refusal("loop_is_serial", f"loop {stmt.loop_var.name} is marked "
                      f"{stmt.kind.name.lower()}, which its parts would not be", nodes=[stmt],
                      hint="partition first, mark the loops afterwards")
    _drives_no_reduction(stmt)
    name = stmt.loop_var.name
    blocks = child_realizes(stmt)
    title = blocks[0].block.name_hint if blocks else "loop"
    start = op.as_int(stmt.min)
    parts: list[Stmt] = []
    reuse: dict[Block, Block] = {}
    for number, extent in enumerate(_extents(stmt, factors)):
        assert start is not None
        var = came_from(Var(f"{name}{number}", stmt.loop_var.dtype), stmt)
        table: dict[Var, PrimExpr] = {} if number == 0 else {
            v: renewed(v) for v in _bound_in(stmt.body)}
        body = _Renamed(f"_{name}{number}").visit(substitute(stmt.body, {**table,
                                                                         stmt.loop_var: var}))
        new: Stmt = For(var, IntImm(var.dtype, start), IntImm(var.dtype, extent), ForKind.SERIAL,
                        body)
        if not preserve_unit_iters:
            new = simplify_bindings(state, new, state.loops_above(loop), False)
        if number == 0:
            pair_blocks(stmt.body, new.body, reuse)
        parts.append(_block(f"{title}_{name}{number}_partition", new))
        start += extent
    whole = _block(f"{title}_{name}_common", seq(*parts))
    state.replace(loop, whole, reuse)
    return [state.refs[p.block.body] for p in parts if isinstance(p, BlockRealize)]


def _block(name: str, body: Stmt) -> BlockRealize:
    """A block without iterators around a statement."""
    return BlockRealize((), True, with_regions(Block((), (), (), name, body)))


def _bound_in(body: Stmt) -> list[Var]:
    """The variables that a statement binds, also those of memory."""
    out: list[Var] = []
    for node in pre_order(body):
        if isinstance(node, For):
            out.append(node.loop_var)
        elif isinstance(node, LetStmt):
            out.append(node.var)
        elif isinstance(node, (Allocate, AllocateConst)):
            out.append(node.buffer_var)
        elif isinstance(node, Block):
            out += [iv.var for iv in node.iter_vars]
            out += [b.data for b in node.alloc_buffers]
            out += [m.buffer.data for m in node.match_buffers]
    return out


class _Renamed(Mutator):
    """Gives all blocks another name."""

    def __init__(self, suffix: str) -> None:
        super().__init__()
        self.suffix = suffix

    def visit_Block(self, node: Block) -> Stmt:
        new = super().visit_Block(node)
        assert isinstance(new, Block)
        return new.replace(name_hint=new.name_hint + self.suffix) if new.name_hint else new


def _drives_no_reduction(stmt: For) -> None:
    for node in child_realizes(stmt):
        for iv, value in zip(node.block.iter_vars, node.iter_values):
            if iv.iter_type != IterVar.DataPar and uses_var(value, stmt.loop_var):
                raise Refusal(
                    "loop_is_spatial", f"loop {stmt.loop_var.name} drives iterator {iv.var.name} "
                    f"of block {node.block.name_hint}, which is not spatial: the second part would "
                    "go on with the result of the first", nodes=[stmt, node],
                    hint="partition a loop of spatial iterators, or take the reduction apart first "
                    "with sch.decompose_reduction")


def _extents(stmt: For, factors: Sequence[int | PrimExpr | None]) -> list[int]:
    """The extents of the parts."""
    total, start = op.as_int(stmt.extent), op.as_int(stmt.min)
    if total is None or start is None:
        raise Refusal("loop_is_constant", f"loop {stmt.loop_var.name} runs over {stmt.extent!r} "
                      f"from {stmt.min!r}: where its parts end is not known", nodes=[stmt])
    if not factors:
        raise Refusal("partition_needs_factors", "factors= is empty: give the extents of the first "
                      "loops, for example [4]", nodes=[stmt])
    if sum(f is None for f in factors) > 1:
        raise Refusal("one_factor_is_inferred", "at most one factor can be None: the rest must say "
                      "how large they are", nodes=[stmt])
    known: list[int | None] = []
    for factor in factors:
        number = None if factor is None else op.as_int(op.convert(factor))
        if factor is not None and (number is None or number <= 0):
            raise Refusal("factors_are_positive", f"factor {factor!r} is no positive number",
                          nodes=[stmt])
        known.append(number)
    left = total - sum(n or 0 for n in known)
    if left < 0 or left == 0 and None in known:
        raise Refusal("factors_fit_extent", f"the factors add up to {total - left}, and loop "
                      f"{stmt.loop_var.name} has {total} iterations", nodes=[stmt])
    out = [left if n is None else n for n in known]
    return out if None in known or left == 0 else [*out, left]
