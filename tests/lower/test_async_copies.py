"""Asynchronous copies: on CUDA from sm_80 on, waited for before they are used; plain elsewhere."""

import numpy as np
import pytest
from backend.gpu_programs import missing, tiled_schedule

import mlc_lab as tvm
from mlc_lab.arith import Analyzer
from mlc_lab.backend.device.nvrtc import available, compile_cuda
from mlc_lab.backend.interp import interpret
from mlc_lab.script import from_source
from mlc_lab.tir import expr as E
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order, substitute
from mlc_lab.tir.op import as_int

A100, TURING = "nvidia/nvidia-a100", "nvidia/geforce-rtx-2080-ti"
SHAPES = [([0, 0, 1], [0, 1, 2]), ([0, 0, 1], [1, 2, 0]), ([0, 0, 2], [0, 1, 2]),
          ([0, 0, 3], [1, 2, 0]), ([1, 1, 3], [0, 1, 2])]


def pipeline(stages, orders, k=64, marked=None, **how):
    sch = tiled_schedule(k=k, **how)
    loops = sch.get_loops(sch.get_block("C_update"))
    k0 = next(rv for rv in loops if sch.get(rv).loop_var.name == "k_0")
    sch.annotate(k0, "software_pipeline_stage", stages)
    sch.annotate(k0, "software_pipeline_order", orders)
    sch.annotate(k0, "software_pipeline_async_stages", stages[:1] if marked is None else marked)
    return sch.mod


def kernel_of(mod, target=A100):
    found = tvm.lower(mod, target=target)
    return next(f for v, f in found.functions.items() if v.name_hint.endswith("_kernel"))


def source_of(mod, target=A100):
    return tvm.build(mod, target=target).imported_modules[0].get_source()


class Walk:
    """The kernel of one thread, step by step: each version that is used was waited for, with a
    barrier since, and none is overwritten that was used since the last barrier."""

    def __init__(self, func, size):
        self.size, self.groups, self.copying = size, 0, False
        self.arrived = set()  # groups that were waited for
        self.seen = set()  # those that are there for all threads: a barrier since
        self.holds, self.used = {}, set()  # version -> its group; versions used since the barrier
        self.uses = 0
        self.run(func.body, {})

    def version(self, buffer, index, env):
        base = index.base if type(index) is E.Ramp else index
        table = {v: E.IntImm(v.dtype, env.get(v, 0)) for v in pre_order(base)
                 if isinstance(v, E.Var)}
        return buffer.data, as_int(Analyzer().simplify(substitute(base, table))) // self.size

    def run(self, s, env):
        if type(s) is S.AttrStmt and s.attr_key == "async_wait_inflight_count":
            self.arrived.update(range(self.groups - as_int(s.value)))
        if type(s) is S.For and any(type(x) is S.AttrStmt for x in pre_order(s.body)):
            for i in range(as_int(s.extent)):
                self.run(s.body, {**env, s.loop_var: i})
            return
        commits = type(s) is S.AttrStmt and s.attr_key == "async_commit_queue_scope"
        self.copying |= commits
        if type(s) is S.Evaluate:
            self.seen, self.used = set(self.arrived), set()
            return
        if type(s) in (S.For, S.BufferStore) and self.copying:
            for x in pre_order(s):
                if type(x) is S.BufferStore:
                    place = self.version(x.buffer, x.indices[0], env)
                    assert place not in self.used
                    self.holds[place] = self.groups
            return
        if type(s) in (S.For, S.BufferStore):
            for x in pre_order(s):
                if type(x) is E.BufferLoad and x.buffer.scope() == "shared":
                    place = self.version(x.buffer, x.indices[0], env)
                    assert self.holds[place] in self.seen, "it was not waited for"
                    self.used.add(place)
                    self.uses += 1
            return
        for child in s.children():
            if isinstance(child, S.Stmt):
                self.run(child, env)
        if commits:
            self.groups += 1
            self.copying = False


@pytest.mark.parametrize("k", [8, 24, 64])
@pytest.mark.parametrize("stages, orders", SHAPES)
def test_copies_are_there_when_they_are_used(stages, orders, k):
    mod = pipeline(stages, orders, k)
    walk = Walk(kernel_of(mod), 128)
    assert walk.uses and walk.groups >= k // 8
    a, b = np.random.rand(32, k).astype("float32"), np.random.rand(k, 32).astype("float32")
    c = np.zeros((32, 32), "float32")
    interpret(tvm.lower(mod, target=A100), a, b, c, func_name="main")
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    held = [tvm.nd.array(x, tvm.cuda(0)) for x in (a, b, np.zeros_like(c))]
    tvm.build(mod, target=A100)(*held)
    np.testing.assert_allclose(held[2].numpy(), a @ b, rtol=1e-4)
    assert not tvm.find_races(mod, A100)


def test_one_barrier_and_one_wait_an_iteration():
    for stages, orders in SHAPES[:4]:
        text = source_of(pipeline(stages, orders))
        loop = text[text.index("for (int k_0"):text.index("\n  }\n", text.index("for (int k_0"))]
        assert loop.count("__syncthreads") == loop.count("wait_for_copies") == 1
        assert loop.count("commit_copies") == 1 and loop.count("copy_async<16>") == 2
        assert f"wait_for_copies<{stages[2] - 1}>" in loop


@pytest.mark.parametrize("vector, nbytes", [(1, 4), (2, 8), (4, 16)])
def test_what_nvrtc_makes_of_it(vector, nbytes):
    if not available():
        missing("cuda", "NVRTC is not installed")
    text = source_of(pipeline([0, 0, 2], [0, 1, 2], vector=vector))
    assert f"copy_async<{nbytes}>" in text
    for architecture in ("sm_75", "sm_80", "sm_90"):
        assert compile_cuda(text, "kernel", architecture)
        ptx = compile_cuda(text, "kernel", architecture.replace("sm", "compute")).decode()
        if architecture == "sm_75":
            assert "cp.async" not in ptx
        else:
            assert "cp.async.ca.shared.global [%r" in ptx and f"], {nbytes};" in ptx
            assert "cp.async.commit_group" in ptx and "cp.async.wait_group 1" in ptx


@pytest.mark.parametrize("target", [TURING, "cuda", "opencl", "webgpu", "metal"])
def test_other_targets_copy_plainly(target):
    mod = pipeline([0, 0, 1], [0, 1, 2])
    assert "async" not in source_of(mod, target)
    plain = pipeline([0, 0, 1], [0, 1, 2], marked=[])
    assert source_of(mod, target) == source_of(plain, target)


def test_stages_that_are_not_copies_or_used_at_once_stay_as_they_are():
    for mod in (pipeline([0, 0, 0], [0, 1, 2]), pipeline([0, 0, 1], [0, 1, 2], marked=[1]),
                pipeline([0, 0, 1], [0, 1, 2], marked=[7])):
        assert "async" not in source_of(mod)


def test_elements_of_two_bytes_and_values_that_are_computed_are_stored_plainly():
    text = """
@T.prim_func
def main(A: T.Buffer((8, 32), "{dtype}"), C: T.Buffer((8, 32), "{dtype}")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        for k in T.serial(8, annotations={{"software_pipeline_stage": [0, 1],
                                           "software_pipeline_order": [0, 1],
                                           "software_pipeline_async_stages": [0]}}):
            with T.block(""):
                T.reads(A[k, 0:32])
                T.writes(C[k, 0:32])
                B = T.alloc_buffer((32,), "{dtype}", scope="shared")
                with T.block("B"):
                    T.reads(A[k, t])
                    T.writes(B[t])
                    B[t] = {value}
                with T.block("C"):
                    T.reads(B[31 - t])
                    T.writes(C[k, t])
                    C[k, t] = B[31 - t]
"""
    plain = from_source(text.format(dtype="float32", value="A[k, t] * T.float32(2)"))
    assert "async" not in source_of(plain)
    assert "copy_async<4>(B" in source_of(
        from_source(text.format(dtype="float32", value="A[k, t]")))
    half = source_of(from_source(text.format(dtype="float16", value="A[k, t]")))
    assert "copy_async<" not in half.partition("__global__")[2]
    if available():
        assert compile_cuda(half, "kernel", "sm_80")
