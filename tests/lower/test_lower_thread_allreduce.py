"""Threads combine their values: by shuffles within a warp, by one barrier where there are more."""

import random

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.backend.interp import interpret
from mlc_lab.backend.meaning import evaluate
from mlc_lab.lower import lower
from mlc_lab.runtime import driver
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order
from mlc_lab.tir.shuffles import is_shuffle

from .thread_sums import arrays, of, expected, for_all, in_a_loop, together, under_a_condition


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    """Real devices, where there are some, are left alone."""
    monkeypatch.setenv("MLC_LAB_DEVICE", "simulated")
    driver.driver_of.cache_clear()
    yield
    driver.driver_of.cache_clear()


def made_of(mod, target="cuda"):
    """How many (barriers, shuffles, bytes of shared memory) a kernel has."""
    barriers = shuffles = shared = 0
    for node in pre_order(kernel_of(mod, target).body):
        barriers += getattr(getattr(node, "op", None), "name", "") == "tir.tvm_storage_sync"
        shuffles += is_shuffle(node)
        if type(node) is S.Allocate and node.buffer_var.storage_scope.startswith("shared"):
            shared += int(node.extents[0]) * tvm.DataType(node.dtype).bits // 8
    return barriers, shuffles, shared


def kernel_of(mod, target="cuda"):
    return next(f for v, f in lower(mod, target=target).functions.items()
                if v.name_hint.endswith("_kernel"))


def on_device(mod, args, target="cuda"):
    rt = tvm.build(mod, target=target)
    dev = tvm.device(rt.device_type, 0)
    there = [tvm.nd.array(a, dev) for a in args]
    rt["main"](*there)
    return [a.numpy() for a in there]


def run_everywhere(kind, mod, target="cuda", slowly=True):
    """The interpreter, the meaning and the simulated device agree with numpy; nothing races."""
    args = arrays(mod)
    want = expected(kind, args[0])
    lowered = lower(mod, target=target)
    for run in (interpret, evaluate) if slowly else (interpret,):
        own = [a.copy() for a in args]
        run(lowered, *own)
        for got, right in zip(own[1:], want):
            np.testing.assert_array_equal(got, right)
    for got, right in zip(on_device(mod, args, target)[1:], want):
        np.testing.assert_array_equal(got, right)
    if slowly:
        assert not tvm.find_races(mod, target, arrays=args)


# -- what it is made of ---------------------------------------------------------------------------

@pytest.mark.parametrize("case, want", [
    (of(threads=32), (0, 6, 0)),
    (of(threads=8, beside=4), (0, 4, 0)),  # four groups in a warp
    (of(threads=24), (0, 6, 0)),
    (of(kind="argmax", threads=32), (0, 12, 0)),
    (of(threads=256, width=256), (1, 9, 32)),  # one number a warp
    (of(threads=64, width=64, beside=4), (1, 7, 32)),
    (of(threads=100, width=100), (1, 8, 16)),
    (of(threads=97, width=97), (2, 7, 20)),  # one lane in the last warp, and four warps
    (of(kind="argmax", threads=1024, width=1024), (1, 22, 256)),
    (of(threads=32, axes="xy,z", beside=2), (0, 6, 0)),
    (of(dtype="float16", threads=32), (0, 6, 0)),
    (of(dtype="int64", threads=32), (0, 6, 0)),
])
def test_shuffles_stand_for_barriers(case, want):
    assert made_of(together(**case)) == want


@pytest.mark.parametrize("case", [
    of(threads=24, beside=2),  # the second group would lie in two warps
    of(threads=48, width=48, beside=2),
    of(threads=8, beside=4, axes="yx"),  # lanes that do not follow each other
])
def test_groups_that_warps_do_not_hold_use_shared_memory(case):
    barriers, shuffles, shared = made_of(together(**case))
    assert barriers > 1 and not shuffles and shared
    run_everywhere("sum", together(**case))


def test_only_targets_with_shuffles_have_them():
    mod = together(threads=32)
    for target in ("cuda", "nvptx", "nvidia/nvidia-h100", "apple/m1-gpu",
                   "webgpu -supports_subgroups=1 -thread_warp_size=32",
                   "opencl -supports_subgroups=1 -thread_warp_size=32"):
        assert made_of(mod, target) == (0, 6, 0), target
    for target in ("metal", "webgpu", "opencl", "opencl -supports_subgroups=1", "vulkan", None):
        assert made_of(mod, target) == (6, 0, 128), target
    assert made_of(together(dtype="int64", threads=32), "apple/m1-gpu")[1] == 0
    small = "webgpu -supports_subgroups=1 -thread_warp_size=8"
    assert made_of(mod, small) == (1, 6, 16)


def test_a_loop_waits_until_the_last_results_were_read():
    assert made_of(in_a_loop(threads=32))[0] == 0
    assert made_of(in_a_loop(threads=40))[0] == 2
    for threads in (32, 40):
        run_everywhere("sum", in_a_loop(width=70, threads=threads))


def test_the_mask_names_the_lanes_that_are_there():
    def masks(**case):
        return {repr(n.args[0]) for n in pre_order(kernel_of(together(**case)).body)
                if is_shuffle(n)}

    assert masks(threads=8) == {"T.uint32(255)"}
    assert masks(threads=32) == masks(threads=64, width=64) == {"T.uint32(4294967295)"}
    (last,) = masks(threads=36, width=36)
    assert "T.uint32(15)" in last and "< 32" in last


# -- what it computes -----------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64",
                                   "uint8", "uint32"])
@pytest.mark.parametrize("threads", [16, 64])
def test_types(dtype, threads):
    for kind in ("sum", "max", "argmax") if dtype in ("float32", "int64") else ("sum", "max"):
        run_everywhere(kind, together(kind, dtype, 2, 70, threads, 2))


@pytest.mark.parametrize("threads, beside", [
    (8, 4), (16, 3), (24, 1), (32, 2), (33, 1), (64, 2), (100, 1), (97, 1), (161, 1)])
def test_all_threads_have_the_result(threads, beside):
    """97 and 161: the last warp has one lane, and there are 4 or 6 warps."""
    for scope in ("local", "shared") if beside == 1 else ("local",):
        mod = for_all(3, 2 * threads + 1, threads, beside, scope)
        assert made_of(mod)[1]
        run_everywhere("for all", mod, slowly=threads * beside < 98)


@pytest.mark.parametrize("threads, target", [(8, "cuda"), (40, "cuda"), (40, "webgpu")])
def test_rows_that_are_not_there_take_part(threads, target):
    """Five rows, four in a block: all threads come to a shuffle or a barrier, whose rows are none
    as well."""
    for kind, mod in (("for all", for_all(5, 3 * threads - 1, threads, 4)),
                      ("sum", under_a_condition(threads))):
        run_everywhere(kind, mod, target, slowly=threads == 8)


def test_a_loop_is_not_cut_around_a_reduction():
    """Some threads would come to another reduction than the others."""
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((5, 109), "float32"), B: T.Buffer((5, 109), "float32")):
    M, C = T.alloc_buffer((5,), scope="local"), T.alloc_buffer((5,), scope="local")
    for i, k in T.grid(5, 109):
        with T.block("M"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                M[v] = T.float32(-9)
            M[v] = T.max(M[v], A[v, r])
    for i, k in T.grid(5, 109):
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = T.float32(0)
            C[v] = C[v] + (A[v, r] + M[v])
    for i, k in T.grid(5, 109):
        with T.block("B"):
            v, vk = T.axis.remap("SS", [i, k])
            B[v, vk] = A[v, vk] - (C[v] - T.float32(109) * M[v])
"""))
    i, k = sch.get_loops("B")
    i0, i1 = sch.split(i, [None, 4])
    sch.bind(sch.split(k, [None, 64])[1], "threadIdx.x")
    sch.bind(i0, "blockIdx.x")
    sch.bind(i1, "threadIdx.y")
    for name in "CM":
        sch.compute_at(name, i1)
        lanes = sch.split(sch.get_loops(name)[-1], [None, 64])[1]
        if name == "C":
            sch.bind(lanes, "threadIdx.x")
    assert made_of(sch.mod)[1] == 5 + 1 + 1
    run_everywhere("for all", sch.mod, slowly=False)


@pytest.mark.parametrize("seed", range(12))
def test_random_shapes(seed):
    rng = random.Random(seed)
    for _ in range(4):
        beside = rng.choice([1, 1, 2, 3, 4, 8])
        threads = rng.choice([rng.randint(2, 40), rng.randint(2, 512 // beside), 8, 16, 32, 64])
        kind = rng.choice(["sum", "max", "argmax"])
        axes = rng.choice(["xy", "xz", "yx", "zy"])
        if threads % 4 == 0 and rng.random() < 0.4:
            axes = rng.choice(["xy,z", "xz,y", "yz,x"])
        letters = axes.replace(",", "")
        if (threads if letters[0] == "z" else beside if letters[-1] == "z" else 1) > 64:
            axes = "xy"
        mod = together(kind, rng.choice(["float32", "int32"]), rng.randint(1, 5),
                       rng.randint(1, 3 * threads), threads, beside, axes, rng.random() < 0.2)
        run_everywhere(kind, mod, slowly=threads * beside <= 64)


def test_a_warp_of_eight():
    """Lanes of the target, in the interpreters and on the simulated device."""
    small = "webgpu -supports_subgroups=1 -thread_warp_size=8"
    for threads in (4, 8, 12, 16, 60, 64):
        run_everywhere("argmax", together("argmax", "float32", 2, 70, threads), small)
