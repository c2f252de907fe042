"""A WebGPU device that is lost: it is said, tensors on it are gone, and the next call works."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.backend.device.real import KernelError
from mlc_lab.runtime.driver import driver_of
from mlc_lab.script import from_source

from .gpu_programs import elementwise, missing


@pytest.fixture
def driver():
    found = driver_of("webgpu")
    if found.simulated:
        missing("webgpu", "there is no WebGPU adapter")
    return found


def ones():
    return tvm.nd.array(np.ones(1000, "float32"), tvm.webgpu(0))


def actions():
    """What may find out that the device is lost, by name; each is made while it is there."""
    mod = elementwise("A[vi] + A[vi]", "float32")
    (n,) = (int(x) for x in mod["main"].buffer_map[mod["main"].params[0]].shape)
    rt, other = tvm.build(mod, target="webgpu"), elementwise("A[vi] * A[vi]", "float32")
    dev = tvm.webgpu(0)
    a, b = (tvm.nd.array(np.ones(n, "float32"), dev) for _ in range(2))
    return rt, n, a, {
        "read": lambda: a.numpy(), "write": lambda: b.copyfrom(np.zeros(n, "float32")),
        "allocate": lambda: tvm.nd.empty((n,), "float32", dev), "launch": lambda: rt["main"](a, b),
        "compile": lambda: tvm.build(other, target="webgpu"), "sync": dev.sync}


@pytest.mark.parametrize("name", ["read", "write", "allocate", "launch", "compile", "sync"])
def test_a_lost_device_is_reported_and_the_next_call_works(driver, name):
    rt, n, old, made = actions()
    driver.device.destroy()
    with pytest.raises(KernelError, match="was lost.*opened anew"):
        made[name]()
        tvm.webgpu(0).sync()  # a launch and a write only start
    with pytest.raises(KernelError, match="this tensor was on .* make it again"):
        old.numpy()
    dev = tvm.webgpu(0)
    a, b = tvm.nd.array(np.full(n, 3, "float32"), dev), tvm.nd.empty((n,), "float32", dev)
    rt["main"](a, b)  # it was compiled for the device that is gone
    np.testing.assert_array_equal(b.numpy(), np.full(n, 6, "float32"))


def test_memory_that_runs_out_is_no_lost_device(driver):
    kept = ones()
    with pytest.raises(MemoryError):
        tvm.nd.empty((1 << 40,), "float32", tvm.webgpu(0))
    assert kept.numpy().sum() == 1000


def test_more_buffers_than_the_device_has(driver):
    most = driver.device.limits["max-storage-buffers-per-shader-stage"]

    def total(count):
        names = [f"A{n}" for n in range(count)]
        given = ", ".join(f'{name}: T.Buffer((32,), "float32")' for name in names)
        return from_source(f"""
@T.prim_func
def main({given}):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        with T.block("total"):
            v = T.axis.spatial(32, t)
            {names[-1]}[v] = {" + ".join(f"{name}[v]" for name in names[:-1])}
""")

    tvm.build(total(most), target="webgpu")
    with pytest.raises(KernelError, match=f"uses {most + 1} buffers .*A0, A1.* at most {most}"):
        tvm.build(total(most + 1), target="webgpu")
