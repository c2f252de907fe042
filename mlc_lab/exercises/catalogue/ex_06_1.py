"""06.1  A perceptron of two layers, built with a BlockBuilder."""

from __future__ import annotations

import random

from ..exercise import Exercise, Values, Wrong, row


def text(v: Values, hidden: str = "R.nn.relu(h1)", second: str = "R.matmul(h2, w2)",
         bias: str = "b2") -> str:
    """The model, with one or the other line changed."""
    return f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({v.b}, {v.n}), "float32"), w1: R.Tensor(({v.n}, {v.h}), "float32"),
             b1: R.Tensor(({v.h},), "float32"), w2: R.Tensor(({v.h}, {v.m}), "float32"),
             b2: R.Tensor(({v.m},), "float32")) -> R.Tensor(({v.b}, {v.m}), "float32"):
        with R.dataflow():
            h0 = R.matmul(x, w1)
            h1 = R.add(h0, b1)
            h2 = {hidden}
            y0 = {second}
            y = R.add(y0, {bias})
            R.output(y)
        return y
"""


def draw(rng: random.Random) -> dict[str, object]:
    """The sizes of the layers, all distinct."""
    n, h, m = rng.sample([8, 10, 12, 14, 16, 20], 3)
    return {"b": rng.choice([3, 4, 5]), "n": n, "h": h, "m": m}


EXERCISE = Exercise(
    id="06.1",
    title="A perceptron of two layers",
    level=2,
    minutes=20,
    kind="program",
    statement="""\
Build the model `relu(x @ w1 + b1) @ w2 + b2` with a `BlockBuilder`, as one function `main` of five
float32 tensors, in this order: `x` of {b} by {n}, `w1` of {n} by {h}, `b1` of {h} numbers, `w2` of
{h} by {m} and `b2` of {m} numbers. It returns {b} by {m} numbers.

Use each operator as often as the formula does: two products, two sums and one `relu`. Hand in the
module that `bb.get()` gives; its TVMScript will do as well.""",
    draw=draw,
    checks=lambda v: [
        row("equivalent", 4, "it computes the model", cases=2),
        row("graph", 2, "five operators", calls={"relax.matmul": 2, "relax.add": 2,
                                                 "relax.nn.relu": 1}, kernels=5),
    ],
    hints=(
        "A Var has a name and a TensorStructInfo. bb.function opens a function of such parameters, "
        "bb.dataflow a block in it, and bb.emit gives a call a name.",
        "with bb.function(\"main\", [x, w1, b1, w2, b2]): and inside with bb.dataflow(): "
        "h = bb.emit(relax.op.matmul(x, w1)), and so on. A bias is broadcast by add.",
        "The last value leaves the block by y = bb.emit_output(...), and the function by "
        "bb.emit_func_output(y). relu is relax.op.nn.relu, between add and the second matmul.",
    ),
    reference=text,
    wrong=lambda v: [
        Wrong(text(v, hidden="R.nn.gelu(h1)"), 0, "and should be"),
        Wrong(text(v, hidden="R.nn.relu(h0)"), 0, "element [0, "),
        Wrong(text(v, hidden="R.nn.relu(R.nn.relu(h1))"), 4, "relax.nn.relu is called 2 times"),
        Wrong(text(v, second="R.matmul(h2, R.permute_dims(w2))"), 0, "matmul"),
    ],
)
