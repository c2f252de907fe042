"""reorder_block_iter_var: another order of a block's iterators."""

from __future__ import annotations

from typing import Sequence

from ...tir.stmt import Block, BlockRealize
from ..error import Refusal
from ..guards import is_block
from ..instruction import primitive
from ..move import replace_realize
from ..state import ScheduleState, StmtSRef


@primitive("ReorderBlockIterVar")
def reorder_block_iter_var(state: ScheduleState, block: StmtSRef, new_order: Sequence[int]) -> None:
    """Put the iterators of a block in another order; the loops stay as they are.

    Before::

        for i, k in T.grid(128, 64):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0.0)
                B[vi] = B[vi] + A[vi, vk]

    After `sch.reorder_block_iter_var(B, [1, 0])`::

        for i, k in T.grid(128, 64):
            with T.block("B"):
                vk, vi = T.axis.remap("RS", [k, i])
                with T.init():
                    B[vi] = T.float32(0.0)
                B[vi] = B[vi] + A[vi, vk]

    Errors: `new_order` is a permutation of the iterators' positions.
    """
    is_block(block)
    stmt = block.stmt
    order = [int(p) for p in new_order]
    if sorted(order) != list(range(len(stmt.iter_vars))):
        raise Refusal("order_is_a_permutation", f"new_order={order}: block {stmt.name_hint} has "
                      f"iterators {list(range(len(stmt.iter_vars)))}, each is named once",
                      nodes=[stmt])
    realize = state.realize_of(block)
    new = stmt.replace(iter_vars=tuple(stmt.iter_vars[p] for p in order))
    fresh = BlockRealize([realize.iter_values[p] for p in order], realize.predicate, new)
    parent = block.parent or state.scope_root(block)
    body = replace_realize(parent.stmt.body, realize, fresh)
    changed = parent.stmt.replace(body=body)
    reuse = {stmt: new}
    if type(changed) is Block:
        reuse[parent.stmt] = changed
    state.replace(parent, changed, reuse)
