"""Kernels on real devices, where there are some: PoCL and lavapipe count."""

import re
import time

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.backend.device.real import KernelError
from mlc_lab.backend.interp import interpret
from mlc_lab.runtime import driver
from mlc_lab.runtime.driver import driver_of
from mlc_lab.script import from_source

from lower.thread_sums import arrays, of, expected, together

from .gpu_programs import PROGRAMS, arguments, elementwise, missing, tiled


@pytest.fixture(params=["cuda", "opencl", "webgpu"])
def dev(request):
    """A real device of each type."""
    if driver_of(request.param).simulated:
        missing(request.param, f"no {request.param} device, or its package is not installed")
    return tvm.device(request.param, 0)


def on(dev, arrays):
    return [tvm.nd.array(a, dev) if isinstance(a, np.ndarray) else a for a in arrays]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_what_the_interpreter_says(name, dev):
    mod = PROGRAMS[name]()
    want = arguments(mod)
    there = on(dev, want)
    interpret(mod, *want)
    tvm.build(mod, target=dev.type)["main"](*there)
    for a, b in zip(want, there):
        if isinstance(a, np.ndarray):
            np.testing.assert_allclose(b.numpy(), a, rtol=2e-5, atol=2e-5)


def test_tensors_lie_on_the_device(dev):
    values = np.arange(12, dtype="float32").reshape(3, 4)
    x = tvm.nd.array(values, dev)
    assert x.device == dev and x.shape == (3, 4) and x[1, 2] == 6
    y = x.copyto(dev)
    x.copyfrom(np.zeros((3, 4)))
    np.testing.assert_array_equal(y.numpy(), values)
    assert y.copyto(tvm.cpu(0)).device == tvm.cpu(0) and "(3, 4)" in repr(y)
    odd = tvm.nd.array(np.arange(5, dtype="int8"), dev)
    assert odd.numpy().tolist() == [0, 1, 2, 3, 4]
    assert tvm.nd.array(np.zeros((0, 3), "float32"), dev).numpy().shape == (0, 3)
    with pytest.raises(ValueError, match="copy it to the CPU"):
        y._view()
    dev.sync()


def test_memory_is_given_back(dev):
    held = driver_of(dev.type).memories
    before = len(held)
    x = tvm.nd.array(np.zeros(1000, "float32"), dev)
    assert len(held) == before + 1
    del x
    assert len(held) == before


def test_wrong_arguments_are_refused(dev):
    rt = tvm.build(tiled(), target=dev.type)
    a, b, c = on(dev, arguments(tiled()))
    with pytest.raises(ValueError, match=r"argument 2 \(B\): shape\[1\] must be 32, not 31"):
        rt["main"](a, tvm.nd.empty((32, 31), "float32", dev), c)
    with pytest.raises(TypeError, match="must have the dtype float32, not int32"):
        rt["main"](a, tvm.nd.empty((32, 32), "int32", dev), c)
    with pytest.raises(ValueError, match="is on the device|which is not on the device"):
        rt["main"](a, np.zeros((32, 32), "float32"), c)


def test_a_kernel_that_does_not_compile_shows_its_lines(dev):
    mod = elementwise("T.call_pure_extern(\"float32\", \"no_such_function\", A[vi])")
    with pytest.raises(RuntimeError, match="main_kernel does not compile(?s:.*)no_such_function"
                       ) as refused:
        tvm.build(mod, target=dev.type)
    # the statement, and the block that it came from, before the compiler's words
    assert re.search(r"^line \d+, of block B: B\[.*no_such_function", str(refused.value), re.M)
    rt = tvm.build(tiled(), target=dev.type)  # the device is as it was
    there = on(dev, arguments(tiled()))
    rt["main"](*there)
    assert rt.time_evaluator("main", dev, number=2)(*there).clock == ""


INDEXED = """
@T.prim_func
def main(a: T.handle, I: T.Buffer((64,), "int32"), c: T.handle):
    {declared}
    A = T.match_buffer(a, ({n},), "float32")
    C = T.match_buffer(c, (64,), "float32")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("C"):
                v = T.axis.spatial(64, b * 32 + t)
                {store}
"""


@pytest.mark.parametrize("dev", ["opencl", "webgpu"], indirect=True)  # CUDA's driver tells of it
@pytest.mark.parametrize("size", ["n", "50"])
@pytest.mark.parametrize("store, outside, inside", [
    ("C[v] = A[I[v]] + T.float32(1)", [50, -1, 2**31 - 1, -2**31], [0, 49]),
    ("C[v] = T.if_then_else(I[v] >= 0, A[I[v]], T.float32(0))", [50, 10**6], [0, 49, -1]),
    ("C[v] = T.if_then_else(I[v] >= {n}, T.float32(0), A[I[v]])", [-1, -10**9], [0, 49, 50, 10**6]),
    ("A[I[v]] = C[v]", [50, -1, 10**9], [0, 49]),
    ("C[v] = A[T.max(T.min(I[v], {n} - 1), 0)]", [], [0, 49, -1, 50, 2**31 - 1]),
    ("if I[v] < 50:\n                    C[v] = A[I[v]]", [-7], [0, 49, 50, 2**31 - 1]),
    ("if I[v] < 50 and I[v] >= 0:\n                    I[v] = I[v] + 100\n"
     "                    C[v] = A[I[v]]", [3], []),
])
def test_an_index_outside_of_an_array_is_reported(dev, size, store, outside, inside):
    """And the process lives, the device works on, and what is inside is computed."""
    program = from_source(INDEXED.format(n=size, store=store.format(n=size),
                                         declared="n = T.int32()" if size == "n" else ""))
    rt = tvm.build(program, target=dev.type)
    rng = np.random.default_rng(0)
    for extra in (*inside, *outside, *inside):
        at = np.arange(64, dtype="int32") % 50
        at[17] = extra
        a, c = rng.random(50, dtype="float32"), rng.random(64, dtype="float32")
        there = on(dev, [a, at, c])
        rt["main"](*there)
        if extra in outside:
            with pytest.raises(KernelError, match=r"block C (loads|stores to) A\[.*outside of its "
                               r"(50|n) elements"):
                dev.sync()
            dev.sync()
            continue
        here = [a.copy(), at, c.copy()]
        interpret(program, *here)
        if not store.startswith("A["):  # where several threads store to one place, any may be last
            np.testing.assert_array_equal(there[2].numpy(), here[2])
        dev.sync()


def test_kernels_are_timed_by_the_device(dev):
    """What the host does before, between and after kernels is not counted, in short runs and in
    ones that are longer than what the driver keeps."""
    program = elementwise("A[vi] + T.float32(1)")
    rt = tvm.build(program, target=dev.type)
    there = on(dev, arguments(program))
    rt["main"](*there)

    def slow(*given):
        rt["main"](*given)
        time.sleep(0.005)

    with driver.driver_of(dev.type).clock(lambda: slow(*there)) as clock:
        assert 0 < clock(20) < 20 * 5e6
    start = time.perf_counter()
    many = rt.time_evaluator("main", dev, number=1200, repeat=1)(*there).mean * 1200
    assert 0 < many < time.perf_counter() - start


def test_no_threads_are_no_launch(dev):
    rt = tvm.build(PROGRAMS["symbolic"](), target=dev.type)
    rt["main"](*on(dev, [np.zeros(0, "float32"), np.zeros(0, "float32")]), 2.0)


def test_the_simulated_device_can_be_asked_for(monkeypatch, dev):
    monkeypatch.setenv("MLC_LAB_DEVICE", "simulated")
    driver.driver_of.cache_clear()
    try:
        assert tvm.device(dev.type, 0).simulated
    finally:
        driver.driver_of.cache_clear()


def test_a_module_of_several_functions(dev):
    """Each of two functions launches its own kernel."""
    parts = {"f": tiled(), "g": tiled(48, 16, 24)}
    mod = tvm.IRModule({n: m["main"].with_attr("global_symbol", n) for n, m in parts.items()})
    rt = tvm.build(mod, target=dev.type)
    assert rt.imported_modules[0].function_names == ("f_kernel", "g_kernel")
    for name, part in parts.items():
        a, b, c = arguments(part)
        there = on(dev, [a, b, c])
        rt[name](*there)
        np.testing.assert_allclose(there[2].numpy(), a @ b, rtol=2e-5, atol=2e-5)


# -- shuffles, where the target says that the device has them --------------------------------------

def shuffled(target, **case):
    """What a sum of rows by shuffles gives on the device, and what is right."""
    mod = together(**{"rows": 5, "width": 70, **case})
    args = arrays(mod)
    rt = tvm.build(mod, target=target)
    there = on(tvm.device(rt.device_type, 0), args)
    rt["main"](*there)
    return [a.numpy() for a in there[1:]], expected(case.get("kind", "sum"), args[0])


@pytest.fixture
def lanes():
    """How many invocations of WebGPU's device are a subgroup."""
    driver = driver_of("webgpu")
    if driver.simulated:
        missing("webgpu", "no webgpu device, or its package is not installed")
    found, _ = driver._subgroups()
    if not found:
        missing("webgpu", "the device has no subgroups")
    return found


@pytest.mark.parametrize("case", [
    of(threads=4, beside=4), of(threads=8), of(threads=8, beside=3), of(threads=16),
    of(threads=61), of(kind="argmax", threads=64), of(threads=16, beside=4, dtype="int32"),
    of(threads=32, axes="xy,z", beside=2), of(threads=33),
])
def test_subgroups_of_webgpu_reduce_together(case, lanes):
    target = f"webgpu -supports_subgroups=1 -thread_warp_size={lanes}"
    mod = together(**{"rows": 5, "width": 70, **case})
    text = tvm.build(mod, target=target).imported_modules[0].get_source()
    assert "subgroupShuffleDown(" in text and "enable subgroups;" in text
    for got, want in zip(*shuffled(target, **case)):
        np.testing.assert_array_equal(got, want)


def test_subgroups_of_another_size_are_refused(lanes):
    wrong = 4 * lanes
    with pytest.raises(KernelError, match=f"shuffles among {wrong} lanes(?s:.*)-thread_warp_size="):
        shuffled(f"webgpu -supports_subgroups=1 -thread_warp_size={wrong}", threads=8)


def test_shuffles_that_opencl_does_not_have_are_refused():
    driver = driver_of("opencl")
    if driver.simulated or "cl_khr_subgroup_shuffle_relative" in (
            driver.context.devices[0].extensions):
        missing("opencl", "no OpenCL device without shuffles")
    with pytest.raises(KernelError, match="does not have the extension cl_khr_subgroup_shuffle"):
        shuffled("opencl -supports_subgroups=1 -thread_warp_size=32", threads=8)
