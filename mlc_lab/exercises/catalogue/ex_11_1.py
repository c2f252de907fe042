"""11.1  A row of an importer: one operator of a framework in operators of Relax."""

from __future__ import annotations

from ...relax import TensorStructInfo, op
from ...relax import Var as RelaxVar
from ...relax.block_builder import BlockBuilder
from ...relax.expr import const
from ...workers.confined import Failed, Stopped
from ..checks.function import PROGRAMS, program_in
from ..checks.graph_results import difference
from ..exercise import Exercise, Values, Wrong, row
from ..result import Found

PRELUDE = PROGRAMS + """
def call(names, name, shape, attrs):
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(names[name](bb, [x], dict(attrs)))
        bb.emit_func_output(out)
    return bb.get().script()
"""
SHAPES = ([4, 6], [2, 3, 5])


def right(v: Values, shape: list[int], attrs: dict[str, float]):
    """What the operator computes."""
    alpha, beta = attrs.get("alpha", v.alpha), attrs.get("beta", v.beta)
    bb = BlockBuilder()
    x = RelaxVar("x", TensorStructInfo(shape, "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.multiply(x, const(alpha, "float32")))
            y = bb.emit(op.add(y, const(beta, "float32")))
            out = bb.emit_output(op.clip(y, 0.0, v.top))
        bb.emit_func_output(out)
    return bb.get()


def _given(attrs: dict[str, float]) -> str:
    return ", ".join(f"{k} = {x}" for k, x in attrs.items()) or "left out"


def computes(v: Values, cases: list[dict[str, float]]):
    """It computes the operator with these attributes."""
    def by(call):
        for attrs in cases:
            for shape in SHAPES:
                mod = program_in(call("convert", shape, attrs))
                wrong = difference(mod, right(v, shape, attrs), 1)
                if wrong:
                    return Found(False, f"with the attributes {_given(attrs)}: {wrong}")
        return Found(True, "the same results on random inputs")
    return by


def refuses(v: Values):
    """It raises an error that names an attribute which it does not know."""
    def by(call):
        try:
            call("convert", SHAPES[0], {"alpha": 0.25, "gamma": 3.0})
        except Stopped:
            raise
        except Failed as error:
            return Found("gamma" in str(error), str(error) if "gamma" in str(error) else
                         f"its error is {error}: it does not say which attribute")
        return Found(False, "an attribute gamma = 3.0 was passed over: the model that was imported "
                     "computes something else, and nobody is told")
    return by


def text(expression: str, check: bool = True, default: str = "") -> str:
    """A rule."""
    lines = """
    unknown = set(attrs) - {"alpha", "beta"}
    if unknown:
        raise ValueError(f"HardSigmoid: attributes {sorted(unknown)} are not known")""" * check
    return f"""
def convert(bb, inputs, attrs):{lines}
    x = inputs[0]
{default}
    {expression}
"""


def given(v: Values) -> str:
    """The attributes, with their defaults."""
    return (f"    alpha, beta = attrs.get('alpha', {v.alpha}), attrs.get('beta', {v.beta})")


WHOLE = """y = bb.emit(relax.op.multiply(x, relax.const(alpha, "float32")))
    y = bb.emit(relax.op.add(y, relax.const(beta, "float32")))
    return bb.emit(relax.op.clip(y, 0, {top}))"""


EXERCISE = Exercise(
    id="11.1",
    title="A row of an importer",
    level=2,
    minutes=20,
    kind="function",
    statement="""\
A framework has the operator `HardSigmoid`: it gives `min({top}, max(0, alpha * x + beta))` for
each element. Its attributes `alpha` and `beta` may be left out; then they are {alpha} and {beta}.

Write the rule with which an importer translates it: `def convert(bb, inputs, attrs)`. `bb` is a
`relax.BlockBuilder` within a function, `inputs` the operands (here one, of float32), `attrs` a
dict. It emits operators of Relax (`bb.emit(relax.op...)`) and returns the result. An attribute
that it does not know is an error, which names it.""",
    draw=lambda rng: {"alpha": rng.choice([0.2, 0.25, 0.15]), "beta": rng.choice([0.5, 0.4]),
                      "top": rng.choice([1, 2])},
    checks=lambda v: [
        row("function", 2, "it computes the operator", prelude=PRELUDE,
            by=computes(v, [{"alpha": 0.75, "beta": -0.5}]), decides=True),
        row("function", 1, "attributes that are left out", prelude=PRELUDE,
            by=computes(v, [{}, {"beta": 1.0}])),
        row("function", 1, "an attribute that it does not know is named", prelude=PRELUDE,
            by=refuses(v)),
    ],
    hints=(
        "Three operators: multiply, add, and one that keeps a value within bounds.",
        'relax.const(alpha, "float32") is a number as an operand; relax.op.clip(y, 0, {top}) keeps '
        "within bounds; attrs.get(name, default) reads what may be left out.",
        'set(attrs) - {"alpha", "beta"} are the attributes that you do not know: raise a '
        "ValueError that lists them. Then emit multiply, add and clip.",
    ),
    reference=lambda v: text(WHOLE.replace("{top}", str(v.top)), default=given(v)),
    wrong=lambda v: [
        Wrong(text(WHOLE.replace("{top}", str(v.top)), check=False, default=given(v)), 3,
              "was passed over"),
        Wrong(text(WHOLE.replace("{top}", str(v.top)),
                   default="    alpha, beta = attrs['alpha'], attrs['beta']"), 3, "KeyError"),
        Wrong(text("return bb.emit(relax.op.sigmoid(x))"), 0, "and should be"),
        Wrong(text(WHOLE.replace("{top}", str(v.top)), default=f"    alpha, beta = {v.alpha}, "
                   f"{v.beta}"), 0, "with the attributes alpha = "),
    ],
)
