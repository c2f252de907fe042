"""Cache lines that several threads use while a parallel loop runs, and how often they move.

    >>> print(count_sharing(sch, threads=4))       # doctest: +SKIP

In a legal parallel loop no two iterations touch one element, unless both read it. A line of the
cache holds many elements: threads that write to different ones of the same line still take the line
from each other, each time at the price of a miss. That is false sharing.

What is counted. The iterations of a parallel loop are divided as the thread pool divides them
(`runtime/native/pool.py`; no thread takes over work of another). The threads run in step: each
executes one statement (a store, with the loads of its value) in turn, the first one first; one that
is through drops out. A line

- is *shared* if in one run of a parallel loop a thread writes to it and another one reads it or
  writes to it;
- *moves* when a thread reads it or writes to it after another one has written to it, for the first
  time since then: the line has to come from the other core's cache.

At the beginning of each run no thread has a line. Memory allocated inside of the loop is each
thread's own. The numbers depend on the program and the number of threads alone, so they are the
same every time; on a machine threads drift apart, and a core may store several times before it
gives a line away.

How it is found. The program runs twice, one thread after the other. The first run marks the lines
that are shared; the second logs, for these, the number of each statement that uses them. Merged by
these numbers, the threads' logs are what happens in step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..lower.pipeline import as_module
from ..machine.caches import CacheHierarchy
from ..runtime import native_library
from .instrument import Program, call, concrete, instrument
from .measure import Unmeasurable, is_parallel, only_function, random_arrays
from .sharing_code import BITS, MARK, Word

if TYPE_CHECKING:
    from ..target.target import TargetLike

#: entries of a log, and the most that one line may have: 128 MiB and 2 GiB
_BATCH, _MOST = 1 << 24, 1 << 28
#: flags that the first run leaves of a line
_SHARED, _WRITTEN = 1, 2


@dataclass(frozen=True)
class Sharing:
    """What threads do to each other's cache lines in the parallel loops of one run.

    Attributes
    ----------
    threads : int
        Over how many the loops are spread.
    line : int
        Bytes of a line.
    written : int
        Lines that parallel loops write to.
    shared : int
        Of these, the ones that another thread reads or writes in the same run of a loop.
    moves : int
        How often a line moves from one core to another.
    buffers : dict
        "shared" and "moves" of each buffer that has shared lines, by name.
    """

    threads: int
    line: int
    written: int
    shared: int
    moves: int
    buffers: Mapping[str, Mapping[str, int]]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as the counts of a recording's program have it under "sharing"."""
        return {"threads": self.threads, "line": self.line, "written": self.written,
                "shared": self.shared, "moves": self.moves,
                "buffers": {name: dict(found) for name, found in self.buffers.items()}}

    def __str__(self) -> str:
        if not self.shared:
            return (f"{self.threads} threads: of {self.written:,} lines written in parallel, none "
                    "is used by two threads")
        lines = [f"{self.threads} threads: {self.shared:,} of {self.written:,} lines written in "
                 f"parallel are used by several threads, and move between cores {self.moves:,} "
                 "times"]
        lines += [f"  {name}: {found['shared']:,} lines, {found['moves']:,} moves"
                  for name, found in self.buffers.items()]
        return "\n".join(lines)


def count_sharing(program: object, *, threads: int | None = None, line: int | None = None,
                  sizes: Mapping[str, int] | None = None, target: TargetLike = "llvm",
                  registers: bool = True, arrays: Sequence[np.ndarray] | None = None) -> Sharing:
    """Count the cache lines that threads of parallel loops take from each other, and how often.

    Parameters
    ----------
    program : PrimFunc, IRModule or Schedule
    threads : int
        Over how many threads parallel loops are spread; by default as many as the machine has.
    line : int
        Bytes of a cache line, a power of two; by default those of this machine's first cache.
    sizes, target, registers, arrays : see `count_accesses`

    Raises
    ------
    Unmeasurable, LowerError, CodegenError
        Where the program cannot be run, or runs too long for this count.
    """
    mod = as_module(program)
    threads = native_library.num_threads() if threads is None else threads
    line = CacheHierarchy.machine().levels[0].line if line is None else line
    if not 1 <= threads < 1 << BITS.thread:
        raise ValueError(f"threads={threads}: a parallel loop is spread over 1 to "
                         f"{(1 << BITS.thread) - 1} threads")
    if line < 1 or line & (line - 1):
        raise ValueError(f"line={line}: the bytes of a cache line are a power of two")
    if threads == 1 or not is_parallel(mod):
        return Sharing(threads, line, 0, 0, 0, {})
    if arrays is None:
        arrays = random_arrays(only_function(concrete(mod, sizes)[1])[1], sizes)
    made = instrument(mod, None, sizes=sizes, target=target, threads=threads, registers=registers,
                      arrays=arrays, sharing=line)
    return _Count(made, arrays, line).sharing()


class _Count:
    """The two runs of a program, and what is read from them."""

    def __init__(self, made: Program, arrays: Sequence[np.ndarray], line: int) -> None:
        self.made, self.arrays, self.line = made, arrays, line
        self.words = made.array_at("share_words", (len(Word),))
        lines = len(made.arena) // line
        self.lines, self.flags, self.events = (np.zeros(lines, np.int64) for _ in range(3))
        for word, table in ((Word.LINES, self.lines), (Word.FLAGS, self.flags),
                            (Word.EVENTS, self.events)):
            self.words[word] = table.ctypes.data

    def sharing(self) -> Sharing:
        """Both runs."""
        self.words[Word.MODE] = MARK
        self._run()
        if int(self.words[Word.RUN]) >> BITS.run or int(self.words[Word.LONGEST]) >> BITS.step:
            raise Unmeasurable("the parallel loops run too often or too long: count the sharing of "
                               "a smaller program")
        shared = np.flatnonzero(self.flags & _SHARED)
        moves = np.zeros(len(self.lines), np.int64)
        for lines in self._batches(shared):
            moves[lines] = self._moves(lines)
        buffers = {}
        for place in self.made.plan.places.values():
            part = slice(place.base // self.line, -(-(place.base + place.nbytes) // self.line))
            found = int(np.count_nonzero(self.flags[part] & _SHARED))
            if found:
                buffers[place.name] = {"shared": found, "moves": int(moves[part].sum())}
        return Sharing(self.made.plan.threads, self.line,
                       int(np.count_nonzero(self.flags & _WRITTEN)), len(shared),
                       int(moves.sum()), buffers)

    def _run(self) -> None:
        """Run the program once on its arguments."""
        for view, data in zip(self.made.arguments, self.arrays, strict=True):
            view[...] = data
        self.words[Word.THREAD:Word.RUN + 1] = 0
        call(self.made)

    def _batches(self, lines: np.ndarray) -> Iterator[np.ndarray]:
        """Shared lines in parts, each of which has a log of a size that fits."""
        while len(lines):
            total = np.cumsum(self.events[lines])
            if total[0] > _MOST:
                raise Unmeasurable(f"one cache line is used {total[0]:,} times in parallel loops: "
                                   "count the sharing of a smaller program")
            count = max(1, int(np.searchsorted(total, _BATCH, "right")))
            yield lines[:count]
            lines = lines[count:]

    def _moves(self, lines: np.ndarray) -> np.ndarray:
        """How often each of some lines moves."""
        # Before the part of each line is an entry that equals none.
        ends = np.cumsum(self.events[lines] + 1)
        firsts = np.concatenate([[0], ends[:-1]]) + 1
        log = np.full(int(ends[-1]), -1, np.int64)
        self.lines[:] = 0
        self.lines[lines] = firsts
        self.words[Word.LOG], self.words[Word.MODE] = log.ctypes.data, MARK + 1
        self._run()
        ends, moves = self.lines[lines], np.zeros(len(lines), np.int64)
        threads = self.made.plan.threads
        scratch = np.zeros(3 * threads, np.int64)
        merge = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_void_p,
                                 ctypes.c_int64)(self.made.library.address("share_merge"))
        merge(log.ctypes.data, firsts.ctypes.data, ends.ctypes.data, moves.ctypes.data, len(lines),
              scratch.ctypes.data, threads)
        return moves


__all__ = ["Sharing", "count_sharing"]
