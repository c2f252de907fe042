"""Default schedules for GPUs: which rule fits, and that kernels compute what the program says."""

import numpy as np
import pytest
from backend.gpu_programs import arguments, product

import mlc_lab as tvm
from mlc_lab import dlight
from mlc_lab.backend.interp import interpret
from mlc_lab.lower import LowerError
from mlc_lab.runtime import driver
from mlc_lab.script import from_source
from mlc_lab.target import Target
from mlc_lab.tir.functor import pre_order
from mlc_lab.tir.shuffles import is_shuffle

HEAD = "@T.prim_func\ndef main({params}):\n{body}"


def program(params, body):
    return from_source(HEAD.format(params=params, body="\n".join(
        f"    {line}" for line in body.strip("\n").splitlines())))


def func(mod):
    return mod if hasattr(mod, "params") else mod["main"]


LINEAR = """
n = T.int64()
A = T.match_buffer(a, (n, 24), "float32")
C = T.match_buffer(c, (n, 40), "float32")
D = T.alloc_buffer((n, 40), "float32")
for i, j, k in T.grid(n, 40, 24):
    with T.block("D"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            D[vi, vj] = T.float32(0)
        D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vj, vk]
for i, j in T.grid(n, 40):
    with T.block("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = T.max(D[vi, vj] + E[vj], T.float32(0))
"""
BATCHED = """
for b, i, j, k in T.grid(3, 16, 32, 20):
    with T.block("C"):
        vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
        with T.init():
            C[vb, vi, vj] = T.float32(0)
        C[vb, vi, vj] = C[vb, vi, vj] + A[vb, vi, vk] * B[vb, vk, vj]
"""
NORM = """
S = T.alloc_buffer((6,), "float32")
for i, k in T.grid(6, 300):
    with T.block("S"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            S[vi] = T.float32(0)
        S[vi] = S[vi] + A[vi, vk] * A[vi, vk]
for i, k in T.grid(6, 300):
    with T.block("B"):
        vi, vk = T.axis.remap("SS", [i, k])
        B[vi, vk] = A[vi, vk] / T.sqrt(S[vi])
"""
TURNED = """
for i, j in T.grid(48, 32):
    with T.block("B"):
        vi, vj = T.axis.remap("SS", [i, j])
        B[vi, vj] = A[vj, vi]
"""
POOLED = """
for i, j, p, q in T.grid(5, 7, 3, 3):
    with T.block("B"):
        vi, vj, vp, vq = T.axis.remap("SSRR", [i, j, p, q])
        with T.init():
            B[vi, vj] = T.min_value("float32")
        B[vi, vj] = T.max(B[vi, vj], A[vi * 2 + vp, vj * 2 + vq])
"""
RUNNING = """
for i in range(9):
    with T.block("B"):
        vi = T.axis.opaque(9, i)
        B[vi] = A[vi] + T.if_then_else(vi > 0, B[vi - 1], T.float32(0))
"""
VECTOR = """
for i, k in T.grid(64, 4096):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = T.float32(0)
        C[vi] = C[vi] + A[vi, vk] * B[vk]
"""
TOTAL = """
for k in range(1000):
    with T.block("B"):
        vk = T.axis.reduce(1000, k)
        with T.init():
            B[()] = T.float32(0)
        B[()] = B[()] + A[vk]
"""


def f32(**shapes):
    return ", ".join(f'{name}: T.Buffer({shape}, "float32")' for name, shape in shapes.items())


#: name -> (rule that fits, program)
PROGRAMS = {
    "product": ("Matmul", lambda: product(64, 64, 64)),
    "uneven product": ("Matmul", lambda: product(37, 50, 21)),
    "linear": ("Matmul", lambda: program(
        'a: T.handle, B: T.Buffer((40, 24), "float32"), E: T.Buffer((40,), "float32"), '
        "c: T.handle", LINEAR)),
    "batched": ("Matmul", lambda: program(f32(A=(3, 16, 20), B=(3, 20, 32), C=(3, 16, 32)),
                                          BATCHED)),
    # the columns of a product with one row are neighbours in B: a thread each
    "vector": ("Fallback", lambda: product(1, 48, 128)),
    "norm": ("Reduction", lambda: program(f32(A=(6, 300), B=(6, 300)), NORM)),
    "total": ("Reduction", lambda: program(f32(A=(1000,), B="()"), TOTAL)),
    "transpose": ("Transpose", lambda: program(f32(A=(32, 48), B=(48, 32)), TURNED)),
    "pooling": ("Fallback", lambda: program(f32(A=(12, 16), B=(5, 7)), POOLED)),
}


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    monkeypatch.setenv("MLC_LAB_DEVICE", "simulated")
    driver.driver_of.cache_clear()
    yield
    driver.driver_of.cache_clear()


@pytest.mark.parametrize("target", ["cuda", "webgpu"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_compute_what_the_program_says(name, target):
    rule, make = PROGRAMS[name]
    mod = make()
    mod = tvm.IRModule({"main": func(mod)})
    args = arguments(mod)
    want = [a.copy() for a in args]
    interpret(mod, *want)
    fits = [type(r).__name__ for r in dlight.gpu.default_rules()
            if r.apply(mod["main"], target) is not None]
    assert fits[0] == rule
    with Target(target):
        made = dlight.ApplyDefaultSchedule()(mod)
    rt = tvm.build(made, target=target)
    dev = tvm.device(target, 0)
    there = [tvm.nd.array(a, dev) for a in args]
    rt["main"](*there)
    for got, right in zip(there, want):
        np.testing.assert_allclose(got.numpy(), right, rtol=1e-4, atol=1e-4)
    assert str(tvm.find_races(made, target, sizes={"n": 19})) == "no races"


@pytest.mark.parametrize(("make", "rows"), [
    (PROGRAMS["norm"][1], 6), (PROGRAMS["total"][1], 1),
    (lambda: program(f32(A=(64, 4096), B=(4096,), C=(64,)), VECTOR), 64),
])
def test_the_threads_of_a_block_sum_a_row_together(make, rows):
    with Target("cuda"):
        made = dlight.ApplyDefaultSchedule()(tvm.IRModule({"main": func(make())}))
    lowered = tvm.lower(made, target="cuda")
    sums = [f for f in lowered.functions.values() if any(is_shuffle(x) for x in pre_order(f))]
    assert sums, "a thread sums a row alone"
    assert f'T.launch_thread("blockIdx.x", {rows})' in sums[0].script() or rows == 1


def test_a_function_that_has_a_schedule_keeps_it():
    with Target("cuda"):
        once = dlight.ApplyDefaultSchedule()(tvm.IRModule({"main": func(product())}))
        assert dlight.ApplyDefaultSchedule()(once) is once


def test_what_follows_a_product_is_part_of_its_kernel():
    with Target("cuda"):
        made = dlight.ApplyDefaultSchedule()(tvm.IRModule({"main": func(PROGRAMS["linear"][1]())}))
    assert len(tvm.count_gpu(made, sizes={"n": 64})) == 1


def test_tiles_of_a_transpose_have_few_conflicts():
    """Both sides are neighbours in memory: two rows of 64 bytes a warp."""
    with Target("cuda"):
        made = dlight.ApplyDefaultSchedule()(
            tvm.IRModule({"main": func(PROGRAMS["transpose"][1]())}))
    (k,) = tvm.count_gpu(made)
    assert k.site("A").sectors_a_request == 4 and k.site("B", write=True).sectors_a_request == 4
    # of the two rows of a warp one word of each lies in one bank
    assert all(s.conflicts <= s.requests for s in k.sites)


def test_what_threads_cannot_share_is_refused_with_its_name():
    """Each iteration reads what the one before has stored."""
    mod = tvm.IRModule({"main": func(program(f32(A=(9,), B=(9,)), RUNNING))})
    with Target("cuda"):
        made = dlight.ApplyDefaultSchedule()(mod)
    with pytest.raises(LowerError, match="B is written outside of a kernel"):
        tvm.build(made, target="cuda")


def test_tvm_names_the_rules_so():
    assert dlight.gpu.GEMV is dlight.gpu.GeneralReduction
    assert {"Matmul", "GEMV", "Reduction", "Transpose", "Fallback"} <= set(dir(dlight.gpu))
    with Target("cuda"):
        made = dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())(
            tvm.IRModule({"main": func(product())}))
    assert "threadIdx.x" in made.script() and "shared" not in made.script()
