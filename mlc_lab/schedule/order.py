"""What a block would pass on its way to another place, and whether that changes what anyone reads.

A block that is computed elsewhere passes other executions: those that ran before it and would run
after it, or the other way round. The move is legal if none of them touches an element that the
block touches, one of the two writing it. What computes again what is there already, in a buffer of
the scope's own each element of which only has one value (`Flow.settled`), may be passed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..ir.node import Node
from ..tir.expr import IterVar, Var
from ..tir.functor import uses_var
from ..tir.stmt import (
    Allocate, AllocateConst, DeclBuffer, For, IfThenElse, LetStmt, Stmt, While,
)
from .conflict import Bad, Clash, always, first_clash, later
from .dependency import DEFINITIONS, BlockScope, Site, inside
from .error import Refusal
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
    again = _turns_again(scope, site, place, [*here, *there], but)
    if again is not None:
        return again
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


def _turns_again(scope: BlockScope, site: Site, place: Place, moved: Sequence[Access],
                 but: Callable[[Access, Access], bool] | None) -> Passed | None:
    """A clash with something in a `while` that is around the block or its place: there all that
    follows comes before as well, in the next turn."""
    around = {w for _, w in site.wrappers if type(w) is While}
    for other in scope.sites:
        for _, stmt in other.wrappers:
            if type(stmt) is not While or other is site:
                continue
            inside_it = [s.index for s in scope.sites if any(w is stmt for _, w in s.wrappers)]
            if stmt in around or min(inside_it) <= place.boundary <= max(inside_it) + 1:
                found = first_clash(inside(moved, (*site.loops, *place.loops)), other.within(0),
                                    bad=always, outer=scope.around, but=but, steady=scope.steady)
                if found is not None:
                    return Passed(other, found, True)
    return None


def stays_within(scope: BlockScope, site: Site, depth: int, made: Node,
                 conditions: bool = True, inside_definitions: bool = True) -> None:
    """What is made of a block outside of all but the first `depth` loops around it (`made`) is not
    under a condition there that is around the block, and uses nothing that is defined later.

    `inside_definitions`: it goes inside of the definitions with which the body of a loop begins.
    """
    above: set[Stmt] = set()
    if inside_definitions:
        body = site.loops[depth - 1].body if depth else scope.body
        while isinstance(body, DEFINITIONS):
            above.add(body)
            body = body.body
    for outside, stmt in site.wrappers:
        if outside < depth or stmt in above:
            continue
        if isinstance(stmt, DEFINITIONS):
            if not uses_var(made, _defined(stmt)):
                continue
        elif type(stmt) not in (IfThenElse, While) or not conditions:
            continue
        raise Refusal("conditions_stay", f"block {site.name} stands in a statement "
                      f"({type(stmt).__name__}) that says whether it runs or defines what it uses, "
                      "and what is made of it would stand outside", nodes=[stmt],
                      hint="choose a place inside of that statement")


def _defined(stmt: Allocate | AllocateConst | DeclBuffer | LetStmt) -> Var:
    if isinstance(stmt, LetStmt):
        return stmt.var
    return stmt.buffer.data if isinstance(stmt, DeclBuffer) else stmt.buffer_var


class Flow:
    """Which memory of a scope has settled values: computed again, an element is what it was."""

    def __init__(self, scope: BlockScope) -> None:
        self.scope = scope
        self._settled: dict[Var, bool] = {}

    def settled(self, memory: Var) -> bool:
        """Whether every element is only ever given one value.

        So it is if nobody writes the memory in the scope, or one block does that may run again and
        reads settled memory only, and of that no sums that grow in a loop around both.
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
                all(self.settled(m) and not self._grows(m, writers[0].loops)
                    for m in writers[0].reads if m not in writers[0].writes))
        self._settled[memory] = found
        return found

    def _grows(self, memory: Var, loops: Sequence[For]) -> bool:
        """Whether in some loops, where they are around its writer, sums in a memory are not whole
        yet."""
        return any(drives_reduction(site, lp.loop_var)
                   for site in self.scope.sites if memory in site.writes
                   for lp in loops[:common(loops, site.loops)])

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
            return not any(self._grows(write.memory, loops) for loops in places)

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


__all__ = ["Flow", "Passed", "Place", "common", "drives_reduction", "flow", "passed",
           "stays_within"]
