"""What parallel, vectorize and bind share: a loop's iterations must be independent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..tir.expr import IterVar, Var
from ..tir.functor import uses_var
from ..tir.stmt import For, ForKind
from .conflict import Clash
from .error import Refusal
from .footprint import allocates
from .guards import REDUCE, SPATIAL, compact_dataflow, is_loop, parallelizable
from .independence import (
    chooses_by_results, clash_between_iterations, has_one_to_one_binding, labels_are_true,
)
from .slices import threads_may_share
from .state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from .state import Snapshot


#: memory that the threads of a block have together
_OF_A_BLOCK = ("shared", "warp")


def set_kind(state: ScheduleState, loop: StmtSRef, kind: ForKind, word: str,
             thread_tag: str = "") -> None:
    """Let a loop's iterations run as `kind` says, if they are independent of each other.

    `word` says how in the refusal; `thread_tag` is the GPU axis of a bound loop.
    """
    is_loop(loop)
    try:
        compact_dataflow(state, loop, affine=False)
    except Refusal as refusal:
        if not _within_a_block(state, loop, refusal):
            raise _with_iterations(state, loop, refusal) from None
    parallelizable(state, loop, word, thread_tag)
    for block in _shared_by(state, loop, thread_tag):
        threads_may_share(state, block, loop)
    if not _plainly_independent(state, loop, thread_tag):
        clash = _clash(state, loop, thread_tag, kind is ForKind.VECTORIZED)
        if clash is not None:
            raise _dependent(loop, clash, word)
    stmt = loop.stmt
    binding = None
    if thread_tag:
        binding = IterVar.from_fields(None, Var("", stmt.loop_var.dtype), IterVar.ThreadIndex,
                                      thread_tag)
    state.replace(loop, stmt.replace(kind=kind, thread_binding=binding))


def _within_a_block(state: ScheduleState, loop: StmtSRef, refusal: Refusal) -> bool:
    """Whether a loop of a block that goes on with what another block of it has set, as one with an
    init would, is independent all the same: seen from outside the two are one block."""
    return (refusal.rule == "complete_or_reduction"
            and state.scope_root(loop).parent is not None
            and all(labels_are_true(state, block) for block in state.child_blocks(loop))
            and _clash(state, loop) is None)


def _with_iterations(state: ScheduleState, loop: StmtSRef, refusal: Refusal) -> Refusal:
    """A refusal about a block, with two iterations of the loop that clash; where there are none,
    with the advice to come earlier."""
    clash = _clash(state, loop)
    refusal.conflict = clash.text if clash is not None else ""
    refusal.hint = refusal.hint or (
        "choose a loop whose iterations write elements of their own, and read none that others "
        "write" if clash is not None else f"no two iterations of loop {loop.stmt.loop_var.name} "
        "clash, but the rule asks for whole blocks: say how a loop runs before a block is taken "
        "apart, before sch.decompose_reduction")
    return refusal


def _plainly_independent(state: ScheduleState, loop: StmtSRef, thread_tag: str) -> bool:
    """Whether it is so at a glance: one block whose iterators are what they are called, each of
    its iterations is run once, and the loop drives spatial ones alone; and no memory that threads
    share is made in it."""
    blocks = state.child_blocks(loop)
    if thread_tag.startswith("threadIdx") and allocates(loop.stmt.body, _OF_A_BLOCK):
        return False
    if len(blocks) != 1 or not has_one_to_one_binding(state, blocks[0]) or not labels_are_true(
            state, blocks[0]):
        return False
    realize = state.realize_of(blocks[0])
    if chooses_by_results(realize):
        return False
    inner = loop.stmt.body
    while inner is not realize:
        if not hasattr(inner, "loop_var"):
            return False  # more than loops
        inner = inner.body
    return all(iv.iter_type == SPATIAL or not uses_var(value, loop.stmt.loop_var)
               for iv, value in zip(realize.block.iter_vars, realize.iter_values))


def _clash(state: ScheduleState, loop: StmtSRef, thread_tag: str = "", lanes: bool = False
           ) -> Clash | None:
    """Two iterations that clash, of a loop whose iterations are `lanes` of vectors or not;
    remembered, as a list of what is legal asks for each axis."""
    facts = state.facts(state.scope_root(loop))
    key = ("clash", loop.stmt, thread_tag.partition(".")[0], lanes)
    if key not in facts:
        facts[key] = clash_between_iterations(
            state, loop, *_memories(state, loop, thread_tag), lanes)
    return facts[key]


def _memories(state: ScheduleState, loop: StmtSRef, thread_tag: str) -> tuple[
        set[Var], tuple[str, ...]]:
    """Memory that may be touched by all iterations: that of reductions over the threads of a
    block, which lowering takes apart; and the scopes in which each iteration gets its own."""
    reduced = {w.buffer.data for block in _shared_by(state, loop, thread_tag)
               if block.stmt.init is not None for w in block.stmt.writes}
    shared = ("global", *_OF_A_BLOCK) if thread_tag.startswith("threadIdx") else (
        ("global",) if thread_tag.startswith("blockIdx") else ())
    return reduced, shared


def _shared_by(state: ScheduleState, loop: StmtSRef, thread_tag: str) -> list[StmtSRef]:
    """The blocks whose reduction the threads of a loop share."""
    return [block for block in state.child_blocks(loop) if any(
        iv.iter_type == REDUCE and uses_var(value, loop.stmt.loop_var) for iv, value in zip(
            block.stmt.iter_vars, state.realize_of(block).iter_values))] if (
                thread_tag.startswith("threadIdx")) else []


def loops_stay_independent(state: ScheduleState, loops: Iterable[StmtSRef]) -> None:
    """Those of `loops` whose iterations run at the same time must still be independent, after a
    step that changed what is below them."""
    for loop in loops:
        tag = loop.stmt.thread_tag
        if loop.stmt.kind in (ForKind.SERIAL, ForKind.UNROLLED) or _plainly_independent(
                state, loop, tag):
            continue
        clash = _clash(state, loop, tag, loop.stmt.kind is ForKind.VECTORIZED)
        if clash is not None:
            raise _dependent(loop, clash, tag and f"on the threads of {tag}" or _WORDS.get(
                loop.stmt.kind, "at the same time"), "after this step ")


def changed_loops(state: ScheduleState, before: Snapshot) -> list[StmtSRef]:
    """The loops that are not what they were; `before` has the statements that references had."""
    return [s for s in state.refs.values()
            if type(s.stmt) is For and not (s in before and before[s][0] is s.stmt)]


_WORDS = {ForKind.PARALLEL: "in parallel", ForKind.VECTORIZED: "as lanes of a vector"}


def _dependent(loop: StmtSRef, clash: Clash, word: str, when: str = "") -> Refusal:
    name = loop.stmt.loop_var.name
    return Refusal(
        "iterations_are_independent", f"{when}iterations of loop {name} touch the same element of "
        f"{clash.name}, so they cannot run {word}: {clash.what}",
        nodes=[loop.stmt, *clash.blocks], conflict=clash.text,
        hint=f"take another place for it, or say how loop {name} runs later" if when else
        "choose a loop whose iterations write elements of their own, and read none that others "
        "write")
