"""What names variables of loops and blocks outside of bindings, annotations and blocks without
iterators: the variables stay around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tir.buffer import Buffer
from ..tir.expr import IntImm, Let, Var
from ..tir.function import PrimFunc
from ..tir.functor import free_vars, pre_order
from ..tir.stmt import (
    Allocate, AllocateConst, Block, For, LetStmt, nodes_in_annotations,
)
from .error import Refusal
from .state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from .state import Snapshot


def annotations_stay_in_scope(state: ScheduleState, before: Snapshot) -> None:
    """Refuse a step after which an annotation names a loop or an iterator that is not around it.

    A substitution rewrites annotations as all else. Steps that make loops anew (compute_at) or
    reorder them may leave a name behind. `before` has the statements that references had.
    """
    bound: set[Var] | None = None
    for sref in state.refs.values():
        stmt = sref.stmt
        if not stmt.annotations:
            continue
        names = _names_in(stmt.annotations)
        if not names:
            continue
        if bound is None:
            bound = {v for old, _ in before.values() for v in _bound_by(old)}
        lost = names & bound - variables_around(sref)
        if lost:
            key = next(k for k, value in stmt.annotations.items() if any(
                v in lost for n in nodes_in_annotations(value) for v in pre_order(n)))
            what = f"block {stmt.name_hint}" if type(stmt) is Block else (
                f"loop {stmt.loop_var.name}")
            name = min(v.name for v in lost)
            raise Refusal(
                "annotations_stay_in_scope", f"annotation {key!r} of {what} names {name}, which "
                "would not be around it any more", nodes=[old for old, _ in before.values()
                                                          if key in old.annotations],
                hint=f'take the annotation away first: sch.unannotate(..., "{key}")')


def loops_named_stay_around(state: ScheduleState, before: Snapshot) -> None:
    """Refuse a step after which a block without iterators names a loop that is not around it, or a
    block with iterators names one at all.

    Where every block has iterators, these name the loops around in their bindings only, which steps
    that move a block or copy what it reads make anew. `before` has the statements that references
    had.
    """
    blocks = [sref for sref in state.refs.values() if type(sref.stmt) is Block and sref.parent]
    for sref in blocks:
        if not sref.stmt.iter_vars:
            break
    else:
        for old, above in before.values():
            if type(old) is Block and above and not old.iter_vars:
                break
        else:
            return
    bound = {v for old, _ in before.values() for v in _bound_by(old)}
    loops = {old.loop_var for old, _ in before.values() if type(old) is For}
    for sref in blocks:
        block = sref.stmt
        if block.iter_vars and sref in before and before[sref][0] is block:
            continue  # what is in it has not changed
        named = bound.intersection(free_vars(block))
        lost = named & loops if block.iter_vars else named - variables_around(sref)
        if lost:
            name = min(v.name for v in lost)
            why = (f"would name loop {name} itself" if block.iter_vars else "has no iterators and "
                   f"names loop {name}, which would not be around it any more")
            raise Refusal(
                "loops_named_stay_around", f"block {block.name_hint} {why}", nodes=[
                    old for old, _ in before.values() if lost.intersection(_bound_by(old))],
                hint="give the blocks that name the loop an iterator which is bound to it: "
                f"v = T.axis.spatial(..., {name})")


def names_are_known(sref: StmtSRef, func: PrimFunc, key: str, value: Any) -> None:
    """Refuse an annotation that names a variable which nothing around the statement defines.

    Its text would define another variable of that name.
    """
    names = _names_in(value)
    unknown = names - variables_around(sref) if names else names
    if unknown:
        unknown -= _defined_in(func)
    if unknown:
        name = min(v.name for v in unknown)
        raise Refusal("annotation_names_are_known", f"annotation {key!r} names {name}, which is no "
                      "loop or iterator around it, and no parameter or size of the function",
                      nodes=[sref.stmt], hint="use sch.get(loop).loop_var of a loop around it, or "
                      "a number")


def _defined_in(func: PrimFunc) -> set[Var]:
    """Parameters, sizes, and what statements other than loops and blocks' iterators define."""
    found = parameters_and_sizes(func)
    buffers: list[Buffer] = []
    for node in pre_order(func.body):
        if isinstance(node, (LetStmt, Let)):
            found.add(node.var)
        elif isinstance(node, (Allocate, AllocateConst)):
            found.add(node.buffer_var)
        elif isinstance(node, Block):
            buffers += [*node.alloc_buffers, *(m.buffer for m in node.match_buffers)]
    return found.union(*map(_variables, buffers))


def parameters_and_sizes(func: PrimFunc) -> set[Var]:
    """The variables that a function is given, those of the shapes of its buffers with them."""
    return set(func.params).union(*map(_variables, func.buffer_map.values()))


def _variables(buffer: Buffer) -> list[Var]:
    return [v for v in (buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset)
            if isinstance(v, Var)]


def _names_in(annotations: Any) -> set[Var]:
    return {v for root in nodes_in_annotations(annotations) if type(root) is not IntImm
            for v in pre_order(root) if isinstance(v, Var)}


def _bound_by(stmt: Block | For) -> list[Var]:
    return [stmt.loop_var] if isinstance(stmt, For) else [iv.var for iv in stmt.iter_vars]


def variables_around(sref: StmtSRef) -> set[Var]:
    """The loops and iterators that a block or loop can name: its own, and those of all around."""
    out = set(_bound_by(sref.stmt) if type(sref.stmt) is Block else ())
    at = sref.parent
    while at is not None:
        out.update(_bound_by(at.stmt))
        at = at.parent
    return out


__all__ = ["annotations_stay_in_scope", "loops_named_stay_around", "names_are_known",
           "parameters_and_sizes", "variables_around"]
