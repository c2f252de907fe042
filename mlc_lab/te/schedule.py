"""Schedules of tensor expressions as in TVM's first years: `s[C].split(C.op.axis[0], 4)`.

A stage records what is asked of it. `to_module(args)` makes the function with create_prim_func and
replays everything on the one Schedule there is (`mlc_lab.schedule`), see `replay.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Sequence

from ..ir.module import IRModule
from ..ir.structural import structural_equal
from ..ir.transform import PassContext
from ..schedule import Schedule as TirSchedule
from ..tir import op as O
from ..tir.buffer import Buffer, extent_of
from ..tir.expr import IterVar, Range, Var
from ..tir.function import PrimFunc
from ..tir.functor import substitute
from .cache_write import cached, relaid
from .create_prim_func import operations
from .error import TensorExprError
from .graph import (
    AutoInlineBroadcast, AutoInlineElemWise, AutoInlineInjective, CreateAttachPath,
    CreateReadGraph, PostDFSOrder, ScanFixPointAnalysis, ScanGetBody,
)
from .group import Group, check_group, make_group
from .relations import Fuse, IterVarAttr, Singleton, Split, iter_var_attrs, relations
from .replay import InferBound, ScheduleOps, replayed
from .rfactor import factored
from .tensor import ComputeOp, Operation, ScanOp, Tensor
from .tensor_compute import TensorComputeOp
from .tensor_intrin import DeclaredIntrin

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr


class _StageOp(Operation):
    """An operation that a schedule introduced (a cache, a part of a reduction) or changed."""

    def __init__(self, name: str, axis: Sequence[IterVar], reduce_axis: Sequence[IterVar],
                 like: Tensor | None) -> None:
        super().__init__(name)
        self.axis, self.reduce_axis = tuple(axis), tuple(reduce_axis)
        if like is not None:
            self.outputs = (Tensor([iv.dom.extent for iv in axis], like.dtype, self),)


def _fresh_axes(axes: Sequence[IterVar], suffix: str) -> list[IterVar]:
    return [IterVar(iv.dom, Var(iv.var.name + suffix, iv.var.dtype), iv.iter_type) for iv in axes]


def _part(parent: IterVar, suffix: str, extent: Any) -> IterVar:
    dom = Range.from_min_extent(O.const(0, parent.var.dtype), O.cast(extent, parent.var.dtype))
    return IterVar(dom, Var(f"{parent.var.name}.{suffix}", parent.var.dtype), parent.iter_type)


class Stage:
    """One operation of a schedule: what is done to its loops and where it is computed.

    `op` is the operation (its axes are `op.axis` and `op.reduce_axis`), `leaf_iter_vars` the loops
    as they stand, outermost first. A stage of a scan's step (`scan`) has no loop for its first
    axis, the time: that loop is the scan's own. `group` is the group of stages that it is in.
    """

    #: values of `attach_type`
    GROUP_ROOT, INLINE, SCOPE, SCAN_UPDATE = 1, 2, 4, 5

    def __init__(self, schedule: "Schedule", op: Operation, scan: "Stage | None" = None) -> None:
        self.schedule, self.op, self.origin_op, self.scan = schedule, op, op, scan
        self.leaf_iter_vars = self.first_loops
        self.steps: list[tuple[str, tuple, tuple]] = []
        self.attached: tuple[Stage, IterVar] | None = None
        self.group: Group | None = None
        self.intrinsics: dict[IterVar, Any] = {}
        self.threads: dict[IterVar, IterVar] = {}
        self.store_predicate: Any = None

    @property
    def attach_type(self) -> int:
        """How its place is said: INLINE, SCOPE (a loop), SCAN_UPDATE, or GROUP_ROOT for none."""
        if ("inline", self) in self.schedule.changes:
            return self.INLINE
        if self.attached is not None:
            return self.SCOPE
        scan: Any = self.scan and self.scan.op
        last = scan is not None and any(t.op is self.origin_op for t in scan.update)
        return self.SCAN_UPDATE if last else self.GROUP_ROOT

    @property
    def relations(self) -> list[Split | Fuse | Singleton]:
        """How its loops were made of each other."""
        return relations(self.steps)

    @property
    def all_iter_vars(self) -> list[IterVar]:
        """Its axes and all loops that were made of them."""
        return [*self.root_axes, *(iv for _, _, made in self.steps for iv in made)]

    @property
    def iter_var_attrs(self) -> dict[IterVar, IterVarAttr]:
        """What was said of each of its loops."""
        return iter_var_attrs(self.steps, self.intrinsics, self.threads)

    @property
    def root_axes(self) -> list[IterVar]:
        """The axes that are loops of this stage before anything is done to them."""
        return [*self.op.axis[0 if self.scan is None else 1:], *self.op.reduce_axis]

    @property
    def first_loops(self) -> list[IterVar]:
        """The loops that can be changed; those of an intrinsic that the stage calls cannot."""
        if isinstance(self.op, TensorComputeOp):
            return list(self.op.outer_axes)
        return self.root_axes

    def __repr__(self) -> str:
        return f"stage({self.op.name})"

    def _leaf(self, axis: IterVar) -> IterVar:
        if not any(axis is iv for iv in self.leaf_iter_vars):
            have = ", ".join(iv.var.name for iv in self.leaf_iter_vars)
            name = axis.var.name if isinstance(axis, IterVar) else repr(axis)
            if self.is_time(axis):
                raise TensorExprError(f"{name} is the time of {self.scan or self}: the steps "
                                      "follow one another, and the loop stays as it is; the "
                                      "others are: "
                                      f"{have}")
            raise TensorExprError(f"{name} is not a loop of {self.op.name} as it stands; its loops "
                                  f"are: {have}")
        return axis

    def is_time(self, axis: IterVar) -> bool:
        """Whether an axis is the time of the scan that this is, or is a step of."""
        if self.scan is not None:
            return axis is self.op.axis[0] or self.scan.is_time(axis)
        return isinstance(self.origin_op, ScanOp) and axis is self.op.axis[0]

    def _place(self, axis: IterVar) -> int:
        self._leaf(axis)
        return next(i for i, iv in enumerate(self.leaf_iter_vars) if iv is axis)

    def _record(self, method: str, args: tuple, results: tuple = ()) -> None:
        self.steps.append((method, args, results))
        self.schedule._note(method)

    def _reattach(self, axes: Sequence[IterVar], new: IterVar) -> None:
        """Attach stages that are computed at one of `axes` to the loop that replaces it."""
        for stage in self.schedule.stages:
            if stage.attached is not None and stage.attached[0] is self:
                if any(stage.attached[1] is axis for axis in axes):
                    stage.attached = (self, new)

    # ------------------------------------------------------------------------------- loops

    def split(self, parent: IterVar, factor: int | PrimExpr | None = None,
              nparts: int | PrimExpr | None = None, disable_predication: bool = False) -> tuple:
        """Split a loop: `factor` is the extent of the inner one, or `nparts` of the outer one.
        With `disable_predication` nothing is left out where that does not divide the extent: the
        caller answers for what the surplus iterations touch."""
        if (factor is None) == (nparts is None):
            raise TensorExprError("split takes either factor= or nparts=")
        at = self._place(parent)
        extent = parent.dom.extent
        factor, nparts = (n if n is None else extent_of(n) for n in (factor, nparts))
        if nparts is None:
            sizes = (O.ceildiv(extent, factor), factor)
        else:
            sizes = (nparts, O.ceildiv(extent, nparts))
        outer, inner = (_part(parent, n, O.convert(e))
                        for n, e in zip(("outer", "inner"), sizes))
        self.leaf_iter_vars[at:at + 1] = [outer, inner]
        self._reattach((parent,), inner)
        self._record("split", (parent, factor, nparts, disable_predication), (outer, inner))
        return outer, inner

    def fuse(self, *axes: IterVar) -> IterVar:
        """Fuse adjacent loops, outermost first, into one; of none, a loop of one iteration."""
        axes = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], (list, tuple)) else axes
        if not axes:
            single = IterVar(Range(1), Var("singleton", "int32"), IterVar.DataPar)
            self.leaf_iter_vars.insert(0, single)
            self._record("fuse", (), (single,))
            return single
        places = [self._place(a) for a in axes]
        if places != list(range(places[0], places[0] + len(places))):
            raise TensorExprError("fuse takes loops that are adjacent, outermost first: got "
                                  + ", ".join(a.var.name for a in axes))
        extent = axes[0].dom.extent
        for axis in axes[1:]:
            extent = extent * axis.dom.extent
        fused = IterVar(Range.from_min_extent(O.const(0, extent.dtype), extent),
                        Var(".".join(a.var.name for a in axes) + ".fused", extent.dtype),
                        axes[0].iter_type)
        self.leaf_iter_vars[places[0]:places[-1] + 1] = [fused]
        self._reattach(axes, fused)
        self._record("fuse", axes, (fused,))
        return fused

    def reorder(self, *axes: IterVar) -> None:
        """Put loops in the given order; those not named stay where they are."""
        places = sorted(self._place(a) for a in axes)
        if len(set(places)) < len(places):
            raise TensorExprError("reorder takes each loop once: got "
                                  + ", ".join(a.var.name for a in axes))
        for at, axis in zip(places, axes):
            self.leaf_iter_vars[at] = axis
        self._record("reorder", axes)

    def tile(self, x_parent: IterVar, y_parent: IterVar, x_factor: int | PrimExpr,
             y_factor: int | PrimExpr) -> tuple:
        """Split two loops and put the tiles innermost: (x.outer, y.outer, x.inner, y.inner)."""
        xo, xi = self.split(x_parent, factor=x_factor)
        yo, yi = self.split(y_parent, factor=y_factor)
        self.reorder(xo, yo, xi, yi)
        return xo, yo, xi, yi

    def parallel(self, var: IterVar) -> None:
        """Run a loop on all cores."""
        self._record("parallel", (self._leaf(var),))

    def vectorize(self, var: IterVar) -> None:
        """Run a loop as lanes of vector instructions."""
        if self._leaf(var).iter_type == IterVar.CommReduce:
            raise TensorExprError(f"vectorize: {var.var.name} is a reduction loop of "
                                  f"{self.op.name}: its iterations add to one result; split it, "
                                  "and rfactor the part that is to be lanes")
        self._record("vectorize", (var,))

    def unroll(self, var: IterVar) -> None:
        """Repeat the loop's body instead of looping."""
        self._record("unroll", (self._leaf(var),))

    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Bind a loop to a GPU thread axis."""
        self._record("bind", (self._leaf(ivar), thread_ivar.thread_tag))
        self.threads[ivar] = thread_ivar
        self.schedule.threads[thread_ivar.var] = thread_ivar.thread_tag

    def set_store_predicate(self, predicate: PrimExpr) -> None:
        """Store only where `predicate` holds, an expression of thread axes: `tx.var.equal(0)`.

        The threads that a reduction runs across take part in it all the same, and its result is
        stored once.
        """
        self.store_predicate = O.convert(predicate)

    def double_buffer(self) -> None:
        """Let the result be kept twice, to be filled while what was there before is read.

        A mark for code generators of GPUs (`double_buffer_scope`); the values are the same.
        """
        self._record("double_buffer", ())

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: Any = None) -> None:
        """Attach a pragma, such as auto_unroll_max_step, to a loop.

        The pragmas "vectorize" and "unroll" do what the methods of that name do.
        """
        if pragma_type in ("vectorize", "unroll"):
            getattr(self, pragma_type)(var)
            return
        value = 1 if pragma_value is None else pragma_value
        self._record("pragma", (self._leaf(var), pragma_type, value))

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Make the stride of a dimension of the result a multiple of `factor` plus `offset`."""
        at = next(i for i, iv in enumerate(self.op.axis) if iv is axis)
        self._record("storage_align", (at, factor, offset))

    def tensorize(self, var: IterVar, tensor_intrin: str | DeclaredIntrin) -> None:
        """Replace a loop and what is in it by an intrinsic: of `te.decl_tensor_intrin`, or the name
        of a registered one (`tir.TensorIntrin`). The last one given for a loop counts."""
        leaf = self._leaf(var)
        name = tensor_intrin
        if isinstance(tensor_intrin, DeclaredIntrin):
            tensor_intrin.check(self)
            name = tensor_intrin.name
        self.intrinsics[leaf] = tensor_intrin
        self.steps = [s for s in self.steps if s[0] != "tensorize" or s[1][0] is not leaf]
        self._record("tensorize", (leaf, str(name)))

    # ------------------------------------------------------------------------------- places

    def compute_at(self, parent: "Stage", scope: IterVar) -> None:
        """Compute this stage inside a loop of the stage that reads it.

        If that loop is split later, the place is its inner part; if it is fused, the fused loop.
        The stages of a scan's step are computed at each time anyway.
        """
        if self.scan is not None and parent.is_time(scope) and (
                self.scan in (parent, parent.scan)):
            return self.compute_root()
        check_group(self, parent)
        self.schedule._note("compute_at")
        self.attached = (parent, parent._leaf(scope))

    def compute_root(self) -> None:
        """Compute this stage by itself, before the stages that read it."""
        self.attached = None
        self.schedule.changes = [c for c in self.schedule.changes if c != ("inline", self)]

    def compute_inline(self) -> None:
        """Write this stage's expression into the stages that read it."""
        self.schedule.changes.append(("inline", self))
        self.schedule._note("compute_inline")

    def set_scope(self, scope: str) -> None:
        """Keep the result in another kind of memory ("shared", "local")."""
        self.schedule.changes.append(("set_scope", self, scope))
        self.schedule._note("set_scope")


class Schedule:
    """The stages of a computation: `s[tensor]` or `s[op]`.

    With `PassContext(config={"te.keep_schedule_record": True})`, `primitive_record` has the name of
    each step, and `schedule_record` the loops of each stage after it.
    """

    def __init__(self, ops: Sequence[Operation]) -> None:
        self.outputs = list(ops)
        self.stages: list[Stage] = []
        self.groups: list[Group] = []
        self.primitive_record: list[str] = []
        self.schedule_record: list[dict[Stage, tuple[IterVar, ...]]] = []
        self.stage_map: dict[Operation, Stage] = {}
        for op in operations(ops):
            self._stages_of(op)
        self.changes: list[tuple] = []
        #: the tag of each thread axis that a loop is bound to
        self.threads: dict[Var, str] = {}
        #: operations that others compute by now: the one with the result is the last
        self.instead: dict[Operation, tuple[Operation, ...]] = {}
        self._note("vanilla")

    def _note(self, primitive: str) -> None:
        """Keep the state after a step, where the context asks for it."""
        if PassContext.current().config.get("te.keep_schedule_record"):
            self.primitive_record.append(primitive)
            self.schedule_record.append({s: tuple(s.leaf_iter_vars) for s in self.stages})

    def __getitem__(self, which: Any) -> Stage:
        op = which.op if isinstance(which, Tensor) else which
        if op not in self.stage_map:
            raise TensorExprError(f"{getattr(op, 'name', op)} is not part of this schedule")
        return self.stage_map[op]

    def _stages_of(self, op: Operation) -> None:
        """The stage of an operation; with a scan, those of its first rows and of its step too."""
        stage = Stage(self, op)
        if isinstance(op, ScanOp):
            made = [Stage(self, t.op) for t in op.init if t.op not in self.stage_map]
            made += [Stage(self, step, stage) for step in op.steps()]
            self.stages += made
            self.stage_map.update((s.op, s) for s in made)
            self.groups.append(Group(self))
            for step in made:
                step.group = self.groups[-1] if step.scan is not None else None
        self.stages.append(stage)
        self.stage_map[op] = stage

    def create_group(self, outputs: Any, inputs: Any, include_inputs: bool = False) -> Group:
        """A group of all stages on the way from `inputs` to `outputs`, tensors or lists of them.

        They are computed at one place, by `group.compute_at`, but for those that have another place
        within the group. The inputs belong to it with `include_inputs`.
        """
        return make_group(self, outputs, inputs, include_inputs)

    def normalize(self) -> "Schedule":
        """This schedule; loops always start at zero here."""
        return self

    def _add(self, op: Operation, at: int, scan: Stage | None = None) -> Stage:
        stage = Stage(self, op, scan)
        if scan is not None:
            stage.group = self.stages[at].group
        self.stages.insert(at, stage)
        self.stage_map[op] = stage
        return stage

    def cache_read(self, tensor: Tensor, scope: str, readers: Any) -> Tensor:
        """A copy of `tensor` in memory of `scope`, which `readers` read instead; its tensor."""
        readers = readers if isinstance(readers, (list, tuple)) else [readers]
        stages = [self[r] for r in readers]
        axes = [IterVar(Range.from_min_extent(O.const(0, d.dtype), d), Var(f"ax{i}", d.dtype), 0)
                for i, d in enumerate(tensor.shape)]
        op = _StageOp(f"{tensor.op.name}.{scope}", axes, (), tensor)
        stage = self._add(op, min(self.stages.index(s) for s in stages))
        self.changes.append(("cache_read", stage, tensor, scope, stages))
        return op.output(0)

    def cache_write(self, tensor: Tensor | Sequence[Tensor], scope: str) -> Any:
        """Compute `tensor` in memory of `scope` and copy it out; the tensor computed there.

        The loops of the computation are those of the new stage; the old one is the copy. Where the
        loops were split, fused or reordered before, the memory is laid out as they are. Of a list
        of all results of one stage a list is given.
        """
        if not isinstance(tensor, Tensor):
            return self._cache_write_all(list(tensor), scope)
        stage = self[tensor]
        old = stage.op
        if isinstance(old, ComputeOp) and stage.scan is None:
            name = f"{old.name}_{scope.replace('.', '_')}"
            found = cached(old, name, _fresh_axes(old.axis, ".c")) if not stage.steps else relaid(
                old, name, stage.steps, stage.leaf_iter_vars)
            found.made.scope = scope
            self._split_in_two(stage, *found)
            stage.steps, stage.leaf_iter_vars = [], stage.first_loops
            self._note("cache_write")
            return found.made.output(tensor.value_index)
        if stage.steps:
            raise TensorExprError(f"cache_write of {tensor.name} must come before its loops are "
                                  "changed")
        op = _StageOp(f"{tensor.op.name}.{scope}", _fresh_axes(old.axis, ".c"),
                      _fresh_axes(old.reduce_axis, ""), tensor)
        made = self._add(op, self.stages.index(stage), stage.scan)
        copy = _StageOp(old.name, old.axis, (), None)
        copy.outputs = old.outputs
        stage.op = copy
        stage.leaf_iter_vars = stage.root_axes
        self.stage_map[copy] = stage
        self.changes.append(("cache_write", stage, made, scope))
        return op.output(0)

    def _cache_write_all(self, tensors: list[Tensor], scope: str) -> list[Tensor]:
        ops = {t.op for t in tensors}
        if len(ops) != 1 or len(set(tensors)) != next(iter(ops)).num_outputs:
            raise TensorExprError("cache_write takes a tensor, or a list of all results of one "
                                  "stage: they are computed together")
        made = self.cache_write(tensors[0], scope).op
        return [made.output(t.value_index) for t in tensors]

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Reduce in slices, one for each value of `axis`; the tensor of the slices.

        Any reducer and any sizes will do: places that a split adds count as the identity. A
        reduction over tuples gives a tuple of tensors.
        """
        stage = self[tensor]
        stage._leaf(axis)
        if not isinstance(stage.op, ComputeOp) or not stage.op.reduce_axis or stage.scan:
            what = "a stage of a scan" if stage.scan else "not a reduction of te.compute"
            raise ValueError(f"rfactor needs a reduction: {tensor.name} is {what}")
        known, leaves, early, late = _reduction_steps(stage)
        if not any(axis is iv for iv in leaves):
            raise ValueError(f"{axis.var.name} is not a reduction loop of {tensor.name}")
        slices, final = factored(stage.op, early, leaves, axis, factor_axis)
        self._split_in_two(stage, slices, final)
        stage.steps = late
        stage.leaf_iter_vars = [
            iv for iv in stage.leaf_iter_vars if not any(iv is k for k in known)
        ] + list(final.reduce_axis)
        return slices.output(0) if slices.num_outputs == 1 else slices.outputs

    def _split_in_two(self, stage: Stage, first: ComputeOp, last: ComputeOp) -> Stage:
        """Let `first` and then `last` compute what a stage did; the new stage, of `first`.

        Caches of the inputs of the stage are read by the new one.
        """
        self.instead[stage.op] = (first, last)
        made = self._add(first, self.stages.index(stage))
        stage.op = stage.origin_op = last
        self.stage_map[last] = stage
        for kind, _, *rest in self.changes:
            if kind == "cache_read":
                rest[-1][:] = [made if reader is stage else reader for reader in rest[-1]]
        return made

    # ------------------------------------------------------------------------------- replay

    def to_module(self, args: Sequence[Any], name: str = "main",
                  binds: Mapping[Tensor, Buffer] | None = None) -> IRModule:
        """The scheduled function of the parameters `args`, called `name`, as a module.

        `binds` gives parameters buffers of one's own, with strides, an offset or a name; such a
        buffer may stand for its tensor in `args`. Raises ScheduleError where a step is not legal,
        with the program as it was before; ValueError for a buffer that does not fit its tensor.
        """
        binds = dict(binds or {})
        args = [_tensor_of(arg, binds) if isinstance(arg, Buffer) else arg for arg in args]
        func = _with_buffers(replayed(self, args).function(), args, binds)
        return IRModule({name: func.with_attr("global_symbol", name)})

    def to_schedule(self, args: Sequence[Any]) -> TirSchedule:
        """The Schedule on which all was replayed; its trace shows the steps."""
        return replayed(self, args).sch


def _tensor_of(buffer: Buffer, binds: Mapping[Tensor, Buffer]) -> Tensor:
    for tensor, given in binds.items():
        if given is buffer:
            return tensor
    raise ValueError(f"buffer {buffer.name} is a parameter of no tensor: binds={{tensor: buffer}} "
                     "says which one is in it")


def _with_buffers(func: PrimFunc, args: Sequence[Any], binds: Mapping[Tensor, Buffer]) -> PrimFunc:
    """A function of `args` whose parameters lie in the buffers that are given for them."""
    places = {arg: param for arg, param in zip(args, func.params) if isinstance(arg, Tensor)}
    new: dict[Buffer, Buffer] = {}
    for tensor, buffer in binds.items():
        if tensor not in places:
            raise ValueError(f"binds= has a buffer for {tensor.name}, which is no parameter: the "
                             "memory of other tensors is the schedule's")
        own = func.buffer_map[places[tensor]]
        if own.dtype != buffer.dtype or len(own.shape) != len(buffer.shape) or not all(
                map(structural_equal, own.shape, buffer.shape)):
            raise ValueError(f"binds= gives {tensor.name}, {own.dtype} of shape {own.shape}, the "
                             f"buffer {buffer.name}, {buffer.dtype} of shape {buffer.shape}")
        if buffer in new.values():
            raise ValueError(f"binds= gives buffer {buffer.name} to two tensors: each has memory "
                             "of its own")
        new[own] = buffer
    if not new:
        return func
    body = substitute(func.body, {own.data: buffer.data for own, buffer in new.items()}, new)
    return PrimFunc(func.params, body, func.ret_type,
                    {p: new.get(b, b) for p, b in func.buffer_map.items()}, func.attrs)


def _reduction_steps(stage: Stage) -> tuple[list, list, list, list]:
    """The reduction's axes with all made of them, the loops among these, the steps that made them,
    and the other steps of a stage."""
    known = list(stage.op.reduce_axis)
    early, late = [], []
    for step in stage.steps:
        method, args, results = step
        axes = [a for a in args if isinstance(a, IterVar)]
        own = [a for a in axes if any(a is iv for iv in known)]
        if not own:
            late.append(step)
        elif method == "reorder":
            others = tuple(a for a in axes if a not in own)
            late += [(method, others, ())] if len(others) > 1 else []
        elif method in ("split", "fuse"):
            if len(own) < len(axes):
                raise ValueError(f"rfactor of {stage.op.name}: a loop is fused of spatial and "
                                 "reduction loops, whose parts cannot be told apart")
            early.append(step)
            known += results
        else:
            raise ValueError(f"rfactor of {stage.op.name} must come before its loop "
                             f"{own[0].var.name} is {_DONE.get(method, method)}: that is said of "
                             "the loops of the stages which rfactor makes")
    leaves = [iv for iv in stage.leaf_iter_vars if any(iv is k for k in known)]
    return known, leaves, early, late


_DONE = {"parallel": "made parallel", "vectorize": "vectorized", "unroll": "unrolled",
         "bind": "bound to a thread axis", "pragma": "given a pragma", "tensorize": "tensorized"}


def create_schedule(ops: Any) -> Schedule:
    """A schedule of an operation (`C.op`) or a list of them and all they need."""
    ops = ops if isinstance(ops, (list, tuple)) else [ops]
    return Schedule(list(dict.fromkeys(op.op if isinstance(op, Tensor) else op for op in ops)))


__all__ = ["AutoInlineBroadcast", "AutoInlineElemWise", "AutoInlineInjective", "Buffer",
           "CreateAttachPath", "CreateReadGraph", "Fuse", "Group", "InferBound", "IterVar",
           "IterVarAttr", "PostDFSOrder", "ScanFixPointAnalysis", "ScanGetBody", "Schedule",
           "ScheduleOps", "Singleton", "Split", "Stage", "create_schedule"]
