"""Listings of TensorIR and of tuning as they were written in 2022, and with the names of 2025."""

from __future__ import annotations

import numpy as np
import pytest

import mlc_lab.compat

mlc_lab.compat.install()

import tvm
import tvm.tirx
from tvm import meta_schedule as ms
from tvm import tirx
from tvm.meta_schedule import default_config
from tvm.script import tir as T
from tvm.script import tirx as TX


@tvm.script.ir_module
class MatmulRelu:
    """0.9: shapes of buffers in brackets, sizes by T.alloc_buffer."""

    @T.prim_func
    def main(A: T.Buffer[(16, 16), "float32"], B: T.Buffer[(16, 16), "float32"],
             C: T.Buffer[(16, 16), "float32"]) -> None:
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        Y = T.alloc_buffer((16, 16), dtype="float32")
        for i, j, k in T.grid(16, 16, 16):
            with T.block("Y"):
                vi = T.axis.spatial(16, i)
                vj = T.axis.spatial(16, j)
                vk = T.axis.reduce(16, k)
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(16, 16):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


def check(mod):
    func = tvm.build(mod, target="llvm")["main"]
    a, b = (np.random.default_rng(n).random((16, 16), "float32") - 0.5 for n in range(2))
    c = tvm.nd.empty((16, 16), "float32")
    func(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)


def test_a_schedule_of_2022():
    sch = tvm.tir.Schedule(MatmulRelu)
    block = sch.get_block("Y", func_name="main")
    i, j, k = sch.get_loops(block)
    sch.cache_read(block, read_buffer_index=1, storage_scope="global")
    j0, j1 = sch.split(j, factors=[None, 4])
    sch.reorder(i, j0, k, j1)
    sch.reverse_compute_at(sch.get_block("C", func_name="main"), j0)
    sch.decompose_reduction(block, k)
    check(sch.mod)


@pytest.mark.parametrize("config", [
    lambda: ms.TuneConfig(max_trials_global=3, num_trials_per_iter=3),
    lambda: ms.TuneConfig(3, 3, strategy="replay_trace"),
    lambda: ms.ReplayTraceConfig(num_trials_per_iter=3, max_trials_per_task=3),
    lambda: ms.EvolutionarySearchConfig(num_trials_per_iter=3, max_trials_per_task=3,
                                        max_trials_global=3, population_size=8)])
def test_a_search_with_its_options_in_one_object_gives_the_schedule(config, tmp_path):
    def space(sch):
        sch.split(sch.get_loops("Y")[1], sch.sample_perfect_tile(sch.get_loops("Y")[1], n=2))

    sch = ms.tune_tir(mod=MatmulRelu, target="llvm --num-cores=1", config=config(),
                      work_dir=str(tmp_path), task_name="main",
                      space=ms.space_generator.ScheduleFn(space))
    assert "sample_perfect_tile" in str(sch.trace)
    check(sch.mod)
    with pytest.raises(TypeError, match="config= takes a TuneConfig"):
        ms.tune_tir(MatmulRelu, "llvm", str(tmp_path), config={"max_trials_global": 3})
    with pytest.raises(ValueError, match="no search strategy 'guess'"):
        ms.tune_tir(MatmulRelu, "llvm", str(tmp_path), config=ms.TuneConfig(3, strategy="guess"))


@T.prim_func
def strided(a: T.handle, b: T.handle) -> None:
    """0.8 to 0.11: variables by T.var, strides of a caller, a view by T.buffer_decl."""
    m = T.var("int32")
    n = T.var("int32")
    s = T.var("int32")
    A = T.match_buffer(a, (m, n), "float32", strides=[s, 1])
    B = T.match_buffer(b, [m, n], dtype="float32")
    flat = T.buffer_decl([m * n], dtype="float32", data=B.data)
    for i, j in T.grid(m, n):
        flat[i * n + j] = A[i, j] * T.float32(2)


def test_strides_of_the_caller_and_a_view():
    a = np.arange(24, dtype="float32").reshape(4, 6)[:, :4]
    b = np.zeros((4, 4), "float32")
    tvm.build(strided, "llvm")(a, b)
    np.testing.assert_array_equal(b, a * 2)


def test_names_of_2025():
    """0.21 and later: blocks are sblocks, TensorIR is tirx."""
    assert tirx is tvm.tir and TX is T

    @TX.prim_func
    def twice(A: TX.Buffer((8,), "float32"), B: TX.Buffer((8,), "float32")):
        for i in range(8):
            with TX.sblock("B"):
                vi = TX.axis.spatial(8, i)
                B[vi] = A[vi] * TX.float32(2)

    sch = tvm.tir.Schedule(twice)
    assert sch.get(sch.get_block("B")).name_hint == "B"
    b = np.zeros(8, "float32")
    tvm.build(twice, "llvm")(np.arange(8, dtype="float32"), b)
    np.testing.assert_array_equal(b, np.arange(8) * 2)


def test_a_function_for_a_gpu_touches_memory_in_threads():
    func = MatmulRelu["main"]
    assert tvm.tir.analysis.verify_memory(func)
    assert not tvm.tir.analysis.verify_memory(func.with_attr("target", tvm.target.Target("cuda")))


def test_parameters_of_other_releases():
    """0.8: `debug_mode`; 0.10: `blockize(loop=)`."""
    sch = tvm.tir.Schedule(MatmulRelu, debug_mode=True)
    loop = sch.get_loops(sch.get_block("Y"))[1]
    outer = sch.blockize(loop=loop)
    assert "Y_o" in sch.get(outer).name_hint
    with pytest.raises(TypeError, match="takes no argument 'debug_mood'"):
        tvm.tir.Schedule(MatmulRelu, debug_mood=True)
    with pytest.raises(TypeError, match="blockize"):
        sch.blockize(block=loop)


def test_methods_of_other_releases():
    """0.21 and later: `get_sblock`."""
    sch = tvm.tir.Schedule(MatmulRelu)
    loops = sch.get_loops(sch.get_sblock("Y"))
    assert len(loops) == 3 and 'sch.get_block(name="Y"' in str(sch.trace)
    again = tvm.tir.Schedule(MatmulRelu)
    tvm.tir.schedule.Trace.from_python(str(sch.trace).replace("get_block", "get_sblock")
                                       ).apply_to_schedule(again)
    assert str(again.trace) == str(sch.trace)
    with pytest.raises(AttributeError, match="'Schedule' object has no attribute 'get_sblok'"):
        sch.get_sblok("Y")


def test_what_a_search_took_by_default():
    assert default_config is ms.default_config
    target = default_config.target("llvm --num-cores=2")
    rules = default_config.schedule_rules(None, target)
    names = [type(r).__name__ for r in rules]
    assert "MultiLevelTiling" in names and [type(r).__name__ for r in
                                            default_config._DefaultLLVM.schedule_rules()] == names
    assert default_config.schedule_rules(list, target) == []
    assert default_config.postproc(None, target) and default_config.mutator_probs(None, target)
    assert default_config._DefaultCUDA.postprocs() and default_config._DefaultLLVM.mutator_probs()
