"""Exact counts of a GPU program: instructions, sectors, conflicts, caches, occupancy.

    >>> print(mlc_lab.count_gpu(sch, target="nvidia/geforce-rtx-2080-ti"))   # doctest: +SKIP

All warps of a launch are run (`lockstep.py`), and each load and store is looked at as the hardware
does (`requests.py`), so the counts are the same every time and on every machine. What they say is
exact for the program as it is written; a device's compiler may do better. It is told in
`lockstep.py` which loads count as kept in registers, and in `caches.py` what the caches are.

Where a launch has more than `LANES` threads and all its blocks do the same but for where they do it
(no condition and no extent of a loop depends on the block or on data), whole blocks from the first
on are run, as many as the GPU holds at once, and what they do is multiplied. The counts say so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir import dtype as dt
from ...ir.module import IRModule
from ...language import text
from ...target import Target
from ...target.gpus import GPU, USUAL, gpu_of
from ...tir import stmt as S
from ...tir import expr as E
from ...tir.functor import pre_order, uses_var
from ...lower.split_host_device import axes_of
from ..measure import Unmeasurable
from .caches import Caches, Traffic
from .costs import KINDS
from .launching import Launch, Program
from .lockstep import Lockstep
from .needed import needed_numbers
from .occupancy import Occupancy, occupancy, registers
from .sampled import MIXED, blocks_of_one, traffic_of_one
from .requests import LINE, NONE, SECTOR, WORD, passes, sectors
from .results import GPUCounts, KernelCounts, SiteCount
from .unrolled import IN_FLIGHT
from .watching import Memory, Site, Watcher

if TYPE_CHECKING:
    from ...target.target import TargetLike

#: threads of a launch up to which all blocks are run
LANES = 1 << 16
#: threads that are run in step
TOGETHER = 1 << 17
#: bytes of one load or store of a thread at most
JOINED = 16
#: sectors that the caches are asked for in one part: a kernel may ask for more than memory holds
PART = 1 << 20


@dataclass
class _Again:
    """Requests `once`, and the same `times` - 1 times more; each time those of a site are `moved`
    by so many elements more, by the site's number."""

    once: list[Any]
    times: int
    moved: dict[int, int]


def _each(requests: list[Any], moved: Mapping[int, int]
          ) -> Iterator[tuple[np.ndarray, np.ndarray, Site]]:
    """All requests in time order; what is done again is written out."""
    for item in requests:
        if isinstance(item, _Again):
            far = dict(moved)
            for step in range(item.times):
                if step:
                    far = {n: far.get(n, 0) + by for n, by in item.moved.items()}
                yield from _each(item.once, far)
        else:
            sector, warp, site = item
            far = moved.get(site.number, 0) * dt.bytes_of(site.node.buffer.dtype) // SECTOR
            yield sector + far, warp, site


class _Counter(Watcher):
    """Counts requests; `stream` has those of global memory in time order: (sectors, the warps that
    ask for them, the site), or such a list to be done again."""

    multiplies = True

    def __init__(self) -> None:
        self.by_site: dict[int, list[int]] = {}  # requests, sectors, passes, least, lines, joined
        self.branches = self.divergent = 0
        self.waits: dict[str, float] = defaultdict(float)
        self.near_region = -1
        #: of each scope the stretch of statements that its last load was in, and loads in it so far
        self.stretch: dict[str, tuple[int, int]] = {}
        self.missed: str | None = None
        self.memo: dict[Any, Any] = {}
        self.near: dict[Any, int] = {}  # accesses of one stretch in the same 16 bytes
        self.stream: list[Any] = []

    def mark(self) -> Any:
        """The counts as they are."""
        return ({n: list(row) for n, row in self.by_site.items()}, self.branches, self.divergent,
                self.waits.copy(), len(self.stream))

    def repeat(self, before: Any, times: int, moved: Mapping[int, int]) -> None:
        """As often as `times` what was counted since."""
        sites, branches, divergent, waits, start = before
        for number, row in self.by_site.items():
            old = sites.get(number, (0,) * len(row))
            row[:] = [a + times * (b - a) for a, b in zip(old, row)]
        self.branches = branches + times * (self.branches - branches)
        self.divergent = divergent + times * (self.divergent - divergent)
        for scope, n in self.waits.items():
            self.waits[scope] = waits[scope] + times * (n - waits[scope])
        if times > 1 and len(self.stream) > start:
            self.stream[start:] = [_Again(self.stream[start:], times, dict(moved))]

    def begin(self) -> None:
        """Other blocks are run next."""
        self.memo.clear()
        self.stretch.clear()

    def access(self, run: Lockstep, site: Site, own: Any, shift: int, key: Any) -> None:
        """Count one access of all warps."""
        size = max(site.nbytes, WORD) if site.scope == "shared" else LINE
        memory = run.memory[site.node.buffer.data]
        element = dt.bytes_of(memory.dtype)
        start = memory.base + int(shift) * element
        moved = start // size * size if size else 0
        place = None if key is None else (key, run.mask.number, start - moved, site.number)
        found = None if place is None else self.memo.get(place)
        if found is None:
            found = self._count(run, site, own, element, start, moved // SECTOR)
            if place is not None:
                self.memo[place] = found
        if not site.write:
            region, loads = self.stretch.get(site.scope, (-1, 0))
            loads = loads + 1 if region == run.region else 0
            self.stretch[site.scope] = run.region, loads
            if loads == 0 or loads >= IN_FLIGHT:  # another one starts when one has come
                self.waits[site.scope] += run.mask.warps / (IN_FLIGHT if loads else 1)
        row = self.by_site.setdefault(site.number, [0] * 6)
        for at, number in enumerate(found[0]):
            row[at] += number
        if site.scope == "shared":
            row[5] += self._joined(run, site, own, element, start, key, found[0][2])
        if site.scope == "global":
            warp, sector = found[1]
            self.stream.append((sector + moved // SECTOR, warp, site))

    def _joined(self, run: Lockstep, site: Site, own: Any, element: int, start: int, key: Any,
                alone: int) -> int:
        """The passes that an access adds to those of the accesses next to it, which are joined."""
        if key is None or site.nbytes != WORD:
            return alone
        group = (site.number, key, run.mask.number, start // JOINED)
        if self.near_region != run.region:
            self.near.clear()
            self.near_region = run.region
        members = self.near[group] = self.near.get(group, 0) + 1
        if members == 1:
            return alone
        place = (key, run.mask.number, site.number, "joined")
        costs = self.memo.get(place)
        if costs is None:
            at = np.broadcast_to(np.asarray(own, np.int64), run.threads) * element
            if run.mask.lanes is not None:
                at = np.where(run.mask.lanes, at, NONE)
            width = next(w for w in (JOINED, JOINED // 2, WORD)
                         if w == WORD or not (at[at != NONE] % w).any())
            rows = at.reshape(-1, run.warp)
            whole = passes(rows, width)[0]
            # passes of 1, 2, 3 and 4 neighbours; with less alignment fewer of them are joined
            costs = self.memo[place] = [0, alone] + [
                whole * -(-n * WORD // width) if width > WORD else alone * n for n in (2, 3, 4)]
        return costs[members] - costs[members - 1] if members < len(costs) else 0

    @staticmethod
    def _count(run: Lockstep, site: Site, own: Any, element: int, start: int, first: int) -> Any:
        """The numbers of one access, and its sectors, counted from the sector `first`."""
        mask, warp = run.mask, run.warp
        at = np.broadcast_to(np.asarray(own, np.int64), run.threads) * element + start
        if mask.lanes is not None:
            at = np.where(mask.lanes, at, NONE)
        rows = at.reshape(-1, warp)
        if site.scope == "shared":
            all_, least = passes(rows, site.nbytes)
            return (mask.warps, 0, all_, least), None
        which, sector = sectors(rows, site.nbytes)
        asked = _asked(rows, site.nbytes)
        lines = len(np.unique(which * (1 << 40) + sector * SECTOR // LINE))
        return (mask.warps, len(sector), 0, asked, lines), (which, sector - first)

    def branch(self, run: Lockstep, s: Any, test: Any) -> None:
        """Count a condition, and the warps that it splits."""
        rows = np.broadcast_to(test, run.threads)
        live = run.mask.lanes
        yes = (rows if live is None else rows & live).reshape(-1, run.warp).any(axis=1)
        no = (~rows if live is None else ~rows & live).reshape(-1, run.warp).any(axis=1)
        self.branches += run.mask.warps
        self.divergent += int(np.count_nonzero(yes & no))

    def barrier(self, run: Lockstep, s: Any) -> None:
        """All threads of a block must get here."""
        if run.mask.threads != run.live.threads and self.missed is None:
            self.missed = missed_barrier(run)


def missed_barrier(run: Lockstep) -> str | None:
    """Two threads of a block of which only one is at a barrier, in words; None if all are."""
    if run.mask.lanes is None:
        return None
    there = run.mask.lanes
    live = np.ones(run.threads, bool) if run.live.lanes is None else run.live.lanes
    for block in range(len(run.blocks)):
        own = run.block_of == block
        here, absent = np.flatnonzero(own & there), np.flatnonzero(own & live & ~there)
        if len(here) and len(absent):
            return (f"{run.where(int(here[0]))} waits at a barrier that "
                    f"{run.where(int(absent[0]))} never reaches ({len(here)} of "
                    f"{len(here) + len(absent)} threads of the block are there)")
    return None


def _asked(rows: np.ndarray, nbytes: int) -> int:
    """Sectors that would hold what each warp asks for, one after the other."""
    ordered = np.sort(rows, axis=1)
    different = (ordered != NONE) & np.concatenate(
        [np.ones((len(ordered), 1), bool), ordered[:, 1:] != ordered[:, :-1]], axis=1)
    return int((-(-different.sum(axis=1) * nbytes // SECTOR)).sum())


def alike(launch: Launch) -> bool:
    """Whether all blocks do the same, but for where."""
    axes, body = axes_of(launch.func)
    blocks = {s.node.var for s in axes if s.node.thread_tag.startswith("blockIdx")}
    if any(isinstance(launch.given.get(v), Memory) for v in needed_numbers(launch.func.body)):
        return False
    named: set[E.Var] = set(blocks)
    s: Any
    for s in pre_order(body):
        if type(s) is S.LetStmt and uses_var(s.value, named):
            named.add(s.var)
        elif type(s) is S.For and (uses_var(s.extent, named) or uses_var(s.min, named)):
            return False
        elif isinstance(s, (S.IfThenElse, S.While)) and uses_var(s.condition, named):
            return False
        elif type(s) is E.Call and getattr(s.op, "name", "") == "tir.if_then_else":
            if uses_var(s.args[0], named):
                return False
    return True


def count_launch(launch: Launch, gpu: GPU, quick: bool = False) -> KernelCounts:
    """The counts of one launch; `quick` as in `count_gpu`. Raises Unmeasurable for what cannot be
    followed, and for a barrier that only some threads of a block reach."""
    def lockstep(blocks: Sequence[int], watcher: Watcher) -> Lockstep:
        return Lockstep(launch.func, launch.name, launch.extents, launch.given, blocks, watcher,
                        gpu.warp)

    empty = lockstep([], Watcher())
    shared = sum(empty.shared.values())
    words = registers(launch.func, empty.own_words)
    held = occupancy(gpu, launch.threads, words, shared)
    wave = max(held.blocks, 1) * gpu.processors
    each = max(empty.lanes_each, 1)
    together = max(1, min(wave, TOGETHER // each))
    last, some = launch.blocks, []
    if (quick or last * each > LANES) and alike(launch):
        some = blocks_of_one(launch, gpu, held.blocks) if quick else []
        last = len(some) or min(last, together) if last * each > LANES or some else last
    batches = [some] if some else [range(start, min(start + together, last))
                                   for start in range(0, last, together)]
    counter, run = _Counter(), empty
    warps, threads = np.zeros(len(empty.steps), np.int64), np.zeros(len(empty.steps), np.int64)
    l1 = gpu.processor.l1_bytes
    if gpu.processor.unified:
        l1 = max(l1 - held.blocks * shared, SECTOR * 16)
    by = launch.blocks / last if last else 1.0
    first = min((m.base for m in launch.given.values() if isinstance(m, Memory)),
                default=0) // SECTOR
    with ExitStack() as stack:
        caches = None if some else stack.enter_context(
            Caches(l1, gpu.l2_bytes, min(gpu.processors, max(last, 1)), first))
        for blocks in batches:
            counter.begin()
            run = lockstep(blocks, counter)
            run.run()
            if counter.missed:
                raise Unmeasurable(
                    f"{launch.name}: {counter.missed}: on a GPU it would wait for ever")
            warps += np.asarray(run.warps_run)
            threads += np.asarray(run.threads_run)
            if caches is not None:
                for part in _parts(counter, run, gpu):
                    caches.ask(*part)
        if caches is not None:
            found = caches.traffic().scaled(by)
        else:
            parts = list(_parts(counter, run, gpu))
            sector, store, processor = (np.concatenate([p[n] for p in parts]) if parts
                                        else np.zeros(0) for n in range(3))
            found = traffic_of_one(launch, sector, store, processor < held.blocks, by, l1)
    return _collect(launch, gpu, counter, run, warps, threads, found, held, words, shared, last)


def _parts(counter: _Counter, run: Lockstep, gpu: GPU
           ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The sectors of a run in time order, in parts: number, whether stored, multiprocessor."""
    requests, counter.stream = counter.stream, []
    processor = run.blocks[run.block_of[::run.warp]] % gpu.processors
    rows: list[tuple[np.ndarray, np.ndarray, Site]] = []
    held = 0
    for row in _each(requests, {}):
        rows.append(row)
        held += len(row[0])
        if held >= PART:
            yield _together(rows, processor)
            rows, held = [], 0
    if rows:
        yield _together(rows, processor)


def _together(rows: Sequence[tuple[np.ndarray, np.ndarray, Site]], processor: np.ndarray
              ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (np.concatenate([r[0] for r in rows]),
            np.repeat([r[2].write for r in rows], [len(r[0]) for r in rows]),
            processor[np.concatenate([r[1] for r in rows])])


def _collect(launch: Launch, gpu: GPU, counter: _Counter, run: Lockstep, warps: np.ndarray,
             threads: np.ndarray, found: Traffic, held: Occupancy, words: int, shared: int,
             last: int) -> KernelCounts:
    """The counts of the blocks that were run, as those of all."""
    by = launch.blocks / last if last else 1.0
    kinds: Counter[str] = Counter()
    active = 0
    for (_, cost), w, t in zip(run.steps, warps.tolist(), threads.tolist()):
        for kind, n in cost.items():
            kinds[kind] += n * w
            active += n * t
    sites = []
    for site in run.sites:
        row = counter.by_site.get(site.number)
        if row is None:
            continue
        kinds[f"{'store' if site.write else 'load'} {site.scope}"] += row[0]
        sites.append(SiteCount(site.name, site.text, site.scope, site.write, site.nbytes,
                               *(round(n * by) for n in row)))
    done = sum(n for kind, n in kinds.items() if not kind.startswith(("load", "store")))
    order = [*KINDS, "load global", "store global", "load shared", "store shared"]
    barriers = kinds["barrier"] // (last * (run.lanes_each // run.warp)) if last else 0
    return KernelCounts(
        launch.name, gpu, launch.grid, launch.block,
        {kind: round(kinds[kind] * by) for kind in order if kinds[kind]}, tuple(sites),
        round(counter.branches * by), round(counter.divergent * by),
        active / (done * gpu.warp) if done else 1.0, barriers, words, shared, held,
        found, {scope: round(n * by) for scope, n in counter.waits.items()},
        run.own_words, last)


def _of_whom(where: Target, gpu: GPU) -> tuple[str, ...]:
    """What is to be known of whose figures they are, if they are not all the target's own."""
    if gpu.assumed:
        return (text("Its maker does not publish all of {target}: {missing} and latencies are "
                     "those of {gpu}.", "views").format(
                         target=gpu.name, missing=", ".join(gpu.assumed), gpu=USUAL),)
    if gpu.name != where.tag:
        return (text("The target {target} does not say which GPU, or its figures are not known: "
                     "those of {gpu} are taken.", "views").format(
                         target=repr(where.tag or where.kind.name), gpu=gpu.name),)
    return ()


def count_gpu(program: object, target: TargetLike = "cuda", *,
              sizes: Mapping[str, int] | None = None, arrays: Sequence[Any] | None = None,
              quick: bool = False) -> GPUCounts:
    """Count what a program does on a GPU, on any machine.

    Parameters
    ----------
    program : PrimFunc, IRModule or Schedule
        Its loops are bound to blocks and threads.
    target : Target or str
        A GPU by its tag, or a kind such as "cuda" or "webgpu"; figures of the GPU are then those of
        `mlc_lab.target.gpus.USUAL`. The notes of the counts say whose they are.
    sizes : dict
        Values of symbolic sizes, by name.
    arrays : list
        The arguments; random ones if not given, which only indices and conditions on data see.
    quick : bool
        Run the blocks of one multiprocessor only, where all blocks are alike: the same
        instructions, sectors and conflicts, and an estimate of the caches (`sampled.py`).

    Raises
    ------
    LowerError
        For what the target cannot run.
    Unmeasurable
        Where the program cannot be followed; the text says what cannot.
    OutOfBounds
        For a thread that reads or writes outside of a buffer.
    """
    where = Target(target)
    gpu = gpu_of(where)
    kernels: list[KernelCounts] = []
    Program(program, where, sizes, arrays).run(
        lambda launch: kernels.append(count_launch(launch, gpu, quick)))
    return GPUCounts(tuple(kernels), _of_whom(where, gpu))


def time_of_call(mod: IRModule, target: Target, name: str, args: Sequence[Any]
                 ) -> tuple[float, str]:
    """Seconds of the model for a call of a function, and a note that says whose they are."""
    counts = count_gpu(IRModule({name: mod[name]}), target, arrays=args)
    gpu = gpu_of(target)
    return counts.seconds, f"modelled for {gpu.name}, not measured"


__all__ = ["MIXED", "count_gpu", "count_launch", "time_of_call"]
