"""01.3  Which of five programs compute the same? Loops may differ, and the result not."""

from __future__ import annotations

import functools
import random
import textwrap

from ...backend.interp import interpret
from ...observe.measure import random_arrays
from ...script import from_source
from ..checks.equivalent import first_difference
from ..exercise import Exercise, Field, Values, Wrong, row

LETTERS = "abcde"
#: the program that the others are compared with
GIVEN = """
for i, k in T.grid({n}, {m}):
    if k == 0:
        Y[i] = T.float32(0)
    Y[i] = Y[i] + A[i, k] * B[k]"""
#: the same by other loops
SAME = ("""
for i in range({n}):
    Y[i] = T.float32(0)
for k, i in T.grid({m}, {n}):
    Y[i] = Y[i] + A[i, k] * B[k]""", """
for i, k_0, k_1 in T.grid({n}, {h}, {t}):
    if k_0 * {t} + k_1 == 0:
        Y[i] = T.float32(0)
    Y[i] = Y[i] + A[i, k_0 * {t} + k_1] * B[k_0 * {t} + k_1]""", """
for i, k in T.grid({n}, {m}):
    if k == 0:
        Y[i] = T.float32(0)
    Y[i] = Y[i] + A[i, {m} - 1 - k] * B[{m} - 1 - k]""", """
for f in range({n} * {m}):
    if f % {m} == 0:
        Y[f // {m}] = T.float32(0)
    Y[f // {m}] = Y[f // {m}] + A[f // {m}, f % {m}] * B[f % {m}]""")
#: something else, each by one mistake
OTHER = ("""
for k, i in T.grid({m}, {n}):
    if i == 0:
        Y[i] = T.float32(0)
    Y[i] = Y[i] + A[i, k] * B[k]""", """
for i, k_0, k_1 in T.grid({n}, {h}, {t}):
    if k_1 == 0:
        Y[i] = T.float32(0)
    Y[i] = Y[i] + A[i, k_0 * {t} + k_1] * B[k_0 * {t} + k_1]""", """
for f in range({n} * {m}):
    if f % {n} == 0:
        Y[f // {m}] = T.float32(0)
    Y[f // {m}] = Y[f // {m}] + A[f // {m}, f % {m}] * B[f % {m}]""", """
for i in range({n}):
    Y[i] = T.float32(0)
for k, i in T.grid({m} - 1, {n}):
    Y[i] = Y[i] + A[i, k + 1] * B[k + 1]""", """
for i in range({n}):
    Y[i] = T.float32(0)
for k, i in T.grid({m}, {n}):
    Y[i] = Y[i] + A[i, k] * B[i]""")


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes, and five programs of which two or three are the same."""
    t = rng.choice([3, 4, 5])
    h = rng.choice([2, 3])
    sizes = {"n": rng.choice([n for n in (4, 5, 6) if n < t * h]), "m": t * h, "t": t, "h": h}
    same = rng.choice([2, 3])
    bodies = [*rng.sample(SAME, same), *rng.sample(OTHER, 5 - same)]
    rng.shuffle(bodies)
    bodies = [body.format(**sizes).strip("\n") for body in bodies]
    listing = "\n\n".join(f"{letter})\n\n```python\n{body}\n```"
                          for letter, body in zip(LETTERS, bodies))
    return {**sizes, "given": GIVEN.format(**sizes).strip("\n"), "listing": listing,
            "bodies": bodies}


def ran(v: Values, body: str):
    """What the interpreter makes of a program, on random numbers."""
    text = (f'@T.prim_func\ndef main(A: T.Buffer(({v.n}, {v.m}), "float32"), '
            f'B: T.Buffer(({v.m},), "float32"), Y: T.Buffer(({v.n},), "float32")):\n'
            + textwrap.indent(body, "    "))
    func = from_source(text)
    arrays = random_arrays(func)
    interpret(func, *arrays)
    return arrays


def differences(v: Values) -> dict[str, str]:
    """Of each program that computes something else: where, by running it."""
    return _differences(v.n, v.m, v.given, tuple(v.bodies))


@functools.lru_cache(64)
def _differences(n: int, m: int, given: str, bodies: tuple[str, ...]) -> dict[str, str]:
    v = Values(n=n, m=m)
    right, found = ran(v, given), {}
    for letter, body in zip(LETTERS, bodies):
        have = ran(v, body)
        wrong = first_difference(have, right)
        if wrong is not None:
            number, at = wrong
            found[letter] = (f"on random numbers its Y[{at[0]}] is {have[number][at]:.4g}, and that"
                             f" of the given program {right[number][at]:.4g}")
    return found


def same(v: Values) -> list[str]:
    """The letters of those that compute the same."""
    return [letter for letter in LETTERS if letter not in differences(v)]


def one_more(v: Values) -> list[str]:
    """An answer with a program too many."""
    return [*same(v), min(differences(v))]


EXERCISE = Exercise(
    id="01.3",
    title="The same by other loops?",
    level=2,
    minutes=15,
    kind="prediction",
    statement="""\
This program multiplies the rows of `A`, {n} by {m}, with `B`, of {m} numbers, and adds up:
`Y = A @ B`.

```python
{given}
```

Which of these five leave the same in `Y`, but for rounding? Whatever was in `Y` before must not
matter.

{listing}""",
    draw=draw,
    fields=lambda v: [Field("same", "Which compute the same?", "several", tuple(LETTERS))],
    checks=lambda v: [
        row("prediction", 4, "the programs that compute the same", field="same",
            equals=lambda: same(v), about=lambda: differences(v)),
    ],
    hints=(
        "Take each program by itself. Does it set each Y[i] to zero once, before anything is added "
        "to it? Does it add each of the {m} products once, whatever their order?",
        "Follow Y[1] through a program: at which values of the loops is it set to zero, and how "
        "many products were added to it before that? They are lost.",
        "Where k is split into k_0 and k_1, the first step is the one where both are 0. A fused "
        "loop f stands at row f // {m} and column f % {m}. Then look for a product that is left "
        "out, and for an index into B that is not the column.",
    ),
    reference=same,
    wrong=lambda v: [
        Wrong(one_more(v), 0, "on random numbers its Y["),
        Wrong(same(v)[:-1], 0, "1 missing"),
        Wrong(list(LETTERS), 0, "and that of the given program"),
        Wrong([], 0, f"{len(same(v))} missing"),
    ],
)
