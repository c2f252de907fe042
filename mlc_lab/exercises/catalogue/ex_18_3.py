"""18.3  What a split writes, and what intervals and remainders say: on paper."""

from __future__ import annotations

import functools
import random
from math import gcd

from ... import arith
from ...schedule import Schedule
from ...script import from_source
from ...tir.expr import Range, Var
from ...tir.stmt import BlockRealize
from ...tir.op import as_int
from ..checks.structure import loops_of, statements
from ..exercise import Exercise, Field, Values, Wrong, row

#: by which a loop over a multiple of a symbol is split
FACTORS = (2, 3, 4, 5, 6, 8, 9, 12, 16)
#: multiples of a symbol: each has factors that are proved to divide it, and others
SIZES = (8, 12, 18, 20, 24, 36)


def _loop(size: str):
    return from_source(f"""
@T.prim_func
def main(n: T.int32, a: T.handle, b: T.handle):
    A = T.match_buffer(a, ({size},), "float32")
    B = T.match_buffer(b, ({size},), "float32")
    for i in range({size}):
        with T.block("B"):
            vi = T.axis.spatial({size}, i)
            B[vi] = A[vi]
""")


@functools.lru_cache(256)
def _split(size: str, factor: int) -> tuple[int | None, bool]:
    """The extent of the outer loop of a split, and whether there is a predicate."""
    sch = Schedule(_loop(size))
    sch.split(sch.get_loops(sch.get_block("B"))[0], factors=[None, factor])
    (realize,) = (s for s in statements(sch.mod) if type(s) is BlockRealize
                  and s.block.name_hint == "B")
    return as_int(loops_of(sch.mod)["B"][0].extent), as_int(realize.predicate) != 1


@functools.lru_cache(64)
def _analyzed(v: tuple[int, ...]) -> tuple[int, int, int]:
    strips, f, a, b, c, p, q, r = v
    x, y = Var("x", "int32"), Var("y", "int32")
    analyzer = arith.Analyzer()
    analyzer.bind(x, Range(0, strips))
    analyzer.bind(y, Range(0, f))
    bound = analyzer.const_int_bound(x * a - y * b + c)
    rest = analyzer.modular_set(x * p + y * q + r)
    return bound.min_value, bound.max_value, gcd(rest.coeff, rest.base)


def truth(v: Values) -> dict[str, object]:
    """What is asked for."""
    strips = _split(str(v.n), v.f)[0]
    low, high, divisor = _analyzed((strips, v.f, v.a, v.b, v.c, v.p, v.q, v.r))
    return {"strips": strips, "idle": strips * v.f - v.n, "low": low, "high": high,
            "divisor": divisor, "even": divisors(v)}


def divisors(v: Values) -> list[str]:
    """The factors that need no predicate, whatever the symbol is."""
    return [str(f) for f in FACTORS if not _split(f"n * {v.size}", f)[1]]


def most_of_both(v: Values) -> int:
    """What the expression would be where both are largest, if they were added."""
    return v.a * (v.strips - 1) + v.b * (v.f - 1) + v.c


def draw(rng: random.Random) -> dict[str, object]:
    """A length that the strip does not divide; two expressions; a size with a symbol in it."""
    f = rng.choice([6, 7, 8, 9, 10, 12])
    n = f * rng.randint(4, 9) + rng.choice([r for r in range(1, f) if 2 * r != f])
    d = rng.choice([2, 3, 4, 5, 6])
    p, q = rng.choice([(2, 3), (3, 4), (2, 5), (3, 5), (4, 5)])
    r = d * rng.randint(2, 9)
    more = rng.choice([2, 3])
    return {"n": n, "f": f, "a": rng.randint(3, 9), "b": rng.randint(2, 6), "c": rng.randint(1, 9),
            "p": more * d * p, "q": more * d * q, "r": r if r % (more * d) else r + d,
            "coefficient": more * d, "strips": -(-n // f), "size": rng.choice(SIZES)}


EXERCISE = Exercise(
    id="18.3",
    title="Bounds and remainders",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
A loop over {n} is split into strips of {f}: `x` counts the strips, `y` the places in one, and the
iterator is bound to `x * {f} + y`. The analyzer knows the ranges of `x` and `y`, and nothing else.
Say what it finds, on paper.""",
    draw=draw,
    fields=lambda v: [
        Field("strips", "The extent of x"),
        Field("idle", "Pairs of x and y for which the predicate is false"),
        Field("low", f"The least that x * {v.a} - y * {v.b} + {v.c} can be, by intervals"),
        Field("high", "The most that it can be"),
        Field("divisor", f"The largest number that divides x * {v.p} + y * {v.q} + {v.r}, whatever "
                         "x and y are"),
        Field("even", f"A loop over n * {v.size}, where nothing is known of n: by which factors "
                      "can it be split without a predicate?", "several",
              tuple(map(str, FACTORS))),
    ],
    checks=lambda v: [
        row("prediction", 1, "strips", field="strips", equals=lambda: truth(v)["strips"],
            says={v.strips - 1: f"so many are whole, and {v.n} has a rest"}),
        row("prediction", 1, "iterations that do nothing", field="idle",
            equals=lambda: truth(v)["idle"],
            says={v.n % v.f: "so many are done in the last strip; asked for are those that are "
                             "not"}),
        row("prediction", 1, "the least", field="low", equals=lambda: truth(v)["low"],
            says={v.c: "that is where both are 0; y is subtracted, so its largest value makes the "
                       "least"}),
        row("prediction", 1, "the most", field="high", equals=lambda: truth(v)["high"],
            says={most_of_both(v): "y is subtracted: the most is where x is largest and y is 0"}),
        row("prediction", 1, "the divisor", field="divisor", equals=lambda: truth(v)["divisor"],
            says={v.coefficient: f"that divides the part of x and the part of y, and not {v.r}"}),
        row("prediction", 2, "factors without a predicate", field="even",
            equals=lambda: divisors(v),
            about={str(f): f"the loop has {v.size} iterations where n is 1, and {f} does not "
                           "divide that" for f in FACTORS}),
    ],
    hints=(
        "{n} / {f}, rounded up. In which of the strips are places left over?",
        "The interval of a sum is the sum of the intervals, and subtracting turns one round. A "
        "divisor of a sum for all x and y divides each of its three parts.",
        "x goes to {strips} - 1 and y to {f} - 1. A factor is proved to divide n * {size} if it "
        "divides {size}; for any other there is an n for which it does not.",
    ),
    reference=truth,
    wrong=lambda v: [
        Wrong({**truth(v), "strips": v.strips - 1, "idle": v.n % v.f}, 5, "has a rest"),
        Wrong({**truth(v), "low": v.c, "high": most_of_both(v)}, 5, "y is subtracted"),
        Wrong({**truth(v), "divisor": v.coefficient}, 6, "that divides the part of x"),
        Wrong({**truth(v), "even": list(map(str, FACTORS))}, 5, "too many: "),
    ],
)
