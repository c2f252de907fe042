"""21.1  Say what a pass makes of a program: on the way down, or on the way up."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from ...ir.structural import structural_equal
from ...observe.measure import only_function
from ...script import from_source
from ...tir.expr import Add, BufferLoad, Call, FloatImm, Mul
from ...tir.functor import ir_transform, pre_order
from ...tir.stmt import BufferStore
from ..exercise import Exercise, Values, Wrong, row
from ..result import Found

#: terms of the expression; 2 stands for the factor that the pass looks for
TERMS = ("2 * B[vi]", "(A[vi] * B[vi]) * 2", "T.exp(B[vi] * 2)", "A[vi] * 4",
         "(A[vi] + 2) * 2", "T.max(B[vi] * 2, A[vi])")
#: what is drawn with each of them: the pass replaces a product within a product that it replaces
NESTED = ("A[vi] * 2 * 2", "(B[vi] * 2 + A[vi]) * 2", "(A[vi] * 2) * B[vi] * 2")
#: the functions that `ir_transform` is given: asked before a node's parts are seen, and after
WAYS = {"down": ("instead", "None"), "up": ("None", "instead")}
#: what is counted in an expression, and what it is called
PARTS = {Mul: "products of two", Add: "sums of two", BufferLoad: "loads of elements",
         Call: "calls of functions"}


def text(v: Values, expression: str) -> str:
    """A program whose one statement stores an expression."""
    expression = expression.replace("2", 'T.float32(2)').replace("4", "T.float32(4)")
    return f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer(({v.n},), "float32"), B: T.Buffer(({v.n},), "float32"),
             C: T.Buffer(({v.n},), "float32")):
        for i in range({v.n}):
            with T.block("C"):
                vi = T.axis.spatial({v.n}, i)
                C[vi] = {expression}
"""


def program(v: Values):
    """What the pass is given."""
    return from_source(text(v, v.expression))


def passed(v: Values, way: str = ""):
    """What the pass makes of it."""
    def instead(node: Mul) -> Any:
        if isinstance(node.b, FloatImm) and node.b.value == 2:
            return node.a + node.a
        return None

    before, after = (instead, None) if (way or v.way) == "down" else (None, instead)
    mod = program(v).copy()
    name, func = only_function(mod)
    body = ir_transform(func.body, before, after, ["tir.Mul"])
    mod.update_func(mod.get_global_var(name), func.with_body(body))
    return mod


def by_pass(answer, variant) -> Found:
    """Whether an answer is the program that the pass makes; else what it has more or less of."""
    want = only_function(passed(variant.values))[1]
    have = only_function(answer.mod)[1]
    if structural_equal(have.with_attrs(want.attrs), want, map_free_vars=True):
        return Found(True)
    for number, (ours, theirs) in enumerate(zip(terms(have), terms(want)), 1):
        counted = [Counter(PARTS[type(node)] for node in pre_order(value) if type(node) in PARTS)
                   for value in (ours, theirs)]
        for what in PARTS.values():
            mine, asked = (found[what] for found in counted)
            if mine != asked:
                return Found(False, f"term {number} of your sum has {mine} {what}, that of the pass"
                             f" has {asked}")
    return Found(False, "it has the operations of the pass's program, but not in its order, or not "
                        "of the same operands")


def terms(func) -> list[Any]:
    """The three terms that a function adds up, or all that it stores where it does not."""
    stores = [node.value for node in pre_order(func.body) if type(node) is BufferStore]
    total = stores[0] if len(stores) == 1 else None
    if type(total) is Add and type(total.a) is Add:
        return [total.a.a, total.a.b, total.b]
    return stores


def draw(rng: random.Random) -> dict[str, object]:
    """The way of the pass, and the terms."""
    way = rng.choice(sorted(WAYS))
    terms = [rng.choice(NESTED), *rng.sample(TERMS, 2)]
    rng.shuffle(terms)
    return {"way": way, "first": WAYS[way][0], "second": WAYS[way][1],
            "n": rng.choice([8, 12, 16]), "expression": " + ".join(f"({term})" for term in terms)}


EXERCISE = Exercise(
    id="21.1",
    title="What the pass makes",
    level=2,
    minutes=10,
    kind="program",
    statement="""\
A pass asks `instead` at each product whether something else is to stand in its place:

```python
def instead(node):                     # node is a product, node.a * node.b
    if isinstance(node.b, tir.FloatImm) and node.b.value == 2:
        return node.a + node.a
    return None                        # it stays

body = tir.stmt_functor.ir_transform(func.body, {first}, {second}, ["tir.Mul"])
```

The first function that `ir_transform` is given is asked before the parts of a node are looked at,
and what it puts there is not looked at again; the second one is asked afterwards, with the parts as
they have become. Here one of them is `None`.

Write the program that this pass makes of the given one, by hand. Nothing else is simplified.""",
    draw=draw,
    program=program,
    checks=lambda v: [
        row("equivalent", 1, "it computes the same"),
        row("own", 3, "it is the program that the pass makes", by=by_pass),
    ],
    hints=(
        "Go through the products one by one. Of which of them is the right operand the constant 2?",
        "One product that is replaced stands inside of another one. Is the inner one replaced "
        "before it is written twice, or is it written twice as it is, and never looked at?",
        "A product 2 * x has its constant on the left and stays; so does one by 4. With `instead` "
        "as the second function x * 2 * 2 becomes (x + x) + (x + x), with `instead` as the first "
        "one (x * 2) + (x * 2).",
    ),
    reference=lambda v: passed(v).script(),
    wrong=lambda v: [
        Wrong(text(v, v.expression), 1, "that of the pass has"),
        Wrong(passed(v, "up" if v.way == "down" else "down").script(), 1, "that of the pass has"),
        Wrong(text(v, v.expression.replace("2", "4")), 0, "and should be"),
    ],
)
