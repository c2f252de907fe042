"""What postprocessors and rules share."""

from __future__ import annotations

from typing import Any

from ...tir.functor import pre_order
from ...tir.stmt import Block


def leaf_blocks(sch: Any) -> list[tuple[str, Any]]:
    """(name, BlockRV) of the blocks that hold no other block, in program order."""
    out = []
    for var, func in sch.mod.functions.items():
        blocks = [n for n in pre_order(func.body) if type(n) is Block]
        for block in blocks[1:]:
            if not any(type(n) is Block for n in pre_order(block.body)):
                out.append((block.name_hint, block, var.name_hint))
    seen: dict[str, int] = {}
    made = []
    for name, block, func in out:
        if seen.setdefault(name, 0) == 0:
            made.append((name, sch.get_block(name, func_name=func)))
        seen[name] += 1
    return made


def root_block(sch: Any, func: str = "main") -> Any:
    """The root block of a function."""
    return sch.get_block(sch.mod[func].body.block.name_hint, func_name=func)
