"""The parts of TVM's `contrib` that are here: folders for exports, a library's matrix products."""

import os

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te
from mlc_lab.compat.contrib import cblas, cc, clang, tedd, utils
from mlc_lab.compat.contrib.pickle_memoize import memoize


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


def test_object_files_become_a_library(tmp_path):
    if cc.get_cc() is None:
        pytest.skip("no C compiler")
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    tvm.build(te.create_schedule(B.op), [A, B], "llvm").save(str(tmp_path / "f.o"))
    cc.create_shared(str(tmp_path / "f.so"), [str(tmp_path / "f.o")])
    a, b = np.ones(8, "float32"), np.zeros(8, "float32")
    tvm.runtime.load_module(str(tmp_path / "f.so"))(a, b)
    assert (b == 2).all()
    with pytest.raises(RuntimeError, match="linking failed"):
        cc.create_shared(str(tmp_path / "g.so"), str(tmp_path / "nothing.o"))


def test_clang_is_asked_for_llvm(tmp_path, monkeypatch):
    script = tmp_path / "clang"
    script.write_text("#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\n"
                      "grep -q bad \"$3\" && { echo no >&2; exit 1; }\ncat \"$3\" > \"$2\"\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    out = tmp_path / "out.ll"
    assert clang.create_llvm("int f();\n", output=str(out)) == "int f();\n" == out.read_text()
    with pytest.raises(RuntimeError, match="clang failed"):
        clang.create_llvm("bad\n")
    monkeypatch.setattr(clang, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(RuntimeError, match="pip install ziglang"):
        clang.find_clang()
    assert clang.find_clang(required=False) == []


def test_schedules_are_drawn(tmp_path):
    pytest.importorskip("graphviz")
    A = te.placeholder((16, 32), name="A")
    k = te.reduce_axis((0, 32), name="k")
    B = te.compute((16,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((16,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=4)
    s[B].compute_at(s[C], outer)
    cached = s.cache_read(A, "shared", [B])
    s[cached].compute_at(s[B], B.op.axis[0])
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    s[C].vectorize(inner)
    path = tmp_path / "flow.dot"
    flow = tedd.viz_dataflow_graph(s, dot_file_path=str(path), output_dot_string=True)
    assert path.read_text() == flow
    for name in ("A.shared [shared]", "C", "B"):
        assert f'"{name}"' in flow or f"label={name}" in flow, flow
    assert flow.count("->") == 3
    tree = tedd.viz_schedule_tree(s, output_dot_string=True)
    assert "blockIdx.x" in tree and "vectorized" in tree and "at i.outer" in tree
    loops = tedd.viz_itervar_relationship_graph(s, output_dot_string=True)
    assert "split" in loops and "reduction" in loops
    assert tedd.viz_schedule_tree(s) is None


RUNS = []


def maker(size):
    @memoize("tests.compat.memoize")
    def make(factor=1):
        RUNS.append((size, factor))
        return [size * factor]

    return make


def test_memoize_makes_data_once_for_the_same_arguments():
    first, again, other = maker(3), maker(3), maker(4)
    assert first() is again() and other() == [4] and first(2) == [6] and first(2.0) == [6.0]
    assert RUNS == [(3, 1), (4, 1), (3, 2), (3, 2.0)]
    with pytest.raises(TypeError, match="make depends on"):
        maker([3])()
