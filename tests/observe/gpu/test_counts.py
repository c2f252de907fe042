"""Counts of whole programs for a GPU, against numbers worked out by hand."""

import tracemalloc

import numpy as np
import pytest
from backend.gpu_programs import PROGRAMS, arguments, product, tiled

import mlc_lab as tvm
from mlc_lab.backend.interp import interpret
from mlc_lab.backend.interp_memory import OutOfBounds
from mlc_lab.observe.gpu import counts
from mlc_lab.observe.gpu.launching import Program
from mlc_lab.observe.gpu.lockstep import Lockstep
from mlc_lab.observe.gpu.watching import Watcher
from mlc_lab.observe.measure import Unmeasurable
from mlc_lab.schedule import Schedule
from mlc_lab.lower import lower
from mlc_lab.script import from_source
from mlc_lab.target import Target

from .programs import copies, kernel, square_tiles, through_shared


@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_in_step_compute_what_the_interpreter_says(name):
    mod = PROGRAMS[name]()
    args = arguments(mod)
    want = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    interpret(mod, *want)
    found = {}

    def run(launch):
        found.update({m.base: m for m in launch.given.values() if hasattr(m, "base")})
        Lockstep(launch.func, launch.name, launch.extents, launch.given, range(launch.blocks),
                 Watcher(), values=True).run()

    Program(mod, Target("cuda"), {}, args).run(run, data=True)
    memories = [found[at].data for at in sorted(found)]
    for array in (a for a in want if isinstance(a, np.ndarray)):
        assert any(m.size == array.size and np.allclose(m, array.reshape(-1), 2e-5, 1e-5)
                   for m in memories)


@pytest.mark.parametrize(("index", "sectors"), [
    ("t", 4), ("t + 1", 5), ("t * 2", 8), ("t * 32", 32), ("7", 1), ("31 - t", 4),
    ("t // 2", 2), ("t % 8 * 4 + t // 8", 4),
])
def test_sectors_of_a_load(index, sectors):
    (k,) = tvm.count_gpu(copies(index))
    load, store = k.site("A"), k.site("B", write=True)
    assert (load.requests, load.sectors) == (1, sectors)
    assert (store.requests, store.sectors) == (1, 4)
    assert load.sectors_a_request == sectors
    assert k.bytes_from_memory == 32 * sectors and k.bytes_to_memory == 128
    assert k.instructions["load global"] == k.instructions["store global"] == 1


@pytest.mark.parametrize(("load", "conflicts"), [
    ("t", 0), ("t * 2", 1), ("t * 32", 31), ("t * 33", 0), ("0", 0), ("t * 16 % 64", 1),
])
def test_conflicts_of_shared_memory(load, conflicts):
    """A stride of 32 has all lanes in one bank; padding the rows to 33 cures it."""
    (k,) = tvm.count_gpu(through_shared("t", load))
    assert k.site("S").conflicts == conflicts and k.site("S", write=True).conflicts == 0
    assert k.conflicts == conflicts
    own = load == "t"  # what a thread has stored itself it need not wait for
    assert k.shared_bytes == 1056 * 4 and k.barriers == (0 if own else 1)


def test_four_numbers_at_once():
    (k,) = tvm.count_gpu(PROGRAMS["vectors"]())  # 4 blocks of 16 threads, 4 numbers a thread
    store = k.site("B", write=True)
    assert store.requests == 4 * (4 if store.nbytes == 4 else 1)
    half = from_source("""
@T.prim_func
def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        for v in T.vectorized(4):
            B[t * 4 + v] = A[t * 4 + v]
""")
    (k,) = tvm.count_gpu(half)
    load = k.site("A")
    assert (load.nbytes, load.requests, load.sectors, load.efficiency) == (16, 1, 16, 1.0)


def test_warps_that_are_not_full():
    (k,) = tvm.count_gpu(copies("b * 40 + t", block=40, grid=2))
    assert k.warps == 2 and k.site("A").requests == 4
    # 32 and 8 floats: 4 sectors and 1; the second block begins at byte 160, a multiple of 32
    assert k.site("A").sectors == 2 * (4 + 1)


def test_the_branch_that_splits_warps():
    guarded = kernel("if t < 40:\n    B[t] = A[t]",
                     'A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")', 64)
    (k,) = tvm.count_gpu(guarded)
    assert (k.branches, k.divergent) == (2, 1)  # the first warp agrees
    assert k.site("A").requests == 2 and k.site("A").sectors == 5
    either = kernel("if t % 2 == 0:\n    B[t] = A[t]\nelse:\n    B[t] = A[63 - t]",
                    'A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")', 64)
    (k,) = tvm.count_gpu(either)
    assert k.divergent == 2 and k.instructions["load global"] == 4


def test_a_loop_as_long_as_the_slowest_thread_needs():
    triangle = kernel("B[t] = T.float32(0)\nfor i in range(t):\n    B[t] = B[t] + A[i]",
                      'A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")')
    (k,) = tvm.count_gpu(triangle)
    assert k.site("A").requests == 31 and k.site("A").sectors == 31
    assert k.instructions["float"] == 31 and k.divergent == 31
    assert k.lanes_active < 0.7


def test_what_data_decides_goes_its_way():
    chosen = kernel("if P[t] == 1:\n    B[t] = A[P[t]]",
                    'P: T.Buffer((32,), "int32"), A: T.Buffer((8,), "float32"), '
                    'B: T.Buffer((32,), "float32")')
    p = (np.arange(32) % 2).astype("int32")
    a, b = np.zeros(8, "float32"), np.zeros(32, "float32")
    (k,) = tvm.count_gpu(chosen, arrays=[p, a, b])
    assert k.site("A").sectors == 1 and k.divergent == 1
    (k,) = tvm.count_gpu(chosen, arrays=[p * 0, a, b])
    assert "load global" in k.instructions and not k.divergent
    with pytest.raises(KeyError):
        k.site("A")


def test_instructions_and_registers_of_a_tiled_product():
    n = 64
    (k,) = tvm.count_gpu(tiled(n, n, n))
    threads = (n // 16) ** 2 * 16
    # 16 threads a block are half a warp, which costs as much as a whole one
    assert k.instructions["fma"] == n ** 3 // threads * (threads // 16)
    assert k.lanes_active < 0.55
    assert k.barriers == 2 * n // 8
    # each of 4 x 4 elements uses 4 + 4 numbers of the tiles, once each
    assert k.instructions["load shared"] == (n // 16) ** 2 * n * 8
    assert k.shared_bytes == 2 * 16 * 8 * 4
    # each tile's row of blocks reads A, its column B; all of it fits the second level
    assert k.bytes_from_memory == 2 * n * n * 4 and k.bytes_to_memory == n * n * 4


def test_caches_keep_what_is_read_again():
    twice = kernel("B[t] = A[t]\nC[t] = A[t] * T.float32(2)",
                   'A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32"), '
                   'C: T.Buffer((32,), "float32")')
    (k,) = tvm.count_gpu(twice)  # the second load is a register
    assert k.instructions["load global"] == 1 and k.traffic.l1_sectors == 4
    column = kernel("B[t] = T.float32(0)\nfor i in range(80):\n    B[t] = B[t] + A[t * 128 + i]",
                    'A: T.Buffer((4096,), "float32"), B: T.Buffer((32,), "float32")')
    (k,) = tvm.count_gpu(column)
    assert k.site("A").sectors == 80 * 32  # each lane has a row of its own
    # of 8 loads of a lane in a row the first misses; B stays in its 4 sectors
    assert k.traffic.l1_sectors - k.traffic.l1_hits == 32 * 10 + 4
    assert k.bytes_from_memory == 32 * 32 * 10


#: a block whose first thread's stores follow a condition on the block, around two loops
BORDER = """for i in range(4):
    for j in range({n}):
        if b + i < 5:
            B[i * {n} * 32 + j * 32 + t] = A[b * {m} + (i * {n} + j) * 32 + t] + A[t]"""


def border(n, grid):
    size = 4 * n * 32
    return kernel(BORDER.format(n=n, m=size),
                  f'A: T.Buffer(({grid * size},), "float32"), B: T.Buffer(({size},), "float32")',
                  grid=grid)


def test_what_the_caches_are_asked_is_followed_part_by_part(monkeypatch):
    whole = tvm.count_gpu(border(64, 9))
    tiles = tvm.count_gpu(square_tiles())
    monkeypatch.setattr(counts, "PART", 100)
    assert repr(tvm.count_gpu(border(64, 9))) == repr(whole)
    assert repr(tvm.count_gpu(square_tiles())) == repr(tiles)


def test_memory_is_bounded_however_much_a_kernel_asks_for(monkeypatch):
    """A convolution by hand with a border asks for 230 million sectors: they are not all kept."""
    monkeypatch.setattr(counts, "PART", 1 << 12)

    def again(n):
        body = f"""
for i in range(4):
    for j in range({n}):
        if b + i < 5:
            B[i * 32 + t] = B[i * 32 + t] + A[(b * 4 + i) * 32 + t]"""
        return kernel(body.strip(), 'A: T.Buffer((1152,), "float32"), B: T.Buffer((128,), '
                                    '"float32")', grid=9)

    tvm.count_gpu(again(2))  # what is made once
    tracemalloc.start()
    try:
        (k,) = tvm.count_gpu(again(20_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    asked = sum(site.sectors for site in k.sites)
    assert asked > 2_000_000
    assert peak < asked  # a sector that is kept takes 17 bytes


def test_large_launches_are_counted_by_whole_blocks_that_are_alike():
    (k,) = tvm.count_gpu(copies("b * 128 + t", 128, 2048, 2048 * 128))
    assert k.blocks_run < k.blocks == 2048
    assert k.site("A").sectors == 2048 * 128 * 4 // 32
    assert "of 2048 blocks, which are all alike" in str(k)
    guarded = kernel("if b * 128 + t < 200000:\n    B[b * 128 + t] = A[b * 128 + t]",
                     'A: T.Buffer((262144,), "float32"), B: T.Buffer((262144,), "float32")',
                     128, 2048)
    (k,) = tvm.count_gpu(guarded)  # blocks differ: all are run
    assert k.blocks_run == 2048 and k.site("A").sectors == 200000 // 8


def test_occupancy_and_what_limits_it():
    (k,) = tvm.count_gpu(copies("b * 32 + t", 32, 4), "nvidia/nvidia-a100")
    assert k.occupancy.limit == "blocks" and k.occupancy.blocks == 32
    assert k.occupancy.fraction == 0.5 and not tvm.count_gpu(
        copies("t"), "nvidia/nvidia-a100").notes
    (k,) = tvm.count_gpu(through_shared("t", "t", 10000), "nvidia/nvidia-a100")
    # 40,000 bytes and 1,024 that are reserved, in units of 128: 4 times in 164 KiB
    assert k.occupancy.limit == "shared memory" and k.occupancy.blocks == 4
    (k,) = tvm.count_gpu(copies("b * 1024 + t", 1024, 4), "nvidia/geforce-rtx-3090")
    assert k.occupancy.limit == "warps" and k.occupancy.fraction == 32 / 48


def test_symbolic_sizes_and_several_kernels():
    counts = tvm.count_gpu(PROGRAMS["symbolic kernels"](), sizes={"m": 9, "n": 11})
    assert len(counts) == 2 and [k.grid[0] for k in counts] == [7, 7]
    assert counts[counts[1].name] is counts[1]
    with pytest.raises(Unmeasurable, match="sizes="):
        tvm.count_gpu(PROGRAMS["symbolic kernels"]())


def test_a_kernel_in_a_long_loop_of_the_host_is_not_followed():
    def text(n):
        return f"""
@T.prim_func
def main(A: T.Buffer(({n}, 4), "float32")):
    for i in range({n}):
        for j in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.float32(1)
"""
    assert len(tvm.count_gpu(from_source(text(40)))) == 40
    with pytest.raises(Unmeasurable, match="bind the loop around the kernel"):
        tvm.count_gpu(from_source(text(100_000)))


def test_counts_are_the_same_every_time_and_a_table_shows_them():
    mod = Schedule(tiled())
    one, two = tvm.count_gpu(mod), tvm.count_gpu(mod)
    assert one.to_dict() == two.to_dict()
    text = str(one)
    for word in ("sectors/request", "conflicts", "occupancy", "registers", "bytes from memory",
                 "does not say which GPU"):
        assert word in text


@pytest.mark.parametrize("target, said", [
    ("nvidia/geforce-rtx-2080-ti", []), ("intel/arc-a770", []),
    ("nvidia/geforce-rtx-3070-ti", ["those of nvidia/geforce-rtx-3060 are taken"]),
    ("webgpu", ["those of nvidia/geforce-rtx-2080-ti are taken"]),
    ("apple/m2-gpu", ["does not publish all of apple/m2-gpu: registers, shared memory"]),
    ("intel/iris-xe", ["all of intel/iris-xe: caches and latencies"]),
])
def test_counts_say_whose_figures_they_are(target, said):
    counts = tvm.count_gpu(tiled(), target=target)
    assert len(counts.notes) == len(said)
    for note, words in zip(counts.notes, said, strict=True):
        assert words in note


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(OutOfBounds, match=r"threadIdx.x = 31 loads element 32 of A, which has 32"):
        tvm.count_gpu(copies("t + 1", size=32))
    with pytest.raises(Unmeasurable, match="count_accesses"):
        tvm.count_gpu(tiled(), target="llvm")
    with pytest.raises(ValueError, match="outside of a kernel"):
        tvm.count_gpu(product())
    with pytest.raises(Unmeasurable, match="takes 2 arguments; 1 were given"):
        tvm.count_gpu(copies("t"), arrays=[np.zeros(4096, "float32")])


IN_LOCAL = """
@T.prim_func
def main(A: T.Buffer((2, 1), "int32"), B: T.Buffer((1, 1), "int32"),
         D: T.Buffer((2, 1), "int32")):
    # with T.block("root"):
    C_local = T.alloc_buffer((2, 1), "int32", scope="local")
    A_shared = T.alloc_buffer((2, 1), "int32", scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for f, g in T.grid(1, 1):
            for t in T.thread_binding(16, thread="threadIdx.x"):
                for p in range(1):
                    for q in range(1):
                        for r in T.thread_binding(16, thread="threadIdx.x"):
                            for u in range(1):
                                with T.block("A_shared"):
                                    v0 = T.axis.spatial(2, q * 16 + r + u)
                                    v1 = T.axis.spatial(1, 0)
                                    T.where(q * 16 + r + u < 2)
                                    T.reads(A[v0, v1])
                                    T.writes(A_shared[v0, v1])
                                    A_shared[v0, v1] = A[v0, v1]
                    for ax0, w in T.grid(2, 4):
                        with T.block("C"):
                            vi = T.axis.spatial(2, ax0)
                            vj = T.axis.spatial(1, t * 2 + (p * 4 + w))
                            vk = T.axis.reduce(1, 0)
                            T.where(t < 4 and t % 4 * 2 + (p * 4 + w) < 1 and p * 4 + w < 2)
                            T.reads(A_shared[vi, vk], B[vk, vj])
                            T.writes(C_local[vi, vj])
                            with T.init():
                                C_local[vi, vj] = 0
                            C_local[vi, vj] = C_local[vi, vj] + A_shared[vi, vk] * B[vk, vj]
                for m, n in T.grid(2, 2):
                    with T.block("D"):
                        vi = T.axis.spatial(2, b * 8 + f * 8 + t // 4 * 2 + m)
                        vj = T.axis.spatial(1, g * 8 + t % 4 * 2 + n)
                        T.where(((b + f) * 4 + t // 4) * 2 + m < 2 and (g * 4 + t % 4) * 2 + n < 1)
                        T.reads(C_local[vi, vj])
                        T.writes(D[vi, vj])
                        D[vi, vj] = T.max(C_local[vi, vj], 0) + 1
"""


def test_memory_of_a_thread_that_is_an_argument_is_counted_as_that_of_the_device():
    """It has no place inside of the kernel, and a loop with it need not be run to its end."""
    program = from_source(IN_LOCAL)
    assert len(lower(program, target="cuda")["main_kernel"].params) == 4
    (k,) = tvm.count_gpu(program, "cuda")
    assert k.site("D", write=True).requests == 2 and k.site("C_local").sectors
