"""The search listings of the course notes, as they stand: stochastic schedules, random search,
tune_tir and compile_tir. Some lost their indentation on the way and got it back here.
"""

import re

import numpy as np

from .seeds import MATMUL, MIXTURE, STOCHASTIC, TENSORS

RANDOM_SEARCH = """
def random_search(mod: tvm.IRModule, num_trails=5):
    best_result = None
    best_sch = False

    for i in range(num_trails):
        sch = stochastic_schedule_mm(tvm.tir.Schedule(mod))
        lib = tvm.build(sch.mod, target="llvm")
        f_timer_after = lib.time_evaluator("main", tvm.cpu())
        result = f_timer_after(a_nd, b_nd, c_nd).mean

        print("=====Attempt %d, time-cost: %.3f ms====" % (i, result * 1000))
        print(sch.trace)

        # book keep the best result so far
        if best_result is None or result < best_result:
            best_result = result
            best_sch = sch

    return best_sch
"""

TUNE = """
from tvm import meta_schedule as ms
database = ms.tune_tir(
    mod=MyModule,
    target="llvm --num-cores=1",
    max_trials_global=64,
    num_trials_per_iter=64,
    space=ms.space_generator.ScheduleFn(stochastic_schedule_mm),
    work_dir="./tune_tmp",
    task_name="main"
)

sch_tuned = ms.tir_integration.compile_tir(database, MyModule, target="llvm --num-cores=1")
print(sch_tuned.trace)
"""


def test_a_stochastic_schedule_and_a_random_search(notebook):
    notebook(MATMUL + STOCHASTIC + TENSORS)
    out = notebook('''
sch = tvm.tir.Schedule(MyModule)
sch = stochastic_schedule_mm(sch)
print(sch.trace)
''')
    assert "sch.sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16, decision=[" in out
    assert "sch.split(loop=l2, factors=[v4, v5], preserve_unit_iters=True" in out
    assert "b8 = sch.decompose_reduction(block=b0, loop=l3)" in out
    out = notebook(RANDOM_SEARCH + "\nsch = random_search(MyModule, 3)\n")
    assert out.count("=====Attempt") == 3
    np.testing.assert_allclose(notebook.scope["c_nd"].numpy(), notebook.scope["c_mm"], rtol=1e-5)


def test_tune_tir_over_the_notes_own_space(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook(MATMUL)
    notebook(STOCHASTIC)
    text = notebook(TUNE)
    assert re.search(r"ID \| +Name \| +FLOP \| +Weight \| +Speed \(GFLOPS\) \| +Latency \(us\) \| +"
                     r"Weighted Latency \(us\) \| +Trials \| +Done", text)
    # the notes' space has five programs (the factors of 128 up to 16), and each is tried once
    assert "Total trials: 5" in text
    assert "all programs of its space were tried" in text
    assert "decision=" in text
    assert (tmp_path / "tune_tmp").is_dir()
    a, b = (np.random.rand(128, 128).astype("float32") for _ in range(2))
    c = np.zeros((128, 128), "float32")
    notebook('lib = tvm.build(sch_tuned.mod, target="llvm")')
    notebook.scope["lib"]["main"](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)


TUNE_LINEAR = """
from tvm import meta_schedule as ms
mod_linear = tvm.IRModule.from_expr(MyModuleMixture["linear0"].with_attr("global_symbol", "main"))
database = ms.tune_tir(
    mod=mod_linear,
    target="llvm --num-cores=1",
    max_trials_global=64,
    num_trials_per_iter=64,
    work_dir="./tune_tmp",
    task_name="main",
)
sch = ms.tir_integration.compile_tir(database, mod_linear, "llvm --num-cores=1")
"""

PUT_BACK = """
from tvm import relax
MyModuleWithParams2 = relax.transform.BindParams("main", nd_params)(MyModuleMixture)
new_func = sch.mod["main"].with_attr("global_symbol", "linear0")
gv = MyModuleWithParams2.get_global_var("linear0")
MyModuleWithParams2.update_func(gv, new_func)
ex = relax.build(MyModuleWithParams2, target="llvm")
vm = relax.VirtualMachine(ex, tvm.cpu())
nd_res = vm["main"](data_nd)
"""

ENVIRONMENT = """
@tvm.register_func("env.linear", override=True)
def linear(x: tvm.nd.NDArray, w: tvm.nd.NDArray, b: tvm.nd.NDArray, out: tvm.nd.NDArray):
    out.copyfrom(x.numpy() @ w.numpy().T + b.numpy())
@tvm.register_func("env.relu", override=True)
def lnumpy_relu(x: tvm.nd.NDArray, out: tvm.nd.NDArray):
    out.copyfrom(np.maximum(x.numpy(), 0))
shapes = {"w0": (128, 784), "b0": (128,), "w1": (10, 128), "b1": (10,)}
mlp_params = {k: np.random.rand(*s).astype("float32") for k, s in shapes.items()}
nd_params = {k: tvm.nd.array(v) for k, v in mlp_params.items()}
data = np.random.rand(1, 784).astype("float32")
data_nd = tvm.nd.array(data)
"""


def test_a_tuned_kernel_is_put_back_into_the_model(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook("from tvm.script import relax as R\n" + MIXTURE)
    notebook(ENVIRONMENT)
    text = notebook(TUNE_LINEAR)
    assert "Total trials: " in text  # 64, or as many as the space has programs
    notebook(PUT_BACK)
    p, x = notebook.scope["mlp_params"], notebook.scope["data"]
    right = np.maximum(x @ p["w0"].T + p["b0"], 0) @ p["w1"].T + p["b1"]
    np.testing.assert_allclose(notebook.scope["nd_res"].numpy(), right, rtol=1e-4)
