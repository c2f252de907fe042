"""Comparisons: of two dtypes as of their common one, and what is refused."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax import op
from mlc_lab.relax.op import StructInfoError


def operands(a, b):
    return (relax.Var("x", relax.TensorStructInfo((3, 4), a)),
            relax.Var("y", relax.TensorStructInfo((4,), b)))


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater",
                                  "greater_equal"])
@pytest.mark.parametrize("a, b", [("float32", "int32"), ("int8", "float16"), ("int64", "int8"),
                                  ("int64", "uint32"), ("float16", "float64")])
def test_numbers_of_two_dtypes_are_compared_as_their_common_one(name, a, b):
    x, y = operands(a, b)
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        bb.emit_func_output(bb.emit(getattr(op, name)(x, y)))
    rng = np.random.default_rng(0)
    x_np = rng.integers(-3, 3, (3, 4)).astype(a)
    y_np = rng.integers(0 if b.startswith("u") else -3, 3, 4).astype(b)
    vm = relax.VirtualMachine(relax.build(bb.get(), "llvm"), tvm.cpu())
    got = vm["main"](tvm.nd.array(x_np), tvm.nd.array(y_np)).numpy()
    assert got.dtype == bool
    np.testing.assert_array_equal(got, getattr(np, name)(x_np, y_np))


@pytest.mark.parametrize("a, b", [("int32", "uint32"), ("uint64", "int8"), ("bool", "int32"),
                                  ("float16", "bfloat16")])
def test_dtypes_that_have_no_common_one_are_refused(a, b):
    for x, y in (operands(a, b), operands(b, a)):
        with pytest.raises(TypeError, match="convert one with R.astype"):
            op.less(x, y)


def test_what_is_no_tensor_is_a_type_error():
    tensor = relax.Var("x", relax.TensorStructInfo((2, 3), "float32"))
    shape = relax.Var("s", relax.ShapeStructInfo((2, 3)))
    for make in (lambda: op.add(shape, tensor), lambda: op.less(tensor, shape),
                 lambda: op.exp(shape), lambda: op.concat(tensor, 0),
                 lambda: op.reshape(tensor, tensor)):
        with pytest.raises(TypeError) as refused:
            make()
        assert isinstance(refused.value, StructInfoError)
