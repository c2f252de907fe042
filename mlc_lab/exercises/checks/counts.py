"""counts: cache misses, bytes and operations of the answer, counted exactly.

The caches are those of the row, not this machine's: the same answer has the same counts everywhere.
Where an answer misses more than is asked for, it is told which access does, and how far apart in
memory are the elements that it touches one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ir import dtype as dt
from ...observe.counts import AccessCounts, count_accesses
from ...script.spans import script_with_marks
from ...tir import op
from ...tir.expr import BufferLoad, PrimExpr, Var
from ...tir.functor import pre_order, substitute
from ...tir.layout import alignments, layout_with
from ...tir.op import as_int
from ...tir.stmt import Block, BlockRealize, BufferStore, For
from ..answers import read
from ..result import Found
from .structure import loops_of, statements
from .work import too_large

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ..answers import Answer
    from ..exercise import Variant

#: the caches of a row that names none
CACHES = "32K:8, 1M:16"


def counts(answer: Answer, variant: Variant, *, level: str = "L1", misses: int | None = None,
           bytes_moved: int | None = None, intensity: float | None = None,
           accesses: int | None = None, flops: int | None = None,
           of_reference: float | None = None, caches: str = CACHES) -> Found:
    """Whether the answer stays within bounds: `misses` of a level, `bytes_moved` below it,
    `accesses` and `flops` at most, `intensity` (operations a byte moved below it) at least. With
    `of_reference` the misses are at most so many times those of the reference."""
    mod = answer.mod
    assert mod is not None
    problem = too_large(mod)
    if problem:
        return Found(False, problem)
    if of_reference is not None:
        best = read(variant, variant.reference).mod
        assert best is not None
        misses = int(of_reference * count_accesses(best, caches, threads=1).level(level).misses)
    found = _counted(mod, caches)
    at = found.level(level)
    number = [x.name for x in found.levels].index(level)
    for what, have, most in (
        (f"{level} misses", at.misses, misses),
        (f"bytes below {level}", at.bytes_moved, bytes_moved),
        ("loads and stores", found.accesses, accesses),
        ("floating point operations", found.flops or 0, flops),
    ):
        if most is not None and have > most:
            why, place = (worst_access(mod, found, number)
                          if what != "floating point operations" else ("", {}))
            return Found(False, f"{have:,} {what}; {most:,} are asked for at most"
                         + (f". {why}" if why else ""), {**place, "caches": caches})
    reached = found.intensity(number) or 0.0
    if intensity is not None and reached < intensity:
        why, place = worst_access(mod, found, number)
        return Found(False, f"{reached:.2f} operations for each byte below {level}; "
                     f"{intensity:.2f} are asked for. {why}", {**place, "caches": caches})
    return Found(True, f"{at.misses:,} {level} misses of {found.accesses:,} loads and stores")


#: the last program that was counted, in which caches, and what was found
_last: list[Any] = [None, "", None]


def _counted(mod: IRModule, caches: str) -> AccessCounts:
    """The counts of a program, on one thread: whoever looks, with however many cores. Several rows
    ask for those of one program."""
    if _last[0] is not mod or _last[1] != caches:
        _last[:] = mod, caches, count_accesses(mod, caches, threads=1)
    return _last[2]


def worst_access(mod: IRModule, found: AccessCounts, level: int = 0) -> tuple[str, dict[str, Any]]:
    """The access that misses most: how often, and the stride in which it goes through memory; and
    of which buffer it is, at which level."""
    misses: dict[tuple[str, bool], list[int]] = {}
    for one in found.sites:
        entry = misses.setdefault((one.site.buffer.name, one.site.write), [0, 0])
        entry[0] += one.misses[level]
        entry[1] += one.accesses
    if not misses:
        return "", {}
    (name, write), (missed, times) = max(misses.items(), key=lambda item: item[1][0])
    says = f"{'Writing' if write else 'Reading'} {name} misses most: {missed:,} of {times:,} times"
    place: dict[str, Any] = {"buffer": name, "write": write, "level": level}
    layout = layout_with(alignments(statements(mod)))
    for node, stride, loop in strides(mod):
        if node.buffer.name == name and isinstance(node, BufferStore) == write:
            line = found.hierarchy.levels[level].line
            if stride:
                says += _walk(node, abs(stride), [*map(as_int, layout(node.buffer))], loop, line,
                              missed / max(times, 1))
            return says + ".", {**place, "text": script_with_marks(mod, [node], {}, 1)}
    return says + ".", place


def _walk(node: Any, stride: int, layout: list[int | None], loop: Var, line: int, missed: float
          ) -> str:
    """How an access goes through memory: `stride` elements from one step of a loop to the next,
    in a buffer with the strides `layout`, in lines of `line` bytes, with so many misses a step. A
    walk along a row would miss once a line."""
    size = dt.bytes_of(node.buffer.dtype)
    row = layout[-2] if len(layout) > 1 else None
    says = (f"; from one iteration of the innermost loop {loop.name} to the next it goes "
            f"{stride * size} bytes on")
    if stride == row and stride > 1:
        says += f"; that is down a column of {node.buffer.name}"
    if stride * size >= line:
        says += f"; a line of the cache has {line}"
    if stride > 1 and missed > size / line:
        says += f"; {missed:.2f} misses a step, where {size / line:.2f} are possible along a row"
    return says


def strides(mod: IRModule) -> list[tuple[Any, int | None, Var]]:
    """Each load and store of the blocks, with how many elements it goes on in memory from one
    iteration of the innermost loop to the next; None where that differs or is not known."""
    out: list[tuple[Any, int | None, Var]] = []
    nests = loops_of(mod)
    layout = layout_with(alignments(statements(mod)))
    for realize in (st for st in statements(mod) if type(st) is BlockRealize):
        block: Block = realize.block
        loops: list[For] = nests.get(block.name_hint, [])
        if not loops:
            continue
        inner = loops[-1].loop_var
        bound = {iv.var: v for iv, v in zip(block.iter_vars, realize.iter_values)}
        for node in pre_order(block.body):
            if isinstance(node, (BufferLoad, BufferStore)):
                out.append((node, _stride(node, layout(node.buffer), bound, loops, inner), inner))
    return out


def _stride(node: Any, layout: Sequence[PrimExpr], bound: dict[Var, PrimExpr], loops: list[For],
            inner: Var) -> int | None:
    """Elements from the place in the first iteration of all loops to that in the second of the
    innermost, in a buffer with the strides `layout`."""
    places = []
    for step in (0, 1):
        at = {loop.loop_var: op.const(step if loop.loop_var is inner else 0,
                                      loop.loop_var.dtype) for loop in loops}
        place = 0
        for index, size in zip(node.indices, map(as_int, layout)):
            value = as_int(substitute(substitute(index, bound), at))
            if value is None or size is None:
                return None
            place += value * size
        places.append(place)
    return places[1] - places[0]


__all__ = ["CACHES", "counts", "strides", "worst_access"]
