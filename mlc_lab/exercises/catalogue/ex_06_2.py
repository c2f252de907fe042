"""06.2  A model that calls a function of a library by its name."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ..exercise import Exercise, Values, Wrong, row

NAME = "lab.normalize_rows"


def normalize_rows(x: Any, scale: Any, out: Any) -> None:
    """Each row of `x` over the root of its mean square, times `scale`; written to `out`."""
    data = x.numpy()
    rms = np.sqrt(np.mean(data * data, axis=1, keepdims=True) + np.float32(1e-5))
    out.copyfrom((data / rms * scale.numpy()).astype("float32"))


def text(v: Values, call: str = "", after: str = "R.matmul(h, w)") -> str:
    """The model, with a call of the library or something in its place."""
    call = call or (f'R.call_dps_packed("{NAME}", (x, s), '
                    f'out_sinfo=R.Tensor(({v.b}, {v.n}), "float32"))')
    return f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({v.b}, {v.n}), "float32"), s: R.Tensor(({v.n},), "float32"),
             w: R.Tensor(({v.n}, {v.m}), "float32")) -> R.Tensor(({v.b}, {v.m}), "float32"):
        with R.dataflow():
            h = {call}
            y = {after}
            R.output(y)
        return y
"""


def draw(rng: random.Random) -> dict[str, object]:
    """Sizes, all distinct."""
    n, m = rng.sample([6, 8, 10, 12, 14], 2)
    return {"b": rng.choice([3, 4, 5]), "n": n, "m": m, "name": NAME}


EXERCISE = Exercise(
    id="06.2",
    title="Call a library",
    level=2,
    minutes=15,
    kind="program",
    statement="""\
A library has a function `{name}(x, scale, out)`. It divides each row of `x` by the root of its mean
square, multiplies by `scale`, and writes the result, which has the shape of `x`, to `out`.

Write a model, a function `main` of the float32 tensors `x` ({b} by {n}), `s` ({n} numbers) and `w`
({n} by {m}), which normalizes the rows of `x` with that function and the scale `s`, and returns
their product with `w`, {b} by {m} numbers. Write it as TVMScript, or with a `BlockBuilder`.""",
    draw=draw,
    library={NAME: normalize_rows},
    checks=lambda v: [
        row("equivalent", 3, "it computes the model", cases=2),
        row("graph", 3, "the library is called once", library={NAME: 1}, kernels=1),
    ],
    hints=(
        "The library writes its result to memory that it is given (destination-passing style). "
        "Which call of Relax makes that memory, and passes it as the last argument?",
        "R.call_dps_packed takes the name of the function, a tuple of its inputs, and the struct "
        "info of what it writes.",
        "h = R.call_dps_packed(\"{name}\", (x, s), R.Tensor(({b}, {n}), \"float32\")), then "
        "R.matmul(h, w).",
    ),
    reference=text,
    wrong=lambda v: [
        Wrong(text(v, call="R.multiply(x, s)"), 0, f"{NAME} is called 0 times"),
        Wrong(text(v, call="R.nn.rms_norm(x, s, axes=[1], epsilon=1e-5)"), 3,
              f"{NAME} is called 0 times"),
        Wrong(text(v, call='R.call_dps_packed("numpy.normalize", (x, s), '
                   f'out_sinfo=R.Tensor(({v.b}, {v.n}), "float32"))'), 0, f"or calls {NAME}"),
        Wrong(text(v).replace("matmul(h, w)", "matmul(x, w)"), 0, "and should be"),
    ],
)
