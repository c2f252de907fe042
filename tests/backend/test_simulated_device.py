"""The simulated device: kernels whose threads are loops compute what the interpreter says."""

import sys
from types import ModuleType

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.backend.device.real import KernelError
from mlc_lab.backend.device.simulated import on_the_cpu
from mlc_lab.backend.interp import interpret
from mlc_lab.lower import LowerError, lower
from mlc_lab.runtime import driver
from mlc_lab.script import from_source

from .gpu_programs import PROGRAMS, arguments, product, tiled


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    """Real devices, where there are some, are left alone."""
    monkeypatch.setenv("MLC_LAB_DEVICE", "simulated")
    driver.driver_of.cache_clear()
    yield
    driver.driver_of.cache_clear()


def on_device(mod, args, target="cuda"):
    """The arrays after a run on the device."""
    rt = tvm.build(mod, target=target)
    dev = tvm.device(rt.device_type, 0)
    there = [tvm.nd.array(a, dev) if isinstance(a, np.ndarray) else a for a in args]
    rt["main"](*there)
    return [a.numpy() for a in there if not isinstance(a, (int, float))]


def interpreted(mod, args):
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    interpret(mod, *own)
    return [a for a in own if isinstance(a, np.ndarray)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_what_the_interpreter_says(name):
    """The program, its kernels, and the loops that stand for threads; and their machine code."""
    mod = PROGRAMS[name]()
    args = arguments(mod)
    want = interpreted(mod, args)
    lowered = lower(mod, target="cuda")
    for got in (interpreted(lowered, args), interpreted(on_the_cpu(lowered), args),
                on_device(mod, args)):
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["cuda", "opencl", "webgpu", "metal",
                                    "nvidia/geforce-rtx-2080-ti", "apple/m1-gpu"])
def test_every_target_runs(target):
    mod = tiled()
    args = arguments(mod)
    np.testing.assert_allclose(on_device(mod, args, target)[2], args[0] @ args[1], rtol=1e-4)


@pytest.mark.parametrize(("installed", "told"), [
    (False, 'pip install "mlc-lab[opencl]"'), (True, "pyopencl is installed, and finds no device"),
])
def test_what_a_real_device_takes_is_said(installed, told, capsys, monkeypatch):
    monkeypatch.delenv("MLC_LAB_DEVICE")
    monkeypatch.setitem(sys.modules, "pyopencl", ModuleType("pyopencl") if installed else None)
    driver.SimulatedDriver("opencl").announce()
    assert told in capsys.readouterr().out


def test_it_is_said_once_that_a_device_is_simulated(capsys):
    x = tvm.nd.array(np.ones(3, "float32"), tvm.cuda(0))
    tvm.nd.array(np.ones(3, "float32"), tvm.cuda(0))
    assert capsys.readouterr().out.count("cuda(0) is simulated") == 1
    assert tvm.cuda(0).exist and tvm.cuda(0).simulated and not tvm.cpu(0).simulated
    assert x.device == tvm.cuda(0) and "simulated cuda" in tvm.cuda(0).device_name
    assert x.copyto(tvm.cpu(0)).device == tvm.cpu(0)
    tvm.cuda(0).sync()


def test_its_arrays_are_arrays_of_the_host():
    x = tvm.nd.array(np.arange(6, dtype="float32").reshape(2, 3), tvm.opencl(0))
    assert x[1, 2] == 5 and np.from_dlpack(x).tolist() == x.numpy().tolist()
    x[0] = 7
    assert x.numpy()[0].tolist() == [7, 7, 7]
    torch = pytest.importorskip("torch")
    assert torch.from_dlpack(x).device.type == "cpu"


def test_a_time_is_that_of_a_model_and_says_so():
    rt = tvm.build(tiled(), target="nvidia/nvidia-a100")
    args = [tvm.nd.array(a, tvm.cuda(0)) for a in arguments(tiled())]
    timer = rt.time_evaluator("main", tvm.cuda(0), number=1, repeat=3)
    result = timer(*args)
    assert result.mean > 0 and result.clock == "modelled for nvidia/nvidia-a100, not measured"
    assert "not measured" in str(result) and len(result.results) == 3 and result.std == 0
    assert result.results == timer(*args).results  # the same every time
    np.testing.assert_allclose(args[2].numpy(), args[0].numpy() @ args[1].numpy(), rtol=1e-4)
    symbolic = PROGRAMS["symbolic"]()
    given = [tvm.nd.array(a, tvm.cuda(0)) if isinstance(a, np.ndarray) else a
             for a in arguments(symbolic)]
    rt = tvm.build(symbolic, target="cuda")
    assert "geforce-rtx-2080-ti" in rt.time_evaluator(rt.entry_name, tvm.cuda(0))(*given).clock
    with pytest.raises(ValueError, match="not on cpu"):
        rt.time_evaluator("main", tvm.cpu(0))
    with pytest.raises(ValueError, match="argument 1"):
        rt.time_evaluator("main")(*arguments(symbolic))


def test_arrays_must_be_on_the_device():
    rt = tvm.build(tiled(), target="cuda")
    a, b, c = arguments(tiled())
    on = [tvm.nd.array(x, tvm.cuda(0)) for x in (a, b, c)]
    with pytest.raises(ValueError, match=r"argument 1 \(A\) is a numpy array.*tvm.nd.array"):
        rt["main"](a, *on[1:])
    with pytest.raises(ValueError, match=r"argument 3 \(C\) is a tensor on cpu\(0\)"):
        rt["main"](*on[:2], tvm.nd.array(c))
    with pytest.raises(ValueError, match=r"is a tensor on opencl\(0\)"):
        rt["main"](*on[:2], tvm.nd.array(c, tvm.opencl(0)))
    with pytest.raises(TypeError, match="takes 3 arguments, got 2"):
        rt["main"](*on[:2])
    with pytest.raises(ValueError, match="runs on the CPU"):
        tvm.build(product(), "llvm")["main"](*on)
    with pytest.raises(ValueError, match="cannot be exported"):
        rt.export_library("x.so")


def test_what_does_not_fit_the_device_is_refused():
    many = from_source("""
@T.prim_func
def main(B: T.Buffer((4096,), "float32")):
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for t in T.thread_binding(2048, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.spatial(4096, b * 2048 + t)
                B[v] = T.float32(1)
""")
    with pytest.raises(LowerError, match=r"2048 threads \(2048 on threadIdx.x\).*'cuda' is 1024:"
                       r'\n    threadIdx_x = T.launch_thread\("threadIdx.x", 2048\)\nBind smaller'):
        tvm.build(many, target="cuda")
    with pytest.raises(LowerError, match="of apple/m1-gpu is 1024"):
        tvm.build(many, target="apple/m1-gpu")
    large = from_source("""
@T.prim_func
def main(A: T.Buffer((2, 20000), "float32"), B: T.Buffer((2, 20000), "float32")):
    S = T.alloc_buffer((2, 20000), "float32", scope="shared")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for i in range(20000):
            with T.block("S"):
                vb, v = T.axis.remap("SS", [b, i])
                S[vb, v] = A[vb, v]
        for i in range(20000):
            with T.block("B"):
                vb, v = T.axis.remap("SS", [b, i])
                B[vb, v] = S[vb, 19999 - v]
""")
    with pytest.raises(LowerError, match=r"80000 bytes of shared memory \(S 80000\).*49152.*S = T"):
        tvm.build(large, target="cuda")
    tvm.build(large, target="cuda -max_shared_memory_per_block=98304")


def test_more_arrays_than_a_shader_is_given():
    names = [f"A{n}" for n in range(9)]
    given = ", ".join(f'{name}: T.Buffer((32,), "float32")' for name in names)
    program = from_source(f"""
@T.prim_func
def main({given}):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("total"):
            v = T.axis.spatial(32, t)
            A8[v] = {" + ".join(f"{name}[v]" for name in names[:-1])}
""")
    with pytest.raises(KernelError, match="uses 9 buffers .*A0, A1.* at most 8"):
        tvm.build(program, target="webgpu")
    tvm.build(program, target="cuda")


def test_a_program_without_threads_is_told_what_to_bind():
    with pytest.raises(LowerError, match=r"C is written outside of a kernel(?s:.*)sch.bind\(i0"):
        tvm.build(product(), target="cuda")


def test_a_barrier_that_some_threads_reach_is_refused():
    program = from_source("""
@T.prim_func
def main(B: T.Buffer((8,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("B"):
            v = T.axis.spatial(8, t)
            B[v] = T.float32(1)
            if v < 4:
                T.evaluate(T.tvm_storage_sync("shared"))
                B[v] = T.float32(2)
""")
    with pytest.raises(LowerError, match="differs from thread to thread"):
        tvm.build(program, target="cuda")


def test_blocks_and_threads_of_no_number_do_nothing():
    mod = PROGRAMS["symbolic"]()
    rt = tvm.build(mod, target="cuda")
    a, b = (tvm.nd.array(np.zeros(0, "float32"), tvm.cuda(0)) for _ in "ab")
    rt["main"](a, b, 1.0)


def test_shuffles_as_they_are_written():
    """Of global memory, in an expression, one inside of another, into the memory that is read."""
    mod = from_source("""
@T.prim_func
def main(A: T.Buffer((40,), "float32"), B: T.Buffer((40,), "float32")):
    for t in T.thread_binding(40, thread="threadIdx.x"):
        X = T.decl_buffer((1,), "float32", scope="local")
        X[0] = T.tvm_warp_shuffle_up(T.uint32(255), A[t], 1, 8, 32)
        X[0] = T.tvm_warp_shuffle(T.uint32(255), X[0], 3, 32, 32) + X[0]
        X[0] = T.tvm_warp_shuffle_down(T.uint32(255), X[0], 2, 32, 32)
        B[t] = X[0] * T.tvm_warp_shuffle_down(T.uint32(255), T.tvm_warp_shuffle(
            T.uint32(255), X[0] + A[t], 1, 4, 32), 1, 32, 32)
""")
    args = [np.arange(40, dtype="float32"), np.zeros(40, "float32")]
    lowered = lower(mod, target="cuda")
    want = interpreted(lowered, args)
    up = np.where(np.arange(40) % 8 > 0, np.arange(40) - 1, np.arange(40))
    x = up + np.repeat(up[[3, 35]], [32, 8])
    place = np.arange(40)
    x = np.where((place % 32 + 2 < 32) & (place + 2 < 40), x[np.minimum(place + 2, 39)], x)
    y = (x + place)[place // 4 * 4 + 1]
    y = np.where((place % 32 + 1 < 32) & (place + 1 < 40), y[np.minimum(place + 1, 39)], y)
    np.testing.assert_array_equal(want[1], x * y)
    np.testing.assert_array_equal(on_device(mod, args)[1], want[1])
