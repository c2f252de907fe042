"""blockize: a loop nest, or several blocks, become one block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...ir.containers import is_sequence
from ...ir.structural import structural_equal
from ...tir.functor import substitute, uses_var
from ...tir.stmt import Block, BlockRealize, BufferRegion, For, SeqStmt, Stmt, seq
from ..cache_stage import after_definitions, within_definitions
from ..covering import lowest_common_ancestor
from ..error import Refusal
from ..guards import REDUCE, is_block, is_loop
from ..instruction import BlockRV, primitive
from ..provenance import came_from
from ..rewrite import pair_blocks
from ..state import ScheduleState, StmtSRef, child_realizes
from ..subspace import Halves, blockized, divide_block, relaxed_regions
from ..truth import with_true_regions

if TYPE_CHECKING:
    from ...tir.buffer import Buffer
    from ...tir.expr import Var
    from ..schedule import Schedule


def _names(sch: Schedule, args: dict[str, Any]) -> None:
    target = args["target"]
    if is_sequence(target):
        args["target"] = [sch.get_block(b) if isinstance(b, str) else b for b in target]
    elif isinstance(target, (str, BlockRV)):
        args["target"] = [sch.get_block(target) if isinstance(target, str) else target]


@primitive("Blockize", normalize=_names)
def blockize(state: ScheduleState, target: Any, preserve_unit_iters: bool = True) -> BlockRV:
    """Turn the loop nest at a loop into one block that isolates what is inside it.

    The new block is called `<block>_o`; each iterator v of the block inside is cut in two, v_o of
    the new block and v_i of the inner one. Its reads and writes are what one whole nest touches.
    `target` may also be a list of blocks that follow one another: then one block goes around all.

    Before::

        for i_0, j_0, i_1, j_1 in T.grid(8, 8, 16, 16):
            with T.block("B"):
                vi = T.axis.spatial(128, i_0 * 16 + i_1)
                vj = T.axis.spatial(128, j_0 * 16 + j_1)
                B[vi, vj] = A[vi, vj] * T.float32(2.0)

    After `sch.blockize(i_1)`::

        for i_0, j_0 in T.grid(8, 8):
            with T.block("B_o"):
                vi_o, vj_o = T.axis.remap("SS", [i_0, j_0])
                for i_1, j_1 in T.grid(16, 16):
                    with T.block("B"):
                        vi_i, vj_i = T.axis.remap("SS", [i_1, j_1])
                        B[vi_o * 16 + vi_i, vj_o * 16 + vj_i] = A[vi_o * 16 + vi_i, vj_o * 16 + vj_i] * T.float32(2.0)

    Errors: the loop holds one block and nothing beside it; each iterator is outer * extent + inner
    of the loops outside and inside, so splits without remainder. A reduction that is cut meets its
    start value once for each element, before all others.
    """  # noqa: E501 - the script is as it prints
    if is_sequence(target):
        return _blockize_blocks(state, target, preserve_unit_iters)
    is_loop(target)
    realize, reuse = blockized(state, target, preserve_unit_iters)
    state.replace(target, realize, reuse)
    return state.refs[realize.block]


# ------------------------------------------------------------------------------- several blocks


def _blockize_blocks(state: ScheduleState, blocks: Sequence[StmtSRef], preserve_unit_iters: bool
                     ) -> BlockRV:
    if not blocks:
        raise Refusal("blocks_are_given", "target=[]: name at least one block")
    for block in blocks:
        is_block(block)
    scope = state.scope_root(blocks[0])
    for block in blocks[1:]:
        if state.scope_root(block) is not scope:
            raise Refusal("same_scope", f"blocks {blocks[0].stmt.name_hint} and "
                          f"{block.stmt.name_hint} are in different scopes",
                          nodes=[blocks[0].stmt, block.stmt])
    if len(blocks) == 1:
        around = state.loops_above(blocks[0])
        owner, inner = (scope, around)
        if around and len(state.child_blocks(around[0])) > 1:
            raise Refusal("blocks_follow_one_another", f"loop {around[0].stmt.loop_var.name} holds "
                          "other blocks too", nodes=[around[0].stmt],
                          hint="give a loop to blockize instead")
    else:
        owner = lowest_common_ancestor(state, scope, list(blocks))
    body = after_definitions(owner.stmt.body)
    items = list(body.seq) if type(body) is SeqStmt else [body]
    wanted = {b.stmt for b in blocks}
    taken = [i for i, item in enumerate(items) if _blocks(item) & wanted]
    first, last = taken[0], taken[-1]
    strangers = [b.name_hint for item in items[first:last + 1] for b in _blocks(item) - wanted]
    if strangers:
        raise Refusal("blocks_follow_one_another", f"block {', '.join(strangers)} stands among the "
                      "blocks to be put in one", nodes=[*wanted],
                      hint="name it too, or move it away first")
    halves: list[Halves] = []
    for block in blocks:
        around = state.loops_above(block)
        inner = around if owner is scope else around[around.index(owner) + 1:]
        halves.append(divide_block(state, block, inner, preserve_unit_iters))
    table = _same_outer(blocks, halves)
    reuse: dict[Block, Block] = {}
    reads: list[BufferRegion] = []
    writes: list[BufferRegion] = []
    news: dict[Block, BlockRealize] = {}
    for block, half in zip(blocks, halves):
        new = substitute(half.block.replace(iter_vars=tuple(half.inner_iters)), table)
        news[block.stmt] = BlockRealize(half.inner_values, half.inner_predicate, new)
        reuse[block.stmt] = new
        pair_blocks(block.stmt.body, new.body, reuse)
        own = [s.stmt for s in state.loops_above(block)]
        reads += relaxed_regions(new.reads, half.inner_iters, halves[0].outer_iters, own)
        writes += relaxed_regions(new.writes, half.inner_iters, halves[0].outer_iters, own)
    inside = seq(*(_with_realizes(item, news) for item in items[first:last + 1]))
    names = "_".join(b.stmt.name_hint for b in blocks)
    outer = Block(halves[0].outer_iters, _union(reads), _union(writes), f"outer_{names}_", inside)
    owners = {r.buffer.data: r.buffer for r in (*outer.writes, *outer.reads)}
    outer = with_true_regions(outer, owners)  # statements beside the blocks come along
    _names_no_loop_around(outer, owner, state.loops_above(owner))
    came_from(outer, *(b.stmt for b in blocks))
    realize = BlockRealize(halves[0].outer_values, halves[0].outer_predicate, outer)
    new_body = seq(*items[:first], realize, *items[last + 1:])
    old = owner.stmt
    changed = old.replace(body=within_definitions(old.body, new_body))
    state.replace(owner, changed, {**reuse, **({old: changed} if type(old) is Block else {})})
    return state.refs[outer]


def _names_no_loop_around(outer: Block, owner: StmtSRef, around: Sequence[StmtSRef]) -> None:
    """A block may only use its own iterators, and so may the statements that come along."""
    if type(owner.stmt) is not For:
        return
    for stmt in (s.stmt for s in (owner, *around)):
        if uses_var(outer.body, stmt.loop_var):
            raise Refusal("loops_are_independent", "a statement beside the blocks uses loop "
                          f"{stmt.loop_var.name} around them; the new block may only use its own "
                          "iterators", nodes=[stmt],
                          hint="write the statement as a block, with an iterator for the loop")


def _blocks(stmt: Stmt) -> set[Block]:
    return {stmt.block} if type(stmt) is BlockRealize else {
        r.block for r in child_realizes(stmt)}


def _same_outer(blocks: Sequence[StmtSRef], halves: Sequence[Halves]) -> dict[Var, Var]:
    """The outer iterators of all blocks must agree; the substitution to the first block's."""
    base = halves[0]
    table: dict[Var, Var] = {}
    for block, half in zip(blocks, halves):
        if half.block.init is not None and any(iv.iter_type == REDUCE for iv in half.outer_iters):
            raise Refusal("no_reduction_outside", f"block {block.stmt.name_hint} is a reduction "
                          "with its init inside: as part of one block with others it would "
                          "start anew in each of them", nodes=[block.stmt],
                          hint="sch.decompose_reduction first")
        same = len(half.outer_iters) == len(base.outer_iters) and all(
            a.iter_type == b.iter_type and structural_equal(a.dom, b.dom)
            for a, b in zip(half.outer_iters, base.outer_iters)) and all(
            structural_equal(a, b) for a, b in zip(half.outer_values, base.outer_values))
        if not same or not structural_equal(half.outer_predicate, base.outer_predicate):
            raise Refusal("blocks_share_outer_iterators", f"blocks {blocks[0].stmt.name_hint} and "
                          f"{block.stmt.name_hint} divide into different outer iterators",
                          nodes=[blocks[0].stmt, block.stmt])
        if half is not base:
            table.update({a.var: b.var for a, b in zip(half.outer_iters, base.outer_iters)})
    return table


def _with_realizes(stmt: Stmt, news: dict[Block, BlockRealize]) -> Stmt:
    if type(stmt) is BlockRealize:
        return news.get(stmt.block, stmt)
    return stmt.map_children(lambda s: _with_realizes(s, news) if isinstance(s, Stmt) else s)


def _union(regions: Sequence[BufferRegion]) -> list[BufferRegion]:
    """One region for each buffer; of several the whole buffer unless they agree."""
    found: dict[Buffer, BufferRegion] = {}
    for region in regions:
        known = found.get(region.buffer)
        if known is None:
            found[region.buffer] = region
        elif not structural_equal(known.region, region.region):
            found[region.buffer] = BufferRegion.full_region(region.buffer)
    return list(found.values())
