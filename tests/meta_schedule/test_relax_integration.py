"""Tuning a model: its kernels are tasks, and the tuned model computes the same."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import meta_schedule as ms
from mlc_lab import relax

TARGET = "llvm --num-cores=1"


def model():
    """Two dense layers of the same shape with a relu between them."""
    bb = relax.BlockBuilder()

    def var(name, *shape):
        return relax.Var(name, relax.TensorStructInfo(shape, "float32"))

    x, w0, w1 = var("x", 4, 32), var("w0", 32, 32), var("w1", 32, 32)
    with bb.function("main", [x, w0, w1]):
        with bb.dataflow():
            h = bb.emit(relax.op.nn.relu(bb.emit(relax.op.matmul(x, w0))))
            out = bb.emit_output(bb.emit(relax.op.nn.relu(bb.emit(relax.op.matmul(h, w1)))))
        bb.emit_func_output(out)
    return bb.get()


def test_equal_kernels_are_one_task_with_a_weight():
    (task,) = ms.relax_integration.extract_tasks(model(), TARGET)
    assert task.weight == 2 and "matmul" in task.task_name
    assert list(task.mod.functions)[0].name_hint == "main"


def test_a_tuned_model_computes_the_same(tmp_path):
    database = ms.tune_relax(model(), None, TARGET, tmp_path, 3, seed=1, verbose=False)
    assert len(database) == 3
    ex = ms.relax_integration.compile_relax(database, model(), TARGET)
    vm = relax.VirtualMachine(ex, tvm.cpu())
    x, w0, w1 = (np.random.rand(*s).astype("float32") for s in ((4, 32), (32, 32), (32, 32)))
    right = np.maximum(np.maximum(x @ w0, 0) @ w1, 0)
    np.testing.assert_allclose(vm["main"](*map(tvm.nd.array, (x, w0, w1))).numpy(), right,
                               rtol=1e-4)
    tuned = ms.relax_integration.apply_database(
        database, ms.relax_integration.prepare(model()), TARGET)
    kernels = [f for f in tuned.functions.values() if isinstance(f, tvm.tir.PrimFunc)]
    assert all("T.vectorized" in k.script() for k in kernels)


def test_a_kernel_whose_default_schedule_no_trace_leads_to_keeps_it(monkeypatch):
    from mlc_lab.meta_schedule import relax_integration

    (task,) = ms.relax_integration.extract_tasks(model(), TARGET)
    assert relax_integration._begins_at_default(task)

    def of_a_rewritten_kernel(mod, target):
        a = tvm.te.placeholder((8,), name="a")
        other = tvm.te.create_prim_func([a, tvm.te.compute((8,), lambda i: a[i] + 1, "elsewhere")])
        sch = tvm.tir.Schedule(other)
        sch.get_block("elsewhere")
        return sch

    monkeypatch.setattr(relax_integration, "default_schedule", of_a_rewritten_kernel)
    assert not relax_integration._begins_at_default(task)
    with pytest.raises(ValueError, match="no kernel that can be tuned"):
        ms.tune_relax(model(), None, TARGET, None, 3, seed=1, verbose=False)


def test_an_empty_database_builds_what_relax_build_builds():
    """Also with a norm behind a convolution, which goes into its weights."""
    from mlc_lab.ir.structural import structural_equal

    rng = np.random.default_rng(0)
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 3, 8, 8), "float32"))

    def numbers(*shape):
        return relax.const(rng.uniform(0.5, 1.5, shape).astype("float32"))

    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(relax.op.nn.conv2d(x, numbers(4, 3, 3, 3)))
            y = bb.emit(relax.op.add(y, numbers(1, 4, 1, 1)))
            y = bb.emit(relax.op.nn.batch_norm(y, *(numbers(4) for _ in range(4)), 1,
                                               training=False))
            y = bb.emit(relax.op.nn.relu(bb.emit(y[0])))
            out = bb.emit_output(bb.emit(relax.op.reshape(y, [1, -1])))
        bb.emit_func_output(out)
    mod = bb.get()
    target = tvm.target.Target(TARGET)
    ours = relax.get_pipeline("default", target=target)(mod)
    theirs = relax.get_pipeline("scheduled", target=target)(
        ms.relax_integration.prepare(mod))
    assert structural_equal(ours, theirs)
    (task,) = ms.relax_integration.extract_tasks(mod, TARGET)
    assert task.task_name == "fused_conv2d_add_relu"
    empty = ms.database.create("memory")
    images = [tvm.nd.array(rng.random((1, 3, 8, 8), "float32"))]
    plain = relax.VirtualMachine(relax.build(mod, TARGET), tvm.cpu())["main"](*images)
    tuned = relax.VirtualMachine(ms.relax_integration.compile_relax(empty, mod, TARGET),
                                 tvm.cpu())["main"](*images)
    assert np.array_equal(plain.numpy(), tuned.numpy())
    # bringing kernels into kernels changes nothing: tuned modules are built once more
    once = ms.relax_integration.prepare(mod)
    assert [v.name_hint for v in ms.relax_integration.prepare(once).functions] == [
        v.name_hint for v in once.functions]


def small_convnet():
    """Kernels of several kinds: convolution with pooling, product, softmax; weights bound."""
    from mlc_lab.relax.frontend import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2D(3, 8, 3, padding=1)
            self.fc = nn.Linear(8 * 4 * 4, 10)

        def forward(self, x):
            y = nn.op.relu(self.conv(x))
            y = nn.wrap_nested(relax.op.nn.max_pool2d(y._expr, [2, 2], [2, 2]), "pool")
            return nn.op.softmax(self.fc(nn.op.reshape(y, (1, -1))))

    mod, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor((1, 3, 8, 8), "float32")}})
    rng = np.random.default_rng(0)
    return mod, [rng.standard_normal([int(d) for d in p.shape]).astype("float32")
                 for _, p in params]


def answers(mod, arrays):
    """What `forward` gives."""
    vm = relax.VirtualMachine(relax.build(mod, TARGET), tvm.cpu())
    x = np.random.default_rng(1).random((1, 3, 8, 8), "float32")
    return vm["forward"](*map(tvm.nd.array, (x, *arrays))).numpy()


def test_a_pipeline_that_tunes(tmp_path, capsys):
    mod, arrays = small_convnet()
    tuned = relax.get_pipeline("static_shape_tuning", target=TARGET, total_trials=6,
                               work_dir=str(tmp_path))(mod)
    np.testing.assert_allclose(answers(tuned, arrays), answers(mod, arrays), rtol=1e-3, atol=1e-5)
    found = ms.database.create("sqlite", work_dir=str(tmp_path))
    assert len(found) == 6
    shares = [r.task for r in found.get_all_tuning_records()]
    assert {n: shares.count(n) for n in set(shares)} == {
        "transpose": 2, "softmax": 2, "fused_matmul_add1": 2}  # and none for what only reshapes
    # the pass finds what was tuned in the module that was tuned
    capsys.readouterr()
    plain = relax.get_pipeline("zero")(mod)
    again = relax.transform.MetaScheduleApplyDatabase(str(tmp_path), True, TARGET)(plain)
    missing = capsys.readouterr().out.splitlines()
    kernels = [v for v, f in plain.functions.items() if isinstance(f, tvm.tir.PrimFunc)]
    tuned_now = [v for v in kernels if again[v.name_hint] is not plain[v.name_hint]]
    assert {v.name_hint for v in tuned_now} == {"transpose", "softmax", "fused_matmul_add1"}
    assert [line.partition(":")[0] for line in missing] == ["fused_conv2d_add_relu_max_pool2d"]
    with found:
        inside = relax.transform.MetaScheduleApplyDatabase(target=TARGET)(plain)
    assert any(inside[v.name_hint] is not plain[v.name_hint] for v in kernels)


def test_the_passes_of_tuning_in_a_sequence(tmp_path):
    mod, arrays = small_convnet()
    with tvm.target.Target(TARGET):
        tuned = tvm.transform.Sequential([
            relax.get_pipeline("zero"),
            relax.transform.MetaScheduleTuneTIR(str(tmp_path), 4),
            relax.transform.MetaScheduleApplyDatabase(str(tmp_path)),
        ])(mod)
    np.testing.assert_allclose(answers(tuned, arrays), answers(mod, arrays), rtol=1e-3, atol=1e-5)
    with pytest.raises(ValueError, match="needs a database"):
        relax.transform.MetaScheduleApplyDatabase()(mod)
    with pytest.raises(ValueError, match="cpu_weight_prepack"):
        relax.get_pipeline("static_shape_tuning", total_trials=4, cpu_weight_prepack=True)
    with pytest.raises(ValueError, match="static_shape_tuning"):
        relax.get_pipeline("static_shape_tunning")


def test_kernels_that_were_written_as_they_run_are_left_out():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 32), "float32"))
    with bb.function("main", [x]):
        y = bb.emit(relax.op.cumsum(bb.emit(relax.op.nn.relu(x)), axis=1))
        bb.emit_func_output(bb.emit(relax.op.sort(y)))
    mod = relax.transform.LegalizeOps()(bb.get())
    database = ms.tune_relax(mod, None, TARGET, None, 2, verbose=False)
    assert {r.task for r in database.get_all_tuning_records()} == {"relu"}
    with pytest.raises(ValueError, match="BindSymbolicVars"):
        ms.tune_relax(mod, None, TARGET, None, 2, op_names=["sort"])
