"""12.4  Which calls become one kernel? Marked in the graph; fusion itself knows."""

from __future__ import annotations

import functools
import random

from ...observe.graph import graph_of
from ...relax import transform
from ...script import from_source
from ..exercise import Exercise, Field, Values, Wrong, row
from ..pictures import calls, share

#: operators between the bias and what is needed twice
BETWEEN = ("d", "e")


def program(v: Values):
    """A product, what follows it, and a value in the middle that something else needs too."""
    between = "".join(f"\n            {name} = R.{v.after}({of})"
                      for name, of in zip(BETWEEN[:v.more], ("s", *BETWEEN)))
    return from_source(f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({v.n}, 16), "float32"), w: R.Tensor((16, {v.m}), "float32"),
             b: R.Tensor(({v.m},), "float32")):
        with R.dataflow():
            a = {v.before}
            p = R.matmul(a, w)
            s = R.add(p, b){between}
            r = R.{v.after}({v.fork})
            q = R.multiply(r, {v.fork})
            t = R.permute_dims(q)
            u = R.{v.reduction}(t, axis=[0])
            h = R.{v.reduction}({v.needed}, axis=[1])
            y = R.add(u, h)
            R.output(y)
        return y
""")


@functools.lru_cache(64)
def _kernels(*drawn: object) -> tuple[tuple[str, ...], ...]:
    names = ("n", "m", "before", "after", "more", "fork", "reduction", "needed")
    mod = program(Values(**dict(zip(names, drawn))))
    for change in (transform.LegalizeOps(), transform.AnnotateTIROpPattern(), transform.FuseOps()):
        mod = change(mod)
    nodes = graph_of(mod).nodes
    found = []
    for node in nodes:
        if node["kind"] == "group":  # the last of a group has the name of its result
            inner = [n["name"] for n in nodes if n["group"] == node["id"]]
            found.append((*inner[:-1], node["name"]))
        elif node["kind"] == "kernel" and node["group"] is None:
            found.append((node["name"],))
    return tuple(found)


def kernels(v: Values) -> list[list[str]]:
    """The calls of each kernel after fusion."""
    return [list(names) for names in _kernels(
        v.n, v.m, v.before, v.after, v.more, v.fork, v.reduction, v.needed)]


def of_product(v: Values) -> list[str]:
    """The calls of the kernel with the product."""
    return next(names for names in kernels(v) if "p" in names)


def everything(v: Values) -> list[str]:
    """All calls."""
    return [name for names in kernels(v) for name in names]


def about(v: Values) -> dict[str, str]:
    """Where a call is after fusion."""
    return {name: "it is in the kernel of p" if "p" in names else
            "it is a kernel of its own" if len(names) == 1 else
            f"its kernel is that of {', '.join(n for n in names if n != name)}"
            for names in kernels(v) for name in names}


def points(v: Values, marked: list[str]) -> int:
    """The points of marks that are right in part."""
    return int(3 * share(of_product(v), marked))


def draw(rng: random.Random) -> dict[str, object]:
    """Operators, and which value is needed twice."""
    more = rng.choice([0, 1, 2])
    fork = ("s", *BETWEEN)[more]
    drawn = {"more": more, "fork": fork, "n": rng.choice([8, 12]), "m": rng.choice([32, 48]),
             "before": rng.choice(["R.exp(x)", "R.tanh(x)", "R.nn.relu(x)"]),
             "after": rng.choice(["nn.relu", "tanh", "sigmoid"]),
             "reduction": rng.choice(["sum", "max", "min"]),
             "needed": rng.choice([fork, "r", "q"])}
    return {**drawn, "last": of_product(Values(**drawn))[-1]}


EXERCISE = Exercise(
    id="12.4",
    title="The borders of a kernel",
    level=3,
    minutes=15,
    kind="prediction",
    statement="""\
This graph goes through `LegalizeOps`, `AnnotateTIROpPattern` and `FuseOps`. Mark the calls that end
up in one kernel with the product `p`, `p` itself too. Then say how many kernels there are.""",
    draw=draw,
    program=program,
    fields=lambda v: [
        Field("kernel", "The calls of the kernel of p", "marks", picture=calls(program(v))),
        Field("count", "Kernels after fusion"),
    ],
    checks=lambda v: [
        row("marks", 3, "the kernel of p", field="kernel", equals=lambda: of_product(v),
            about=lambda: about(v)),
        row("prediction", 1, "how many kernels", field="count", equals=lambda: len(kernels(v)),
            says={9 + v.more: "that is how many calls there are: some are fused"}),
    ],
    hints=(
        "A product takes what follows it into its kernel, element by element, and not what comes "
        "before it.",
        "What a kernel computes in between is not in memory: a value that a call outside of it "
        "needs too has to be the result of its kernel. So a kernel goes on past a value only if "
        "it takes in all ways on from there, up to where they meet.",
        "The last {reduction} needs {needed}, and {fork} is needed by r and by q. The kernel of p "
        "ends with {last}. What comes after may be fused with each other, and a reduction takes in "
        "nothing that comes before it.",
    ),
    reference=lambda v: {"kernel": of_product(v), "count": len(kernels(v))},
    wrong=lambda v: [
        Wrong({"kernel": ["p"], "count": 9 + v.more}, points(v, ["p"]), "s is missing"),
        Wrong({"kernel": ["a", *of_product(v)], "count": len(kernels(v))},
              1 + points(v, ["a", *of_product(v)]), "a is marked, and should not be"),
        Wrong({"kernel": everything(v), "count": 1}, points(v, everything(v)), "is too small"),
        Wrong({"count": len(kernels(v))}, 1, "nothing was marked"),
    ],
)
