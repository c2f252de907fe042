"""21.2  An operator of one's own: one declaration, that scripts know and that is refused."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from ...workers.confined import Failed, Stopped
from ..checks.function import PROGRAMS
from ..exercise import Exercise, Values, Wrong, row
from ..result import Found

PRELUDE = PROGRAMS + """
from mlc_lab.relax.op.declare import (
    Axis, Flag, Float, FloatTensor, IntegerTensor, NumberTensor, Tensor, operator)
given.update(Axis=Axis, Flag=Flag, Float=Float, FloatTensor=FloatTensor, operator=operator,
             IntegerTensor=IntegerTensor, NumberTensor=NumberTensor, Tensor=Tensor)
def call(names, name, model, x):
    mod = from_source(model)
    if x is None:
        return str(mod["main"].ret_struct_info)
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    result = vm["main"](tvm.nd.array(np.array(x, "float32"))).numpy()
    return [str(mod["main"].ret_struct_info), str(result.dtype), result]
"""

#: formulas of x and a number {c}: what they give, and how it is said of an element; or wrongly
FORMULAS: dict[str, tuple[Callable[[float, float], float], str, str]] = {
    "x if abs(x) > {c} else 0": (
        lambda x, c: x if abs(x) > c else 0, "tir.if_then_else(tir.abs(x(*i)) > {c}, x(*i), 0.0)",
        "tir.if_then_else(x(*i) > {c}, x(*i), 0.0)"),
    "x if x > {c} else 0": (
        lambda x, c: x if x > c else 0, "tir.if_then_else(x(*i) > {c}, x(*i), 0.0)",
        "tir.if_then_else(x(*i) > 0, x(*i), 0.0)"),
    "x if x > 0 else {c} * x": (
        lambda x, c: x if x > 0 else c * x, "tir.if_then_else(x(*i) > 0, x(*i), {c} * x(*i))",
        "tir.if_then_else(x(*i) > {c}, x(*i), {c} * x(*i))"),
    "x / ({c} + abs(x))": (
        lambda x, c: x / (c + abs(x)), "x(*i) / ({c} + tir.abs(x(*i)))",
        "x(*i) / ({c} + x(*i) * x(*i))"),
    "min(max(x, -{c}), {c})": (
        lambda x, c: min(max(x, -c), c),
        'tir.min(tir.max(x(*i), tir.const(-{c}, "float32")), tir.const({c}, "float32"))',
        'tir.min(x(*i), tir.const({c}, "float32"))'),
    "x * min(max(x + {c}, 0), 1)": (
        lambda x, c: x * min(max(x + c, 0), 1),
        "x(*i) * tir.min(tir.max(x(*i) + {c}, 0.0), 1.0)",
        "tir.min(tir.max(x(*i) + {c}, 0.0), 1.0)"),
}
NAMES = ("fold_in", "squeeze_in", "bend", "press", "narrow", "tame")
LETTERS = ("by", "limit", "bound", "level", "factor")


def computed(v: Values, x: np.ndarray, c: float) -> np.ndarray:
    """What the operator gives."""
    formula = FORMULAS[v.formula][0]
    return np.array([formula(float(e), c) for e in x.reshape(-1)], "float32").reshape(x.shape)


def model(v: Values, given: str = "", shape: str = "", dtype: str = "float32") -> str:
    """A model that calls the operator, with its number or without it."""
    shape = shape or f"({v.rows}, 3)"
    return f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor({shape}, "{dtype}")):
        y = R.{v.name}(x{given})
        return y
"""


def inputs(v: Values) -> np.ndarray:
    """Numbers on both sides of all bounds."""
    return np.random.default_rng(v.rows).uniform(-3, 3, (v.rows, 3)).astype("float32").round(2)


def computes(v: Values, numbers: tuple[float | None, ...], shape: str = ""):
    """It computes the operator, with these numbers given, None for one that is left out."""
    def by(call):
        for number in numbers:
            x, c = inputs(v), v.default if number is None else number
            given = "" if number is None else f", {v.letter}={number}"
            info, dtype, result = call(v.name, model(v, given, shape), x.tolist())
            want, have = computed(v, x, c), np.array(result, dtype="float32")
            called = f"R.{v.name}(x{given})"
            if have.shape != want.shape or dtype != "float32":
                return Found(False, f"{called} gives {have.shape} of {dtype}; asked for: "
                             f"{want.shape} of float32")
            wrong = np.argwhere(~np.isclose(have, want, rtol=1e-4, atol=1e-5))
            if len(wrong):
                at = tuple(wrong[0])
                return Found(False, f"{called} gives {have[at]:.6g} for x = {x[at]:.6g}, and should"
                             f" give {want[at]:.6g}")
            if shape and "(n, 3)" not in info:
                return Found(False, f"the result for x of shape (n, 3) is {info}: its shape "
                             "should have the symbol n")
        return Found(True)
    return by


def refuses(v: Values):
    """It does not take whole numbers."""
    def by(call):
        try:
            call(v.name, model(v, dtype="int32"), None)
        except Stopped:
            raise
        except Failed as error:
            refused = "float" in str(error)
            return Found(refused, "" if refused else f"its refusal does not say that floats are "
                         f"asked for: {str(error).splitlines()[0]}")
        return Found(False, "it takes a tensor of int32: say in the kind of the parameter that "
                     "floats are asked for")
    return by


def text(v: Values, way: int = 1, kind: str = "FloatTensor", default: float = 0) -> str:
    """A declaration; `way` 2 is the wrong formula."""
    body = FORMULAS[v.formula][way].format(c=v.letter)
    return f"""
@operator("relax.{v.name}", layout="elementwise", precision="follow")
def {v.name}(x: {kind}, {v.letter}: Float = {default or v.default}) -> Tensor:
    return te.compute(x.shape, lambda *i: {body})
"""


def draw(rng: random.Random) -> dict[str, object]:
    """A formula, names, and the number that is taken where none is given."""
    formula, letter = rng.choice(sorted(FORMULAS)), rng.choice(LETTERS)
    return {"formula": formula, "told": formula.format(c=letter), "name": rng.choice(NAMES),
            "letter": letter, "rows": rng.choice([4, 5, 7]),
            "default": rng.choice([0.25, 0.5, 0.75])}


EXERCISE = Exercise(
    id="21.2",
    title="An operator of one's own",
    level=2,
    minutes=15,
    kind="function",
    statement="""\
Declare the operator `relax.{name}`. It takes a tensor `x` of floats of any shape, and a number
`{letter}`, which may be left out and is {default} then. For each element `x` it gives

`{told}`

Scripts call it `R.{name}(x, {letter}=1.0)`. A tensor of whole numbers is refused.

It is one function under the decorator `operator`, as `shrink` in the lesson. `operator`, its kinds
`Tensor`, `FloatTensor`, `Float` and others, `topi`, `te` and `tir` are there already.""",
    draw=draw,
    checks=lambda v: [
        row("function", 2, "it computes what it should", prelude=PRELUDE,
            by=computes(v, (0.625,)), decides=True),
        row("function", 1, "the number may be left out", prelude=PRELUDE,
            by=computes(v, (None,))),
        row("function", 1, "a shape with a symbol", prelude=PRELUDE,
            by=computes(v, (0.625,), '("n", 3)')),
        row("function", 1, "whole numbers are refused", prelude=PRELUDE, by=refuses(v)),
    ],
    hints=(
        "The lesson declares shrink in three lines. What of them is about shrinking, and what is "
        "the same for each operator?",
        "Parameters have kinds: x: FloatTensor refuses what is no float, {letter}: Float = "
        "{default} is a number that may be left out. The body is an expression of topi, or "
        "te.compute over x.shape.",
        "return te.compute(x.shape, lambda *i: ...), where x(*i) is the element; "
        "tir.if_then_else(condition, a, b), tir.max, tir.min and tir.abs are what formulas need.",
    ),
    reference=text,
    wrong=lambda v: [
        Wrong(text(v, 2), 0, "and should give"),
        Wrong(text(v, kind="Tensor"), 4, "it takes a tensor of int32"),
        Wrong(text(v, default=3.5), 4, f"R.{v.name}(x) gives"),
        Wrong(text(v).replace(f'"relax.{v.name}"', f'"relax.nn.{v.name}"'), 0, v.name),
    ],
)
