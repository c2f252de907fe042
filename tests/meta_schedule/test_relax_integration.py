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
