"""Random graphs: Relax passes make of them what apache-tvm's make."""

import random
import re

import pytest

from mlc_lab.ir.structural import structural_equal
from mlc_lab.ir.transform import PassContext
from mlc_lab.relax import transform
from mlc_lab.script import from_source

from .bridge import needs_oracle
from .relax_bridge import ask_passes
from .test_relax_transform import program

pytestmark = needs_oracle

FUSE = ["LegalizeOps()", "AnnotateTIROpPattern()", "FuseOps()"]
PIPELINES = {
    "fuse_ops": FUSE,
    "fuse_tir": [*FUSE, "FuseTIR()"],
    "common": ["EliminateCommonSubexpr()"],
    "canonicalize": ["CanonicalizeBindings()"],
    "dead_code": ["DeadCodeElimination()"],
    "clean": ["EliminateCommonSubexpr()", "CanonicalizeBindings()", "DeadCodeElimination()"],
}
COUNT = 24
#: a call on parameters only: it may stand anywhere
SIMPLE = re.compile(r" *v\d+ = R\.\w+\([xywb](, [xywb])?\)$")


def random_program(seed):
    """The text of a function with one or two dataflow blocks and a few ordinary bindings."""
    rng = random.Random(seed)
    shapes = {"x": (4, 8), "y": (4, 8), "w": (8, 8), "b": (8,)}
    params = ", ".join(f'{n}: R.Tensor({s}, "float32")' for n, s in shapes.items())
    counter = iter(range(1000))
    lines = []

    def step(pool):
        name = f"v{next(counter)}"
        x = rng.choice(pool)
        s = shapes[x]
        kind = rng.choice(["unary", "unary", "binary", "binary", "matmul", "sum", "softmax",
                           "transpose", "alias", "split", "tuple", "again"])
        if kind == "binary":
            others = [v for v in pool if v != x and (shapes[v] == s or shapes[v] == s[-1:])]
            if others:
                text = f"R.{rng.choice(['add', 'multiply', 'maximum'])}({x}, {rng.choice(others)})"
                shapes[name] = s
                return name, [f"{name} = {text}"]
        if kind == "matmul" and len(s) == 2 and s[1] == 8 and x != "w" and "w" in pool:
            shapes[name] = (s[0], 8)
            return name, [f"{name} = R.matmul({x}, w)"]
        if kind == "sum" and len(s) == 2 and not any("R.sum" in t for t in lines):
            shapes[name] = (s[0], 1)
            return name, [f"{name} = R.sum({x}, axis=1, keepdims=True)"]
        if kind == "softmax":
            shapes[name] = s
            return name, [f"{name} = R.nn.softmax({x})"]
        if kind == "transpose" and len(s) == 2:
            shapes[name] = s[::-1]
            return name, [f"{name} = R.permute_dims({x}, axes=[1, 0])"]
        if kind == "alias" and not any(t.endswith(f"= {x}") for t in lines):
            shapes[name] = s
            return name, [f"{name} = {x}"]
        if kind == "split" and s[-1] % 2 == 0:
            shapes[name] = (*s[:-1], s[-1] // 2)
            return name, [f"{name}_t = R.split({x}, 2, axis={len(s) - 1})",
                          f"{name} = {name}_t[{rng.randrange(2)}]"]
        if kind == "tuple":
            shapes[name] = s
            other = rng.choice(pool)
            return name, [f"{name}_t = ({other}, {x})", f"{name} = {name}_t[1]"]
        if kind == "again" and lines:
            simple = [t for t in lines if SIMPLE.match(t)]
            if simple:
                old, text = rng.choice(simple).strip().split(" = ", 1)
                shapes[name] = shapes[old]
                return name, [f"{name} = {text}"]
        shapes[name] = s
        return name, [f"{name} = R.{rng.choice(['exp', 'negative', 'nn.relu', 'tanh'])}({x})"]

    outer = list(shapes)
    for part in range(rng.randint(1, 3)):
        if part:  # blocks that touch would be joined
            for _ in range(rng.randint(1, 3)):
                name, text = step(outer)
                lines += text
                outer.append(name)
        pool = list(outer)
        made = []
        lines.append("with R.dataflow():")
        for _ in range(rng.randint(2, 7)):
            name, text = step(pool)
            lines += [f"    {t}" for t in text]
            pool.append(name)
            made.append(name)
        outs = sorted({made[-1], *rng.sample(made, rng.randint(0, 1))})
        lines.append(f"    R.output({', '.join(outs)})")
        outer += outs
    results = [n for n in outer if n.startswith("v")][-2:]
    lines.append(f"return ({', '.join(results)})" if len(results) > 1 else f"return {results[0]}")
    return program(params, "\n".join(lines))


@pytest.fixture(scope="module")
def answers():
    """What TVM makes of every program by every pipeline, asked at once."""
    programs = [random_program(seed) for seed in range(COUNT)]
    keys = [(p, k) for p in PIPELINES for k in range(COUNT)]
    made = ask_passes([{"program": programs[k], "passes": PIPELINES[p]} for p, k in keys])
    return programs, dict(zip(keys, made))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_random_graphs_become_what_tvm_makes_of_them(pipeline, answers):
    programs, theirs = answers
    scope = {n: getattr(transform, n) for n in transform.PASSES}
    wrong = []
    for k, text in enumerate(programs):
        answer = theirs[pipeline, k]
        assert not isinstance(answer, str), f"{text}\nTVM says {answer}"
        ours = from_source(text)
        with PassContext(opt_level=3):
            for step in PIPELINES[pipeline]:
                ours = eval(step, scope)(ours)
        same = structural_equal(ours, answer)
        if same is not True:
            wrong.append(f"program {k}: {same!r}\n{text}\n--- ours\n{ours.script()}\n"
                         f"--- TVM\n{answer.script()}")
    assert not wrong, f"{len(wrong)} of {COUNT} differ\n" + "\n\n".join(wrong)
