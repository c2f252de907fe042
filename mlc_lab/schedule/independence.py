"""Whether the iterations of loops may change places or run at the same time.

`conflict.py` says of two accesses whether they clash; here all that stands under a loop is asked.
Two updates of an element by one operator commute, so they do not count where iterations change
places, only where they run at the same time. Two kinds of memory do not count although iterations
touch the same elements of it:

* memory *private* to an iteration: touched nowhere else, each element written there before it is
  read;
* *settled* memory: every write of an element stores the same value, and each iteration writes what
  it reads. The parts of a stencil that neighbouring tiles compute twice are such.

What a block calls its iterators, or declares to read and write, plays no part in this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from weakref import WeakKeyDictionary

from ..arith import Analyzer, detect_iter_map
from ..arith.access import Access as PlacedAccess, Accesses, conjuncts
from ..arith.linear_form import follows
from ..arith.liveness import innermost_place
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, Call, IterVar, Let, PrimExpr, Range, Var
from ..tir.functor import free_vars, pre_order, substitute, uses_var
from ..tir.op import as_int
from ..tir.op.intrinsic import PURE, effect_of
from ..tir.stmt import Block, BlockRealize, BufferRegion, BufferStore, For, LetStmt, SeqStmt, Stmt
from .conflict import Bad, Clash, Relation, apart, first_clash, later, never, reversed_by
from .executed import stays_in_domains, told_apart, whole_mixed_radix
from .footprint import (
    Access, Loop, accesses_inside, allocates, binding_reads, footprint, instance, loops_of,
    made_inside,
)
from .reducer import same_places, update_of
from .served import all_served
from .state import ScheduleState, StmtSRef


def surroundings(sref: StmtSRef) -> list[Loop]:
    """What stands still around a statement: its loops, and the iterators of the blocks that it is
    in with their domains, outermost first."""
    out: list[Loop] = []
    at = sref.parent
    while at is not None:
        if type(at.stmt) is For:
            out += loops_of([at.stmt])
        else:
            out += [(iv.var, iv.dom.min, iv.dom.extent) for iv in reversed(at.stmt.iter_vars)]
        at = at.parent
    return out[::-1]


def commute(a: Access, b: Access) -> bool:
    """Whether two accesses may change places although they touch one element."""
    return a.update is not None and a.update == b.update or not (a.write or b.write)


# ------------------------------------------------------------------------------- loops


def clash_when_reordered(state: ScheduleState, chain: Sequence[StmtSRef], old: Sequence[PrimExpr],
                         new: Sequence[PrimExpr]) -> Clash | None:
    """Two executions of what is in the innermost of nested loops that clash and change their order;
    None if there are none.

    `old` and `new` say when it runs: lexicographically, by values of expressions over the loops.
    """
    nest = _Nest(state, chain)
    bad = reversed_by(old, new)

    def free(memory: Var) -> bool:
        return nest.private(memory) or nest.settled(memory)

    return nest.clash(bad, free, commute)


def clash_between_iterations(state: ScheduleState, loop: StmtSRef, but: Collection[Var] = (),
                             shared_scopes: Sequence[str] = (), lanes: bool = False
                             ) -> Clash | None:
    """Two executions in different iterations of a loop that clash; None if there are none.

    Memory of `but` does not count. The iterations run at the same time; each gets its own memory
    where lowering makes it so, but for that in `shared_scopes`, which they have together also where
    a block in the loop allocates it. Memory inside of a kernel is never "global". `lanes`: the
    iterations are lanes of vectors, which have the memory of threads together.
    """
    scopes = {*shared_scopes} - {"global"}
    inside = accesses_inside(loop.stmt.body, scopes) if allocates(loop.stmt.body, scopes) else ()
    nest = _Nest(state, [loop], inside)

    def free(memory: Var) -> bool:
        scope = memory.storage_scope.split(".")[0]
        return memory in but or scope not in shared_scopes and (
            nest.placed_inside(memory, lanes)) or (
            nest.settled(memory))

    return nest.clash(apart(loop.stmt.loop_var), free, lambda a, b: False)


class _Nest:
    """Nested loops, each of which holds nothing but the next, and all that is touched below."""

    def __init__(self, state: ScheduleState, chain: Sequence[StmtSRef],
                 inside: Sequence[Access] = ()) -> None:
        self.state, self.chain = state, chain
        self.outer = surroundings(chain[0])
        self.shared = loops_of([s.stmt for s in chain])
        self.groups: dict[Var, list[Access]] = {}
        for access in (*footprint(chain[-1].stmt.body), *inside):
            self.groups.setdefault(access.memory, []).append(access)

    def steady(self, buffer: Buffer) -> bool:
        """Whether nothing below writes a buffer."""
        return not any(a.write for a in self.groups.get(buffer.data, ()))

    def clash(self, bad: Bad, free: Callable[[Var], bool], but: Callable[[Access, Access], bool]
              ) -> Clash | None:
        """The first clash in memory that is not free of them."""
        for memory, accesses in self.groups.items():
            if not any(a.write for a in accesses):
                continue
            found = first_clash(accesses, accesses, self.shared, bad, self.outer, but, self.steady)
            if found is not None and not free(memory):
                return found
        return None

    def _home(self, memory: Var) -> tuple[StmtSRef, Buffer] | None:
        """The block around that allocates memory, and the buffer."""
        at = self.chain[0].parent
        while at is not None:
            if type(at.stmt) is Block:
                for buffer in at.stmt.alloc_buffers:
                    if buffer.data is memory:
                        return at, buffer
            at = at.parent
        return None

    def _accesses(self, memory: Var, under: Stmt) -> Sequence[PlacedAccess]:
        """All accesses of memory under a statement; none if they cannot be told."""
        buffers = {a.buffer for a in self.groups[memory]}
        buffer = next(iter(buffers), None)
        if len(buffers) != 1 or buffer is None:
            return ()
        walk = Accesses(buffers.__contains__)
        walk.visit(under)
        found = walk.found.get(buffer, ())
        return () if memory in walk.pointers else found

    def private(self, memory: Var) -> bool:
        """Whether memory is made outside and touched below only, where each iteration writes it
        before it reads it."""
        home = self._home(memory)
        if home is None:
            return False
        all_ = [a for a in footprint(home[0].stmt.body) if a.memory is memory]
        return len(all_) == len(self.groups[memory]) and self._served(memory)

    def _served(self, memory: Var) -> bool:
        return all_served(self.groups[memory], [*self.outer, *self.shared])

    def placed_inside(self, memory: Var, lanes: bool = False) -> bool:
        """Whether lowering allocates memory inside of the loop, also once that is vectorized."""
        home = self._home(memory)
        if home is None or any(as_int(d) is None for d in home[1].shape):
            return False
        if self._touched_beside(memory, home[0]):
            return False
        accesses = self._accesses(memory, self.state.func_of(home[0]).body)
        loop = self.chain[0].stmt
        if not accesses or not all(loop in a.path for a in accesses):
            return False  # it is touched outside as well
        place = innermost_place(home[1], accesses, loop if lanes else None)
        path = accesses[0].path
        return place in path and loop in path[:path.index(place) + 1]

    def _touched_beside(self, memory: Var, home: StmtSRef) -> bool:
        """Whether a statement beside the loop, or beside what it stands in, touches memory: seen at
        a glance, from what is remembered of those statements."""
        at = self.chain[0]
        while at is not home and at.parent is not None:
            within = at.parent.stmt.body
            if type(within) is SeqStmt:
                for stmt in within.seq:
                    own = stmt.block if type(stmt) is BlockRealize else stmt
                    if type(own) in (For, Block) and own is not at.stmt and any(
                            a.memory is memory for a in footprint(stmt)):
                        return True
            at = at.parent
        return False

    def settled(self, memory: Var, asked: tuple[Var, ...] = ()) -> bool:
        """Whether all writes of an element store the same value, while what is outside stands
        still, and each iteration writes what it reads."""
        writes = [a for a in self.groups[memory] if a.write]
        if any(a.update is not None for a in writes) or len({a.node for a in writes}) != 1 or type(
                writes[0].node) is not BufferStore or writes[0].spans is None:
            return False
        return self._determined(writes[0], (*asked, memory)) and self._served(memory)

    def _determined(self, write: Access, asked: tuple[Var, ...]) -> bool:
        """Whether the place of an element says what is stored there."""
        body = self.chain[-1].stmt.body
        iterators, lets, views = _bindings(body)
        anew = made_inside(body)  # in each iteration
        value = substitute(write.node.value, lets)
        used = dict.fromkeys(free_vars(value))
        for item in pre_order(value):
            if type(item) is Call and effect_of(item) != PURE:
                return False
            if type(item) is not BufferLoad:
                continue
            buffer = item.buffer
            while buffer in views:  # what a view shows depends on its place
                used.update(dict.fromkeys(v for r in views[buffer].region for v in free_vars(r)))
                buffer = views[buffer].buffer
            if buffer.data in anew or not self.steady(buffer) and (
                    buffer.data in asked or not self.settled(buffer.data, asked)):
                return False
        return all(never(write, write, self.shared, self.outer,
                         Relation((), (iterators.get(var, var),)), self.steady)
                   for var in used if var.dtype != "handle")


def _bindings(stmt: Stmt) -> tuple[dict[Var, PrimExpr], dict[Var, PrimExpr],
                                    dict[Buffer, BufferRegion]]:
    """What the iterators of blocks under a statement are bound to, in terms of loops, what
    variables of lets are, and what views show."""
    iterators: dict[Var, PrimExpr] = {}
    lets: dict[Var, PrimExpr] = {}
    views: dict[Buffer, BufferRegion] = {}
    for item in pre_order(stmt):
        if type(item) is BlockRealize:
            views.update((m.buffer, m.source) for m in item.block.match_buffers)
            for iv, bound in zip(item.block.iter_vars, item.iter_values):
                iterators[iv.var] = substitute(bound, {**lets, **iterators})
        elif type(item) in (LetStmt, Let):
            lets[item.var] = substitute(item.value, lets)
    return iterators, lets, views


# ------------------------------------------------------------------------------- blocks


def has_one_to_one_binding(state: ScheduleState, block: StmtSRef) -> bool:
    """Whether different values of the loops around the block are different values of its
    iterators, and other loops run but once. Where a predicate leaves some out, so of the others."""
    realize = state.realize_of(block)
    chain = tuple(s.stmt for s in state.loops_above(block))
    key = ("one to one", realize.iter_values, tuple((lp.loop_var, lp.min, lp.extent)
                                                    for lp in chain))
    found = state.cache.get(key)
    if found is None:
        found = not chain or bool(realize.iter_values) and (
            whole_mixed_radix(realize.iter_values, chain) is not None or bool(detect_iter_map(
                realize.iter_values, {lp.loop_var: Range.from_min_extent(lp.min, lp.extent)
                                      for lp in chain}, True, "bijective", Analyzer()).indices))
        state.cache[key] = found
    return found


def chooses_by_results(realize: BlockRealize) -> bool:
    """Whether a predicate or binding reads memory that the block writes: no kind of an iterator
    says anything of that."""
    written = {w.buffer.data for w in realize.block.writes}
    return any(a.memory in written for a in binding_reads(realize))


def labels_are_true(state: ScheduleState, block: StmtSRef) -> bool:
    """Whether the kinds of a block's iterators say the truth about its body: executions at
    different values of spatial iterators never clash, and those that differ in reduction iterators
    alone commute, apart from the init. Other kinds promise nothing."""
    return why_labels_are_false(state, block) == ""


#: what was found of the kinds of blocks, at a glance (None) and by whether their domains hold: most
#: primitives ask, and leave the block as it is
_labels: WeakKeyDictionary[Block, dict[bool | None, str]] = WeakKeyDictionary()


def why_labels_are_false(state: ScheduleState, block: StmtSRef) -> str:
    """What is wrong with the kinds of a block's iterators, "" if nothing is: "other" where one is
    neither spatial nor a reduction, "spatial" where executions at different values clash, "reduce"
    where those at different values do not commute."""
    found = _labels.setdefault(block.stmt, {})
    if None not in found:
        found[None] = "" if _plainly_labelled(block.stmt, False) else "not seen"
    if found[None] == "":
        return ""
    within = _stays_in_domains(state, block)  # nobody has checked it
    if within not in found:
        found[within] = _check_labels(block.stmt, within)
    return found[within]


def _stays_in_domains(state: ScheduleState, block: StmtSRef) -> bool:
    realize = state.realize_of(block)
    loops = [s.stmt for s in state.loops_above(block)]
    key = ("in domains", realize.iter_values, realize.predicate,
           tuple(iv.dom for iv in block.stmt.iter_vars),
           tuple((lp.loop_var, lp.min, lp.extent) for lp in loops))
    if key not in state.cache:
        state.cache[key] = stays_in_domains(realize, loops)
    return state.cache[key]


def _kinds(block: Block) -> tuple[list[IterVar], list[IterVar]]:
    """The spatial iterators of a block, and those of a reduction."""
    kinds = (IterVar.DataPar, IterVar.CommReduce)
    spatial, reduced = ([iv for iv in block.iter_vars if iv.iter_type == k] for k in kinds)
    return spatial, reduced


def _domain(iv: IterVar, within: bool) -> Loop:
    """An iterator with its domain, or with one that says nothing."""
    var = iv.var
    return ((var, iv.dom.min, iv.dom.extent) if within else
            (var, Var("low", var.dtype), Var("extent", var.dtype)))


def _check_labels(block: Block, within: bool) -> str:
    """`why_labels_are_false` of a block whose bindings stay within their domains or may not."""
    spatial, reduced = _kinds(block)
    if len(spatial) + len(reduced) != len(block.iter_vars):
        return "other"
    if _plainly_labelled(block, within):
        return ""
    still, moving = ([_domain(iv, within) for iv in kind] for kind in (spatial, reduced))
    accesses = footprint(block)
    written = {a.memory for a in accesses if a.write}

    def steady(buffer: Buffer) -> bool:
        return buffer.data not in written

    if first_clash(accesses, accesses, [*still, *moving], apart(*(iv.var for iv in spatial)),
                   steady=steady) is not None:
        return "spatial"
    updates = [a for a in accesses if not a.init]
    clash = first_clash(updates, updates, moving, apart(*(iv.var for iv in reduced)), still,
                        commute, steady)
    return "" if clash is None else "reduce"


def _plainly_labelled(block: Block, within: bool) -> bool:
    """Whether the kinds are true at a glance: the block is one store, whose places hold each
    spatial iterator as it is, or as a digit, so that different values are different elements; of
    what it stores to it reads that element alone; and with iterators of a reduction it is an
    update. `within`: the iterators stay in their domains."""
    spatial, reduced = _kinds(block)
    store, init = block.body, block.init
    if len(spatial) + len(reduced) != len(block.iter_vars) or type(store) is not BufferStore or (
            block.match_buffers or block.alloc_buffers):
        return False
    if store.predicate is not None or store.buffer.strides:
        return False
    if init is not None and (type(init) is not BufferStore or init.buffer is not store.buffer
                             or not same_places(init.indices, store.indices)):
        return False
    hidden = [iv.var for iv in spatial if not any(iv.var is index for index in store.indices)
              and not (within and op.is_const_int(iv.dom.extent, 1))]
    if hidden and not told_apart(store.indices, [
            _domain(iv, within) for iv in block.iter_vars]).issuperset(hidden):
        return False
    memory = store.buffer.data
    for node in (*pre_order(store), *(pre_order(init) if init is not None else ())):
        if type(node) is BufferLoad:
            if node.buffer.data is memory and not (
                    node.buffer is store.buffer and same_places(node.indices, store.indices)):
                return False
        elif type(node) is Call and effect_of(node) != PURE or isinstance(node, Var) and (
                node.dtype == "handle"):
            return False
    return not reduced or update_of(store)[0] is not None


def starts_with_init(state: ScheduleState, block: StmtSRef) -> bool:
    """Whether the init of a reduction runs in the first iteration of the loops that drive it, for
    each value of the other loops at which the block runs at all."""
    facts, key = state.facts(state.scope_root(block)), ("starts with init", block.stmt)
    if key not in facts:
        facts[key] = _starts_with_init(state, block)
    return facts[key]


def _starts_with_init(state: ScheduleState, block: StmtSRef) -> bool:
    realize = state.realize_of(block)
    chain = [s.stmt for s in state.loops_above(block)]
    driven = [(iv, value) for iv, value in zip(block.stmt.iter_vars, realize.iter_values)
              if iv.iter_type == IterVar.CommReduce]
    first = {lp.loop_var: lp.min for lp in chain
             if any(uses_var(value, lp.loop_var) for _, value in driven)}
    around = [*surroundings(block)]
    parts = conjuncts(realize.predicate)
    others = [p for p in parts if not uses_var(p, first)]
    return all(follows(op.equal(substitute(value, first), iv.dom.min), around, others)
               for iv, value in driven) and all(
        follows(substitute(p, first), around, others) for p in parts if uses_var(p, first))


def starts_again(state: ScheduleState, block: StmtSRef, inner: Sequence[StmtSRef]) -> Clash | None:
    """An update of a reduction, and its init that wipes it out in a later iteration of the loops
    `inner`, the innermost ones around it; None if there is none. Different values of its spatial
    iterators must be different elements."""
    if has_one_to_one_binding(state, block):  # each value is met once, so the start is
        return None
    own = instance(state.realize_of(block))
    starts, updates = ([a for a in own if a.init is init] for init in (True, False))
    loops = [s.stmt for s in inner]
    return first_clash(updates, starts, loops_of(loops),
                       later([lp.loop_var for lp in loops], False), surroundings(inner[0]))


__all__ = ["chooses_by_results", "clash_between_iterations", "clash_when_reordered", "commute",
           "has_one_to_one_binding", "labels_are_true", "starts_again", "starts_with_init",
           "surroundings", "why_labels_are_false"]
