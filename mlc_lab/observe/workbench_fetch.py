"""Cooperative fetching on the workbench: the threads of a block make a copy together, by one click.

It is no primitive: it applies `fuse`, `split`, `bind` and `vectorize`, each an attempt of the tree
and a line of the schedule's Python.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..dlight.gpu.fetch import fetch_together, threads_of, vector_length
from ..ir import dtype as dt
from ..schedule.error import Refusal, ScheduleError
from ..schedule.schedule import Schedule
from ..schedule.state import child_realizes
from ..tir.stmt import Block
from .workbench_gpu import extent_of, tag_of
from .workbench_palette import Entry, NotHere, Palette, Parameter, explain

if TYPE_CHECKING:
    from .workbench import Workbench
    from .workbench_tree import Attempt

#: the name of the entry that applies several primitives
FETCH = "cooperative_fetch"
#: bytes that a thread loads at once
_VECTOR_BYTES = 16


class Fetch:
    """Cooperative fetching of one block: its loops, the axes of threads around it, its elements.

    Raises NotHere for a block that is no copy into shared memory, or has no threads around it.
    """

    def __init__(self, p: Palette) -> None:
        block: Block = p.stmt
        self.p = p
        if not is_shared_copy(block):
            raise NotHere("copies into shared memory", f"block {block.name_hint} is no copy into "
                          'shared memory: cache_read(block, index, "shared") makes one')
        loops = p.loops_above()
        inner = max((n + 1 for n, loop in enumerate(loops) if tag_of(loop)), default=0)
        if any(tag_of(loop).startswith("threadIdx") for loop in loops[:inner]):
            own = [loop for loop in loops[inner:] if len(child_realizes(loop)) == 1]
        else:
            own = []
        axes = [(tag_of(loop), extent_of(loop)) for loop in loops[:inner]
                if tag_of(loop).startswith("threadIdx")]
        if not axes:
            raise NotHere("threads around the copy", f"no loop around {block.name_hint} is bound "
                          "to threadIdx: bind the loops of the block that reads it, and put the "
                          "copy inside of them with compute_at")
        if len({tag for tag, _ in axes}) < len(axes):
            raise NotHere("not shared yet", f"the threads share the copy {block.name_hint} already")
        extents = [extent_of(loop) for loop in own]
        if not own or None in extents or any(n is None for _, n in axes):
            raise NotHere("loops of its own", f"the loops around {block.name_hint} inside of the "
                          "threads are none, bound already, or have no constant extent")
        self.own = own
        self.axes = [(tag, int(n or 1)) for tag, n in axes]
        self.elements = math.prod(n or 1 for n in extents)
        most = max(_VECTOR_BYTES // max(dt.bytes_of(block.writes[0].buffer.dtype), 1), 1)
        self.most = vector_length(self.elements, threads_of(self.axes), most)

    def parameters(self) -> list[Parameter]:
        """The block, and how long a vector is: the longest that fits is the default."""
        lengths = [n for n in (8, 4, 2, 1) if n <= self.most]
        choices = [{"value": n, "label": str(n)} for n in lengths]
        return [self.p.picked("block"), Parameter("vector", "choice", lengths[0], choices)]

    def run(self, sch: Any, value: Any, vector: int) -> None:
        """Apply the primitives to `sch`; `value(loop)` is a loop as an argument of it."""
        length = vector_length(self.elements, threads_of(self.axes), max(int(vector), 1))
        fetch_together(sch, [value(loop) for loop in self.own], self.axes, length)


def is_shared_copy(block: Any) -> bool:
    """Whether a block copies a buffer into shared memory."""
    return (type(block) is Block and len(block.writes) == 1 and len(block.reads) == 1
            and block.init is None and block.writes[0].buffer.scope().startswith("shared"))


def fetch_entry(p: Palette) -> Entry | None:
    """Cooperative fetching as an entry of the palette; None where it is not in question."""
    if not is_shared_copy(p.stmt):
        return None
    made = Entry(FETCH, "Several steps at once", "The threads of a block make the copy together: "
                 "`fuse`, `split` by the threads and a vector, `bind`, `vectorize`.", False, [])
    try:
        made.parameters = Fetch(p).parameters()
        made.legal = True
    except NotHere as nothing:
        made.rule, made.reason = nothing.args
    return made


# ----------------------------------------------------------------------------------- on the tree


class _Attempting:
    """Primitives as attempts of a workbench: what they return can be given to the next."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench

    def _do(self, op: str, **args: Any) -> Any:
        return self.bench.apply(op, **args).reached.steps[-1].instruction.outputs

    def fuse(self, *loops: Any) -> Any:
        """The loops as one."""
        return self._do("fuse", loops=list(loops))

    def split(self, loop: Any, factors: list[Any]) -> Any:
        """The loop in parts."""
        return self._do("split", loop=loop, factors=factors)

    def bind(self, loop: Any, thread_axis: str) -> None:
        """The loop on an axis of threads."""
        self._do("bind", loop=loop, thread_axis=thread_axis)

    def vectorize(self, loop: Any) -> None:
        """The loop as a vector."""
        self._do("vectorize", loop=loop)


def _fetch_of(bench: Workbench, args: Mapping[str, Any]) -> Fetch:
    return Fetch(Palette(bench.at.reached, bench.find(args.get("block")), bench.key_of,
                         bench.target))


def tried_fetch(bench: Workbench, args: Mapping[str, Any]
                ) -> tuple[Schedule, tuple[str, str] | None]:
    """Cooperative fetching on a copy of the schedule, and (rule, reason) if it is refused."""
    trial = bench.at.reached.copy()
    try:
        fetch = _fetch_of(bench, args)
        fetch.run(trial, trial.new_rv, args.get("vector", fetch.most))
    except NotHere as nothing:
        return trial, (nothing.args[0], nothing.args[1])
    except ScheduleError as error:
        return trial, explain(error)
    except (TypeError, ValueError) as error:  # half-typed arguments
        return trial, ("arguments", str(error) or type(error).__name__)
    return trial, None


def apply_fetch(bench: Workbench, args: Mapping[str, Any]) -> Attempt:
    """Cooperative fetching at the current node. Listeners hear of it once, and one `undo` takes it
    back; what cannot be done is refused before the first step, with ScheduleError."""
    refusal = tried_fetch(bench, args)[1]
    if refusal is not None:
        rule, reason = refusal
        raise ScheduleError(FETCH, f"{FETCH}(...)", Refusal(rule.replace(" ", "_"), reason),
                            bench.mod)
    fetch = _fetch_of(bench, args)
    loops = {id(loop): bench.value_of(loop) for loop in fetch.own}
    start = bench.at.id
    listeners, bench.listeners = bench.listeners, []
    try:
        fetch.run(_Attempting(bench), lambda loop: loops[id(loop)],
                  args.get("vector", fetch.most))
    finally:
        bench.listeners = listeners
    if bench.at.parent not in (None, start):
        bench.at.began = start
    return bench.goto(bench.at.id)


__all__ = ["FETCH", "Fetch", "apply_fetch", "fetch_entry", "is_shared_copy", "tried_fetch"]
