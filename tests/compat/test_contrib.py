"""The parts of TVM's `contrib` that are here: folders for exports, a library's matrix products."""

import os

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.compat.contrib import cblas, utils


def test_a_folder_for_what_is_exported():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    folder = utils.tempdir()
    tvm.build(te.create_schedule(B.op), [A, B], "llvm").export_library(folder.relpath("f.so"))
    assert folder.listdir() == ["f.so"]
    again = tvm.runtime.load_module(folder.relpath("f.so"))
    a, b = tvm.nd.array(np.ones(8, "float32")), tvm.nd.empty((8,))
    again(a, b)
    assert (b.numpy() == 2).all()
    del again
    folder.remove()
    assert not os.path.exists(folder.path)


def test_a_folder_with_a_path_of_its_own_stays(tmp_path):
    with utils.tempdir(str(tmp_path / "mine")) as folder:
        assert folder.temp_dir == str(tmp_path / "mine")
    assert os.path.isdir(folder.path)
    with pytest.raises(FileExistsError):
        utils.tempdir(folder.path)


@pytest.mark.parametrize("transa, transb", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_product_of_the_library(transa, transb, batch):
    n, k, m = 5, 7, 4
    A = te.placeholder(batch + ((k, n) if transa else (n, k)), name="A")
    B = te.placeholder(batch + ((m, k) if transb else (k, m)), name="B")
    C = (cblas.batch_matmul if batch else cblas.matmul)(A, B, transa, transb)
    D = te.compute(C.shape, lambda *i: C(*i) + 1.0, name="D")
    f = tvm.build(te.create_schedule(D.op), [A, B, D], "llvm")
    rng = np.random.default_rng(0)
    a, b = (rng.random([int(d) for d in x.shape]).astype("float32") for x in (A, B))
    d = tvm.nd.empty([int(x) for x in D.shape])
    f(tvm.nd.array(a), tvm.nd.array(b), d)
    a, b = (x.swapaxes(-1, -2) if turn else x for x, turn in ((a, transa), (b, transb)))
    np.testing.assert_allclose(d.numpy(), a @ b + 1, rtol=1e-5)
