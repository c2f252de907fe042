"""What loops that are bound to threads ask of each other: one axis of a kernel is one index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, IntImm, PrimExpr, Var
from ..tir.functor import free_vars, pre_order, variables_of
from ..tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, DeclBuffer, Evaluate, For, ForKind, IfThenElse,
    LetStmt, Stmt, While,
)
from .conflict import Clash, apart, clash
from .error import Refusal
from .footprint import Access, footprint
from .guards import REDUCE
from .independence import surroundings
from .served import all_served
from .state import ScheduleState, StmtSRef


def threads_agree(state: ScheduleState) -> None:
    """The program computes the same where all loops on one axis of threads are one index."""
    bound = {s: s.stmt.thread_tag for s in state.refs.values()
             if type(s.stmt) is For and s.stmt.kind is ForKind.THREAD_BINDING}
    if bound:
        threads_have_one_index(bound)
        threads_keep_their_own(state, {s.stmt.loop_var: tag for s, tag in bound.items()
                                       if tag.startswith("threadIdx")})


def threads_have_one_index(bound: Mapping[StmtSRef, str]) -> None:
    """A loop on an axis may stand inside of another one on it if what it does does not depend on
    that: then the threads share what each of them would do."""
    for inner, tag in bound.items():
        at = inner.parent if not tag.startswith("vthread") else None
        while at is not None:
            if bound.get(at) == tag and _depends(at.stmt, inner.stmt):
                raise Refusal(
                    "axis_has_one_index", f"loop {inner.stmt.loop_var.name} is on {tag} inside of "
                    f"loop {at.stmt.loop_var.name} on {tag}, and what it does depends on that: a "
                    "thread has one index on an axis, so only iterations with the same number in "
                    "both would run", nodes=[at.stmt, inner.stmt],
                    hint=f"use another axis than {tag}, or sch.fuse the loops and bind the result")
            at = at.parent


def _depends(outer: For, inner: For) -> bool:
    """Whether anything in `inner`, or whether it is run at all, depends on `outer`'s variable."""
    if op.is_const_int(outer.extent, 1) or op.is_const_int(inner.extent, 1):
        return False
    differ = _Differing(outer)
    return any(map(differ.gates, _path(outer.body, inner)[:-1])) or differ.uses(inner)


class _Differing:
    """What differs between the iterations of a loop: names that are given in it, and memory that is
    written in it, by its pointer."""

    def __init__(self, loop: For) -> None:
        self.known: set[Var] = {loop.loop_var}
        self.views: set[Buffer] = set()
        before = 0
        while before < len(self.known) + len(self.views):  # what one sets another may use before it
            before = len(self.known) + len(self.views)
            self._collect(loop.body, False)

    def uses(self, e: Any) -> bool:
        """Whether an expression or a statement names anything that differs."""
        return any(n in self.known if isinstance(n, Var) else type(n) in _ACCESSES and (
            n.buffer.data in self.known or n.buffer in self.views) for n in pre_order(e))

    def gates(self, stmt: Stmt) -> bool:
        """Whether it differs how often what is in a statement is run."""
        if isinstance(stmt, BlockRealize):
            return self.uses(stmt.predicate)
        if isinstance(stmt, For):
            return self.uses(stmt.min) or self.uses(stmt.extent)
        return isinstance(stmt, (IfThenElse, While)) and self.uses(stmt.condition)

    def _collect(self, stmt: Stmt, gated: bool) -> None:
        """`gated`: whether it differs that the statement is run."""
        gated = gated or self.gates(stmt)
        if isinstance(stmt, BufferStore) and (
                gated or any(map(self.uses, (stmt.value, *stmt.indices)))):
            self.known.add(stmt.buffer.data)
        elif isinstance(stmt, LetStmt) and (gated or self.uses(stmt.value)):
            self.known.add(stmt.var)
        elif isinstance(stmt, BlockRealize):
            self.known |= {iv.var for iv, value in zip(stmt.block.iter_vars, stmt.iter_values)
                           if self.uses(value)}
        elif isinstance(stmt, Evaluate) and (gated or self.uses(stmt.value)):  # may write anywhere
            self.known |= {v for v in variables_of([stmt.value]) if v.dtype == "handle"}
        elif isinstance(stmt, DeclBuffer) and any(
                map(self.uses, (stmt.buffer.data, *_layout(stmt.buffer)))):
            self.views.add(stmt.buffer)
        elif isinstance(stmt, Block):
            for window in stmt.match_buffers:
                if self.uses(window.source):
                    self.views.add(window.buffer)
                    self.known |= {window.buffer.data, *_sizes(window.buffer)}
                elif window.buffer.data in self.known:  # written through the view
                    self.known.add(window.source.buffer.data)
        for part in stmt.children():
            if isinstance(part, Stmt):
                self._collect(part, gated)


#: what has a buffer that its children do not name
_ACCESSES = (BufferLoad, BufferStore, BufferRegion)


def _layout(buffer: Buffer) -> list[PrimExpr]:
    offset = [] if buffer.elem_offset is None else [buffer.elem_offset]
    return [*buffer.shape, *buffer.strides, *offset]


def _sizes(buffer: Buffer) -> set[Var]:
    return {e for e in _layout(buffer) if isinstance(e, Var)}


def _path(stmt: Stmt, target: Stmt) -> list[Stmt]:
    """The statements from one to another inside of it, both included; none if it is not there."""
    if stmt is target:
        return [stmt]
    for part in stmt.children():
        below = _path(part, target) if isinstance(part, Stmt) else []
        if below:
            return [stmt, *below]
    return []


def threads_keep_their_own(state: ScheduleState, tags: Mapping[Var, str]) -> None:
    """What a thread reads of "local" memory, or of memory that is allocated inside of a kernel and
    is not shared, it has written itself: each thread has its own.

    Loops over one axis of threads are one loop then, so an element that one of them writes and
    another reads must be at the same place in both. Where there is one loop an axis, it is enough
    that each iteration writes what it reads, whatever the others write there.
    """
    if not tags:
        return
    blocks = [s for s in state.refs.values() if type(s.stmt) is Block]
    alike = {s.stmt: _drives_reduction(state, s) for s in blocks
             if s.stmt.init is not None and s.parent is not None}
    for home in blocks:
        inside = any(_in_kernel(s.stmt) for s in state.ancestors(home))
        own = {b.data for b in home.stmt.alloc_buffers
               if b.scope.split(".")[0] in ("local", *["global"] * inside)}
        if not own:
            continue
        groups: dict[Var, list[Access]] = {}
        for access in footprint(home.stmt.body):
            if access.memory in own:
                groups.setdefault(access.memory, []).append(access)
        for accesses in groups.values():
            for write, other in ((a, b) for a in accesses if a.write for b in accesses):
                shared = alike.get(write.block, ())  # all that share a reduction have its result
                found = _other_thread(write, other, {v: t for v, t in tags.items() if v not in
                                                     shared} if shared else tags)
                if found is None:
                    continue
                if not any(v in tags for a in accesses for v in alike.get(a.block, ())) and (
                        _each_writes_its_own(home, accesses, tags)):
                    break
                tag, met = found
                scope = write.buffer.scope if write.buffer is not None else "global"
                where = ("allocated inside of the kernel" if scope == "global" else
                         f"in {scope} memory")
                raise Refusal(
                    "threads_keep_their_own", f"each thread has its own {met.name}, which is "
                    f"{where}: what one thread of {tag} writes another would read",
                    nodes=met.blocks, conflict=met.text, hint="use shared memory, or let the "
                    "threads that read an element be those that write it")


def _each_writes_its_own(home: StmtSRef, accesses: list[Access], tags: Mapping[Var, str]) -> bool:
    """Whether all accesses of some memory are under the same loops on threads, and each iteration
    of them writes what it reads. The loops in sequence give it the same value then."""
    threads = [{v for v, _, _ in a.loops if v in tags} for a in accesses]
    if any(found != threads[0] for found in threads):
        return False
    own = [(iv.var, iv.dom.min, iv.dom.extent) for iv in home.stmt.iter_vars]
    return all_served(accesses, [*surroundings(home), *own])


def _in_kernel(stmt: Stmt) -> bool:
    return type(stmt) is For and stmt.kind is ForKind.THREAD_BINDING and (
        stmt.thread_tag.startswith(("blockIdx", "threadIdx")))


def _drives_reduction(state: ScheduleState, block: StmtSRef) -> set[Var]:
    return {v for iv, value in zip(block.stmt.iter_vars, state.realize_of(block).iter_values)
            if iv.iter_type == REDUCE for v in free_vars(value)}


def _other_thread(write: Access, other: Access, tags: Mapping[Var, str]
                  ) -> tuple[str, Clash] | None:
    """An element that one thread writes and another touches, and the axis on which they differ."""
    mine, theirs = ({tags[v]: (v, extent) for v, _, extent in a.loops if v in tags}
                    for a in (write, other))
    for tag in mine.keys() & theirs.keys():  # one that has none yet may be bound in a later step
        var, extent = mine[tag]
        one = Var(tag, var.dtype)
        first, second = (
            a.bound({v: one})._replace(loops=tuple(x for x in a.loops if x[0] is not v))
            for a, v in ((write, var), (other, theirs[tag][0])))
        found = clash(first, second, [(one, IntImm(var.dtype, 0), extent)], apart(one))
        if found is not None:
            return tag, found
    return None
