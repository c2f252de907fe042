"""What a node of ONNX says is honoured or refused: attributes, inputs that may be left out, and
sizes of which the model computes."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from mlc_lab.relax.frontend.onnx import importer
from relax.frontend.onnx_running import (
    built, info, model_of, one, reference, same, uniform,
)

X = uniform(3, 4)
IMAGE = uniform(1, 1, 4, 5)
WHOLE = np.array([[7, -7, 2], [-3, 5, -9]], "int64")
INFINITE = np.array([np.inf, -np.inf, 1.0, np.nan], "float32")


def check(name, inputs, constants=None, want=None, **more):
    model, feeds = one(name, inputs, constants, **more)
    same(built(model)(feeds), reference(model, feeds) if want is None else want)


def numbers(*values, dtype="int64"):
    return np.array(values, dtype)


@pytest.mark.parametrize(("name", "inputs", "attrs"), [
    ("Celu", [X], {"alpha": 2.0}), ("IsInf", [INFINITE], {"detect_negative": 0}),
    ("IsInf", [INFINITE], {"detect_positive": 0}), ("EyeLike", [X], {"dtype": 7, "k": 1}),
    ("ThresholdedRelu", [X], {"alpha": 0.3}), ("Shrink", [X], {"lambd": 0.3, "bias": 0.1}),
    ("BitShift", [numbers(1, 2, 200, dtype="uint8"), numbers(1, 3, 2, dtype="uint8")],
     {"direction": "LEFT"}),
    ("BitwiseXor", [WHOLE, WHOLE * 3], {}), ("Clip", [X, np.float32(0.1), np.float32(-0.1)], {}),
    ("Clip", [X, None, np.float32(0.2)], {}), ("Pow", [np.abs(WHOLE), np.float32([2.5])], {}),
    ("Hardmax", [X], {"axis": 0}),
    ("LayerNormalization", [X, uniform(1)], {}),
    ("ReduceLogSumExp", [numbers([np.inf, 1], [1000, 999], dtype="float32")], {"keepdims": 0})])
def test_attributes_of_one_node(name, inputs, attrs):
    check(name, inputs, **attrs)


@pytest.mark.parametrize(("name", "constants", "attrs"), [
    ("Clip", [numbers(2**40, -2**40, 3), np.int64(-1)], {}),
    ("Clip", [numbers(0, 200, 255, dtype="uint8"), np.uint8(3)], {}),
    ("Div", [WHOLE, np.int64(2)], {}), ("Pow", [WHOLE[0], numbers([2])], {}),
    ("ReduceProd", [X, numbers(1)], {"keepdims": 0}), ("ReduceProd", [X], {}),
    ("ReduceSumSquare", [X], {"noop_with_empty_axes": 1}),
    ("ReduceLogSum", [np.abs(X), numbers()], {"noop_with_empty_axes": 1}),
    ("Reshape", [uniform(0, 3), numbers(3, 0)], {"allowzero": 1}),
    ("QuantizeLinear", [X, np.float32(0.1)], {"output_dtype": TensorProto.INT8, "opset": 21})])
def test_what_is_known_when_a_model_is_imported(name, constants, attrs):
    check(name, constants[:1], {f"c{k}": v for k, v in enumerate(constants[1:])}, **attrs)
    model, _ = one(name, [], {f"c{k}": v for k, v in enumerate(constants)}, **attrs)
    same(built(model)({}), reference(model, {}))


@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize("rows", [6, 7])
def test_parts_of_a_split_without_sizes(opset, rows):
    if opset == 11 and rows == 7:
        return  # equal parts
    more = {"num_outputs": 3} if opset == 18 else {}
    check("Split", [uniform(rows, 2)], outputs=("a", "b", "c"), opset=opset, **more)
    check("Split", [uniform(rows, 2)], outputs=("a",), opset=opset,
          **({"num_outputs": 1} if more else {}))


def test_fast_gelu_has_a_bias():
    x, bias = uniform(3, 4) * 3, uniform(4)
    v = x + bias
    want = 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))
    node = helper.make_node("FastGelu", ["x", "b"], ["y"], domain="com.microsoft")
    model = model_of([node], {"x": x, "b": bias}, ["y"])
    same(built(model)({"x": x, "b": bias}), [want.astype("float32")], 1e-5)


def test_a_mask_of_dropout_that_drops_nothing():
    model, feeds = one("Dropout", [X], {"ratio": np.float32(0.5), "training": np.array(False)},
                       outputs=("y", "mask"))
    same(built(model)(feeds), [X, np.ones_like(X, "bool")])
    model, _ = one("Dropout", [X], {"ratio": np.float32(0.5), "training": np.array(True)})
    with pytest.raises(ValueError, match="training"):
        built(model)


def test_the_largest_none_are_an_empty_tensor():
    model, feeds = one("TopK", [X], {"k": numbers(0)}, outputs=("y", "places"))
    same(built(model)(feeds), [np.zeros((len(X), 0), "float32"), np.zeros((len(X), 0), "int64")])


def test_an_output_without_a_name_is_not_the_input_that_is_left_out():
    nodes = [helper.make_node("TopK", ["x", "k"], ["", "places"]),
             helper.make_node("Clip", ["x", "", "high"], ["y"])]
    model = model_of(nodes, {"x": X}, ["places", "y"],
                     {"k": numbers(2), "high": np.float32(0.2)})
    same(built(model)({"x": X}), [np.argsort(-X, 1)[:, :2], np.minimum(X, np.float32(0.2))])


@pytest.mark.parametrize(("name", "inputs", "attrs", "text"), [
    ("BatchNormalization", [IMAGE, *[uniform(1)] * 4], {"training_mode": 1}, "in training"),
    ("DequantizeLinear", [numbers([1, 2], dtype="uint8"), uniform(1, 2)], {"block_size": 1},
     "block_size"),
    ("Cast", [X], {"to": TensorProto.FLOAT8E4M3FN}, "data type 17"),
    ("TopK", [X], {"constants": {"k": numbers(-1)}}, "k=-1: it cannot be negative"),
    ("Relu", [X], {"slope": 0.5}, "the attribute slope = 0.5 is not translated"),
    ("Relu", [X, X], {}, "input 1, 'x1', is not translated")])
def test_what_is_not_translated_is_not_dropped(name, inputs, attrs, text):
    model, _ = one(name, inputs, **attrs)
    with pytest.raises(ValueError, match=text):
        importer.from_onnx(model)


def test_attributes_that_say_what_holds_anyway():
    x = IMAGE
    for name, inputs, attrs in (
            ("BatchNormalization", [x, *[np.abs(uniform(1))] * 4],
             {"momentum": 0.9, "training_mode": 0}),
            ("MaxPool", [x], {"kernel_shape": [2, 2], "storage_order": 0, "ceil_mode": 0})):
        check(name, inputs, opset=15, **attrs)


# ------------------------------------------------------------------------------- resizing

MODES = [{"mode": "nearest", "nearest_mode": m} for m in (
    "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")] + [
    {"mode": "linear"}, {"mode": "cubic"}]


@pytest.mark.parametrize("how", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                 "half_pixel_symmetric"])
@pytest.mark.parametrize("mode", MODES)
def test_resizing_by_scales_and_to_sizes(how, mode):
    attrs = {"coordinate_transformation_mode": how, **mode}
    none = np.zeros(0, "float32")
    if how != "align_corners":  # the evaluator takes sizes that are no whole numbers
        check("Resize", [IMAGE], {"r": none, "s": np.float32([1, 1, 1.7, 0.6])}, opset=19, **attrs)
    check("Resize", [IMAGE], {"r": none, "s": none, "z": numbers(1, 1, 7, 3)}, opset=13, **attrs)


@pytest.mark.parametrize(("scales", "attrs"), [
    ([1, 1, 0.5, 0.6], {"mode": "linear", "antialias": 1}),
    ([1, 1, 0.5, 0.6], {"mode": "cubic", "antialias": 1, "cubic_coeff_a": -0.5}),
    ([1, 1, 1.5, 0.6], {"mode": "cubic", "exclude_outside": 1}),
    ([1.5, 2], {"mode": "linear", "axes": [3, 2]}), ([2, 1, 1, 2], {})])
def test_more_of_resizing(scales, attrs):
    check("Resize", [IMAGE], {"r": np.zeros(0, "float32"), "s": np.float32(scales)}, opset=19,
          **attrs)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_resizing_keeps_the_ratio_of_an_image(policy):
    none = np.zeros(0, "float32")
    check("Resize", [IMAGE], {"r": none, "s": none, "z": numbers(8, 8)}, opset=19, axes=[2, 3],
          keep_aspect_ratio_policy=policy, mode="linear")


def test_resizing_a_part():
    part = np.float32([0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7])
    check("Resize", [IMAGE], {"r": part, "s": np.zeros(0, "float32"), "z": numbers(1, 1, 3, 3)},
          opset=19, mode="linear", extrapolation_value=10.0,
          coordinate_transformation_mode="tf_crop_and_resize")


@pytest.mark.parametrize("shape", [(5,), (2, 5), (1, 2, 5), (1, 1, 2, 3, 4)])
def test_resizing_of_other_ranks(shape):
    check("Resize", [uniform(*shape)], {"r": np.zeros(0, "float32"),
                                        "s": np.float32([*[1] * (len(shape) - 1), 1.5])},
          opset=19, mode="linear")


# ------------------------------------------------------------------------------- sizes


def symbolic(nodes, constants, opset=17):
    """A model of x of shape (b, n, 4)."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", "n", 4])
    graph = helper.make_graph([helper.make_node("Shape", ["x"], ["s"]), *nodes], "g", [x],
                              [info("y")], [numpy_helper.from_array(np.asarray(a), n)
                                            for n, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def node(name, *inputs, out="y", **attrs):
    return helper.make_node(name, inputs, [out], **attrs)


ONE = np.array(1, "int64")


@pytest.mark.parametrize(("nodes", "constants"), [
    ([node("Gather", "s", "i")], {"i": ONE}), ([node("Size", "x")], {}),
    ([node("Gather", "s", "i", out="g"), node("Add", "g", "i")], {"i": ONE}),
    ([node("Gather", "s", "i", out="g"), node("Cast", "g", to=TensorProto.BOOL)], {"i": ONE}),
    ([node("Gather", "s", "i")], {"i": numbers([0], [-1])}),
    ([node("Cast", "s", to=TensorProto.INT32)], {}),
    ([node("Sub", "s", "k", out="t"), node("Div", "t", "two")],
     {"k": numbers(5), "two": numbers(2)}),
    ([node("Greater", "s", "two")], {"two": numbers(2)}),
    ([node("Equal", "s", "two", out="e"), node("Where", "e", "two", "s")],
     {"two": numbers(2, 2, 2)}),
    ([node("Max", "s", "two")], {"two": numbers(3)}),
    ([node("ReduceProd", "s", keepdims=0)], {}), ([node("ReduceProd", "s")], {}),
    ([node("Slice", "s", "one", "two", out="n"), node("Squeeze", "n", "zero")],
     {"one": numbers(1), "two": numbers(2), "zero": numbers(0)}),
    ([node("Slice", "s", "one", "two", out="n"), node("Unsqueeze", "n", "zero")],
     {"one": numbers(1), "two": numbers(2), "zero": numbers(0)}),
    ([node("Slice", "s", "one", "two", out="n"), node("Reshape", "n", "none")],
     {"one": numbers(1), "two": numbers(2), "none": numbers()})])
def test_computing_with_sizes(nodes, constants):
    model = symbolic(nodes, constants)
    run = built(model)
    for shape in ((2, 3, 4), (1, 2, 4), (5, 7, 4)):
        feeds = {"x": uniform(*shape)}
        same(run(feeds), ReferenceEvaluator(model).run(None, feeds))


@pytest.mark.parametrize(("start", "end", "step"), [
    (0, 1000, 2), (-1000, 2, 1), (5, 9, 1), (2, 1, 1), (-1, -1000, -1), (3, 0, -2), (100, -100, -1),
    (-1, np.iinfo("int64").min, -1), (1, np.iinfo("int64").max, 3), (-2, -1, 1)])
def test_slices_of_a_dimension_of_unknown_size(start, end, step):
    bounds = {"a": numbers(start), "e": numbers(end), "k": numbers(1), "t": numbers(step)}
    model = symbolic([node("Slice", "x", "a", "e", "k", "t")], bounds)
    run = built(model)
    for n in (1, 3, 8):
        x = uniform(2, n, 4)
        same(run({"x": x}), [x[:, start:end:step]])


@pytest.mark.parametrize("index", [5, -6])
def test_an_index_of_a_dimension_of_unknown_size(index):
    run = built(symbolic([node("Gather", "x", "i", axis=1)], {"i": np.array(index, "int64")}))
    x = uniform(2, 6, 4)
    same(run({"x": x}), [x[:, index]])
    with pytest.raises(ValueError, match="dimension 0 is 3 and has to be 6"):
        run({"x": x[:, :3]})
