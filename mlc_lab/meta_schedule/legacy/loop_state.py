"""`auto_scheduler.loop_state`: the loops of a computation while a sketch rule writes its steps.

    s = State(state_object, task.compute_dag)
    i, j, k = s["C"].iters
    i0, i1 = s.split("C", i, [None])          # a size that the search chooses
    s.reorder("C", [i0, j, i1, k])

A state is a list of steps; `state_object` is that list, which never changes: a method makes a new
one. `steps_on_te` says them again on a schedule of te, with the sizes that were chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ...te import create_schedule
from ...te.tensor import ComputeOp, Tensor
from ...tir.expr import IterVar
from ...tir.op import as_int

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from ...te.schedule import Schedule
    from ...te.tensor import Operation
    from ...tir.expr import PrimExpr

    #: how a method names a stage: its number, its operation, a tensor of it, the operation's name
    StageName = int | str | Operation | Tensor

#: how a loop may be told to run, and as which method of a stage of te
ANNOTATIONS = ("parallel", "vectorize", "unroll")
#: methods of TVM's State that have no step here
NOT_CARRIED = {
    "cache_read": "a copy of what is read", "cache_write": "a copy of what is written",
    "rfactor": "a reduction in slices",
    "follow_fused_split": "sizes that follow splits of fused loops"}


class Step(NamedTuple):
    """One step: `kind` is the method's name, `args` what it took, loops by their numbers."""

    kind: str
    stage_id: int
    args: tuple

    def __repr__(self) -> str:
        return f"{self.kind}(stage {self.stage_id}, {', '.join(map(repr, self.args))})"


class Iterator:
    """A loop of a stage. `axis` is the number of the axis that it is, if it is one as it was made;
    `extent` how far it goes, None where that is not known yet."""

    def __init__(self, name: str, extent: int | None, iter_kind: int, axis: int | None = None
                 ) -> None:
        self.name, self.extent, self.iter_kind, self.axis = name, extent, iter_kind, axis
        self.annotation = ""

    @property
    def is_reduction(self) -> bool:
        """Whether its iterations add to one result."""
        return self.iter_kind == IterVar.CommReduce

    def __repr__(self) -> str:
        return f"Iterator({self.name}, {'?' if self.extent is None else self.extent})"


class Stage:
    """One operation: `op`, its loops `iters`, and where it is computed: `compute_at` is "root",
    "inlined" or "iter", `attached` the stage and the loop of the last."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.op_type = "compute" if isinstance(op, ComputeOp) else "placeholder"
        axes = [*op.axis, *op.reduce_axis] if isinstance(op, ComputeOp) else []
        self.iters = [Iterator(iv.var.name, as_int(iv.dom.extent), iv.iter_type, n)
                      for n, iv in enumerate(axes)]
        self.compute_at = "root"
        self.attached: tuple[int, Iterator] | None = None

    def __repr__(self) -> str:
        return f"Stage({self.op.name}: {', '.join(it.name for it in self.iters)})"


class StateObject(NamedTuple):
    """The steps of a state. Two of the same steps are equal."""

    transform_steps: tuple[Step, ...] = ()

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps."""
        return self.transform_steps


class State:
    """The loops after the steps of `state_object`, to which methods add more.

    A stage is named by its operation, a tensor of it, the operation's name or its number. Raises
    ValueError for a step that cannot be said of the loops as they are; whether it may be carried
    out is checked when it is.
    """

    def __init__(self, state_object: Any, dag: Any) -> None:
        given = getattr(state_object, "state_object", state_object)
        self.compute_dag = dag
        self.stages = [Stage(op) for op in dag.ops]
        self._steps: list[Step] = []
        for step in given.transform_steps:
            self._do(step)

    @property
    def state_object(self) -> StateObject:
        """The steps until now."""
        return StateObject(tuple(self._steps))

    @property
    def transform_steps(self) -> list[Step]:
        """The steps until now."""
        return list(self._steps)

    @property
    def stage_ops(self) -> list[Operation]:
        """The operation of each stage."""
        return [stage.op for stage in self.stages]

    def __getitem__(self, which: StageName) -> Stage:
        return self.stages[self._number(which)]

    def copy(self) -> "State":
        """One with the same steps."""
        return State(self.state_object, self.compute_dag)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self._steps == other._steps

    __hash__ = None  # type: ignore[assignment]

    def _number(self, which: Any) -> int:
        if isinstance(which, int):
            if not 0 <= which < len(self.stages):
                raise ValueError(f"there is no stage {which}: there are {len(self.stages)}")
            return which
        op = which.op if isinstance(which, (Tensor, Stage)) else which
        found = [n for n, stage in enumerate(self.stages)
                 if stage.op is op or isinstance(op, str) and stage.op.name == op]
        if len(found) != 1:
            name = getattr(op, "name", op)
            raise ValueError(f"{name} names {'no stage' if not found else 'several stages'} of "
                             f"{', '.join(s.op.name for s in self.stages)}")
        return found[0]

    def _at(self, stage_id: int, iterator: Any) -> int:
        iters = self.stages[stage_id].iters
        for number, it in enumerate(iters):
            if it is iterator:
                return number
        raise ValueError(f"{getattr(iterator, 'name', iterator)} is not a loop of "
                         f"{self.stages[stage_id].op.name} as it stands; its loops are: "
                         f"{', '.join(it.name for it in iters)}")

    # ------------------------------------------------------------------------------- steps

    def _add(self, kind: str, stage: StageName, *args: Any) -> Any:
        return self._do(Step(kind, self._number(stage), args))

    def _do(self, step: Step) -> Any:
        made = getattr(self, f"_do_{step.kind}")(step.stage_id, *step.args)
        self._steps.append(step)
        return made

    def split(self, stage: StageName, iterator: Iterator, lengths: Sequence[int | None],
              inner_to_outer: bool = True) -> list[Iterator]:
        """Split a loop into len(lengths) + 1; lengths are those of the inner loops, or with
        inner_to_outer=False of the outer ones. None: the search chooses, then all are None."""
        number = self._number(stage)
        sizes = tuple(None if n is None else _size(n) for n in lengths)
        return self._add("split", number, self._at(number, iterator), sizes, inner_to_outer)

    def follow_split(self, stage: StageName, iterator: Iterator, src_step_id: int, n_split: int
                     ) -> list[Iterator]:
        """Split a loop into n_split + 1 as step number `src_step_id` split another one: the
        lengths are the first ones of that, and the product of all others."""
        number = self._number(stage)
        return self._add("follow_split", number, self._at(number, iterator), src_step_id, n_split)

    def fuse(self, stage: StageName, iters: Sequence[Iterator]) -> Iterator:
        """Fuse adjacent loops, outermost first, into one."""
        number = self._number(stage)
        return self._add("fuse", number, tuple(self._at(number, it) for it in iters))

    def reorder(self, stage: StageName, order: Sequence[Iterator]) -> None:
        """Put all loops of a stage in an order, outermost first."""
        number = self._number(stage)
        places = tuple(self._at(number, it) for it in order)
        if sorted(places) != list(range(len(self.stages[number].iters))):
            have = ", ".join(it.name for it in self.stages[number].iters)
            raise ValueError(f"reorder takes all loops of {self.stages[number].op.name} once: "
                             f"{have}")
        self._add("reorder", number, places)

    def parallel(self, stage: StageName, iterator: Iterator) -> Iterator:
        """Run a loop on all cores."""
        return self._annotate("parallel", stage, iterator)

    def vectorize(self, stage: StageName, iterator: Iterator) -> Iterator:
        """Run a loop as lanes of vector instructions."""
        return self._annotate("vectorize", stage, iterator)

    def unroll(self, stage: StageName, iterator: Iterator, max_unroll: int | None = None
               ) -> Iterator:
        """Repeat a loop's body instead of looping; not where it is longer than `max_unroll`."""
        if max_unroll is not None and iterator.extent is not None and (
                iterator.extent > max_unroll):
            return iterator
        return self._annotate("unroll", stage, iterator)

    def _annotate(self, how: str, stage: StageName, iterator: Iterator) -> Iterator:
        number = self._number(stage)
        return self._add("annotate", number, self._at(number, iterator), how)

    def bind(self, stage: StageName, iterator: Iterator, thread_name: str) -> Iterator:
        """Bind a loop to an axis of threads, such as "blockIdx.x"."""
        number = self._number(stage)
        return self._add("bind", number, self._at(number, iterator), thread_name)

    def pragma(self, stage: StageName, iterator: Iterator, pragma_type: str) -> None:
        """Attach a pragma to a loop: "auto_unroll_max_step$64" is one of the value 64."""
        number = self._number(stage)
        self._add("pragma", number, self._at(number, iterator), pragma_type)

    def storage_align(self, stage: StageName, iterator: Iterator, factor: int, offset: int
                      ) -> None:
        """Make the stride of an axis of the result a multiple of `factor` plus `offset`."""
        number = self._number(stage)
        if iterator.axis is None:
            raise ValueError(f"storage_align takes an axis of {self.stages[number].op.name} as it "
                             f"was made, and {iterator.name} is not one")
        self._add("storage_align", number, self._at(number, iterator), factor, offset)

    def compute_at(self, stage: StageName, target_stage: StageName, target_iter: Iterator) -> None:
        """Compute a stage inside a loop of a stage that reads it."""
        target = self._number(target_stage)
        self._add("compute_at", stage, target, self._at(target, target_iter))

    def compute_inline(self, stage: StageName) -> None:
        """Write a stage's expression into the stages that read it."""
        self._add("compute_inline", stage)

    def compute_root(self, stage: StageName) -> None:
        """Compute a stage by itself."""
        self._add("compute_root", stage)

    def __getattr__(self, name: str) -> NoReturn:
        if name in NOT_CARRIED:
            raise NotImplementedError(
                f"State.{name}, {NOT_CARRIED[name]}, has no step here: a sketch is made of split, "
                "follow_split, fuse, reorder, compute_at, compute_inline, compute_root, parallel, "
                "vectorize, unroll, bind, pragma and storage_align. What else a schedule does can "
                f"be said to `meta_schedule.tune_tir(space=function)`, whose sch.{name} there is")
        raise AttributeError(f"State has no attribute {name!r}")

    # ------------------------------------------------------------------------ what steps do

    def _do_split(self, number: int, at: int, lengths: tuple, inner_to_outer: bool
                  ) -> list[Iterator]:
        if not lengths:
            raise ValueError("split takes at least one length; None lets the search choose it")
        opened = [n is None for n in lengths]
        iterator = self.stages[number].iters[at]
        if any(opened):
            name = self.stages[number].op.name
            if not all(opened):
                raise ValueError(f"split of {iterator.name}: of the lengths {list(lengths)} some "
                                 "are numbers and some are None; either all are chosen by the "
                                 "search or none")
            if iterator.axis is None:
                raise ValueError(f"split of {iterator.name}: sizes are chosen of an axis of {name} "
                                 "as it was made, and this loop comes from a split or a fuse; "
                                 "split the axis into more parts at once")
            if iterator.extent is None:
                raise ValueError(f"split of {iterator.name}: sizes are chosen of an axis whose "
                                 "extent is a number, and that of this one is read from data as "
                                 "the program runs; give its lengths")
        return self._parts(number, at, lengths, inner_to_outer)

    def _do_follow_split(self, number: int, at: int, src_step_id: int, n_split: int
                         ) -> list[Iterator]:
        return self._parts(number, at, followed(self._steps, src_step_id, n_split, {}), True)

    def _parts(self, number: int, at: int, lengths: tuple, inner_to_outer: bool
               ) -> list[Iterator]:
        stage = self.stages[number]
        old = stage.iters[at]
        known = [n if isinstance(n, int) else None for n in lengths]
        rest = None
        if old.extent is not None and None not in known:
            product = 1
            for n in known:
                product *= n or 1
            rest = -(-old.extent // product)
        extents = [rest, *known] if inner_to_outer else [*known, rest]
        made = [Iterator(f"{old.name}.{n}", extent, old.iter_kind)
                for n, extent in enumerate(extents)]
        stage.iters[at:at + 1] = made
        self._reattach(number, [old], made[-1])
        return made

    def _do_fuse(self, number: int, places: tuple[int, ...]) -> Iterator:
        stage = self.stages[number]
        if not places or list(places) != list(range(places[0], places[0] + len(places))):
            raise ValueError("fuse takes loops that are adjacent, outermost first")
        old = [stage.iters[n] for n in places]
        extent: int | None = 1
        for it in old:
            extent = None if extent is None or it.extent is None else extent * it.extent
        made = Iterator("".join(f"{it.name}@" for it in old), extent, old[0].iter_kind)
        stage.iters[places[0]:places[-1] + 1] = [made]
        self._reattach(number, old, made)
        return made

    def _reattach(self, number: int, old: list[Iterator], new: Iterator) -> None:
        for stage in self.stages:
            if stage.attached is not None and stage.attached[0] == number and any(
                    stage.attached[1] is it for it in old):
                stage.attached = (number, new)

    def _do_reorder(self, number: int, places: tuple[int, ...]) -> None:
        iters = self.stages[number].iters
        iters[:] = [iters[n] for n in places]

    def _do_annotate(self, number: int, at: int, how: str) -> Iterator:
        self.stages[number].iters[at].annotation = how
        return self.stages[number].iters[at]

    def _do_bind(self, number: int, at: int, thread_name: str) -> Iterator:
        return self._do_annotate(number, at, thread_name)

    def _do_pragma(self, number: int, at: int, pragma_type: str) -> None:
        pass

    def _do_storage_align(self, number: int, at: int, factor: int, offset: int) -> None:
        pass

    def _do_compute_at(self, number: int, target: int, at: int) -> None:
        self.stages[number].compute_at = "iter"
        self.stages[number].attached = (target, self.stages[target].iters[at])

    def _do_compute_inline(self, number: int) -> None:
        stage = self.stages[number]
        if stage.op_type != "compute" or stage.op.reduce_axis:
            raise ValueError(f"{stage.op.name} cannot be inlined: it is "
                             + ("a reduction" if stage.op_type == "compute" else "an input"))
        stage.compute_at, stage.attached = "inlined", None

    def _do_compute_root(self, number: int) -> None:
        self.stages[number].compute_at, self.stages[number].attached = "root", None

    # ------------------------------------------------------------------------------- text

    def __str__(self) -> str:
        lines = [f"Placeholder: {', '.join(s.op.name for s in self.stages if not s.iters)}"]
        for number, stage in enumerate(self.stages):
            if stage.op_type == "compute" and stage.compute_at == "root":
                lines += self._lines(number, 0)
        return "\n".join(lines)

    def _lines(self, number: int, indent: int) -> list[str]:
        stage, lines = self.stages[number], []
        for it in stage.iters:
            extent = "?" if it.extent is None else str(it.extent)
            lines.append(f"{'  ' * indent}{it.annotation or 'for'} {it.name} (0,{extent})")
            indent += 1
            for other, inner in enumerate(self.stages):
                if inner.attached is not None and inner.attached[0] == number and (
                        inner.attached[1] is it):
                    lines += self._lines(other, indent)
        return [*lines, f"{'  ' * indent}{stage.op.name} = ..."]

    __repr__ = __str__


def _size(n: Any) -> int:
    known = as_int(n)
    if known is None or known < 1:
        raise ValueError(f"the length of a loop is a positive number or None, not {n!r}")
    return known


def followed(steps: Sequence[Step], src_step_id: int, n_split: int,
             chosen: Mapping[int, Sequence[Any]]) -> tuple:
    """The lengths with which `follow_split` follows a split; `chosen` has what the search chose for
    a step: the outermost size first."""
    src = steps[src_step_id] if 0 <= src_step_id < len(steps) else None
    if src is None or src.kind != "split":
        raise ValueError(f"follow_split: step {src_step_id} is no split of the {len(steps)} steps "
                         "until now")
    lengths = src.args[1]
    if src_step_id in chosen:
        inner = src.args[2]
        lengths = tuple(chosen[src_step_id][1:] if inner else chosen[src_step_id][:-1])
    if not 1 <= n_split <= len(lengths):
        raise ValueError(f"follow_split: step {src_step_id} has {len(lengths)} lengths, and "
                         f"{n_split} of them are to be followed")
    last: Any = 1
    for length in lengths[n_split - 1:]:
        last = None if last is None or length is None else last * length
    return (*lengths[:n_split - 1], last)


def steps_on_te(dag: Any, state: StateObject, chosen: Mapping[int, Sequence[PrimExpr]]
                ) -> Schedule:
    """A schedule of te on which the steps are said, with the sizes that were chosen.

    Raises TensorExprError for a step that te refuses.
    """
    s = create_schedule(dag.outputs)
    for number, step in enumerate(state.transform_steps):
        stage = s.stages[step.stage_id]
        leaves = stage.leaf_iter_vars
        if step.kind == "split":
            at, lengths, inner = step.args
            if number in chosen:
                lengths = chosen[number][1:] if inner else chosen[number][:-1]
            _split(stage, leaves[at], lengths, inner)
        elif step.kind == "follow_split":
            at, src, count = step.args
            _split(stage, leaves[at], followed(state.transform_steps[:number], src, count, chosen),
                   True)
        elif step.kind == "fuse":
            stage.fuse(*[leaves[n] for n in step.args[0]])
        elif step.kind == "reorder":
            stage.reorder(*[leaves[n] for n in step.args[0]])
        elif step.kind == "compute_at":
            target = s.stages[step.args[0]]
            stage.compute_at(target, target.leaf_iter_vars[step.args[1]])
        elif step.kind in ("compute_inline", "compute_root"):
            getattr(stage, step.kind)()
        else:
            _mark(stage, leaves[step.args[0]], step)
    return s


def _split(stage: Any, axis: IterVar, lengths: Sequence[Any], inner_to_outer: bool) -> None:
    for length in reversed(lengths) if inner_to_outer else lengths:
        if inner_to_outer:
            axis, _ = stage.split(axis, factor=length)
        else:
            _, axis = stage.split(axis, nparts=length)


def _mark(stage: Any, axis: IterVar, step: Step) -> None:
    """What is said of one loop."""
    if step.kind == "annotate":
        method: Callable[[IterVar], None] = getattr(stage, step.args[1])
        method(axis)
    elif step.kind == "bind":
        from ...te.operation import thread_axis

        stage.bind(axis, thread_axis(step.args[1]))
    elif step.kind == "pragma":
        name, _, value = step.args[1].partition("$")
        stage.pragma(axis, name, int(value) if value else None)
    else:
        stage.storage_align(axis, *step.args[1:])


__all__ = ["Iterator", "Stage", "State", "StateObject", "Step", "followed", "steps_on_te"]
