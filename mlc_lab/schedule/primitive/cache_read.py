"""cache_read: readers of a buffer read a copy of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...arith import Analyzer
from ...tir.buffer import Buffer
from ...tir.expr import Range
from ...tir.stmt import For
from ..buffers import (
    READ, WRITE, Redirect, accesses, buffer_like, index_of, nth_region, one_name, rewrite_blocks,
    storage_scope_exists,
)
from ..cache_stage import (
    Location, copy_stage, find_location, finish, given_consumers, insert_statement, loops_known,
    names_a_loop_around, only_writer, readers, region_at,
)
from ..error import Refusal
from ..guards import is_block
from ..instruction import primitive
from ..staging import copy_holds, covered, fixed, place_of, whole
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import BlockRV


@primitive("CacheRead", moves=True, normalize=index_of(READ, "read_buffer_index"))
def cache_read(state: ScheduleState, block: StmtSRef, read_buffer_index: int | str | Buffer,
               storage_scope: str, consumer_blocks: Sequence[StmtSRef] | None = None) -> BlockRV:
    """Copy a buffer into another kind of memory and let its readers read the copy.

    The copying block, which is returned, is called `<buffer>_<scope>`. It goes right before the
    first reader, as deep in the loops as the buffer's writer is; for an input, to the start of the
    scope. `consumer_blocks` says who reads the copy, `block` or others; without it all do for whom
    it holds what they would read.

    Before::

        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)

    After `sch.cache_read(B, 0, "local")`::

        A_local = T.alloc_buffer((128, 128), scope="local")
        for ax0, ax1 in T.grid(128, 128):
            with T.block("A_local"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                A_local[v0, v1] = A[v0, v1]
        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A_local[vi, vj] * T.float32(2.0)

    Errors: the block must read the buffer and not write it too; at most one block of the scope
    writes it, and not between the copy and who reads it; the storage scope must exist.
    """
    is_block(block)
    storage_scope_exists(storage_scope)
    region = nth_region(block.stmt, read_buffer_index, READ)
    buffer = region.buffer
    scope = state.scope_root(block)
    if accesses(block.stmt, buffer, WRITE):
        raise Refusal("reader_does_not_write", f"block {block.stmt.name_hint} also writes "
                      f"{buffer.name}: reading a copy, it would not see what it wrote itself",
                      nodes=[block.stmt], hint="use sch.cache_write, or cache_read before "
                      "sch.decompose_reduction")
    location, targets = _location(state, scope, block, buffer, consumer_blocks or ())
    span = _span(state, scope, buffer, location, targets)
    full = location.at is not scope or names_a_loop_around(scope, span)
    copy = buffer_like(buffer, f"{buffer.name}_{storage_scope}", storage_scope,
                       None if full else [r.extent for r in span])
    stage = copy_stage(buffer, copy, span, buffer.shape, copy.name, None if full else copy,
                       loops_known(location.at))
    offsets = None if full or _starts_at_zero(span) else {buffer: [r.min for r in span]}
    redirect = Redirect({buffer: copy}, offsets, Analyzer())
    body = rewrite_blocks(scope.stmt.body, {t.stmt: redirect.visit for t in targets},
                          redirect.reuse)
    body = insert_statement(body, location, stage.stmt)
    return finish(state, scope, body, [copy], redirect.reuse, [stage.block])[0]


def _location(state: ScheduleState, scope: StmtSRef, block: StmtSRef, buffer: Buffer,
              given: Sequence[StmtSRef]) -> tuple[Location, list[StmtSRef]]:
    """Where the copy is made, and who reads it: behind the buffer's writer, or at the start."""
    writer = only_writer(state, scope, buffer)
    wanted = given_consumers(state, scope, buffer, given) or [
        r for r in readers(state, scope, buffer) if not accesses(r.stmt, buffer, WRITE)]
    start = Location(scope, 0)
    places = [start] if writer is None else [find_location(scope, writer, wanted), start]
    refused: Refusal | None = None
    for location in places:
        targets: list[StmtSRef] = []
        for reader in wanted:
            if _reads_what_all_copies_hold(state, scope, writer, reader, buffer, location):
                targets.append(reader)
                continue
            try:
                copy_holds(state, scope, reader, buffer, location)
                targets.append(reader)
            except Refusal as why:
                if given or reader is block:
                    refused = refused or why
        if (block in targets or given) and len(targets) >= len(given):
            return location, targets
    assert refused is not None  # by the block, or by one of those given
    raise refused


def _reads_what_all_copies_hold(state: ScheduleState, scope: StmtSRef, writer: StmtSRef | None,
                                reader: StmtSRef, buffer: Buffer, location: Location) -> bool:
    """Whether a reader comes behind the loop in which the copy is made: each of its iterations
    copies what the only writer has written in it. The buffer has nothing but what is written."""
    at = location.at
    if writer is None or type(at.stmt) is not For or at not in state.loops_above(writer) or (
            buffer not in scope.stmt.alloc_buffers or at in state.loops_above(reader)):
        return False
    graph = state.scope(scope)
    place = place_of(state, scope, location)
    if graph.site(reader.stmt).index < place.boundary or any(
            loop.thread_binding is not None for loop in place.loops):
        return False
    if any(buffer.data in s.writes for s in graph.sites if s.node is not
           graph.site(writer.stmt).node):
        return False
    one_name(reader.stmt, buffer)
    return True


def _span(state: ScheduleState, scope: StmtSRef, buffer: Buffer, location: Location,
          targets: Sequence[StmtSRef]) -> tuple[Range, ...]:
    """What is copied: what has been written, or what the scope reads; more if a reader needs it."""
    writer = only_writer(state, scope, buffer)
    written = writer and next((w for w in writer.stmt.writes if w.buffer is buffer), None)
    if writer is None or location.position == 0 and location.at is scope:
        # a reduction reads what it writes, and declares that it writes it
        declared = (*scope.stmt.reads, *(scope.stmt.writes if scope.stmt.init is not None else ()))
        said = next((r.region for r in declared if r.buffer is buffer), None) or whole(buffer)
    elif written is None:  # it is written by another name
        said = whole(buffer)
    else:
        said = region_at(state, writer, written, location.at)
    span = fixed(said, buffer)
    beside = type(location.at.stmt) is For
    if all(covered(state, reader, buffer, location.at, span) for reader in targets
           if not beside or location.at in state.loops_above(reader)):
        return span
    return whole(buffer)


def _starts_at_zero(span: Sequence[Any]) -> bool:
    return all(getattr(r.min, "value", None) == 0 for r in span)
