"""Relax passes over whole modules, layouts and patterns make what apache-tvm's make."""

import textwrap

import pytest

from mlc_lab import relax
from mlc_lab.ir.structural import structural_equal
from mlc_lab.ir.transform import PassContext
from mlc_lab.relax import transform
from mlc_lab.relax.dpl import is_op, wildcard
from mlc_lab.script import from_source

from .bridge import needs_oracle
from .relax_bridge import ask_passes
from .test_relax_transform import PROGRAMS, program

pytestmark = needs_oracle

HEADER = "from mlc_lab.script import ir as I, tir as T, relax as R\n\n@I.ir_module\nclass Module:\n"
T4 = 'R.Tensor((4,), "float32")'


def module(text):
    """A module of several functions."""
    return HEADER + textwrap.indent(textwrap.dedent(text).replace("T4", T4).strip() + "\n", "    ")


UNUSED = module("""
    @R.function(private=True)
    def f(x: T4, y: T4, z: T4) -> R.Tuple(T4, T4):
        a = R.exp(x)
        b = R.negative(z)
        return (a, b)

    @R.function
    def main(x: T4) -> T4:
        cls = Module
        t: R.Tuple(T4, T4) = cls.f(x, x, x)
        gv = t[1]
        return gv
""")
TUPLES = module("""
    @R.function(private=True)
    def f(t: R.Tuple(T4, T4), z: T4) -> T4:
        a = t[0]
        b = t[1]
        c = R.add(a, b)
        d = R.add(c, z)
        return d

    @R.function
    def main(x: T4, y: T4) -> T4:
        cls = Module
        gv: T4 = cls.f((x, y), x)
        return gv
""")
INLINE = module("""
    @R.function(private=True)
    def g(x: T4) -> T4:
        y = R.exp(x)
        return y

    @R.function(private=True)
    def f(x: T4) -> T4:
        cls = Module
        y: T4 = cls.g(x)
        z = R.negative(y)
        return z

    @R.function
    def main(x: T4) -> T4:
        cls = Module
        a: T4 = cls.f(x)
        b: T4 = cls.f(a)
        return b
""")
LAMBDA = module("""
    @R.function
    def main(x: T4) -> T4:
        @R.function
        def inner(y: T4) -> T4:
            z = R.exp(y)
            return z

        gv: T4 = inner(x)
        return gv
""")
DEAD = module("""
    @R.function(private=True)
    def used(x: T4) -> T4:
        y = R.exp(x)
        return y

    @R.function(private=True)
    def unused(x: T4) -> T4:
        y = R.exp(x)
        return y

    @R.function
    def main(x: T4) -> T4:
        cls = Module
        a: T4 = cls.used(x)
        b: T4 = cls.used(a)
        return a
""")
WEIGHTS = module("""
    @R.function
    def main(x: R.Tensor((1, 4), "float32"), w: R.Tensor((8, 4), "float32"),
             b: R.Tensor((8,), "float32")) -> R.Tensor((1, 8), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            wt = R.permute_dims(w)
            lv = R.matmul(x, wt)
            b2 = R.exp(b)
            gv = R.add(lv, b2)
            R.output(gv)
        return gv
""")
CONVS = program('x: R.Tensor((1, 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"), '
                'v: R.Tensor((4, 4, 3, 3), "float32"), b: R.Tensor((1, 4, 1, 1), "float32")', """
    with R.dataflow():
        a = R.nn.conv2d(x, w, padding=1)
        c = R.add(a, b)
        d = R.nn.relu(c)
        e = R.nn.max_pool2d(d, (2, 2), (2, 2))
        f = R.nn.conv2d(e, v, padding=1)
        gv = R.add(f, e)
        R.output(gv)
    return gv
""")
NORM = program('x: R.Tensor((1, 4, 8, 8), "float32"), g: R.Tensor((4,), "float32"), '
               'b: R.Tensor((4,), "float32"), m: R.Tensor((4,), "float32"), '
               'v: R.Tensor((4,), "float32")', """
    with R.dataflow():
        t = R.nn.batch_norm(x, g, b, m, v, axis=1, training=False)
        lv = t[0]
        gv = R.nn.relu(lv)
        R.output(gv)
    return gv
""")
SYMBOLIC = program('x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, "m"), "float32")', """
    n = T.int64()
    m = T.int64()
    with R.dataflow():
        lv = R.matmul(x, w)
        gv = R.nn.relu(lv)
        R.output(gv)
    return gv
""")
ORDER = program('x: R.Tensor((4,), "float32")', """
    with R.dataflow():
        a = R.exp(x)
        b = R.negative(x)
        c = R.sqrt(a)
        d = R.tanh(b)
        e = R.add(c, d)
        R.output(e)
    return e
""")
MATMUL_RELU = '("lib.matmul_relu", is_op("relax.nn.relu")(is_op("relax.matmul")(wildcard(), ' \
              'wildcard())))'
MATMUL = '("lib.matmul", is_op("relax.matmul")(wildcard(), wildcard()))'
ADD = '("lib.add", is_op("relax.add")(wildcard(), wildcard()))'

CASES = {
    "unused parameters": (UNUSED, ["RemoveUnusedParameters()"]),
    "unused outputs": (UNUSED, ["RemoveUnusedOutputs()"]),
    "tuple arguments": (TUPLES, ["ExpandTupleArguments()"]),
    "inlining": (INLINE, ["InlinePrivateFunctions()"]),
    "lambda lifting": (LAMBDA, ["LambdaLift()"]),
    "dead functions": (DEAD, ["DeadCodeElimination()"]),
    "bundled weights": (WEIGHTS, ["BundleModelParams()"]),
    "lifted weights": (WEIGHTS, ["LiftTransformParams()"]),
    "layout": (CONVS, ['ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})']),
    "decomposed": (NORM, ["DecomposeOpsForInference()", "CanonicalizeBindings()",
                          "DeadCodeElimination()"]),
    "fixed dimensions": (SYMBOLIC, ['BindSymbolicVars({"n": 8})']),
    "all dimensions fixed": (SYMBOLIC, ['BindSymbolicVars({"n": 8, "m": 2}, "main")']),
    "pattern": (PROGRAMS["two_matmuls"], [f"FuseOpsByPattern([{MATMUL_RELU}])"]),
    "patterns": (PROGRAMS["residual"], [f"FuseOpsByPattern([{MATMUL_RELU}, {MATMUL}, {ADD}])"]),
    "codegen": (PROGRAMS["matmul_bias_relu"],
                [f"FuseOpsByPattern([{MATMUL}, {ADD}], annotate_codegen=True)"]),
    "merged": (PROGRAMS["residual"], [f"FuseOpsByPattern([{MATMUL}, {ADD}])",
                                      "MergeCompositeFunctions()"]),
    "constants inside": (PROGRAMS["constants"], [f"FuseOpsByPattern([{ADD}])"]),
    "constants outside": (PROGRAMS["constants"],
                          [f"FuseOpsByPattern([{ADD}], bind_constants=False)"]),
    "order 1": (ORDER, ['TopologicalSort("depth-first", "from-inputs")']),
    "order 2": (ORDER, ['TopologicalSort("breadth-first", "from-inputs")']),
    "order 3": (ORDER, ['TopologicalSort("depth-first", "from-outputs")']),
    "order 4": (ORDER, ['TopologicalSort("breadth-first", "from-outputs")']),
}


@pytest.fixture(scope="module")
def answers():
    """What TVM makes of every case, asked at once."""
    made = ask_passes([{"program": text, "passes": passes} for text, passes in CASES.values()])
    return dict(zip(CASES, made))


@pytest.mark.parametrize("name", CASES)
def test_a_pass_makes_what_tvm_makes(name, answers):
    text, passes = CASES[name]
    theirs = answers[name]
    assert not isinstance(theirs, str), f"TVM says {theirs}"
    scope = {n: getattr(transform, n) for n in transform.PASSES}
    scope.update(is_op=is_op, wildcard=wildcard, relax=relax)
    ours = from_source(text)
    with PassContext(opt_level=3):
        for step in passes:
            ours = eval(step, scope)(ours)
    same = structural_equal(ours, theirs)
    assert same is True, f"{same!r}\n--- ours\n{ours.script()}\n--- TVM\n{theirs.script()}"
