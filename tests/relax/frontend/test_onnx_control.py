"""If and Loop of ONNX, and sampling of images, against its reference evaluator."""

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

from mlc_lab import relax, tir  # noqa: E402
from mlc_lab.relax.frontend import MissingOperators  # noqa: E402
from mlc_lab.relax.frontend.onnx import from_onnx  # noqa: E402
from tests.relax.frontend.onnx_running import (  # noqa: E402
    built, check, info, model_of, one, reference, same, uniform,
)

node = helper.make_node


def branch(*nodes, outputs=("b",)):
    return helper.make_graph(list(nodes), "branch", [], [info(o) for o in outputs])


@pytest.mark.parametrize("several", [False, True])
def test_a_branch_that_the_run_takes(several):
    outputs = ["y", "z"] if several else ["y"]
    yes = branch(node("Add", ["x", "k"], ["b"]), node("Neg", ["b"], ["c"]),
                 outputs=["b", "c"][:len(outputs)])
    no = branch(node("Mul", ["x", "k"], ["d"]), node("Relu", ["d"], ["e"]),
                outputs=["d", "e"][:len(outputs)])
    x = uniform(3, 4)
    model = model_of([node("ReduceSum", ["x"], ["s"], keepdims=0),
                      node("Greater", ["s", "zero"], ["more"]),
                      node("If", ["more"], outputs, then_branch=yes, else_branch=no)],
                     {"x": x}, outputs, {"k": uniform(3, 4), "zero": np.float32(0).reshape(())})
    run = built(model)
    for feed in (abs(x), -abs(x)):
        same(run({"x": feed}), reference(model, {"x": feed}))


def test_a_branch_that_is_known_leaves_the_other_out():
    x = uniform(3, 4)
    model = model_of(
        [node("Shape", ["x"], ["s"], start=0, end=1), node("Equal", ["s", "three"], ["is"]),
         node("If", ["is"], ["y"], then_branch=branch(node("Relu", ["x"], ["b"])),
              else_branch=branch(node("Neg", ["x"], ["b"])))],
        {"x": x}, ["y"], {"three": np.array([3], "int64")})
    check(model, {"x": x})
    assert "R.nn.relu" in from_onnx(model).script() and "negative" not in from_onnx(model).script()


def layers(*names):
    """A convolution, its norm and an activation, of the input x."""
    conv, norm, out = names
    return [node("Conv", ["x", "w"], [conv]),
            node("BatchNormalization", [conv, "g", "beta", "mean", "var"], [norm]),
            node("Relu", [norm], [out])]


def kernels(model):
    functions = relax.get_pipeline("kernels")(from_onnx(model)).functions
    return {v.name_hint for v, f in functions.items() if isinstance(f, tir.PrimFunc)}


@pytest.mark.parametrize("known", [True, False])
def test_what_is_around_a_branch_is_fused_and_all_of_it_where_it_is_known(known):
    x = uniform(1, 3, 8, 8)
    weights = {"w": uniform(4, 3, 3, 3), "g": uniform(4), "beta": uniform(4), "mean": uniform(4),
               "var": abs(uniform(4)) + 0.5}
    weights |= {"is": np.array(True)} if known else {"zero": np.float32(0).reshape(())}
    asked = [] if known else [node("ReduceSum", ["x"], ["s"], keepdims=0),
                              node("Greater", ["s", "zero"], ["is"])]
    model = model_of(
        [*layers("c", "n", "a"), *asked,
         node("If", ["is"], ["q"], then_branch=branch(*layers("d", "e", "b")),
              else_branch=branch(node("Neg", ["a"], ["b"]))),
         node("Neg", ["q"], ["r"]), node("Exp", ["r"], ["t"]), node("Add", ["t", "a"], ["y"])],
        {"x": x}, ["y"], weights)
    func = from_onnx(model)["main"]
    outer = [type(block) is relax.DataflowBlock for block in func.body.blocks]
    assert outer == ([True] if known else [True, False, True])
    found = kernels(model)
    assert any(name.startswith("fused_conv2d_add_relu") for name in found)
    assert not found & {"batch_norm", "negative", "exp", "add"} or not known
    run = built(model)
    for feed in (abs(x), -abs(x)):
        same(run({"x": feed}), reference(model, {"x": feed}))


def test_operators_without_a_rule_are_found_in_branches():
    x = uniform(3)
    bad = branch(node("StringNormalizer", ["x"], ["b"]))
    model = model_of([node("If", ["c"], ["y"], then_branch=bad, else_branch=bad)], {"x": x}, ["y"],
                     {"c": np.array(True)})
    with pytest.raises(MissingOperators, match="StringNormalizer"):
        from_onnx(model)


def body(*nodes, state="out"):
    """The body of a loop with a state, which it collects."""
    return helper.make_graph(list(nodes), "body", [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        helper.make_tensor_value_info("v", TensorProto.FLOAT, [3])],
        [info("again"), info(state), info("seen")])


@pytest.mark.parametrize("turns", [1, 5])
def test_a_loop_of_known_turns(turns):
    x = uniform(3)
    graph = body(node("Cast", ["i"], ["f"], to=1), node("Mul", ["v", "k"], ["m"]),
                 node("Add", ["m", "f"], ["out"]), node("Identity", ["go"], ["again"]),
                 node("Neg", ["out"], ["seen"]))
    model = model_of([node("Loop", ["n", "t", "x"], ["y", "all"], body=graph)], {"x": x},
                     ["y", "all"], {"n": np.array(turns), "t": np.array(True), "k": uniform(3)})
    check(model, {"x": x})


def test_a_loop_that_ends_by_a_known_condition():
    x = uniform(3)
    graph = body(node("Less", ["i", "most"], ["again"]), node("Add", ["v", "v"], ["out"]),
                 node("Identity", ["v"], ["seen"]))
    model = model_of([node("Loop", ["", "t", "x"], ["y", "all"], body=graph)], {"x": x},
                     ["y", "all"], {"t": np.array(True), "most": np.array(3)})
    check(model, {"x": x})


def test_a_loop_whose_end_is_computed_is_refused():
    x = uniform(3)
    graph = body(node("ReduceSum", ["v"], ["s"], keepdims=0), node("Less", ["s", "ten"], ["again"]),
                 node("Add", ["v", "v"], ["out"]), node("Identity", ["v"], ["seen"]))
    model = model_of([node("Loop", ["n", "t", "x"], ["y", "all"], body=graph)], {"x": x},
                     ["y", "all"], {"n": np.array(9), "t": np.array(True),
                                    "ten": np.float32(10).reshape(())})
    with pytest.raises(ValueError, match="only the number of turns may end a loop"):
        from_onnx(model)


def test_a_loop_whose_turns_are_computed_is_refused():
    x = uniform(3)
    graph = body(node("Identity", ["go"], ["again"]), node("Add", ["v", "v"], ["out"]),
                 node("Identity", ["v"], ["seen"]))
    model = model_of([node("ReduceSum", ["x"], ["s"], keepdims=0),
                      node("Cast", ["s"], ["n"], to=TensorProto.INT64),
                      node("Loop", ["n", "t", "x"], ["y", "all"], body=graph)], {"x": x},
                     ["y", "all"], {"t": np.array(True)})
    with pytest.raises(ValueError, match="the number of turns of a Loop is computed by the run"):
        from_onnx(model)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("around", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_grid_sample(mode, around, align):
    check(*one("GridSample", [uniform(1, 2, 4, 5), uniform(1, 3, 2, 2) * 1.4], mode=mode,
               padding_mode=around, align_corners=align))
