"""What a block would pass on its way to another place, and whether that changes what anyone reads.

A block that is computed elsewhere passes other executions: those that ran before it and would run
after it, or the other way round. The move is legal if none of them touches an element that the
block touches, one of the two writing it. What computes again what is there already, in a buffer of
the scope's own each element of which only has one value (`Flow.settled`), may be passed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..tir.expr import IterVar, Var
from ..tir.functor import uses_var
from ..tir.stmt import For
from .conflict import Bad, Clash, always, first_clash, later
from .dependency import BlockScope, Site, inside
from .footprint import WORLD, Access, loops_of
from .repeatable import why_not_repeatable


class Place(NamedTuple):
    """In one iteration of `loops` (from the scope inwards), before the sites from `boundary` on."""

    loops: tuple[For, ...]
    boundary: int


class Passed(NamedTuple):
    """What a block may not pass: another site, and two iterations that would change places."""

    site: Site
    clash: Clash
    own_first: bool

    def text(self, name: str) -> str:
        """Two iterations that clash, for a message; `name` is the block that moves."""
        names = (name, self.site.name)
        return self.clash.text(*(names if self.own_first else names[::-1]))


def common(a: Sequence[For], b: Sequence[For]) -> int:
    """How many outer loops two places share."""
    count = 0
    for x, y in zip(a, b):
        if x is not y:
            break
        count += 1
    return count


def passed(scope: BlockScope, site: Site, place: Place, there: Sequence[Access],
           forward: bool, but: Callable[[Access, Access], bool] | None = None,
           here: Sequence[Access] | None = None) -> Passed | None:
    """What stands in the way of computing `site` at `place`, where its accesses are `there` (over
    all loops inside of `place.loops`); None if nothing does.

    `forward`: the place is later than where the block stands. Its own executions are not compared
    with each other. `but` says which pairs of accesses do not count. `here`: only these accesses of
    the site move, all if it is not given.
    """
    here = site.accesses if here is None else here
    read = {a.memory for a in (*here, *there) if not a.write}
    written = {a.memory for a in (*here, *there) if a.write}
    kept = common(site.loops, place.loops)
    outer = [*scope.around, *loops_of(site.loops[:kept])]
    for other in scope.sites:
        if other is site or other.writes.isdisjoint(read) and other.writes.isdisjoint(written) and (
                other.reads.isdisjoint(written)) and not (
                WORLD in written and any(a.memory is WORLD for a in other.accesses)):
            continue
        if common(other.loops, site.loops[:kept]) < kept:
            continue
        old, new = common(other.loops, site.loops), common(other.loops, place.loops)
        if old > kept:  # in loops that the block leaves
            shared = site.loops[kept:old]
            own, theirs = inside(here, site.loops[old:]), other.within(old)
            bad: Bad = later([lp.loop_var for lp in shared],
                             (other.index > site.index) == forward)
        elif new > kept:  # in loops that the block comes into
            shared = place.loops[kept:new]
            own, theirs = inside(there, place.loops[new:]), other.within(new)
            bad = later([lp.loop_var for lp in shared], (other.index < place.boundary) == forward)
        else:
            low, high = ((site.index, place.boundary) if forward else
                         (place.boundary - 1, site.index))
            if not low < other.index < high:
                continue
            shared, bad = (), always
            own, theirs = inside(here, site.loops[kept:]), other.within(kept)
        own_first = (old > kept) == forward
        first, second = (own, theirs) if own_first else (theirs, own)
        found = first_clash(first, second, loops_of(shared), bad, outer, but, scope.steady)
        if found is not None:
            return Passed(other, found, own_first)
    return None


class Flow:
    """Which memory of a scope has settled values: computed again, an element is what it was."""

    def __init__(self, scope: BlockScope) -> None:
        self.scope = scope
        self._settled: dict[Var, bool] = {}

    def settled(self, memory: Var) -> bool:
        """Whether every element is only ever given one value.

        So it is if nobody writes the memory in the scope, or one block does that may run again and
        reads settled memory only.
        """
        known = self._settled.get(memory)
        if known is not None:
            return known
        self._settled[memory] = False  # while it is found out: what depends on itself is not
        writers = [s for s in self.scope.sites if memory in s.writes]
        if not writers:
            found = True
        else:
            block = writers[0].block
            found = len(writers) == 1 and block is not None and not why_not_repeatable(block) and (
                all(self.settled(m) for m in writers[0].reads if m not in writers[0].writes))
        self._settled[memory] = found
        return found

    def may_pass(self, site: Site, places: Sequence[Sequence[For]]) -> Callable[[Access, Access],
                                                                                bool]:
        """Pairs of accesses that do not count when `site` is computed later: it reads what is
        settled, and the value was there before, since the memory is new in the scope.

        `places` are the loops around where it is and where it goes. Inside of loops that drive a
        reduction its sums are not there yet.
        """

        def but(a: Access, b: Access) -> bool:
            write, read = (a, b) if a.write else (b, a)
            if read.write or write.memory in site.writes or write.memory not in self.scope.own or (
                    not self.settled(write.memory)):
                return False
            writer = next(s for s in self.scope.sites if write.memory in s.writes)
            return not any(drives_reduction(writer, lp.loop_var) for loops in places
                           for lp in loops[:common(loops, writer.loops)])

        return but


def drives_reduction(site: Site, loop_var: Var) -> bool:
    """Whether a loop drives a reduction iterator of a block."""
    block = site.block
    if block is None or block.init is None:
        return False
    return any(iv.iter_type == IterVar.CommReduce and uses_var(value, loop_var)
               for iv, value in zip(block.iter_vars, site.node.iter_values))


def flow(scope: BlockScope) -> Flow:
    """The flow of a scope, made once."""
    if scope.flow is None:
        scope.flow = Flow(scope)
    return scope.flow


__all__ = ["Flow", "Passed", "Place", "common", "drives_reduction", "flow", "passed"]
