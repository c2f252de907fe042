"""AutoInline: elementwise blocks go into their consumers, or into their producers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...schedule import ScheduleError
from ...tir import expr as e
from ...tir.functor import pre_order
from ...tir.stmt import BufferStore, IfThenElse
from ..postproc.common import is_output, is_spatial
from .schedule_rule import ScheduleRule

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule

#: intrinsics that cost much: computed once, not at every use
_EXPENSIVE = {"tir.exp", "tir.log", "tir.tanh", "tir.sigmoid", "tir.erf", "tir.pow", "tir.sqrt",
              "tir.rsqrt", "tir.sin", "tir.cos", "tir.exp2", "tir.log2"}


class AutoInline(ScheduleRule):
    """Inlines a block that computes each element on its own into the blocks that read it.

    Not inlined are branches (`if_then_else`, as padding has them) into a reduction, since they
    would stand in its innermost loop, and expensive functions that would be computed again for
    every use.

    Parameters
    ----------
    into_producer: whether a block that is not inlined so goes into the one that it reads from.
    into_consumer: whether blocks go into those that read them.
    disallow_if_then_else, disallow_op: what a block must not have: a branch where it would be
        computed again, and operations by name.
    inline_const_tensor, require_injective, require_ordered: TVM's names. What `compute_inline`
        accepts is inlined where it pays, whether indices are permuted, repeated or absent.
    """

    def __init__(self, into_producer: bool = False, into_consumer: bool = True,
                 inline_const_tensor: bool = True, disallow_if_then_else: bool = True,
                 require_injective: bool = True, require_ordered: bool = True,
                 disallow_op: Any = None) -> None:
        self.into_producer, self.into_consumer = into_producer, into_consumer
        self.disallow_if_then_else = disallow_if_then_else
        self.disallow_op = set(disallow_op or ())

    def apply(self, sch: Schedule, block: BlockRV) -> list[Any]:
        """One alternative: inlined where it pays."""
        if self.into_consumer and self._pays(sch, block):
            try:
                sch.compute_inline(block)
                return [sch]
            except ScheduleError:
                pass
        if self.into_producer and len(sch.get_producers(block)) == 1:
            try:
                sch.reverse_compute_inline(block)
            except ScheduleError:
                pass
        return [sch]

    def _pays(self, sch: Schedule, block: BlockRV) -> bool:
        stmt = sch.get(block)
        if is_output(sch, block) or not is_spatial(stmt) or stmt.init is not None:
            return False
        if any(type(n) is IfThenElse for n in pre_order(stmt.body)):
            return False
        stores = [n for n in pre_order(stmt.body) if type(n) is BufferStore]
        if len(stores) != 1:
            return False
        names = {n.op.name for n in pre_order(stores[0].value)
                 if type(n) is e.Call and hasattr(n.op, "name")}
        if names & self.disallow_op:
            return False
        consumers = [sch.get(c) for c in sch.get_consumers(block)]
        reused = len(consumers) > 1 or not all(map(is_spatial, consumers))
        if self.disallow_if_then_else and "tir.if_then_else" in names and reused:
            return False
        if reused and (names & _EXPENSIVE or len(stmt.reads) > 1):
            return False
        return True
