"""The rules primitives rest on, each a function that raises Refusal with its reason.

Definitions after the TensorIR paper and TVM's schedule analysis:

* a binding is *affine* when the block's iterators enumerate a rectangle of the loops, each point
  once per loop value (quasi-affine: splits and fusions are allowed);
* a block is *complete* when all its iterators are spatial, it is the only writer of its outputs in
  its scope (dominant), and it does not read what it writes;
* a block is a *reduction* when it has an init, spatial and reduction iterators only, is dominant,
  and no reduction iterator indexes its outputs.

What a scope of such blocks must be is in `covering.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..arith import Analyzer, detect_iter_map
from ..arith.access import conjuncts
from ..tir import op
from ..tir.expr import IterVar, Range
from ..tir.functor import leaves_loop, substitute, uses_var
from ..tir.stmt import Block, For
from .error import Refusal
from .footprint import reads_memory
from .independence import has_one_to_one_binding
from .repeatable import builds_on
from .state import ScheduleState, StmtSRef, child_realizes
from .witness import loop_triples, touched_twice

if TYPE_CHECKING:
    from ..tir.buffer import Buffer
    from ..tir.stmt import BufferRegion

SPATIAL, REDUCE, OPAQUE = IterVar.DataPar, IterVar.CommReduce, IterVar.Opaque
KIND_NAMES = {SPATIAL: "spatial", REDUCE: "reduction", IterVar.Ordered: "scan", OPAQUE: "opaque"}


def is_block(sref: object) -> None:
    """The reference must be a block."""
    if not (isinstance(sref, StmtSRef) and type(sref.stmt) is Block):
        raise Refusal("expects_block", "this argument must be a block (from sch.get_block), got "
                      + _what(sref))


def is_loop(sref: object) -> None:
    """The reference must be a loop."""
    if not (isinstance(sref, StmtSRef) and type(sref.stmt) is For):
        raise Refusal("expects_loop", "this argument must be a loop (from sch.get_loops), got "
                      + _what(sref))


def is_block_or_loop(sref: object) -> None:
    """The reference must be a block or a loop."""
    if not isinstance(sref, StmtSRef):
        raise Refusal("expects_block_or_loop", "this argument must be a block or a loop, got "
                      + _what(sref))


def _what(value: object) -> str:
    if isinstance(value, StmtSRef):
        return "a block" if type(value.stmt) is Block else "a loop"
    return f"{type(value).__name__} {value!r}"


def loop_from_zero(loop: StmtSRef) -> None:
    """Loops that are split or fused start at zero."""
    start = loop.stmt.min
    if getattr(start, "value", None) != 0:
        raise Refusal("loop_starts_at_zero", f"loop {loop.stmt.loop_var.name} starts at {start!r}; "
                      "splitting and fusing compute positions from zero", nodes=[loop.stmt])


def loop_is_not_left(loop: StmtSRef, what: str) -> None:
    """Loops that become another number of loops run to their end."""
    if leaves_loop(loop.stmt.body):
        raise Refusal("loop_runs_to_its_end", f"loop {loop.stmt.loop_var.name} is left by a break "
                      f"or continue, which {what}", nodes=[loop.stmt],
                      hint="write the condition as an if around what it skips")


def loop_is_plain(loop: StmtSRef) -> None:
    """Loops that are restructured carry no annotation and no thread binding."""
    if loop.stmt.annotations or loop.stmt.thread_binding is not None:
        raise Refusal("loop_has_no_annotation", f"loop {loop.stmt.loop_var.name} has an annotation "
                      "or a thread binding, which would be lost or mean something else on the new "
                      "loops", nodes=[loop.stmt],
                      hint="restructure loops first, annotate and bind them last")


def same_scope(state: ScheduleState, block: StmtSRef, loop: StmtSRef) -> StmtSRef:
    """Block and loop must be in one block scope, which is returned."""
    scope = state.scope_root(block)
    if state.scope_root(loop) is not scope:
        raise Refusal("same_scope", f"loop {loop.stmt.loop_var.name} is not in the same block "
                      f"scope as block {block.stmt.name_hint}; a block's boundary isolates what is "
                      "inside it", nodes=[block.stmt, loop.stmt])
    return scope


# ------------------------------------------------------------------------------- bindings


def has_affine_binding(state: ScheduleState, block: StmtSRef, top: StmtSRef | None = None) -> bool:
    """Whether the block's bindings are quasi-affine in the loops around it, or in those from `top`
    inwards while the others stand still."""
    realize = state.realize_of(block)
    if not realize.iter_values:
        return True
    if top is None and op.is_const_int(realize.predicate, 1) and has_one_to_one_binding(state,
                                                                                        block):
        return True  # which most primitives ask as well
    loops = state.loops_above(block)
    chain = tuple(s.stmt for s in (loops if top is None else loops[loops.index(top):]))
    key = ("affine", realize, tuple((lp.loop_var, lp.min, lp.extent) for lp in chain))
    found = state.cache.get(key)
    if found is None:
        domains = {lp.loop_var: Range.from_min_extent(lp.min, lp.extent) for lp in chain}
        if domains:
            # what depends on data leaves out iterations that the bindings reach
            parts = [p for p in conjuncts(realize.predicate) if not reads_memory(p)]
            predicate = op.all(*parts) if parts else True
            result = detect_iter_map(realize.iter_values, domains, predicate, "surjective",
                                     Analyzer())
            found = bool(result.indices)
        else:
            found = True
        state.cache[key] = found
    return found


def affine_binding(state: ScheduleState, block: StmtSRef, top: StmtSRef | None = None) -> None:
    """The block's bindings must be quasi-affine, in all loops or in those from `top` inwards."""
    if not (has_affine_binding(state, block)
            or top is not None and has_affine_binding(state, block, top)):
        realize = state.realize_of(block)
        raise Refusal(
            "affine_binding", f"the bindings of block {block.stmt.name_hint} are not affine in the "
            "loops around it, so it cannot be proved that every iteration runs exactly once",
            nodes=[realize], hint="bind each iterator to a sum of loops times constants, or to "
            "// and % of such sums that together cover the domain")


# ------------------------------------------------------------------------------- kinds of blocks


def why_not_dominant(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> str:
    """Why the block is not the only writer of its outputs in the scope, "" if it is.

    The scope may be a loop: then only the blocks below it count.
    """
    for region in block.stmt.writes:
        others = [b.name_hint for b in _other_writers(state, block, scope, region.buffer)]
        if others:
            return (f"buffer {region.buffer.name} is also written by block "
                    f"{', '.join(others)}: the block is not dominant")
    return ""


def _other_writers(state: ScheduleState, block: StmtSRef, scope: StmtSRef, buffer: Buffer
                   ) -> list[Block]:
    """The blocks of the scope (or below the loop) but `block` that write the buffer."""
    if type(scope.stmt) is For:
        found = [b.stmt for b in state.child_blocks(scope)
                 if any(w.buffer.data is buffer.data for w in b.stmt.writes)]
    else:
        found = state.scope(scope).writers_of(buffer)
    return [b for b in found if b is not block.stmt]


def two_writers(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> str:
    """An element that the block and another one both write, where they do; "" if there is none."""
    for region in block.stmt.writes:
        for other in _other_writers(state, block, scope, region.buffer):
            second = state.refs[other]
            theirs = next((w for w in other.writes if w.buffer is region.buffer), None)
            if theirs is None:  # by another name of the memory
                continue
            found = touched_twice(
                block.stmt.name_hint, _loops_of(state, block), element_range(state, block, region),
                other.name_hint, _loops_of(state, second), element_range(state, second, theirs),
                region.buffer)
            if found:
                return found
    return ""


def _loops_of(state: ScheduleState, block: StmtSRef) -> list[tuple[Any, Any, Any]]:
    return loop_triples([s.stmt for s in state.loops_above(block)])


def element_range(state: ScheduleState, block: StmtSRef, region: BufferRegion
                  ) -> list[tuple[Any, Any]]:
    """First and last index of a block's region in each dimension, in the loops around it."""
    realize = state.realize_of(block)
    binding = {iv.var: v for iv, v in zip(block.stmt.iter_vars, realize.iter_values)}
    out: list[tuple[Any, Any]] = []
    for rng in region.region:
        low, extent = substitute(rng.min, binding), substitute(rng.extent, binding)
        out.append((low, op.sub(op.add(low, extent), 1)))
    return out


def why_not_complete(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> str:
    """Why a block is not complete, "" if it is."""
    stmt = block.stmt
    for iv in stmt.iter_vars:
        if iv.iter_type not in (SPATIAL, OPAQUE):
            return f"iterator {iv.var.name} is {KIND_NAMES.get(iv.iter_type)}, not spatial"
    reason = why_not_dominant(state, block, scope)
    if reason:
        return reason
    written = {w.buffer for w in stmt.writes}
    for region in stmt.reads:
        if region.buffer in written and builds_on(stmt, region.buffer):
            return f"it reads {region.buffer.name}, which it also writes"
    return ""


def why_not_reduction(state: ScheduleState, block: StmtSRef, scope: StmtSRef,
                      affine: bool = True) -> str:
    """Why a block is not a reduction block, "" if it is; `affine`: with affine bindings."""
    stmt = block.stmt
    if stmt.init is None:
        return "it has no T.init()"
    for iv in stmt.iter_vars:
        if iv.iter_type not in (SPATIAL, REDUCE):
            return f"iterator {iv.var.name} is {KIND_NAMES.get(iv.iter_type)}"
    if affine and not has_affine_binding(state, block):
        return "its bindings are not affine in the loops around it"
    reason = why_not_dominant(state, block, scope)
    if reason:
        return reason
    reduce_vars = {iv.var for iv in stmt.iter_vars if iv.iter_type == REDUCE}
    for region in stmt.writes:
        for rng in region.region:
            if uses_var(rng.min, reduce_vars) or uses_var(rng.extent, reduce_vars):
                return "a reduction iterator indexes the output buffer"
    return ""


def complete_block(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> None:
    """The block must be complete."""
    facts, key = state.facts(scope), ("complete", block.stmt)
    if key in facts:
        return
    reason = why_not_complete(state, block, scope)
    if reason:
        raise Refusal("complete_block", f"block {block.stmt.name_hint} is not a complete block: "
                      + reason, nodes=[block.stmt],
                      conflict=lambda: two_writers(state, block, scope))
    facts[key] = True


def reduction_block(state: ScheduleState, block: StmtSRef, scope: StmtSRef,
                    affine: bool = True) -> None:
    """The block must be a reduction block; with `affine` its bindings too must be such."""
    facts, key = state.facts(scope), ("reduction", block.stmt, affine)
    if key in facts:
        return
    reason = why_not_reduction(state, block, scope, affine)
    if reason:
        raise Refusal("reduction_block", f"block {block.stmt.name_hint} is not a reduction block: "
                      + reason, nodes=[block.stmt],
                      conflict=lambda: two_writers(state, block, scope))
    facts[key] = True


def complete_or_reduction(state: ScheduleState, block: StmtSRef, scope: StmtSRef,
                          affine: bool = True) -> None:
    """The block must be complete or a reduction; with `affine` that with affine bindings."""
    facts, key = state.facts(scope), ("complete or reduction", block.stmt, affine)
    if key in facts:
        return
    reason = why_not_complete(state, block, scope)
    if reason:
        other = why_not_reduction(state, block, scope, affine)
        if other:
            raise Refusal("complete_or_reduction", f"block {block.stmt.name_hint} can be neither: "
                          f"it is not complete since {reason}; not a reduction since {other}",
                          nodes=[block.stmt], conflict=lambda: two_writers(state, block, scope))
    facts[key] = True


def compact_dataflow(state: ScheduleState, root: StmtSRef, affine: bool = True) -> None:
    """Every block directly under `root` must be complete or a reduction, seen from there: what
    writes the same buffer outside of `root` does not matter."""
    for block in state.child_blocks(root):
        complete_or_reduction(state, block, root, affine)


# ------------------------------------------------------------------------------- loops


def parallelizable(state: ScheduleState, loop: StmtSRef, kind: str, thread_tag: str = "") -> None:
    """The loop may drive spatial iterators only; the threads of a block may drive reductions too,
    whose bindings must be affine then: lowering takes such reductions apart."""
    var = loop.stmt.loop_var
    for node in child_realizes(loop.stmt):
        for iv, value in zip(node.block.iter_vars, node.iter_values):
            if not uses_var(value, var):
                continue
            if iv.iter_type == SPATIAL:
                continue
            if iv.iter_type == REDUCE and thread_tag.startswith("threadIdx"):
                affine_binding(state, state.refs[node.block])
                continue
            written = ", ".join(w.buffer.name for w in node.block.writes)
            raise Refusal(
                "parallel_loops_are_spatial",
                f"loop {var.name} drives the {KIND_NAMES.get(iv.iter_type)} iterator {iv.var.name} "
                f"of block {node.block.name_hint}: its iterations depend on each other, so "
                f"they cannot run {kind}",
                nodes=[loop.stmt, node],
                conflict=f"{var.name} = 0 and {var.name} = 1 both update the same element of "
                f"{written}",
                hint="use a loop that drives spatial iterators only, or split the reduction with "
                "sch.rfactor first")
