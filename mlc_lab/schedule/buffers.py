"""Buffers in a schedule: how an argument names one, copies of it elsewhere, redirected accesses."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence

from ..arith import Analyzer
from ..ir.containers import is_sequence
from ..reading import shown
from ..tir import op
from ..tir.buffer import Buffer, strides_of
from ..tir.expr import BufferLoad, PointerType, PrimExpr, PrimType, Range, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, pre_order
from ..tir.layout import alignments, layout_with, nested_stride_misfit, stride_misfit
from ..tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, For, MatchBufferRegion, Stmt,
)
from .arguments import unfit
from .error import Refusal
from .footprint import footprint
from .instruction import BlockRV
from .provenance import came_from
from .state import ScheduleState, StmtSRef, blocks_under

if TYPE_CHECKING:
    from ..ir.module import IRModule
    from .schedule import Schedule

READ, WRITE = "read", "write"

# ------------------------------------------------------------------------------- arguments


def block_argument(sch: Schedule, args: dict[str, Any], name: str = "block") -> Block:
    """A block argument given by name becomes a BlockRV; the block it stands for."""
    if isinstance(args[name], str):
        args[name] = sch.get_block(args[name])
    sref = sch.resolve(args[name])
    block = getattr(sref, "stmt", None)
    if type(block) is not Block:
        raise Refusal("expects_block", f"{name}= must be a block (from sch.get_block or its name)")
    return block


def buffer_position(block: Block, buffer: Any, required: str | None = None) -> tuple[str, int]:
    """Which access of `block` the argument `buffer` means, as TVM records it: ("read", 0).

    `buffer` is an index (then `required` says of what), a name, ("read", 0), ("read", "A"), or the
    Buffer itself.
    """
    if isinstance(buffer, int) and not isinstance(buffer, bool):
        if required is None:
            raise Refusal("buffer_is_named", f"buffer={buffer}: say whether it is a read or a "
                          f'write, for example ("read", {buffer})', nodes=[block])
        return required, buffer
    if is_sequence(buffer):
        if len(buffer) != 2 or not isinstance(buffer[0], str) or buffer[0] not in (READ, WRITE):
            raise Refusal("buffer_is_named", f'buffer={shown(buffer)}: expected "read" or "write" '
                          'and a number or name, such as ("read", 0)', nodes=[block])
        kind, index = buffer
        if isinstance(index, (str, Buffer)):
            return buffer_position(block, index, str(kind))
        if not isinstance(index, int):
            try:
                index = operator.index(index)
            except TypeError:
                raise unfit("buffer", buffer, '"read" or "write" and a number or name, such as '
                            '("read", 0)') from None
        return str(kind), index
    matches = [(kind, i, r.buffer) for kind, regions in ((READ, block.reads), (WRITE, block.writes))
               for i, r in enumerate(regions)
               if (r.buffer is buffer if isinstance(buffer, Buffer) else r.buffer.name == buffer)]
    if not matches:
        have = ", ".join(dict.fromkeys(r.buffer.name for r in (*block.reads, *block.writes)))
        raise Refusal("buffer_is_accessed", f"block {block.name_hint} does not access a buffer "
                      f"{getattr(buffer, 'name', buffer)!r}; it accesses: {have or 'none'}",
                      nodes=[block])
    if len({m[2] for m in matches}) > 1:
        raise Refusal("buffer_name_is_unique", f"block {block.name_hint} accesses several buffers "
                      f"called {buffer!r}", nodes=[block], hint='say which one: ("read", 0)')
    if required is None:
        return matches[-1][:2] if not isinstance(buffer, Buffer) else matches[0][:2]
    for kind, index, _ in matches:
        if kind == required:
            return kind, index
    raise Refusal("buffer_is_accessed", f"block {block.name_hint} does not {required} "
                  f"{matches[0][2].name}", nodes=[block])


def index_of(required: str, name: str) -> Callable[[Any, dict[str, Any]], None]:
    """A `normalize` for primitives that record a buffer as its index among reads or writes."""

    def normalize(sch: Schedule, args: dict[str, Any]) -> None:
        consumers = args.get("consumer_blocks")
        if isinstance(consumers, (str, BlockRV)):
            consumers = [consumers]
        if consumers is not None:
            if not is_sequence(consumers):
                raise unfit("consumer_blocks", consumers, "a list of blocks")
            args["consumer_blocks"] = [sch.get_block(c) if isinstance(c, str) else c
                                       for c in consumers]
        block = block_argument(sch, args)
        args[name] = buffer_position(block, args[name], required)[1]

    return normalize


def nth_region(block: Block, index: int | str | Buffer, kind: str) -> BufferRegion:
    """The index-th read or write region of a block."""
    regions = block.reads if kind == READ else block.writes
    assert isinstance(index, int), "`index_of` has made a number of it"
    if not 0 <= index < len(regions):
        names = ", ".join(f"{i}: {r.buffer.name}" for i, r in enumerate(regions)) or "none"
        raise Refusal("buffer_index_in_range", f"block {block.name_hint} has no {kind} number "
                      f"{index}; it has {names}", nodes=[block])
    return regions[index]


#: storage scopes; what follows a dot is the target's own business
_SCOPES = ("global", "shared", "warp", "local", "wmma.matrix_a", "wmma.matrix_b",
           "wmma.accumulator", "m16n8k8.matrixA", "m16n8k8.matrixB", "m16n8k8.matrixC", "texture",
           "amx.tmm", "metal.simdgroup")


def storage_scope_exists(scope: object) -> None:
    """The storage scope must be one that a target may have."""
    known = isinstance(scope, str) and (scope in _SCOPES or scope.startswith(
        tuple(s + "." for s in _SCOPES)))  # shared.dyn, global.vtcm and the like
    if not known:
        import difflib

        close = difflib.get_close_matches(str(scope), _SCOPES, 1)
        raise Refusal("storage_scope_exists", f"{scope!r} is no storage scope; there are "
                      + ", ".join(_SCOPES), hint=f"did you mean {close[0]!r}?" if close else "")


def allocated_by(block: StmtSRef, buffer: Buffer) -> StmtSRef:
    """The block around `block` that allocates `buffer`."""
    at: StmtSRef | None = block
    while at is not None:
        if type(at.stmt) is Block and buffer in at.stmt.alloc_buffers:
            return at
        at = at.parent
    raise Refusal("buffer_is_allocated_here", f"buffer {buffer.name} is not allocated by a block: "
                  "it is a parameter of the function or a view of another buffer, whose form is "
                  "agreed on with a caller", nodes=[block.stmt],
                  hint="copy it first with sch.cache_read or sch.cache_write, and change the copy")


# ------------------------------------------------------------------------------- new buffers


def buffer_like(buffer: Buffer, name: str, scope: str | None = None,
                shape: Sequence[PrimExpr] | None = None, dtype: str | None = None) -> Buffer:
    """A new compact buffer like `buffer` with some properties changed."""
    dtype = dtype or buffer.dtype
    shape = buffer.shape if shape is None else tuple(shape)
    scope = buffer.scope if scope is None else scope
    data = Var(name, PointerType(PrimType("int8" if dtype == "bool" else dtype), str(scope)))
    index_dtype = shape[0].dtype if shape else "int32"
    separators = buffer.axis_separators if len(shape) == len(buffer.shape) else ()
    made = Buffer(data, dtype, shape, (), op.const(0, index_dtype), name, buffer.data_alignment, 1,
                  1, separators)
    return came_from(made, buffer)


# ------------------------------------------------------------------------------- redirecting


class Redirect(Mutator):
    """Accesses of buffers go to other buffers of the same rank; what is defined inside stays.

    `offsets` gives, for a buffer, an offset to subtract in each dimension. Views
    (`T.match_buffer`) of a redirected buffer follow it to its storage scope and dtype. `reuse`
    collects which block became which.
    """

    def __init__(self, table: Mapping[Buffer, Buffer],
                 offsets: Mapping[Buffer, Sequence[PrimExpr]] | None = None,
                 analyzer: Analyzer | None = None) -> None:
        super().__init__()
        self.buffers = dict(table)
        self.data = {old.data: new.data for old, new in table.items()}
        self.offsets = dict(offsets or {})
        self.analyzer = analyzer
        self.reuse: dict[Block, Block] = {}

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.data.get(node, node)

    def visit_buffer_def(self, buffer: Buffer) -> Buffer:
        return self.buffers.get(buffer, buffer)

    def _shift(self, buffer: Buffer, indices: tuple[PrimExpr, ...]
               ) -> tuple[PrimExpr, ...]:
        offsets = self.offsets.get(buffer)
        if offsets is None or self.analyzer is None:
            return indices
        return tuple(self.analyzer.simplify(op.sub(i, o)) for i, o in zip(indices, offsets))

    def visit_BufferLoad(self, node: BufferLoad) -> Any:
        new = super().visit_BufferLoad(node)
        if node.buffer in self.offsets:
            new = BufferLoad.from_fields(new.buffer, self._shift(node.buffer, new.indices),
                                         new.predicate)
        return new

    def visit_BufferStore(self, node: BufferStore) -> Any:
        new = super().visit_BufferStore(node)
        if node.buffer in self.offsets:
            new = new.replace(indices=self._shift(node.buffer, new.indices))
        return new

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        new = super().visit_BufferRegion(node)
        if node.buffer in self.offsets:
            mins = self._shift(node.buffer, tuple(r.min for r in new.region))
            new = BufferRegion(new.buffer, tuple(
                Range.from_min_extent(m, r.extent) for m, r in zip(mins, new.region)))
        return new

    def visit_MatchBufferRegion(self, node: MatchBufferRegion) -> MatchBufferRegion:
        source = self.visit(node.source)
        if source is node.source:
            return node
        view, target = node.buffer, source.buffer
        if target is not node.source.buffer and (
                view.scope != target.scope or view.dtype != target.dtype):
            data = Var(view.data.name, target.data.type_annotation)
            fresh = came_from(view.replace(data=data, dtype=target.dtype), view)
            self.buffers[view] = fresh
            self.data[view.data] = data
            view = fresh
        return MatchBufferRegion(view, source)

    def visit_Block(self, node: Block) -> Any:
        new = super().visit_Block(node)
        if new is not node:
            if new.match_buffers:
                views_fit([new], strides_of, self.buffers.values())
            self.reuse[node] = new
        return new


def views_fit(nodes: Iterable[Any], layout: Callable[[Buffer], Sequence[PrimExpr]],
              buffers: Iterable[Buffer]) -> None:
    """Refuse a layout of `buffers` in which a view of one of them, of a block among `nodes`, would
    not find the strides that it declares: such a program could not be built."""
    among = set(buffers)
    for node in nodes:
        if type(node) is not Block or among.isdisjoint(m.source.buffer for m in node.match_buffers):
            continue
        found = stride_misfit(node.match_buffers, layout)
        if found is not None:
            raise _stride(node, *found)


def _stride(block: Block, view: MatchBufferRegion, want: int, have: int) -> Refusal:
    name = view.source.buffer.name
    return Refusal("views_have_their_strides", f"block {block.name_hint} views {name} by "
                   f"T.match_buffer as {view.buffer.name} with the stride {want}, and the "
                   f"stride of {name} in that dimension would be {have}", nodes=[block],
                   hint="declare the strides of the tensor intrinsic's buffers as "
                   "variables, T.match_buffer(..., strides=[s0, s1])")


def nested_views_fit(state: ScheduleState, before: IRModule) -> None:
    """Refuse a step after which a view of a view does not find the strides that it declares, unless
    that was so before."""
    for ref in state.refs.values():
        if type(ref.stmt) is Block and ref.stmt.match_buffers:
            break
    else:
        return
    found = [m for ref in state.refs.values() if type(ref.stmt) is Block
             for m in ref.stmt.match_buffers]
    if {m.buffer for m in found}.isdisjoint(m.source.buffer for m in found):
        return
    misfit = _misfit(state.mod)
    if misfit is not None and _misfit(before) is None:
        block, (view, want, have) = misfit
        raise _stride(block, view, want, have)


def _misfit(mod: IRModule) -> Any:
    for func in mod.functions.values():
        if isinstance(func, PrimFunc) and type(func.body) is BlockRealize:
            blocks = blocks_under(func.body.block)
            found = nested_stride_misfit(blocks, layout_with(alignments(blocks)))
            if found is not None:
                return found
    return None


def rewrite_blocks(stmt: Stmt, rewrites: Mapping[Block, Callable[[Block], Block]],
                   reuse: dict[Block, Block]) -> Stmt:
    """`stmt` with some of its child blocks (not inside other blocks) rewritten."""
    if type(stmt) is BlockRealize:
        make = rewrites.get(stmt.block)
        if make is None:
            return stmt
        new = make(stmt.block)
        if new is not stmt.block:
            reuse[stmt.block] = new
        return stmt if new is stmt.block else stmt.replace(block=new)
    if type(stmt) is For:
        body = rewrite_blocks(stmt.body, rewrites, reuse)
        return stmt if body is stmt.body else stmt.replace(body=body)
    return stmt.map_children(
        lambda s: rewrite_blocks(s, rewrites, reuse) if isinstance(s, Stmt) else s)


def accesses(block: Block, buffer: Buffer, kind: str) -> bool:
    """Whether a block reads or writes a buffer."""
    return any(r.buffer is buffer for r in (block.reads if kind == READ else block.writes))


def one_name(stmt: Stmt, buffer: Buffer) -> None:
    """All that a statement accesses of a buffer's memory must be by the buffer or views of it."""
    for access in footprint(stmt):
        if access.memory is buffer.data and access.buffer not in (None, buffer):
            raise Refusal("one_name", f"the memory of {buffer.name} is also accessed as "
                          f"{access.buffer.name}, which would still mean what it was",
                          nodes=[access.node])


def no_pointer(root: Block, buffer: Buffer, views: bool = False) -> None:
    """A buffer whose elements are to lie elsewhere, or to be of another type, must not be used
    through its pointer: who is given that would not know. With `views` no pointer of a view of it
    (`T.match_buffer`) either; such a view may tell its strides along with the pointer."""
    for access in footprint(root.body):
        if access.pointer and access.memory is buffer.data and (
                views or any(n is buffer.data or n is buffer or getattr(n, "buffer", None) is buffer
                             for n in pre_order(access.node))):
            raise Refusal("buffer_is_not_opaque", f"{buffer.name} is used through its pointer, "
                          "where nothing can be rewritten", nodes=[access.node])


def places_start_at_zero(indices: Iterable[PrimExpr], domains: Iterable[tuple[Var, Range]],
                         buffer: Buffer, node: Block) -> None:
    """No index that a map gives an element of a buffer may be below 0."""
    analyzer = Analyzer()
    for var, domain in domains:
        analyzer.bind(var, domain)
    for size in buffer.shape:  # of a buffer with an element
        if isinstance(size, Var):
            analyzer.enter_constraint(op.greater_equal(size, 1))
    for index in indices:
        if not analyzer.can_prove(op.greater_equal(index, 0)):
            raise Refusal("indices_start_at_zero", f"index {index!r} of the new layout may be "
                          f"below 0 for elements of {buffer.name}, whose shape is "
                          f"({', '.join(map(repr, buffer.shape))})", nodes=[node],
                          hint="add what is missing to the index, n - 1 - i turns a dimension of "
                          "n around")


def replace_allocation(buffers: Iterable[Buffer], old: Buffer, new: Buffer
                       ) -> tuple[Buffer, ...]:
    """Allocations with one buffer in the place of another."""
    return tuple(new if b is old else b for b in buffers)


def replace_buffer(state: ScheduleState, site: StmtSRef, redirect: Redirect) -> None:
    """Apply a Redirect to the whole block that allocates a buffer."""
    old = site.stmt
    for buffer in redirect.buffers:
        one_name(old.body, buffer)
    new = redirect.visit(old)
    state.replace(site, new, {**redirect.reuse, old: new})


def allocation_site(state: ScheduleState, block: StmtSRef, buffer: Buffer) -> tuple[StmtSRef, bool]:
    """The block under which all uses of the buffer are, and whether it is a parameter."""
    at: StmtSRef | None = block
    while at is not None:
        if type(at.stmt) is Block:
            if buffer in at.stmt.alloc_buffers:
                return at, False
            if any(m.buffer is buffer for m in at.stmt.match_buffers):
                raise Refusal("buffer_is_no_view", f"{buffer.name} is a view made by "
                              "T.match_buffer: its layout is that of the buffer it views",
                              nodes=[at.stmt])
        at = at.parent
    root = state.root_of(block)
    if buffer not in state.func_of(root).buffer_map.values():
        raise Refusal("buffer_is_no_view", f"{buffer.name} is another name for memory "
                      "(T.decl_buffer), whose layout is agreed on elsewhere", nodes=[block.stmt])
    return root, True


__all__ = ["READ", "WRITE", "Redirect", "accesses", "allocated_by", "allocation_site",
           "block_argument", "buffer_like", "buffer_position", "index_of", "nth_region", "one_name",
           "places_start_at_zero", "replace_allocation", "replace_buffer", "rewrite_blocks",
           "storage_scope_exists"]
