"""get_block: from a name to a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...tir.stmt import Block
from ..error import Refusal
from ..instruction import primitive
from ..state import ScheduleState, function_named

if TYPE_CHECKING:
    from ..instruction import BlockRV
    from ..schedule import Schedule


def _function_name(sch: Schedule, args: dict[str, Any]) -> None:
    """Record the function a block is looked up in, so that the trace says it."""
    if args["func_name"] is None:
        if sch.func_working_on is None:
            names = ", ".join(v.name_hint for v in sch.state.roots)
            raise ValueError(f"the module has several functions ({names}): say which one with "
                             "func_name= or sch.work_on(...)")
        args["func_name"] = sch.func_working_on.name_hint


@primitive("GetBlock", pure=True, normalize=_function_name)
def get_block(state: ScheduleState, name: str, func_name: str | None = None) -> BlockRV:
    """Find the block called `name` in a function.

    Errors: Refusal if there is no such block or more than one.
    """
    var = function_named(state, func_name)
    found = [s for stmt, s in state.refs.items()
             if s.func is var and type(stmt) is Block and stmt.name_hint == name]
    if len(found) == 1:
        return found[0]
    if not found:
        import difflib

        names = [stmt.name_hint for stmt, s in state.refs.items()
                 if s.func is var and type(stmt) is Block]
        close = difflib.get_close_matches(name, names, 1)
        raise Refusal("block_exists", f"function {func_name} has no block called {name!r}; its "
                      f"blocks are: {', '.join(names)}",
                      hint=f"did you mean {close[0]!r}?" if close else "")
    raise Refusal("block_name_is_unique", f"{len(found)} blocks of {func_name} are called "
                  f"{name!r}", nodes=[s.stmt for s in found],
                  hint="reach it through another block: sch.get_child_blocks, get_producers, "
                  "get_consumers")
