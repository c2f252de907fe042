"""Models of ONNX, imported, built and run, against torch and ONNX's reference evaluator."""

import io
import warnings

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mlc_lab as tvm
from mlc_lab import relax, tir
from mlc_lab.relax.frontend import MissingOperators, detach_params
from mlc_lab.relax.frontend.onnx import from_onnx

RNG = np.random.default_rng(3)


def run(mod, *arrays, params=()):
    """What `main` gives, as a list of arrays."""
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
    out = vm["main"](*map(tvm.nd.array, arrays), *params)
    return [o.numpy() for o in out] if not hasattr(out, "numpy") else [out.numpy()]


def exported(model, args, **kwargs):
    """A torch model as ONNX."""
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(model, args, file, dynamo=False, **kwargs)
        except (ImportError, RuntimeError, TypeError) as error:
            pytest.skip(f"this torch has no exporter without further packages: {error}")
    return onnx.load_from_string(file.getvalue())


def torch_models():
    pytest.importorskip("torch")
    from relax.frontend.models import small_models

    return small_models()


@pytest.mark.parametrize("name", ["mlp", "lenet", "resnet18", "mobilenet_v2_short", "gpt2_block",
                                  "bert_layer", "unet"])
def test_models(name):
    model, args = torch_models()[name]
    mod = from_onnx(exported(model, args))
    got = run(mod, *(a.numpy() for a in args))[0]
    np.testing.assert_allclose(got, model(*args).detach().numpy(), rtol=1e-3, atol=1e-4)


def test_a_language_model_of_any_length():
    torch = pytest.importorskip("torch")
    from relax.frontend.models import GPT

    model = GPT(layers=1).eval()
    tokens = torch.randint(0, 100, (1, 7))
    file = exported(model, (tokens,), input_names=["tokens"],
                    dynamic_axes={"tokens": {1: "length"}})
    mod = from_onnx(file)
    dim = mod["main"].params[0].struct_info.dims[1]
    assert isinstance(dim, tir.Var) and dim.name == "length"
    vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu())
    for n in (3, 11):
        tokens = torch.randint(0, 100, (1, n))
        got = vm["main"](tvm.nd.array(tokens.numpy())).numpy()
        np.testing.assert_allclose(got, model(tokens).detach().numpy(), rtol=1e-3, atol=1e-4)


def test_parameters_as_inputs():
    model, args = torch_models()["lenet"]
    file = exported(model, args)
    mod = from_onnx(file, keep_params_in_input=True)
    mod, params = detach_params(mod)
    assert len(params["main"]) == 10 and len(mod["main"].params) == 11
    assert int(mod["main"].attrs["num_input"]) == 1
    got = run(mod, args[0].numpy(), params=params["main"])[0]
    np.testing.assert_allclose(got, model(*args).detach().numpy(), rtol=1e-3, atol=1e-4)


def graph_of(nodes, inputs, outputs=("y",), constants=None, opset=17, dims=None):
    """A model of nodes; arrays say what its inputs are."""
    kinds = {np.dtype(t): n for n, t in (
        (TensorProto.FLOAT, "float32"), (TensorProto.INT64, "int64"), (TensorProto.BOOL, "bool"),
        (TensorProto.INT32, "int32"))}
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info(n, kinds[a.dtype], dims or a.shape)
         for n, a in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def x(*shape, low=-1.0, high=1.0):
    return RNG.uniform(low, high, shape).astype("float32")


X, Y, IMAGE = x(3, 4), x(3, 4, low=0.5), x(1, 2, 6, 6)
I64 = np.int64
#: operator, attributes, tensors, constants, opset
NODES = [
    *[(n, {}, [X], [], 17) for n in (
        "Abs", "Exp", "Erf", "Sin", "Cos", "Tan", "Tanh", "Sigmoid", "Sign", "Round", "Relu",
        "Softplus", "Neg", "Floor", "Ceil", "Softsign", "HardSwish", "Identity", "Selu", "Elu",
        "Celu", "HardSigmoid", "LeakyRelu", "Softmax", "LogSoftmax", "Flatten", "Atan", "Sinh",
        "Cosh", "Asinh", "IsNaN")],
    *[(n, {}, [Y], [], 17) for n in ("Log", "Sqrt", "Reciprocal")],
    *[(n, {}, [X, Y], [], 17) for n in (
        "Add", "Sub", "Mul", "Div", "Max", "Min", "Mean", "Sum", "Less", "LessOrEqual", "Greater",
        "GreaterOrEqual", "Equal")],
    ("Pow", {}, [Y, X], [], 17), ("Pow", {}, [X], [np.float32(2)], 17),
    ("Mod", {"fmod": 1}, [X, Y], [], 17), ("PRelu", {}, [X, x(4)], [], 17),
    ("Gelu", {}, [X], [], 20), ("Gelu", {"approximate": "tanh"}, [X], [], 20),
    ("Mish", {}, [X], [], 18), ("Clip", {}, [X], [np.float32(-0.5), np.float32(0.5)], 17),
    ("Clip", {}, [X], [np.float32(0)], 17), ("Cast", {"to": 7}, [X * 9], [], 17),
    ("Where", {}, [X > 0, X, Y], [], 17),
    ("Gemm", {"transB": 1, "alpha": 0.5, "beta": 2.0}, [X, x(5, 4), x(5)], [], 17),
    ("MatMul", {}, [x(2, 3, 4), x(4, 5)], [], 17),
    ("Einsum", {"equation": "ij,kj->ik"}, [X, Y], [], 17),
    ("Conv", {"pads": [1, 0, 0, 1], "strides": [2, 1]}, [IMAGE, x(4, 2, 3, 3), x(4)], [], 17),
    ("Conv", {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, [IMAGE, x(4, 2, 3, 3)], [], 17),
    ("ConvTranspose", {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
     [IMAGE, x(2, 3, 3, 3)], [], 17),
    ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, [IMAGE], [], 17),
    ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, [IMAGE], [], 17),
    ("GlobalAveragePool", {}, [IMAGE], [], 17), ("GlobalMaxPool", {}, [IMAGE], [], 17),
    ("BatchNormalization", {}, [IMAGE, x(2), x(2), x(2), x(2, low=0.5)], [], 17),
    ("InstanceNormalization", {}, [IMAGE, x(2), x(2)], [], 17),
    ("LayerNormalization", {"axis": -1}, [X, x(4), x(4)], [], 17),
    ("Transpose", {"perm": [1, 0]}, [X], [], 17), ("Reshape", {}, [X], [np.array([2, -1])], 17),
    ("Squeeze", {}, [IMAGE], [np.array([0])], 17), ("Unsqueeze", {}, [X], [np.array([0, 3])], 17),
    ("Concat", {"axis": 1}, [X, Y], [], 17), ("Expand", {}, [X], [np.array([2, 1, 4])], 17),
    ("Slice", {}, [X], [np.array([2, -1]), np.array([-5, -4]), np.array([0, 1]),
                        np.array([-1, -2])], 17),
    ("Slice", {}, [X], [np.array([1]), np.array([2**62]), np.array([1])], 17),
    ("Gather", {"axis": 1}, [X], [np.array([[0, -1]])], 17),
    ("Gather", {}, [X], [np.array(1)], 17),
    ("GatherElements", {"axis": 1}, [X], [np.array([[0, 1], [2, 3], [1, 0]])], 17),
    ("GatherND", {}, [X], [np.array([[0, 1], [2, 3]])], 17),
    ("ScatterElements", {"axis": 1}, [X], [np.array([[1], [2], [0]]), x(3, 1)], 17),
    ("ScatterND", {}, [X], [np.array([[1], [0]]), x(2, 4)], 17),
    ("Tile", {}, [X], [np.array([2, 3])], 17), ("Trilu", {"upper": 0}, [X], [], 17),
    ("Pad", {}, [X], [np.array([1, 0, 0, 2]), np.float32(3)], 17),
    ("Pad", {"mode": "reflect"}, [X], [np.array([1, 0, 1, 2])], 17),
    ("ReduceSum", {"keepdims": 0}, [X], [np.array([1])], 17),
    ("ReduceMean", {"axes": [0]}, [X], [], 17), ("ReduceMax", {"axes": [1]}, [X], [], 17),
    ("ReduceL2", {"axes": [1]}, [X], [], 17), ("ReduceLogSumExp", {"axes": [1]}, [X], [], 17),
    ("ReduceProd", {"axes": [1], "keepdims": 0}, [X], [], 17),
    ("ArgMax", {"axis": 1}, [X], [], 17), ("ArgMin", {"axis": 0, "keepdims": 0}, [X], [], 17),
    ("CumSum", {}, [X], [np.array(1)], 17), ("CumSum", {"reverse": 1, "exclusive": 1}, [X],
                                             [np.array(1)], 17),
    ("DepthToSpace", {"blocksize": 2}, [x(1, 8, 2, 3)], [], 17),
    ("SpaceToDepth", {"blocksize": 2}, [x(1, 2, 4, 6)], [], 17),
    ("OneHot", {}, [np.array([0, 2, 1])], [np.array(3), np.array([0, 1], "float32")], 17),
    ("Resize", {"mode": "linear"}, [IMAGE], [np.array([], "float32"),
                                             np.array([1, 1, 2, 1.5], "float32")], 17),
    ("Resize", {"mode": "nearest", "coordinate_transformation_mode": "asymmetric",
                "nearest_mode": "floor"}, [IMAGE],
     [np.array([], "float32"), np.array([1, 1, 2, 2], "float32")], 17),
    ("EyeLike", {}, [X], [], 17), ("Shape", {}, [X], [], 17),
]


@pytest.mark.parametrize("case", NODES, ids=[f"{k}-{c[0]}" for k, c in enumerate(NODES)])
def test_operators(case):
    name, attrs, arrays, constants, opset = case
    inputs = {f"x{k}": np.asarray(a) for k, a in enumerate(arrays)}
    held = {f"c{k}": a for k, a in enumerate(constants)}
    names = [*inputs, *held]
    if name == "OneHot":
        names = ["x0", "c0", "c1"]
    node = helper.make_node(name, names, ["y"], **attrs)
    model = graph_of([node], inputs, constants=held, opset=opset)
    want = ReferenceEvaluator(model).run(None, inputs)[0]
    got = run(from_onnx(model), *inputs.values())[0]
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def test_nothing_is_in_the_program_that_nothing_uses():
    nodes = [helper.make_node("Exp", ["x"], ["unused"]), helper.make_node("Relu", ["x"], ["y"])]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy"]
    mod = from_onnx(helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:])))
    assert "R.exp" not in mod.script() and "R.nn.relu" in mod.script()


def test_softmax_before_version_13_is_over_all_that_follows():
    model = graph_of([helper.make_node("Softmax", ["x"], ["y"], axis=1)], {"x": IMAGE}, opset=11)
    power = np.exp(IMAGE)
    np.testing.assert_allclose(run(from_onnx(model), IMAGE)[0], power / power.sum(), rtol=1e-4)


def test_several_outputs_and_split():
    node = helper.make_node("Split", ["x", "c"], ["a", "b"], axis=1)
    model = graph_of([node], {"x": X}, ("a", "b"), {"c": np.array([1, 3])})
    a, b = run(from_onnx(model), X)
    np.testing.assert_array_equal(a, X[:, :1])
    np.testing.assert_array_equal(b, X[:, 1:])


def test_shapes_are_computed_with_symbols():
    nodes = [helper.make_node("Shape", ["x"], ["s"]),
             helper.make_node("Gather", ["s", "zero"], ["n"]),
             helper.make_node("Unsqueeze", ["n", "axis"], ["n1"]),
             helper.make_node("Mul", ["n1", "two"], ["n2"]),
             helper.make_node("Concat", ["n2", "half"], ["shape"], axis=0),
             helper.make_node("Reshape", ["x", "shape"], ["y"])]
    held = {"zero": np.array(0), "axis": np.array([0]), "two": np.array([2]),
            "half": np.array([2])}
    model = graph_of(nodes, {"x": X}, constants=held, dims=["n", 4])
    mod = from_onnx(model)
    assert "n * 2" in str(mod["main"].ret_struct_info)
    for n in (1, 5):
        a = x(n, 4)
        np.testing.assert_array_equal(run(mod, a)[0], a.reshape(-1, 2))
    static = from_onnx(model, shape_dict={"x": [3, 4]})
    assert "6, 2" in str(static["main"].ret_struct_info)


def test_missing_operators_are_named():
    nodes = [helper.make_node("Det", ["x"], ["a"], name="first"),
             helper.make_node("Unique", ["a"], ["y"])]
    with pytest.raises(MissingOperators) as error:
        from_onnx(graph_of(nodes, {"x": X}))
    assert [n for n, _ in error.value.missing] == ["Det", "Unique"]
    assert "node first that makes a" in str(error.value)


def test_shapes_that_do_not_fit_name_the_node():
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    with pytest.raises(ValueError, match="MatMul product: .*matmul"):
        from_onnx(graph_of([node], {"x": X}, constants={"w": x(5, 2)}))
