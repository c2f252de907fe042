"""Relax passes make of a program what apache-tvm's make of it, up to the names of variables."""

import textwrap

import pytest

from mlc_lab.ir.structural import structural_equal
from mlc_lab.ir.transform import PassContext
from mlc_lab.relax import transform
from mlc_lab.script import from_source

from .bridge import needs_oracle
from .relax_bridge import ask_passes

pytestmark = needs_oracle

HEADER = ("from mlc_lab.script import ir as I, tir as T, relax as R\n\n@I.ir_module\n"
          "class Module:\n    @R.function\n")


def program(params, body, pure=True):
    """A module of one function `main`."""
    text = f"def main({params}):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
    head = HEADER if pure else HEADER.replace("@R.function", "@R.function(pure=False)")
    return head + textwrap.indent(text, "    ")


X = 'x: R.Tensor((4, 8), "float32")'
IMAGE = 'x: R.Tensor((1, 3, 8, 8), "float32")'

#: bodies of dataflow blocks that end in `gv`; inputs are x and what `weights` says
GRAPHS = {
    "chain": (X, "lv = R.exp(x)\nlv1 = R.negative(lv)\ngv = R.nn.relu(lv1)"),
    "matmul_bias_relu": (f'{X}, w: R.Tensor((8, 4), "float32"), b: R.Tensor((4,), "float32")',
                         "lv = R.matmul(x, w)\nlv1 = R.add(lv, b)\ngv = R.nn.relu(lv1)"),
    "two_matmuls": (f'{X}, w: R.Tensor((8, 8), "float32")',
                    "lv = R.matmul(x, w)\nlv1 = R.nn.relu(lv)\nlv2 = R.matmul(lv1, w)\n"
                    "gv = R.nn.relu(lv2)"),
    "diamond": (X, "a = R.exp(x)\nb = R.negative(a)\nc = R.sqrt(a)\ngv = R.add(b, c)"),
    "residual": (f'{X}, w: R.Tensor((8, 8), "float32")',
                 "a = R.nn.relu(x)\nb = R.matmul(a, w)\nc = R.add(b, a)\ngv = R.nn.relu(c)"),
    "reduce": (X, "a = R.exp(x)\nb = R.sum(a, axis=1)\ngv = R.sqrt(b)"),
    "softmax": (X, "a = R.exp(x)\nb = R.nn.softmax(a)\ngv = R.negative(b)"),
    "transpose": (X, "a = R.exp(x)\nb = R.permute_dims(a)\nc = R.negative(b)\n"
                     "gv = R.reshape(c, (32,))"),
    "broadcast": (f'{X}, b: R.Tensor((8,), "float32")',
                  "a = R.exp(b)\nc = R.add(x, a)\ngv = R.multiply(c, a)"),
    "split": (X, "a = R.exp(x)\ns = R.split(a, 2, axis=1)\nb = s[0]\nc = s[1]\nd = R.add(b, c)\n"
                 "gv = R.nn.relu(d)"),
    "concat": (X, "a = R.exp(x)\nb = R.negative(x)\nc = R.concat((a, b), axis=1)\n"
                  "gv = R.nn.relu(c)"),
    "conv": (f'{IMAGE}, w: R.Tensor((4, 3, 3, 3), "float32"), b: R.Tensor((1, 4, 1, 1), "float32")',
             "lv = R.nn.conv2d(x, w, padding=1)\nlv1 = R.add(lv, b)\nlv2 = R.nn.relu(lv1)\n"
             "gv = R.nn.max_pool2d(lv2, (2, 2), (2, 2))"),
    "constants": (X, 'a = R.add(x, R.const(1.0, "float32"))\n'
                     'b = R.multiply(a, R.const([1., 2., 3., 4., 5., 6., 7., 8.], "float32"))\n'
                     "gv = R.exp(b)"),
    "folds": (X, 'a = R.add(R.const([1.0, 2.0], "float32"), R.const([3.0, 4.0], "float32"))\n'
                 'b = R.multiply(a, R.const(2.0, "float32"))\nc = R.concat((a, b), axis=0)\n'
                 "d = R.reshape(c, (4, 1))\ngv = R.add(x, d)"),
    "same": (X, "a = R.exp(x)\nb = R.exp(x)\nc = R.multiply(a, x)\nd = R.add(c, a)\n"
                "e = R.add(c, b)\ngv = R.multiply(d, e)"),
    "layer_norm": (f'{X}, g: R.Tensor((8,), "float32"), b: R.Tensor((8,), "float32")',
                   "a = R.exp(x)\nc = R.nn.layer_norm(a, g, b, axes=[-1])\ngv = R.nn.relu(c)"),
    "attention": ('x: R.Tensor((2, 4, 8), "float32"), y: R.Tensor((2, 8, 4), "float32")',
                  "a = R.matmul(x, y)\nb = R.multiply(a, R.const(0.5, \"float32\"))\n"
                  "c = R.nn.softmax(b)\nd = R.permute_dims(c, axes=[0, 2, 1])\n"
                  "e = R.matmul(d, x)\ngv = R.add(e, x)"),
    "symbolic": ('x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32")',
                 "n = T.int64()\nlv = R.matmul(x, w)\nlv1 = R.nn.relu(lv)\nlv2 = R.exp(lv1)\n"
                 "gv = R.sum(lv2, axis=1)"),
}


def dataflow(params, body):
    """A program of one dataflow block."""
    lines = body.split("\n")
    outside = [line for line in lines if line.endswith("= T.int64()")]
    inside = [line for line in lines if line not in outside]
    text = "\n".join([*outside, "with R.dataflow():", *[f"    {line}" for line in inside],
                      "    R.output(gv)", "return gv"])
    return program(params, text)


PROGRAMS = {name: dataflow(*graph) for name, graph in GRAPHS.items()}
PROGRAMS["aliases"] = program('x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")', """
    with R.dataflow():
        a = x
        b = R.add(a, y)
        c = b
        t = (b, c)
        d = t[0]
        e = R.add(d, a)
        gv = e
        gv2 = R.multiply(b, b)
        R.output(gv, gv2)
    z = gv
    w = R.add(z, gv2)
    return w
""")
PROGRAMS["outputs"] = program('x: R.Tensor((2, 3), "float32")', """
    a = x
    z = R.match_cast(x, R.Tensor((2, 3), "float32"))
    with R.dataflow():
        b = R.add(z, z)
        out = R.exp(b)
        out2 = R.exp(x)
        R.output(b, out, out2)
    return out
""")
PROGRAMS["dead"] = program('x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")', """
    u = R.exp(x)
    with R.dataflow():
        gv = R.add(x, x)
        dead = R.multiply(x, x)
        dead2 = R.multiply(dead, x)
        gv2 = R.exp(dead2)
        R.output(gv, gv2)
    p = R.print(x, format="{}")
    if c:
        r = R.exp(gv)
        r2 = R.exp(gv)
        o = r
    else:
        r = R.add(gv, gv)
        o = r
    return o
""", pure=False)
PROGRAMS["two_outputs"] = program('x: R.Tensor((4, 8), "float32")', """
    with R.dataflow():
        a = R.exp(x)
        b = R.negative(a)
        c = R.nn.relu(b)
        R.output(a, c)
    return (a, c)
""")

FUSE = ["LegalizeOps()", "AnnotateTIROpPattern()", "FuseOps()"]
PIPELINES = {
    "annotate": (["LegalizeOps()", "AnnotateTIROpPattern()"], [*GRAPHS, "two_outputs"]),
    "fuse_ops": (FUSE, [*GRAPHS, "two_outputs"]),
    "fuse_tir": ([*FUSE, "FuseTIR()"], [*GRAPHS, "two_outputs"]),
    "canonicalize": (["CanonicalizeBindings()"], list(PROGRAMS)),
    "dead_code": (["DeadCodeElimination()"], list(PROGRAMS)),
    "common": (["EliminateCommonSubexpr()"], [n for n in PROGRAMS if n != "dead"]),
    "clean": (["EliminateCommonSubexpr()", "CanonicalizeBindings()", "DeadCodeElimination()"],
              [n for n in PROGRAMS if n != "dead"]),
    "fold": (["FoldConstant()"], ["folds", "constants", "chain", "matmul_bias_relu"]),
    "default": (["LegalizeOps()", "FoldConstant()", "AnnotateTIROpPattern()", "FuseOps()",
                 "FuseTIR()", "DeadCodeElimination()"], list(GRAPHS)),
    "to_dataflow": (["ToNonDataflow()", "ConvertToDataflow()"], ["chain", "diamond", "residual"]),
    "global_symbols": (["LegalizeOps()", "AttachGlobalSymbol()"], ["chain"]),
}


@pytest.fixture(scope="module")
def answers():
    """What TVM makes of every program by every pipeline, asked at once."""
    keys = [(p, n) for p, (_, names) in PIPELINES.items() for n in names]
    made = ask_passes([{"program": PROGRAMS[n], "passes": PIPELINES[p][0]} for p, n in keys])
    return dict(zip(keys, made))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_pipeline_gives_what_tvm_gives(pipeline, answers):
    passes, names = PIPELINES[pipeline]
    wrong = []
    for name in names:
        theirs = answers[pipeline, name]
        ours = from_source(PROGRAMS[name])
        with PassContext(opt_level=3):
            for text in passes:
                ours = eval(text, {n: getattr(transform, n) for n in transform.PASSES})(ours)
        if isinstance(theirs, str):
            wrong.append(f"{name}: TVM says {theirs[-600:]}")
            continue
        # max pools begin with -inf here, as torch's do; with the least number in TVM
        text = ours.script().replace('T.float32("-inf")', "T.min_value(\"float32\")")
        same = structural_equal(from_source(text) if '"-inf"' in ours.script() else ours, theirs)
        if same is not True:
            wrong.append(f"{name}: {same!r}\n--- ours\n{ours.script()}\n--- TVM\n{theirs.script()}")
    assert not wrong, "\n\n".join(wrong)
