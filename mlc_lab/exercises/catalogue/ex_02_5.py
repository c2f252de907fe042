"""02.5  A function for any number of rows: a size that is a symbol."""

from __future__ import annotations


from ..exercise import Exercise, Values, Wrong, row


def text(v: Values, extent: str = "n", declared: str = "(n,)", start: str = "T.float32(0)") -> str:
    """Row sums for n rows, with a loop over an extent."""
    return f"""
@T.prim_func
def main(x: T.handle, w: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n, {v.m}), "float32")
    W = T.match_buffer(w, ({v.m},), "float32")
    Y = T.match_buffer(y, {declared}, "float32")
    for i, k in T.grid({extent}, {v.m}):
        with T.block("Y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                Y[vi] = {start}
            Y[vi] = Y[vi] + X[vi, vk] * W[vk]
"""


def fixed(v: Values) -> str:
    """The same for so many rows and no others."""
    return text(v).replace("n = T.int64()\n", "n = 16\n").replace("(n,", "(16,").replace(
        "T.grid(n", "T.grid(16").replace("    n = 16\n", "")


EXERCISE = Exercise(
    id="02.5",
    title="For any number of rows",
    level=2,
    minutes=15,
    kind="program",
    statement="""\
Write `Y = X @ W` for an `X` of any number `n` of rows and {m} columns, and a `W` of {m} numbers:
a function `main` of three handles, `x`, `w` and `y`, whose buffers are float32 and of the shapes
(n, {m}), ({m},) and (n,). `n` is known when the function is called, and not before.

It is tried with several sizes, one row among them.""",
    draw=lambda rng: {"m": rng.choice(range(5, 16))},
    checks=lambda v: [
        row("structure", 1, "one block, with a spatial iterator and a reduction", blocks=1,
            iterators="SR"),
        row("equivalent", 4, "it computes the product for any n", cases=4),
    ],
    hints=(
        "A function with a symbolic size takes T.handle parameters. Its sizes are declared first, "
        "then T.match_buffer gives each parameter a shape that may mention them.",
        "n = T.int64(), then X = T.match_buffer(x, (n, {m}), \"float32\"), and W and Y in the same "
        "way. The loops may go over n as over a number.",
        "T.grid(n, {m}) with kinds SR; T.init() sets Y[vi] to zero, and each step adds "
        "X[vi, vk] * W[vk].",
    ),
    reference=text,
    wrong=lambda v: [
        Wrong(fixed(v), 1, "parameter 1 is (16,"),
        Wrong(text(v, "16"), 1, "outside of its shape"),
        Wrong(text(v, declared=f"({v.m},)"), 1, "parameter 3 is"),
        Wrong(text(v, start="X[vi, 0] * W[0]"), 1, "and should be"),
    ],
)
