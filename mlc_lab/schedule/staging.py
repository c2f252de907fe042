"""When a block may read a copy that was made earlier, or write one that is stored later.

A copy is made at one moment. It holds for a reader if nothing writes the buffer between the copy
and the reading; what is written to a copy is in time if nobody reads or writes the buffer before
the copy is stored back, and storing back must not touch what was not written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ..arith import Analyzer
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, IntImm, Range, Var
from ..tir.functor import pre_order, substitute
from ..tir.stmt import Block, BufferRegion, For
from .buffers import one_name
from .cache_stage import Location, is_whole, region_at
from .covering import relaxed_region
from .dependency import inside
from .error import Refusal
from .executed import comes_to_run, elements, run_at_all
from .footprint import Access, footprint, loops_of
from .order import Place, passed, stays_within
from .repeatable import box_of, name_of
from .state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr


def place_of(state: ScheduleState, scope: StmtSRef, location: Location) -> Place:
    """A location as a place in the order of the scope."""
    at = location.at
    loops = () if type(at.stmt) is Block else (
        *(s.stmt for s in state.loops_above(at)), at.stmt)
    return Place(loops, state.scope(scope).boundary(loops, location.position))


def copy_holds(state: ScheduleState, scope: StmtSRef, reader: StmtSRef, buffer: Buffer,
               location: Location, also: Collection[Var] = (), more: Sequence[Access] = ()
               ) -> None:
    """A block may read, in place of the buffer, a copy that is made at the location.

    `also`: memory that is read to make the copy, by the same accesses of the block; `more`: what
    else is read for that.
    """
    graph = state.scope(scope)
    site, place = graph.site(reader.stmt), place_of(state, scope, location)
    depth = len(place.loops)
    if site.index < place.boundary or depth and not (
            len(site.loops) >= depth and site.loops[depth - 1] is place.loops[-1]):
        raise Refusal("copy_comes_first", f"block {site.name} reads {buffer.name} before the place "
                      "where the copy would be made", nodes=[reader.stmt],
                      hint="name the blocks that read the copy: consumer_blocks=")
    one_name(reader.stmt, buffer)
    stays_within(graph, site, depth, site.node, conditions=False)
    here = [a for a in site.accesses if not a.write and (
        a.memory is buffer.data or a.memory in also)]
    here += more
    found = passed(graph, site, place, (), False, here=here)
    if found is not None:
        raise Refusal("copy_is_current", f"{found.site.name} writes elements of "
                      f"{name_of(found.clash.a)} after the copy would be made and before block "
                      f"{site.name} reads them", nodes=[reader.stmt, found.site.node],
                      conflict=lambda: found.text(site.name),
                      hint="name the blocks that read the copy: consumer_blocks=")


def stored_in_time(state: ScheduleState, scope: StmtSRef, writer: StmtSRef, buffer: Buffer,
                   location: Location, direct: Sequence[StmtSRef] = (),
                   more: Sequence[Access] = ()) -> None:
    """What a block writes may be stored at the location, where only the blocks `direct` know it
    before. `more`: what is read to store it."""
    graph = state.scope(scope)
    site, place = graph.site(writer.stmt), place_of(state, scope, location)
    one_name(writer.stmt, buffer)
    stays_within(graph, site, len(place.loops), site.node)
    readers = {d.stmt for d in direct}
    for block in readers:
        one_name(block, buffer)
        if graph.site(block).index < site.index:
            raise Refusal("readers_follow", f"block {block.name_hint} reads {buffer.name} before "
                          f"block {site.name} writes it", nodes=[block])

    def but(a: Access, b: Access) -> bool:
        return a.block in readers or b.block in readers

    here = [*(a for a in site.accesses if a.write and a.memory is buffer.data), *more]
    found = passed(graph, site, place, (), True, but, here)
    if found is not None:
        raise Refusal("stored_in_time", f"{found.site.name} touches elements of {buffer.name} that "
                      f"block {site.name} has written to the copy, before the copy is stored",
                      nodes=[writer.stmt, found.site.node],
                      conflict=lambda: found.text(site.name))


def only_what_was_written(state: ScheduleState, scope: StmtSRef, writer: StmtSRef, buffer: Buffer,
                          at: StmtSRef, span: Sequence[Range]) -> None:
    """What is stored back must have been written to the copy: the rest of it is garbage.

    A buffer that lives in the scope and has one writer may take the garbage, nobody can have read
    more there.
    """
    if state.scope(scope).makes_all(writer.stmt, buffer) or _writes_all(
            state, writer, buffer, at, span):
        return
    raise Refusal("every_element_is_written", f"block {writer.stmt.name_hint} may leave elements "
                  f"of {buffer.name} alone among those that are stored from the copy, which holds "
                  "nothing for them", nodes=[writer.stmt])


def _writes_all(state: ScheduleState, writer: StmtSRef, buffer: Buffer, at: StmtSRef,
                span: Sequence[Range]) -> bool:
    stmt: Block = writer.stmt
    scope = state.scope(state.scope_root(writer))
    depth = len(state.loops_above(at)) + 1 if type(at.stmt) is For else 0
    loops, realize = scope.site(stmt).loops, state.realize_of(writer)
    values = [substitute(r.min, {iv.var: v for iv, v in zip(stmt.iter_vars, realize.iter_values)})
              for w in stmt.writes if w.buffer is buffer for r in w.region]
    if not run_at_all(loops, scope.around, depth) or not comes_to_run(
            values, realize.predicate, loops[depth:], [*scope.around, *loops_of(loops[:depth])]):
        return _tried(state, writer, buffer, at, span)
    region = next(w for w in stmt.writes if w.buffer is buffer)
    writes = [a for a in footprint(stmt) if a.write and a.memory is buffer.data]
    analyzer = Analyzer()
    if type(at.stmt) is For:
        state.loop_domains_into(at, analyzer)

    def equal(a: PrimExpr, b: PrimExpr) -> bool:
        return a is b or analyzer.can_prove_equal(a, b)

    for access in writes:
        box = box_of(access) if not access.conditions and not access.pointer else None
        if box is None or not all(
                equal(b.min_value, r.min) and equal(b.max_value, op.sub(op.add(r.min, r.extent), 1))
                for b, r in zip(box, region.region)):
            continue
        got = relaxed_region(state, writer, region.region, at, lower=True)
        if got is not None and all(
                equal(g.min_value, r.min) and equal(g.max_value, op.sub(op.add(r.min, r.extent), 1))
                for g, r in zip(got, span)):
            return True
    return _tried(state, writer, buffer, at, span)


def _tried(state: ScheduleState, writer: StmtSRef, buffer: Buffer, at: StmtSRef,
           span: Sequence[Range]) -> bool:
    """Whether a block writes just a box in each iteration of `at`, found by running it."""
    scope = state.scope(state.scope_root(writer))
    site = scope.site(writer.stmt)
    depth = len(state.loops_above(at)) + 1 if type(at.stmt) is For else 0
    outer = site.loops[:depth]
    writes = [a for a in site.accesses if a.write and a.memory is buffer.data]
    box = Access(buffer.data, buffer, tuple((r.min, r.extent) for r in span), True, (), (), None)
    return elements(inside(writes, site.loops[depth:]), outer) == elements([box], outer) is not None


def covered(state: ScheduleState, reader: StmtSRef, buffer: Buffer, at: StmtSRef,
            span: Sequence[Range]) -> bool:
    """Whether all that a block reads of a buffer in one iteration of `at` is in a region."""
    part = [not is_whole(have, dim) for have, dim in zip(span, buffer.shape)]
    if not any(part):
        return True
    analyzer = Analyzer()
    if type(at.stmt) is For:
        state.loop_domains_into(at, analyzer)
    for region in reader.stmt.reads:
        if region.buffer is not buffer:
            continue
        for want, have, asked in zip(region_at(state, reader, region, at), span, part):
            if not asked:
                continue
            low = op.less_equal(have.min, want.min)
            high = op.less_equal(op.add(want.min, want.extent), op.add(have.min, have.extent))
            if not (analyzer.can_prove(low) and analyzer.can_prove(high)):
                return False
    return True


def fixed(region: Sequence[Range], buffer: Buffer) -> tuple[Range, ...]:
    """A region that depends on no data: a dimension that does becomes all of it."""
    out: list[Range] = []
    for rng, dim in zip(region, buffer.shape):
        depends = any(type(n) is BufferLoad for e in (rng.min, rng.extent) for n in pre_order(e))
        out.append(Range.from_min_extent(IntImm(dim.dtype, 0), dim) if depends else rng)
    return tuple(out)


def whole(buffer: Buffer) -> tuple[Range, ...]:
    """All of a buffer."""
    return BufferRegion.full_region(buffer).region


__all__ = ["copy_holds", "covered", "fixed", "only_what_was_written", "place_of",
           "stored_in_time", "whole"]
