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
    assert "Total trials: 64" in text
    assert "decision=" in text
    assert (tmp_path / "tune_tmp").is_dir()
    a, b = (np.random.rand(128, 128).astype("float32") for _ in range(2))
    c = np.zeros((128, 128), "float32")
    notebook('lib = tvm.build(sch_tuned.mod, target="llvm")')
    notebook.scope["lib"]["main"](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)
