"""The source of a program's kernels for a GPU, each line with the lines of the program it is for.

The program goes the way that `build` sends it (`backend/device/gpu_module.py`). While its passes
run, statements are followed as in `lowering.py`, and the generator keeps for each line what it was
written for. The line that names an axis of threads came from the loops that are bound to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend.source import last_passes, module_lines, sources
from ..ir.module import GlobalVar, IRModule
from ..lower.origins import lower_with_blocks
from ..target import Target
from ..tir.expr import Call
from ..tir.function import PrimFunc
from ..tir.functor import all_statements, following, pre_order
from ..tir.stmt import Evaluate, For
from .lowering import Line, Origins
from .ptx_lines import ptx_lines

if TYPE_CHECKING:
    from ..target.target import TargetLike

#: the languages in the order in which a view has them, by target kind
KINDS = ("cuda", "opencl", "webgpu", "metal", "nvptx")


def source_lines(mod: IRModule, target: TargetLike) -> list[Line]:
    """The lines of all kernels of a module in the language of a target.

    Raises what lowering raises, and LowerError or CodegenError for what the language cannot say.
    """
    target = Target(target)
    kind = target.kind.name
    origins = Origins(mod)
    with following(origins.rewritten):
        _, written, blocks = lower_with_blocks(mod, target, last_passes(target))
    axes = _axes(mod, written, origins)

    def of(kernel: str, node: Any) -> tuple[int, ...]:
        found = axes.get((kernel, node), ()) if isinstance(node, str) else origins.of(node)
        return tuple(found)

    if kind == "nvptx":
        return ptx_lines(written, target, of)
    return [(text, of(kernel, node))
            for text, kernel, node in module_lines(sources(written, kind, blocks), kind)]


def _axes(mod: IRModule, written: IRModule, origins: Origins) -> dict[tuple[str, str], list[int]]:
    """The lines of the loops that are bound to an axis, by kernel and tag."""
    found: dict[tuple[str, str], list[int]] = {}
    for var, func in written.functions.items():
        before = mod.functions.get(var)
        if type(func) is not PrimFunc or type(before) is not PrimFunc:
            continue
        loops = [s for s in all_statements(before.body) if type(s) is For and s.thread_tag]
        for s in pre_order(func.body):
            if (type(s) is Evaluate and type(s.value) is Call
                    and type(s.value.op) is GlobalVar):
                for loop in loops:
                    found.setdefault((s.value.op.name_hint, loop.thread_tag), []).extend(
                        origins.of(loop.loop_var))
    return found


__all__ = ["KINDS", "source_lines"]
