"""VerifyKernels: refuses GPU kernels that would compute something else on a device.

A kernel is an outermost loop that is bound to threads, with all in it. Every loop on one axis of it
has the same extent. Local and shared memory ends with the kernel, and is read by the threads that
have written it. Memory that is allocated inside of a kernel belongs to one thread, unless it is
shared: also "global" memory, of which a device cannot give each iteration a part. A read-modify-
write update of memory that all threads see must be bound to all axes of threads: else every thread
would repeat it. The program stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..arith import Analyzer
from ..ir.transform import Pass
from ..tir.expr import BufferLoad, IterVar, Var
from ..tir.function import PrimFunc
from ..tir.functor import Visitor, pre_order, uses_var
from ..tir.op import as_int
from ..tir.stmt import BlockRealize, BufferStore, For, ForKind, MatchBufferRegion
from .common import LowerError, function_pass

if TYPE_CHECKING:
    from ..ir.transform import PassContext


class _Use(NamedTuple):
    """An access of memory: the loops around it, and the variables of those whose threads all write
    the same value, the result of a reduction across them."""

    write: bool
    loops: tuple[For, ...]
    redundant: frozenset[Var]


class _Uses(Visitor):
    """All accesses of local and shared memory, and all loops that are bound to threads."""

    def __init__(self) -> None:
        self.loops: tuple[For, ...] = ()
        self.redundant: frozenset[Var] = frozenset()
        self.found: dict[Var, list[_Use]] = {}
        self.views: dict[Var, Var] = {}
        #: "global" memory that is allocated inside of a kernel
        self.own: set[Var] = set()
        self.threads: list[tuple[For, ...]] = []
        #: read-modify-write updates: (name, memory, loops around)
        self.updates: list[tuple[str, Var, tuple[For, ...]]] = []

    def visit_For(self, node: For) -> None:
        self.visit(node.min)
        self.visit(node.extent)
        self.loops = (*self.loops, node)
        if _tag(node):
            self.threads.append(self.loops)
        self.visit(node.body)
        self.loops = self.loops[:-1]

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        before = self.redundant
        for iv, value in zip(node.block.iter_vars, node.iter_values):
            if iv.iter_type == IterVar.CommReduce:
                self.redundant |= {lp.loop_var for lp in self.loops
                               if _tag(lp) and uses_var(value, lp.loop_var)}
        for match in node.block.match_buffers:
            self._view(match)
        if _kernel(self.loops) is not None:
            self.own |= {b.data for b in node.block.alloc_buffers if b.scope == "global"}
        read = {r.buffer.data for r in node.block.reads}
        for region in node.block.writes:
            if node.block.init is not None or region.buffer.data in read:
                self._update(f"block {node.block.name_hint}", region.buffer.data)
        for part in (node.predicate, *node.iter_values, node.block.init, node.block.body):
            if part is not None:
                self.visit(part)
        self.redundant = before

    def _view(self, match: MatchBufferRegion) -> None:
        source = match.source.buffer.data
        self.views[match.buffer.data] = self.views.get(source, source)

    def _use(self, memory: Var, write: bool) -> None:
        memory = self.views.get(memory, memory)
        if memory in self.own or memory.storage_scope not in ("", "global"):
            self.found.setdefault(memory, []).append(
                _Use(write, self.loops, self.redundant if write else frozenset()))

    def _update(self, what: str, memory: Var) -> None:
        memory = self.views.get(memory, memory)
        if memory not in self.own and not memory.storage_scope.startswith("local"):
            self.updates.append((what, memory, self.loops))

    def visit_BufferLoad(self, node: BufferLoad) -> None:
        self._use(node.buffer.data, False)
        self.visit_children(node)

    def visit_BufferStore(self, node: BufferStore) -> None:
        self._use(node.buffer.data, True)
        if any(type(n) is BufferLoad and n.buffer.data is node.buffer.data
               for n in pre_order(node.value)):
            self._update(f"a store to {node.buffer.name}", node.buffer.data)
        self.visit_children(node)

    def visit_Var(self, node: Var) -> None:
        if node.dtype == "handle" and node.storage_scope:
            self._use(node, True)


def _tag(loop: For) -> str:
    """The axis of a GPU that a loop is bound to, or ""."""
    tag = loop.thread_tag if loop.kind is ForKind.THREAD_BINDING else ""
    return tag if tag.startswith(("blockIdx", "threadIdx")) else ""


def _kernel(loops: Sequence[For]) -> For | None:
    return next((lp for lp in loops if _tag(lp)), None)


def _one_extent(name: str, threads: Sequence[tuple[For, ...]]) -> None:
    """All loops on an axis of a kernel have the same extent."""
    first: dict[tuple[For | None, str], For] = {}
    for loops in threads:
        loop = loops[-1]
        known = first.setdefault((_kernel(loops), _tag(loop)), loop)
        if not Analyzer().can_prove_equal(known.extent, loop.extent):
            raise LowerError(
                f"{name}: loops {known.loop_var.name!r} and {loop.loop_var.name!r} of one kernel "
                f"are bound to {_tag(loop)} with extents {known.extent!r} and {loop.extent!r}: one "
                "axis has one extent. Before they are bound, split the loops by one factor, "
                "sch.split(loop, [None, threads]), and bind what the factor gave")


def _updates_once(name: str, uses: _Uses) -> None:
    """Read-modify-write updates of memory that threads share run once, not in every thread."""
    axes: dict[For | None, dict[str, For]] = {}
    for loops in uses.threads:
        if as_int(loops[-1].extent) != 1:
            axes.setdefault(_kernel(loops), {}).setdefault(_tag(loops[-1]), loops[-1])
    for what, memory, loops in uses.updates:
        kernel = _kernel(loops)
        have = {_tag(lp) for lp in loops}
        for tag, loop in axes.get(kernel, {}).items() if kernel is not None else ():
            if tag not in have:
                raise LowerError(
                    f"{name}: {what} changes {memory.name} by what is there, and each thread of "
                    f"{tag}, to which loop {loop.loop_var.name!r} of the kernel is bound, would do "
                    f"it again. Bind one of its loops to {tag} as well, keep {memory.name} in "
                    '"local" memory until it is done, or put it into a kernel of its own')


def _memory(name: str, memory: Var, uses: Sequence[_Use], own_memory: bool) -> None:
    """Memory is written and read by the same threads of one kernel."""
    scope = memory.storage_scope
    kernels = {_kernel(use.loops) for use in uses}
    if len(kernels) > 1:
        raise LowerError(
            f"{name}: {memory.name} is in {scope} memory, which ends with a kernel, and is used "
            + ("outside of the kernel" if None in kernels else "in several kernels")
            + ". Put its blocks under one loop that is bound to blockIdx (sch.compute_at), or keep "
            'it in "global" memory')
    shared = 0
    while all(len(u.loops) > shared and u.loops[shared] is uses[0].loops[shared] for u in uses):
        shared += 1
    own = ("blockIdx", "threadIdx") if own_memory or scope.startswith("local") else ("blockIdx",)
    where = "is allocated inside of the kernel" if own_memory else f"is in {scope} memory"
    inner: list[Mapping[str, Var]] = [
        {_tag(lp): lp.loop_var for lp in u.loops[shared:] if _tag(lp).startswith(own)
         and lp.loop_var not in u.redundant and as_int(lp.extent) != 1} for u in uses]
    for write, tags in zip(uses, inner):
        for other, theirs in zip(uses, inner) if write.write else ():
            for tag in tags:
                if not other.write and (tag not in theirs or (
                        tag.startswith("blockIdx") and tags[tag] is not theirs[tag])):
                    raise LowerError(
                        f"{name}: each thread of {tag} has its own {memory.name}, which {where}: "
                        f"it is written by loop {tags[tag].name!r} on {tag}, and "
                        "read outside of that loop, where each thread would need what others have "
                        f"written. Bind the loop that reads it to {tag} in the same way, or use "
                        "shared memory")


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """The same function, if it can be a program of kernels."""
    uses = _Uses()
    uses.visit(func.body)
    name = str(func.attrs.get("global_symbol", "main"))
    _one_extent(name, uses.threads)
    _updates_once(name, uses)
    for memory, found in uses.found.items():
        _memory(name, memory, found, memory in uses.own)
    return func


def VerifyKernels() -> Pass:
    """Refuse GPU kernels that would compute something else on a device."""
    return function_pass("VerifyKernels", _rewrite)
