"""Graphs of ONNX, built here and by its reference evaluator."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax.frontend.onnx import from_onnx

RNG = np.random.default_rng(7)


def uniform(*shape):
    return RNG.uniform(-1, 1, shape).astype("float32")


def info(name, array=None):
    if array is None:
        return helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype),
                                         array.shape)


def model_of(nodes, feeds, outputs, constants=(), opset=20):
    """A model of nodes over named inputs and constants."""
    graph = helper.make_graph(
        nodes, "g", [info(n, a) for n, a in feeds.items()], [info(n) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in dict(constants).items()])
    return helper.make_model(graph, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])


def one(name, inputs, constants=None, outputs=("y",), opset=20, **attrs):
    """A model of one node, and what it is fed; an input that is None is left out."""
    feeds = {f"x{k}": a for k, a in enumerate(inputs) if a is not None}
    names = [f"x{k}" if a is not None else "" for k, a in enumerate(inputs)]
    node = helper.make_node(name, [*names, *(constants or {})], list(outputs), **attrs)
    return model_of([node], feeds, [o for o in outputs if o], constants or {}, opset), feeds


def built(model, **options):
    vm = relax.VirtualMachine(relax.build(from_onnx(model, **options), "llvm"), tvm.cpu())

    def run(feeds):
        out = vm["main"](*map(tvm.nd.array, feeds.values()))
        return [o.numpy() for o in ([out] if hasattr(out, "numpy") else out)]

    return run


def reference(model, feeds):
    return ReferenceEvaluator(model).run(None, feeds)


def same(got, want, rtol=1e-4, atol=1e-5):
    assert len(got) == len(want)
    for g, w in zip(got, want):
        w = np.asarray(w)
        assert g.shape == w.shape and g.dtype == w.dtype, (g.shape, w.shape, g.dtype, w.dtype)
        np.testing.assert_allclose(g, w, rtol=rtol, atol=atol)


def check(model, feeds):
    same(built(model)(feeds), reference(model, feeds))
