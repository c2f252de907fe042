"""merge: loops that follow one another become one loop over both bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...arith import Analyzer
from ...ir.node import Node
from ...tir.expr import PrimExpr, Var
from ...tir.functor import substitute
from ...tir.stmt import Block, For, ForKind, SeqStmt, Stmt, seq
from ..conflict import first_clash, later
from ..error import Refusal
from ..footprint import footprint, loops_of
from ..guards import is_loop, loop_from_zero, loop_is_not_left, loop_is_plain
from ..independence import surroundings
from ..instruction import primitive
from ..provenance import came_from
from ..rewrite import pair_blocks
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import LoopRV


@primitive("Merge", moves=True)
def merge(state: ScheduleState, *loops: StmtSRef) -> LoopRV:
    """Merge loops of neighbouring nests: one loop runs, in each iteration, one body after another.

    The loops around them, up to what they have in common, are merged too. Returns the loop that the
    given ones became.

    Before::

        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] * T.float32(2.0)
        for i in range(128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                C[vi] = B[vi] + T.float32(1.0)

    After `sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])`::

        for i_m in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i_m)
                B[vi] = A[vi] * T.float32(2.0)
            with T.block("C"):
                vi = T.axis.spatial(128, i_m)
                C[vi] = B[vi] + T.float32(1.0)

    Errors: the nests follow each other directly, each loop in them holds the next and nothing else,
    and those of one depth have the same extent; no iteration may need what a later one of a nest
    before it computes.
    """
    if len(loops) < 2:
        raise Refusal("merge_needs_loops", "merge takes two loops or more")
    for loop in loops:
        is_loop(loop)
    if len(set(loops)) != len(loops):
        raise Refusal("loops_are_distinct", "a loop is given twice", nodes=[loops[0].stmt])
    top, chains = _chains(state, loops)
    for chain in chains:
        for sref in chain:
            loop_is_plain(sref)
            loop_from_zero(sref)
            loop_is_not_left(sref, "would leave the bodies of the others too")
            if sref.stmt.kind is not ForKind.SERIAL:
                raise Refusal("loop_is_serial", f"loop {sref.stmt.loop_var.name} is marked "
                              f"{sref.stmt.kind.name.lower()}, which the merged loop would not be",
                              nodes=[sref.stmt], hint="merge first, mark the loop afterwards")
    _same_extents(state, chains)
    items, at = _neighbours(top, chains)
    table: dict[Var, PrimExpr] = {}
    merged: list[Var] = []
    for level in zip(*chains):
        first = level[0].stmt
        var = came_from(Var(f"{first.loop_var.name}_m", first.loop_var.dtype),
                        *(s.stmt for s in level))
        merged.append(var)
        table.update((s.stmt.loop_var, var) for s in level)
    bodies = [substitute(chain[-1].stmt.body, table) for chain in chains]
    new: Stmt = seq(*bodies)
    made: list[For] = []
    for var, sref in zip(reversed(merged), reversed(chains[0])):
        new = For(var, sref.stmt.min, sref.stmt.extent, ForKind.SERIAL, new)
        made.append(new)
    _order_is_kept(chains, made[::-1], bodies)
    reuse: dict[Block, Block] = {}
    for chain, body in zip(chains, bodies):
        pair_blocks(chain[-1].stmt.body, body, reuse)
    holder = top.stmt.replace(body=seq(*items[:at], new, *items[at + len(chains):]))
    if isinstance(holder, Block):
        reuse[top.stmt] = holder
    state.replace(top, holder, reuse)
    return state.refs[made[0]]


def _chains(state: ScheduleState, loops: tuple[StmtSRef, ...]
            ) -> tuple[StmtSRef, list[list[StmtSRef]]]:
    """What holds all of the nests, and the loops of each from there inwards, in program order."""
    scope = state.scope_root(loops[0])
    for loop in loops:
        if state.scope_root(loop) is not scope:
            raise Refusal("same_scope", f"loops {loops[0].stmt.loop_var.name} and "
                          f"{loop.stmt.loop_var.name} are in different blocks",
                          nodes=[loops[0].stmt, loop.stmt])
    paths = [[*state.loops_above(loop), loop] for loop in loops]
    shared = 0
    while all(len(p) > shared and p[shared] is paths[0][shared] for p in paths):
        shared += 1
    chains = [p[shared:] for p in paths]
    if any(len(c) != len(chains[0]) for c in chains) or not chains[0]:
        raise Refusal("same_depth", "the loops are not equally deep in their nests",
                      nodes=[loop.stmt for loop in loops],
                      hint="give loops with equally many loops around them")
    for chain in chains:
        for outer, inner in zip(chain, chain[1:]):
            if outer.stmt.body is not inner.stmt:
                raise Refusal("single_branch", f"loop {outer.stmt.loop_var.name} holds more than "
                              f"loop {inner.stmt.loop_var.name}", nodes=[outer.stmt])
    return paths[0][shared - 1] if shared else scope, chains


def _same_extents(state: ScheduleState, chains: list[list[StmtSRef]]) -> None:
    analyzer = Analyzer()
    for level in zip(*chains):
        first = level[0].stmt
        for other in (s.stmt for s in level[1:]):
            if first.loop_var.dtype != other.loop_var.dtype or not analyzer.can_prove_equal(
                    first.extent, other.extent):
                raise Refusal("same_extent", f"loop {first.loop_var.name} runs over "
                              f"{first.extent!r}, loop {other.loop_var.name} over "
                              f"{other.extent!r}", nodes=[first, other],
                              hint="split one so that it has an outer loop of the other's extent")


def _neighbours(top: StmtSRef, chains: list[list[StmtSRef]]) -> tuple[list[Stmt], int]:
    """The statements that hold the nests, and where the first nest is. The nests are put in their
    order."""
    body = top.stmt.body
    items = list(body.seq) if type(body) is SeqStmt else [body]
    places: dict[Node, int] = {item: n for n, item in enumerate(items)}
    if any(chain[0].stmt not in places for chain in chains):
        raise Refusal("nests_are_neighbours", "a nest stands inside of another statement, which "
                      "would be left", nodes=[chain[0].stmt for chain in chains])
    chains.sort(key=lambda chain: places[chain[0].stmt])
    at = places[chains[0][0].stmt]
    if [places[chain[0].stmt] for chain in chains] != list(range(at, at + len(chains))):
        raise Refusal("nests_are_neighbours", "between the nests something else runs",
                      nodes=[chain[0].stmt for chain in chains],
                      hint="merge nests that follow each other directly")
    return items, at


def _order_is_kept(chains: list[list[StmtSRef]], merged: list[For], bodies: list[Stmt]) -> None:
    """Of two bodies that touch one element, the one that ran before still does."""
    shared, outer = loops_of(merged), surroundings(chains[0][0])
    too_late = later([loop.loop_var for loop in merged], False)
    for n, second in enumerate(bodies):
        for first in bodies[:n]:
            found = first_clash(footprint(second), footprint(first), shared, too_late, outer)
            if found is not None:
                raise Refusal(
                    "dependences_keep_their_order", f"in the merged loop an iteration of the later "
                    f"nest would come before one of the earlier nest that touches the same element "
                    f"of {found.name}: {found.what}", nodes=[chain[0].stmt for chain in chains],
                    conflict=found.text(), hint="where the reader needs several iterations of the "
                    "writer, use sch.compute_at, which computes them there")

