"""annotate, unannotate, enter_postproc: notes for later passes."""

from __future__ import annotations

from typing import Any

from ...tir.stmt import annotation_value
from ..error import Refusal
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("Annotate")
def annotate(state: ScheduleState, block_or_loop: StmtSRef, ann_key: str, ann_val: Any) -> None:
    """Attach a key and value to a block or loop, replacing an older value.

    Values are strings, numbers, and lists and dicts of them. Lowering understands for example
    `pragma_auto_unroll_max_step`, `pragma_unroll_explicit`.
    """
    stmt = block_or_loop.stmt
    value = annotation_value(ann_val)
    state.replace(block_or_loop, stmt.replace(annotations={**stmt.annotations, ann_key: value}))


@primitive("Unannotate")
def unannotate(state: ScheduleState, block_or_loop: StmtSRef, ann_key: str) -> None:
    """Remove an annotation from a block or loop.

    Errors: the annotation must be there.
    """
    stmt = block_or_loop.stmt
    if ann_key not in stmt.annotations:
        have = ", ".join(stmt.annotations) or "none"
        raise Refusal("annotation_exists", f"there is no annotation {ann_key!r}; there are: {have}",
                      nodes=[stmt])
    left = {k: v for k, v in stmt.annotations.items() if k != ann_key}
    state.replace(block_or_loop, stmt.replace(annotations=left))


@primitive("EnterPostproc")
def enter_postproc(state: ScheduleState) -> None:
    """Mark that what follows is postprocessing: a search drops it before it mutates a trace."""
