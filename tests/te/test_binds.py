"""binds=: parameters of a schedule of te in buffers of one's own."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import lower, te, tir


def doubled(n=8, m=4):
    A = te.placeholder((n, m), "float32", name="A")
    C = te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], 4)
    return A, C, s


def test_a_parameter_may_have_strides():
    A, C, s = doubled()
    rows = tir.decl_buffer(A.shape, A.dtype, name="rows", strides=[te.var("step"), 1])
    mod = tvm.build(s, [A, C], "llvm", binds={A: rows}, name="f")
    wide = np.arange(64, dtype="float32").reshape(8, 8)
    out = np.zeros((8, 4), "float32")
    mod["f"](wide[:, :4], out)
    np.testing.assert_array_equal(out, 2 * wide[:, :4])


def test_a_buffer_stands_for_its_tensor():
    A, C, s = doubled()
    given, result = (tir.decl_buffer(t.shape, t.dtype, name=t.name) for t in (A, C))
    func = lower(s, [given, result], binds={A: given, C: result})["main"]
    assert [func.buffer_map[p] for p in func.params] == [given, result]
    a, c = np.ones((8, 4), "float32"), np.zeros((8, 4), "float32")
    tvm.build(func, target="llvm")(a, c)
    np.testing.assert_array_equal(c, 2 * a)


@pytest.mark.parametrize("shape, dtype", [((8, 5), "float32"), ((8, 4), "float64"),
                                          ((32,), "float32")])
def test_a_buffer_that_does_not_fit_is_refused(shape, dtype):
    A, C, s = doubled()
    with pytest.raises(ValueError, match="binds= gives A"):
        lower(s, [A, C], binds={A: tir.decl_buffer(shape, dtype)})


def test_only_parameters_have_buffers():
    A, C, s = doubled()
    B = te.compute(C.shape, lambda i, j: C[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    with pytest.raises(ValueError, match="C, which is no parameter"):
        lower(s, [A, B], binds={C: tir.decl_buffer(C.shape, C.dtype)})
    with pytest.raises(ValueError, match="a parameter of no tensor"):
        lower(s, [A, tir.decl_buffer(B.shape, B.dtype)])


def test_one_buffer_is_not_given_to_two_tensors():
    """A function is promised that its parameters share no memory."""
    A, C, s = doubled()
    both = tir.decl_buffer(A.shape, A.dtype)
    with pytest.raises(ValueError, match="to two tensors"):
        lower(s, [A, C], binds={A: both, C: both})
