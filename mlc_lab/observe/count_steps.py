"""Counts of cache misses as part of a recording: what each step does to the traffic of memory.

Adds to the cost of every program of a recording

    "counts": {"levels": [{"name", "lookups", "misses", "bytes_in", "bytes_out"}, ...],
               "reads", "writes", "bytes_read", "bytes_written", "flops", "intensity",
               "buffers": {name: {"reads", "writes", "bytes", "misses": [a level, ...]}}, "unseen",
               "sharing": of parallel loops, as `sharing.Sharing.to_dict` has it, or None}

or {"message": why there are none}; "inner", the inner loop in machine code (`why.inner_facts`), or
{"message": why there is none}; to each step `why`, what the counts say of it; and to its machine

    "caches": the levels simulated, as CacheHierarchy.to_dict has them
    "bandwidth": {"L1": GB/s, ..., "memory": GB/s}, measured

The bandwidths are those of one core; of the levels that each core has for itself (all but the last)
they count once for each core that the program may use.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..ir.module import IRModule
from ..language import text
from ..machine.caches import CacheHierarchy, as_hierarchy, cache_bytes
from .counts import count_accesses
from .inner_loop import statements_run
from .isolate import Isolated
from .measure import Measurement, _first_line, _with_progress, calls_python, dtype_of
from .outside import why_not
from .recording import Recording, Step
from .roofs import lift, sharing_of
from .why import explain, inner_facts


def bandwidths() -> dict[str, float]:
    """Bytes a second that one core reads from each level and from memory, as they are known."""
    from ..machine.peak import bandwidth

    found = {}
    for level in (*cache_bytes(), "memory"):
        try:
            found[level] = bandwidth(level)
        except (OSError, ValueError, MemoryError):
            continue
    return found


def describe_machine(recording: Recording, modules: list[IRModule], hierarchy: CacheHierarchy,
                     sizes: Mapping[str, int] | None = None) -> None:
    """Fill in what the counts are compared with: peak, caches, bandwidths."""
    if not recording.machine.get("peak_gflops"):
        Measurement(recording, modules, sizes=sizes)._examine()
    machine = recording.machine
    machine["caches"] = hierarchy.to_dict()
    if "bandwidth" not in machine:
        cores = machine.get("cores", 1)
        measured = bandwidths()
        machine["bandwidth"] = {name: round(value * times / 1e9, 2) for (name, value), times in zip(
            measured.items(), sharing_of(list(measured), cores))}


def counted(mod: IRModule, hierarchy: CacheHierarchy | None,
            sizes: Mapping[str, int] | None = None, target: Any = "llvm", trusted: bool = False,
            inner: bool = True) -> dict[str, Any]:
    """The entries "inner", unless it is not asked for, and, in a hierarchy of caches, "counts" of
    one program; errors become their messages.

    It is run for that: one that calls code outside of itself only if it is `trusted`.
    """
    found: dict[str, Any] = {}
    reason = "" if trusted else why_not(mod)
    if hierarchy is not None and reason:
        found["counts"] = {"message": f"not counted: {reason}"}
    elif hierarchy is not None:
        try:
            found["counts"] = count_accesses(mod, hierarchy, sizes=sizes, target=target).to_dict()
        except Exception as error:  # one step that cannot be counted must not cost the others
            found["counts"] = {"message": f"not counted: {_first_line(error)}"}
    if not inner:
        return found
    try:
        found["inner"] = inner_facts(mod, sizes, target)
    except Exception as error:  # as above
        found["inner"] = {"message": f"no machine code: {_first_line(error)}"}
    return found


def count_each(recording: Recording, modules: list[IRModule], caches: object = None, *,
               sizes: Mapping[str, int] | None = None, target: Any = "llvm",
               budget_s: float = 60.0, trusted: bool = False, most: float = math.inf,
               isolate: bool = False) -> Iterator[int]:
    """Count the programs of a recording that have no counts yet, one at a time; yields which.

    Where times are known, the steps that changed them most go first: those one wants explained.
    What is left when `budget_s` seconds are over gets a message, and so does a program that runs
    statements more than `most` times. With `isolate` they run in a process of their own (see
    `isolate.py`).
    """
    hierarchy = as_hierarchy(caches)
    describe_machine(recording, modules, hierarchy, sizes)
    start = time.perf_counter()
    child = Isolated(None, target, sizes, trusted=trusted) if isolate else None
    try:
        for number in _by_change(recording):
            program, mod = recording.programs[number], modules[number]
            cost = program.cost = program.cost if program.cost is not None else {}
            if "levels" in cost.get("counts", {}):
                continue
            if time.perf_counter() - start > budget_s:
                cost["counts"] = {"message": "not counted: the time for it was used up"}
                yield number
                continue
            quick = statements_run(mod, sizes) <= most
            if child is not None and not calls_python(mod):
                found = child.counted(mod, hierarchy.to_dict() if quick else None)
            else:
                found = counted(mod, hierarchy if quick else None, sizes, target, trusted)
            found.get("inner", {}).pop("text", None)  # a recording has its code elsewhere
            if "message" in found:  # it took the process with it
                found = {"counts": found, "inner": found}
            cost.update({"counts": {"message": text(
                "not counted: it takes long; ask for counts", "views")},
                         **found})
            yield number
    finally:
        if child is not None:
            child.close()
    lift(recording, dtype_of(modules[0]))
    explain(recording)


def _by_change(recording: Recording) -> list[int]:
    """The programs before and after each step, those of the largest change of time first."""
    times = [(program.cost or {}).get("time") for program in recording.programs]

    def change(step: Step) -> float:
        before, after = times[step.before], times[step.after]
        return abs(math.log(after / before)) if before and after else 0.0

    steps = sorted(recording.steps, key=change, reverse=True)
    first = [number for step in steps if change(step) for number in (step.before, step.after)]
    return list(dict.fromkeys([*first, *range(len(times))]))


def count_steps(recording: Recording, modules: list[IRModule], caches: Any = None, *,
                budget_s: float = 60.0, progress: bool = True,
                on_program: Callable[[int], None] | None = None, **options: Any) -> Recording:
    """Count every program of a recording for at most about `budget_s` seconds.

    An interrupt (Ctrl-C, or the stop button of a notebook) ends it; what was found stays. Returns
    the recording. `on_program(number)` is called after each.
    """
    numbers = count_each(recording, modules, caches, budget_s=budget_s, **options)
    total = list(range(len(recording.programs)))
    try:
        for _ in _with_progress(total, progress, "counting"):
            number = next(numbers, None)
            if number is None:
                break
            if on_program is not None:
                on_program(number)
    except KeyboardInterrupt:
        pass
    return explain(recording)
