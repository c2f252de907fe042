"""GPU kernels: barriers where threads exchange values; what has no meaning there is refused."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.lower import LowerError, lower
from mlc_lab.lower.pipeline import as_module
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.script import tir as T
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order
from .programs import arguments, mm_relu, run, softmax


def on_gpu(program):
    """The lowered kernels, run against the program itself."""
    mod = lower(program, target="cuda")
    before = as_module(program)
    args = arguments(before["main"])
    for a, b in zip(run(before, args), run(mod, args)):
        assert (a == b).all()
    return mod


def everything(mod):
    """All of the host's function and of its kernels."""
    return [x for func in mod.functions.values() for x in pre_order(func.body)]


def barriers(mod):
    return [s for s in everything(mod) if isinstance(s, S.Evaluate)
            and getattr(s.value.op, "name", "") == "tir.tvm_storage_sync"]


def test_cooperative_fetching():
    s = Schedule(mm_relu)
    b = s.get_block("C")
    i, j, k = s.get_loops(b)
    i0, i1 = s.split(i, [None, 8])
    j0, j1 = s.split(j, [None, 8])
    k0, k1 = s.split(k, [None, 4])
    s.reorder(i0, j0, i1, j1, k0, k1)
    s.bind(i0, "blockIdx.y")
    s.bind(j0, "blockIdx.x")
    s.bind(i1, "threadIdx.y")
    s.bind(j1, "threadIdx.x")
    for at in (0, 1):
        copy = s.cache_read(b, at, "shared")
        s.compute_at(copy, k0)
        fused = s.fuse(*s.get_loops(copy)[-2:])
        _, ty, tx = s.split(fused, [None, 8, 8])
        s.bind(ty, "threadIdx.y")
        s.bind(tx, "threadIdx.x")
    d = s.get_loops(s.get_block("D"))
    s.bind(d[0], "blockIdx.x")
    s.bind(d[1], "threadIdx.x")
    mod = on_gpu(s.mod)
    assert len(barriers(mod)) == 2  # after the copies, and before the next ones
    allocs = {x.buffer_var.name: int(x.extents[0]) for x in
              everything(mod) if isinstance(x, S.Allocate)}
    assert allocs == {"C": 256, "A_shared": 32, "B_shared": 32}


@T.prim_func
def reversed_rows(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    T.func_attr({"global_symbol": "main"})
    row = T.alloc_buffer((4, 8), "float32", scope="shared")
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("row"):
                vb, vt = T.axis.remap("SS", [b, t])
                row[vb, vt] = A[vb, vt]
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                vb, vt = T.axis.remap("SS", [b, t])
                B[vb, vt] = row[vb, 7 - vt]


def test_an_exchange_through_shared_memory():
    mod = on_gpu(reversed_rows)
    assert len(barriers(mod)) == 1
    allocs = [s for s in everything(mod) if isinstance(s, S.Allocate)]
    assert int(allocs[0].extents[0]) == 8


def kernel(reads, scope="global", last="T.thread_binding(8, thread='threadIdx.x')"):
    """Threads write B, and read it at another place."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((3, 8), "float32"), C: T.Buffer((3, 8), "float32")):
    B = T.alloc_buffer((3, 8), "float32", scope="{scope}")
    for b in T.thread_binding(3, thread="blockIdx.x"):
        for i in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("B"):
                vb, v = T.axis.remap("SS", [b, i])
                B[vb, v] = A[vb, v] + T.float32(1)
        for i in {last}:
            with T.block("C"):
                vb, v = T.axis.remap("SS", [b, i])
                C[vb, v] = B[vb, {reads}] * T.float32(2)
""")


@pytest.mark.parametrize("reads, count", [("7 - v", 1), ("v", 0)])
def test_an_exchange_through_global_memory(reads, count):
    """A thread that reads what it wrote itself waits for no other."""
    assert len(barriers(on_gpu(kernel(reads)))) == count


def test_kernels_wait_for_each_other_without_barriers():
    s = Schedule(softmax)
    for block in map(s.get, s.get_child_blocks(s.get_block("root"))):
        s.bind(s.get_loops(s.get_block(block.name_hint))[0], "threadIdx.x")
    assert not barriers(on_gpu(s.mod))


@pytest.mark.parametrize("func, words", [
    (kernel("v % 4", last="T.thread_binding(4, thread='threadIdx.x')"), "extents 8 and 4"),
    (kernel("7 - v", "local", "range(8)"), "has its own B"),
])
def test_what_threads_of_a_kernel_cannot_do_is_refused(func, words):
    with pytest.raises(LowerError, match=words):
        lower(func, target="cuda")


def test_memory_of_a_kernel_ends_with_it():
    s = Schedule(softmax)
    block = s.get_child_blocks(s.get_block("root"))[0]
    s.set_scope(block, 0, "shared")
    s.bind(s.get_loops(block)[0], "threadIdx.x")
    with pytest.raises(LowerError, match="is used outside of the kernel.*compute_at"):
        lower(s.mod, target="cuda")


def rows(fetch, width=32, stride=32):
    """Threads fetch a tile of 4 rows in two passes of a loop, then each reads a row's end."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, {width}), "float32"), C: T.Buffer((4, 16), "float32")):
    S = T.alloc_buffer((4, {stride}), "float32", scope="shared")
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for t in T.thread_binding(16, thread="threadIdx.x"):
            for r in range(4):
                for p in range(2):
                    with T.block("S"):
                        vr, v = T.axis.spatial(4, r), T.axis.spatial(32, {fetch})
                        S[vr, v] = A[vr, v]
        for t in T.thread_binding(16, thread="threadIdx.x"):
            for r in range(4):
                with T.block("C"):
                    vr, v = T.axis.remap("SS", [r, t])
                    C[vr, v] = S[vr, 31 - v]
""")


def depth_of(stmt, wanted, loops=0):
    """How many loops are around the first barrier."""
    if stmt is wanted:
        return loops
    for child in stmt.children():
        found = depth_of(child, wanted, loops + isinstance(stmt, S.For))
        if found is not None:
            return found
    return None


@pytest.mark.parametrize("fetch", ["p * 16 + t", "t * 2 + p"])
@pytest.mark.parametrize("stride", [32, 33])
def test_a_fetch_in_passes_needs_one_barrier_in_front_of_the_loop_that_reads(fetch, stride):
    """The passes store to different places; the loop that reads waits once, not each time."""
    mod = on_gpu(rows(fetch, 32, stride))
    (wait,) = barriers(mod)
    assert depth_of(mod["main_kernel"].body, wait) == 0


def test_what_is_stored_twice_is_waited_for():
    program = from_source("""
@T.prim_func
def main(C: T.Buffer((8,), "float32")):
    S = T.alloc_buffer((8,), "float32", scope="shared")
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for p in range(2):
            with T.block("S"):
                v, q = T.axis.opaque(8, t), T.axis.opaque(2, p)
                T.reads()
                T.writes(S[0:8])
                S[(v + q) % 8] = T.cast(v * 2 + q, "float32")
        with T.block("C"):
            v = T.axis.spatial(8, t)
            C[v] = S[v]
""")
    assert len(barriers(lower(program, target="cuda"))) == 2


def shared_in_a_branch(condition):
    """Each thread puts a value, and gets that of another, under a condition."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((32, 4), "float32"), B: T.Buffer((32, 4), "float32"),
         n: T.Buffer((32,), "int32")):
    S = T.alloc_buffer((32,), "float32", scope="shared")
    for b in T.thread_binding(1, "blockIdx.x"):
        for t in T.thread_binding(32, "threadIdx.x"):
            with T.block("all"):
                vt = T.axis.spatial(32, t)
                T.reads(A[vt, 0:4], n[0:32])
                T.writes(B[vt, 0:4], S[0:32])
                {condition}
                    for j in range(4):
                        S[vt] = A[vt, j] + T.float32(1)
                        B[vt, j] = S[23 - vt]
""")


def test_a_condition_of_threads_moves_to_the_statements_between_which_they_wait():
    program = shared_in_a_branch("if vt < 24:")
    args = [np.random.rand(32, 4).astype("float32"), np.zeros((32, 4), "float32"),
            np.zeros(32, "int32")]
    tensors = [tvm.nd.array(a, tvm.cuda(0)) for a in args]
    tvm.build(program, target="cuda")(*tensors)
    expected = np.zeros((32, 4), "float32")
    expected[:24] = args[0][23::-1] + 1
    assert (tensors[1].numpy() == expected).all()
    assert len(barriers(lower(program, target="cuda"))) == 2


@pytest.mark.parametrize("condition", ["for k in range(n[vt]):", "while n[vt] < 5:"])
def test_a_barrier_that_threads_reach_at_different_times_is_refused(condition):
    with pytest.raises(LowerError, match="all of them reach"):
        lower(shared_in_a_branch(condition), target="cuda")


def test_a_loop_over_a_number_that_all_threads_read_keeps_its_barriers():
    assert len(barriers(lower(shared_in_a_branch("for k in range(n[0]):"), target="cuda"))) == 2


def test_a_small_part_that_exchanges_values_has_no_versions_by_thread():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((64, 128), "float32"), B: T.Buffer((64, 128), "float32"),
         C: T.Buffer((64, 512), "float32")):
    S = T.alloc_buffer((32,), "float32", scope="shared")
    for b in T.thread_binding(1, "blockIdx.x"):
        for t in T.thread_binding(32, "threadIdx.x"):
            for k in range(64):
                for j in range(4):
                    with T.block("put"):
                        vk, vt, vj = T.axis.remap("SSS", [k, t, j])
                        S[vt] = A[vk, vt * 4 + vj] + T.float32(1)
                    with T.block("get"):
                        vk, vt, vj = T.axis.remap("SSS", [k, t, j])
                        T.where(t * 4 + j < 98)
                        B[vk, vt * 4 + vj] = S[31 - vt]
                for m in range(512):
                    with T.block("C"):
                        vk, vm = T.axis.remap("SS", [k, m])
                        T.where(t == 0)
                        C[vk, vm] = T.float32(2)
""")
    args = [np.random.rand(64, 128).astype("float32"), np.zeros((64, 128), "float32"),
            np.zeros((64, 512), "float32")]
    tensors = [tvm.nd.array(a, tvm.cuda(0)) for a in args]
    tvm.build(program, target="cuda")(*tensors)
    put = args[0].reshape(64, 32, 4) + 1
    expected = put[:, ::-1].reshape(64, 128).copy()
    expected[:, 98:] = 0
    assert (tensors[1].numpy() == expected).all()


def test_a_reduction_across_threads_takes_no_axis_of_the_kernel_before():
    program = from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((3,), "float32")):
    for i in T.thread_binding(4, thread="threadIdx.x"):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(3):
        for k in T.thread_binding(2, thread="threadIdx.x"):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + B[vi + vk]
""")
    a = np.arange(4, dtype="float32")
    tensors = [tvm.nd.array(x, tvm.cuda(0)) for x in (a, 0 * a, a[:3])]
    tvm.build(program, target="cuda")(*tensors)
    assert (tensors[2].numpy() == [2, 6, 10]).all()
