"""What is left of a program once it is lowered: what it keeps, what it asks; for checks that are an
exercise's own."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ...ir import dtype as dt
from ...lower import lower
from ...tir.expr import BufferLoad, Call, Op, PrimExpr, Select
from ...tir.functor import pre_order
from ...tir.op import as_int
from ...tir.stmt import Allocate, Block, BlockRealize, BufferStore, IfThenElse, Stmt, While
from ..result import Found
from .structure import statements
from .work import too_large

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ...tir.buffer import Buffer


@functools.lru_cache(4)
def until(mod: IRModule, stage: str) -> IRModule:
    """A program as it is after a stage of the way down."""
    return lower(mod, until=stage)


def kept(mod: IRModule) -> dict[str, int]:
    """Bytes of each intermediate result of a program, by its name."""
    found = {}
    for stmt in statements(mod):
        if type(stmt) is Block:
            found.update({b.name: _bytes(b) for b in stmt.alloc_buffers})
        elif type(stmt) is Allocate:
            size = dt.bytes_of(stmt.dtype)
            for extent in stmt.extents:
                size *= as_int(extent) or 1
            found[stmt.buffer_var.name] = size
    return found


def _bytes(buffer: Buffer) -> int:
    size = dt.bytes_of(buffer.dtype)
    for dim in buffer.shape:
        size *= as_int(dim) or 1
    return size


def keeps(mod: IRModule, most: int, lowered: bool = True) -> Found:
    """Whether intermediate results take so many bytes at most: of the program as it stands, or
    `lowered`, when only what is alive at once is kept."""
    problem = too_large(mod)
    if problem:
        return Found(False, problem)
    held = kept(until(mod, "CompactBufferAllocation") if lowered else mod)
    total = sum(held.values())
    listed = ", ".join(f"{name} ({size:,})" for name, size in held.items())
    if total > most:
        return Found(False, f"{total:,} bytes of intermediate results are kept; {most:,} are asked "
                     f"for at most. They are {listed}")
    return Found(True, f"{total:,} bytes of intermediate results are kept")


def conditions(mod: IRModule) -> list[str]:
    """The conditions that a program asks, as text."""
    found = []
    for stmt in statements(mod):
        if isinstance(stmt, (IfThenElse, While)):
            found.append(str(stmt.condition))
        elif type(stmt) is Block and stmt.init is not None:
            found.append("T.init")
        elif type(stmt) is BlockRealize and as_int(stmt.predicate) != 1:
            found.append(f"T.where({stmt.predicate})")
        for expr in _expressions(stmt):
            for node in pre_order(expr):
                if type(node) is Select:
                    found.append(str(node.condition))
                elif (type(node) is Call and isinstance(node.op, Op)
                      and node.op.name == "tir.if_then_else"):
                    found.append(str(node.args[0]))
    return found


def _expressions(stmt: Stmt) -> list[PrimExpr]:
    """The expressions that stand directly in a statement."""
    return [stmt.value, *stmt.indices] if type(stmt) is BufferStore else []


def stores(mod: IRModule) -> list[str]:
    """The buffers that the stores of a program write, a name for each store."""
    return [stmt.buffer.name for stmt in statements(mod) if type(stmt) is BufferStore]


def dimensions(mod: IRModule) -> dict[str, int]:
    """How many indices an access to each buffer has, by its name."""
    found: dict[str, int] = {}
    for stmt in statements(mod):
        nodes = [stmt] if type(stmt) is BufferStore else []
        nodes += [node for expr in _expressions(stmt) for node in pre_order(expr)
                  if type(node) is BufferLoad]
        for node in nodes:
            name = node.buffer.name
            found[name] = max(found.get(name, 0), len(node.indices))
    return found


__all__ = ["conditions", "dimensions", "kept", "keeps", "stores", "until"]
