"""Single operators of ONNX over random shapes and values, imported, built and run, against its
reference evaluator."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax.frontend.onnx import from_onnx

RNG = np.random.default_rng(5)
KINDS = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32,
         "bool": TensorProto.BOOL}


def x(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


def model_of(name, inputs, constants=(), opset=19, dims=None, **attrs):
    """One node over its inputs, and then constants."""
    feeds = {f"x{k}": a for k, a in enumerate(inputs)}
    held = {f"c{k}": np.asarray(a) for k, a in enumerate(constants)}
    graph = helper.make_graph(
        [helper.make_node(name, [*feeds, *held], ["y"], name="it", **attrs)], "g",
        [helper.make_tensor_value_info(n, KINDS[str(a.dtype)], (dims or {}).get(n, a.shape))
         for n, a in feeds.items()],
        [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)],
        [numpy_helper.from_array(a, n) for n, a in held.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def reference(model, inputs):
    return ReferenceEvaluator(model).run(None, {f"x{k}": a for k, a in enumerate(inputs)})[0]


def built(model):
    vm = relax.VirtualMachine(relax.build(from_onnx(model), target="llvm"), tvm.cpu())
    return lambda *arrays: vm["main"](*map(tvm.nd.array, arrays)).numpy()


def same(got, want):
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def check(name, inputs, constants=(), opset=19, **attrs):
    model = model_of(name, inputs, constants, opset, **attrs)
    same(built(model)(*inputs), reference(model, inputs))


def indices(size, *shape, dtype="int64"):
    """Random indices of a dimension from its front and from its end, both ends among them."""
    at = RNG.integers(-size, size, shape).astype(dtype)
    at.ravel()[:2] = -1, -size
    return at


# ------------------------------------------------------------------------------- indices


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("held", [False, True], ids=["input", "constant"])
def test_indices_count_from_the_end(held, dtype):
    def both(name, data, at, *rest, **attrs):
        if held:
            check(name, [data], [at, *rest], **attrs)
        else:
            check(name, [data, at, *rest], **attrs)

    for size in (3, 6):
        data = x(size, 4, size)
        for axis in (0, 2):
            both("Gather", data, indices(size, 2, 2, dtype=dtype), axis=axis)
        both("Gather", data, np.array(-1, dtype), axis=1)
        both("GatherElements", data, indices(4, size, 2, size, dtype=dtype), axis=1)
        both("GatherElements", data, indices(size, size, 4, 2, dtype=dtype), axis=2)
        distinct = np.argsort(RNG.random((size, 4, size)), 1).astype(dtype)[:, :2]
        distinct -= 4 * (distinct > 1)
        both("ScatterElements", data, distinct, x(size, 2, size), axis=1)
        if dtype == "int64":
            at = np.stack([indices(size, 5), indices(4, 5)], -1)
            both("GatherND", data, at)
            places = np.array([[-1, 0], [0, -4], [1, -1]])
            both("ScatterND", data, places, x(3, size))


def test_indices_of_a_dimension_of_any_size():
    for held in (False, True):
        data, at = x(5, 3), np.array([0, -1, 2])
        model = model_of("Gather", [data] if held else [data, at], [at] if held else [],
                         dims={"x0": ["n", 3]})
        run = built(model)
        for size in (3, 8):
            inputs = [x(size, 3)] if held else [x(size, 3), indices(size, 3)]
            same(run(*inputs), reference(model, inputs))


def test_constant_indices_cost_nothing_at_run_time():
    text = from_onnx(model_of("Gather", [x(3, 4)], [np.array([-1, 0])], axis=1)).script()
    assert "R.take" in text and "R.where" not in text


def test_an_index_outside_is_refused():
    with pytest.raises(IndexError, match="Gather it: the index -5 is outside of a dimension of 4"):
        from_onnx(model_of("Gather", [x(3, 4)], [np.array([-5, 0])], axis=1))


# ------------------------------------------------------------------------------- pooling


@pytest.mark.parametrize("size, kernel, strides, pads", [
    ((6, 5), (3, 2), (2, 3), (1, 1, 1, 1)), ((7, 7), (3, 3), (2, 2), (1, 1, 1, 1)),
    ((5, 6), (2, 2), (3, 3), (1, 1, 1, 1)), ((7, 5), (1, 2), (3, 3), (0, 0, 0, 0)),
    ((6, 6), (3, 3), (2, 2), (0, 1, 1, 1)), ((5,), (2,), (3,), (1, 1)), ((6,), (2,), (2,), (1, 1))])
def test_rounding_up_keeps_no_window_that_begins_behind(size, kernel, strides, pads):
    image = x(2, 3, *size) - 3
    geometry = {"kernel_shape": kernel, "strides": strides, "pads": pads, "ceil_mode": 1}
    check("MaxPool", [image], **geometry)
    room = [n + a + b - k for n, k, a, b in zip(size, kernel, pads, pads[len(size):])]
    if all(-r % s <= 1 for r, s in zip(room, strides)):  # else the evaluator moves the windows
        check("AveragePool", [image], **geometry)
        check("AveragePool", [image], count_include_pad=1, **geometry)


def test_rounding_up_of_any_size():
    model = model_of("MaxPool", [x(1, 2, 6, 5)], dims={"x0": [1, 2, "h", 5]}, ceil_mode=1,
                     kernel_shape=(3, 2), strides=(2, 3), pads=(1, 1, 1, 1))
    run = built(model)
    for size in (4, 5, 6, 9):
        image = x(1, 2, size, 5)
        same(run(image), reference(model, [image]))


# ------------------------------------------------------------------------------- attributes


@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
def test_the_last_place_of_several(name):
    for shape in ((3, 8), (5, 4, 6)):
        data = RNG.integers(0, 3, shape).astype("float32")
        for last in (0, 1):
            for axis in (0, -1):
                check(name, [data], axis=axis, keepdims=0, select_last_index=last)
            check(name, [data], axis=1, select_last_index=last)
    model = model_of(name, [data[0]], dims={"x0": [4, "n"]}, axis=1, select_last_index=1)
    run = built(model)
    for size in (2, 7):
        data = RNG.integers(0, 2, (4, size)).astype("float32")
        same(run(data), reference(model, [data]))


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot_counts_from_the_end(axis, dtype):
    values = np.array([-1, 2], "float32")
    for depth in (3, 5):
        at = RNG.integers(-depth - 2, depth + 2, (4, 3)).astype(dtype)
        at[0] = -1, -depth, -depth - 1
        check("OneHot", [at], [np.array(depth), values], axis=axis)
        model = model_of("OneHot", [], [at, np.array(depth), values], axis=axis)
        same(built(model)(), reference(model, []))


@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
@pytest.mark.parametrize("size, kernel, strides", [
    ((5, 4), (3, 3), (2, 2)), ((4, 6), (3, 2), (1, 3)), ((3, 3), (2, 4), (3, 1)),
    ((6,), (5,), (2,)), ((2, 3, 4), (3, 2, 3), (2, 2, 1))])
def test_automatic_padding(auto, size, kernel, strides):
    image = x(1, 8, *size)
    check("ConvTranspose", [image, x(8, 3, *kernel), x(3)], auto_pad=auto, strides=strides)
    if auto == "SAME_UPPER":
        sizes = [n * s for n, s in zip(size, strides)]
        assert list(built(model_of("ConvTranspose", [image, x(8, 3, *kernel)], auto_pad=auto,
                                   strides=strides))(image, x(8, 3, *kernel)).shape[2:]) == sizes
    padded = [n + k for n, k in zip(size, kernel)]
    image = x(1, 4, *padded)
    check("Conv", [image, x(3, 4, *kernel)], auto_pad=auto, strides=strides)
    geometry = {"auto_pad": auto, "kernel_shape": kernel, "strides": strides}
    if auto != "SAME_LOWER":  # of which the evaluator rounds down
        check("MaxPool", [image], **geometry)
    if auto in ("VALID", "NOTSET") or all(k >= s for k, s in zip(kernel, strides)):
        check("AveragePool", [image], **geometry)
        check("AveragePool", [image], count_include_pad=1, **geometry)


@pytest.mark.parametrize("auto", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("wanted", [(9, 8), (10, 7), (11, 9), (13, 12)])
def test_transposed_convolutions_of_a_given_size(auto, wanted):
    image, kernel = x(1, 2, 5, 4), x(2, 3, 3, 3)
    check("ConvTranspose", [image, kernel, x(3)], auto_pad=auto, output_shape=wanted,
          strides=(2, 2))


def test_padding_that_depends_on_a_size_is_refused_unless_it_is_known():
    image, kernel = x(1, 2, 6, 6), x(3, 2, 3, 3)
    any_size = {"x0": [1, 2, "h", 6]}
    model = model_of("Conv", [image, kernel], dims=any_size, auto_pad="SAME_UPPER")
    run = built(model)
    for size in (4, 7):
        image = x(1, 2, size, 6)
        same(run(image, kernel), reference(model, [image, kernel]))
    model = model_of("Conv", [image, kernel], dims=any_size, auto_pad="SAME_UPPER", strides=(2, 2))
    with pytest.raises(ValueError, match="Conv it: auto_pad SAME_UPPER .* size h, which is not"):
        from_onnx(model)


# ------------------------------------------------------------------------------- messages


def test_a_value_that_nothing_makes_is_named_with_its_node():
    model = model_of("Add", [x(3), x(3)])
    model.graph.node[0].input[1] = "lost"
    with pytest.raises(ValueError, match="Add it: the value 'lost' is made by no node before it"):
        from_onnx(model)
    model = model_of("Abs", [x(3)])
    model.graph.node[0].output[0] = "z"
    with pytest.raises(ValueError, match="the graph's outputs: the value 'y' is made by no node"):
        from_onnx(model)
    model = model_of("BatchNormalization", [x(1, 2, 4), x(2), x(2), x(2), x(2)])
    model.graph.node[0].output[:] = ["values", "y"]
    with pytest.raises(ValueError, match="output 1 of BatchNormalization it is not translated"):
        from_onnx(model)


def test_names_that_no_input_has_are_refused():
    model = model_of("Add", [x(3), x(3)])
    with pytest.raises(ValueError, match="shape_dict names 'nope', .* inputs: 'x0', 'x1'"):
        from_onnx(model, shape_dict={"nope": [1]})
    with pytest.raises(ValueError, match="dtype_dict names 'nope'"):
        from_onnx(model, dtype_dict={"nope": "float32"})
    dims = from_onnx(model, {"x0": [5], "x1": [5]})["main"].params[0].struct_info.dims
    assert int(dims[0]) == 5
