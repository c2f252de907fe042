"""What a statement really reads and writes: every access in it, in the terms of the loops around.

`T.reads` and `T.writes` are what somebody says. What moves, copies or reorders blocks must know
what is: loads and stores in the body, in the init and in the blocks within, through
`T.match_buffer` and through pointers. `footprint` finds them one by one; what it found is
remembered for as long as the statement lives.

A pointer that is handed to a call says no more than that its memory is used. Where the block around
declares a region of that buffer, the declaration is believed, as nothing else tells; where it does
not, all of the buffer is taken to be read and written.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from ..arith.linear_form import is_steady, unsteady
from ..ir.node import NODE_TYPES
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import (
    BinaryOp, BufferLoad, Call, IntImm, IterVar, Let, Not, PrimExpr, Ramp, Var,
)
from ..tir.functor import Mutator, all_statements, leaves_loop, pre_order, substitute
from ..tir.op.intrinsic import PURE, READS, effect_of
from ..tir.stmt import (
    TRUE, Allocate, AllocateConst, Block, BlockRealize, BufferRegion, BufferStore, DeclBuffer, For,
    IfThenElse, LetStmt, Stmt, While,
)
from .reducer import tuple_update, update_of

if TYPE_CHECKING:
    from ..ir.node import Node

#: one dimension of a region: its first index and how many there are; None: all there are
Span = tuple[PrimExpr, PrimExpr] | None
Loop = tuple[Var, PrimExpr, PrimExpr]  # (variable, first value, extent)

#: parts of an index, written out, beyond which nothing is said of it
_PARTS = 2_000
_ONE = {"int32": IntImm("int32", 1), "int64": IntImm("int64", 1)}


class Access(NamedTuple):
    """One place where memory is read or written.

    `memory` is the pointer that all views of the memory share; `buffer` the buffer that is no view,
    None where only a pointer is seen. `spans` gives the region, a dimension each, or is None: all
    of it. It speaks of variables of loops and blocks around the statement and of `loops`, those
    inside of it. `conditions` hold where the access happens. `node` is what is underlined, `block`
    the outermost block in the statement that the access is in (None if the statement is the block),
    `pointer` says that it was not seen itself: a call was given a pointer. `update` is the operator
    by which a store combines what is there with something else (see `reducer.update_of`), or None:
    two accesses with the same one may change places. `init` says that it is in the init of a
    reduction.
    """

    memory: Var
    buffer: Buffer | None
    spans: tuple[Span, ...] | None
    write: bool
    loops: tuple[Loop, ...]
    conditions: tuple[PrimExpr, ...]
    node: Any
    block: Block | None = None
    pointer: bool = False
    update: Any = None
    init: bool = False

    def bound(self, table: Mapping[Var, PrimExpr], loops: Sequence[Loop] = (),
              conditions: Sequence[PrimExpr] = (), block: Block | None = None) -> "Access":
        """The access with variables replaced, inside further loops and under further conditions;
        with `block` as one in that block."""
        spans, inner, own = self.spans, self.loops, self.conditions
        if table:
            spans = spans and tuple([
                s and (_replaced(s[0], table), _replaced(s[1], table)) for s in spans])
            inner = tuple([(v, _replaced(low, table), _replaced(n, table))
                           for v, low, n in inner])
            own = tuple([_replaced(c, table) for c in own])
        return Access(self.memory, self.buffer, spans, self.write, (*loops, *inner),
                      (*conditions, *own), self.node, block or self.block, self.pointer,
                      self.update, self.init)


def _is_small(e: PrimExpr) -> bool:
    return next(itertools.islice(pre_order(e), _PARTS, None), None) is None


def _replaced(e: PrimExpr, table: Mapping[Var, PrimExpr]) -> PrimExpr:
    """`substitute`, without a call for what most indices and bounds are."""
    if type(e) is IntImm:
        return e
    return table.get(e, e) if type(e) is Var else substitute(e, table)


_found: "WeakKeyDictionary[Stmt, tuple[Access, ...]]" = WeakKeyDictionary()


def footprint(stmt: Node) -> tuple[Access, ...]:
    """Every access of a statement (or an expression), in program order.

    Of a Block: in terms of its iterators, its init first; what it allocates itself is left out.
    """
    if not isinstance(stmt, Stmt):
        return _accesses(stmt)
    found = _found.get(stmt)
    if found is None:
        found = _found[stmt] = _accesses(stmt)
    return found


def _accesses(node: Node) -> tuple[Access, ...]:
    walk = _Walk()
    if type(node) is Block:
        walk.block(node)
        # what is remembered of a block must not keep it alive
        return tuple(a._replace(block=None) for a in walk.out if a.memory not in walk.inner)
    walk.visit(node)
    return tuple(a for a in walk.out if a.memory not in walk.inner)


def allocates(stmt: Stmt, scopes: Collection[str]) -> bool:
    """Whether a block in a statement allocates memory in one of some scopes."""
    return any(b.scope.split(".")[0] in scopes for s in all_statements(stmt) if type(s) is Block
               for b in s.alloc_buffers)


def made_inside(stmt: Stmt, views: bool = False) -> set[Var]:
    """The memory that a statement allocates itself; with `views` also what it declares to be one
    (`T.match_buffer`)."""
    found: set[Var] = set()
    for s in all_statements(stmt):
        if type(s) is Block:
            found.update(b.data for b in s.alloc_buffers)
            if views:
                found.update(m.buffer.data for m in s.match_buffers)
        elif isinstance(s, (Allocate, AllocateConst)):
            found.add(s.buffer_var)
    return found


def accesses_inside(stmt: Stmt, scopes: Collection[str]) -> tuple[Access, ...]:
    """The accesses of memory in some scopes that blocks in a statement allocate: `footprint` leaves
    them out, since each run of the block has its own. Threads have one memory in "shared"."""
    walk = _Walk()
    walk.whole = True
    walk.visit(stmt)
    return tuple(a for a in walk.out if a.memory in walk.inner and a.buffer is not None
                 and a.buffer.scope.split(".")[0] in scopes)


def loops_of(loops: Sequence[For]) -> list[Loop]:
    """Loops as accesses have them."""
    return [(lp.loop_var, lp.min, lp.extent) for lp in loops]


def instance(realize: BlockRealize, loops: Sequence[Any] = ()) -> tuple[Access, ...]:
    """The accesses of one execution site of a block in terms of the loops around it.

    `loops` (For, outermost first) are made loops of the accesses: all their iterations count.
    """
    block = realize.block
    table = {iv.var: v for iv, v in zip(block.iter_vars, realize.iter_values)}
    around = tuple(loops_of(loops))
    conditions = () if realize.predicate is TRUE or op.is_const_int(realize.predicate, 1) else (
        realize.predicate,)
    own = [a.bound(table, around, conditions, block) for a in footprint(block)]
    return (*binding_reads(realize), *own)


def binding_reads(realize: BlockRealize) -> tuple[Access, ...]:
    """What is read to compute the values of a block's iterators and its predicate."""
    if all(map(_is_arithmetic, realize.iter_values)) and _is_arithmetic(realize.predicate):
        return ()
    walk = _Walk()
    for value in (*realize.iter_values, realize.predicate):
        walk.visit(value)
    return tuple(walk.out)


def choice_reads(realize: BlockRealize, loops: Sequence[For]) -> tuple[Access, ...]:
    """What is read to tell which iterations of a block run: for its bindings and its predicate, and
    for the bounds of loops around it."""
    bounds = [e for lp in loops for e in (lp.min, lp.extent) if not _is_arithmetic(e)]
    return (*binding_reads(realize), *(a for e in bounds for a in footprint(e)))


#: expressions that read no memory if their operands do not
_ARITHMETIC = {NODE_TYPES[name] for name in (
    "Add", "Sub", "Mul", "FloorDiv", "FloorMod", "Min", "Max", "EQ", "NE", "LT", "LE", "GT", "GE",
    "And", "Or")}


def _is_arithmetic(e: PrimExpr) -> bool:
    """Whether it is seen at a glance that an expression reads no memory."""
    stack: list[Any] = [e]
    while stack:
        item = stack.pop()
        kind = item.__class__
        if kind in _ARITHMETIC:
            stack += (item.a, item.b)
        elif kind is not IntImm and (kind is not Var or item.dtype == "handle"):
            return False
    return True


def reads_memory(e: PrimExpr) -> bool:
    """Whether an expression reads memory, or calls what may."""
    return any(type(n) is BufferLoad or type(n) is Call and effect_of(n) != PURE
               for n in pre_order(e))


class _Walk:
    """Collects accesses; `loops` and `conditions` are those around the node that is visited."""

    def __init__(self) -> None:
        self.out: list[Access] = []
        self.loops: tuple[Loop, ...] = ()
        self.conditions: tuple[PrimExpr, ...] = ()
        #: variables that are replaced: iterators of blocks within, lets
        self.table: dict[Var, PrimExpr] = {}
        #: how many parts those have that have many, and those that have too many to go on with
        self.parts: dict[Var, int] = {}
        self.large: set[Var] = set()
        #: view -> (buffer it is a view of, its spans there)
        self.views: dict[Buffer, tuple[Buffer, tuple[Span, ...]]] = {}
        #: pointer -> a buffer that has it
        self.owners: dict[Var, Buffer] = {}
        #: pointers to memory made inside
        self.inner: set[Var] = set()
        #: the outermost block around the node
        self.site: Block | None = None
        #: what the nearest block declares: (pointer, written?) -> regions
        self.declared: dict[tuple[Var, bool], list[BufferRegion]] = {}
        #: the operator of the store around, and the loads of what it combines with
        self.update: Any = None
        self.own: Sequence[BufferLoad] = ()
        #: the operator of all stores of the block around, if they update several buffers at once
        self.together: Any = None
        self.init = False
        #: whether something leaves the loop around the node early
        self.leaves = False
        #: whether what a block allocates itself is looked at too
        self.whole = False

    # ------------------------------------------------------------------------- notes

    def now(self, e: PrimExpr) -> PrimExpr:
        """An expression in terms of what is not replaced."""
        if self.large and self.is_large(e):
            return unsteady("too large", e.dtype)
        e = substitute(e, self.table) if self.table else e
        return self.seen_from_outside(e) if self.inner or self.views else e

    def seen_from_outside(self, e: PrimExpr) -> PrimExpr:
        """An expression without memory that is made inside, which is anew in each iteration: what
        it reads of that is not known. Of a view it reads what that is a view of."""
        if _is_arithmetic(e):
            return e
        return _Outside(self).visit(e)

    def span(self, low: PrimExpr, extent: PrimExpr) -> Span:
        """A part of a dimension, or None where it is not known."""
        if not (self.large or self.inner or self.views):
            return (substitute(low, self.table), extent) if self.table else (low, extent)
        low, extent = self.now(low), self.now(extent)
        return (low, extent) if is_steady(low) and is_steady(extent) else None

    def access_from_outside(self, access: Access) -> Access:
        """`seen_from_outside` of all that is said of an access."""
        see = self.seen_from_outside
        return access._replace(
            spans=access.spans and tuple(s and self.span(*s) for s in access.spans),
            loops=tuple((v, see(low), see(n)) for v, low, n in access.loops),
            conditions=tuple(map(see, access.conditions)))

    def is_large(self, e: PrimExpr) -> bool:
        """Whether an expression is made of one that has too many parts to be written out."""
        return bool(self.large) and any(type(n) is Var and n in self.large for n in pre_order(e))

    def name(self, var: Var, value: PrimExpr) -> None:
        """Put the value in the place of a variable. What is used twice doubles with each level."""
        count = sum(self.parts.get(n, 1) if type(n) is Var else 1 for n in pre_order(value)) if (
            self.parts or not isinstance(value, (Var, IntImm))) else 1
        if count > 1:
            self.parts[var] = count
        if count > _PARTS or self.is_large(value):
            self.large.add(var)
        else:
            self.table[var] = self.now(value)

    def forget(self, var: Var) -> None:
        """The variable is not known any more."""
        self.table.pop(var, None)
        self.parts.pop(var, None)
        self.large.discard(var)

    def add(self, buffer: Buffer, spans: tuple[Span, ...] | None, write: bool, node: Node,
            pointer: bool = False) -> None:
        """Note an access of a buffer, which may be a view."""
        while buffer in self.views:
            buffer, spans = self.through(buffer, spans)
        update = self.update if write or any(node is load for load in self.own) else None
        self.out.append(Access(buffer.data, buffer, spans, write, self.loops, self.conditions, node,
                               self.site, pointer, update, self.init))

    def unknown(self, data: Var, write: bool, node: Node) -> None:
        """Note the use of a pointer to no known buffer."""
        self.out.append(Access(data, None, None, write, self.loops, self.conditions, node,
                               self.site, True))

    def through(self, view: Buffer, spans: tuple[Span, ...] | None) -> tuple[Buffer, Any]:
        """An access of a view in terms of what it is a view of."""
        source, window = self.views[view]
        if spans is None:
            return source, window
        out = list(window)
        for axis in range(1, len(view.shape) + 1):  # leading dimensions may have been dropped
            own, outer = spans[-axis], window[-axis]
            if own is not None and outer is not None:
                out[-axis] = (op.add(outer[0], own[0]), own[1])
        return source, tuple(out)

    def spans_of(self, indices: Sequence[PrimExpr]) -> tuple[Span, ...]:
        """The spans of the elements at `indices`."""
        out: list[Span] = []
        for index in indices:
            if type(index) is Ramp:
                stride = op.as_int(index.stride)
                if stride is None or stride <= 0:
                    out.append(None)
                    continue
                count = stride * (index.lanes - 1) + 1
                out.append(self.span(index.base, IntImm(index.base.dtype, count)))
            else:
                out.append(self.span(index, _ONE.get(index.dtype) or IntImm(index.dtype, 1)))
        return tuple(out)

    # ------------------------------------------------------------------------- walking

    def visit(self, node: Node) -> None:
        """Collect what a statement or expression accesses."""
        kind = type(node)
        method = _METHODS.get(kind)
        if method is not None:
            method(self, node)
            return
        if isinstance(node, BinaryOp):
            self.visit(node.a)
            self.visit(node.b)
            return
        if kind is IntImm:
            return
        for item in node.children():
            self.visit(item)

    def var(self, node: Var) -> None:
        if node.dtype == "handle" and node not in self.table:
            self.pointer(node, node)

    def load(self, node: BufferLoad) -> None:
        for item in node.children():
            self.visit(item)
        self.add(node.buffer, self.spans_of(node.indices), False, node)

    def store(self, node: BufferStore) -> None:
        kept = self.update, self.own
        self.update, self.own = self.together or update_of(node)
        for item in node.children():
            self.visit(item)
        self.add(node.buffer, self.spans_of(node.indices), True, node)
        self.update, self.own = kept

    def call(self, node: Call) -> None:
        name = getattr(node.op, "name", None)
        if name == "tir.if_then_else":
            condition, yes, no = node.args
            self.visit(condition)
            self.under(condition, yes)
            self.under(Not(condition), no)
        elif name == "tir.tvm_access_ptr" and len(node.args) == 5:
            self.access_ptr(node)
        elif name == "tir.address_of" or name is None:  # a function of the module takes buffers
            for item in node.args:
                if type(item) is BufferLoad:
                    for index in item.indices:
                        self.visit(index)
                    self.pointer(item.buffer.data, node, item.buffer)
                else:
                    self.visit(item)
        else:
            harmless = name in _HARMLESS or self.leaves and name in _LEAVING
            if effect_of(node) not in (PURE, READS) and not harmless and not any(
                    _shows_memory(n) for arg in node.args for n in pre_order(arg)):
                self.unknown(WORLD, True, node)
            for item in node.args:
                if isinstance(item, Buffer):
                    self.pointer(item.data, node, item)
                else:
                    self.visit(item)

    def access_ptr(self, node: Call) -> None:
        """A pointer that says what it is used for."""
        data, offset, extent, mask = node.args[1:]
        self.visit(offset)
        self.visit(extent)
        if not isinstance(data, Var) or type(mask) is not IntImm:
            self.visit(data)
            return
        buffer = self.owners.get(data)
        spans = None
        if buffer is not None and buffer not in self.views and len(buffer.shape) == 1 and (
                not buffer.strides and op.is_const_int(buffer.elem_offset, 0)):
            spans = (self.span(offset, extent),)
        for bit, write in ((1, False), (2, True)):
            if mask.value & bit:
                said = self.declared.get((data, write))
                if spans is None and said:
                    self.say(said, write, node)
                elif buffer is not None:
                    self.add(buffer, spans, write, node, True)
                else:
                    self.unknown(data, write, node)

    def pointer(self, data: Var, node: Node, buffer: Buffer | None = None) -> None:
        """A pointer that is handed on: what the block around declares, else all of it."""
        said = [(w, self.declared[data, w]) for w in (False, True) if (data, w) in self.declared]
        for write, regions in said:
            self.say(regions, write, node)
        if said:
            return
        buffer = buffer or self.owners.get(data)
        root = buffer
        while root in self.views:  # a view is used as what it is a view of is said to be
            root = self.views[root][0]
        kinds = [] if root is None else [w for w in (False, True) if (root.data, w) in
                                         self.declared]
        for write in kinds or (False, True):
            if buffer is not None:
                self.add(buffer, None, write, node, True)
            else:
                self.unknown(data, write, node)

    def say(self, regions: Sequence[BufferRegion], write: bool, node: Node) -> None:
        """Note declared regions as accesses."""
        for region in regions:
            self.add(region.buffer, tuple(self.span(r.min, r.extent) for r in region.region),
                     write, node, True)

    def under(self, condition: PrimExpr, *nodes: Node) -> None:
        """Visit what happens only where a condition holds."""
        kept = self.conditions
        self.conditions = (*kept, self.now(condition))
        for node in nodes:
            self.visit(node)
        self.conditions = kept

    def if_(self, node: IfThenElse) -> None:
        self.visit(node.condition)
        self.under(node.condition, node.then_case)
        if node.else_case is not None:
            self.under(Not(node.condition), node.else_case)

    def for_(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        kept = self.loops
        self.loops = (*kept, (node.loop_var, self.now(node.min), self.now(node.extent)))
        self.round(node.body, None)
        self.loops = kept

    def while_(self, node: While) -> None:
        self.visit(node.condition)
        self.round(node.body, node.condition)

    def round(self, body: Stmt, condition: PrimExpr | None) -> None:
        """The body of a loop, of which a part may not run where it is left early."""
        kept = self.conditions, self.leaves
        if condition is not None:
            self.conditions = (*self.conditions, self.now(condition))
        self.leaves = leaves_loop(body)
        if self.leaves:
            self.conditions = (*self.conditions, Var("not left", "bool"))
        self.visit(body)
        self.conditions, self.leaves = kept

    def let(self, node: LetStmt | Let) -> None:
        self.visit(node.value)
        self.name(node.var, node.value)
        self.visit(node.body)
        self.forget(node.var)

    def allocate(self, node: Allocate | AllocateConst) -> None:
        self.inner.add(node.buffer_var)
        for item in node.children():
            self.visit(item)

    def declare(self, node: DeclBuffer) -> None:
        self.owners.setdefault(node.buffer.data, node.buffer)
        self.visit(node.body)

    def realize(self, node: BlockRealize) -> None:
        for value in (*node.iter_values, node.predicate):
            if not _is_arithmetic(value):
                self.visit(value)
        kept = self.conditions
        if not op.is_const_int(node.predicate, 1):
            self.conditions = (*kept, self.now(node.predicate))
        for iv, value in zip(node.block.iter_vars, node.iter_values):
            self.name(iv.var, value)
        if not self.known(node.block):
            self.block(node.block)
        for iv in node.block.iter_vars:
            self.forget(iv.var)
        self.conditions = kept

    def known(self, node: Block) -> bool:
        """Take what was found in the block before, if it is seen to be the same here: most steps
        leave the blocks as they are. False if the block must be visited."""
        if self.whole or self.large:
            return False
        found = footprint(node)
        if self.views or any(a.pointer for a in found):
            return False
        site = self.site or node
        for access in found:
            access = access.bound(self.table, self.loops, self.conditions, site)
            if self.inner:
                access = self.access_from_outside(access)
            if self.parts and access.spans is not None:  # what was small here may have grown
                access = access._replace(spans=tuple(
                    s if s is None or _is_small(s[0]) else None for s in access.spans))
            self.out.append(access._replace(init=True) if self.init else access)
        for buffer in node.alloc_buffers:
            self.inner.add(buffer.data)
            self.owners[buffer.data] = buffer
        for region in (*node.reads, *node.writes):
            self.owners.setdefault(region.buffer.data, region.buffer)
        return True

    def block(self, node: Block) -> None:
        """A block whose iterators are free or in the table."""
        for buffer in node.alloc_buffers:
            self.inner.add(buffer.data)
            self.owners[buffer.data] = buffer
        for match in node.match_buffers:
            for r in match.source.region:
                self.visit(r.min)
                self.visit(r.extent)
            self.views[match.buffer] = (match.source.buffer, tuple(
                self.span(r.min, r.extent) for r in match.source.region))
            self.owners[match.buffer.data] = match.buffer
        around, site = self.declared, self.site
        self.declared, self.site = {}, site or node
        for write, regions in ((False, node.reads), (True, node.writes)):
            for region in regions:
                self.declared.setdefault((region.buffer.data, write), []).append(region)
                self.owners.setdefault(region.buffer.data, region.buffer)
        if node.init is not None:
            starts = [op.equal(iv.var, iv.dom.min) for iv in node.iter_vars
                      if iv.iter_type == IterVar.CommReduce]
            kept = self.conditions
            self.conditions, self.init = (*kept, *map(self.now, starts)), True
            self.visit(node.init)
            self.conditions, self.init = kept, False
        self.together = tuple_update(node)
        self.visit(node.body)
        self.together = None
        self.declared, self.site = around, site


class _Outside(Mutator):
    """See `_Walk.seen_from_outside`."""

    def __init__(self, walk: _Walk) -> None:
        super().__init__()
        self.walk = walk

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        walk, buffer = self.walk, node.buffer
        if buffer not in walk.views and buffer.data not in walk.inner:
            return self.default(node)
        spans: Any = tuple((self.visit(i), _ONE.get(i.dtype)) for i in node.indices)
        while buffer in walk.views and spans is not None and all(s and s[1] for s in spans):
            buffer, spans = walk.through(buffer, spans)
        if buffer in walk.views or buffer.data in walk.inner or node.predicate is not None or (
                spans is None or None in spans):
            return unsteady("made inside", node.dtype)
        return BufferLoad(buffer, [low for low, _ in spans])


def hands_on(node: Node) -> bool:
    """Whether a node hands on a pointer, or does what no load or store shows: a call with effects,
    a pointer by itself, a block that views memory."""
    if type(node) is Call:
        return effect_of(node) != PURE
    return isinstance(node, Var) and node.dtype == "handle" or (
        type(node) is Block and bool(node.match_buffers))


def _shows_memory(e: Node) -> bool:
    return isinstance(e, (Buffer, BufferLoad)) or isinstance(e, Var) and e.dtype == "handle"


#: what calls with effects that no buffer shows touch
WORLD = Var("the world", "handle")
#: calls with effects that no other statement can tell
_HARMLESS = {"tir.assume", "tir.prefetch", "tir.tvm_storage_sync", "tir.start_profile_intrinsic",
             "tir.end_profile_intrinsic"}

#: calls that end a round of the loop around them, or the loop
_LEAVING = {"tir.break_loop", "tir.continue_loop"}

_METHODS: dict[type, Callable[[_Walk, Any], None]] = {
    Var: _Walk.var, BufferLoad: _Walk.load, BufferStore: _Walk.store, Call: _Walk.call,
    IfThenElse: _Walk.if_, For: _Walk.for_, Let: _Walk.let, LetStmt: _Walk.let,
    While: _Walk.while_, Allocate: _Walk.allocate, AllocateConst: _Walk.allocate,
    DeclBuffer: _Walk.declare, BlockRealize: _Walk.realize, Block: _Walk.block,
}

__all__ = ["Access", "Loop", "Span", "WORLD", "binding_reads", "choice_reads", "footprint",
           "hands_on", "instance", "loops_of", "reads_memory"]
