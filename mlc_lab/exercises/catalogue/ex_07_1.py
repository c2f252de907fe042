"""07.1  A dilated convolution as a tensor expression."""

from __future__ import annotations

import random

from ...script import from_source
from ..answers import Answer
from ..checks.equivalent import equivalent
from ..checks.function import PROGRAMS, program_in
from ..exercise import Exercise, Values, Wrong, row
from ..result import Found

PRELUDE = PROGRAMS + """
def call(names, name, a, w):
    A, W = te.placeholder(a, name="A"), te.placeholder(w, name="W")
    return te.create_prim_func([A, W, names[name](A, W)]).script()
"""


def sizes(v: Values) -> tuple[int, int]:
    """The height and the width of the result."""
    return v.n - v.d * (v.r - 1), v.n - v.e * (v.r - 1)


def right(v: Values):
    """What is to be computed, as loops."""
    d, e, r = v.d, v.e, v.r
    high, wide = sizes(v)
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.c}, {v.n}, {v.n}), "float32"),
             W: T.Buffer(({v.f}, {v.c}, {r}, {r}), "float32"),
             O: T.Buffer(({v.f}, {high}, {wide}), "float32")):
        for f, y, x, c, i, j in T.grid({v.f}, {high}, {wide}, {v.c}, {r}, {r}):
            with T.block("O"):
                vf, vy, vx, vc, vi, vj = T.axis.remap("SSSRRR", [f, y, x, c, i, j])
                with T.init():
                    O[vf, vy, vx] = T.float32(0)
                O[vf, vy, vx] = O[vf, vy, vx] + A[vc, vy + vi * {d}, vx + vj * {e}] * (
                    W[vf, vc, vi, vj])
""")


def judged(v: Values, values: bool):
    """Look at the result's shape, or at what is computed."""
    shapes = ((v.c, v.n, v.n), (v.f, v.c, v.r, v.r))
    out = (v.f, *sizes(v))

    def by(call):
        mod = program_in(call("dilated", *shapes))
        main = mod["main"]
        have = tuple(int(d) for d in main.buffer_map[main.params[-1]].shape)
        if have != out:
            apart, size = (v.d, out[1]) if have[1:2] != out[1:2] else (v.e, out[2])
            span = apart * (v.r - 1)
            return Found(False, f"the result has the shape {have}; a window of {v.r} taps that are "
                         f"{apart} apart spans {span + 1} elements, so {v.n} inputs give {size} "
                         f"outputs: ({v.f}, {out[1]}, {out[2]})")
        if not values:
            return Found(True, f"the result has the shape {have}")
        found = equivalent(Answer("function", mod), EXERCISE.variant(), of=right(v), cases=2,
                           nasty=False)
        return found if found.passed else Found(False, found.says, found.place)

    return by


def text(index: str, height: str, width: str, weight: str = "W[f, c, i, j]",
         axes: str = "[c, i, j]") -> str:
    """A tensor expression whose taps are read at `index`."""
    return f"""
def dilated(A, W):
    C, H, V = A.shape
    F, _, R, S = W.shape
    c = te.reduce_axis((0, C), "c")
    i, j = te.reduce_axis((0, R), "i"), te.reduce_axis((0, S), "j")
    return te.compute(
        (F, {height}, {width}),
        lambda f, y, x: te.sum(A[{index}] * {weight}, axis={axes}), name="O")
"""


def dilated(v: Values) -> tuple[str, str, str]:
    """Where a tap is read, how high the result is, and how wide."""
    return (f"c, y + i * {v.d}, x + j * {v.e}", f"H - {v.d} * (R - 1)",
            f"V - {v.e} * (R - 1)")


def draw(rng: random.Random) -> dict[str, int]:
    """The distances of the taps down and across, which differ; and the sizes."""
    d, e = rng.sample([1, 2, 3, 4], 2)
    return {"d": d, "e": e, "r": rng.choice([2, 3]), "c": rng.choice([2, 3]),
            "f": rng.choice([2, 4]), "n": rng.choice([10, 11, 12])}


EXERCISE = Exercise(
    id="07.1",
    title="A dilated convolution",
    level=2,
    minutes=20,
    kind="function",
    statement="""\
In a dilated convolution the taps of a window stand apart, here by {d} rows and {e} columns: output
`(f, y, x)` is the sum over `c, i, j` of `A[c, y + {d}*i, x + {e}*j] * W[f, c, i, j]`. There is no
padding.

Write `def dilated(A, W)`, which returns the convolution as a tensor expression (`te.compute`, with
`te` there already). `A` is a tensor of {c} channels of {n} by {n}, `W` has {f} filters of {r} by
{r}. The result is as large as it can be without reading outside of `A`.""",
    draw=draw,
    checks=lambda v: [
        row("function", 1, "the result has the right shape", prelude=PRELUDE,
            by=judged(v, values=False)),
        row("function", 3, "it computes the convolution", prelude=PRELUDE,
            by=judged(v, values=True)),
    ],
    hints=(
        "Three axes of the result are spatial, and three are summed over: te.reduce_axis.",
        "A window that has {r} taps, {d} apart, spans {d} * ({r} - 1) + 1 elements. How many such "
        "windows are there in {n} elements? And with taps {e} apart?",
        "te.compute((F, H - {d} * (R - 1), ...), lambda f, y, x: te.sum(A[c, y + i * {d}, x + j * "
        "{e}] * W[f, c, i, j], axis=[c, i, j])).",
    ),
    reference=lambda v: text(*dilated(v)),
    wrong=lambda v: [
        Wrong(text("c, y + i, x + j", "H - (R - 1)", "V - (R - 1)"), 0, "inputs give"),
        Wrong(text("c, y + i, x + j", *dilated(v)[1:]), 1, "and should be"),
        Wrong(text(*dilated(v), weight="W[f, c, j, i]"), 1, "and should be"),
        Wrong(text(dilated(v)[0], "H", "V"), 0, "apart spans"),
        Wrong(text(*dilated(v), axes="[i, j]"), 0, "nothing defines it"),
    ],
)

