"""What the threads of one block do, memory instruction by memory instruction.

    >>> recording = mlc_lab.record_threads(sch, target="nvidia/nvidia-a100")     # doctest: +SKIP
    >>> recording.show()                                                         # doctest: +SKIP

One block of one launch is run in step (`lockstep.py`), and each load and store of global and shared
memory is kept, in time order, with the element of every lane. `data` is plain:

    kernel, gpu, text   names, and the counts of the launch as text
    grid, block, chosen blocks and threads along x, y, z; the number of the block that was run
    warp                lanes of a warp
    buffers             name, scope, dtype, itemsize, size, and base, the address of global memory
    sites               loads and stores: buffer (its number), text, statement, write, nbytes a lane
    lanes               lists with the element of each lane, null for a lane that takes no part
    events              in time order, a list each. [site, lanes, shift, asked]: the element of a
                        lane is that of `lanes` plus `shift`; `asked` has for each warp the sectors
                        of global memory, or the passes over the banks of shared memory. [-1]: a
                        barrier.
    total               how many events there were; `events` has at most `MOST`
    occupancy           blocks, warps, most_warps, limit, each (blocks that each limit allows), and
                        `lifted`: of "registers", "threads" and "shared memory" rows
                        [amount, blocks, warps, limit] with the others as they are; `now` has the
                        amounts there are
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...above import above
from ...ir import dtype as dt
from ...target import Target
from ...target.gpus import GPU, gpu_of
from ...target.limits import limits_of
from ..measure import Unmeasurable
from .counts import count_launch, missed_barrier
from .launching import Launch, Program
from .lockstep import Lockstep
from .occupancy import occupancy
from .requests import NONE, SECTOR, WORD, passes, sectors
from .results import KernelCounts
from .watching import Memory, Site, Watcher

if TYPE_CHECKING:
    from ...target.target import TargetLike

#: events that are kept
MOST = 2000
#: registers a thread, and bytes of shared memory, between two marks of the sliders
_REGISTERS, _SHARED = 8, 1024
#: characters of a statement
_STATEMENT = 200


class ThreadRecording:
    """What the threads of a block did; `data` has it as at the head of this file."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return self.data

    def show(self) -> Any:
        """The view of it, as a notebook widget."""
        return above("view of threads").ThreadsView(self)

    def html(self, path: str | Path | None = None) -> str:
        """The view as one HTML page with no kernel; written to `path` if given."""
        text = above("view of threads").page(self)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def __len__(self) -> int:
        return len(self.data["events"])

    def __str__(self) -> str:
        return self.data["text"]


class _Recorder(Watcher):
    """Keeps what one block does."""

    def __init__(self) -> None:
        self.events: list[list[Any]] = []
        self.lanes: list[list[int | None]] = []
        self.total = 0
        self.missed: str | None = None
        self._numbers: dict[Any, int] = {}
        self._asked: dict[Any, list[int]] = {}

    def access(self, run: Lockstep, site: Site, own: Any, shift: int, key: Any) -> None:
        """Keep an access."""
        self.total += 1
        if self.total > MOST:
            return
        at = np.broadcast_to(np.asarray(own, np.int64), run.threads)
        if run.mask.lanes is not None:
            at = np.where(run.mask.lanes, at, NONE)
        if key is None:  # it depends on more than the thread
            at, shift = np.where(at == NONE, NONE, at + shift), 0
        place = at.tobytes()
        number = self._numbers.setdefault(place, len(self.lanes))
        if number == len(self.lanes):
            self.lanes.append([None if x == NONE else x for x in at.tolist()])
        self.events.append([site.number, number, int(shift),
                            self._of_warps(run, site, at, int(shift), number)])

    def _of_warps(self, run: Lockstep, site: Site, at: np.ndarray, shift: int, number: int
                  ) -> list[int]:
        """Sectors, or passes over the banks, of each warp."""
        memory = run.memory[site.node.buffer.data]
        size = dt.bytes_of(memory.dtype)
        start = memory.base + shift * size
        unit = max(site.nbytes, WORD) if site.scope == "shared" else SECTOR
        place = number, site.number, start % unit
        found = self._asked.get(place)
        if found is None:
            rows = np.where(at == NONE, NONE, at * size + start).reshape(-1, run.warp)
            if site.scope == "shared":
                found = [passes(row[None], site.nbytes)[0] for row in rows]
            else:
                warp, _ = sectors(rows, site.nbytes)
                found = np.bincount(warp, minlength=len(rows)).tolist()
            self._asked[place] = found
        return found

    def barrier(self, run: Lockstep, s: Any) -> None:
        """Keep a barrier, which all threads must reach."""
        self.missed = self.missed or missed_barrier(run)
        self.total += 1
        if self.total <= MOST:
            self.events.append([-1])


def _line(s: Any) -> str:
    text = repr(s).strip().splitlines()[-1].strip()
    return text if len(text) <= _STATEMENT else text[:_STATEMENT - 4] + " ..."


def _lifted(gpu: GPU, k: KernelCounts, limits: Any) -> dict[str, list[list[Any]]]:
    """What a multiprocessor would hold with other amounts, one at a time."""
    threads = k.block[0] * k.block[1] * k.block[2]
    most = min(limits.threads if limits is not None else 1024, 1024)
    shared = limits.shared_bytes if limits is not None else gpu.processor.shared_bytes

    def rows(name: str, values: Sequence[int], now: int) -> list[list[Any]]:
        out = []
        for n in sorted({*values, now}):
            made = occupancy(gpu, n if name == "threads" else threads,
                             n if name == "registers" else k.registers,
                             n if name == "shared memory" else k.shared_bytes)
            out.append([n, made.blocks, made.warps, made.limit])
        return out

    return {"threads": rows("threads", range(gpu.warp, most + 1, gpu.warp), threads),
            "registers": rows("registers", range(16, 256, _REGISTERS), k.registers),
            "shared memory": rows("shared memory", range(0, shared + 1, _SHARED), k.shared_bytes)}


def _recorded(launch: Launch, gpu: GPU, block: int, limits: Any) -> dict[str, Any]:
    if not 0 <= block < launch.blocks:
        raise ValueError(f"{launch.name} has {launch.blocks} blocks, numbered from 0: there is no "
                         f"block {block}")
    watcher = _Recorder()
    run = Lockstep(launch.func, launch.name, launch.extents, launch.given, [block], watcher,
                   gpu.warp)
    run.run()
    if watcher.missed:
        raise Unmeasurable(f"{launch.name}: {watcher.missed}: on a GPU it would wait for ever")
    counted = count_launch(launch, gpu, quick=True)
    buffers: dict[Any, int] = {}
    rows: list[dict[str, Any]] = []
    sites = []
    for site in run.sites:
        memory: Memory = run.memory[site.node.buffer.data]
        if site.node.buffer.data not in buffers:
            buffers[site.node.buffer.data] = len(rows)
            rows.append({"name": memory.name, "scope": site.scope, "dtype": memory.dtype,
                         "itemsize": dt.bytes_of(memory.dtype), "size": memory.size,
                         "base": memory.base})
        sites.append({"buffer": buffers[site.node.buffer.data], "text": site.text,
                      "statement": _line(site.statement), "write": site.write,
                      "nbytes": site.nbytes})
    now = {"threads": launch.threads, "registers": counted.registers,
           "shared memory": counted.shared_bytes}
    lifted = _lifted(gpu, counted, limits)
    return {
        "kernel": launch.name, "gpu": gpu.name, "text": str(counted), "grid": list(launch.grid),
        "block": list(launch.block), "chosen": block, "warp": gpu.warp, "buffers": rows,
        "sites": sites, "lanes": watcher.lanes, "events": watcher.events, "total": watcher.total,
        "occupancy": {**vars(counted.occupancy), "now": now, "lifted": lifted},
    }  # fmt: skip


def record_threads(program: object, target: TargetLike = "cuda", *, block: int = 0,
                   kernel: int | str = 0, sizes: Mapping[str, int] | None = None,
                   arrays: Sequence[Any] | None = None) -> ThreadRecording:
    """Record what the threads of one block of a GPU program do with memory, on any machine.

    Parameters
    ----------
    block : int
        The number of the block, x varying fastest.
    kernel : int or str
        Which launch, by its number or the name of its kernel.

    The other arguments are those of `count_gpu`, and so is what is raised; ValueError, too, for a
    block or a kernel that there is not.
    """
    where = Target(target)
    gpu, limits = gpu_of(where), limits_of(where)
    found: list[dict[str, Any]] = []
    names: list[str] = []

    def launched(launch: Launch) -> None:
        if kernel in (len(names), launch.name) and not found:
            found.append(_recorded(launch, gpu, block, limits))
        names.append(launch.name)

    Program(program, where, sizes, arrays).run(launched)
    if not found:
        raise ValueError(f"there is no kernel {kernel!r}; there are " + ", ".join(
            f"{number}: {name}" for number, name in enumerate(names)))
    return ThreadRecording(found[0])


__all__ = ["MOST", "ThreadRecording", "record_threads"]
