"""21.3  A pass that makes products of powers, where nothing is computed twice by it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np

from ...backend.interp import interpret
from ...ir.module import IRModule
from ...observe.measure import only_function, random_arrays
from ...script import from_source
from ...tir.expr import Call, FloatImm
from ...tir.functor import pre_order
from ..checks.function import PROGRAMS, program_in
from ..exercise import Exercise, Values, Wrong, row
from ..result import Found

PRELUDE = PROGRAMS + """
def call(names, name, program):
    return names[name](from_source(program)).script()
"""
NAMES = ("no_powers", "multiply_out", "by_products", "without_pow")


def programs(v: Values) -> list[str]:
    """Functions with powers that are to become products, and with others."""
    def func(*stores: str) -> str:
        body = "\n".join(f"""\
    for i in range({v.n}):
        with T.block("b{number}"):
            vi = T.axis.spatial({v.n}, i)
            {store}""" for number, store in enumerate(stores))
        return f"""
@T.prim_func
def main(A: T.Buffer(({v.n},), "{v.dtype}"), B: T.Buffer(({v.n},), "{v.dtype}"),
         C: T.Buffer(({v.n},), "{v.dtype}")):
    T.func_attr({{"tir.noalias": True, "level": {v.n}}})
{body}
"""

    f, k, other = f"T.{v.dtype}", f"T.{v.dtype}({v.k})", f"T.{v.dtype}({v.other})"
    return [
        func(f"C[vi] = T.pow(A[vi], {k}) * B[vi]"),
        func(f"B[vi] = T.pow(A[vi] + {f}(1), {k})", f"C[vi] = T.max(B[vi], T.pow(A[vi] - B[vi] * "
             f"{f}(0.5), {k}))"),
        func(f"C[vi] = T.pow(A[vi], {other}) + T.pow(B[vi], {k})"),
        func(f"C[vi] = T.pow(T.exp(A[vi]), {k}) + T.pow(B[vi] * T.tanh(A[vi]), {k})"),
        func(f"C[vi] = T.pow(T.abs(A[vi]) + {f}(1), B[vi])"),
    ]


def is_power(node: Any) -> bool:
    """Whether an expression is a power."""
    return type(node) is Call and node.op.name == "tir.pow"


def facts(v: Values, mod: IRModule) -> dict[str, Any]:
    """The powers of a program that are to become products, and the others; and all other calls."""
    body = only_function(mod)[1].body
    calls = [node for node in pre_order(body) if type(node) is Call]
    cheap, kept = 0, 0
    for node in filter(is_power, calls):
        base, power = node.args
        asked = type(power) is FloatImm and power.value == v.k
        if asked and not any(type(part) is Call for part in pre_order(base)):
            cheap += 1
        else:
            kept += 1
    others = Counter(node.op.name.removeprefix("tir.") for node in calls if not is_power(node))
    return {"cheap": cheap, "kept": kept, "others": others}


def differs(v: Values, mod: IRModule, program: IRModule) -> str:
    """How the results of a program differ from those of another one, or ""."""
    arrays = random_arrays(only_function(program)[1], {}, 1)
    have, want = ([a.copy() for a in arrays] for _ in range(2))
    interpret(program, *want, func_name=only_function(program)[0])
    interpret(mod, *have, func_name=only_function(mod)[0], most_steps=100_000)
    for name, a, b in zip("ABC", have, want):
        bad = np.argwhere(~np.isclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True))
        if len(bad):
            at = int(bad[0][0])
            element = f"{name}[{at}]"
            return f"{element} is {a[at]:.6g}, and should be {b[at]:.6g}"
    return ""


def judged(v: Values, what: str):
    """Look at programs behind the pass: "same", "gone", "rest", "attributes"."""
    def by(call):
        for source in programs(v):
            program = from_source(source)
            program = program if isinstance(program, IRModule) else IRModule({"main": program})
            new = program_in(call(v.name, source))
            problem = told(v, what, program, new)
            if problem:
                return Found(False, problem, {"text": new.script()})
        return Found(True)
    return by


def told(v: Values, what: str, program: IRModule, new: IRModule) -> str:
    """What is wrong with what the pass made of a program, or ""."""
    if what == "same":
        params = [only_function(mod)[1].buffer_map.values() for mod in (new, program)]
        have, want = ([(tuple(map(str, b.shape)), b.dtype) for b in buffers] for buffers in params)
        if have != want:
            return "its parameters are others than those of the program that it was given"
        return differs(v, new, program)
    before, after = facts(v, program), facts(v, new)
    if what == "gone" and after["cheap"]:
        return (f"{after['cheap']} powers by {v.k} are left, whose base has no call; there were "
                f"{before['cheap']}")
    if what == "rest":
        for name, count in after["others"].items():
            if count > before["others"][name]:
                return (f"T.{name} is called {count} times, and there were "
                        f"{before['others'][name]}: "
                        "what is written several times is computed several times")
        if after["kept"] != before["kept"]:
            return (f"{after['kept']} other powers are left, and there were {before['kept']}: of "
                    "another exponent, of one that is no constant, or of a base with a call")
    if what == "attributes":
        have, want = (only_function(mod)[1].attrs for mod in (new, program))
        lost = [name for name in ("tir.noalias", "level") if have.get(name) != want.get(name)]
        if lost:
            return f"the function has lost its attribute {lost[0]}"
    return ""


PASS = """
def {name}(func):
    def has_call(e):
        found = []
        tir.stmt_functor.post_order_visit(
            e, lambda part: found.append(part) if isinstance(part, tir.Call) else None)
        return bool(found)

    def instead(call):
        if call.op.name != "tir.pow":
            return None
        base, power = call.args
        if not isinstance(power, tir.FloatImm) or {number}:
            return None
        if has_call(base):
            return None
        return {product}

    body = tir.stmt_functor.ir_transform(func.body, None, instead, ["tir.Call"])
    return {result}
"""


def answer(v: Values, number: str = "power.value != {k}", calls: bool = True, times: int = 0,
           result: str = "func.with_body(body)") -> str:
    """The pass, or one that forgets something."""
    return PASS.replace("has_call(base)", "has_call(base)" if calls else "False").format(
        name=v.name, number=number.format(k=v.k), result=result,
        product=" * ".join(["base"] * (times or v.k)))


def draw(rng: random.Random) -> dict[str, object]:
    """The exponent, and one that stays."""
    k = rng.choice([2, 3, 4, 5])
    return {"k": k, "other": rng.choice([n for n in (2, 3, 4, 5) if n != k]),
            "dtype": rng.choice(["float32", "float64"]), "name": rng.choice(NAMES),
            "n": rng.choice([5, 6, 8])}


EXERCISE = Exercise(
    id="21.3",
    title="A pass against powers",
    level=3,
    minutes=25,
    kind="function",
    statement="""\
A power costs as much as many products. Write the pass `def {name}(func)`: it takes a `PrimFunc` and
returns one in which each `T.pow(x, T.{dtype}({k}))` has become a product of {k} factors `x`.

The base is written {k} times then. So a power whose base has a call in it, of whatever function,
stays as it is. Powers by other numbers stay too, and by what is no constant. The function keeps its
attributes.

`tir` is there already: `tir.stmt_functor.ir_transform(func.body, None, instead, ["tir.Call"])` asks
`instead` at each call, which has `call.op.name` (`"tir.pow"`) and `call.args`.""",
    draw=draw,
    checks=lambda v: [
        row("function", 1, "programs compute the same", prelude=PRELUDE, by=judged(v, "same"),
            decides=True),
        row("function", 2, f"powers by {v.k} are products", prelude=PRELUDE,
            by=judged(v, "gone")),
        row("function", 2, "other powers stay, and no call is written twice", prelude=PRELUDE,
            by=judged(v, "rest")),
        row("function", 1, "attributes are kept", prelude=PRELUDE, by=judged(v, "attributes")),
    ],
    hints=(
        "The pass of the lesson looks for products by two. What does it ask of a node, and what "
        "does it not ask, although it writes its operand twice?",
        'A power is a tir.Call with call.op.name == "tir.pow", its exponent a tir.FloatImm with '
        "power.value == {k}. tir.stmt_functor.post_order_visit(base, f) shows f each part of the "
        "base.",
        "If one of these parts is a tir.Call, give back None; else the product of {k} times base. "
        "func.with_body(body) keeps the attributes.",
    ),
    reference=answer,
    wrong=lambda v: [
        Wrong(answer(v, calls=False), 4, "what is written several times"),
        Wrong(answer(v, times=v.k + 1), 0, "and should be"),
        Wrong(answer(v, number="False"), 0, "and should be"),
        Wrong(answer(v, result="tir.PrimFunc(func.params, body, buffer_map=func.buffer_map)"), 5,
              "has lost its attribute"),
        Wrong(f"def {v.name}(func):\n    return func", 4, f"powers by {v.k} are left"),
    ],
)
