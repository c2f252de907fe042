"""create_prim_func: tensor expressions as a TensorIR function, one block for each operation.

Names are TVM's: the block is called after the operation, its iterators `v_<axis>`, its loops after
the axes. What is among the arguments is a parameter; the other tensors are allocated.
"""

from __future__ import annotations

from typing import Any, Callable, Collection, Mapping, NamedTuple, Sequence

from ..arith import Analyzer, eval_set
from ..ir import dtype as dt
from ..ir.recursion import grows_stack
from ..tir import op as O
from ..tir.access import block_access_regions
from ..tir.buffer import Buffer, decl_buffer
from ..tir.expr import (
    Add, BufferLoad, Call, Cast, FloorDiv, FloorMod, IntImm, IterVar, Max, Min, Mul, PrimExpr,
    ProducerLoad, Range, Reduce, Select, Sub, Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, free_vars, substitute, uses_var
from ..tir.stmt import (
    Block, BlockRealize, BufferRegion, BufferStore, For, ForKind, LetStmt, Stmt, annotation_value,
    seq,
)
from .hybrid_op import HybridOp, hybrid_statement
from .scan_blocks import scan_statement
from .tensor import ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp, Tensor


class _ToBuffers(Mutator):
    """An expression over tensors and axes as one over buffers and block iterators."""

    def __init__(self, buffers: Mapping[Tensor, Buffer], table: Mapping[Var, PrimExpr],
                 index_dtype: str | None = None) -> None:
        super().__init__()
        self.of_tensor, self.table, self.index_dtype = buffers, table, index_dtype

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.table.get(node, node)

    def visit_ProducerLoad(self, node: ProducerLoad) -> PrimExpr:
        indices = [self.visit(i) for i in node.indices]
        if self.index_dtype is not None:
            indices = [_as_index(i, self.index_dtype) for i in indices]
        return BufferLoad(self.of_tensor[node.producer], indices)

    def visit_BinaryOp(self, node: Any) -> PrimExpr:
        a, b = self.visit(node.a), self.visit(node.b)
        if a is node.a and b is node.b:
            return node
        if a.dtype != b.dtype:  # an int32 index was widened
            a, b = O.match_types(a, b)
        return type(node)(a, b)

    def visit_Select(self, node: Select) -> PrimExpr:
        condition, *values = map(self.visit, (node.condition, node.true_value, node.false_value))
        if values[0] is node.true_value and values[1] is node.false_value and (
                condition is node.condition):
            return node
        return Select(condition, *O.match_types(*values))

    def visit_Call(self, node: Call) -> PrimExpr:
        args = tuple(map(self.visit, node.args))
        if all(a is b for a, b in zip(args, node.args)):
            return node
        if getattr(node.op, "name", "") == "tir.if_then_else":
            return O.if_then_else(args[0], *O.match_types(*args[1:]))
        # what is called takes what it took
        return node.replace(args=tuple(
            O.cast(a, b.dtype) if isinstance(a, PrimExpr) and a.dtype != b.dtype else a
            for a, b in zip(args, node.args)))


def _as_index(e: PrimExpr, dtype: str) -> PrimExpr:
    """An index computed in another type, all of it: also what is rounded to an integer."""
    if e.dtype == dtype or not dt.is_int(e.dtype) or "x" in e.dtype:
        return e
    if type(e) is IntImm:
        return IntImm(dtype, e.value)
    if type(e) is Cast:
        return O.cast(e.value, dtype)
    if isinstance(e, (Add, Sub, Mul, Min, Max, FloorDiv, FloorMod)):
        return type(e)(_as_index(e.a, dtype), _as_index(e.b, dtype))
    return O.cast(e, dtype)


def reduces_nothing(op: Operation) -> bool:
    """Whether a reduction is known to have no terms: it is its initial value then, without loops
    over its axes, as blocks in loops without iterations would not run."""
    return isinstance(op, ComputeOp) and any(
        O.is_const_int(iv.dom.extent, 0) for iv in op.reduce_axis)


class _Builder:
    """The state of one create_prim_func."""

    def __init__(self, index_dtype: str | None,
                 instead: Mapping[Operation, Sequence[Operation]], from_zero: bool) -> None:
        self.index_dtype, self.instead, self.from_zero = index_dtype, instead, from_zero
        self.buffers: dict[Tensor, Buffer] = {}
        #: the parameters of what is computed twice
        self.twice: dict[Tensor, Buffer] = {}
        self.sizes: dict[Var, Var] = {}
        self.names: set[str] = set()
        self.analyzer = Analyzer()
        self.layout_free: list[Tensor] = []
        self.allocated: list[Buffer] = []
        self.block_names: dict[Operation, str] = {}
        #: the block around that of an operation whose reduction varies with the element
        self.block_around: dict[Operation, str] = {}

    def fresh(self, name: str) -> str:
        """A block name that is not taken: x, x_1, x_2, ..."""
        unique, count = name, 0
        while unique in self.names:
            count += 1
            unique = f"{name}_{count}"
        self.names.add(unique)
        return unique

    def widened(self, e: PrimExpr) -> PrimExpr:
        """A size in the index type asked for."""
        if self.index_dtype is None:
            return e
        if type(e) is IntImm:
            return IntImm(self.index_dtype, e.value)
        if type(e) is Cast and dt.is_int(e.value.dtype):  # a size that was narrowed for TE
            return self.widened(e.value)
        for v in free_vars(e):
            if v not in self.sizes and v.dtype != self.index_dtype:
                self.sizes[v] = type(v)(v.name, self.index_dtype)
        return O.cast(_ToBuffers({}, self.sizes).visit(e), self.index_dtype)

    def buffer_of(self, tensor: Tensor) -> Buffer:
        """A new buffer for a tensor."""
        op = tensor.op
        name = op.name if op.num_outputs == 1 else f"{op.name}_v{tensor.value_index}"
        return decl_buffer([self.widened(d) for d in tensor.shape], tensor.dtype, name,
                           scope=op.scope)

    def with_regions(self, block: Block) -> Block:
        """A block with what it reads and writes found from its body, the boxes simplified."""
        whole = _with_regions(block)
        return whole.replace(reads=self.simplified(whole.reads),
                             writes=self.simplified(whole.writes))

    # ------------------------------------------------------------------------ one operation

    def statement(self, op: Operation) -> Stmt | None:
        """The loops and blocks of an operation; nothing for a placeholder."""
        for_arguments = self.for_arguments(op)
        if for_arguments is not None:
            return seq(for_arguments, self.statement(op))
        if op in self.instead:
            return seq(*map(self.statement, self.instead[op]))
        if isinstance(op, PlaceholderOp):
            return None
        for tensor in op.outputs:
            if tensor not in self.buffers:
                self.buffers[tensor] = self.buffer_of(tensor)
                self.allocated.append(self.buffers[tensor])
        for tensor in op.attrs.get("layout_free_placeholders", ()):
            self.layout_free.append(tensor)
        if isinstance(op, ScanOp):
            return scan_statement(self, op)
        if isinstance(op, ExternOp):
            return self.of_extern(op)
        assert isinstance(op, ComputeOp)
        return self.of_compute(op)

    def for_arguments(self, op: Operation) -> Stmt | None:
        """The computation of the parameters of an operation that is computed twice."""
        params = {t: self.twice.pop(t) for t in op.outputs if t in self.twice}
        if not params:
            return None
        assert isinstance(op, ComputeOp)
        local = {t: self.buffer_of(t) for t in op.outputs}
        self.allocated += local.values()
        self.buffers.update({**local, **params})
        stmt = self.of_compute(op)
        self.buffers.update(local)
        del self.block_names[op]
        self.block_around.pop(op, None)
        return stmt

    def of_compute(self, op: ComputeOp) -> Stmt:
        """Loops over the axes and the reduction axes around the block (or blocks)."""
        own = {iv.var for iv in (*op.axis, *op.reduce_axis)}
        if any(not own.isdisjoint((*free_vars(iv.dom.extent), *free_vars(iv.dom.min)))
               for iv in op.reduce_axis):
            return self.of_varying(op)
        summed = [] if reduces_nothing(op) else op.reduce_axis
        axes = [*op.axis, *summed]
        doms = [Range.from_min_extent(self.widened(iv.dom.min), self.widened(iv.dom.extent))
                for iv in axes]
        loops = [Var(_plain(iv.var.name), d.extent.dtype) for iv, d in zip(axes, doms)]
        values = self.positions(loops, doms)
        if isinstance(op.body[0], Reduce):
            self.block_names[op] = name = self.fresh(op.name)
            inner: list[Stmt] = [self.block(op, name, axes, doms, values, None)]
        else:
            names = [self.fresh(n) for n in (
                [op.name] if op.num_outputs == 1 else [self.buffers[t].name for t in op.outputs])]
            self.block_names[op] = names[0]
            inner = [self.block(op, n, axes, doms, values, i) for i, n in enumerate(names)]
        return self.nest(loops, doms, seq(*inner))

    def positions(self, loops: Sequence[Var], doms: Sequence[Range]) -> list[PrimExpr]:
        """The values of axes in a nest of loops over them."""
        return [O.add(d.min, v) if self.from_zero else v for v, d in zip(loops, doms)]

    def nest(self, loops: Sequence[Var], doms: Sequence[Range], body: Stmt) -> Stmt:
        """Loops around a statement, the first outermost."""
        for loop, dom in zip(reversed(loops), reversed(doms)):
            first = IntImm(loop.dtype, 0) if self.from_zero else dom.min
            body = For(loop, first, dom.extent, ForKind.SERIAL, body)
        return body

    def of_varying(self, op: ComputeOp) -> Stmt:
        """Two levels, where how far to reduce depends on the element or on another reduction axis:
        the outer block is spatial, and the reduction inside it runs over bounds that are read from
        the outer iterators and loops. Where an element may have nothing to reduce, its initial
        value is stored before the loops."""
        doms = [Range.from_min_extent(self.widened(iv.dom.min), self.widened(iv.dom.extent))
                for iv in op.axis]
        loops = [Var(iv.var.name, d.extent.dtype) for iv, d in zip(op.axis, doms)]
        outer = [IterVar(d, Var(f"v_{iv.var.name}", d.extent.dtype), IterVar.DataPar)
                 for iv, d in zip(op.axis, doms)]
        table: dict[Var, PrimExpr] = {
            **self.sizes, **{iv.var: new.var for iv, new in zip(op.axis, outer)}}
        reduced = _outer_first(op.reduce_axis)
        inner_loops: list[Var] = []
        within: list[Range] = []
        domains: list[Range] = []
        for iv in reduced:
            convert = _ToBuffers(self.buffers, table, self.index_dtype).visit
            dom = Range.from_min_extent(convert(iv.dom.min), self.analyzer.simplify(
                convert(iv.dom.extent)))
            domains.append(self.over(dom, inner_loops, within))
            within.append(dom)
            inner_loops.append(Var(_plain(iv.var.name), dom.extent.dtype))
            (table[iv.var],) = self.positions(inner_loops[-1:], [dom])
        self.block_names[op] = name = self.fresh(op.name)
        self.block_around[op] = around = self.fresh(f"{name}_l1")
        points = [Range.from_min_extent(iv.var, IntImm(iv.var.dtype, 1)) for iv in outer]
        here = [iv.var for iv in outer]
        update = self.block(op, name, [*op.axis, *reduced], [*points, *domains],
                            [*here, *self.positions(inner_loops, within)], None)
        for iv in outer:
            self.analyzer.bind(iv.var, iv.dom)
        start = None
        if any(a is not b for a, b in zip(within, domains)) or not all(
                self.analyzer.can_prove(O.greater(d.extent, 0)) for d in within):
            start = self.block(op, self.fresh(f"{name}_init"), op.axis, points, here, None)
            update = _without_init(update)  # it has run by then
        body = seq(*filter(None, (start, self.nest(inner_loops, within, update))))
        whole = self.with_regions(Block(outer, (), (), around, body, annotations=_annotations(op)))
        if start is not None:  # what it goes on with it has set itself
            own = {w.buffer for w in whole.writes}
            whole = whole.replace(reads=tuple(r for r in whole.reads if r.buffer not in own))
        return self.nest(loops, doms, BlockRealize(self.positions(loops, doms), True, whole))

    def over(self, dom: Range, loops: Sequence[Var], doms: Sequence[Range]) -> Range:
        """All values of a range in loops around it; the range itself where it names none."""
        if not any(uses_var(e, set(loops)) for e in (dom.min, dom.extent)):
            return dom
        low, high = dom.min, O.add(dom.min, dom.extent)
        for loop, outer in zip(reversed(loops), reversed(doms)):
            first = IntImm(loop.dtype, 0) if self.from_zero else outer.min
            values = {loop: Range.from_min_extent(first, outer.extent)}
            low, high = eval_set(low, values).min_value, eval_set(high, values).max_value
        if any(e.dtype != dom.min.dtype for e in (low, high)):
            raise ValueError(f"the range {dom!r} of a reduction axis has no bounds as the axes run "
                             "that it depends on: write it with sums and factors of them")
        return Range.from_min_extent(self.analyzer.simplify(low),
                                     self.analyzer.simplify(O.sub(high, low)))

    def simplified(self, regions: Sequence[BufferRegion]) -> tuple[BufferRegion, ...]:
        """Regions with the bounds of their boxes simplified."""
        simplify = self.analyzer.simplify
        return tuple(BufferRegion(r.buffer, tuple(Range.from_min_extent(
            simplify(d.min), simplify(d.extent)) for d in r.region)) for r in regions)

    def block(self, op: ComputeOp, name: str, axes: Sequence[IterVar], doms: Sequence[Range],
              values: Sequence[PrimExpr], output: int | None,
              given: Mapping[Var, PrimExpr] | None = None) -> BlockRealize:
        """One block: of output number `output`, or of a reduction with all its outputs. `values`
        are those of `axes`; `given` says what the other axes of the operation are."""
        iters = [IterVar(d, Var(f"v_{_plain(iv.var.name)}", d.extent.dtype), iv.iter_type)
                 for iv, d in zip(axes, doms)]
        table = {**self.sizes, **(given or {}), **{iv.var: new.var for iv, new in zip(axes, iters)}}
        convert = _ToBuffers(self.buffers, table, self.index_dtype).visit
        indices = [table[iv.var] for iv in op.axis]
        if not iters:  # a block needs an iterator to be more than a statement
            iters = [IterVar(Range(1), Var("vi", "int32"), IterVar.DataPar)]
            values = (IntImm("int32", 0),)
        init = None
        if output is None:
            init, body = self.reduction(op, indices, convert)
            if not op.reduce_axis:  # one term, which needs no initial value unless one is given
                init, body = None, seq(init, body) if op.reduction.init else self.only_term(
                    op, indices, convert)
            elif not any(iv in axes for iv in op.reduce_axis):
                init, body = None, init
        else:
            value = self.analyzer.simplify(convert(op.body[output]))
            buffer = self.buffers[op.outputs[output]]
            body = BufferStore(buffer, O.cast(value, buffer.dtype), indices)
        return BlockRealize(list(values), True, _with_regions(
            Block(iters, (), (), name, body, init, annotations=_annotations(op))))

    def reduction(self, op: ComputeOp, indices: list[Var], convert: Callable
                  ) -> tuple[Stmt, Stmt]:
        """The init and the update of a reduction block."""
        reduce = op.reduction
        combiner = reduce.combiner
        targets = [self.buffers[t] for t in op.outputs]
        current = [BufferLoad(b, indices) for b in targets]
        identity = [convert(e) for e in combiner.identity_element]
        source = [self.analyzer.simplify(convert(e)) for e in reduce.source]
        if not O.is_const_int(reduce.condition, 1):
            # elements left out count as the identity, so the block stays a plain reduction
            where = self.analyzer.simplify(convert(reduce.condition))
            source = [O.if_then_else(where, s, O.cast(e, s.dtype))
                      for s, e in zip(source, identity)]
        source = [O.cast(s, b.dtype) for s, b in zip(source, targets)]
        table = {**dict(zip(combiner.lhs, current)), **dict(zip(combiner.rhs, source))}
        values = [_ToBuffers({}, table).visit(convert(e)) for e in combiner.result]
        starts = [convert(e) for e in reduce.init] or identity
        init = seq(*(BufferStore(b, O.cast(e, b.dtype), indices)
                     for b, e in zip(targets, starts)))
        if len(targets) == 1:
            return init, BufferStore(targets[0], values[0], indices)
        # all new values are computed before the first of them is stored
        lets = [Var(f"v_{b.name}", b.dtype) for b in targets]
        body = seq(*(BufferStore(b, v, indices) for b, v in zip(targets, lets)))
        for let, value in zip(reversed(lets), reversed(values)):
            body = LetStmt(let, O.cast(value, let.dtype), body)
        return init, body

    def only_term(self, op: ComputeOp, indices: list[Var], convert: Callable) -> Stmt:
        """The stores of a reduction over no axes: its one term."""
        reduce = op.reduction
        values = [self.analyzer.simplify(convert(e)) for e in reduce.source]
        if not O.is_const_int(reduce.condition, 1):
            where = self.analyzer.simplify(convert(reduce.condition))
            starts = [convert(e) for e in reduce.combiner.identity_element]
            values = [O.if_then_else(where, v, O.cast(e, v.dtype))
                      for v, e in zip(values, starts)]
        buffers = [self.buffers[t] for t in op.outputs]
        return seq(*(BufferStore(b, O.cast(v, b.dtype), indices)
                     for b, v in zip(buffers, values)))

    def of_extern(self, op: ExternOp) -> Stmt:
        """A block without iterators around the foreign code."""
        self.block_names[op] = name = self.fresh(op.name)
        ins = [self.buffers[t] for t in op.inputs]
        outs = [self.buffers[t] for t in op.outputs]
        table: dict[Var, PrimExpr] = {}
        renamed: dict[Buffer, Buffer] = {}
        for old, new in zip((*op.input_placeholders, *op.output_placeholders), (*ins, *outs)):
            renamed[old] = new
            table[old.data] = new.data
            for a, b in zip(old.shape, new.shape):
                if isinstance(a, Var) and a is not b:
                    table[a] = b
        body = substitute(op.body, {**self.sizes, **table}, renamed)
        if isinstance(op, HybridOp):
            return hybrid_statement(body, name, op, renamed, self.fresh)
        reads = tuple(BufferRegion.full_region(b) for b in dict.fromkeys(ins))
        writes = tuple(BufferRegion.full_region(b) for b in outs)
        return BlockRealize((), True, Block((), reads, writes, name, body))


def _without_init(realize: BlockRealize) -> BlockRealize:
    """A reduction's block that goes on with what another one has set."""
    block = realize.block
    return realize.replace(block=block.replace(init=None, reads=(*block.writes, *block.reads)))


def _outer_first(axes: Sequence[IterVar]) -> list[IterVar]:
    """Reduction axes in an order in which each comes after those that its range names."""
    out: list[IterVar] = []
    left = list(axes)
    while left:
        names = {iv.var for iv in left}
        ready = next((iv for iv in left if not any(
            uses_var(e, names) for e in (iv.dom.min, iv.dom.extent))), None)
        if ready is None:
            raise ValueError("the ranges of the reduction axes "
                             f"{', '.join(iv.var.name for iv in left)} depend on each other")
        out.append(ready)
        left.remove(ready)
    return out


def _plain(name: str) -> str:
    """A name of an axis such as k.outer as a loop is called."""
    return name.replace(".", "_")


def _annotations(op: ComputeOp) -> dict[str, Any]:
    """What an operation's attributes say about its blocks."""
    return {k: annotation_value(v) for k, v in op.attrs.items()
            if k != "layout_free_placeholders" and not isinstance(v, Tensor)}


def _with_regions(block: Block) -> Block:
    reads, writes, _ = block_access_regions(block)
    return block.replace(reads=reads, writes=writes)


def operations(outputs: Sequence[Operation],
               inputs: Callable[[Operation], Sequence[Tensor]] = lambda op: op.input_tensors
               ) -> list[Operation]:
    """All operations the given ones need, producers first; `inputs` says what one reads."""
    order: dict[Operation, None] = {}
    stack: list[tuple[Operation, bool]] = [(op, False) for op in reversed(list(outputs))]
    while stack:
        op, done = stack.pop()
        if op in order:
            continue
        if done:
            order[op] = None
        else:
            stack.append((op, True))
            stack += [(t.op, False) for t in reversed(inputs(op))]
    return list(order)


class Built(NamedTuple):
    """A function made of operations: the name of the block of each, that of the block around it
    where its reduction varies with the element, and the buffer of each tensor."""

    func: PrimFunc
    names: dict[Operation, str]
    around: dict[Operation, str]
    buffers: dict[Tensor, Buffer]


@grows_stack
def build_prim_func(args: Sequence[Any], index_dtype: str | None = None,
                    instead: Mapping[Operation, Sequence[Operation]] | None = None,
                    twice: Collection[Operation] = (), from_zero: bool = False) -> Built:
    """The function, with the names of its blocks and the buffers of its tensors.

    Operations in `instead` are computed by those given, the last of which has the same outputs.
    Those in `twice` are computed twice: for the arguments, and in memory of their own for what
    reads them; the names and buffers are those of the latter. With `from_zero` all loops start at
    zero, wherever the axes start.
    """
    builder = _Builder(index_dtype, instead or {}, from_zero)
    params: list[Var] = []
    buffer_map: dict[Var, Buffer] = {}
    for arg in args:
        if isinstance(arg, Tensor):
            if arg in builder.buffers or arg in builder.twice:
                raise ValueError(f"{arg.name} is twice among the arguments")
            table = builder.twice if arg.op in twice else builder.buffers
            table[arg] = buffer = builder.buffer_of(arg)
            params.append(Var(f"var_{buffer.name}", "handle"))
            buffer_map[params[-1]] = buffer
        elif isinstance(arg, Var):
            if arg.dtype.startswith("int"):
                builder.widened(arg)
                arg = builder.sizes.get(arg, arg)
            params.append(arg)
        else:
            raise TypeError("create_prim_func takes a list of te tensors and variables, and got "
                            f"a {type(arg).__name__} in it")
    order = operations([a.op for a in args if isinstance(a, Tensor)])
    for op in order:
        if isinstance(op, PlaceholderOp) and op.output(0) not in builder.buffers:
            have = ", ".join(a.name for a in args)
            raise ValueError(f"the computation reads the placeholder {op.name}, which is not among "
                             f"the arguments ({have}): add it to the list")
    statements = [s for s in map(builder.statement, order) if s is not None]
    body = seq(*statements)
    if not (type(body) is BlockRealize and not body.iter_values and not builder.allocated):
        body = BlockRealize((), True, Block((), (), (), "root", body,
                                            alloc_buffers=builder.allocated))
    attrs: dict[str, Any] = {"global_symbol": "main", "tir.noalias": True}
    free = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a in builder.layout_free]
    if free:
        attrs["layout_free_buffers"] = free
    return Built(PrimFunc(params, body, None, buffer_map, attrs), builder.block_names,
                 builder.block_around, builder.buffers)


def create_prim_func(ops: Sequence[Any], index_dtype_override: str | None = None) -> PrimFunc:
    """The TensorIR function that computes the output tensors in `ops` from the inputs in it.

    `ops` lists the parameters: tensors and scalar variables. Tensors in between that are not
    listed are allocated. `index_dtype_override` ("int64") sets the type of sizes and indices.
    A reduction's `where=` leaves elements out, and its `init=` is its initial value.

    Raises ValueError if a placeholder that is read is missing from the list.
    """
    return build_prim_func(list(ops), index_dtype_override).func


__all__ = ["Built", "build_prim_func", "create_prim_func", "operations", "reduces_nothing"]
