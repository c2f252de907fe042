"""How long exact counts of cache misses take, and how they compare with valgrind's.

    python benchmarks/cache.py                 # simulation only
    python benchmarks/cache.py --valgrind      # the same kernels under cachegrind as well

Programs are products of float32 matrices: naive, and tiled with a tile in registers and a packed
panel. "compile" is lowering, instrumenting, compiling and linking; "run" is the simulated run, and
"cpu" the processor time of it (less on a busy machine); "alone" is the same kernel without a
simulator. The caches are this machine's, three levels. For cachegrind, which has two, both simulate
the same two.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from observe.programs import matmul, tiled  # noqa: E402

from mlc_lab.lower.pipeline import as_module  # noqa: E402
from mlc_lab.machine.caches import CacheHierarchy, as_hierarchy  # noqa: E402
from mlc_lab.observe.counts import count_accesses, read_counts  # noqa: E402
from mlc_lab.observe.instrument import call, instrument  # noqa: E402
from mlc_lab.observe.measure import _build, random_arrays  # noqa: E402
from mlc_lab.runtime import array  # noqa: E402

TWO_LEVELS = "32K:8, 1M:16"


def alone(program):
    """Seconds of the kernel itself, the best of three runs."""
    mod = as_module(program)
    func = next(iter(mod.functions.values()))
    run = _build(mod, "llvm")
    tensors = [array(a) for a in random_arrays(func)]
    name = next(iter(mod.functions)).name_hint
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        run[name](*tensors)
        best = min(best, time.perf_counter() - start)
    return best


def simulated(program, caches):
    """(counts, seconds to compile, seconds to run, of the processor) of a simulation."""
    hierarchy = as_hierarchy(caches)
    start = time.perf_counter()
    made = instrument(as_module(program), hierarchy)
    middle, busy = time.perf_counter(), time.thread_time()
    call(made)
    end, busy = time.perf_counter(), time.thread_time() - busy
    return read_counts(made, hierarchy, None), middle - start, end - middle, busy


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--valgrind", action="store_true", help="run cachegrind as well")
    parser.add_argument("--size", type=int, default=512)
    options = parser.parse_args()
    n = options.size
    print(f"caches: {CacheHierarchy.machine()}\n")
    print(f"{'program':16}{'accesses':>14}{'compile':>10}{'run':>9}{'cpu':>9}{'an access':>11}"
          f"{'alone':>11}{'L1 misses':>14}{'L2 misses':>14}{'L3 misses':>12}")
    for name, program in ((f"naive {n}", matmul(n)), (f"tiled {n}", tiled(n))):
        counts, compiling, running, busy = simulated(program, None)
        again = count_accesses(program)
        assert again.levels == counts.levels, "two runs count differently"
        misses = "".join(f"{level.misses:>{14 if k < 2 else 12},}"
                         for k, level in enumerate(counts.levels))
        print(f"{name:16}{counts.accesses:14,}{compiling:9.2f}s{running:8.2f}s{busy:8.2f}s"
              f"{1e9 * busy / counts.accesses:9.1f}ns{1e3 * alone(program):9.2f}ms{misses}")
    print(f"\nreplacement, naive {n // 2}, one level of 32 KiB, 8 ways:")
    for policy in ("lru", "fifo", "plru", "random"):
        counts, _, _, busy = simulated(matmul(n // 2), f"32K:8:64:{policy}")
        print(f"  {policy:8}{1e9 * busy / counts.accesses:6.1f} ns an access, "
              f"{counts.levels[0].misses:,} misses")
    if options.valgrind:
        against_valgrind(n // 2)


def against_valgrind(n):
    """The same kernels, caches and addresses under cachegrind."""
    from observe.cachegrind import cachegrind

    print(f"\nagainst cachegrind, {TWO_LEVELS}:")
    print(f"{'program':30}{'':>12}{'D1 misses':>12}{'LL misses':>12}{'seconds':>10}")
    for name, program, optimised in (
            (f"naive {n}, access by access", matmul(n), False),
            (f"tiled {n}, optimised", tiled(n), True)):  # fmt: skip
        start = time.perf_counter()
        ours = count_accesses(program, TWO_LEVELS, registers=optimised)
        middle = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            theirs = cachegrind(program, TWO_LEVELS, Path(folder), optimised, optimised)
        end = time.perf_counter()
        first, last = (level.misses for level in ours.levels)
        print(f"{name:30}{'simulated':>12}{first:12,}{last:12,}{middle - start:10.2f}")
        print(f"{'':30}{'cachegrind':>12}{theirs.misses:12,}{theirs.last_misses:12,}"
              f"{end - middle:10.2f}")


if __name__ == "__main__":
    main()
