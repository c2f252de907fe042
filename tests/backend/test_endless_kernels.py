"""Kernels without end: reported after a while, and the process goes on.

A driver plays a CUDA device, whose kernels end when the test says so: each function that would wait
for the device fails while one runs, since the process would hang there. PoCL runs one, lavapipe and
the simulated device do.
"""

import _thread
import enum
import os
import subprocess
import sys
import signal
import threading
from types import SimpleNamespace

import mlc_lab as tvm
import numpy as np
import pytest
from mlc_lab.backend.device.cuda import CUDADriver, _Kernel
from mlc_lab.backend.device.real import KernelError
from mlc_lab.backend.device.watch import limit_s, until
from mlc_lab.runtime.driver import driver_of
from mlc_lab.script import from_source

from .gpu_programs import missing


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_READY = 600


class FakeLib:
    """The driver's functions of a device that has room for two tensors."""

    CUresult = CUresult

    def __init__(self):
        self.running = False
        self.addresses, self.unloaded = {}, []

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)
        return lambda *args: (CUresult.CUDA_SUCCESS, 1)

    def cuDeviceGetName(self, *args):
        return CUresult.CUDA_SUCCESS, b"a device\0"

    def cuGetErrorString(self, error):
        return CUresult.CUDA_SUCCESS, b"an error"

    def cuStreamQuery(self, stream):
        return (CUresult.CUDA_ERROR_NOT_READY if self.running else CUresult.CUDA_SUCCESS,)

    def cuLaunchKernel(self, *args):
        self.running = True
        return (CUresult.CUDA_SUCCESS,)

    def cuMemAlloc(self, nbytes):
        if len(self.addresses) == 2:
            return CUresult.CUDA_ERROR_OUT_OF_MEMORY, None
        address = 256 * (1 + max([0, *self.addresses]))
        self.addresses[address] = nbytes
        return CUresult.CUDA_SUCCESS, address

    def waits(self):
        assert not self.running, "this would wait for ever"
        return (CUresult.CUDA_SUCCESS,)

    def cuMemFree(self, address):
        del self.addresses[int(address)]
        return self.waits()

    def cuModuleUnload(self, module):
        self.unloaded.append(module)
        return self.waits()

    def cuMemcpyHtoD(self, *args):
        return self.waits()

    cuMemcpyDtoH = cuCtxSynchronize = cuEventSynchronize = cuMemcpyHtoD


@pytest.fixture
def driver(monkeypatch):
    monkeypatch.setenv("MLC_LAB_DEVICE_LIMIT", "0.05")
    return CUDADriver(FakeLib())


@pytest.fixture
def kernel(driver):
    source = SimpleNamespace(name="main_kernel", scalars=[], dynamic_shared=0, shared_bytes=0)
    return _Kernel(driver, source, b"")


def start(driver, kernel, *memories):
    driver.launch(kernel, memories, [], (1, 1, 1), (32, 1, 1))


def test_a_kernel_without_end_is_reported_with_its_name(driver, kernel):
    memory, host = driver.allocate(16), np.zeros(4, "float32")
    start(driver, kernel, memory)
    with pytest.raises(KernelError, match=r"not ended after 0.05 s.*main_kernel.*dev.sync\(\)"):
        driver.read(memory, host)


def test_a_busy_device_says_so_at_once_and_works_again_when_it_is_done(driver, kernel, monkeypatch):
    memory, host = driver.allocate(16), np.zeros(4, "float32")
    start(driver, kernel, memory)
    with pytest.raises(KernelError):
        driver.sync()
    monkeypatch.setenv("MLC_LAB_DEVICE_LIMIT", "1000")  # nothing below waits
    for action in (lambda: driver.read(memory, host), lambda: driver.write(memory, host),
                   lambda: driver.allocate(16), lambda: start(driver, kernel, memory)):
        with pytest.raises(KernelError, match="busy: .*main_kernel"):
            action()
    driver.lib.running = False
    driver.read(memory, host)
    driver.write(memory, host)
    driver.sync()


def test_nothing_is_freed_while_a_kernel_runs(driver, kernel):
    memory, other = driver.allocate(16), driver.allocate(16)
    start(driver, kernel, memory)
    driver.free(memory)
    del kernel
    assert len(driver.lib.addresses) == 2
    driver.lib.running = False
    third = driver.allocate(16)  # there was no room: what is unused is given back first
    assert third and set(driver.lib.addresses) == {other, third}


def test_a_measured_kernel_without_end_is_started_once(driver, kernel):
    memory = driver.allocate(16)
    with pytest.raises(KernelError, match="not ended"):
        with driver.clock(lambda: start(driver, kernel, memory)):
            raise AssertionError("it was to be measured")


def test_limits_are_numbers_of_seconds(monkeypatch):
    for text, found in (("", 60), ("2.5", 2.5), ("0", float("inf"))):
        monkeypatch.setenv("MLC_LAB_DEVICE_LIMIT", text)
        assert limit_s() == found
    for wrong in ("soon", "-1", "nan"):
        monkeypatch.setenv("MLC_LAB_DEVICE_LIMIT", wrong)
        with pytest.raises(ValueError, match="number of seconds"):
            limit_s()


def test_looks_end_when_it_is_done():
    looks = iter([False, False, True])
    assert until(lambda: next(looks), 10.0)
    assert not until(lambda: False, 0.01)


ENDLESS = '''
@T.prim_func
def main(A: T.Buffer((32,), "int32")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("A"):
            v = T.axis.spatial(32, t)
            T.reads(A[0:32])
            T.writes(A[0:32])
            while A[v] > 0:
                A[v] = T.if_then_else(A[v] < 1000, A[v] + 1, 1)
'''


def test_pocl_reports_one():
    """In a process of its own, which is ended with the kernel in it."""
    script = f"""
import os
import numpy as np
import mlc_lab as tvm
from mlc_lab.backend.device.real import KernelError
from mlc_lab.runtime.driver import driver_of
from mlc_lab.script import from_source
if driver_of("opencl").simulated:
    os._exit(77)
rt = tvm.build(from_source({ENDLESS!r}), target="opencl")
ends = tvm.nd.array(np.zeros(32, "int32"), tvm.opencl(0))
rt["main"](ends)
assert ends.numpy().sum() == 0
endless = tvm.nd.array(np.ones(32, "int32"), tvm.opencl(0))
rt["main"](endless)
for words in ("has not ended after 0.5 s", "the device is busy"):
    try:
        endless.numpy()
    except KernelError as error:
        assert words in str(error) and "main_kernel" in str(error), error
        print(words, flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**os.environ, "MLC_LAB_DEVICE_LIMIT": "0.5"})
    if done.returncode == 77:
        missing("opencl", "OpenCL finds no device")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split("\n")[:2] == ["has not ended after 0.5 s", "the device is busy"]


def webgpu_script(limit, text):
    """Run lines in a process of its own, on a WebGPU device."""
    script = f"""
import os
import numpy as np
import mlc_lab as tvm
from mlc_lab.backend.device.real import KernelError
from mlc_lab.runtime.driver import driver_of
from mlc_lab.script import from_source
if driver_of("webgpu").simulated:
    os._exit(77)
ENDLESS = {ENDLESS!r}
def on(program, *arrays):
    held = [tvm.nd.array(a, tvm.webgpu(0)) for a in arrays]
    tvm.build(from_source(program), target="webgpu")["main"](*held)
    return held
def fails(action, words):
    try:
        action()
    except KernelError as error:
        assert words in str(error) and "main_kernel" in str(error), error
        return
    raise AssertionError(words)
{text}
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**os.environ, "MLC_LAB_DEVICE_LIMIT": limit})
    if done.returncode == 77:
        missing("webgpu", "there is no WebGPU adapter")
    assert done.returncode == 0, done.stdout + done.stderr


def test_webgpu_reports_one():
    """Mesa's device ends loops by itself after a while, others run on; both are told."""
    webgpu_script("5", """
ends = on(ENDLESS, np.zeros(32, "int32"))[0]
assert ends.numpy().sum() == 0
endless = on(ENDLESS, np.ones(32, "int32"))[0]
lavapipe = driver_of("webgpu").ends_loops
fails(endless.numpy, "whose condition still held" if lavapipe else "has not ended")
if lavapipe:  # it is told once, and the device works on
    on(ENDLESS, np.ones(32, "int32"))
    fails(tvm.webgpu(0).sync, "whose condition still held")
    assert on(ENDLESS, np.zeros(32, "int32"))[0].numpy().sum() == 0
""")


LONG = """
@T.prim_func
def main(A: T.Buffer((BLOCKS, 32), "int32")):
    for b in T.thread_binding(BLOCKS, thread="blockIdx.x"):
        for t in T.thread_binding(32, thread="threadIdx.x"):
            for k, m in T.grid(FIRST, 300):
                with T.block("A"):
                    vb, v = T.axis.opaque(BLOCKS, b), T.axis.opaque(32, t)
                    vk = T.axis.opaque(300, m)
                    T.reads(A[vb, v])
                    T.writes(A[vb, v])
                    A[vb, v] = (A[vb, v] * 3 + vk) % 1001
"""


def test_webgpu_reports_one_that_takes_long_and_works_when_it_is_done():
    program = LONG.replace("BLOCKS", "200").replace("FIRST", "200")
    webgpu_script("0.05", f"""
import time
held = on({program!r}, np.zeros((200, 32), "int32"))[0]
fails(held.numpy, "has not ended after 0.05 s")
fails(held.numpy, "the device is busy")
fails(lambda: on(ENDLESS, np.zeros(32, "int32")), "the device is busy")
os.environ["MLC_LAB_DEVICE_LIMIT"] = "100"
tvm.webgpu(0).sync()
want = 0
for k in range(200):
    for m in range(300):
        want = (want * 3 + m) % 1001
assert (held.numpy() == want).all()
""")


def test_webgpu_says_where_a_loop_is_too_long_for_the_driver():
    short, long = (LONG.replace("BLOCKS", "2").replace("FIRST", n) for n in ("200", "300"))
    webgpu_script("60", f"""
on({short!r}, np.zeros((2, 32), "int32"))[0].numpy()
held = on({long!r}, np.zeros((2, 32), "int32"))[0]
if driver_of("webgpu").ends_loops:
    fails(held.numpy, "65,535 iterations")
""")


@pytest.fixture
def simulated(monkeypatch):
    """A CUDA device that is simulated, and waits for half a second."""
    monkeypatch.setenv("MLC_LAB_DEVICE", "simulated")
    monkeypatch.setenv("MLC_LAB_DEVICE_LIMIT", "0.5")
    driver_of.cache_clear()
    yield tvm.cuda(0)
    driver_of.cache_clear()


@pytest.mark.parametrize("blocks", [1, 4])
def test_the_simulated_device_stops_one(simulated, blocks):
    program = ENDLESS.replace("(32,)", f"({32 * blocks},)").replace("0:32", f"0:{32 * blocks}")
    program = program.replace(
        "    for t in", f"    for b in T.thread_binding({blocks}, 'blockIdx.x'):\n     for t in",
    ).replace("spatial(32, t)", f"spatial({32 * blocks}, b * 32 + t)")
    rt = tvm.build(from_source(program), target="cuda")
    for value in (0, 1, 0):
        held = tvm.nd.array(np.full(32 * blocks, value, "int32"), simulated)
        if value:
            with pytest.raises(KernelError, match="not ended after 0.5 s.*main_kernel"):
                rt["main"](held)
            assert (held.numpy() >= 1).all()
        else:
            rt["main"](held)
            assert not held.numpy().any()


def test_errors_of_kernels_that_may_be_endless_are_those_of_others(simulated):
    rt = tvm.build(from_source(ENDLESS), target="cuda")
    with pytest.raises(ValueError, match="shape"):
        rt["main"](tvm.nd.array(np.zeros(31, "int32"), simulated))


def test_ctrl_c_stops_one(simulated, monkeypatch):
    monkeypatch.setenv("MLC_LAB_DEVICE_LIMIT", "60")
    rt = tvm.build(from_source(ENDLESS), target="cuda")
    rt["main"](tvm.nd.array(np.zeros(32, "int32"), simulated))  # so that it is compiled
    held = tvm.nd.array(np.ones(32, "int32"), simulated)
    # a shell that starts tests in the background has it ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer = threading.Timer(0.3, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            rt["main"](held)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    rt["main"](tvm.nd.array(np.zeros(32, "int32"), simulated))
