"""18.1  Six bindings: does each value come once, and is that proved?"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any

from ... import arith
from ...tir.expr import PrimExpr, Range, Var
from ..exercise import Exercise, Field, Values, Wrong, row

PROVED = "each comes once, and it is proved"
COUNTED = "each comes once, and it is not proved"
TWICE = "some come twice"
MISSING = "none comes twice, and some are left out"
CHOICES = (PROVED, COUNTED, TWICE, MISSING)


@dataclass(frozen=True)
class Form:
    """A kind of expression: what is true of it; its numbers, drawn; the expression of x and y, of
    numbers or of variables; and the extents of both (0: there is no y)."""

    truth: str
    numbers: Callable[[random.Random], tuple[int, int]]
    expression: Callable[[Any, Any, int, int], Any]
    extents: Callable[[int, int], tuple[int, int]]


def _digits(rng: random.Random) -> tuple[int, int]:
    return rng.randint(3, 6), rng.randint(4, 9)


def _coprime(rng: random.Random) -> tuple[int, int]:
    """A number and a factor below it that has no divisor in common with it."""
    n = rng.choice([8, 10, 14, 16])
    return n, rng.choice([f for f in (3, 5, 7, 9, 11) if f < n and gcd(f, n) == 1])


def _pair(rng: random.Random) -> tuple[int, int]:
    return rng.choice([(3, 4), (3, 5), (4, 5), (3, 7), (4, 7), (5, 6)])


def _length(rng: random.Random) -> tuple[int, int]:
    n = rng.randint(12, 24)
    return n, rng.randint(2, n - 2)


def _doubled(rng: random.Random) -> tuple[int, int]:
    return 2 * rng.randint(4, 8), rng.choice([2, 4])


FORMS = {
    "split": Form(PROVED, _digits, lambda x, y, a, b: x * b + y, lambda a, b: (a, b)),
    "turned": Form(PROVED, _digits, lambda x, y, a, b: y * a + x, lambda a, b: (a, b)),
    "transposed": Form(PROVED, _digits, lambda x, y, a, b: x % a * b + x // a,
                       lambda a, b: (a * b, 0)),
    "backwards": Form(PROVED, _length, lambda x, y, n, _: n - 1 - x, lambda n, _: (n, 0)),
    "multiplied": Form(COUNTED, _coprime, lambda x, y, n, f: x * f % n, lambda n, _: (n, 0)),
    "rotated": Form(COUNTED, _length, lambda x, y, n, d: (x + d) % n, lambda n, _: (n, 0)),
    "remainders": Form(COUNTED, _pair, lambda x, y, a, b: (x * b + y * a) % (a * b),
                       lambda a, b: (a, b)),
    "long": Form(TWICE, _digits, lambda x, y, a, b: x * b + y, lambda a, b: (a, b + 1)),
    "quotient": Form(TWICE, _digits, lambda x, y, a, b: x // a, lambda a, b: (a * b, 0)),
    "remainder": Form(TWICE, _digits, lambda x, y, a, b: x % b, lambda a, b: (a * b, 0)),
    "skewed": Form(TWICE, _digits, lambda x, y, a, b: x * (b - 2) + y, lambda a, b: (a, b)),
    "doubled": Form(TWICE, _doubled, lambda x, y, n, f: x * f % n, lambda n, _: (n, 0)),
    "short": Form(MISSING, _digits, lambda x, y, a, b: x * b + y, lambda a, b: (a, b - 1)),
    "shorter": Form(MISSING, _digits, lambda x, y, a, b: y * a + x, lambda a, b: (a - 1, b)),
}
#: how many of each are asked for
ASKED = {PROVED: 2, COUNTED: 1, TWICE: 2, MISSING: 1}


#: a form and its two numbers
Item = tuple[str, int, int]


@functools.lru_cache(512)
def looked_at(item: Item) -> tuple[str, str]:
    """What is true of an expression, and why: by counting, and by what is proved."""
    form, numbers = FORMS[item[0]], item[1:]
    a, b = form.extents(*numbers)
    values: dict[int, str] = {}
    for x, y in itertools.product(range(a), range(b or 1)):
        value = form.expression(x, y, *numbers)
        point = f"x = {x}, y = {y}" if b else f"x = {x}"
        if value in values:
            return TWICE, f"{values[value]} gives {value}, and so does {point}"
        values[value] = point
    gone = sorted(set(range(max(values))) - set(values))
    if gone:
        return MISSING, f"nothing gives {gone[0]}"
    expr, ranges = _symbolic(item)
    found = arith.detect_iter_map([expr], ranges, check_level="bijective")
    if not found.indices:
        return COUNTED, (f"all {len(values)} values come, each once; but the form is not one of "
                         f"digits: {found.errors[0]}")
    return PROVED, f"all {len(values)} values come, each once, and by its digits that is proved"


def _symbolic(item: Item) -> tuple[PrimExpr, dict[Var, Range]]:
    """An expression of variables, and their ranges."""
    form, numbers = FORMS[item[0]], item[1:]
    x, y = Var("x", "int32"), Var("y", "int32")
    a, b = form.extents(*numbers)
    return form.expression(x, y, *numbers), {x: Range(0, a), **({y: Range(0, b)} if b else {})}


def truth(item: Item) -> str:
    """What is true of an expression."""
    return looked_at(item)[0]


def written(item: Item) -> str:
    """An expression with the extents of its loops."""
    expr, ranges = _symbolic(item)
    return f"{expr}   ({', '.join(f'{x} < {r.extent}' for x, r in ranges.items())})"


def draw(rng: random.Random) -> dict[str, object]:
    """Six expressions in any order."""
    items = []
    for what, count in ASKED.items():
        for name in rng.sample([n for n, form in FORMS.items() if form.truth == what], count):
            items.append((name, *FORMS[name].numbers(rng)))
    rng.shuffle(items)
    return {"items": items}


def reference(v: Values) -> dict[str, str]:
    """What is true of each."""
    return {f"binding_{n}": truth(item) for n, item in enumerate(v.items, 1)}


def as_if(v: Values, what: str, instead: str) -> dict[str, str]:
    """An answer that takes one of the cases for another."""
    return {name: instead if is_ == what else is_ for name, is_ in reference(v).items()}


EXERCISE = Exercise(
    id="18.1",
    title="By its digits",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
Each of these six expressions binds an iterator whose domain begins with 0 and ends with the largest
value that the expression takes. Does each value of the domain come once? And if so, does
`arith.detect_iter_map` prove it (`check_level="bijective"`)?

Write down the weights and the extents of the digits, before you count.""",
    draw=draw,
    fields=lambda v: [Field(f"binding_{n}", written(item), "choice", CHOICES)
                      for n, item in enumerate(v.items, 1)],
    checks=lambda v: [
        row("prediction", 1, written(item), field=f"binding_{n}",
            equals=lambda item=item: truth(item), why=lambda item=item: looked_at(item)[1],
            about=lambda item=item: dict.fromkeys(CHOICES, looked_at(item)[1]))
        for n, item in enumerate(v.items, 1)],
    hints=(
        "Two are proved, one comes out once each without a proof, in two some values come twice, "
        "and in one some are left out.",
        "A digit whose weight is the product of the extents below it is right. If it goes further, "
        "values come twice; if it ends earlier, some are left out. Which letter has the weight 1 "
        "does not matter.",
        "x // c and x % c of one x are two digits of it; one of them alone has lost the other. "
        "A remainder of what was multiplied or shifted is no digit: whether each value comes once "
        "depends on common divisors, which the form does not show.",
    ),
    reference=reference,
    wrong=lambda v: [
        Wrong(as_if(v, COUNTED, PROVED), 5, "the form is not one of digits"),
        Wrong(as_if(v, TWICE, PROVED), 4, "and so does"),
        Wrong(as_if(v, MISSING, TWICE), 5, "nothing gives"),
        Wrong(dict.fromkeys(reference(v), PROVED), 2, "and so does"),
    ],
)
