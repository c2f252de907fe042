"""What postprocessors and rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator

from ...schedule.guards import SPATIAL
from ...schedule.state import sub_statements
from ...tir.stmt import Block, Stmt

if TYPE_CHECKING:
    from ...schedule.instruction import BlockRV
    from ...schedule.schedule import Schedule


def statements(stmt: Stmt) -> Iterator[Stmt]:
    """Every statement under `stmt`, parents first; expressions are not entered."""
    stack = [stmt]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(reversed(sub_statements(item)))


def leaf_blocks(sch: Schedule) -> list[tuple[str, Any]]:
    """(name, BlockRV) of the blocks that hold no other block, in program order."""
    out = []
    for var, func in sch.mod.functions.items():
        blocks = [n for n in statements(func.body) if type(n) is Block]
        for block in blocks[1:]:
            if not any(type(n) is Block for n in statements(block.body)):
                out.append((block.name_hint, block, var.name_hint))
    seen: dict[str, int] = {}
    made = []
    for name, _, func in out:
        if seen.setdefault(name, 0) == 0:
            made.append((name, sch.get_block(name, func_name=func)))
        seen[name] += 1
    return made


def outermost(sch: Schedule, block: BlockRV) -> BlockRV:
    """The block around a block, and around all others, that has loops around it; the block itself
    where there is none: what runs in parallel is the outermost loops."""
    state, sref = sch.state, sch.get_sref(block)
    found = sref
    while True:
        sref = state.scope_root(sref)
        if sref.parent is None:
            break
        if state.loops_above(sref):
            found = sref
    if found is sch.get_sref(block):
        return block
    name, func = found.stmt.name_hint, found.func.name_hint
    alike = [n for n in statements(sch.mod[func].body)
             if type(n) is Block and n.name_hint == name]
    return sch.get_block(name, func_name=func) if len(alike) == 1 else block


def root_block(sch: Schedule, func: str = "main") -> Any:
    """The root block of a function."""
    return sch.get_block(sch.mod[func].body.block.name_hint, func_name=func)


def is_spatial(stmt: Block) -> bool:
    """Whether no iterator of a block is summed over."""
    return all(iv.iter_type == SPATIAL for iv in stmt.iter_vars)


def is_output(sch: Schedule, block: BlockRV) -> bool:
    """Whether a block writes a parameter of its function."""
    sref = sch.get_sref(block)
    outer = set(sch.state.func_of(sref).buffer_map.values())
    return any(region.buffer in outer for region in sref.stmt.writes)


def cpu_vector_extent(lanes: int, extent: int, most: int) -> int:
    """The longest vector that divides an extent: a multiple of `lanes` up to `most`; 1 if none."""
    for length in range(most // lanes * lanes, 0, -lanes):
        if extent % length == 0:
            return length
    return 1
