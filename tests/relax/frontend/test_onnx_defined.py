"""Operators that ONNX defines by others, that a model defines itself, and what is known before a
run; and windows, places and lengths, which have rules."""

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import helper

from mlc_lab.relax.frontend import MissingOperators
from mlc_lab.relax.frontend.onnx import from_onnx

from .onnx_running import RNG, built, check, model_of, one, reference, same, uniform


def lengths(*values):
    return np.array(values, "int64")


@pytest.mark.parametrize(("name", "inputs", "constants", "attrs"), [
    ("Swish", [uniform(2, 5)], {}, {"alpha": 1.7}),
    ("MeanVarianceNormalization", [uniform(2, 3, 4, 5)], {}, {"axes": [0, 3]}),
    ("DynamicQuantizeLinear", [uniform(3, 7)], {}, {}),
    ("CenterCropPad", [uniform(3, 8, 5)], {"s": lengths(7, 6)}, {"axes": [0, 1]}),
    ("AffineGrid", [uniform(2, 2, 3)], {"s": lengths(2, 3, 4, 5)}, {"align_corners": 1}),
    ("HannWindow", [], {"n": np.array(9, "int64")}, {}),
    ("BlackmanWindow", [], {"n": np.array(8, "int32")}, {"periodic": 0}),
    ("HammingWindow", [], {"n": np.array(5, "int64")}, {"output_datatype": 11}),
    ("NegativeLogLikelihoodLoss", [uniform(4, 3, 2), RNG.integers(0, 3, (4, 2)), uniform(3) + 2],
     {}, {"ignore_index": 1, "reduction": "mean"}),
    ("SoftmaxCrossEntropyLoss", [uniform(4, 3), RNG.integers(0, 3, 4)], {}, {"reduction": "none"}),
    ("SoftmaxCrossEntropyLoss", [uniform(4, 3, 2), RNG.integers(0, 3, (4, 2)), uniform(3) + 2], {},
     {"ignore_index": 2}),
    ("RotaryEmbedding", [uniform(2, 3, 5, 8), uniform(9, 4), uniform(9, 4),
                         RNG.integers(0, 9, (2, 5))], {}, {"interleaved": 1}),
    ("RotaryEmbedding", [uniform(2, 5, 24), uniform(2, 5, 4), uniform(2, 5, 4)], {},
     {"num_heads": 3}),
    ("Attention", [uniform(2, 4, 5, 8), uniform(2, 2, 7, 8), uniform(2, 2, 7, 6)], {},
     {"is_causal": 1, "scale": 0.3, "softcap": 2.0}),
    ("Attention", [uniform(2, 5, 24), uniform(2, 7, 12), uniform(2, 7, 12),
                   RNG.uniform(0, 1, (5, 7)) > 0.4], {}, {"q_num_heads": 4, "kv_num_heads": 2}),
])
def test_operators_that_onnx_defines_by_others(name, inputs, constants, attrs):
    check(*one(name, inputs, constants, opset=23 if name in ("Attention", "RotaryEmbedding")
               else 24, **attrs))


def test_attention_over_a_cache_of_any_length():
    """The operator's three results; lengths are symbols of the model."""
    feeds = {"q": uniform(2, 4, 3, 8), "k": uniform(2, 2, 3, 8), "v": uniform(2, 2, 3, 8),
             "pk": uniform(2, 2, 5, 8), "pv": uniform(2, 2, 5, 8)}
    node = helper.make_node("Attention", ["q", "k", "v", "", "pk", "pv"], ["y", "ok", "ov"],
                            is_causal=1)
    model = model_of([node], feeds, ["y", "ok", "ov"], opset=23)
    for i in model.graph.input:
        i.type.tensor_type.shape.dim[2].dim_param = "past" if i.name[0] == "p" else "new"
    run = built(model)
    for new, past in ((3, 5), (1, 9), (4, 1)):
        sizes = {n: (*a.shape[:2], past if n[0] == "p" else new, 8) for n, a in feeds.items()}
        given = {n: uniform(*s) for n, s in sizes.items()}
        same(run(given), reference(model, given))


def test_functions_of_the_model_itself():
    body = helper.make_function("my.domain", "Scaled", ["x"], ["y"], [
        helper.make_node("Constant", [], ["c"], value_float=3.0),
        helper.make_node("Mul", ["x", "c"], ["y"])], [helper.make_opsetid("", 20)])
    feeds = {"x": uniform(2, 3)}
    model = model_of([helper.make_node("Scaled", ["x"], ["y"], domain="my.domain")], feeds, ["y"])
    model.functions.append(body)
    model.opset_import.append(helper.make_opsetid("my.domain", 1))
    check(model, feeds)


def test_an_operator_within_a_definition_is_named_where_it_has_no_rule():
    model, _ = one("Bernoulli", [np.full((2, 3), 0.5, "float32")])
    with pytest.raises(MissingOperators, match="RandomUniformLike"):
        from_onnx(model)


def test_what_is_computed_of_known_values_is_known():
    """Widths of padding from several operators that have no shape rules of their own."""
    feeds = {"x": uniform(3, 4)}
    constants = {"a": lengths(1, 5, 2, -3), "b": lengths(2, 0, 3, 4), "zero": lengths(0)}
    nodes = [helper.make_node("Max", ["a", "zero"], ["m"]),
             helper.make_node("Mod", ["m", "b2"], ["w"]),
             helper.make_node("Max", ["b", "one"], ["b2"]),
             helper.make_node("Pad", ["x", "w"], ["y"])]
    nodes[1], nodes[2] = nodes[2], nodes[1]
    check(model_of(nodes, feeds, ["y"], {**constants, "one": lengths(1)}), feeds)


def test_padding_with_a_computed_value():
    feeds = {"x": uniform(2, 3), "v": np.array(2.5, "float32")}
    check(model_of([helper.make_node("Pad", ["x", "w", "v"], ["y"])], feeds, ["y"],
                   {"w": lengths(1, 0, 1, 2)}), feeds)


@pytest.mark.parametrize(("name", "inputs", "constants", "attrs"), [
    ("LpPool", [uniform(2, 3, 7, 8)], {}, {"kernel_shape": [3, 2], "p": 3, "strides": [2, 1],
                                          "pads": [1, 0, 0, 1]}),
    ("LpPool", [uniform(2, 3, 8)], {}, {"kernel_shape": [3], "p": 1, "strides": [2],
                                       "ceil_mode": 1}),
    ("Col2Im", [uniform(2, 12, 8)], {"i": lengths(5, 6), "b": lengths(2, 3)},
     {"dilations": [1, 1], "pads": [0, 0, 0, 0], "strides": [1, 2]}),
    ("ReverseSequence", [uniform(4, 3, 2), lengths(4, 1, 3)], {}, {}),
    ("ReverseSequence", [uniform(3, 4), lengths(2, 4, 1)], {}, {"time_axis": 1, "batch_axis": 0}),
    ("CumProd", [uniform(3, 5)], {"a": np.array(1, "int64")}, {"exclusive": 1, "reverse": 1}),
    ("LpNormalization", [np.array([[0, 0, 0], [1, -2, 2]], "float32")], {}, {"p": 2, "axis": 1}),
    ("LpNormalization", [np.array([[0, 0, 0], [1, 2, 2]], "float32")], {}, {"p": 1, "axis": 1}),
    ("Resize", [uniform(1, 1, 5, 7)], {"r": uniform(0), "s": np.array([1, 1, 0.6, 1.7], "float32")},
     {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
])
def test_windows_and_lengths(name, inputs, constants, attrs):
    check(*one(name, inputs, constants, opset=26 if name == "CumProd" else 22, **attrs))


@pytest.mark.parametrize("size", [1, 4, 5])
def test_channels_around(size):
    """onnx's reference takes the batch for the channels."""
    x = uniform(2, 7, 3)
    model, feeds = one("LRN", [x], size=size, alpha=0.5, beta=0.6, bias=2.0)
    before, after = (size - 1) // 2, size // 2
    sums = np.stack([(x[:, max(c - before, 0):c + after + 1] ** 2).sum(1) for c in range(7)], 1)
    same(built(model)(feeds), [x / (2 + 0.5 / size * sums) ** 0.6])


@pytest.mark.parametrize("p", [1, 2, 3])
def test_powers_of_whole_images(p):
    x = uniform(2, 3, 4, 5)
    model, feeds = one("GlobalLpPool", [x], p=p)
    same(built(model)(feeds), [(np.abs(x) ** p).sum((2, 3), keepdims=True) ** (1 / p)])


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("held", [False, True], ids=["input", "constant"])
def test_compress(held, axis):
    x, condition = uniform(4, 3), np.array([True, False, True])
    attrs = {} if axis is None else {"axis": axis}
    check(*one("Compress", [x] if held else [x, condition], {"c": condition} if held else {},
               **attrs))


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_slices_put_into_a_cache(mode):
    begin = lengths(1, 4 if mode == "circular" else 3)
    check(*one("TensorScatter", [uniform(2, 3, 5, 4), uniform(2, 3, 2, 4), begin], opset=24,
               mode=mode))


@pytest.mark.parametrize("order", [0, 1])
def test_places_of_maxima(order):
    check(*one("MaxPool", [uniform(2, 3, 6, 7)], outputs=("y", "z"), kernel_shape=[3, 2],
               strides=[2, 2], pads=[1, 0, 1, 1], storage_order=order))


def test_mean_and_deviation_of_layer_normalization():
    check(*one("LayerNormalization", [uniform(2, 3, 4), uniform(3, 4)], outputs=("y", "m", "d"),
               axis=1, epsilon=0.1))


