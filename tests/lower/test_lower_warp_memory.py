"""Memory of a warp: its lanes exchange values, and each warp has its own."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.backend.interp import interpret
from mlc_lab.lower import lower
from mlc_lab.runtime.driver import driver_of
from mlc_lab.script import from_source


def reversed_lanes(threads, rows=1):
    """Each warp turns its 32 numbers round."""
    number = "(y * 16 + t)" if rows == 2 else "t"
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer(({2 * threads},), "float32"), B: T.Buffer(({2 * threads},), "float32")):
    for b in T.thread_binding(2, "blockIdx.x"):
        {"for y in T.thread_binding(2, 'threadIdx.y'):" if rows == 2 else "for o in range(1):"}
            for t in T.thread_binding({threads // rows}, "threadIdx.x"):
                with T.block("all"):
                    T.reads(A[0:{2 * threads}])
                    T.writes(B[0:{2 * threads}])
                    W = T.alloc_buffer((32,), scope="warp")
                    W[{number} % 32] = A[b * {threads} + {number}]
                    B[b * {threads} + {number}] = W[31 - {number} % 32]
""")


@pytest.mark.parametrize("threads, rows", [(32, 1), (64, 1), (32, 2)])
@pytest.mark.parametrize("kind", ["cuda", "opencl", "webgpu"])
def test_lanes_exchange_values(threads, rows, kind):
    mod = reversed_lanes(threads, rows)
    a = np.random.rand(2 * threads).astype("float32")
    want = a.reshape(-1, 32)[:, ::-1].reshape(-1)
    b = np.zeros_like(a)
    interpret(lower(mod, target=kind), a, b, func_name="main")
    np.testing.assert_array_equal(b, want)
    assert driver_of(kind)
    held = [tvm.nd.array(x, tvm.device(kind, 0)) for x in (a, np.zeros_like(a))]
    tvm.build(mod, target=kind)(*held)
    np.testing.assert_array_equal(held[1].numpy(), want)
    assert not tvm.find_races(mod, "cuda")
    (counts,) = tvm.count_gpu(mod, "cuda")
    assert counts.shared_bytes == threads * 4
