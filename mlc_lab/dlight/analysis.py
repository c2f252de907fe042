"""What rules of one's own ask about a function: its blocks in a plain form (TVM's names).

    blocks = normalize_prim_func(sch)       # None where a block is not over whole loops
    [b.dom_kind() for b in blocks]          # ["SS", "SSR"]
"""

from __future__ import annotations

from typing import Any

from ..schedule import BlockRV, LoopRV, Schedule, ScheduleError
from ..schedule.error import Refusal
from ..schedule.guards import reduction_block
from ..tir.expr import IntImm, IterVar, PrimExpr, Var
from ..tir.function import IndexMap
from ..tir.op import as_int
from ..tir.stmt import Block, BlockRealize
from ..tir.functor import all_statements

_KINDS = {IterVar.DataPar: "S", IterVar.CommReduce: "R"}


class IterInfo:
    """An iterator of a block, and the loop that it is bound to.

    Attributes
    ----------
    kind : str
        "S" (spatial), "R" (of a reduction), or "O" (another).
    var : Var
        The variable of the iterator.
    dom : int or PrimExpr
        How many values it has.
    loop_rv : LoopRV
        The loop.
    """

    def __init__(self, kind: str, var: Var, dom: PrimExpr, loop_rv: LoopRV) -> None:
        self.kind, self.var, self._dom, self.loop_rv = kind, var, dom, loop_rv

    @property
    def dom(self) -> int | PrimExpr:
        """How many values it has."""
        return int(self._dom.value) if isinstance(self._dom, IntImm) else self._dom

    def __repr__(self) -> str:
        return f'Iter("{self.kind}", {self.dom})'


class BlockInfo:
    """A block in a plain form: each of its iterators is one loop around it."""

    def __init__(self, name: str, iters: list[IterInfo], block_rv: BlockRV,
                 reduction_block: bool = False) -> None:
        self.name, self.iters, self.block_rv = name, iters, block_rv
        self._reduction_block = reduction_block

    def dom(self) -> list[int | PrimExpr]:
        """How many values each iterator has."""
        return [i.dom for i in self.iters]

    def dom_kind(self) -> str:
        """The kinds of the iterators, "SSR"."""
        return "".join(i.kind for i in self.iters)

    def is_injective(self) -> bool:
        """Whether all iterators are spatial."""
        return set(self.dom_kind()) <= {"S"}

    def is_elementwise(self, sch: Schedule) -> bool:
        """Whether one element is read, and the one at the same place written."""
        block = sch.get(self.block_rv)
        if not self.is_injective() or len(block.reads) != 1 or len(block.writes) != 1:
            return False
        places = [iv.var for iv in block.iter_vars]
        return all(len(region) == len(places) and all(
            r.min is var and as_int(r.extent) == 1 for r, var in zip(region, places))
            for region in (block.reads[0].region, block.writes[0].region))

    def is_reduction(self) -> bool:
        """Whether it is a reduction with a start."""
        return self._reduction_block

    def __repr__(self) -> str:
        return f'BlockInfo("{self.name}", "{self.dom_kind()}", {self.dom()})'


def normalize_prim_func(sch: Schedule) -> list[BlockInfo] | None:
    """Give each innermost block of the function "main" loops of its own, one an iterator, without
    those of one value; None where a block is not over whole loops."""
    leaves = [r for r in all_statements(sch.mod["main"].body) if type(r) is BlockRealize
              and not any(type(inner) is Block for inner in all_statements(r.block.body))]
    if any(r.block.name_hint == "root" and not r.block.iter_vars for r in leaves):
        return None
    blocks: list[tuple[BlockRV, Any]] = []
    for realize in leaves:
        rv = sch.get_block(realize.block.name_hint)
        loops = [sch.get(loop) for loop in sch.get_loops(rv)]
        if loops and (len(loops) != len(realize.iter_values) or any(
                value is not loop.loop_var or as_int(loop.min) != 0
                for value, loop in zip(realize.iter_values, loops))):
            return None
        blocks.append((rv, realize))
    return [_plain(sch, rv) for rv, _ in blocks]


def _plain(sch: Schedule, rv: BlockRV) -> BlockInfo:
    block = sch.get(rv)
    inputs = [iv.var.with_name(iv.var.name) for iv in block.iter_vars]
    kept: list[PrimExpr] = [var for var, iv in zip(inputs, block.iter_vars)
                            if as_int(iv.dom.extent) != 1]
    if not any(iv.iter_type == IterVar.DataPar and as_int(iv.dom.extent) != 1
               for iv in block.iter_vars):
        kept.insert(0, IntImm("int64", 0))
    try:
        sch.transform_block_layout(rv, IndexMap(inputs, kept, None))
    except (ScheduleError, ValueError):
        pass  # it stays as it is, as in TVM
    block = sch.get(rv)
    iters = [IterInfo(_KINDS.get(iv.iter_type, "O"), iv.var, iv.dom.extent, loop)
             for iv, loop in zip(block.iter_vars, sch.get_loops(rv))]
    return BlockInfo(block.name_hint, iters, rv, _is_reduction(sch, rv))


def _is_reduction(sch: Schedule, rv: BlockRV) -> bool:
    state = sch.state
    ref = sch.get_sref(rv)
    try:
        reduction_block(state, ref, state.scope_root(ref), affine=True)
    except Refusal:
        return False
    return True


__all__ = ["BlockInfo", "IterInfo", "normalize_prim_func"]
