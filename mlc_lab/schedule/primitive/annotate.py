"""annotate: a note on a block or loop for later passes."""

from __future__ import annotations

from typing import Any

from ...ir.containers import is_mapping, is_sequence
from ...tir.expr import PrimExpr
from ...tir.stmt import annotation_value
from ..annotations import names_are_known
from ..arguments import number_in_range
from ..error import Refusal
from ..guards import is_block_or_loop
from ..instruction import primitive
from ..state import ScheduleState, StmtSRef


@primitive("Annotate")
def annotate(state: ScheduleState, block_or_loop: StmtSRef, ann_key: str, ann_val: Any) -> None:
    """Attach a key and value to a block or loop, replacing an older value.

    Values are strings, numbers, and lists and dicts of them. Lowering understands for example
    `pragma_auto_unroll_max_step`, `pragma_unroll_explicit`.

    Errors: the key is a string, and the value can be written down; it names only variables that
    are known there.
    """
    is_block_or_loop(block_or_loop)
    stmt = block_or_loop.stmt
    if not _is_data(ann_val):
        raise Refusal("annotation_is_data", f"annotate({ann_key!r}, {ann_val!r}): a key is a "
                      "string, a value a string, a number, or a list or dict of values",
                      nodes=[stmt])
    value = annotation_value(ann_val)
    names_are_known(block_or_loop, state.mod[block_or_loop.func], ann_key, value)
    state.replace(block_or_loop, stmt.replace(annotations={**stmt.annotations, ann_key: value}))


def _is_data(value: Any) -> bool:
    """Whether an annotation can be written down, and read again."""
    if is_mapping(value):
        return all(isinstance(k, str) and _is_data(v) for k, v in value.items())
    if is_sequence(value):
        return all(map(_is_data, value))
    if isinstance(value, (int, float)):
        return number_in_range(value)
    return value is None or isinstance(value, (str, PrimExpr))
