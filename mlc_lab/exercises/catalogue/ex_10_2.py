"""10.2  The tuned kernel is put back into the model."""

from __future__ import annotations

import random

from ...ir.module import IRModule
from ...ir.structural import structural_equal
from ...schedule import Schedule
from ...script import from_source
from ..checks.function import PROGRAMS, program_in
from ..exercise import Exercise, Values, Wrong, row
from ..result import Found

PRELUDE = PROGRAMS + """
def call(names, name, model, tuned, kernel, gives, by, returns):
    mod, best = from_source(model), from_source(tuned)
    best = best if gives == "mod" else best["main"]
    which = mod.get_global_var(kernel) if by == "gv" else kernel
    out = names[name](mod, best, which)
    if returns == "new":
        return [out.script(), mod.script(), False]
    return [mod.script(), "", out is not None]
"""
#: the kernels of the model: the one that was tuned, and its neighbour
KERNELS = ("linear0", "linear1")


def model(v: Values) -> IRModule:
    """A model of two layers of the same size."""
    kernels = "".join(f"""
    @T.prim_func(private=True)
    def {name}(X: T.Buffer((1, {v.n}), "float32"), W: T.Buffer(({v.n}, {v.n}), "float32"),
               Y: T.Buffer((1, {v.n}), "float32")):
        for j, k in T.grid({v.n}, {v.n}):
            with T.block("Y"):
                vj, vk = T.axis.remap("SR", [j, k])
                with T.init():
                    Y[0, vj] = T.float32(0)
                Y[0, vj] = Y[0, vj] + X[0, vk] * W[vj, vk]
""" for name in KERNELS)
    return from_source(f"""
@I.ir_module
class Module:{kernels}
    @R.function
    def main(x: R.Tensor((1, {v.n}), "float32"), w0: R.Tensor(({v.n}, {v.n}), "float32"),
             w1: R.Tensor(({v.n}, {v.n}), "float32")):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.linear0, (x, w0), R.Tensor((1, {v.n}), "float32"))
            b = R.nn.relu(a)
            c = R.call_tir(cls.linear1, (b, w1), R.Tensor((1, {v.n}), "float32"))
            R.output(c)
        return c
""")


def tuned(v: Values, kernel: str) -> IRModule:
    """A kernel as a search gave it back: scheduled, and called main."""
    func = model(v)[kernel].with_attr("global_symbol", "main")
    sch = Schedule(IRModule({"main": func}))
    j, k = sch.get_loops(sch.get_block("Y"))
    j0, j1 = sch.split(j, [None, v.lanes])
    sch.reorder(j0, k, j1)
    sch.parallel(j0)
    return sch.mod


def judged(v: Values, what: str):
    """Look at the model that comes back: its "kernel", the "rest", the "name"."""
    def by(call):
        for kernel in KERNELS:
            before, new = model(v), tuned(v, kernel)
            out, given, returned = call("put_back", before.script(), new.script(), kernel, v.kind,
                                        v.by, v.returns)
            if returned:
                return Found(False, "put_back returned something: it is to change the model that "
                             "it is given")
            mod = program_in(out)
            if what == "rest" and given and not structural_equal(program_in(given), before,
                                                                 map_free_vars=True):
                return Found(False, "the model that was given has changed too: change a copy of it")
            found = {gv.name_hint: f for gv, f in mod.functions.items()}
            if kernel not in found:
                return Found(False, f"there is no {kernel} in the model any more, which main calls")
            have, want = found[kernel], new["main"]
            same = structural_equal(have.without_attr("global_symbol"),
                                    want.without_attr("global_symbol"), map_free_vars=True)
            if what == "kernel" and not same:
                return Found(False, f"{kernel} in the model is not the tuned program. main calls "
                             f"it by the GlobalVar of {kernel}: what that stands for has to be "
                             "exchanged (update_func), a function of another name is called by "
                             "nobody")
            symbol = have.attrs.get("global_symbol")
            if what == "name" and symbol is not None and str(symbol) != kernel:
                return Found(False, f"{kernel} has the global_symbol {str(symbol)!r}, as the "
                             "search gave it: the machine code would be called so. Give it its "
                             "name back (with_attr)")
            others = {n: f for n, f in found.items() if n != kernel}
            right = {gv.name_hint: f for gv, f in before.functions.items()
                     if gv.name_hint != kernel}
            if what == "rest" and set(others) != set(right):
                return Found(False, f"the model has the functions {', '.join(sorted(found))}; it "
                             f"had {', '.join(sorted([*right, kernel]))}")
            for name, f in right.items():
                if what == "rest" and not structural_equal(others[name], f, map_free_vars=True):
                    return Found(False, f"{name} has changed, and only {kernel} was tuned")
        return Found(True)
    return by


#: how the tuned kernel is handed over, and how the kernel that it was is named
TUNED = {"func": 'sch.mod["main"]', "mod": "sch.mod"}
NAMED = {"name": '"linear0"', "gv": 'model.get_global_var("linear0")'}
#: what is done with the model
RETURNED = {"new": "returns a copy in which the kernel is exchanged, and leaves the model alone",
            "same": "exchanges the kernel in the model itself, and returns nothing"}


ANSWER = """
def put_back(model, tuned, name):
    out = {out}
    {where}
    return {value}
"""


def answer(v: Values, renamed: bool = True, where: str = "", value: str = "", out: str = "") -> str:
    """The exchange of a kernel; not `renamed`: under the name that the search gave it."""
    func = 'tuned["main"]' if v.kind == "mod" else "tuned"
    name, gv = ("name.name_hint", "name") if v.by == "gv" else (
        "name", "out.get_global_var(name)")
    new = f'{func}.with_attr("global_symbol", {name})' if renamed else func
    copies = v.returns == "new"
    return ANSWER.format(
        out=out or ("tvm.IRModule(dict(model.functions))" if copies else "model"),
        where=(where or f"out.update_func({gv}, {new})").format(func=func),
        value=value or ("out" if copies else "None"))


def draw(rng: random.Random) -> dict[str, object]:
    """The sizes, and how what is needed is handed over."""
    kind, by, returns = (rng.choice(sorted(x)) for x in (TUNED, NAMED, RETURNED))
    return {"n": rng.choice([64, 96, 128, 160]), "lanes": rng.choice([8, 16]), "kind": kind,
            "by": by, "returns": returns, "tuned": TUNED[kind], "named": NAMED[by],
            "returned": RETURNED[returns]}


EXERCISE = Exercise(
    id="10.2",
    title="Put the tuned kernel back",
    level=2,
    minutes=15,
    kind="function",
    statement="""\
A model of two layers of {n} calls the kernels `linear0` and `linear1`. One of them was taken out,
called `main`, and tuned: now the best program stands in `sch.mod["main"]`.

Write `def put_back(model, tuned, name)`, which {returned}.
`model` is an IRModule, `tuned` is `{tuned}` of the search, and `name` tells which kernel it was, as
`{named}`. The tuned kernel is then called where the old one was, and the rest is as before. `tvm`
and `relax` are there already.""",
    draw=draw,
    checks=lambda v: [
        row("function", 2, "the kernel of the model is the tuned one", prelude=PRELUDE,
            by=judged(v, "kernel"), decides=True),
        row("function", 1, "the rest is as it was", prelude=PRELUDE, by=judged(v, "rest")),
        row("function", 1, "it has its own name", prelude=PRELUDE, by=judged(v, "name")),
    ],
    hints=(
        "main calls a GlobalVar, and the module says which function that stands for.",
        "model.get_global_var(name) is the GlobalVar, model.update_func(gv, func) exchanges what "
        "it stands for.",
        'func.with_attr("global_symbol", name) is the kernel under its name, and '
        "tvm.IRModule(dict(model.functions)) a copy of the model. A GlobalVar has a name_hint.",
    ),
    reference=answer,
    wrong=lambda v: [
        Wrong(answer(v, renamed=False), 3, "Give it its name back"),
        Wrong(answer(v, where='out["tuned"] = {func}.with_attr("global_symbol", "tuned")'), 0,
              "is called by nobody"),
        Wrong(answer(v, where="for n in 'linear0', 'linear1': out.update_func("
                     "out.get_global_var(n), {func}.with_attr('global_symbol', n))"), 3,
              "has changed, and only"),
        Wrong(answer(v, out="model"), 3, "change a copy of it") if v.returns == "new" else
        Wrong(answer(v, value="out"), 0, "put_back returned something"),
    ],
)
