"""The accesses of a small program in time order, and what caches make of them, for a view.

    trace = accesses(matmul)            # a PrimFunc, IRModule or Schedule
    trace.show()                        # the access view
    trace.simulate("1K:2:32").counts    # the same accesses in other caches
    trace.reuse()                       # reuse distance of each access

The program is lowered and compiled as it would run, with a note of each load and store (see
`instrument.py`), so vectors, unrolled loops and threads are what they are in the machine.

As plain data (`to_dict`), version 1:

    format    "mlc-lab/accesses"; version 1; title
    lines     the lowered program, for reading
    buffers   [{"name", "dtype", "itemsize", "shape", "base", "kind"}]: base is the address of the
              first element, kind "parameter", "allocated" or "constant"
    sites     [{"buffer": index, "write": bool, "bytes": count, "loops": [names], "line": index of
              the line in lines or null, "text": that line}]: the places that load or store
    site      for each access, in time order, its site
    element   for each access its first element: its index in the buffer, row by row
    thread    for each access the thread that makes it; [] if it is always 0
    moments   one number an access, 1 where the loop variables have other values than before
    values    the values of the loop variables at each 1 in moments, one after the other
    total     how many accesses the program makes; more than there are in site if it was cut
    notes     what is not shown, in words

and what caches make of it, `AccessTrace.result(caches).to_dict()`:

    name      what the caches are called, for a menu
    levels    as CacheHierarchy.to_dict
    found     a text with one digit an access: the level where it was found; "3" of three levels
              is memory
    reuse     for each access its reuse distance in lines of the first level: how many different
              lines its thread used since its line was last; -1 for the first use. Of an access
              of several lines the largest.
    gone      [number of an access, line that left the first level for it, ...] in pairs; each
              thread has a first level of its own
    counts    a level: {"name", "lookups", "misses", "bytes_in", "bytes_out"}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..above import above
from .. import tir
from ..ir import dtype as dt
from ..ir.module import IRModule
from ..language import text
from ..lower import lower
from ..lower.pipeline import as_module
from ..machine.caches import CacheHierarchy, as_hierarchy
from ..script.spans import print_with_spans
from ..tir.functor import pre_order
from .cache import LevelCount
from .instrument import ROW_HEAD, Element, Place, Program, Site, call, concrete, instrument
from .replay import FIRST_USE, Simulation, reuse_distances, simulate

if TYPE_CHECKING:
    from ..target.target import TargetLike

FORMAT = "mlc-lab/accesses"
VERSION = 1
#: accesses kept if not told otherwise: what a view can show and a notebook can hold
LIMIT = 20_000

#: caches that a view offers beside this machine's
PRESETS = {
    "small, 2-way LRU": "512:2:32:lru, 2K:4:32:lru",
    "small, direct-mapped": "512:1:32:lru, 2K:4:32:lru",
    "small, fully associative": "512:16:32:lru, 2K:4:32:lru",
    "small, FIFO": "512:2:32:fifo, 2K:4:32:fifo",
}


@dataclass(frozen=True)
class CacheResult:
    """An access trace in caches: what is drawn."""

    name: str
    hierarchy: CacheHierarchy
    simulation: Simulation
    reuse: np.ndarray

    @property
    def counts(self) -> tuple[LevelCount, ...]:
        """The counts of the levels."""
        return self.simulation.counts

    def to_dict(self) -> dict[str, Any]:
        """Plain data, see the head of this file."""
        return {
            "name": self.name,
            "levels": self.hierarchy.to_dict(),
            "found": "".join(map(str, self.simulation.found.tolist())),
            "reuse": self.reuse.tolist(),
            "gone": self.simulation.gone.reshape(-1).tolist(),
            "counts": [{"name": x.name, "lookups": x.lookups, "misses": x.misses,
                        "bytes_in": x.bytes_in, "bytes_out": x.bytes_out} for x in self.counts],
        }  # fmt: skip


@dataclass
class AccessTrace:
    """The accesses of one run of a program, in time order.

    Attributes
    ----------
    places : list of Place
        The buffers, with their addresses.
    sites : list of Site
        The places in the program that load or store.
    site, address, nbytes, thread : arrays, one entry an access
    values : array, one row an access
        The values of the loop variables of the access's site, outermost first.
    total : int
        How many accesses the program makes. If it is more than `len(trace)`, only those from the
        number `first` on are here.
    last : int
        The number, among all of the program's, of the last access of the element that was looked
        for; -1 if there was none.
    """

    title: str
    text: str
    places: list[Place]
    sites: list[Site]
    lines: list[int | None]
    site: np.ndarray
    address: np.ndarray
    nbytes: np.ndarray
    thread: np.ndarray
    values: np.ndarray
    total: int
    notes: list[str]
    first: int = 0
    last: int = -1
    reach: int = 0  # addresses repeat after so many bytes, where a program goes astray

    def __len__(self) -> int:
        return len(self.site)

    @property
    def write(self) -> np.ndarray:
        """Of each access whether it is a store."""
        return np.array([s.write for s in self.sites], bool)[self.site] if self.sites else (
            np.zeros(0, bool))

    @property
    def buffer(self) -> np.ndarray:
        """Of each access the number of its buffer in `places`: the one that the program names,
        also where it reaches outside of it."""
        index = {p.data: number for number, p in enumerate(self.places)}
        return np.array([index[s.buffer.data] for s in self.sites], np.int64)[self.site] if (
            self.sites) else np.zeros(0, np.int64)

    @property
    def element(self) -> np.ndarray:
        """Of each access the index of its first element in its buffer, row by row; of one outside
        of its buffer one below zero, or one that the buffer does not have."""
        which = self.buffer
        bases, ends, sizes = np.array([(p.base, p.nbytes, dt.bytes_of(p.dtype))
                                       for p in self.places], np.int64).reshape(-1, 3).T
        away = (self.address - bases[which]) % (self.reach or 1 << 62)
        if self.reach:  # what lies before a buffer is nearer to its beginning than to its end
            away -= np.where(self.reach - away < away - ends[which], self.reach, 0)
        return away // sizes[which]

    def simulate(self, caches: object = None) -> Simulation:
        """These accesses in caches (see `cache.as_hierarchy`), which are empty at the start."""
        return simulate(self.address, self.nbytes, self.write, caches, self.thread)

    def reuse(self, line: int = 64) -> np.ndarray:
        """Reuse distance of each access, in lines of `line` bytes; -1 for a first use.

        How many different lines were used since the access's line was last, by the same thread; of
        an access of several lines the largest.
        """
        first = self.address // line
        count = (self.address + self.nbytes - 1) // line - first + 1
        starts = np.cumsum(count) - count
        of = np.repeat(np.arange(len(self)), count)
        lines = first[of] + np.arange(of.size) - starts[of]
        distance = np.empty(of.size, np.int64)
        for thread in np.unique(self.thread):
            its = self.thread[of] == thread
            distance[its] = reuse_distances(lines[its])
        # A first use is farther than any distance.
        distance[distance == FIRST_USE] = np.iinfo(np.int64).max
        out = np.maximum.reduceat(distance, starts) if len(self) else distance
        return np.where(out == np.iinfo(np.int64).max, FIRST_USE, out)

    def result(self, caches: object = None, name: str | None = None) -> CacheResult:
        """What caches make of these accesses, as a view shows it."""
        hierarchy = as_hierarchy(caches)
        name = name or ("this machine" if caches in (None, "machine") else str(hierarchy))
        return CacheResult(name, hierarchy, self.simulate(hierarchy),
                           self.reuse(hierarchy.levels[0].line))

    def results(self, caches: object = None) -> list[CacheResult]:
        """The results that a view starts with: of `caches`, and of those it offers beside."""
        offered = {"this machine": None, **PRESETS}
        made = [self.result(text, name) for name, text in offered.items()]
        wanted = as_hierarchy(caches)
        known = next((r for r in made if r.hierarchy == wanted), None)
        first = known or self.result(wanted)
        return [first, *(r for r in made if r is not first)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, see the head of this file."""
        new = np.ones(len(self), bool)
        if len(self) > 1:
            same = self.site[1:] == self.site[:-1]
            loops = [s.loops for s in self.sites]
            kinds = {names: number for number, names in enumerate(dict.fromkeys(loops))}
            kind = np.array([kinds[names] for names in loops])[self.site]
            same |= kind[1:] == kind[:-1]
            new[1:] = ~(same & (self.values[1:] == self.values[:-1]).all(axis=1))
        depth = [len(s.loops) for s in self.sites]
        values = [v for row, s in zip(self.values[new].tolist(), self.site[new].tolist(),
                                      strict=True) for v in row[: depth[s]]]
        lines = self.text.split("\n")
        index = {p.data: number for number, p in enumerate(self.places)}
        return {
            "format": FORMAT, "version": VERSION, "title": self.title, "lines": lines,
            "buffers": [{"name": p.name, "dtype": p.dtype, "itemsize": dt.bytes_of(p.dtype),
                         "shape": list(p.shape), "base": p.base, "kind": p.kind}
                        for p in self.places],
            "sites": [{"buffer": index[s.buffer.data], "write": s.write, "bytes": s.nbytes,
                       "loops": [v.name for v in s.loops], "line": line,
                       "text": lines[line].strip() if line is not None else ""}
                      for s, line in zip(self.sites, self.lines, strict=True)],
            "site": self.site.tolist(), "element": self.element.tolist(),
            "thread": self.thread.tolist() if self.thread.any() else [],
            "moments": new.astype(int).tolist(), "values": values,
            "total": self.total, "notes": self.notes,
        }  # fmt: skip

    def table(self, limit: int = 50) -> str:
        """The first accesses as text, one a line."""
        lines = []
        data = zip(self.site[:limit], self.buffer[:limit], self.element[:limit],
                   self.values[:limit], strict=True)
        for number, (s, b, element, values) in enumerate(data):
            site, place = self.sites[s], self.places[b]
            at = ", ".join(map(str, _indices(int(element), place.shape)))
            when = ", ".join(f"{v.name}={x}" for v, x in zip(site.loops, values, strict=False))
            lines.append(f"{number:5} {'write' if site.write else 'read ':5} "
                         f"{place.name}[{at}] {site.nbytes} B  {when}")
        return "\n".join(lines)

    def shown(self, caches: object = None, offered: int | None = None) -> dict[str, Any]:
        """What a view draws, as plain data: {"trace", "results"} as at the head of this file, with
        the first `offered` of the results, all by default."""
        results = self.results(caches)[:offered]
        return {"trace": self.to_dict(), "results": results_to_dict(results)}

    def show(self, caches: object = None) -> Any:
        """The access view of this trace as a notebook widget, in `caches` at first."""
        AccessView = above("view of accesses").AccessView
        return AccessView(self, caches)

    def html(self, path: str | Path | None = None, caches: object = None,
             title: str | None = None) -> str:
        """The access view as one HTML page with no kernel; written to `path` if given."""
        page = above("view of accesses").page
        text = page(self, caches, title)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text


def _indices(element: int, shape: Sequence[int]) -> list[int]:
    """Where an element is; the first index takes what lies outside of the shape."""
    out: list[int] = []
    for size in (shape or (1,))[:0:-1]:
        element, index = divmod(element, size)
        out.insert(0, index)
    return [element, *out]


def results_to_dict(results: Sequence[CacheResult]) -> list[dict[str, Any]]:
    """Results as plain data. Reuse distances depend on the length of a line only, so of several
    results with the same one only the first carries them."""
    seen: set[int] = set()
    out = []
    for result in results:
        data = result.to_dict()
        line = result.hierarchy.levels[0].line
        if line in seen:
            data["reuse"] = None
        seen.add(line)
        out.append(data)
    return out


def accesses(
    program: object, *, step: int | None = None, limit: int = LIMIT, first: int = 0,
    last_of: Element | None = None, sizes: Mapping[str, int] | None = None,
    target: TargetLike = "llvm", threads: int | None = None, registers: bool = True,
    arrays: Sequence[np.ndarray] | None = None, title: str | None = None,
) -> AccessTrace:
    """Trace the accesses of a PrimFunc, IRModule or Schedule (as it is now).

    Parameters
    ----------
    step : int
        Of a Schedule, the step after which its program is looked at, as the stepper numbers them;
        by default the program as it is now.
    limit : int
        How many accesses are kept. The rest is counted only.
    first : int
        The number of the first access that is kept.
    last_of : Element
        An element whose last access is looked for: the trace's `last` is its number.
    sizes : dict
        Values of symbolic sizes, by name.
    threads : int
        Over how many threads parallel loops are spread; by default as many as the machine has
        cores. The iterations run one after the other all the same, so the trace is repeatable.
    registers : bool
        Whether small arrays indexed by constants only are registers (and not shown).
    arrays : list of numpy arrays
        The arguments; random ones if not given.

    Raises
    ------
    Unmeasurable, LowerError, CodegenError
        Where the program cannot be run.
    """
    if first < 0:
        raise ValueError(f"accesses are numbered from 0, and there is no first={first}")
    mod = as_module(program) if step is None else _module_at(program, step)
    made = instrument(mod, None, sizes=sizes, target=target, threads=threads, registers=registers,
                      capacity=limit, arrays=arrays, first=first, last_of=last_of)
    call(made)
    total, last = (int(made.array_at(name, (1,))[0]) for name in ("trace_count", "trace_last"))
    kept = max(0, min(total - first, limit))
    rows = made.array_at("trace_rows", (kept, ROW_HEAD + made.plan.depth)).copy()
    _shapes(made, mod, sizes)
    notes = []
    if first:
        notes.append(text("These are the accesses {first} to {last} of {total}. The caches are "
                          "empty before them.", "views").format(
                              first=f"{first + 1:,}", last=f"{first + kept:,}", total=f"{total:,}"))
    elif total > kept:
        notes.append(text("These are the first {kept} of {total} accesses. Smaller shapes are "
                          "watched whole; limit= keeps more.", "views").format(
                              kept=f"{kept:,}", total=f"{total:,}"))
    hidden = sorted({v.name for v in made.plan.in_registers})
    if hidden:
        notes.append(text("{names}: small and indexed by constants only, so kept in registers; "
                          "that is no access of memory. registers=False shows it as memory.",
                          "views").format(names=", ".join(hidden)))
    if made.plan.unseen:
        notes.append(text("What {names} accesses is not seen.", "views").format(
            names=", ".join(made.plan.unseen)))
    program_text, lines = _program_text(made)
    name = title or next((gv.name_hint for gv in mod.functions), "main")
    return AccessTrace(name, program_text, list(made.plan.places.values()), made.plan.sites, lines,
                       rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], rows[:, ROW_HEAD:], total,
                       notes, first, last, made.plan.mask + 1)


def _module_at(sch: Any, step: int) -> IRModule:
    """The program of a schedule after a step of its recording."""
    from .session import record

    made = record(sch)
    last = len(made.recording.steps) - 1
    if not 0 <= step <= last:
        raise ValueError(f"the schedule has steps 0 to {last}, and no step {step}")
    return made.modules[made.recording.steps[step].after]


def _program_text(made: Program) -> tuple[str, list[int | None]]:
    """The lowered program, and on which of its lines the statement of each site stands."""
    func = next(f for gv, f in made.lowered.functions.items() if gv.name_hint == made.name)
    single = len([f for f in made.lowered.functions.values() if isinstance(f, tir.PrimFunc)]) == 1
    printed = print_with_spans(func if single else made.lowered)
    place = {}
    for span in printed.spans:
        place.setdefault(id(span[0]), span[1])
    return printed.text, [place.get(id(s.statement)) for s in made.plan.sites]


def _shapes(made: Program, mod: IRModule, sizes: Mapping[str, int] | None) -> None:
    """Give the allocated buffers the shapes they had before they were made flat."""
    places = [p for p in made.plan.places.values() if p.kind == "allocated"]
    if not places:
        return
    before = lower(concrete(mod, sizes)[1], until="LowerOpaqueBlock")
    for func in before.functions.values():
        if not isinstance(func, tir.PrimFunc):
            continue
        for node in pre_order(func.body):
            place = made.plan.places.get(node.buffer_var) if type(node) is tir.Allocate else None
            if place is None or type(node) is not tir.Allocate:
                continue
            shape = [e.value if type(e) is tir.IntImm else 0 for e in node.extents]
            if int(np.prod(shape)) * dt.bytes_of(node.dtype) == place.nbytes:
                place.shape, place.dtype = tuple(shape), node.dtype
