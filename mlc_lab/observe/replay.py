"""A list of accesses simulated in caches, and how far apart the uses of each line are.

Both work on plain arrays, so the same trace can be looked at in many caches.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..machine.caches import CacheError, CacheHierarchy, as_hierarchy
from ..runtime import jit, linking
from ..runtime.llir import ModuleText
from .cache import LevelCount, level_counts
from .cache_code import SITE_HEAD, site_words, write_simulator

#: reuse distance of the first use of a line
FIRST_USE = -1


class _Simulator:
    """A compiled simulator of one hierarchy, for lists of accesses."""

    def __init__(self, hierarchy: CacheHierarchy, cores: int) -> None:
        where = jit.host_machine()
        m = ModuleText(where.triple, where.data_layout)
        write_simulator(m, hierarchy, log=True, cores=cores)
        _write_replay(m, cores)
        names = ["sim_replay", "sim_reset", "sim_state", "sim_written"]
        obj = jit.compile_ir(str(m), where, vectorize=False, unroll=False).obj
        library = self.library = linking.link(obj, names, {})
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 6)
        self.replay = kind(library.address("sim_replay"))
        self.reset = ctypes.CFUNCTYPE(None)(library.address("sim_reset"))
        self.hierarchy = hierarchy

    def words(self, symbol: str, count: int) -> list[int]:
        address = ctypes.CFUNCTYPE(ctypes.c_void_p)(self.library.address(symbol))()
        return list((ctypes.c_int64 * count).from_address(address))


def _write_replay(m: ModuleText, cores: int) -> None:
    """Define `i64 sim_replay(n, addresses, bytes, writes, on, found, gone)`, for a simulator that
    logs; `on` are the cores, read where there are several.

    It simulates a list of accesses, tells of each at which level it was found, and writes pairs to
    `gone`: the number of an access, and a line that the first level evicted for it. Gives the
    number of pairs.
    """
    pointers = ("addresses", "bytes", "writes", "on", "found", "gone")
    params = [("i64", "n"), *(("ptr", name) for name in pointers)]
    with m.function("i64", "sim_replay", params, "", "nounwind") as f:
        f.store("ptr", "%gone", "@sim_gone")
        f.store("i64", "0", "@sim_gone_n")
        with f.for_range("0", "%n") as i:
            f.store("i64", i, "@sim_now")
            if cores > 1:
                f.store("i64", f.load("i64", f.gep("i64", "%on", i)), "@sim_core")
            address = f.load("i64", f.gep("i64", "%addresses", i))
            nbytes = f.load("i64", f.gep("i64", "%bytes", i))
            write = f.op(f"zext i8 {f.load('i8', f.gep('i8', '%writes', i))} to i32")
            level = f.call("i32", "sim_one", [f"i64 {address}", f"i64 {nbytes}", f"i32 {write}",
                                              "i64 0"])
            f.store("i8", f.op(f"trunc i32 {level} to i8"), f.gep("i8", "%found", i))
        f.ret(f"i64 {f.load('i64', '@sim_gone_n')}")


#: simulators that nobody uses now. The state of one is in its code's memory, so each use takes one
_FREE: dict[tuple[CacheHierarchy, int], list[_Simulator]] = {}
#: kinds of caches whose simulators are kept
_KINDS = 32


class Simulation(NamedTuple):
    """What caches made of a list of accesses.

    `found` has for each access the number of the level where it was found, as int8: 0 the first,
    the number of levels for memory; of an access of several lines the deepest. `counts` has the
    counts of the levels since the caches were empty. `gone` are pairs (number of an access in this
    list, line that left the first level).
    """

    found: np.ndarray
    counts: tuple[LevelCount, ...]
    gone: np.ndarray


class Replay:
    """Accesses simulated in caches that begin empty, a part after the other: a trace that does not
    fit in memory is simulated as it comes. A context, which gives its simulator back at its end.

    `caches` as for `cache.as_hierarchy`. Of `cores` cores each has the levels but the last for
    itself. Raises CacheError for what cannot be simulated.
    """

    def __init__(self, caches: object = None, cores: int = 1) -> None:
        self.hierarchy = as_hierarchy(caches)
        self.cores = cores
        free = _FREE.get((self.hierarchy, cores))
        self._simulator = free.pop() if free else _Simulator(self.hierarchy, cores)
        self._simulator.reset()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        kind = self.hierarchy, self.cores
        if kind not in _FREE and len(_FREE) >= _KINDS:
            _FREE.pop(next(iter(_FREE)), None)
        _FREE.setdefault(kind, []).append(self._simulator)
        del self._simulator

    def feed(self, addresses: Any, nbytes: Any, writes: Any, cores: Any = 0) -> Simulation:
        """Simulate these accesses after those before; arguments as of `simulate`."""
        places = np.ascontiguousarray(addresses, np.int64).reshape(-1)
        sizes = np.ascontiguousarray(np.broadcast_to(np.asarray(nbytes, np.int64), places.shape))
        kinds = np.ascontiguousarray(np.broadcast_to(np.asarray(writes, bool), places.shape)
                                     .astype(np.uint8))
        line = self.hierarchy.levels[0].line
        if places.size and (places.min() < 0 or sizes.min() < 1):
            raise CacheError("addresses are numbers from 0, and an access takes at least one byte")
        if places.size and int((places + sizes).max()) // line >= 1 << 31:
            raise CacheError("an address is too large for the simulator: it can tell apart 2^31 "
                             "lines")
        on = np.ascontiguousarray(np.broadcast_to(np.asarray(cores, np.int64), places.shape))
        if on.size and not 0 <= on.min() <= on.max() < self.cores:
            raise CacheError(f"cores are numbers from 0 to {self.cores - 1}")
        found = np.empty(places.shape, np.int8)
        lookups = int(((places + sizes - 1) // line - places // line + 1).sum())
        gone = np.empty((lookups, 2), np.int64)
        arrays = (places, sizes, kinds, on, found, gone)
        simulator = self._simulator
        pairs = simulator.replay(places.size, *(x.ctypes.data for x in arrays))
        row = simulator.words("sim_state", site_words(self.hierarchy))
        written = simulator.words("sim_written", len(self.hierarchy))
        counts = level_counts(self.hierarchy, row[0] + row[1], row[SITE_HEAD:], written)
        return Simulation(found, counts, gone[:pairs].copy())


def simulate(addresses: Any, nbytes: Any, writes: Any, caches: object = None, cores: Any = 0
             ) -> Simulation:
    """Simulate accesses one after the other in empty caches.

    Parameters
    ----------
    addresses, nbytes, writes : sequences of one length, or a single number for all
        Where each access begins, how many bytes it takes, and whether it is a store.
    caches : see `cache.as_hierarchy`
    cores : a sequence, or a single number
        The core, from 0, that makes each access. Each has the levels but the last for itself.

    Raises CacheError for what cannot be simulated.
    """
    on = np.asarray(cores, np.int64)
    if on.size and on.min() < 0:
        raise CacheError("cores are numbers from 0")
    with Replay(caches, int(on.max(initial=0)) + 1) as replay:
        return replay.feed(addresses, nbytes, writes, on)


def reuse_distances(lines: Sequence[int] | np.ndarray) -> np.ndarray:
    """How many different lines were used since the last use of each line: its stack distance.

    `FIRST_USE` for the first use of a line. A fully associative LRU cache of n lines hits exactly
    the uses of distance less than n. O(N log N): a Fenwick tree over time has a one at the last use
    of each line, and the distance is the sum of the ones since (Bennett and Kruskal, 1975).
    """
    named = np.unique(np.asarray(lines, np.int64).reshape(-1), return_inverse=True)[1]
    named = np.ascontiguousarray(named.reshape(-1), np.int64)
    out = np.empty(named.shape, np.int64)
    tree = np.zeros(named.size + 1, np.int64)
    last = np.zeros(int(named.max(initial=-1)) + 1, np.int64)
    _distances()(named.size, *(x.ctypes.data for x in (named, tree, last, out)))
    return out


@functools.cache
def _distances() -> Any:
    """The loop of `reuse_distances` as machine code; times are counted from 1."""
    where = jit.host_machine()
    m = ModuleText(where.triple, where.data_layout)
    pointers = [("ptr", name) for name in ("lines", "tree", "last", "out")]

    def add(f: Any, at: str, by: int) -> None:
        slot = f.var("i64")
        f.store("i64", at, slot)
        with f.loop():
            i = f.load("i64", slot)
            with f.if_(f.op(f"icmp sgt i64 {i}, %n")):
                f.break_()
            cell = f.gep("i64", "%tree", i)
            f.store("i64", f.op(f"add i64 {f.load('i64', cell)}, {by}"), cell)
            low = f.op(f"and i64 {i}, {f.op(f'sub i64 0, {i}')}")
            f.store("i64", f.op(f"add i64 {i}, {low}"), slot)

    with m.function("void", "distances", [("i64", "n"), *pointers]) as f:
        ones = f.var("i64", "0")
        with f.for_range("0", "%n") as at:
            now = f.op(f"add i64 {at}, 1")
            line = f.load("i64", f.gep("i64", "%lines", at))
            slot = f.gep("i64", "%last", line)
            before = f.load("i64", slot)
            f.store("i64", now, slot)
            cell = f.gep("i64", "%out", at)
            fresh = f.op(f"icmp eq i64 {before}, 0")
            with f.if_(fresh):
                f.store("i64", str(FIRST_USE), cell)
                f.store("i64", f.op(f"add i64 {f.load('i64', ones)}, 1"), ones)
            with f.else_(fresh):
                total, left = f.var("i64"), f.var("i64")
                f.store("i64", f.load("i64", ones), total)
                f.store("i64", before, left)
                with f.loop():
                    i = f.load("i64", left)
                    with f.if_(f.op(f"icmp eq i64 {i}, 0")):
                        f.break_()
                    part = f.load("i64", f.gep("i64", "%tree", i))
                    f.store("i64", f.op(f"sub i64 {f.load('i64', total)}, {part}"), total)
                    f.store("i64", f.op(f"and i64 {i}, {f.op(f'sub i64 {i}, 1')}"), left)
                f.store("i64", f.load("i64", total), cell)
                add(f, before, -1)
            add(f, now, 1)
        f.ret()
    library = linking.link(jit.compile_ir(str(m), where).obj, ["distances"], {})
    func: Any = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 4)(
        library.address("distances"))
    func.keep = library
    return func
