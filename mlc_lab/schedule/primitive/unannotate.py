"""unannotate: a note on a block or loop is removed."""

from __future__ import annotations

from ..error import Refusal
from ..guards import is_block_or_loop
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("Unannotate")
def unannotate(state: ScheduleState, block_or_loop: StmtSRef, ann_key: str) -> None:
    """Remove an annotation from a block or loop.

    Errors: the annotation must be there.
    """
    is_block_or_loop(block_or_loop)
    stmt = block_or_loop.stmt
    if ann_key not in stmt.annotations:
        have = ", ".join(stmt.annotations) or "none"
        raise Refusal("annotation_exists", f"there is no annotation {ann_key!r}; there are: {have}",
                      nodes=[stmt])
    left = {k: v for k, v in stmt.annotations.items() if k != ann_key}
    state.replace(block_or_loop, stmt.replace(annotations=left))
