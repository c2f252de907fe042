"""TVM's tensor intrinsics: each computes what it describes, in the corners too."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import te, tir
from mlc_lab.compat.finder import TvmFinder
from mlc_lab.compat.tensor_intrin import arm_cpu, hexagon, rocm, x86

NAMES = sorted({getattr(m, n) for m in (arm_cpu, hexagon, rocm, x86) for n in m.__all__
                if n.endswith("_INTRIN")})


@pytest.mark.parametrize("name", NAMES)
def test_the_implementation_computes_the_description(name: str) -> None:
    intrinsic = tir.TensorIntrin.get(name)
    a, b, c = (intrinsic.desc.buffer_map[p] for p in intrinsic.desc.params)
    for pick in ("min", "max"):
        x, y = (np.full([int(s) for s in t.shape], getattr(np.iinfo(t.dtype), pick), t.dtype)
                for t in (a, b))
        y.flat[::3] = 1
        start = np.arange(int(c.shape[0]), dtype=c.dtype)
        want = start + y.astype(c.dtype) @ x.astype(c.dtype)
        for func in (intrinsic.desc, intrinsic.impl):
            out = tvm.nd.array(start)
            tvm.build(func, target="llvm")(tvm.nd.array(x), tvm.nd.array(y), out)
            np.testing.assert_array_equal(out.numpy(), want)


def test_a_packed_product_is_tensorized_and_stays_right() -> None:
    x = te.placeholder((8, 16), "uint8", name="X")
    w = te.placeholder((32, 16), "int8", name="W")
    k = te.reduce_axis((0, 16), name="k")
    y = te.compute((8, 32), lambda i, j: te.sum(
        x[i, k].astype("int32") * w[j, k].astype("int32"), axis=k), name="compute")
    sch = tir.Schedule(te.create_prim_func([x, w, y]))
    block = sch.get_block("compute")
    sch.transform_layout(block, "W", lambda i, j: [i // 16, j // 4, i % 16, j % 4])
    _, j, k = sch.get_loops(block)
    _, ji = sch.split(j, factors=[None, 16])
    ko, ki = sch.split(k, factors=[None, 4])
    sch.reorder(ko, ji, ki)
    sch.decompose_reduction(block, ko)
    sch.tensorize(ji, x86.VNNI_DOT_16x4_INTRIN)
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (8, 16), "uint8")
    b = rng.integers(-128, 128, (32, 16), "int8")
    packed = np.ascontiguousarray(b.reshape(2, 16, 4, 4).transpose(0, 2, 1, 3))
    out = tvm.nd.array(np.zeros((8, 32), "int32"))
    tvm.build(sch.mod, target="llvm")(tvm.nd.array(a), tvm.nd.array(packed), out)
    np.testing.assert_array_equal(out.numpy(), a.astype("int32") @ b.T.astype("int32"))


def test_the_modules_are_found_under_tvms_names() -> None:
    for name in ("arm_cpu", "hexagon", "rocm", "x86"):
        found = TvmFinder().find_spec(f"tvm.tir.tensor_intrin.{name}")
        assert found.loader.module.__name__ == f"mlc_lab.compat.tensor_intrin.{name}"
