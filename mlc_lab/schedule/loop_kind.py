"""What parallel, vectorize and bind share: a loop's iterations must be independent."""

from __future__ import annotations

from ..tir.expr import IterVar, Var
from ..tir.stmt import ForKind
from .guards import compact_dataflow, is_loop, parallelizable
from .state import ScheduleState, StmtSRef


def set_kind(state: ScheduleState, loop: StmtSRef, kind: ForKind, word: str,
             thread_tag: str = "") -> None:
    """Let a loop's iterations run as `kind` says, if they are independent of each other.

    `word` says how in the refusal; `thread_tag` is the GPU axis of a bound loop.
    """
    is_loop(loop)
    compact_dataflow(state, loop)
    parallelizable(state, loop, word, thread_tag)
    stmt = loop.stmt
    binding = None
    if thread_tag:
        binding = IterVar.from_fields(None, Var("", stmt.loop_var.dtype), IterVar.ThreadIndex,
                                      thread_tag)
    state.replace(loop, stmt.replace(kind=kind, thread_binding=binding))
