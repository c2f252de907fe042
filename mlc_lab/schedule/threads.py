"""What loops that are bound to threads ask of each other: one axis of a kernel is one index."""

from __future__ import annotations

from collections.abc import Mapping

from ..tir import op
from ..tir.expr import IntImm, Var
from ..tir.functor import free_vars, uses_var
from ..tir.stmt import Block, BlockRealize, For, ForKind, IfThenElse, Stmt
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
    known = {outer.loop_var}
    for stmt in _path(outer.body, inner):
        if type(stmt) is BlockRealize:
            known |= {iv.var for iv, value in zip(stmt.block.iter_vars, stmt.iter_values)
                      if uses_var(value, known)}
            if uses_var(stmt.predicate, known):
                return True
        elif type(stmt) is IfThenElse and uses_var(stmt.condition, known):
            return True
    return uses_var(inner, known)


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
