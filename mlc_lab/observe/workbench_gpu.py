"""What the workbench suggests for a GPU: the axis of threads that a loop is bound to.

A suggestion is only the order in which a form tries the choices: whether one is legal is for the
primitive to say.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from ..language import text
from ..schedule.state import child_realizes
from ..target import Target
from ..target.limits import limits_of
from ..tir import op
from ..tir.expr import IterVar
from ..tir.functor import uses_var

if TYPE_CHECKING:
    from ..target.target import TargetLike
    from .workbench_palette import Palette

#: threads of a block, where the target is no GPU: what every GPU of today has
_THREADS = 1024


def tag_of(loop: Any) -> str:
    """The axis that a loop is bound to, or ""."""
    return loop.thread_binding.thread_tag if loop.thread_binding is not None else ""


def extent_of(loop: Any) -> int | None:
    """How often a loop runs, where that is a constant."""
    return op.as_int(loop.extent)


def _nest(p: Palette) -> list[Any]:
    """The loops around the first block under the picked loop, outermost first."""
    realize = next(iter(child_realizes(p.stmt)), None)
    return p.chain() if realize is None else [
        s.stmt for s in p.state.loops_above(p.state.refs[realize.block])]


def _reduces(loop: Any) -> bool:
    return any(uses_var(value, loop.loop_var) for r in child_realizes(loop)
               for iv, value in zip(r.block.iter_vars, r.iter_values)
               if iv.iter_type == IterVar.CommReduce)


def _fills_shared(loop: Any) -> bool:
    """Whether the blocks under a loop write shared memory, which all threads of a block have."""
    return all(w.buffer.scope().startswith("shared") for r in child_realizes(loop)
               for w in r.block.writes)


@cache
def _threads_of(target: str) -> int:
    """How many threads a block of a target may have."""
    limits = limits_of(Target(target))
    return limits.threads if limits is not None else _THREADS


def suggested_axes(p: Palette, target: TargetLike) -> tuple[list[str], str]:
    """The axes for the picked loop, best first, and why the first of them.

    Of the loops outside of a reduction the outer half are for blocks and the rest for threads, the
    innermost of each on x; a loop of a copy into shared memory, which the threads around it share,
    takes the axis that has its extent.
    """
    most = _threads_of(target if isinstance(target, str) else str(Target(target)))
    nest, extent = _nest(p), extent_of(p.stmt)
    at = next(n for n, loop in enumerate(nest) if loop is p.stmt)
    bound = {tag_of(loop): extent_of(loop) for loop in nest if tag_of(loop) and loop is not p.stmt}
    above = {tag_of(loop): extent_of(loop) for loop in nest[:at] if tag_of(loop)}
    again = [tag for tag, n in above.items() if tag.startswith("threadIdx") and n == extent]
    if again and _fills_shared(p.stmt):
        return again, text("{threads} threads run it on {axis} around it already", "views").format(
            threads=extent, axis=again[0])
    if _reduces(p.stmt):
        free = [f"threadIdx.{x}" for x in "xyz" if f"threadIdx.{x}" not in bound]
        return free, text("a reduced loop: each thread sums a part, then all together", "views")
    first = next((n for n, loop in enumerate(nest) if _reduces(loop)), len(nest))
    outer = [loop for loop in nest[:first] if not tag_of(loop).startswith("vthread")]
    here = next((n for n, loop in enumerate(outer) if loop is p.stmt), len(outer))
    half = len(outer) // 2
    inside = any(tag.startswith("threadIdx") for tag in above)
    threads = math.prod(n or 1 for tag, n in bound.items() if tag.startswith("threadIdx"))
    many = extent is None or extent * threads > most
    blocks = not inside and (here < half or many)
    group = outer[:half] if here < half else outer[half:]
    place = len(group) - 1 - next((n for n, loop in enumerate(group) if loop is p.stmt), 0)
    letters = "xyz"[min(place, 2) if group else 0:] + "xyz"[:min(place, 2)]
    word = "blockIdx" if blocks else "threadIdx"
    order = [f"{w}.{x}" for w in (word, "threadIdx" if blocks else "blockIdx") for x in letters]
    free = [tag for tag in order if tag not in bound]
    if extent is None:
        why = text("how often the loop runs is not constant: split it by a constant first", "views")
    elif many and (inside or here >= half):
        why = text("as threads, {threads} in a block, and {most} are the limit: split the loop "
                   "first", "views").format(threads=extent * threads, most=most)
    elif blocks:
        why = text("an outer loop: {extent} blocks", "views").format(extent=extent)
    else:
        why = text("an inner loop: {extent} threads of a block", "views").format(extent=extent)
    return [*free, *(tag for tag in order if tag in bound)], why


__all__ = ["extent_of", "suggested_axes", "tag_of"]
