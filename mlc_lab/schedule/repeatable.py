"""Which blocks may run again, or their iterations in another order, and leave the same.

The labels of iterators are what somebody says: "S" for a loop that adds to one element, an init
that sets other elements than the update. Here it is found from what the body touches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar
from weakref import WeakKeyDictionary

from ..arith import estimate_region_strict_bound
from ..arith.expr_util import same
from ..arith.int_set import IntSet
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, IterVar, PrimExpr, Range
from ..tir.functor import pre_order, uses_var
from ..tir.stmt import Block, BufferStore
from .conflict import apart, first_clash
from .footprint import WORLD, Access, Loop, footprint, made_inside
from .served import serves

T = TypeVar("T")
_repeatable: "WeakKeyDictionary[Block, str]" = WeakKeyDictionary()
_commutes: "WeakKeyDictionary[Block, bool]" = WeakKeyDictionary()


def _remembered(table: WeakKeyDictionary[Block, T]
                ) -> Callable[[Callable[[Block], T]], Callable[[Block], T]]:
    def decorate(fn: Callable[[Block], T]) -> Callable[[Block], T]:
        def ask(block: Block) -> T:
            found = table.get(block)
            if found is None:
                found = table[block] = fn(block)
            return found

        ask.__doc__ = fn.__doc__
        return ask

    return decorate


def iterators(block: Block) -> list[Loop]:
    """The iterators of a block as loops of accesses."""
    return [(iv.var, iv.dom.min, iv.dom.extent) for iv in block.iter_vars]


@_remembered(_repeatable)
def why_not_repeatable(block: Block) -> str:
    """Why a block that runs again for the same iterators may leave something else, or its
    iterations in another order; "" if neither can be.

    It may read nothing that it writes, but a reduction the sums that its own init has set; and no
    two iterations may write one element, but those of one reduction (whose order is another
    question: see `order_matters`).
    """
    accesses = footprint(block)
    writes = [a for a in accesses if a.write]
    written = {a.memory for a in writes}
    loops = iterators(block)

    def steady(buffer: Buffer) -> bool:
        return buffer.data not in written

    reason = _init_fits(block, writes) if block.init is not None else ""
    if reason:
        return reason
    for read in accesses:
        if read.write or read.memory not in written:
            continue
        if block.init is not None and any(same_place(read, w) for w in writes):
            continue
        if first_clash([read], writes, loops, steady=steady) is not None and not fills_itself(
                block, read):
            return f"it reads {name_of(read)}, which it also writes"
    spatial = [iv.var for iv in block.iter_vars
               if block.init is None or iv.iter_type != IterVar.CommReduce]
    if WORLD in written:
        return "it calls a function whose effects are not known"
    found = first_clash(writes, writes, loops, apart(*spatial), steady=steady)
    if found is not None:
        return f"several of its iterations write one element of {name_of(found.a)}"
    return ""


def _init_fits(block: Block, writes: list[Access]) -> str:
    """Why the init does not set just what the update adds to, "" if it does."""
    reduced = {iv.var for iv in block.iter_vars if iv.iter_type == IterVar.CommReduce}
    starts, updates = ([a for a in writes if a.init is init] for init in (True, False))
    for some, others, one, other in ((updates, starts, "update", "init"),
                                     (starts, updates, "init", "update")):
        for a in some:
            if not any(same_place(a, b) for b in others):
                return f"its {one} writes elements of {name_of(a)} that its {other} may not write"
    for a in updates:
        if any(uses_var(s[0], reduced) for s in a.spans or () if s is not None):
            return f"a reduction iterator indexes {name_of(a)}"
    return ""


def same_place(a: Access, b: Access) -> bool:
    """Whether two accesses touch the same box in one iteration, all of it and always."""
    if a.memory is not b.memory or a.buffer is not b.buffer:
        return False
    first, second = box_of(a), box_of(b)
    return first is not None and second is not None and all(
        same(x.min_value, y.min_value) and same(x.max_value, y.max_value)
        for x, y in zip(first, second))


def builds_on(block: Block, buffer: Buffer) -> bool:
    """Whether a block reads what a buffer held before it wrote there."""
    return any(a.memory is buffer.data and not a.write and not fills_itself(block, a)
               for a in footprint(block))


def fills_itself(block: Block, read: Access) -> bool:
    """Whether a block has written before, for the same iterators, what it reads: nothing comes in
    from outside. A reduction reads what its own init has set."""
    before: list[Access] = []
    seen = False
    starts = sum(iv.iter_type == IterVar.CommReduce for iv in block.iter_vars)
    for access in footprint(block):
        seen = seen or access is read
        if access.write and access.memory is read.memory:
            if access.init and not read.init and len(access.conditions) == starts and (
                    same_place(access, read)):
                return True
            if not seen:
                before.append(access)
    return any(serves(w, read, iterators(block)) for w in before)


def changes_itself(block: Block, exprs: Iterable[PrimExpr]) -> bool:
    """Whether expressions are made of memory that a block writes, or that is its own: inside of it
    they are not what they are where it is entered."""
    read = {n.buffer.data for e in exprs for n in pre_order(e) if type(n) is BufferLoad}
    if not read:
        return False
    own = made_inside(block, views=True)
    return not own.isdisjoint(read) or any(
        a.write and a.memory in read for a in footprint(block))


def box_of(access: Access) -> list[IntSet] | None:
    """The box that an access touches as its own loops run; None if it is none that is filled."""
    if access.spans is None or None in access.spans:
        return None
    region = [Range.from_min_extent(*s) for s in access.spans if s is not None]
    if not access.loops:
        return [IntSet.from_range(r) for r in region]
    domains = {v: Range.from_min_extent(low, n) for v, low, n in access.loops}
    return estimate_region_strict_bound(region, domains)


def name_of(access: Access) -> str:
    """What an access touches, for a message."""
    return access.buffer.name if access.buffer is not None else access.memory.name


@_remembered(_commutes)
def order_matters(block: Block) -> bool:
    """Whether a reduction gives something else if its iterations run in another order."""
    if block.init is None or not any(iv.iter_type == IterVar.CommReduce for iv in block.iter_vars):
        return False
    accesses = [a for a in footprint(block) if not a.init]
    written = {a.memory for a in accesses if a.write}
    updates = {a.update for a in accesses if a.memory in written}
    return len(updates) != 1 or None in updates


def one_store(block: Block) -> bool:
    """Whether all that a block does is one store, so that it reads before it writes."""
    return type(block.body) is BufferStore and block.init is None


__all__ = ["box_of", "builds_on", "changes_itself", "fills_itself", "iterators", "name_of",
           "one_store", "order_matters", "same_place", "why_not_repeatable"]
