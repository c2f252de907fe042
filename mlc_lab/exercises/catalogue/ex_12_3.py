"""12.3  Fold and eliminate until few bytes move."""

from __future__ import annotations

from ...observe.graph import graph_of
from ...script import from_source
from ..exercise import Exercise, Values, Wrong, row


def text(v: Values, *lines: str) -> str:
    """A function of the given bindings, the last one its result."""
    body = "\n".join(" " * 12 + line for line in lines)
    last = lines[-1].split(" ")[0]
    return f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({v.n}, {v.m}), "float32"), w: R.Tensor(({v.m}, {v.k}), "float32"),
             b: R.Tensor(({v.k},), "float32")):
        with R.dataflow():
{body}
            R.output({last})
        return {last}
"""


def program(v: Values):
    """Transposes that undo each other, factors too, a product twice, and a value for nobody."""
    return from_source(text(
        v, "x1 = R.permute_dims(x)", "x2 = R.permute_dims(x1)",
        f'x3 = R.multiply(x2, R.const({v.factor}.0, "float32"))',
        f'x4 = R.multiply(x3, R.const({1 / v.factor}, "float32"))',
        "p = R.matmul(x4, w)", "q = R.matmul(x2, w)", "dead = R.exp(q)", "s = R.add(p, b)",
        "t = R.nn.relu(s)", "r = R.nn.relu(t)", "y = R.multiply(r, q)"))


#: what is left
BEST = ("p = R.matmul(x, w)", "s = R.add(p, b)", "r = R.nn.relu(s)", "y = R.multiply(r, p)")


def moved(v: Values) -> int:
    """Bytes that the shortest program moves."""
    found = graph_of(from_source(text(v, *BEST))).bytes_moved()
    assert found is not None
    return found


def bounded(v: Values) -> dict:
    """The values of a variant, with the bytes that are asked for."""
    before = graph_of(program(v)).bytes_moved()
    return {**vars(v), "most": moved(v), "before": before}


EXERCISE = Exercise(
    id="12.3",
    title="Fold and eliminate",
    level=2,
    minutes=20,
    kind="program",
    statement="""\
The program below computes the right thing, with more work than needed: it undoes what it did, does
things twice, and computes what nobody uses. Each call reads its operands and writes its result.

Write a function `main(x, w, b)`, in a class under `@I.ir_module`, that computes the same for every
input, out of operators of Relax, and whose calls move as few bytes as it goes without fusion:
{most} at most. The program, with `x` ({n}, {m}), `w` ({m}, {k}) and `b` ({k},):

`x1 = R.permute_dims(x)`, `x2 = R.permute_dims(x1)`, `x3 = R.multiply(x2, R.const({factor}.0))`,
`x4 = R.multiply(x3, R.const(1 / {factor}))`, `p = R.matmul(x4, w)`, `q = R.matmul(x2, w)`,
`dead = R.exp(q)`, `s = R.add(p, b)`, `t = R.nn.relu(s)`, `r = R.nn.relu(t)`,
`y = R.multiply(r, q)`, which is the result.""",
    draw=lambda rng: bounded(Values(n=rng.choice([8, 12, 16]), m=rng.choice([24, 32]),
                                        k=rng.choice([10, 20]), factor=rng.choice([2, 4, 8]))),
    program=program,
    checks=lambda v: [
        row("same_graph", 2, "it computes the same"),
        row("moves", 1, "half of what can be saved is saved", most=(v.most + v.before) // 2),
        row("moves", 2, f"its calls move {v.most} bytes at most", most=v.most),
    ],
    hints=(
        "Which bindings give the same value as another one? Write down for each what it is in "
        "terms of x, w and b.",
        "Two transposes are none, a factor and its inverse are none, relu of relu is relu; then p "
        "and q are the same product, and dead is used by nobody.",
        "p = R.matmul(x, w), R.add of b, R.nn.relu, and R.multiply of that with p. Four calls.",
    ),
    reference=lambda v: text(v, *BEST),
    wrong=lambda v: [
        Wrong(program(v).script(), 2, "suffice"),
        Wrong(text(v, BEST[0], "q = R.matmul(x, w)", *BEST[1:3], "y = R.multiply(r, q)"), 3,
              "suffice"),
        Wrong(text(v, *BEST[:3], "y = R.multiply(r, s)"), 0, "and should be"),
        Wrong(text(v, *BEST[:2], "y = R.multiply(s, p)"), 0, "and should be"),
        Wrong(text(v, BEST[0], f'p2 = R.multiply(p, R.const({v.factor}.0, "float32"))',
                   "s = R.add(p2, b)", *BEST[2:]), 0, "and should be"),
    ],
)
