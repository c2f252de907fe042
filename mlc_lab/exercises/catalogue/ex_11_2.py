"""11.2  A model brought over by hand: a list of nodes becomes a Relax function."""

from __future__ import annotations

from ..exercise import Exercise, Values, Wrong, row

#: activations, as the framework and as Relax call them
ACTIVATIONS = {"relu": "R.nn.relu", "gelu": "R.nn.gelu", "silu": "R.nn.silu"}


def text(v: Values, first: str = "R.permute_dims(w0)", rest: str = "R.add(h, a)",
         act: str = "", bias: str = "R.add(m, b0)") -> str:
    """The function."""
    return f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({v.n}, {v.m}), "float32"), w0: R.Tensor(({v.m}, {v.m}), "float32"),
             b0: R.Tensor(({v.m},), "float32"), w1: R.Tensor(({v.k}, {v.m}), "float32")):
        with R.dataflow():
            a = {act or ACTIVATIONS[v.act]}(x)
            t = {first}
            m = R.matmul(a, t)
            h = {bias}
            r = {rest}
            u = R.permute_dims(w1)
            out = R.matmul(r, u)
            R.output(out)
        return out
"""


EXERCISE = Exercise(
    id="11.2",
    title="A model brought over by hand",
    level=1,
    minutes=15,
    kind="program",
    statement="""\
A framework traced a model into nodes:

`x = placeholder` ({n} by {m}), `a = {act}(x)`, `h = linear(a, w0, b0)`, `r = h + a`,
`out = linear(r, w1)`.

As in the framework, `linear(x, w, b)` is `x` times the transpose of `w`, plus `b`: `w0` is {m} by
{m}, `b0` has {m} numbers, `w1` is {k} by {m}; the second has no bias.

Write the Relax function `main(x, w0, b0, w1)` of float32 tensors in TVMScript: an `@R.function`
in a class under `@I.ir_module`. It computes what the nodes say, with operators of Relax only.""",
    draw=lambda rng: {"n": rng.choice([2, 3]), "m": rng.choice([6, 8, 12]), "k": rng.choice([5, 7]),
                      "act": rng.choice(list(ACTIVATIONS))},
    checks=lambda v: [
        row("same_graph", 3, "it computes what the nodes say"),
        row("graph", 1, "no more kernels than needed", kernels=7),
    ],
    hints=(
        "A call for each node; what is w0 times x in the framework is matmul here, and one of the "
        "operands has to be turned.",
        "R.permute_dims(w0) is the transpose. Then R.matmul(a, ...) and R.add(..., b0).",
        "In order: the activation, permute_dims, matmul, add of b0, add of a, permute_dims of w1, "
        "matmul. x and w0 fit without the transpose too, and then compute something else.",
    ),
    reference=lambda v: text(v),
    wrong=lambda v: [
        Wrong(text(v, first="w0"), 0, "and should be"),
        Wrong(text(v, rest="R.add(h, x)"), 0, "and should be"),
        Wrong(text(v, rest="h"), 0, "and should be"),
        Wrong(text(v).replace("R.permute_dims(w1)", "w1"), 0, "matmul"),
        Wrong(text(v, act="R.tanh"), 0, "and should be"),
    ],
)
