"""space, search: which programs a schedule with open choices describes, and what a search finds.

The choices are gone through one after the other: a schedule is replayed with the decisions so far,
and says what the next choice is among. So a space is known whole, as long as it is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...ir.structural import structural_equal
from ...observe.counts import count_accesses
from ...reading import MLCError, reason
from ...schedule import Schedule, Trace
from ...schedule.primitive.sample_perfect_tile import divisors
from ..answers import as_schedule
from ..result import Found
from .counts import CACHES
from .work import too_large

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ..answers import Answer
    from ..exercise import Variant

#: programs of a space that are looked through at most
MOST = 400


def space(answer: Answer, variant: Variant, *, contains: Any = None, most: int | None = None,
          least: int = 1) -> Found:
    """Whether the space has a program, that which the schedule `contains` (an answer of the kind
    "schedule") makes; whether it has `most` programs at most and `least` at least, each choice of
    which is legal."""
    bound = MOST if most is None else min(MOST, most)
    found = []
    for decisions, mod in programs(answer, variant.program):
        if isinstance(mod, str):
            return Found(False, f"with the choices {decisions} the schedule is refused: {mod}")
        found.append(mod)
        if len(found) > bound:
            break
    count = f"{len(found)} programs" if len(found) <= bound else f"more than {bound} programs"
    if most is not None and len(found) > most:
        return Found(False, f"the space has {count}; {most} are asked for at most: each trial of a "
                     "search is one of them, drawn blindly")
    if len(found) < least:
        return Found(False, f"the space has {count}; {least} are asked for at least: leave a "
                     "choice open with sch.sample_...")
    if contains is not None:
        wanted = scheduled(variant, contains)
        if not any(bool(structural_equal(mod, wanted)) for mod in found):
            return Found(False, f"the good program is none of those in the space ({count})",
                         {"text": wanted.script()})
    return Found(True, f"the space has {count}")


def search(answer: Answer, variant: Variant, *, trials: int, good: Any, within: float = 1.0,
           runs: int = 5, level: str = "L1", caches: str = CACHES) -> Found:
    """Whether a search that draws `trials` programs finds one that misses at most `within` times as
    often as what the schedule `good` makes; in each of `runs` searches, which have fixed seeds."""
    wanted = count_accesses(scheduled(variant, good), caches).level(level).misses
    assert answer.sch is not None and variant.program is not None
    known: dict[str, int] = {}
    for seed in range(runs):
        best = None
        for trial in range(trials):
            sch = Schedule(variant.program, seed=1 + seed * trials + trial)
            try:
                _open(answer.sch.trace).apply_to_schedule(sch)
            except MLCError as error:
                return Found(False, f"a program that was drawn is refused: {reason(error)}")
            key = str(sch.trace.decisions)
            if key not in known:
                problem = too_large(sch.mod)
                if problem:
                    return Found(False, problem)
                known[key] = count_accesses(sch.mod, caches).level(level).misses
            best = known[key] if best is None else min(best, known[key])
        if best is None or best > within * wanted:
            return Found(False, f"the best of {trials} programs that were drawn (search {seed + 1} "
                         f"of {runs}) misses {best:,} times in {level}; the good one {wanted:,} "
                         "times. A space of which a larger part is good is searched faster")
    return Found(True, f"each of {runs} searches with {trials} trials has found one that misses at "
                 f"most {within * wanted:,.0f} times")


def scheduled(variant: Variant, text: Any) -> IRModule:
    """What lines of a schedule make of the exercise's program."""
    mod = as_schedule(variant, text).mod
    assert mod is not None
    return mod


def _open(trace: Trace) -> Trace:
    """The trace with all its choices open."""
    return Trace(trace.insts)


def programs(answer: Answer, program: Any) -> Iterator[tuple[list[Any], IRModule | str]]:
    """All decisions, and the program that each makes, or why it is refused."""
    assert answer.sch is not None
    trace = answer.sch.trace
    sampling = [n for n, inst in enumerate(trace.insts) if inst.kind.sampling]
    stack: list[list[Any]] = [[]]
    while stack:
        chosen = stack.pop()
        sch = Schedule(program, seed=1)
        try:
            Trace(trace.insts, dict(zip(sampling, chosen))).apply_to_schedule(sch)
        except MLCError as error:
            yield chosen, reason(error).split("\n")[0]
            continue
        if len(chosen) == len(sampling):
            yield chosen, sch.mod
            continue
        at = sampling[len(chosen)]
        stack += [[*chosen, choice] for choice in reversed(
            list(_choices(trace.insts[at], sch.trace.decisions[at])))]


def _choices(inst: Any, made: Any) -> Iterator[Any]:
    """What a sampling instruction chooses among, where it has made one choice."""
    if inst.kind.name == "SamplePerfectTile":
        extent = 1
        for factor in made:
            extent *= factor
        yield from tilings(extent, len(made), int(inst.args.get("max_innermost_factor") or 0))
    elif inst.kind.name == "SampleCategorical":
        probabilities = inst.args["probs"]
        for n, share in enumerate(probabilities):
            if float(getattr(share, "value", share)) > 0:
                yield n
    else:
        raise ValueError(f"sch.{inst.kind.method} cannot stand in a space here; sample numbers "
                         "with sample_perfect_tile or sample_categorical")


def tilings(extent: int, parts: int, limit: int = 0) -> Iterator[list[int]]:
    """The ways to write a number as a product of `parts` factors, the last `limit` at most."""
    if parts == 1:
        if limit <= 0 or extent <= limit:
            yield [extent]
        return
    for factor in divisors(extent):
        for rest in tilings(extent // factor, parts - 1, limit):
            yield [factor, *rest]


__all__ = ["programs", "scheduled", "search", "space", "tilings"]
