"""Tensors: making, copying, exchanging."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from mlc_lab.runtime import array, cpu, cuda, device, empty
from mlc_lab.runtime.ndarray import NDArray, from_dlpack

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES += ["float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_array_round_trips_through_numpy(dtype):
    values = np.arange(12).reshape(3, 4).astype(dtype)
    x = array(values)
    assert isinstance(x, NDArray) and x.shape == (3, 4) and x.dtype == dtype
    np.testing.assert_array_equal(x.numpy(), values)
    assert x.numpy().dtype == values.dtype


def test_array_copies_and_numpy_copies():
    values = np.zeros(4, "float32")
    x = array(values)
    values[0] = 1
    assert x.numpy()[0] == 0
    x.numpy()[1] = 5
    assert x.numpy()[1] == 0


def test_indexing_reads_and_writes_the_memory():
    x = array(np.arange(6, dtype="float32").reshape(2, 3))
    x[0, 1] = 9
    assert x[0, 1] == 9 and list(x[1]) == [3, 4, 5] and len(x) == 2
    x[1] = 0
    assert x.numpy().tolist() == [[0, 9, 2], [0, 0, 0]]
    assert np.asarray(x).base is not None


def test_memory_is_aligned():
    for shape in [(1,), (3, 5), (1000,)]:
        assert empty(shape, "int8").data_ptr() % 128 == 0


def test_bfloat16_rounds_to_nearest_even_and_keeps_nan():
    values = np.array([1, 2.5, 3.14159, 1.00390625, 1.01171875, np.inf, np.nan, -0.0], "float32")
    x = empty(8, "bfloat16").copyfrom(values)
    assert x.dtype == "bfloat16"
    wide = x.numpy().astype("float32")
    expected = np.array([1, 2.5, 3.140625, 1.0, 1.015625, np.inf, np.nan, -0.0], "float32")
    np.testing.assert_array_equal(wide, expected)
    assert array(x).dtype == "bfloat16"


def test_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1.5, -2], ml_dtypes.bfloat16)
    assert array(values).numpy().dtype == values.dtype
    assert array(values).numpy().tolist() == [1.5, -2]


def test_copyto_and_copyfrom():
    x = array([1.0, 2.0])
    y = empty((2,), "float64")
    assert x.copyto(y) is y and y.numpy().tolist() == [1, 2]
    assert x.copyto(cpu()).numpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"shape \(3,\) into a tensor of shape \(2,\)"):
        y.copyfrom(np.zeros(3))


def test_scalars_lists_and_empty_shapes():
    assert array(3.0).shape == () and array([1, 2]).dtype == "int64"
    assert empty((0, 3)).numpy().shape == (0, 3) and empty(5).shape == (5,)
    assert "shape=(2,), cpu(0)" in repr(array([1, 2]))


def test_pickling():
    x = array(np.arange(3, dtype="float16"))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)).numpy(), x.numpy())


def test_dlpack_shares_memory_with_numpy():
    x = array(np.zeros(3, "float32"))
    np.from_dlpack(x)
    view = np.asarray(x)
    view[1] = 4
    assert x[1] == 4


def test_dlpack_shares_memory_with_torch():
    torch = pytest.importorskip("torch")
    x = array(np.zeros(3, "float32"))
    t = torch.from_dlpack(x)
    t[1] = 4
    assert x[1] == 4
    assert array(torch.ones(2)).numpy().tolist() == [1, 1]


def test_devices():
    assert repr(cpu(0)) == "cpu(0)" and cpu() == device("llvm", 0) == device("cpu:0")
    assert device("cuda", 1) == cuda(1) and array([1]).device == cpu()
    assert cpu().device_type == 1 and cpu().exist and not cuda(1).exist
    with pytest.raises(ValueError, match="unknown device type 'gpux'"):
        device("gpux")
    with pytest.raises(ValueError, match="only on the CPU and on the devices number 0"):
        empty((2,), "float32", cuda(1))
    with pytest.raises(ValueError, match="dtype 'float33'"):
        empty((2,), "float33")


def test_negated_and_conjugate_views_of_torch_are_refused_everywhere():
    torch = pytest.importorskip("torch")
    import mlc_lab
    from mlc_lab import te
    from mlc_lab.backend.interp import interpret

    a = te.placeholder((3,), name="A")
    func = te.create_prim_func([a, te.compute((3,), lambda i: a[i] * 2, name="B")])
    kernel = mlc_lab.build(func)
    lazy, out = torch._neg_view(torch.arange(-1.0, -4.0, -1.0)), np.zeros(3, "float32")
    assert lazy.tolist() == [1, 2, 3]
    for call in (lambda: kernel["main"](lazy, out), lambda: kernel["main"](out.copy(), lazy),
                 lambda: interpret(func, lazy, out), lambda: array(lazy),
                 lambda: from_dlpack(lazy)):
        with pytest.raises(ValueError, match="resolve_neg"):
            call()
    part = torch.complex(torch.zeros(3), torch.arange(1.0, 4.0)).conj().imag
    with pytest.raises(ValueError, match="resolve_neg"):
        array(part)
    with pytest.raises(ValueError, match="resolve_conj"):
        array(torch.ones(3, dtype=torch.complex64).conj())
    kernel["main"](lazy.resolve_neg(), out)
    np.testing.assert_array_equal(out, [2, 4, 6])
    weight = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    kernel["main"](weight, out)
    np.testing.assert_array_equal(out, [2, 2, 2])


def test_a_kernel_taken_before_torch_is_loaded_refuses_such_views():
    """Torch is imported while the kernel is held; no look-up comes after it."""
    pytest.importorskip("torch")
    text = """
import sys
import numpy as np
import mlc_lab
from mlc_lab import te

a = te.placeholder((3,), name="A")
kernel = mlc_lab.build(te.create_prim_func([a, te.compute((3,), lambda i: a[i] * 2)]))["main"]
assert "torch" not in sys.modules
import torch

out = np.zeros(3, "float32")
lazy = torch._neg_view(torch.arange(-1.0, -4.0, -1.0))
kernel(lazy.resolve_neg(), out)
assert out.tolist() == [2, 4, 6], out
try:
    kernel(lazy, out)
except ValueError as err:
    assert "resolve_neg" in str(err)
else:
    raise AssertionError(out)
assert "exec_module" not in vars(torch.__spec__.loader)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
