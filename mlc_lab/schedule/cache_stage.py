"""Copies of buffers: where a copying block goes, what it copies, and how it is written.

What cache_read, cache_write and their relatives share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from ..arith import Analyzer, estimate_region_upper_bound
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import (
    BufferLoad, IntImm, IterVar, PrimExpr, Range, Var, index_of_type,
)
from ..tir.functor import leaves_loop, pre_order, substitute, uses_var
from ..tir.stmt import (
    TRUE, Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, IfThenElse, LetStmt,
    SeqStmt, Stmt, While, seq,
)
from .buffers import READ, accesses
from .dependency import DEFINITIONS
from .error import Refusal
from .guards import is_block
from .move import replace_loop
from .needed_region import are_evaluable_at
from .provenance import came_from
from .rewrite import with_regions
from .state import ScheduleState, StmtSRef, child_realizes, swap
from .truth import undeclared, with_true_regions

if TYPE_CHECKING:
    from .instruction import BlockRV


class Location(NamedTuple):
    """A place among the statements of a loop or block: before the `position`-th, not counting
    definitions around them all."""

    at: StmtSRef
    position: int


def only_writer(state: ScheduleState, scope: StmtSRef, buffer: Buffer) -> StmtSRef | None:
    """The block of the scope that writes `buffer`, None if no block does.

    Raises Refusal if there are several.
    """
    writers = state.scope(scope).writers_of(buffer)
    if len(writers) > 1:
        names = ", ".join(b.name_hint for b in writers)
        raise Refusal("single_writer", f"buffer {buffer.name} is written by several blocks: "
                      f"{names}; a copy would have to be kept in step with each of them",
                      nodes=writers, hint="make the copy before decompose_reduction, or of the "
                      "buffer that one block alone writes")
    return state.refs[writers[0]] if writers else None


def find_location(scope: StmtSRef, writer: StmtSRef, later: Sequence[StmtSRef]) -> Location:
    """Where a stage between `writer` and the blocks `later` goes: before the first of them,
    as deep in the loops as holds both; at the end of the scope if there are none."""
    wanted = {s.stmt for s in later}
    if wanted:
        inside: Stmt = writer.stmt
        owner = writer.parent
        while owner is not None:
            body = after_definitions(owner.stmt.body)
            if type(body) is SeqStmt:
                here = next(i for i, s in enumerate(body.seq) if holds(s, inside))
                for position in range(here + 1, len(body.seq)):
                    if _blocks(body.seq[position]) & wanted:
                        return Location(owner, position)
            if owner is scope:
                break
            inside, owner = owner.stmt, owner.parent
    body = after_definitions(scope.stmt.body)
    return Location(scope, len(body.seq) if type(body) is SeqStmt else 1)


def after_definitions(stmt: Stmt) -> Stmt:
    """What stands within the definitions at the start of a body, which a copy may read."""
    while isinstance(stmt, DEFINITIONS):
        stmt = stmt.body
    return stmt


def within_definitions(stmt: Stmt, new: Stmt) -> Stmt:
    """`stmt` with `new` in place of what stands within the definitions at its start."""
    if not isinstance(stmt, DEFINITIONS):
        return new
    return stmt.replace(body=within_definitions(stmt.body, new))


def holds(stmt: Stmt, inside: Stmt) -> bool:
    """Whether a statement is another, or has it inside without a loop or block between."""
    if stmt is inside or type(stmt) is BlockRealize and stmt.block is inside:
        return True
    if type(stmt) in (For, BlockRealize):
        return False
    from .state import sub_statements

    return any(holds(s, inside) for s in sub_statements(stmt))


def _blocks(stmt: Stmt) -> set[Block]:
    return {stmt.block} if type(stmt) is BlockRealize else {
        r.block for r in child_realizes(stmt)}


# ------------------------------------------------------------------------------- regions

_RANKS = {"global": 0, "shared": 1, "warp": 2, "local": 3}


def _relaxed_over(scope: str, thread_tag: str) -> bool:
    """Whether memory of `scope` is shared by the threads of an axis."""
    rank = _RANKS.get(scope.split(".")[0], 3)
    if rank == 2:
        return thread_tag == "threadIdx.x"
    return rank <= (0 if thread_tag.startswith("blockIdx") else 1)


def region_at(state: ScheduleState, block: StmtSRef, region: BufferRegion, stop: StmtSRef
              ) -> tuple[Range, ...]:
    """What `block` touches of a buffer in one iteration of `stop` (a loop or its scope). All of a
    dimension where its ends cannot be evaluated there."""
    realize = state.realize_of(block)
    binding = {iv.var: v for iv, v in zip(block.stmt.iter_vars, realize.iter_values)}
    analyzer = Analyzer()
    state.loop_domains_into(stop, analyzer)
    chain: list[For] = []
    at = block.parent
    while at is not None and at is not stop:
        chain.append(at.stmt)
        at = at.parent
    while at is not None:
        stmt = at.stmt
        if type(stmt) is For and stmt.thread_binding is not None and _relaxed_over(
                str(region.buffer.scope), stmt.thread_binding.thread_tag):
            chain.append(stmt)
        at = at.parent
    domains = {lp.loop_var: Range.from_min_extent(lp.min, lp.extent) for lp in reversed(chain)}
    bound = [Range.from_min_extent(substitute(r.min, binding), substitute(r.extent, binding))
             for r in region.region]
    sets = estimate_region_upper_bound(bound, domains, substitute(realize.predicate, binding),
                                       analyzer)
    out: list[Range] = []
    for found, dim in zip(sets, region.buffer.shape):
        if found.has_lower_bound() and found.has_upper_bound() and (
                are_evaluable_at(found, state, stop, analyzer)):
            low = analyzer.simplify(found.min_value)
            out.append(Range.from_min_extent(low, analyzer.simplify(
                op.add(op.sub(found.max_value, low), 1))))
        else:
            out.append(Range.from_min_extent(IntImm(dim.dtype, 0), dim))
    return tuple(out)


# ------------------------------------------------------------------------------- the stage


class Stage(NamedTuple):
    """A copying block: its loops and all, and the block itself."""

    stmt: Stmt
    block: Block


def copy_stage(source: Buffer, target: Buffer, region: Sequence[Range], shape: Sequence[PrimExpr],
               name: str, packed: Buffer | None, known: Analyzer | None = None,
               source_at: Callable[[list[Var]], Sequence[PrimExpr]] | None = None,
               target_at: Callable[[list[Var]], Sequence[PrimExpr]] | None = None) -> Stage:
    """Loops `ax0, ax1, ...` over `region` around a block that copies `source` to `target`.

    `packed` is that one of the two that holds only the region (its index 0 is the region's
    start); if it is None both have the full shape `shape`. Where it cannot be proved that the
    region lies in the shape, with `known` about the loops around, a predicate cuts it off.
    `source_at` and `target_at` give other indices than the block's iterators.
    """
    loops: list[tuple[Var, PrimExpr]] = []
    values: list[PrimExpr] = []
    iters: list[IterVar] = []
    inner: list[Var] = []
    outer: list[PrimExpr] = []
    predicate: PrimExpr = TRUE
    known = known or Analyzer()
    for axis, (rng, dim) in enumerate(zip(region, shape)):
        loop_var = came_from(Var(f"ax{axis}", rng.extent.dtype), source)
        loops.append((loop_var, rng.extent))
        var = came_from(Var(f"v{axis}", rng.extent.dtype), source)
        zero = index_of_type(0, rng.extent.dtype)
        if packed is None:
            values.append(op.add(rng.min, loop_var))
            iters.append(IterVar(Range.from_min_extent(index_of_type(0, dim.dtype), dim), var,
                                 IterVar.DataPar))
            outer.append(var)
        else:
            values.append(loop_var)
            iters.append(IterVar(Range.from_min_extent(zero, rng.extent), var, IterVar.DataPar))
            outer.append(op.add(rng.min, var))
        inner.append(var)
        known.bind(loop_var, Range.from_min_extent(zero, rng.extent))
        if is_whole(rng, dim):
            continue
        place = op.add(rng.min, loop_var)
        for inside in (op.greater_equal(place, 0), op.less(place, dim)):
            if not known.can_prove(inside):
                predicate = op.logical_and(predicate, inside)
    read_at: Sequence[PrimExpr] = inner if source is packed else outer
    write_at: Sequence[PrimExpr] = inner if target is packed else outer
    if source_at is not None:
        read_at = source_at(inner)
    if target_at is not None:
        write_at = target_at(inner)
    block = copy_block(iters, source, read_at, target, write_at, name)
    stmt: Stmt = BlockRealize(values, predicate, block)
    for var, extent in reversed(loops):
        stmt = For(var, IntImm(var.dtype, 0), extent, ForKind.SERIAL, stmt)
    return Stage(stmt, block)


def copy_block(iters: Sequence[IterVar], source: Buffer, read_at: Sequence[PrimExpr],
               target: Buffer, write_at: Sequence[PrimExpr], name: str) -> Block:
    """A block that copies one element to another place."""
    block = Block(iters, [BufferRegion.from_point(source, read_at)],
                  [BufferRegion.from_point(target, write_at)], name,
                  BufferStore(target, BufferLoad(source, read_at), write_at))
    if any(type(n) is BufferLoad for at in (*read_at, *write_at) if type(at) is not Var
           for n in pre_order(at)):
        block = with_regions(block)  # what a place is computed from is read, too
    return came_from(block, source)


def is_whole(rng: Range, dim: PrimExpr) -> bool:
    """Whether it is seen at a glance that a range is all of a dimension."""
    return op.is_const_int(rng.min, 0) and (rng.extent is dim or (
        type(rng.extent) is IntImm and type(dim) is IntImm and rng.extent.value == dim.value))


def names_a_loop_around(scope: StmtSRef, region: Sequence[Range]) -> bool:
    """Whether a region is said by loops around a block: what is in the block may not name them, but
    in the bindings of iterators."""
    around: set[Var] = set()
    at = scope.parent
    while at is not None:
        if type(at.stmt) is For:
            around.add(at.stmt.loop_var)
        at = at.parent
    return bool(around) and any(
        uses_var(e, around) for r in region for e in (r.min, r.extent))


def loops_known(at: StmtSRef) -> Analyzer:
    """An analyzer that knows the loops and block iterators around a place."""
    analyzer = Analyzer()
    parent: StmtSRef | None = at
    while parent is not None:
        stmt = parent.stmt
        if type(stmt) is For:
            analyzer.bind(stmt.loop_var, Range.from_min_extent(stmt.min, stmt.extent))
        else:
            for iv in stmt.iter_vars:
                analyzer.bind(iv.var, iv.dom)
        parent = parent.parent
    return analyzer


def every_element_is_written(block: Block, buffer: Buffer) -> None:
    """What a block declares to write it must write in every iteration, for a copy to be valid."""

    def conditional(stmt: Stmt) -> bool:
        if type(stmt) in (IfThenElse, While) or type(stmt) is For and leaves_loop(stmt.body):
            return any(type(n) is BufferStore and n.buffer is buffer for n in pre_order(stmt))
        return any(conditional(s) for s in stmt.children() if isinstance(s, Stmt))

    if conditional(block.body):
        raise Refusal("every_element_is_written", f"block {block.name_hint} writes {buffer.name} "
                      "only under a condition; elements that it leaves alone would be overwritten "
                      "with what the copy happens to hold", nodes=[block])


def insert_statement(body: Stmt, location: Location, new: Stmt) -> Stmt:
    """`body`, a rewritten body of the block around, with `new` at the location."""

    def put(into: Stmt) -> Stmt:
        if isinstance(into, DEFINITIONS):
            return into.replace(body=put(into.body))
        items = list(into.seq) if type(into) is SeqStmt else [into]
        items.insert(location.position, new)
        return seq(*items)

    owner = location.at.stmt
    if type(owner) is Block:
        return put(body)
    return replace_loop(body, owner.loop_var, lambda loop: loop.replace(body=put(loop.body)))


def readers(state: ScheduleState, scope: StmtSRef, buffer: Buffer) -> list[StmtSRef]:
    """The blocks of a scope that read `buffer`, in program order."""
    return [state.refs[b] for b in state.scope(scope).blocks if accesses(b, buffer, READ)]


def given_consumers(state: ScheduleState, scope: StmtSRef, buffer: Buffer,
                    consumers: Sequence[StmtSRef]) -> list[StmtSRef]:
    """Consumers named by the user: blocks of the scope that read the buffer."""
    for consumer in consumers:
        is_block(consumer)
        if consumer.stmt is None or type(consumer.stmt) is not Block or (
                not accesses(consumer.stmt, buffer, READ)
                or state.scope_root(consumer) is not scope):
            name = getattr(consumer.stmt, "name_hint", consumer)
            raise Refusal("consumers_read_the_buffer", f"consumer_blocks: block {name} does not "
                          f"read {buffer.name} in this scope", nodes=[consumer.stmt],
                          hint="name blocks that read it, or leave consumer_blocks out")
    return list(consumers)


def sizes_are_known(scope: Block, allocated: Iterable[Buffer]) -> None:
    """The shapes of new buffers name nothing that is bound inside of their scope."""
    sizes = [d for b in allocated for d in b.shape if type(d) is not IntImm]
    if not sizes:
        return
    for stmt in pre_order(scope.body):
        if type(stmt) is LetStmt:
            for size in sizes:
                if uses_var(size, stmt.var):
                    raise Refusal(
                        "sizes_are_known", f"the copy would have {size!r} elements, and "
                        f"{stmt.var.name} gets its value inside of block {scope.name_hint}, where "
                        "the copy is allocated", nodes=[stmt],
                        hint="take the value as a parameter of the function")


def declaring(state: ScheduleState, scope: StmtSRef, new: Block) -> Block:
    """A block that copies were put in, which declares what they touch: what it is in is moved by
    that, and declares no more than it did. The block of a function declares nothing."""
    if scope.parent is None:
        return new
    wide = with_true_regions(new, {})
    if state.scope_root(scope).parent is None:
        return wide
    if wide is not new:
        _declares_too_little(scope)
    # it may declare what nothing in it touched so far, which a block around it does not
    inner, made = scope, new
    for outer in state.ancestors(scope):
        if outer.parent is None:
            break
        made = outer.stmt.replace(body=swap(outer.stmt.body, inner.stmt, made))
        inner = outer
        if type(made) is Block and undeclared(made):
            _declares_too_little(outer)
    return new


def _declares_too_little(block: StmtSRef) -> NoReturn:
    name = block.stmt.name_hint
    raise Refusal("scope_declares_what_it_touches", f"the copy would touch elements that block "
                  f"{name}, around it, does not declare", nodes=[block.stmt],
                  hint=f"make the copy outside of block {name}")


def finish(state: ScheduleState, scope: StmtSRef, body: Stmt, allocated: Sequence[Buffer],
           reuse: dict[Block, Block], stages: Sequence[Block]) -> list[BlockRV]:
    """Give the scope its new body and allocations; the references of the new stages."""
    old: Block = scope.stmt
    sizes_are_known(old, allocated)
    new = old.replace(body=body, alloc_buffers=(*old.alloc_buffers, *allocated))
    new = declaring(state, scope, new)
    state.replace(scope, new, {**reuse, old: new})
    return [state.refs[b] for b in stages]


__all__ = ["Location", "Stage", "after_definitions", "copy_stage", "declaring",
           "every_element_is_written", "find_location", "finish", "given_consumers", "holds",
           "insert_statement", "is_whole", "loops_known", "names_a_loop_around", "only_writer",
           "readers", "region_at", "sizes_are_known", "within_definitions"]
