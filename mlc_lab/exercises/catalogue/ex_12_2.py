"""12.2  A pattern that finds a layer in any of its forms."""

from __future__ import annotations

from ...relax.analysis import get_var2val
from ...relax.dpl import is_op, wildcard
from ...script import from_source
from ..checks.function import PROGRAMS
from ..exercise import Exercise, Values, Wrong, row
from ..result import Found

PRELUDE = PROGRAMS + """
from mlc_lab.relax.dpl import DFPattern, is_const, is_op, is_tuple, wildcard
given.update(is_op=is_op, wildcard=wildcard, is_const=is_const, is_tuple=is_tuple)
def call(names, name, model):
    func = from_source(model)["main"]
    values, pattern = relax.analysis.get_var2val(func), names[name]()
    if not isinstance(pattern, DFPattern):
        raise TypeError(f"pattern() returned a {type(pattern).__name__}, no pattern")
    return [b.var.name_hint for block in func.body.blocks for b in block.bindings
            if pattern.match(b.var, values)]
"""


def reference_pattern(v: Values):
    """A product, plus something on either side, through one of two activations."""
    product = is_op("relax.matmul")(wildcard(), wildcard())
    biased = is_op("relax.add")(product, wildcard()) | is_op("relax.add")(wildcard(), product)
    return is_op(f"relax.{v.one}")(biased) | is_op(f"relax.{v.two}")(biased)


#: what the models consist of, by what their rows look for
MODELS = {
    "plain": ("m = R.matmul(x, w)", "s = R.add(m, b)", "hit = R.ONE(s)", "t = R.add(hit, b)",
              "u = R.OTHER(t)", "out = R.multiply(u, u)"),
    "either": ("m = R.matmul(x, w)", "s = R.add(b, m)", "hit1 = R.ONE(s)",
               "n = R.matmul(hit1, w)", "t = R.add(n, b)", "hit2 = R.TWO(t)",
               "out = R.add(hit2, b)"),
    "not": ("a = R.ONE(x)", "m = R.matmul(a, w)", "n = R.TWO(m)", "s = R.multiply(m, b)",
            "o = R.ONE(s)", "t = R.add(o, n)", "out = R.TWO(t)"),
}


def model(v: Values, name: str):
    """One of the models, as a module."""
    lines = [line.replace("OTHER", v.other).replace("ONE", v.one).replace("TWO", v.two)
             for line in MODELS[name]]
    body = "\n".join(" " * 12 + line for line in lines)
    return from_source(f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, {v.m}), "float32"), w: R.Tensor(({v.m}, {v.m}), "float32"),
             b: R.Tensor(({v.m},), "float32")):
        with R.dataflow():
{body}
            R.output(out)
        return out
""")


def right(v: Values, name: str) -> list[str]:
    """The bindings that are found, by the lab's own pattern."""
    func = model(v, name)["main"]
    values, pattern = get_var2val(func), reference_pattern(v)
    return [b.var.name_hint for block in func.body.blocks for b in block.bindings
            if pattern.match(b.var, values)]


def judged(v: Values, name: str):
    """It finds what is there in a model, and nothing else."""
    def by(call):
        mod, want = model(v, name), right(v, name)
        have = call("pattern", mod.script())
        if have == want:
            return Found(True, f"found: {', '.join(want) or 'nothing'}")
        have = [str(n) for n in have] if isinstance(have, list) else [str(have)]
        more, less = [n for n in have if n not in want], [n for n in want if n not in have]
        says = "; ".join([f"it finds {', '.join(more)}, which is no such layer"] * bool(more)
                         + [f"it does not find {', '.join(less)}"] * bool(less))
        return Found(False, says, {"text": mod.script()})
    return by


def text(body: str) -> str:
    """An answer of a few lines."""
    return "def pattern():\n" + "\n".join(f"    {line}" for line in body.split("\n"))


def lines(v: Values, biased: str = "", activation: str = "") -> str:
    """The reference as text, or a part of it otherwise."""
    biased = biased or ('is_op("relax.add")(product, wildcard()) | '
                        'is_op("relax.add")(wildcard(), product)')
    activation = activation or (f'is_op("relax.{v.one}")(biased) | '
                                f'is_op("relax.{v.two}")(biased)')
    return text(f'product = is_op("relax.matmul")(wildcard(), wildcard())\nbiased = {biased}\n'
                f"return {activation}")


ACTIVATIONS = ("nn.relu", "nn.gelu", "nn.silu", "nn.softplus", "sigmoid", "tanh")


def draw(rng) -> dict:
    """Two activations that are looked for, and one that is not."""
    one, two, other = rng.sample(ACTIVATIONS, 3)
    return {"one": one, "two": two, "other": other, "m": rng.choice([6, 8, 12])}


EXERCISE = Exercise(
    id="12.2",
    title="A pattern for a layer",
    level=2,
    minutes=20,
    kind="function",
    statement="""\
A layer is a product (`relax.matmul`), a bias that is added to it (`relax.add`; the product may be
its first operand or its second), and behind that `relax.{one}` or `relax.{two}`.

Write `def pattern()`, which returns a pattern of `relax.dpl` that matches the last call of each
such layer and no other call. `is_op` and `wildcard` are there already: `is_op("relax.add")(p, q)`
is a call of add with operands that match `p` and `q`; `wildcard()` matches anything; `p | q` is
either.""",
    draw=draw,
    checks=lambda v: [
        row("function", 1, "it finds a plain layer", prelude=PRELUDE, by=judged(v, "plain"),
            decides=True),
        row("function", 2, "it finds each form of it", prelude=PRELUDE, by=judged(v, "either")),
        row("function", 1, "it finds nothing that is none", prelude=PRELUDE, by=judged(v, "not")),
    ],
    hints=(
        "Build it from the inside: first the product, then the addition of it, then the "
        "activation.",
        "An addition of the product has two forms, add(product, bias) and add(bias, product): "
        "write both, with | between them.",
        'biased = is_op("relax.add")(product, wildcard()) | is_op("relax.add")(wildcard(), '
        'product); return is_op("relax.{one}")(biased) | is_op("relax.{two}")(biased).',
    ),
    reference=lines,
    wrong=lambda v: [
        Wrong(lines(v, 'is_op("relax.add")(product, wildcard())'), 2, "it does not find hit1"),
        Wrong(lines(v, "", f'is_op("relax.{v.one}")(biased)'), 2, "it does not find hit2"),
        Wrong(lines(v, "wildcard()"), 3, "which is no such layer"),
        Wrong(text("return 'relax.matmul'"), 0, "returned a str, no pattern"),
        Wrong(lines(v, 'is_op("relax.add")(wildcard(), wildcard())'), 3, "which is no such layer"),
    ],
)
