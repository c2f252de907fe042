"""The compiled form: where tensors lie, and what it does when something fails."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import relax
from mlc_lab.relax.vm.native import releaser
from mlc_lab.relax.vm.call_plan import Piece, Plan, place
from mlc_lab.script import ir as I
from mlc_lab.script import relax as R
from mlc_lab.script import tir as T


@pytest.mark.parametrize("seed", range(20))
def test_pieces_in_use_at_one_time_do_not_overlap(seed):
    rng = np.random.default_rng(seed)
    plan = Plan("f")
    for _ in range(30):
        first = int(rng.integers(0, 20))
        last = first + int(rng.integers(0, 6))
        plan.pieces.append(Piece(int(rng.integers(0, 5000)), first, last))
    place(plan)
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
    releaser(ex)()
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


def symbolic_model():
    """Extents that are computed, a storage used twice, a scalar for a kernel, two results."""
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, "m"), "float32"),
                 y: R.Tensor(("n", "m"), "float32")):
            n, m = T.int64(), T.int64()
            with R.dataflow():
                a = R.add(R.matmul(x, w), y)
                b = R.sum(R.concat((a, a), axis=0), axis=0)
                c = R.nn.softmax(R.add(a, b))
                d = R.reshape(c, R.shape([n * m]))
                e = R.add(d, d)
                g = R.permute_dims(a)
                R.output(e, g)
            return (e, g)

    return M


def test_symbolic_shapes_have_a_compiled_form_that_agrees_with_the_bytecode():
    ex = relax.build(symbolic_model(), "llvm")
    assert "main" in ex.compiled and "main" not in ex.memory
    compiled, bytecode = (relax.VirtualMachine(ex, exec_mode=m) for m in ("compiled", "bytecode"))
    rng = np.random.default_rng(0)
    for n, m in [(1, 1), (3, 5), (17, 2), (3, 5), (60, 70), (1, 3)]:  # the block grows and stays
        x, w, y = (rng.standard_normal(s).astype("float32") for s in ((n, 16), (16, m), (n, m)))
        a = x @ w + y
        c = a + 2 * a.sum(0)
        c = np.exp(c - c.max(1, keepdims=True))
        e, g = compiled["main"](x, w, y)
        np.testing.assert_allclose(
            e.numpy(), (2 * c / c.sum(1, keepdims=True)).reshape(-1), rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(g.numpy(), a.T, rtol=1e-4, atol=1e-4)
        for mine, other in zip((e, g), bytecode["main"](x, w, y)):
            np.testing.assert_array_equal(mine.numpy(), other.numpy())
    with pytest.raises(ValueError, match=r"\(w\): shape\[0\] is 15, expected 16"):
        compiled["main"](x, w[:15], y)
    with pytest.raises(ValueError, match=r"\(y\): shape\[1\] is 2, expected 3"):
        compiled["main"](x, w, y[:, :2])


def test_an_extent_that_has_to_equal_a_computed_one_is_compared():
    @I.ir_module
    class M:
        @R.function
        def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n * 2",), "float32")):
            return R.add(R.concat((x, x)), y)

    ex = relax.build(M, "llvm")
    assert "main" in ex.compiled
    x, y = np.arange(3, dtype="float32"), np.ones(6, "float32")
    np.testing.assert_array_equal(ex["main"](x, y).numpy(), np.tile(x, 2) + 1)
    with pytest.raises(ValueError, match="param=y.*dimension 0 is 5 and has to be 6"):
        ex["main"](x, y[:5])


def test_calls_of_a_symbolic_function_from_many_threads_do_not_share_memory():
    from concurrent.futures import ThreadPoolExecutor

    ex = relax.build(symbolic_model(), "llvm")
    rng = np.random.default_rng(1)
    sets = []
    for n in range(1, 40):
        shapes = ((n, 16), (16, 7), (n, 7))
        args = [rng.standard_normal(s).astype("float32") for s in shapes]
        sets.append((args, [t.numpy() for t in ex["main"](*args)]))

    def run(k):
        args, want = sets[k % len(sets)]
        for got, right in zip(ex["main"](*args), want):
            np.testing.assert_array_equal(got.numpy(), right)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(400)))
