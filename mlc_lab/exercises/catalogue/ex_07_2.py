"""07.2  compute_at: a producer made where it is used, a tile at a time."""

from __future__ import annotations

import random

from ... import te
from ...observe.counts import count_accesses
from ..answers import Answer
from ..checks.counts import worst_access
from ..checks.equivalent import equivalent
from ..checks.function import PROGRAMS, program_in
from ..checks.work import too_large
from ..exercise import Exercise, Values, Wrong, row
from ..result import Found

#: how many times the distance of the rows a tile of the reference is high
HIGH = 8
#: the two stages, for the lab and, as text, for the process of the answer
STAGES = """
def stages(te, n, m, d):
    A = te.placeholder((n + 2 * d, m + 2), name="A")
    P = te.compute((n + 2 * d, m), lambda y, x: A[y, x] + A[y, x + 1] + A[y, x + 2], name="P")
    C = te.compute((n, m), lambda y, x: P[y, x] + P[y + d, x] + P[y + 2 * d, x], name="C")
    return A, P, C
"""
PRELUDE = PROGRAMS + STAGES + """
def call(names, name, n, m, d):
    A, P, C = stages(te, n, m, d)
    s = te.create_schedule(C.op)
    names[name](s, P, C)
    return s.to_module([A, C]).script()
"""


def program(v: Values):
    """Both stages one after the other."""
    names: dict = {}
    exec(STAGES, names)  # ours, as it stands above
    A, _, C = names["stages"](te, v.n, v.m, v.d)
    return te.create_schedule(C.op).to_module([A, C])


def judged(v: Values, what: str):
    """Look at what a schedule makes: "same", "misses" or "work"."""
    def by(call):
        mod = program_in(call("schedule", v.n, v.m, v.d))
        if what == "same":
            return equivalent(Answer("function", mod), EXERCISE.variant(), of=program(v),
                              cases=1, nasty=False)
        problem = too_large(mod)
        if problem:
            return Found(False, problem)
        found = count_accesses(mod, v.caches)
        before = count_accesses(program(v), v.caches)
        have, had = (c.level("L1").misses for c in (found, before))
        if what == "misses":
            most = int(0.75 * had)
            why, place = worst_access(mod, found) if have > most else ("", {})
            return Found(have <= most, f"{have:,} misses; it has {had:,} without a schedule, and "
                         f"{most:,} at most are asked for. {why}".strip(), place)
        have, had = (c.flops or 0 for c in (found, before))
        most = had + had // 8
        return Found(have <= most, f"{have:,} additions, {had:,} without a schedule; {most:,} at "
                     "most are asked for" + ("" if have <= most else ": elements of P are made "
                                             "again for each tile that needs them, and higher "
                                             "tiles share more of them"))
    return by


def tiled(rows: int) -> str:
    """P computed at tiles of so many rows of C."""
    return f"""
def schedule(s, P, C):
    y, x = s[C].op.axis
    yo, yi = s[C].split(y, factor={rows})
    s[P].compute_at(s[C], yo)
"""


def draw(rng: random.Random) -> dict[str, object]:
    """How far apart the rows of P are that are added. Everything else goes with it: a tile that is
    lower computes too much twice, and one that is much higher does not fit the cache. The distances
    differ so much that the tile of one is too low or too high for nearly all others."""
    d = rng.choice([1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20])
    return {"d": d, "n": HIGH * d * rng.choice([5, 6, 7]), "m": rng.choice([48, 50]),
            "caches": f"{4 * d}K:8, 256K:16", "kib": 4 * d, "e": 2 * d, "high": HIGH * d}


EXERCISE = Exercise(
    id="07.2",
    title="Made where it is used",
    level=2,
    minutes=20,
    kind="function",
    statement="""\
`P` adds three neighbours in each row of `A`, and `C` three numbers in each column of `P`:

`P = te.compute(({n}+{e}, {m}), lambda y, x: A[y, x] + A[y, x+1] + A[y, x+2])`

`C = te.compute(({n}, {m}), lambda y, x: P[y, x] + P[y+{d}, x] + P[y+{e}, x])`

As it is, all of `P` is made before `C` begins, and a cache of {kib} KiB has lost
it by then. Write
`def schedule(s, P, C)`, which changes the schedule `s` (of `te.create_schedule(C.op)`) so that the
rows of `P` are made shortly before they are used. A row of `P` may be made more than once, but not
much: there are at most an eighth more additions than now.""",
    draw=draw,
    checks=lambda v: [
        row("function", 1, "it computes the same", prelude=PRELUDE, by=judged(v, "same"),
            decides=True),
        row("function", 2, "a quarter of the misses is gone", prelude=PRELUDE,
            by=judged(v, "misses")),
        row("function", 2, "little is computed twice", prelude=PRELUDE, by=judged(v, "work")),
    ],
    hints=(
        "s[P].compute_at(s[C], loop) makes what one iteration of a loop of C needs of P.",
        "At a loop over single rows of C, three rows of P are made for each: three times the work. "
        "At a loop over tiles of several rows, {e} more rows than the tile has.",
        "Split the rows of C, yo, yi = s[C].split(s[C].op.axis[0], factor={high}), and compute "
        "P at yo.",
    ),
    reference=lambda v: tiled(v.high),
    wrong=lambda v: [
        Wrong("def schedule(s, P, C):\n    pass", 3, "without a schedule, and"),
        Wrong("def schedule(s, P, C):\n    s[P].compute_at(s[C], s[C].op.axis[0])", 3,
              "made again for each tile"),
        Wrong("def schedule(s, P, C):\n    s[P].compute_inline()", 3, "additions"),
        Wrong("def schedule(s, P, C):\n    s[P].compute_at(s[C], s[P].op.axis[0])", 0,
              "is not a loop of C"),
        Wrong(tiled(v.n // 2), 3, "misses"),
    ],
)
