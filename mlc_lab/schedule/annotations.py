"""Annotations that name variables of loops and blocks: the variables stay around them."""

from __future__ import annotations

from collections.abc import Mapping

from ..tir.expr import Var
from ..tir.functor import pre_order
from ..tir.stmt import Block, For, Stmt, nodes_in_annotations
from .error import Refusal
from .state import ScheduleState, StmtSRef


def annotations_stay_in_scope(state: ScheduleState, before: Mapping[StmtSRef, tuple]) -> None:
    """Refuse a step after which an annotation names a loop or an iterator that is not around it.

    A substitution rewrites annotations as all else. Steps that make loops anew (compute_at) or
    reorder them may leave a name behind. `before` has the statements that references had.
    """
    bound: set[Var] | None = None
    for stmt, sref in state.refs.items():
        if not stmt.annotations:
            continue
        names = {v for root in nodes_in_annotations(stmt.annotations) for v in pre_order(root)
                 if isinstance(v, Var)}
        if not names:
            continue
        if bound is None:
            bound = {v for old, _ in before.values() for v in _bound_by(old)}
        lost = names & bound - _around(sref)
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


def _bound_by(stmt: Stmt) -> list[Var]:
    return [stmt.loop_var] if type(stmt) is For else [iv.var for iv in stmt.iter_vars]


def _around(sref: StmtSRef) -> set[Var]:
    out = set(_bound_by(sref.stmt) if type(sref.stmt) is Block else ())
    at = sref.parent
    while at is not None:
        out.update(_bound_by(at.stmt))
        at = at.parent
    return out


__all__ = ["annotations_stay_in_scope"]
