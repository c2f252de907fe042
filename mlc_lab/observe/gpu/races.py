"""Races: threads of a kernel that access one element with nothing to order them.

    >>> mlc_lab.find_races(kernel)    # doctest: +SKIP
    [Race on S[3], ...]

Two accesses of one element by different threads clash where one of them stores, unless a barrier of
their block lies between them; threads of different blocks have none. Each element keeps who has
stored to it and who has loaded it since the last barrier (as in M. Zheng et al., "GRace", PPoPP
2011), so each clash of a run is found, whatever order a GPU would have run it in. Threads of a warp
clash too: since Volta they do not run in step. Several threads that store the same number at one
statement are no clash.

A barrier that only some threads of a block reach is found as well: the others wait for ever.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend.interp_memory import OutOfBounds
from ...backend.source import most_iterations
from ...lower import LowerError
from ...target import Target
from ...target.gpus import gpu_of
from ..measure import Unmeasurable
from .counts import missed_barrier
from .launching import Launch, Program
from .lockstep import Lockstep
from .watching import Site, Watcher

if TYPE_CHECKING:
    from ...backend.source import KernelSource
    from ...ir.module import IRModule
    from ...target.target import TargetLike
    from ...tir.function import PrimFunc

#: threads of a launch up to which it is looked at
MOST_THREADS = 1 << 16
#: threads of a launch, iterations of loops in each, and launches of a call, up to which the
#: simulated device looks by itself
SMALL_THREADS, SMALL_ITERATIONS, SMALL_LAUNCHES = 1 << 11, 1 << 9, 4
#: clashes that are told; more are of the same statements
MOST = 20
_NOBODY = -1


@dataclass(frozen=True)
class Race:
    """Two threads and one element, or a barrier that one of two threads misses.

    Attributes
    ----------
    kernel : str
        The kernel.
    element : str
        The element, "" for a barrier.
    first, second : str
        The threads, in words, with what each does.
    statements : tuple of str
        The statements, that of the first thread first.
    count : int
        How many elements clash at these statements.
    """

    kernel: str
    element: str
    first: str
    second: str
    statements: tuple[str, ...]
    count: int = 1

    def __str__(self) -> str:
        if not self.element:
            return f"{self.kernel}: {self.first} {self.second}\n    {self.statements[0]}"
        lines = [f"{self.kernel}: {self.element} is accessed by two threads with no barrier "
                 f"between them" + (f" ({self.count:,} elements are)" if self.count > 1 else ""),
                 f"  {self.first}", f"    {self.statements[0]}",
                 f"  {self.second}", f"    {self.statements[-1]}"]
        return "\n".join(lines)


class Races(list[Race]):
    """The races that were found, with a text."""

    def __str__(self) -> str:
        return "\n".join(map(str, self)) if self else "no races"


class _Shadow:
    """Who stored to and who loaded each element, in an epoch: between two barriers."""

    def __init__(self, size: int) -> None:
        self.epoch = 0
        self.who = np.full((3, size), _NOBODY, np.int64)  # stored, loaded, loaded by another
        self.when = np.full((3, size), -1, np.int64)
        self.site = np.zeros((3, size), np.int64)

    def _now(self, row: int, at: np.ndarray) -> np.ndarray:
        """Who did something in this epoch."""
        return np.where(self.when[row, at] == self.epoch, self.who[row, at], _NOBODY)

    def _note(self, row: int, at: np.ndarray, who: np.ndarray, site: int) -> None:
        self.who[row, at], self.when[row, at], self.site[row, at] = who, self.epoch, site

    def clashes(self, row: int, at: np.ndarray, who: np.ndarray) -> np.ndarray:
        """Where another thread than `who` has done something."""
        by = self._now(row, at)
        return np.flatnonzero((by != _NOBODY) & (by != who))

    def load(self, at: np.ndarray, who: np.ndarray, site: int) -> None:
        """Note loads."""
        free = self._now(1, at) == _NOBODY
        self._note(1, at[free], who[free], site)
        other = self._now(1, at) != who
        self._note(2, at[other], who[other], site)

    def store(self, at: np.ndarray, who: np.ndarray, site: int) -> None:
        """Note stores."""
        self._note(0, at, who, site)


class _RaceWatcher(Watcher):
    """Looks for clashes in one run of a kernel."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: dict[tuple[int, int], list[Any]] = {}
        self.missed: list[Race] = []
        self.shadows: dict[Any, tuple[_Shadow, _Shadow | None]] = {}
        self.last: tuple[np.ndarray, np.ndarray, Site] | None = None

    def _of(self, run: Lockstep, site: Site) -> tuple[_Shadow, _Shadow | None]:
        """The shadows of a memory: of threads, and for global memory of blocks."""
        memory = run.memory[site.node.buffer.data]
        shared = site.scope == "shared"
        key = site.node.buffer.data if shared else memory.base
        found = self.shadows.get(key)
        if found is None:
            size = memory.size * (len(run.blocks) if shared else 1)
            found = self.shadows[key] = _Shadow(size), None if shared else _Shadow(size)
        return found

    def access(self, run: Lockstep, site: Site, own: Any, shift: int, key: Any) -> None:
        """Compare an access with those before."""
        memory = run.memory[site.node.buffer.data]
        lanes = site.nbytes // max(memory.data.itemsize if memory.data is not None else 1, 1)
        who = np.arange(run.threads)
        at = np.broadcast_to(np.asarray(own, np.int64), run.threads) + shift
        if site.scope == "shared":
            at = at + run.block_of * memory.size
        if run.mask.lanes is not None:
            who, at = who[run.mask.lanes], at[run.mask.lanes]
        if lanes > 1:
            at = (at[:, None] + np.arange(lanes)).reshape(-1)
            who = np.repeat(who, lanes)
        threads, blocks = self._of(run, site)
        rows = (0, 1, 2) if site.write else (0,)
        for row in rows:
            self._tell(run, site, threads, row, at, who, threads.clashes(row, at, who))
        if blocks is not None:
            owner = run.block_of[who]
            for row in rows:
                bad = blocks.clashes(row, at, owner)
                self._tell(run, site, blocks, row, at, who, bad, run.lanes_each)
            (blocks.store if site.write else blocks.load)(at, owner, site.number)
        if site.write:
            self.last = at, who, site
            threads.store(at, who, site.number)
        else:
            threads.load(at, who, site.number)

    def store(self, run: Lockstep, site: Site, value: Any) -> None:
        """Threads that store different numbers to one element at the same statement."""
        if self.last is None or self.last[2] is not site:
            return
        at, who, _ = self.last
        shape = (run.threads, len(at) // max(run.mask.threads, 1))
        numbers = np.broadcast_to(np.asarray(value).reshape(-1, 1) if np.ndim(value) < 2 else value,
                                  shape)
        if run.mask.lanes is not None:
            numbers = numbers[run.mask.lanes]
        flat = numbers.reshape(-1)
        threads, _ = self._of(run, site)
        last = threads.who[0, at]
        order = np.full(threads.who.shape[1], 0, np.int64)
        order[at] = np.arange(len(at))
        kept = flat[order[at]]
        different = (kept != flat) & ~(np.isnan(kept) & np.isnan(flat)) if (
            flat.dtype.kind == "f") else kept != flat
        bad = np.flatnonzero((last != who) & different)
        self._tell(run, site, threads, 0, at, who, bad)

    def _tell(self, run: Lockstep, site: Site, shadow: _Shadow, row: int, at: np.ndarray,
              who: np.ndarray, bad: np.ndarray, unit: int = 1) -> None:
        if not len(bad):
            return
        n = int(bad[0])
        other = int(shadow.site[row, at[n]])
        known = self.found.get((other, site.number))
        elements = set(at[bad].tolist())
        if known is not None:
            known[1] |= elements
            return
        thread, first = int(who[n]), int(shadow.who[row, at[n]])
        memory = run.memory[site.node.buffer.data]
        place = int(at[n]) % memory.size
        rows = [(run.where(first * unit) if unit == 1 else
                 f"a thread of block {int(run.blocks[first])}", run.sites[other]),
                (run.where(thread), site)]
        said = [f"{where} {'stores' if s.write else 'loads'} it at" for where, s in rows]
        race = Race(self.name, f"{memory.name}[{place}]", said[0], said[1],
                    tuple(_line(s.statement) for _, s in rows))
        self.found[other, site.number] = [race, elements]

    def barrier(self, run: Lockstep, s: Any) -> None:
        """A new epoch, where all threads are there."""
        words = missed_barrier(run)
        if words is not None and not self.missed:
            self.missed.append(Race(self.name, "", words, "", (_line(s),)))
        for threads, _ in self.shadows.values():
            threads.epoch += 1

    def races(self) -> list[Race]:
        """What was found."""
        rows = [Race(r.kernel, r.element, r.first, r.second, r.statements, len(elements))
                for r, elements in self.found.values()]
        return [*self.missed, *rows][:MOST]


def _line(s: Any) -> str:
    return repr(s).strip().splitlines()[-1].strip()


def find_races(program: object, target: TargetLike = "cuda", *,
               sizes: Mapping[str, int] | None = None, arrays: Sequence[Any] | None = None
               ) -> Races:
    """Look for races and for barriers that only some threads reach.

    All threads are run, with numbers, so this is for small shapes. It sees what the run does: other
    data may take other ways. Arguments are as for `count_gpu`.

    Raises
    ------
    Unmeasurable
        For more than `MOST_THREADS` threads, and for what cannot be followed.
    LowerError, OutOfBounds
        As `count_gpu` does.
    """
    found = Races()

    def look(launch: Launch) -> None:
        if launch.blocks * launch.threads > MOST_THREADS:
            raise Unmeasurable(f"{launch.name} has {launch.blocks * launch.threads:,} threads, and "
                               f"races are looked for among at most {MOST_THREADS:,}: take smaller "
                               "shapes")
        found.extend(_of_launch(launch, where))

    where = Target(target)
    Program(program, where, sizes, arrays).run(look, data=True)
    return found


def races_of_call(name: str, func: PrimFunc, host: PrimFunc, lowered: IRModule,
                  kernels: Mapping[str, KernelSource], target: Target, args: Sequence[Any],
                  small: bool) -> Races:
    """The races of a call of a built function, given as `Program.built` takes it.

    It ends before a launch of more than `MOST_THREADS` threads, and with `small` before one that
    would take long: with more than `SMALL_THREADS` threads or `SMALL_ITERATIONS` iterations of
    loops, or the `SMALL_LAUNCHES`th. What cannot be followed has no races: the call itself says
    what is wrong with it."""
    program = Program.built(name, func, host, lowered, kernels, target, args)
    found = Races()
    launches = 0

    def look(launch: Launch) -> None:
        nonlocal launches
        launches += 1
        threads = launch.blocks * launch.threads
        if threads > MOST_THREADS or small and (
                threads > SMALL_THREADS or launches > SMALL_LAUNCHES
                or most_iterations(launch.source) > SMALL_ITERATIONS):
            raise Unmeasurable("what follows has numbers that this launch would have stored")
        found.extend(_of_launch(launch, program.target))

    with contextlib.suppress(Unmeasurable, LowerError, OutOfBounds):
        program.run(look, data=True)
    return found


def _of_launch(launch: Launch, target: Target) -> list[Race]:
    watcher = _RaceWatcher(launch.name)
    Lockstep(launch.func, launch.name, launch.extents, launch.given, range(launch.blocks), watcher,
             gpu_of(target).warp, values=True).run()
    return watcher.races()


__all__ = ["Race", "Races", "find_races", "races_of_call"]
