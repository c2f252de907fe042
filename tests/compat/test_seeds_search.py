"""The search listings of the course notes, as they stand: stochastic schedules, random search,
tune_tir and compile_tir. Some lost their indentation on the way and got it back here.
"""

import re

import numpy as np

from .test_seeds import MATMUL, notebook  # noqa: F401  (the fixture)

SCHEDULE_MM = """
def schedule_mm(sch: tvm.tir.Schedule, jfactor=4):
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_0, j_1 = sch.split(loop=j, factors=[None, jfactor])
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block_C, k)
    return sch

sch = tvm.tir.Schedule(MyModule)
sch = schedule_mm(sch)
sch.mod.show()
"""

TIMES = """
a_np = np.random.rand(128, 128).astype(dtype)
b_np = np.random.rand(128, 128).astype(dtype)
c_mm = a_np @ b_np

a_nd = tvm.nd.array(a_np)
b_nd = tvm.nd.array(b_np)
c_nd = tvm.nd.empty((128, 128), dtype="float32")
# Before transformation
lib = tvm.build(MyModule, target= "llvm")
f_timer_before = lib.time_evaluator("main", tvm.cpu())
print("Time cost of MyModule: %.3f ms" % (f_timer_before(a_nd, b_nd, c_nd).mean * 1000))
# After transformation
lib = tvm.build(sch.mod, target="llvm")
f_timer_after = lib.time_evaluator("main", tvm.cpu())
print("Time cost of MyModule=>schedule_mm: %.3f ms" % (f_timer_after(a_nd, b_nd, c_nd).mean * 1000))
"""

STOCHASTIC = """
def stochastic_schedule_mm(sch: tvm.tir.Schedule):
    block_C = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block_C)
    j_factors = sch.sample_perfect_tile(loop=j, n=2)  # tvm.tir.expr.Var
    j_0, j_1 = sch.split(loop=j, factors=j_factors)
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block_C, k)
    return sch
"""

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


def test_random_search_by_hand(notebook):  # noqa: F811
    notebook(MATMUL)
    assert "for i, j_0 in T.grid(128, 32)" in notebook(SCHEDULE_MM)
    assert notebook(TIMES).count("Time cost") == 2
    notebook(STOCHASTIC)
    notebook("sch = tvm.tir.Schedule(MyModule)\nsch = stochastic_schedule_mm(sch)")
    assert "sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16, decision=" in notebook(
        "print(sch.trace)")
    text = notebook(RANDOM_SEARCH + "\nbest = random_search(MyModule)\n")
    assert text.count("=====Attempt") == 5


def test_tune_tir_over_the_notes_own_space(notebook, tmp_path, monkeypatch):  # noqa: F811
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


MIXTURE = '''
from tvm.script import relax as R
@tvm.script.ir_module
class MyModuleMixture:
    @T.prim_func
    def linear0(X: T.Buffer((1, 784), "float32"),
                W: T.Buffer((128, 784), "float32"),
                B: T.Buffer((128,), "float32"),
                Z: T.Buffer((1, 128), "float32")):
        T.func_attr({"global_symbol": "linear0", "tir.noalias": True})
        Y = T.alloc_buffer((1, 128), "float32")
        for i, j, k in T.grid(1, 128, 784):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, 128):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @R.function
    def main(x: R.Tensor((1, 784), "float32"),
             w0: R.Tensor((128, 784), "float32"),
             b0: R.Tensor((128,), "float32"),
             w1: R.Tensor((10, 128), "float32"),
             b1: R.Tensor((10,), "float32")):
        with R.dataflow():
            lv0 = R.call_dps_packed("linear0", (x, w0, b0), R.Tensor((1, 128), dtype="float32"))
            lv1 = R.call_dps_packed("env.relu", (lv0,), R.Tensor((1, 128), dtype="float32"))
            out = R.call_dps_packed("env.linear", (lv1, w1, b1), R.Tensor((1, 10), dtype="float32"))
            R.output(out)
        return out
'''

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


def test_a_tuned_kernel_is_put_back_into_the_model(notebook, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    notebook(MIXTURE)
    notebook(ENVIRONMENT)
    text = notebook(TUNE_LINEAR)
    assert "Total trials: " in text  # 64, or as many as the space has programs
    notebook(PUT_BACK)
    p, x = notebook.scope["mlp_params"], notebook.scope["data"]
    right = np.maximum(x @ p["w0"].T + p["b0"], 0) @ p["w1"].T + p["b1"]
    np.testing.assert_allclose(notebook.scope["nd_res"].numpy(), right, rtol=1e-4)
