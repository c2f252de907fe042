"""threads: how the answer's parallel loops divide the work, and the lines that threads share.

Nothing runs on several cores here: the work of each piece is counted by itself, and the lines by
`count_sharing`, with the threads in step. So the same answer has the same counts everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...ir.module import IRModule
from ...observe.counts import count_accesses
from ...observe.measure import only_function
from ...observe.sharing import Sharing, count_sharing
from ...script.spans import script_with_marks
from ...tir.functor import ir_transform
from ...tir.op import as_int, const
from ...tir.stmt import For, ForKind, Stmt
from ..result import Found
from .counts import CACHES
from .work import too_large

if TYPE_CHECKING:
    from ..answers import Answer
    from ..exercise import Variant

#: parallel loops whose pieces are counted, each piece by a run of the program
MOST_LOOPS = 8


def threads(answer: Answer, variant: Variant, *, threads: int, line: int = 64,
            share: float | None = None, moves: int | None = None, starts: int | None = None
            ) -> Found:
    """Whether the work is divided well among `threads`, at most: `share` of the loads and stores
    that one thread has, as a fraction, with what is in no parallel loop; `moves` of cache lines of
    `line` bytes from one thread to another; `starts` of the threads.

    A parallel loop is divided into as many contiguous pieces as there are threads; no thread takes
    over work of another. Where a loop runs several times, its busiest thread is taken to be the
    same one each time.
    """
    mod = answer.mod
    assert mod is not None
    problem = too_large(mod)
    if problem:
        return Found(False, problem)
    found = spread_loops(mod)
    if not found:
        return Found(False, "no loop is parallel")
    problem = _countable(found)
    if problem:
        return Found(False, problem, _place(mod, found[0].loop))
    says = []
    if starts is not None:
        runs = sum(one.runs or 0 for one in found)
        if runs > starts:
            most = max(found, key=lambda one: one.runs or 0)
            return Found(False, f"the threads are started {runs:,} times; {starts:,} suffice. The "
                         f"loop {most.loop.loop_var.name} stands inside of loops that are not "
                         "parallel", _place(mod, most.loop))
        says.append(f"the threads are started {runs:,} times")
    if share is not None:
        all_, busiest = _busiest(mod, [one.loop for one in found], threads)
        if busiest > share * all_:
            return Found(False, f"the busiest of {threads} threads has {busiest / all_:.1%} of the "
                         f"loads and stores; {share:.1%} are asked for at most",
                         _place(mod, found[0].loop))
        says.append(f"the busiest of {threads} threads has {busiest / all_:.1%} of the loads and "
                    "stores")
    if moves is not None:
        shared = count_sharing(mod, threads=threads, line=line)
        if shared.moves > moves:
            return Found(False, _told(shared, moves), _place(mod, found[0].loop))
        says.append(f"lines move between threads {shared.moves:,} times")
    return Found(True, "; ".join(says))


def _told(found: Sharing, most: int) -> str:
    name, worst = max(found.buffers.items(), key=lambda item: item[1]["moves"])
    return (f"lines move between threads {found.moves:,} times; {most:,} are asked for at most. "
            f"Most move of {name}: {worst['shared']:,} of its lines, of {found.line} bytes each, "
            "are written by one thread and used by another one")


@dataclass(frozen=True)
class Spread:
    """A loop whose iterations are divided among threads, and how often it runs, if that is
    known."""

    loop: For
    runs: int | None


def spread_loops(mod: IRModule) -> list[Spread]:
    """The parallel loops of a program that stand in no other one, in their order."""
    out: list[Spread] = []
    stack: list[tuple[Stmt, int | None]] = [(only_function(mod)[1].body, 1)]
    while stack:
        stmt, runs = stack.pop()
        if type(stmt) is For:
            extent = as_int(stmt.extent)
            if stmt.kind == ForKind.PARALLEL:
                out.append(Spread(stmt, runs))
                continue
            runs = None if runs is None or extent is None else runs * extent
        stack += [(child, runs) for child in reversed(stmt.children()) if isinstance(child, Stmt)]
    return out


def _countable(found: list[Spread]) -> str:
    """Why the pieces of loops are not counted, or ""."""
    if len(found) > MOST_LOOPS:
        return f"{len(found)} loops are parallel, one after the other; {MOST_LOOPS} are counted"
    for one in found:
        if None in (as_int(one.loop.min), as_int(one.loop.extent), one.runs):
            return (f"how the parallel loop {one.loop.loop_var.name} is divided is not known before"
                    " it is run: give it, and the loops around it, a number of iterations")
    return ""


def _busiest(mod: IRModule, loops: list[For], threads: int) -> tuple[int, int]:
    """Loads and stores of a program: all of them, and those of who is the busiest in each of its
    parallel loops, with what is in none of them."""
    everything = waited = _accesses(mod)
    for loop in loops:
        first, extent = as_int(loop.min) or 0, as_int(loop.extent) or 0
        parts = max(1, min(threads, extent))
        ends = [first + t * extent // parts for t in range(parts + 1)]  # as `pool.py` divides it
        waited -= everything - max(_accesses(_only(mod, loop, begin, end))
                                   for begin, end in zip(ends, ends[1:]))
    return everything, waited


def _accesses(mod: IRModule) -> int:
    """Loads and stores of a program. Small arrays are memory, and no registers: in a piece of one
    iteration they have constant indices that they do not have in the whole."""
    return count_accesses(mod, CACHES, threads=1, registers=False).accesses


def _only(mod: IRModule, loop: For, begin: int, end: int) -> IRModule:
    """A program of which one loop goes from `begin` to `end`."""
    kind = loop.loop_var.dtype
    part = loop.replace(min=const(begin, kind), extent=const(end - begin, kind))
    name, func = only_function(mod)
    body = ir_transform(func.body, lambda node: part if node is loop else None, None, ["tir.For"])
    return IRModule({name: func.with_body(body)})


def _place(mod: IRModule, loop: For) -> dict[str, Any]:
    return {"text": script_with_marks(mod, [loop], {}, 1)}


__all__ = ["spread_loops", "threads"]
