"""transform_layout: how a buffer lies in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...arith import Analyzer
from ...arith.index_map import map_ranges, padded_inverse, shape_of
from ...ir import dtype as dt
from ...tir import op
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, FloatImm, IntImm, IterVar, PrimExpr, Range, Var
from ...tir.function import IndexMap
from ...tir.functor import free_vars, pre_order, substitute, uses_var
from ...tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, DeclBuffer, Evaluate, For, ForKind, SeqStmt,
    Stmt, seq,
)
from ..annotations import parameters_and_sizes
from ..arguments import mapping, unfit
from ..buffers import (
    Redirect, allocation_site, block_argument, buffer_position, no_pointer, nth_region, one_name,
    places_start_at_zero, replace_allocation,
)
from ..cache_stage import after_definitions, within_definitions
from ..error import Refusal, ScheduleError
from ..footprint import hands_on, reads_memory
from ..guards import SPATIAL, is_block
from ..instruction import primitive
from ..methods import add_method
from ..provenance import came_from
from ..state import ScheduleState, StmtSRef, child_realizes

if TYPE_CHECKING:
    from ..schedule import Schedule

    _Renaming = dict[Var, Var]


def _index_dtype(shape: Sequence[PrimExpr]) -> str:
    return shape[0].dtype if shape else "int32"


def _arguments(sch: Schedule, args: dict[str, Any]) -> None:
    """Functions become IndexMaps, a plain pad value becomes a constant one."""
    block = block_argument(sch, args)
    kind, index = args["buffer"] = buffer_position(block, args["buffer"])
    buffer = nth_region(block, index, kind).buffer
    dtype = _index_dtype(buffer.shape)
    if not isinstance(args["index_map"], IndexMap):
        given = args["index_map"]
        args["index_map"] = mapping("index_map", given, lambda: IndexMap.from_func(
            given, len(buffer.shape), index_dtype=dtype))
    value, rank = args["pad_value"], len(args["index_map"].final_indices)
    if value is None:
        return
    if isinstance(value, IndexMap):
        pass
    elif not callable(value):
        try:
            if isinstance(value, (IntImm, FloatImm)) and value.dtype != buffer.dtype:
                raise TypeError
            constant = op.const(value, buffer.dtype)
        except (TypeError, ValueError, OverflowError):
            raise unfit("pad_value", value, f"a number that fits {buffer.dtype}, or a function of "
                        "the new indices") from None
        args["pad_value"] = IndexMap([Var(f"indices_{i}", dtype) for i in range(rank)], [constant])
    else:
        def pad() -> IndexMap:
            made = IndexMap.from_func(value, rank, index_dtype=dtype)
            return IndexMap(made.initial_indices,
                            [op.cast(e, buffer.dtype) for e in made.final_indices])

        args["pad_value"] = mapping("pad_value", value, pad)
    made = args["pad_value"]
    if len(made.initial_indices) != rank or len(made.final_indices) != 1:
        raise Refusal("pad_value_takes_new_indices", f"pad_value takes {len(made.initial_indices)} "
                      f"indices and gives {len(made.final_indices)} values: the new layout has "
                      f"{rank} indices, and one value is stored", nodes=[block])
    unknown = set(free_vars(made.final_indices[0])) - {*made.initial_indices}
    if unknown:
        unknown -= parameters_and_sizes(sch.state.mod[sch.resolve(args["block"]).func])
    if unknown:
        raise Refusal("pad_value_is_known", "pad_value names "
                      f"{min(v.name for v in unknown)}, which is not one of its indices",
                      nodes=[block])


@primitive("TransformLayout", moves=True, normalize=_arguments)
def transform_layout(state: ScheduleState, block: StmtSRef, buffer: Any, index_map: Any,
                     pad_value: Any = None, assume_injective_transform: bool = False) -> None:
    """Rearrange a buffer: what was at index i lies at `index_map(i)` from now on.

    Every access of the buffer is rewritten, and so is its shape; a parameter of the function
    changes its type. Where the new shape has room that no old index maps to, `pad_value` says what
    is there: the block that writes the buffer is made to write it too, or a block that does is
    added; for an input it is stated as an assumption.

    Before::

        B = T.alloc_buffer((128, 128))
        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1.0)

    After `sch.transform_layout(B, ("write", 0), lambda m, n: (m // 16, n, m % 16))`::

        B = T.alloc_buffer((8, 128, 16))
        for i, j in T.grid(128, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi // 16, vj, vi % 16] = A[vi, vj] * T.float32(2.0)
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi // 16, vj, vi % 16] + T.float32(1.0)

    Errors: the map takes as many indices as the buffer has dimensions, and different ones to
    different places (not checked with `assume_injective_transform`), none below 0; padding needs
    a `pad_value`; the buffer is not viewed by `T.match_buffer` nor used through its pointer.
    """
    is_block(block)
    old = nth_region(block.stmt, buffer[1], buffer[0]).buffer
    site, is_param = allocation_site(state, block, old)
    _only_plain_accesses(site.stmt, old)
    if len(index_map.initial_indices) != len(old.shape):
        raise Refusal("map_takes_the_dimensions", f"the index map takes "
                      f"{len(index_map.initial_indices)} indices, buffer {old.name} has "
                      f"{len(old.shape)} dimensions", nodes=[block.stmt])
    domains = [Range.from_min_extent(IntImm(dim.dtype, 0), dim) for dim in old.shape]
    places_start_at_zero(index_map.final_indices, zip(index_map.initial_indices, domains), old,
                         block.stmt)
    ranges = map_ranges(index_map, old.shape)
    dims = tuple(shape_of(ranges, old.shape))
    new = old.replace(shape=dims, strides=(), axis_separators=(),
                      elem_offset=None if old.elem_offset is None else op.cast(
                          old.elem_offset, _index_dtype(dims)))
    inverse, padding = _inverse(index_map, old, ranges, assume_injective_transform, block.stmt)
    pads = not op.is_const_int(padding, 0)
    if pads and pad_value is None:
        shape = ", ".join(map(repr, new.shape))
        raise Refusal("padding_has_a_value", f"the new shape ({shape}) of {old.name} has room that "
                      f"no old index maps to, where {padding!r}: what should be there?",
                      nodes=[block.stmt], hint="give pad_value=, or a map that divides the extents")
    came_from(new, old)
    layout = _Layout(old, new, index_map)
    root: Block = site.stmt
    body = root.body
    plan = _Padding(old, new, inverse, padding, pad_value) if pads and inverse else None
    if plan is not None:
        root, body = plan.apply(root, is_param, layout)
    changed = layout.visit(root if body is root.body else root.replace(body=body))
    if not is_param:
        changed = changed.replace(alloc_buffers=replace_allocation(root.alloc_buffers, old, new))
    reuse = {**layout.reuse, site.stmt: changed}
    if plan is not None and plan.replaced is not None:
        made = plan.replaced[1]
        reuse[plan.replaced[0]] = layout.reuse.get(made, made)
    state.replace(site, changed, reuse)
    if is_param:
        func = state.func_of(site)
        state.update_func(site, func.replace(buffer_map={
            p: new if b is old else b for p, b in func.buffer_map.items()}))


def with_separators(self: Any, block: Any, buffer: Any, index_map: Any,
                     pad_value: Any = None, *, axis_separators: Sequence[int] | None = None,
                     assume_injective_transform: bool = False) -> None:
    """See the recorded primitive; `axis_separators` adds a step, set_axis_separator."""
    block = self.get_block(block) if isinstance(block, str) else block
    if callable(index_map) and not isinstance(index_map, IndexMap) and axis_separators is None:
        try:
            found = block_argument(self, {"block": block})
            kind, index = buffer_position(found, buffer)
            shape = nth_region(found, index, kind).buffer.shape
            given = index_map
            index_map, separators = mapping("index_map", given, lambda: (
                IndexMap.from_func_with_separators(given, len(shape),
                                                   index_dtype=_index_dtype(shape))))
            axis_separators = separators or None
        except Refusal:
            pass  # the primitive itself will refuse, with the reason
    before, steps = self.state.snapshot(), len(self.steps)
    transform_layout(self, block, buffer, index_map, pad_value, assume_injective_transform)
    if axis_separators is None or isinstance(axis_separators, (list, tuple)) and (
            not axis_separators):
        return
    try:
        self.set_axis_separator(block, buffer, axis_separators)
    except ScheduleError:  # then the layout is as it was, too
        self.state.restore(*before)
        del self.steps[steps]
        if self.trace is not None:
            self.trace.pop()
        raise


vars(with_separators).update(kind=vars(transform_layout)["kind"])
with_separators.__name__ = transform_layout.__name__
with_separators.__doc__ = transform_layout.__doc__
add_method(with_separators)  # in place of the recorded one


def _only_plain_accesses(root: Block, buffer: Buffer) -> None:
    handed_on = False
    for node in pre_order(root):
        handed_on = handed_on or hands_on(node)
        if type(node) is DeclBuffer and node.buffer.data is buffer.data:
            one_name(root.body, buffer)
        if type(node) is Block and any(m.source.buffer is buffer for m in node.match_buffers):
            raise Refusal("buffer_has_no_views", f"block {node.name_hint} views {buffer.name} by "
                          "T.match_buffer; the view would see another layout", nodes=[node],
                          hint="transform the layout before tensorize")
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer is buffer and any(
                dt.lanes_of(i.dtype) > 1 for i in node.indices):
            raise Refusal("accesses_points", f"{buffer.name} is accessed as a vector, whose "
                          "elements would not be next to each other any more", nodes=[node],
                          hint="transform the layout before vectorizing")
    if handed_on:
        no_pointer(root, buffer)


def _inverse(index_map: IndexMap, old: Buffer, ranges: Sequence[Range], assume: bool,
             block: Block) -> tuple[IndexMap | None, PrimExpr]:
    if assume:
        return None, IntImm("bool", 0)
    try:
        inverse, padding = padded_inverse(index_map, old.shape, ranges=ranges)
    except ValueError as err:
        raise Refusal("map_is_injective", f"{index_map!r} may take different elements of "
                      f"{old.name} to the same place: {err}", nodes=[block],
                      hint="use each index once, split with // and %; or take the responsibility "
                      "with assume_injective_transform=True") from None
    return inverse, padding


class _Layout(Redirect):
    """Accesses of one buffer, mapped and simplified."""

    def __init__(self, old: Buffer, new: Buffer, index_map: IndexMap) -> None:
        super().__init__({old: new})
        self.data = {}
        self.old, self.new, self.map = old, new, index_map
        self.known = Analyzer()
        self._mapped: dict[tuple[PrimExpr, ...], tuple[PrimExpr, ...]] = {}

    def visit_For(self, node: For) -> Stmt:
        self.known.bind(node.loop_var, Range.from_min_extent(node.min, node.extent))
        return super().visit_For(node)

    def visit_Block(self, node: Block) -> Stmt:
        for iv in node.iter_vars:
            self.known.bind(iv.var, iv.dom)
        return super().visit_Block(node)

    def mapped(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """The new place of old indices. Most accesses of a block have the same. An iterator that
        the map hands on stays, also where it has one value."""
        key = tuple(indices)
        found = self._mapped.get(key)
        if found is None:
            found = self._mapped[key] = tuple(
                e if isinstance(e, Var) else self.known.simplify(e)
                for e in self.map.map_indices(indices))
        return found

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        if node.buffer is not self.old:
            return super().visit_BufferLoad(node)
        return BufferLoad(self.new, self.mapped([self.visit(i) for i in node.indices]))

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        if node.buffer is not self.old:
            return super().visit_BufferStore(node)
        return BufferStore(self.new, self.visit(node.value),
                           self.mapped([self.visit(i) for i in node.indices]))

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        if node.buffer is not self.old:
            return super().visit_BufferRegion(node)
        if all(op.is_const_int(r.extent, 1) for r in node.region):
            return BufferRegion.from_point(self.new, self.mapped([r.min for r in node.region]))
        return BufferRegion(self.new, tuple(map_ranges(self.map, node.region, self.known)))


class _Padding:
    """Puts the pad value where the new layout has room: how depends on who writes the buffer."""

    def __init__(self, old: Buffer, new: Buffer, inverse: IndexMap, padding: PrimExpr,
                 value: IndexMap) -> None:
        self.old, self.new, self.inverse = old, new, inverse
        self.padding, self.value = padding, value
        self.replaced: tuple[Block, Block] | None = None

    def apply(self, root: Block, is_param: bool, layout: _Layout) -> tuple[Block, Stmt]:
        """The root block and its body with the padding written; `layout` is applied after."""
        body = after_definitions(root.body)
        items = list(body.seq) if type(body) is SeqStmt else [body]
        writers = [i for i, s in enumerate(items) if any(
            type(n) is BufferStore and n.buffer is self.old for n in pre_order(s))]
        if not writers:
            if not is_param:
                return root, root.body
            items.insert(0, self._assumption())
            return root, within_definitions(root.body, seq(*items))
        nest = self._padded_nest(items[writers[0]]) if len(writers) == 1 else None
        if nest is not None:
            items[writers[0]] = nest
        else:
            items.insert(writers[-1] + 1, self._padding_block())
        return root, within_definitions(root.body, seq(*items))

    def _loops(self) -> tuple[list[For], list[IterVar], _Renaming, _Renaming]:
        """Loops and iterators over the new shape, and the inverse's variables by each."""
        loops: list[For] = []
        iters: list[IterVar] = []
        by_loop: _Renaming = {}
        by_iter: _Renaming = {}
        for var, dim in zip(self.inverse.initial_indices, self.new.shape):
            loop_var = came_from(Var(var.name, dim.dtype), self.old)
            zero = IntImm(dim.dtype, 0)
            loops.append(For(loop_var, zero, dim, ForKind.SERIAL, Evaluate(zero)))
            iter_var = came_from(Var(f"v_{var.name}", dim.dtype), self.old)
            iv = IterVar(Range.from_min_extent(zero, dim), iter_var, SPATIAL)
            iters.append(iv)
            by_loop[var], by_iter[var] = loop_var, iv.var
        return loops, iters, by_loop, by_iter

    def _pad(self, by: _Renaming) -> tuple[PrimExpr, PrimExpr]:
        """The padding condition and the pad value at the new indices."""
        condition = substitute(self.padding, by)
        (value,) = self.value.map_indices([by[v] for v in self.inverse.initial_indices])
        return condition, value

    @staticmethod
    def _wrap(loops: Sequence[For], body: Stmt) -> Stmt:
        for loop in reversed(loops):
            body = loop.replace(body=body)
        return body

    def _padding_block(self) -> Stmt:
        loops, iters, by_loop, by_iter = self._loops()
        _, value = self._pad(by_iter)
        at = [iv.var for iv in iters]
        made = Block(iters, [], [BufferRegion.from_point(self.new, at)],
                     f"buffer_{self.old.name}_padding", BufferStore(self.new, value, at))
        came_from(made, self.old)
        return self._wrap(loops, BlockRealize([lp.loop_var for lp in loops],
                                              substitute(self.padding, by_loop), made))

    def _assumption(self) -> Stmt:
        loops, iters, _, by_iter = self._loops()
        condition, value = self._pad(by_iter)
        at = [iv.var for iv in iters]
        load = BufferLoad(self.new, at)
        fact = op.call_intrin("bool", "tir.assume", op.logical_or(
            op.logical_not(condition), op.equal(load, value)))
        made = Block(iters, [BufferRegion.from_point(self.new, at)], [],
                     f"buffer_{self.old.name}_assumptions", Evaluate(fact))
        came_from(made, self.old)
        return self._wrap(loops, BlockRealize([lp.loop_var for lp in loops], True, made))

    def _padded_nest(self, nest: Stmt) -> Stmt | None:
        """The writer's nest over the new shape, the pad value written where there is padding.

        Only where the nest's outer loops run over the old buffer in order; None otherwise.
        """
        chain: list[For] = []
        at = nest
        while type(at) is For:
            if at.kind is not ForKind.SERIAL or at.annotations:
                return None
            chain.append(at)
            at = at.body
        if type(at) is not BlockRealize or not op.is_const_int(at.predicate, 1):
            return None
        block, rank = at.block, len(self.old.shape)
        if block.match_buffers or block.alloc_buffers:
            return None
        stores = [n for part in (block.init, block.body) if part is not None
                  for n in pre_order(part) if type(n) is BufferStore]
        if len(chain) < rank or type(block.body) is not BufferStore or any(
                s.buffer is not self.old for s in stores) or child_realizes(block):
            return None
        bound: dict[PrimExpr, PrimExpr] = {
            iv.var: v for iv, v in zip(block.iter_vars, at.iter_values)}
        for store in stores:
            for index, dim, loop in zip(store.indices, self.old.shape, chain):
                if bound.get(index) is not loop.loop_var or not op.is_const_int(loop.min, 0):
                    return None
                if op.as_int(loop.extent) != op.as_int(dim) or op.as_int(dim) is None:
                    return None
        indexed = list(stores[0].indices)
        if any(iv.iter_type != SPATIAL for iv in block.iter_vars if iv.var in indexed):
            return None
        # the element that is written is the only one of which the new loops know where it lies
        if any(type(n) is BufferLoad and n.buffer is self.old and any(
                bound.get(i) is not lp.loop_var for i, lp in zip(n.indices, chain))
               for part in (block.init, block.body) if part is not None for n in pre_order(part)):
            return None
        rest = [(iv, v) for iv, v in zip(block.iter_vars, at.iter_values) if iv.var not in indexed]
        replaced = {lp.loop_var for lp in chain[:rank]}
        if any(uses_var(e, replaced) for e in (
                *(e for iv, v in rest for e in (v, iv.dom.min, iv.dom.extent)),
                *(e for lp in chain[rank:] for e in (lp.min, lp.extent)))):
            return None
        new_loops, iters, _, by_iter = self._loops()
        analyzer = Analyzer()
        for iv in (*iters, *(iv for iv, _ in rest)):
            analyzer.bind(iv.var, iv.dom)
        origin = [analyzer.simplify(e) for e in self.inverse.map_indices([iv.var for iv in iters])]
        table = dict(zip(indexed, origin))
        condition, value = self._pad(by_iter)
        places = [iv.var for iv in iters]
        to = _Rebase(self.old, self.new, table, places, condition, value, analyzer)
        made = Block([*iters, *(iv for iv, _ in rest)], to.regions(block.reads),
                     to.regions(block.writes), block.name_hint, to.visit(block.body),
                     to.visit(block.init) if block.init is not None else None, (), (),
                     block.annotations)
        self.replaced = (block, made)
        realize = BlockRealize([*(lp.loop_var for lp in new_loops), *(v for _, v in rest)], True,
                               made)
        return self._wrap([*new_loops, *chain[rank:]], realize)


class _Rebase(Redirect):
    """A writer's body in terms of the new indices; its store writes the pad value in padding."""

    def __init__(self, old: Buffer, new: Buffer, table: dict[Any, PrimExpr], at: Sequence[Var],
                 condition: PrimExpr, value: PrimExpr, analyzer: Analyzer) -> None:
        super().__init__({old: new})
        self.data = {}
        self.old, self.new, self.table, self.at = old, new, table, tuple(at)
        self.condition, self.value, self.known = condition, value, analyzer

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.table.get(node, node)

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        if node.buffer is self.old:
            return BufferLoad(self.new, self.at)
        return BufferLoad(node.buffer, [self.known.simplify(self.visit(i)) for i in node.indices])

    def visit_BufferStore(self, node: BufferStore) -> Stmt:
        value = op.if_then_else(self.condition, self.value, self.visit(node.value))
        return BufferStore(self.new, value, self.at)

    def regions(self, regions: Sequence[BufferRegion]) -> list[BufferRegion]:
        """Regions in terms of the new indices. Where the old ones say what memory holds, there may
        be none of it in padding: then it is all of a dimension."""
        out: list[BufferRegion] = []
        for region in regions:
            if region.buffer is self.old:
                out.append(BufferRegion.from_point(self.new, self.at))
            else:
                out.append(BufferRegion(region.buffer, tuple(
                    Range.from_min_extent(IntImm(dim.dtype, 0), dim)
                    if reads_memory(r.min) or reads_memory(r.extent) else
                    Range.from_min_extent(self.known.simplify(self.visit(r.min)),
                                          self.known.simplify(self.visit(r.extent)))
                    for r, dim in zip(region.region, region.buffer.shape))))
        return out
