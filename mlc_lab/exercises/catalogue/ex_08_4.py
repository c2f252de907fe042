"""08.4  The record that a search has found, handed in as it stands in a database."""

from __future__ import annotations

import json
import random

from ...meta_schedule.workload import text_key
from ...observe.counts import count_accesses
from ...schedule import Schedule, Trace
from ..exercise import Exercise, Values, Wrong, row
from .matrices import drawn, product

CACHES = "4K:8, 64K:16"


def program(v: Values):
    """A matrix product."""
    return product(v.n, v.m, v.k, v.order, v.C)


def found(v: Values, tiles: tuple[int, int, int], order: str = "i0, j0, k0, i1, k1, j1") -> Trace:
    """The trace of a program of the space, by what is inside."""
    sch = Schedule(program(v))
    loops = dict(zip(v.order, sch.get_loops(sch.get_block(v.C))))
    parts = {}
    for name, size, inner in zip("ijk", (v.n, v.m, v.k), tiles):
        factors = sch.sample_perfect_tile(loops[name], n=2, max_innermost_factor=64,
                                          decision=[size // inner, inner])
        parts[name + "0"], parts[name + "1"] = sch.split(loops[name], factors=factors)
    sch.reorder(*(parts[name] for name in order.split(", ")))
    return sch.trace


def record(v: Values, trace: Trace) -> str:
    """A line of a database's file of records."""
    return json.dumps([text_key(program(v)), [trace.as_json(), None, "llvm", []], {}])


def reference(v: Values) -> str:
    """Tiles of 16 by 16 by 16."""
    return record(v, found(v, (16, 16, 16)))


def most(v: Values) -> int:
    """The misses that a program may have."""
    sch = Schedule(program(v))
    found(v, (16, 16, 16)).apply_to_schedule(sch)
    return count_accesses(sch.mod, CACHES, threads=1).level("L1").misses * 5 // 4


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes that 16 divides, names, and the space as it is written."""
    n, m, k = (rng.choice([64, 80, 96, 112]) for _ in range(3))
    values = {"n": n, "m": m, "k": k, **drawn(rng)}
    splits = "\n".join(
        f"{x}0, {x}1 = sch.split({x}, sch.sample_perfect_tile({x}, n=2, max_innermost_factor=64))"
        for x in "ijk")
    return {**values, "space": f"""\
{values["loops"]} = sch.get_loops("{values["C"]}")
{splits}
sch.reorder(i0, j0, k0, i1, k1, j1)"""}


EXERCISE = Exercise(
    id="08.4",
    title="What your search has found",
    level=3,
    minutes=30,
    kind="record",
    statement="""\
A product of {n} by {k} and {k} by {m}, and a space of its tiles:

```python
{space}
```

Search it, by a search of your own or with `tune_tir`, with what you like as its measure, and hand
in a record of a program that misses a cache of 4 KiB (8 ways, lines of 64 bytes) at most a quarter
more often than tiles of 16 by 16 by 16 do. A record is what a database keeps of a trial: a line of
`database_tuning_record.json` of a `JSONDatabase`, or the TuningRecord itself. It is replayed here,
and the misses are counted; the times in it are not looked at.""",
    draw=draw,
    program=program,
    small=lambda v: {"n": 32, "m": 32, "k": 32},
    checks=lambda v: [
        row("equivalent", 1, "its program computes the product", nasty=False, cases=1),
        row("trace", 1, "it is a program of the space", like=found(v, (16, 16, 16)),
            decides=True),
        row("counts", 3, "few misses", misses=most(v), caches=CACHES),
    ],
    hints=(
        "You need no clock: mlc_lab.observe.count_accesses(sch.mod, \"4K:8, 64K:16\") counts the "
        "misses of a program, so search with that as the measure.",
        "Draw programs with Schedule(program, seed=n), take the one with the fewest misses, and "
        "keep its sch.trace: database.commit_workload(program), then "
        "database.commit_tuning_record(TuningRecord(sch.trace, workload)).",
        "A tile of A, of B and of {C} should fit 4 KiB together, and rows of a tile should be "
        "whole lines: 16 numbers. The line of the file begins with a bracket and the key of the "
        "program.",
    ),
    reference=reference,
    wrong=lambda v: [
        Wrong(record(v, found(v, (1, 1, 1))), 2, "are asked for at most"),
        Wrong(record(v, found(v, (v.n, 1, v.k) if v.n <= 64 else (16, 1, 16))), 2,
              "are asked for at most"),
        Wrong(record(v, found(v, (16, 16, 16), "i0, j0, k0, i1, j1, k1")), 1, "it was sch.reorder"),
        Wrong(record(Values(**{**vars(v), "n": v.n + 16}), found(v, (16, 16, 16))), 0,
              "the record is of another program"),
        Wrong(v.space, 0, "a record is one line"),
    ],
)
