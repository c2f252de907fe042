"""The compiled form: where tensors lie, and what it does when something fails."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax.vm.native import Piece, _Plan, _place
from mlc_lab.script import ir as I
from mlc_lab.script import relax as R
from mlc_lab.script import tir as T


@pytest.mark.parametrize("seed", range(20))
def test_pieces_in_use_at_one_time_do_not_overlap(seed):
    rng = np.random.default_rng(seed)
    plan = _Plan("f")
    for _ in range(30):
        first = int(rng.integers(0, 20))
        last = first + int(rng.integers(0, 6))
        plan.pieces.append(Piece(int(rng.integers(0, 5000)), first, last))
    _place(plan)
    for k, a in enumerate(plan.pieces):
        assert a.offset % 128 == 0 and a.offset + a.size <= plan.block
        for b in plan.pieces[:k]:
            apart_in_time = a.last < b.first or b.last < a.first
            apart = a.offset + a.size <= b.offset or b.offset + b.size <= a.offset
            assert apart_in_time or apart
    at_once = max(sum(p.size for p in plan.pieces if p.first <= t <= p.last) for t in range(30))
    assert plan.block >= at_once
    assert plan.block <= sum(p.size + 128 for p in plan.pieces)


def test_planned_memory_is_kept_and_given_back():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((256, 256), "float32"))
    with bb.function("main", [x]):
        y = x
        for _ in range(10):
            y = bb.emit(relax.op.nn.relu(y))
        bb.emit_func_output(y)
    ex = relax.build(bb.get(), "llvm", pipeline="default_build")
    assert ex.memory["main"] == 2 * 256 * 256 * 4  # nine tensors, two at a time
    value = np.random.default_rng(0).standard_normal((256, 256)).astype("float32")
    for _ in range(3):
        np.testing.assert_array_equal(ex["main"](value).numpy(), np.maximum(value, 0))
    ex.lib["__vm_release"]()
    np.testing.assert_array_equal(ex["main"](value).numpy(), np.maximum(value, 0))


def test_a_kernel_that_fails_fails_the_call_and_leaves_the_function_usable():
    @I.ir_module
    class M:
        @T.prim_func
        def checked(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            assert x[0] < T.float32(10), "too large"
            for i in range(4):
                y[i] = x[i] + T.float32(1)

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = M
            a = R.add(x, x)
            b = R.call_tir(cls.checked, (a,), out_sinfo=R.Tensor((4,), "float32"))
            return (b, a)

    ex = relax.build(M, "llvm")
    assert "main" in ex.compiled
    good = np.ones(4, "float32")
    for _ in range(3):
        with pytest.raises(AssertionError, match="too large"):
            ex["main"](good * 9)
        b, a = ex["main"](good)
        np.testing.assert_array_equal(b.numpy(), good * 3)
        np.testing.assert_array_equal(a.numpy(), good * 2)


def test_a_function_outlives_its_machine_with_its_constants(tmp_path):
    import gc

    weights = np.random.default_rng(0).standard_normal((300, 300)).astype("float32")

    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((1, 300), "float32"), w: R.Tensor((300, 300), "float32")):
            return R.matmul(x, w)

    def build():
        return relax.build(M, "llvm", params={"w": weights})

    path = build().export_library(tmp_path / "m.vm")
    x = np.random.default_rng(1).standard_normal((1, 300)).astype("float32")
    for make in (build, lambda: relax.vm.load(path)):
        function = relax.VirtualMachine(make())["main"]
        gc.collect()
        junk = [np.full((300, 300), np.nan, "float32") for _ in range(20)]
        np.testing.assert_allclose(function(x).numpy(), x @ weights, rtol=1e-3, atol=1e-3)
        del junk


def test_results_live_as_long_as_somebody_holds_them():
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor((1000,), "float32")):
            return R.add(x, x)

    ex = relax.build(M, "llvm")
    value = np.arange(1000, dtype="float32")
    kept = [ex["main"](value + k) for k in range(50)]
    views = [np.from_dlpack(t) for t in kept]
    del kept, ex
    for k, view in enumerate(views):
        np.testing.assert_array_equal(view, 2 * (value + k))
    assert isinstance(tvm.cpu(), tvm.Device)
