"""12.1  A pass that fuses a dense layer with the activation behind it."""

from __future__ import annotations

import random
from typing import Any

from ...ir.module import IRModule
from ...relax import expr as rx
from ...relax.expr_functor import post_order_visit
from ...script import from_source
from ...tir.expr import Op
from ..checks.function import PROGRAMS, program_in
from ..checks.graph_results import difference
from ..exercise import Exercise, Values, Wrong, row
from ..result import Found

PRELUDE = PROGRAMS + """
def call(names, name, model):
    return names[name](from_source(model)).script()
"""
MATMUL = "relax.matmul"
#: what may stand behind a product, and what else the models have
ACTIVATIONS = ("nn.gelu", "nn.silu", "nn.softplus", "sigmoid", "tanh", "erf")


def models(v: Values) -> list[IRModule]:
    """Layers with the activation behind them, without it, and with a product that is used twice;
    and with another activation."""
    n, m, act, other = v.n, v.m, f"R.{v.one}", f"R.{v.other}"

    def model(*lines: str) -> IRModule:
        body = "\n".join(" " * 12 + line for line in lines)
        last = lines[-1].split(" ")[0]
        return from_source(f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({n}, {m}), "float32"), w: R.Tensor(({m}, {m}), "float32"),
             u: R.Tensor(({m}, {m}), "float32")):
        with R.dataflow():
{body}
            R.output({last})
        return {last}
""")

    return [model("a = R.matmul(x, w)", f"b = {act}(a)", "c = R.matmul(b, u)",
                  f"d = {act}(c)"),
            model("a = R.matmul(x, w)", "b = R.nn.relu(a)", f"c = {act}(b)"),
            model(f"a = {act}(x)", "b = R.matmul(a, w)", "c = R.add(b, a)"),
            model("a = R.matmul(x, w)", f"b = {act}(a)", "c = R.add(a, b)",
                  "d = R.matmul(c, u)", f"e = {act}(d)"),
            model("a = R.matmul(x, w)", f"b = {other}(a)", "c = R.matmul(b, u)", f"d = {act}(c)")]


def calls(func: rx.Function) -> list[rx.Call]:
    """All calls of a function that is used, in their order."""
    found: list[rx.Call] = []
    post_order_visit(func, lambda e: found.append(e) if isinstance(e, rx.Call) else None)
    return found


def name_of(call: rx.Call) -> str:
    """The operator that is called, or the function."""
    return call.op.name if isinstance(call.op, Op) else getattr(call.op, "name_hint", "")


def facts(v: Values, mod: IRModule) -> dict[str, Any]:
    """What main calls: operators, products in all, groups of a product with its activation."""
    functions = {gv.name_hint: f for gv, f in mod.functions.items() if isinstance(f, rx.Function)}
    own = [name_of(c) for c in calls(functions["main"])]
    products, groups, other = own.count(MATMUL), 0, []
    for name in own:
        if name in functions:
            inside = [name_of(c) for c in calls(functions[name])]
            products += inside.count(MATMUL)
            marked = functions[name].attrs.get("Primitive")
            if inside == [MATMUL, f"relax.{v.one}"] and marked is not None and int(marked):
                groups += 1
            else:
                other.append((name, inside, marked))
    return {"own": own, "products": products, "groups": groups, "other": other}


def judged(v: Values, what: str):
    """Look at models behind the pass: "same", "fused", "rest"."""
    def by(call):
        for number, mod in enumerate(models(v)):
            new = program_in(call("fuse", mod.script()))
            if what == "same":
                wrong = difference(new, mod, 1)
                if wrong:
                    return Found(False, f"{wrong}; the model was", {"text": mod.script()})
                continue
            have = facts(v, new)
            wanted = (2, 0, 0, 1, 1)[number]
            if what == "fused" and have["groups"] < wanted:
                return Found(False, told(v, have, wanted), {"text": new.script()})
            if what == "rest":
                wrong = rest(v, facts(v, mod), have)
                if wrong:
                    return Found(False, wrong, {"text": new.script()})
        return Found(True)
    return by


def told(v: Values, have: dict[str, Any], wanted: int) -> str:
    """Why there are too few groups."""
    says = f"{have['groups']} products are in one function with their {v.one}, {wanted} could be"
    for name, inside, marked in have["other"]:
        if inside == [MATMUL, f"relax.{v.one}"] and not marked:
            return f'{says}; {name} has no attribute "Primitive", so no pass makes a kernel of it'
        return f"{says}; {name} calls {', '.join(inside) or 'nothing'}"
    if MATMUL in have["own"] and f"relax.{v.one}" in have["own"]:
        return f"{says}; main still calls both"
    return says


def rest(v: Values, before: dict[str, Any], have: dict[str, Any]) -> str:
    """What was fused, or made twice, that should not be; or ""."""
    if have["products"] > before["products"]:
        return (f"{have['products']} products are computed, and there were {before['products']}: a "
                "product that something else uses, too, is made once more in the group")
    kept = ("relax.nn.relu", "relax.add", f"relax.{v.other}")
    lost = [name for name in kept if before["own"].count(name) != have["own"].count(name)]
    if lost:
        return (f"{lost[0]} is no longer called by main: only products with their {v.one} "
                "go into groups")
    return ""


FUSOR = """
@relax.expr_functor.mutator
class Fusor(relax.PyExprMutator):
    def __init__(self, mod):
        super().__init__()
        self.mod, self.count = mod, 0

    def transform(self):
        for gv, func in list(self.mod.functions.items()):
            new = relax.analysis.remove_all_unused(self.visit_expr(func))
            self.builder_.update_func(gv, new)
        return self.builder_.get()

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if call.op != tvm.ir.Op.get("relax.ACT"):
            return call
        value = self.lookup_binding(call.args[0])
        if not isinstance(value, relax.Call) or value.op != tvm.ir.Op.get("relax.matmul"):
            return call
        x, w = value.args
        px, pw = relax.Var("x", x.struct_info), relax.Var("w", w.struct_info)
        bb, name = relax.BlockBuilder(), f"dense_act{self.count}"
        self.count += 1
        with bb.function(name, [px, pw]):
            with bb.dataflow():
                out = bb.emit_output(relax.op.ACT(bb.emit(relax.op.matmul(px, pw))))
            bb.emit_func_output(out)
        gv = self.builder_.add_func(bb.get()[name]ATTRS, name)
        return relax.Call(gv, [x, w], None, None)

def fuse(mod):
    return Fusor(mod).transform()
"""
REFERENCE = """
from tvm.relax.dpl import is_op, wildcard

def fuse(mod):
    dense = is_op("relax.matmul")(wildcard(), wildcard())
    pattern = is_op("relax.ACT")(dense)
    return relax.transform.FuseOpsByPattern([("dense_act", pattern)])(mod)
"""


def by_hand(v: Values, primitive: bool = True) -> str:
    """The mutator of the lesson, for the activation: it makes products anew that are used twice."""
    return FUSOR.replace("ATTRS", '.with_attr("Primitive", 1)' * primitive).replace("ACT", v.one)


def reference(v: Values) -> str:
    """By a pattern."""
    return REFERENCE.replace("ACT", v.one)


def draw(rng: random.Random) -> dict[str, object]:
    """The sizes, the activation that is looked for, and one that is not."""
    one, other = rng.sample(ACTIVATIONS, 2)
    return {"n": rng.choice([2, 3, 4]), "m": rng.choice([8, 12, 16]), "one": one, "other": other}


EXERCISE = Exercise(
    id="12.1",
    title="Fuse a product and its activation",
    level=3,
    minutes=35,
    kind="function",
    statement="""\
In a model a product (`R.matmul`) is often followed by an activation, here `R.{one}`. Write the
pass `def fuse(mod)`: it takes an IRModule and returns one in which each product with the `R.{one}`
of it stands in a function of its own, which has the attribute `"Primitive"` (1), so that later
passes make one kernel of it. `main` calls that function.

A `R.{one}` of something else stays as it is, and so do all other operators. No product is computed
twice: where something else needs it too, either leave it, or let the function return both.

It is tried on models of {n} by {m}; `tvm` and `relax` are there already. A pattern
(`relax.dpl`) or a mutator as in the lesson will do.""",
    draw=draw,
    checks=lambda v: [
        row("function", 1, "models compute the same", prelude=PRELUDE, by=judged(v, "same"),
            decides=True),
        row("function", 3, "each product with its activation is in a function", prelude=PRELUDE,
            by=judged(v, "fused")),
        row("function", 1, "nothing else is fused or computed twice", prelude=PRELUDE,
            by=judged(v, "rest")),
    ],
    hints=(
        "The lesson has a mutator that fuses matmul with the add behind it. What of it is about "
        "add?",
        "relax.transform.FuseOpsByPattern takes a list of (name, pattern), and looks itself after "
        "products that are used elsewhere.",
        'is_op("relax.{one}")(is_op("relax.matmul")(wildcard(), wildcard())) is the pattern; '
        "is_op and wildcard are in relax.dpl.",
    ),
    reference=reference,
    wrong=lambda v: [
        Wrong("def fuse(mod):\n    return mod", 2, "main still calls both"),
        Wrong(by_hand(v), 4, "is made once more in the group"),
        Wrong(by_hand(v, primitive=False), 1, 'has no attribute "Primitive"'),
        Wrong(REFERENCE.replace("ACT", v.other), 1, "could be"),
    ],
)
