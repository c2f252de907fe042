"""The modelled time: what bounds it, and which schedule it finds faster."""

import pytest
from backend.gpu_programs import product

import mlc_lab as tvm
from mlc_lab.schedule import Schedule

from .programs import copies, kernel, square_tiles, through_shared

GPU = "nvidia/nvidia-a100"


def time(mod, gpu=GPU):
    (k,) = tvm.count_gpu(mod, gpu)
    return k.modelled


def test_a_large_copy_takes_what_memory_takes():
    n = 1 << 24
    modelled = time(copies("b * 256 + t", 256, n // 256, n))
    assert modelled.limit == "memory"
    assert modelled.seconds == pytest.approx(2 * 4 * n / 1555e9, rel=0.01)


def test_strides_are_slower():
    plain, strided = (time(copies(f"(b * 256 + t) * {s} % 16777216", 256, 4096, 1 << 24)).seconds
                      for s in (1, 16))
    assert strided > 3 * plain


def test_conflicts_are_slower():
    assert time(through_shared("t", "t * 32")).seconds > time(through_shared("t", "t * 33")).seconds


def blocks_of(n, threads):
    """A product, one thread an element, in square blocks of so many threads a side."""
    sch = Schedule(product(n, n, n))
    i, j, _ = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, threads])
    j0, j1 = sch.split(j, [None, threads])
    sch.reorder(i0, j0, i1, j1)
    for loop, axis in zip((i0, j0, i1, j1), ("blockIdx.y", "blockIdx.x", "threadIdx.y",
                                             "threadIdx.x")):
        sch.bind(loop, axis)
    return sch.mod


def test_blocks_that_fill_no_warp_are_slower_and_tiles_faster():
    """On a small GPU, which the product fills."""
    alone, square, tile = (time(m, "nvidia/jetson-agx-xavier").seconds for m in (
        blocks_of(128, 1), blocks_of(128, 16), square_tiles(128)))
    assert tile < square / 2 and square < alone / 4


def test_a_kernel_alone_takes_its_latency():
    (k,) = tvm.count_gpu(copies("t"), GPU)
    assert k.modelled.limit == "latency"
    assert 450 / k.gpu.clock < k.modelled.seconds < 2e-6
    assert "modelled time" in str(k) and "latency" in str(k)


@pytest.mark.parametrize("loop", ["range", "T.unroll"])
@pytest.mark.parametrize("load, memory", [
    ("A[k * 256 + b * 64 + t]", 1 << 15), ("A[k * 256 + b * 64 + t] * A[k]", 1 << 15),
    ("S[k]", 64)], ids=["a sum", "a product", "shared memory"])
def test_a_little_more_work_takes_a_little_more_time(load, memory, loop):
    """Around 64 iterations, where a compiler begins to unroll in part only. The last round of such
    a loop, which is not full, waits as long as each of the four before it."""
    stage = 'S = T.decl_buffer((128,), scope="shared")\nS[t] = A[t]\n' if "S[" in load else ""

    def seconds(n):
        return time(kernel(
            f"{stage}R = T.decl_buffer((1,), scope=\"local\")\nR[0] = T.float32(0)\n"
            f"for k in {loop}({n}):\n    R[0] = R[0] + {load}\nB[b * 64 + t] = R[0]",
            f'A: T.Buffer(({memory},), "float32"), B: T.Buffer((256,), "float32")', 64, 4)).seconds

    times = [seconds(n) for n in range(56, 73)]
    for before, after in zip(times, times[1:]):
        assert before * 0.99 <= after <= before * 1.25, times


def test_loops_that_are_not_unrolled_have_several_loads_on_their_way():
    """16, as NVIDIA's compiler copies the body; a barrier in the loop keeps it from that."""
    def waits(body):
        (k,) = tvm.count_gpu(kernel(
            f"R = T.decl_buffer((1,), scope=\"local\")\nR[0] = T.float32(0)\n{body}\nB[t] = R[0]",
            'A: T.Buffer((4096,), "float32"), B: T.Buffer((32,), "float32")'), GPU)
        return k.waits["global"]

    assert waits("for k in range(128):\n    R[0] = R[0] + A[k * 32 + t]") == 8
    assert waits("for k in range(127):\n    R[0] = R[0] + A[k * 32 + t]") == 8
    assert waits("for k in range(64):\n    R[0] = R[0] + A[k * 32 + t] * A[k + t]") == 8
    assert waits("for k in range(128):\n    R[0] = R[0] + A[k * 32 + t]\n"
                 "    T.tvm_storage_sync(\"shared\")") == 128
