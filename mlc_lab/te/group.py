"""Groups of stages: several stages that are computed at one place together.

    g = s.create_group(outputs=B, inputs=A, include_inputs=True)
    g.compute_at(s[C], C.op.axis[0])

A stage of a group is computed where the group is, unless it has a place of its own; and it may be
computed at stages of its group only. The steps of a scan are a group as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .error import TensorExprError
from .tensor import Operation, Tensor

if TYPE_CHECKING:
    from ..tir.expr import IterVar
    from .schedule import Schedule, Stage


class Group:
    """Stages, and groups of them, that have one place.

    `group` is the group that this one is in, `num_child_stages` how many stages and groups it has,
    `attach_stage` and `attach_ivar` are its place.
    """

    def __init__(self, schedule: Schedule, group: Group | None = None) -> None:
        self.schedule, self.group = schedule, group
        self.attached: tuple[Stage, IterVar] | None = None

    def __repr__(self) -> str:
        return f"group({', '.join(map(repr, self.members))})"

    @property
    def members(self) -> list[Stage | Group]:
        """The stages and groups right below this one."""
        known: list[Stage | Group] = [*self.schedule.stages, *self.schedule.groups]
        return [m for m in known if m.group is self]

    @property
    def num_child_stages(self) -> int:
        """How many stages and groups are right below this one."""
        return len(self.members)

    @property
    def attach_stage(self) -> Stage | None:
        """The stage at whose loop the group is computed."""
        return None if self.attached is None else self.attached[0]

    @property
    def attach_ivar(self) -> IterVar | None:
        """The loop at which the group is computed."""
        return None if self.attached is None else self.attached[1]

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute the stages of this group inside a loop of a stage that reads them."""
        check_group(self, parent)
        self.attached = (parent, parent._leaf(scope))

    def compute_root(self) -> None:
        """Compute the stages of this group before the stages that read them."""
        self.attached = None


def around(of: Stage | Group) -> list[Group]:
    """The groups that a stage or group is in, the innermost first."""
    out = []
    group = of.group
    while group is not None:
        out.append(group)
        group = group.group
    return out


def check_group(moved: Stage | Group, parent: Stage) -> None:
    """Refuse to compute a stage of a group at a stage outside of it."""
    if moved.group is not None and moved.group not in around(parent):
        raise TensorExprError(f"compute_at: {moved} is in {moved.group}, and {parent} is not: "
                              "stages of a group are computed at stages of the group")


def place_of(stage: Stage | Group) -> tuple[Stage, IterVar] | None:
    """Where a stage is computed: its own place, or that of the group it is in."""
    for part in (stage, *around(stage)):
        if part.attached is not None:
            return part.attached
    return None


def make_group(schedule: Schedule, outputs: Any, inputs: Any, include_inputs: bool) -> Group:
    """The group of all that is computed on the way from `inputs` to `outputs`."""
    ops = _between(_ops(outputs), _ops(inputs), include_inputs)
    stages = [schedule.stage_map[op] for op in ops if op in schedule.stage_map]
    if not stages:
        raise TensorExprError("create_group: nothing is computed between the inputs and outputs")
    chains = [around(stage) for stage in stages]
    common = next((g for g in chains[0] if all(g in chain for chain in chains)), None)
    whole: list[Stage | Group] = []
    for stage, chain in zip(stages, chains):
        inside = chain[:chain.index(common)] if common is not None else chain
        top: Stage | Group = inside[-1] if inside else stage
        if top not in whole:
            whole.append(top)
    for part in whole:
        missing = [s for s in _stages_in(part) if s not in stages]
        if missing:
            raise TensorExprError(f"create_group: {part} would be in the new group but for "
                                  f"{', '.join(map(repr, missing))}: a group holds whole groups")
    made = Group(schedule, common)
    schedule.groups.append(made)
    for part in whole:
        part.group = made
    return made


def _stages_in(part: Stage | Group) -> list[Stage]:
    if not isinstance(part, Group):
        return [part]
    return [s for member in part.members for s in _stages_in(member)]


def _ops(tensors: Any) -> list[Operation]:
    listed: Sequence[Any] = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    return [t.op if isinstance(t, Tensor) else t for t in listed]


def _between(outputs: Sequence[Operation], inputs: Sequence[Operation], include_inputs: bool
             ) -> list[Operation]:
    """The operations from `outputs` back to `inputs`, these too if `include_inputs`."""
    found: dict[Operation, bool] = {}
    order: list[Operation] = []
    stack = list(outputs)
    while stack:
        op = stack.pop()
        if op in found:
            continue
        found[op] = True
        if op in inputs:
            order += [op] if include_inputs else []
        else:
            order.append(op)
            stack += [t.op for t in op.input_tensors]
    return order


__all__ = ["Group", "around", "check_group", "make_group", "place_of"]
