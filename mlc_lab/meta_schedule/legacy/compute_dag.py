"""`auto_scheduler.ComputeDAG`: the operations of a computation, and what one asks of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...te import create_schedule
from ...te.create_prim_func import build_prim_func
from ...te.tensor import ComputeOp, PlaceholderOp
from ...tir.expr import Call, IntImm, ProducerLoad, Select, Var
from ...tir.functor import free_vars, pre_order
from ..workload import as_workload, count_flops
from .loop_state import State, StateObject, steps_on_te

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ...te.schedule import Schedule
    from ...te.tensor import Operation, Tensor


class ComputeDAG:
    """The operations `ops` that compute the last of `tensors`, producers first; a stage of a state
    is an operation, and has its number. Its text is the program."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = list(tensors)
        made = [t.op for t in self.tensors if not isinstance(t.op, PlaceholderOp)]
        self.outputs = list(dict.fromkeys(made))
        self.ops: list[Operation] = [s.op for s in create_schedule(self.outputs).stages]
        self.built = build_prim_func(self.tensors)
        self.mod = as_workload(self.built.func)

    def __str__(self) -> str:
        return self.mod.script()

    __repr__ = __str__

    @property
    def flop_ct(self) -> float:
        """How many operations one run takes; 0 where they cannot be counted."""
        return count_flops(self.mod)

    @property
    def init_state(self) -> StateObject:
        """The state without steps."""
        return StateObject()

    def get_init_state(self) -> State:
        """The state without steps, to write some."""
        return State(StateObject(), self)

    def apply_steps_from_state(self, state: State | StateObject) -> tuple[Schedule, list[Tensor]]:
        """(schedule of te, arguments) of the steps of a state. ValueError where the search is to
        choose a size."""
        given = state.state_object if isinstance(state, State) else state
        for step in given.transform_steps:
            if step.kind == "split" and None in step.args[1]:
                raise ValueError(f"{step!r} leaves its sizes to the search; give them as numbers "
                                 "to apply the steps")
        return steps_on_te(self, given, {}), list(self.tensors)

    def is_output(self, number: int) -> bool:
        """Whether a stage computes a result."""
        return self.ops[number] in self.outputs

    # ------------------------------------------------------------------------ who reads whom

    def producers(self, number: int) -> list[int]:
        """The stages whose results a stage reads."""
        return [self.ops.index(t.op) for t in self.ops[number].input_tensors]

    def readers(self, number: int) -> list[int]:
        """The stages that read the results of a stage."""
        op = self.ops[number]
        return [n for n, other in enumerate(self.ops)
                if any(t.op is op for t in other.input_tensors)]

    def consumers(self, state: StateObject, number: int) -> list[int]:
        """The stages that read a stage, those that are inlined left out for their own readers."""
        inlined = inlined_stages(state)
        out: dict[int, None] = {}
        for reader in self.readers(number):
            if reader in inlined:
                out.update(dict.fromkeys(self.consumers(state, reader)))
            else:
                out[reader] = None
        return sorted(out)

    def elementwise_match(self, number: int, target: int) -> bool:
        """Whether each element of `target` is computed of the element of stage `number` at the same
        place, by that stage alone or by others that are so too."""
        while number != target:
            readers = self.readers(number)
            if len(readers) != 1 or not self._same_places(number, readers[0]):
                return False
            number = readers[0]
        return True

    def _same_places(self, number: int, reader: int) -> bool:
        op, other = self.ops[number], self.ops[reader]
        if not isinstance(op, ComputeOp) or not isinstance(other, ComputeOp) or (
                len(op.axis) != len(other.axis)):
            return False
        same = all(type(a.dom.extent) is IntImm and type(b.dom.extent) is IntImm
                   and a.dom.extent.value == b.dom.extent.value
                   for a, b in zip(op.axis, other.axis))
        own = [iv.var for iv in other.axis]
        return same and all(
            all(a is b for a, b in zip(load.indices, own)) for value in other.body
            for load in pre_order(value)
            if type(load) is ProducerLoad and load.producer.op is op)

    def is_always_inlined(self, number: int) -> bool:
        """Whether a stage is so simple that it is written into those that read it: each element of
        a few others by sums and products, without a condition."""
        op = self.ops[number]
        if not isinstance(op, ComputeOp) or op.reduce_axis or op.num_outputs != 1 or (
                self.is_output(number)):
            return False
        own = {iv.var for iv in op.axis}
        for node in pre_order(op.body[0]):
            if isinstance(node, (Call, Select)):
                return False
            if type(node) is ProducerLoad and not all(
                    type(i) in (Var, IntImm) and own.issuperset(free_vars(i))
                    for i in node.indices):
                return False
        return True


def inlined_stages(state: Any) -> set[int]:
    """The stages that are inlined after the steps of a state."""
    out: set[int] = set()
    for step in state.transform_steps:
        if step.kind == "compute_inline":
            out.add(step.stage_id)
        elif step.kind in ("compute_root", "compute_at"):
            out.discard(step.stage_id)
    return out


__all__ = ["ComputeDAG", "inlined_stages"]
