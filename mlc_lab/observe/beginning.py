"""The beginning of a program that runs long: its outer loops cut short.

What is counted of the beginning, times how many statements the program runs for each of it, says
about what the whole run does, in a fraction of the time. The first touch of memory weighs more in
it than in the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.module import IRModule
from ..tir import stmt as s
from ..tir.expr import IntImm
from ..tir.function import PrimFunc
from . import flops
from .inner_loop import statements_run

#: entries of counts that grow with the length of a run
_GROW = {"lookups", "misses", "bytes_in", "bytes_out", "reads", "writes", "bytes_read",
         "bytes_written", "flops", "bytes", "moves"}


def beginning(mod: IRModule, sizes: Mapping[str, int] | None, most: float
              ) -> tuple[IRModule, float] | None:
    """The program that runs about the first `most` statements of each nest, and which share of the
    statements that is; None where it cannot be made shorter."""
    total = statements_run(mod, sizes)
    if total <= most:
        return None
    functions = {}
    for gv, func in mod.functions.items():
        if isinstance(func, PrimFunc):
            func = func.with_body(_cut(func.body, most / total, sizes or {}))
        functions[gv.name_hint] = func
    short = IRModule(functions)
    left = statements_run(short, sizes)
    return None if left >= total or left > 4 * most else (short, left / total)


def _cut(node: Any, share: float, sizes: Mapping[str, int]) -> Any:
    """The nests under a statement, each with about this share of its iterations; of a parallel
    loop each iteration is cut, where it can be, so that all threads have work."""
    if isinstance(node, s.For):
        if share >= 1 or node.kind == s.ForKind.THREAD_BINDING:
            return node
        if node.kind == s.ForKind.PARALLEL:
            inner = _cut(node.body, share, sizes)
            if inner is not node.body:
                return node.replace(body=inner)
        try:
            extent = flops.integer(node.extent, sizes)
        except flops.Uncountable:
            return node
        kept = max(1, round(extent * share))
        body = _cut(node.body, share * extent / kept, sizes) if kept < 2 else node.body
        return node.replace(extent=IntImm(node.extent.dtype, min(kept, extent)), body=body)
    if isinstance(node, s.SeqStmt):
        items = tuple(_cut(item, share, sizes) for item in node.seq)
        return s.SeqStmt(items) if any(a is not b for a, b in zip(items, node.seq)) else node
    if isinstance(node, s.BlockRealize) and not node.block.iter_vars:
        block = node.block
        body = _cut(block.body, share, sizes)
        return node if body is block.body else node.replace(block=block.replace(body=body))
    return node


def of_the_whole(counts: dict[str, Any], share: float) -> dict[str, Any]:
    """Counts of a beginning as those of the whole, about; "part" says of which share they are."""

    def grown(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: grown(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [grown(item, name) for item in value]
        if name in _GROW and isinstance(value, int) and not isinstance(value, bool):
            return round(value / share)
        return value

    return {**grown(counts), "part": share}


__all__ = ["beginning", "of_the_whole"]
