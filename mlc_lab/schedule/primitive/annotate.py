"""annotate: a note on a block or loop for later passes."""

from __future__ import annotations

from typing import Any

from ...tir.stmt import annotation_value
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
