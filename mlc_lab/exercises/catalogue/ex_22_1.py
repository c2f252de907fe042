"""22.1  The windows of a convolution are written out, a row at a time."""

from __future__ import annotations

import random

from ...script import from_source
from ..answers import Answer
from ..checks.lowered import keeps
from ..checks.structure import loops_of
from ..exercise import Exercise, Values, Variant, Wrong, row
from ..result import Found
from .matrices import RESULTS

CACHES = "8K:8, 64K:8"


def program(v: Values):
    """A convolution as a product: the windows as rows of a matrix, then the sums."""
    outside = v.side + v.window - 1
    return from_source(f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(X: T.Buffer(({v.channels}, {outside}, {outside}), "float32"),
             W: T.Buffer(({v.filters}, {v.channels}, {v.window}, {v.window}), "float32"),
             {v.Y}: T.Buffer(({v.filters}, {v.side}, {v.side}), "float32")):
        {v.P} = T.alloc_buffer(({v.side}, {v.channels}, {v.window}, {v.window}, {v.side}))
        for i, c, p, q, j in T.grid({v.side}, {v.channels}, {v.window}, {v.window}, {v.side}):
            with T.block("{v.P}"):
                vi, vc, vp, vq, vj = T.axis.remap("SSSSS", [i, c, p, q, j])
                {v.P}[vi, vc, vp, vq, vj] = X[vc, vi + vp, vj + vq]
        for {", ".join(v.order)} in T.grid({", ".join(str(extents(v)[x]) for x in v.order)}):
            with T.block("{v.Y}"):
                vo, vi, vj, vc, vp, vq = T.axis.remap("SSSRRR", [o, i, j, c, p, q])
                with T.init():
                    {v.Y}[vo, vi, vj] = T.float32(0)
                {v.Y}[vo, vi, vj] += W[vo, vc, vp, vq] * {v.P}[vi, vc, vp, vq, vj]
""")


def extents(v: Values) -> dict[str, int]:
    """Of the loops around the sums, by name."""
    return {"o": v.filters, "i": v.side, "j": v.side, "c": v.channels, "p": v.window,
            "q": v.window}


def accesses(v: Values) -> int:
    """Loads and stores where each window is written once."""
    windows = v.side * v.side * v.channels * v.window * v.window
    return 2 * windows + 4 * v.filters * windows + v.filters * v.side * v.side


def schedule(v: Values, order: str, at: str = "i") -> str:
    """The loops in an order, the windows computed at one of them, or at none."""
    return f"""
{", ".join(v.order)} = sch.get_loops("{v.Y}")
sch.reorder({", ".join(order)})
""" + (f'sch.compute_at("{v.P}", {at})\n' if at else "")


def few_windows(answer: Answer, variant: Variant) -> Found:
    """Whether the windows are written out, and few of them are kept."""
    assert answer.mod is not None
    v = variant.values
    if v.P not in loops_of(answer.mod):
        return Found(False, f"there is no block {v.P}: the windows are to be written out")
    return keeps(answer.mod, v.row)


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes, names, and the order in which the loops are given: rows inside of filters."""
    channels, filters, side = 8, rng.choice([12, 16]), rng.choice([14, 16])
    windows, out = rng.sample(RESULTS, 2)
    return {"channels": channels, "filters": filters, "side": side, "window": 3, "P": windows,
            "Y": out, "order": rng.choice(["oijcpq", "ojicpq", "ocijpq", "ocpqji"]),
            "row": 4 * channels * 9 * side}


EXERCISE = Exercise(
    id="22.1",
    title="Windows, a row at a time",
    level=2,
    minutes=20,
    kind="schedule",
    statement="""\
A convolution with {filters} filters is computed as a product: first the windows of the image are
written out into `{P}` (im2col), with `{P}[i]` for row `i` of the result; then each filter is
multiplied with them. Written out as a whole they are {window} * {window} times the image.

Keep `{P}`, but only a row of it at a time:

- {row} bytes at most are kept once the program is lowered;
- each window is still written once, and not once for each filter;
- the misses of a first cache of 8 KB are as few as that allows (at most a quarter above ours).""",
    draw=draw,
    program=program,
    small=lambda v: {"channels": 2, "filters": 4, "side": 6},
    checks=lambda v: [
        row("equivalent", 1, "it computes the convolution", nasty=False, cases=1),
        row("own", 3, f"{v.row} bytes at most for the windows", by=few_windows),
        row("counts", 2, "each window is written once", accesses=accesses(v), caches=CACHES),
        row("counts", 2, "few misses", of_reference=1.25, caches=CACHES),
    ],
    hints=(
        "Which loop has to be outermost, so that a row of {P} is made, used by all filters, and "
        "forgotten?",
        "Put the loop over rows of the result outside of that over filters, and compute_at the "
        "windows there. Then which of the loops inside walks along a row of {P}?",
        "reorder(i, o, c, p, q, j), with j innermost, and compute_at(\"{P}\", i).",
    ),
    reference=lambda v: schedule(v, "iocpqj"),
    wrong=lambda v: [
        Wrong(schedule(v, "iocpqj", at=""), 3, "are asked for at most. They are"),
        Wrong(schedule(v, "oicpqj"), 4, "loads and stores"),
        Wrong(schedule(v, "ijcpqo"), 6, "misses most"),
        Wrong(schedule(v, "ijcpqo", at="") + f'sch.compute_inline("{v.P}")', 3,
              "the windows are to be written out"),
    ],
)
