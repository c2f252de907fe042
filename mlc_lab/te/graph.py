"""The graph of operations, and what stages of a schedule may be inlined because of their form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..tir.expr import IntImm, IterVar, ProducerLoad
from ..tir.functor import pre_order
from .create_prim_func import operations
from .group import around, place_of
from .tensor import ComputeOp, Operation, ScanOp, Tensor

if TYPE_CHECKING:
    from .schedule import Schedule, Stage


def CreateReadGraph(roots: Sequence[Operation]) -> dict[Operation, list[Tensor]]:
    """The tensors that each operation reads, of `roots` and all they need."""
    return {op: list(op.input_tensors) for op in operations(list(roots))}


def PostDFSOrder(roots: Sequence[Operation], graph: Mapping[Operation, Sequence[Tensor]]
                 ) -> list[Operation]:
    """The operations of a graph, producers first."""
    return operations(roots, lambda op: graph.get(op, ()))


def ScanGetBody(scan: ScanOp) -> list[Operation]:
    """What a scan computes anew in each step, and the scan itself."""
    return [scan, *scan.steps()]


def CreateAttachPath(schedule: Schedule) -> dict[Operation, list[IterVar]]:
    """For each operation the loops of other stages that it is computed in, innermost first."""
    return {stage.op: _path(stage) for stage in schedule.stages}


def _path(stage: Stage) -> list[IterVar]:
    out: list[IterVar] = []
    place = place_of(stage)
    while place is not None or stage.scan is not None:
        if place is not None:
            stage, axis = place
            leaves = stage.leaf_iter_vars
            at = next((i for i, iv in enumerate(leaves) if iv is axis), -1)
            out += reversed(leaves[:at + 1]) if at >= 0 else [axis]
        else:
            assert stage.scan is not None
            stage = stage.scan
            out.append(stage.op.axis[0])
        place = place_of(stage)
    return out


def ScanFixPointAnalysis(scan: ScanOp) -> dict[IterVar, IntImm]:
    """For each spatial axis of a scan's states, whether the steps leave it as it is: 1, or 0.

    It is 1 where an element depends on elements of earlier rows at the same place only.
    """
    by_op: dict[Operation, ComputeOp] = {step: step for step in scan.steps()}

    def stays(number: int, at: int) -> bool:
        """Whether dimension `at` of a state is read at the same place only."""
        work = [(scan.update[number], at)]
        seen = set(work)
        while work:
            tensor, dim = work.pop()
            axis = tensor.op.axis[dim]
            for load in _loads(by_op[tensor.op]):
                producer = load.producer
                if producer not in scan.states and producer.op not in by_op:
                    continue  # computed before the scan
                dims = [i for i, index in enumerate(load.indices) if index is axis.var]
                if not dims:
                    return False
                if producer in scan.states:
                    if any((scan.states.index(producer), i) != (number, at) for i in dims):
                        return False
                    continue
                new = [(producer, i) for i in dims if (producer, i) not in seen]
                work += new
                seen.update(new)
        return True

    places = [(number, at) for number, update in enumerate(scan.update)
              for at in range(1, update.ndim)]
    return {axis: IntImm("int32", int(stays(*place)))
            for axis, place in zip(scan.spatial_axis_, places)}


def _loads(op: ComputeOp) -> list[ProducerLoad]:
    return [e for value in op.body for e in pre_order(value) if type(e) is ProducerLoad]


# ------------------------------------------------------------------------------------ inlining

def _is_injective(op: Operation) -> bool:
    return isinstance(op, ComputeOp) and not op.reduce_axis and op.num_outputs == 1


def _is_elementwise(op: Operation) -> bool:
    """Whether every read is of the element that is computed."""
    own = [iv.var for iv in op.axis]
    return isinstance(op, ComputeOp) and _is_injective(op) and all(
        len(load.indices) == len(own) and all(a is b for a, b in zip(load.indices, own))
        for load in _loads(op))


def _is_broadcast(op: Operation) -> bool:
    return _is_elementwise(op) or (_is_injective(op) and op.tag.startswith("broadcast"))


def _auto_inline(schedule: Schedule, fits: Callable[[Operation], bool]) -> None:
    for stage in schedule.stages:
        if stage.op in schedule.outputs or stage.attach_type == stage.INLINE:
            continue
        if fits(stage.op) and stage.attached is None and not stage.steps and not around(stage):
            stage.compute_inline()


def AutoInlineElemWise(schedule: Schedule) -> None:
    """Inline all stages that compute each element of elements at the same place."""
    _auto_inline(schedule, _is_elementwise)


def AutoInlineBroadcast(schedule: Schedule) -> None:
    """Inline all stages that are elementwise or tagged as broadcasts."""
    _auto_inline(schedule, _is_broadcast)


def AutoInlineInjective(schedule: Schedule) -> None:
    """Inline all stages that reduce nothing."""
    _auto_inline(schedule, _is_injective)


__all__ = ["AutoInlineBroadcast", "AutoInlineElemWise", "AutoInlineInjective", "CreateAttachPath",
           "CreateReadGraph", "PostDFSOrder", "ScanFixPointAnalysis", "ScanGetBody"]
