"""How a schedule of te is replayed on the one Schedule: the steps of each stage, in order.

First what changes the stages (caches, inlining, rfactor), then, from the results to the inputs,
where each stage is computed and what becomes of its loops.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ..arith.analyzer import Analyzer
from ..ir.structural import structural_equal
from ..schedule import Schedule as TirSchedule
from ..schedule import ScheduleError
from ..tir.expr import IterVar, PrimExpr, Range, Var
from ..tir.function import PrimFunc
from ..tir.functor import free_vars, substitute
from ..tir.op import as_int, const
from .create_prim_func import Built, build_prim_func, reduces_nothing
from .error import TensorExprError
from .group import place_of
from .hybrid_op import HybridOp, hybrid_loops
from .store_predicate import with_store_predicates
from .tensor import ComputeOp, Operation, PlaceholderOp, Tensor
from .tensor_compute import TensorComputeOp
from .varying import VaryingNest

if TYPE_CHECKING:
    from ..tir.stmt import Stmt
    from .schedule import Schedule, Stage


class Replay:
    """One replay of a te schedule on a tir.Schedule.

    With `on` the steps are done on a schedule that there is already, of the program that was built
    of `args`; stages to which nothing is done are left as they are. The inlining of a stage that is
    in `may_stay` is left out where it is refused.
    """

    def __init__(self, schedule: Schedule, args: Sequence[Any], twice: Sequence[Operation] = (),
                 on: tuple[TirSchedule, Built] | None = None,
                 may_stay: Collection[Stage] = ()) -> None:
        # outputs of the schedule that are no parameters are computed all the same
        self.hidden = [op.outputs[0] for op in schedule.outputs
                       if not any(_among(tensor, args) for tensor in op.outputs)]
        built = on[1] if on is not None else build_prim_func(
            [*args, *self.hidden], instead=schedule.instead, from_zero=True,
            twice=[*twice, *_inlined(schedule, args)])
        _, names, around, self.buffers = built
        self.sch = TirSchedule(built.func) if on is None else on[0]
        self.may_stay = may_stay
        done = None if on is None else changed_stages(schedule)
        self.blocks: dict[Stage, Any] = {}
        #: the block that reduces, inside of that of a stage whose reduction varies
        self.inner: dict[Stage, Any] = {}
        self.inits: dict[Stage, Any] = {}
        self.loops: dict[Stage, dict[IterVar, Any]] = {}
        #: how far each axis goes where its stage is computed
        self.ranges: dict[IterVar, Range] = {}
        #: the axis of a stage that each loop is
        self.axes: dict[Var, PrimExpr] = {}
        for stage in schedule.stages:
            if stage.origin_op in names and (done is None or stage in done):
                block = self.sch.get_block(names[stage.origin_op])
                if stage.origin_op in around:
                    self.inner[stage] = block
                    block = self.sch.get_block(around[stage.origin_op])
                self.blocks[stage] = block
        self.schedule = schedule
        self.inlined: set[Stage] = set()
        for kind, stage, *rest in _in_order(schedule):
            getattr(self, f"do_{kind}")(stage, *rest)
            if kind == "inline":
                self.inlined.add(stage)
        for stage in reversed(schedule.stages):
            if stage in self.inlined or stage not in self.blocks:
                continue
            if isinstance(stage.origin_op, PlaceholderOp):
                continue
            self.finish(stage)

    def function(self) -> PrimFunc:
        """The scheduled function, with the predicates of stores in it."""
        func = self._without_hidden(self.sch.mod["main"])
        guarded = {self.sch.get(block): stage.store_predicate
                   for stage in self.schedule.stages if stage.store_predicate is not None
                   for block in (self.blocks[stage], self.inits.get(stage)) if block is not None}
        return with_store_predicates(func, guarded, self.schedule.threads) if guarded else func

    def _without_hidden(self, func: PrimFunc) -> PrimFunc:
        """The results that are no parameters in memory of the function's own."""
        count = len(self.hidden)
        if not count:
            return func
        own = [func.buffer_map[param] for param in func.params[-count:]]
        root = func.root
        body = func.body.replace(block=root.replace(alloc_buffers=(*root.alloc_buffers, *own)))
        return PrimFunc(func.params[:-count], body, func.ret_type,
                        {p: b for p, b in func.buffer_map.items() if p in func.params[:-count]},
                        func.attrs)

    def buffer_of(self, tensor: Tensor) -> Any:
        """The buffer that holds a tensor by now."""
        stage = self.schedule.stage_map.get(tensor.op)
        if stage in self.inlined:
            raise ValueError(f"{tensor.name} is inlined: there is nothing in memory to cache; "
                             "cache what its readers read instead, or do not inline it")
        if stage in self.blocks:
            return self.sch.get(self.blocks[stage]).writes[tensor.value_index].buffer
        return self.buffers[tensor]

    def do_inline(self, stage: Stage) -> None:
        try:
            self.sch.compute_inline(self.blocks[stage])
        except ScheduleError:
            if stage not in self.may_stay:
                raise

    def do_set_scope(self, stage: Stage, scope: str) -> None:
        if self.sch.get(self.blocks[stage]).writes[0].buffer.scope == scope:
            return  # it is there, as a parameter may be
        self.sch.set_scope(self.blocks[stage], 0, scope)

    def do_cache_read(self, stage: Stage, tensor: Tensor, scope: str, readers: list) -> None:
        for reader in readers:
            if reader in self.inlined:
                raise ValueError(f"cache_read: {reader.op.name}, which would read the copy of "
                                 f"{tensor.name}, is inlined: name those that read "
                                 f"{reader.op.name} instead, or do not inline it")
        blocks = [self.blocks[r] for r in readers]
        buffer = self.buffer_of(tensor)
        reads = [r.buffer for r in self.sch.get(blocks[0]).reads]
        if buffer not in reads:
            raise ValueError(f"cache_read: {readers[0].op.name} does not read {tensor.name}")
        self.blocks[stage] = self.sch.cache_read(blocks[0], reads.index(buffer), scope, blocks)

    def do_cache_write(self, stage: Stage, made: Stage, scope: str) -> None:
        block = self.blocks[stage]
        self.blocks[stage] = self.sch.cache_write(block, 0, scope)
        self.blocks[made] = block

    def finish(self, stage: Stage) -> None:
        """Where a stage is computed, then its loops."""
        block = self.blocks[stage]
        place = place_of(stage)
        if place is not None:
            parent, axis = place
            if axis not in self.loops.get(parent, {}):
                raise TensorExprError(f"{stage.op.name} is to be computed at {axis.var.name}, "
                                      f"which is no loop of {parent.op.name} any more")
            self.sch.compute_at(block, self.loops[parent][axis], True)
        if isinstance(stage.op, HybridOp):
            self.finish_hybrid(stage, stage.op)
            return
        axes = stage.root_axes
        loops = [*self.sch.get_loops(block)]  # a list of its own: the trace has the other one
        if stage in self.inner:
            loops += self.sch.get_loops(self.inner[stage])
        if reduces_nothing(stage.op):
            loops += [self.sch.add_unit_loop(block) for _ in stage.op.reduce_axis]
        table = self.loops[stage] = dict(zip(axes, loops[len(loops) - len(axes):]))
        op = stage.op
        if isinstance(op, TensorComputeOp):
            self.sch.reorder(*[table[a] for a in (*op.outer_axes, *op.inner_axes)])
        self.measure(table)
        self.measure_from(self.inner.get(stage, block), axes)
        nest = VaryingNest(self, stage, table) if stage in self.inner else None
        for step in stage.steps:
            if step[0] == "tensorize":
                continue
            if nest is None or not nest.reordered(step):
                self.apply(self.blocks[stage], table, step, len(loops) - len(axes))
            self.measure({axis: table[axis] for axis in step[2]})
        self.init_before(stage, block, table)
        for step in stage.steps:  # the init of a sum stays outside of the intrinsic
            if step[0] == "tensorize":
                self.sch.tensorize(table[step[1][0]], step[1][1])
        if isinstance(op, TensorComputeOp):
            self.sch.tensorize(table[op.inner_axes[0]], op.intrin.name)

    def finish_hybrid(self, stage: Stage, op: HybridOp) -> None:
        """The steps of a stage that is written as loops."""
        block = self.blocks[stage]
        table = self.loops[stage] = hybrid_loops(self.sch, block, op)
        self.measure(table)
        for step in stage.steps:
            self.apply(block, table, step, 0)
            self.measure({axis: table[axis] for axis in step[2]})

    def measure(self, table: dict[IterVar, Any]) -> None:
        """Note how far loops go, said by the axes of the stages around."""
        for axis, loop in table.items():
            found = self.sch.get(loop)
            self.axes[found.loop_var] = axis.var
            self.ranges[axis] = Range.from_min_extent(found.min,
                                                      substitute(found.extent, self.axes))

    def measure_from(self, block: Any, axes: Sequence[IterVar]) -> None:
        """Note where the axes of a stage begin: its block at the first iteration of its loops."""
        realize = self.sch.state.realize_of(self.sch.get_sref(block))
        mine = {axis.var: axis for axis in axes}
        zero = {var: const(0, var.dtype) for var in mine}
        for value in realize.iter_values:
            value = substitute(value, self.axes)
            at = [var for var in free_vars(value) if var in mine]
            if len(at) == 1 and not structural_equal(value, at[0]):
                found = self.ranges[mine[at[0]]]
                self.ranges[mine[at[0]]] = Range.from_min_extent(
                    Analyzer().simplify(substitute(value, zero)), found.extent)

    def init_before(self, stage: Stage, block: Any, table: dict[IterVar, Any]) -> None:
        """Store the initial value of a reduction before its outermost loop, as TE always does.

        Where that loop runs across threads, or does not drive the reduction alone, the init stays
        in the block.
        """
        block = self.inner.get(stage, block)
        if self.sch.get(block).init is None:
            return
        across = {step[1][0] for step in stage.steps if step[0] in ("bind", "parallel")}
        whole = {step[1][0] for step in stage.steps if step[0] == "tensorize"}
        leaves = stage.leaf_iter_vars
        if isinstance(stage.op, TensorComputeOp):
            leaves = [*leaves, *stage.op.inner_axes]
            whole.add(stage.op.inner_axes[0])
        for axis in leaves:
            # an intrinsic around all of the reduction has the init before it
            if axis.iter_type == IterVar.CommReduce or axis in whole:
                if axis not in across:
                    try:
                        self.inits[stage] = self.sch.decompose_reduction(block, table[axis])
                    except ScheduleError:
                        pass  # such as a loop that is partly spatial
                return

    def apply(self, block: Any, table: dict[IterVar, Any], step: tuple, outside: int) -> None:
        """One recorded step; `table` gives the loop of each axis, and `outside` loops of other
        stages are around them."""
        method, args, results = step
        sch = self.sch
        if method == "split":
            parent, *sizes, whole = args
            extent = as_int(sch.get(table[parent]).extent)
            factor, nparts = (_at_most(size, extent) for size in sizes)
            made = sch.split(table[parent], [None, factor] if nparts is None else [nparts, None],
                             disable_predication=whole)
            table.update(zip(results, made))
        elif method == "fuse" and not args:
            table[results[0]] = sch.add_unit_loop([*sch.get_loops(block), block][outside])
        elif method == "fuse":
            table[results[0]] = sch.fuse(*[table[a] for a in args])
        elif method == "reorder":
            sch.reorder(*[table[a] for a in args])
        elif method == "bind":
            tag = "vthread.x" if args[1] == "vthread" else args[1]
            sch.bind(table[args[0]], tag)
        elif method == "pragma":
            sch.annotate(table[args[0]], f"pragma_{args[1]}", args[2])
        elif method == "double_buffer":
            sch.annotate(block, "double_buffer_scope", 0)
        elif method == "storage_align":
            sch.storage_align(block, 0, *args)
        else:
            getattr(sch, method)(table[args[0]])


def changed_stages(schedule: Schedule) -> set[Stage]:
    """The stages that have steps or a place of their own, and those in whose loops others are."""
    out = {stage for _, stage, *_ in schedule.changes}
    for stage in schedule.stages:
        place = place_of(stage)
        if stage.steps or place is not None:
            out.add(stage)
        if place is not None:
            out.add(place[0])
    return out


def _at_most(size: Any, extent: int | None) -> Any:
    """The size of a part of a loop: no longer than the loop is, which may be short where its stage
    is computed."""
    number = None if size is None else as_int(size)
    return size if number is None or not extent or number <= extent else extent


def _among(tensor: Tensor, args: Sequence[Any]) -> bool:
    """Whether a tensor is one of the arguments, which may be variables as well: == of these makes
    an expression."""
    return any(arg is tensor for arg in args)


def _in_order(schedule: Schedule) -> list[tuple]:
    """The changes of the stages; what is cached is inlined after it was: into its copy, then."""
    order = list(schedule.changes)
    for change in schedule.changes:
        if change[0] == "inline":
            later = [c for c in order[order.index(change):] if c[0] == "cache_read"
                     and schedule.stage_map.get(c[2].op) is change[1]]
            if later:
                order.remove(change)
                order.insert(order.index(later[-1]) + 1, change)
    return order


def _inlined(schedule: Schedule, args: Sequence[Any]) -> list[Operation]:
    """The operations that are inlined and arguments as well: these are computed twice."""
    return [t.op for kind, stage, *_ in schedule.changes if kind == "inline"
            for t in stage.origin_op.outputs if _among(t, args)]


def replayed(schedule: Schedule, args: Sequence[Any]) -> Replay:
    """The replay for some arguments. An argument that is computed at a stage which reads only parts
    of it is computed twice: as a whole for the argument, and as far as the stage needs it."""
    try:
        return Replay(schedule, args)
    except ScheduleError as error:
        moved = [t.op for stage in schedule.stages if place_of(stage) is not None
                 for t in stage.origin_op.outputs
                 if _among(t, args) and isinstance(t.op, ComputeOp)]
        if error.rule != "not_an_output_block" or not moved:
            raise
    return Replay(schedule, args, moved)


def all_tensors(schedule: Schedule) -> list[Tensor]:
    """The inputs of a schedule and its results: arguments with which it can be replayed."""
    return [t for stage in schedule.stages for t in stage.op.outputs
            if isinstance(stage.op, PlaceholderOp)] + [
                t for op in schedule.outputs for t in schedule[op].op.outputs]


def InferBound(schedule: Schedule) -> dict[IterVar, Range]:
    """How far each loop of each stage goes, where the stage is computed.

    Raises ScheduleError where a step is not legal.
    """
    replay = replayed(schedule, all_tensors(schedule))
    for stage in replay.inlined:  # these have no loops: their axes are as they were made
        replay.ranges.update((axis, axis.dom) for axis in stage.op.axis)
    return replay.ranges


def ScheduleOps(schedule: Schedule, bounds: object = None, debug_keep_trivial_loop: bool = False
                ) -> Stmt:
    """The scheduled program over the inputs and results of the schedule, as blocks of TensorIR.

    `bounds` are found anew: the program says how far its loops go.
    """
    return replayed(schedule, all_tensors(schedule)).function().body


__all__ = ["InferBound", "Replay", "ScheduleOps", "all_tensors", "changed_stages", "replayed"]
