"""Where buffers are allocated, and how large: PlanAndUpdate..., CompactBufferAllocation."""

import mlc_lab as tvm
import numpy as np
import pytest
from mlc_lab import dlight
from mlc_lab.ir.module import IRModule
from mlc_lab.lower import CompactBufferAllocation, LowerOpaqueBlock, lower
from mlc_lab.lower.split_host_device import is_kernel
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source, tir as T
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order
from .programs import arguments, chain, check_stages, conv_padded, mm_relu, run
from .test_simplify import apply


def buffers(mod):
    """The blocks' buffers, with the names of the loops around."""
    out = []

    def walk(s, loops):
        if isinstance(s, S.For):
            loops = (*loops, s.loop_var.name)
        if isinstance(s, S.Block):
            out.extend((b, loops) for b in s.alloc_buffers)
        for item in s.children():
            if isinstance(item, S.Stmt):
                walk(item, loops)

    walk(mod["main"].body, ())
    return out


def allocations(mod):
    """name -> (shape, names of the loops around) of the blocks' buffers."""
    return {b.name: ([int(d) for d in b.shape], loops) for b, loops in buffers(mod)}


def compacted(program):
    check_stages(program)
    return allocations(lower(program, until="CompactBufferAllocation"))


def test_a_tile_is_allocated_where_it_is_computed():
    s = Schedule(chain)
    i0, i1 = s.split(s.get_loops(s.get_block("D"))[0], [5, 8])
    s.compute_at(s.get_block("C"), i0)
    s.compute_at(s.get_block("B"), i0)
    assert compacted(s.mod) == {"B": ([8], ("i_0",)), "C": ([8], ("i_0",))}


def test_a_halo_is_allocated_with_the_tile():
    s = Schedule(conv_padded)
    loops = s.get_loops(s.get_block("conv"))
    h0, h1 = s.split(loops[1], [4, 2])
    s.reorder(h0, loops[0])
    s.compute_at(s.get_block("pad"), h0)
    assert compacted(s.mod) == {"P": ([2, 4, 11], ("h_0",))}


def test_an_accumulator_stays_outside_of_its_reduction():
    s = Schedule(mm_relu)
    b = s.get_block("C")
    i, j, k = s.get_loops(b)
    cache = s.cache_write(b, 0, "local")
    s.reverse_compute_at(cache, j)
    found = compacted(s.mod)
    assert found["C_local"] == ([1, 1], ("i", "j"))


def test_an_outer_reduction_keeps_the_whole_accumulator():
    s = Schedule(mm_relu)
    b = s.get_block("C")
    i, j, k = s.get_loops(b)
    s.reorder(k, i, j)
    assert compacted(s.mod)["C"] == ([16, 16], ())


@T.prim_func
def carried(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"global_symbol": "main"})
    S_ = T.alloc_buffer((1,), "float32")
    for i in range(8):
        if i == 0:
            S_[0] = T.float32(0)
        S_[0] = S_[0] + A[i]
        B[i] = S_[0]


@T.prim_func
def carried_window(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"global_symbol": "main"})
    W = T.alloc_buffer((9,), "float32")
    W[0] = T.float32(1)
    for i in range(8):
        W[i + 1] = A[i]
        B[i] = W[i] + W[i + 1]


@pytest.mark.parametrize("program", [carried, carried_window])
def test_what_one_iteration_leaves_for_the_next_stays_outside(program):
    check_stages(program)


@T.prim_func
def running(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"global_symbol": "main"})
    W = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("W"):
            vi = T.axis.opaque(8, i)
            W[vi] = A[vi]
        with T.block("B"):
            vi = T.axis.opaque(8, i)
            B[vi] = T.if_then_else(vi > 0, W[vi - 1], T.float32(0)) + W[vi]


def test_a_sliding_window_is_not_cut_into_iterations():
    check_stages(running)
    assert compacted(running) == {"W": ([8], ())}


@T.prim_func
def two_cases(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"global_symbol": "main"})
    W = T.alloc_buffer((1,), "int32")
    for i in range(8):
        with T.block("W"):
            vi = T.axis.opaque(8, i)
            T.where(i < 1)
            W[0] = A[vi]
        with T.block("B"):
            vi = T.axis.opaque(8, i)
            B[vi] = W[0]


def test_a_write_that_only_some_iterations_do():
    check_stages(two_cases)


@T.prim_func
def indirect(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.func_attr({"global_symbol": "main"})
    W = T.alloc_buffer((50,), "int32")
    for i in range(50):
        W[i] = i * 2
    for i in range(8):
        B[i] = W[A[i]]


def test_an_index_from_data_keeps_the_whole_buffer():
    assert compacted(indirect) == {"W": ([50], ())}


def test_storage_align_becomes_strides():
    s = Schedule(mm_relu)
    s.storage_align(s.get_block("C"), 0, 0, 32, 8)
    check_stages(s.mod)
    mod = lower(s.mod)
    alloc = next(x for x in pre_order(mod["main"].body) if isinstance(x, S.Allocate))
    assert int(alloc.extents[0]) == 16 * 40


def test_parallel_iterations_get_buffers_of_their_own():
    s = Schedule(mm_relu)
    i, j, k = s.get_loops(s.get_block("C"))
    s.reverse_compute_at(s.get_block("D"), i)
    s.parallel(i)
    assert compacted(s.mod)["C"] == ([1, 16], ("i",))


def test_a_value_read_before_it_is_written_again_is_kept_from_the_iteration_before():
    @T.prim_func
    def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(4):
            for j in range(8):
                with T.block("start"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.where(i == 0)
                    B[vj] = T.float32(0)
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vj] = A[vi, vj]
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[7 - vj]

    assert compacted(main) == {"B": ([8], ())}


@T.prim_func
def running_sums(A: T.Buffer((4, 3), "float32"), B: T.Buffer((5, 4), "float32")):
    S = T.alloc_buffer((4, 3), "float32")
    for k in range(5):
        for i, j in T.grid(4, 3):
            with T.block("S"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    S[vi, vj] = T.float32(0)
                S[vi, vj] = S[vi, vj] + A[vi, vj] * T.Cast("float32", vk)
        for i in range(4):
            with T.block("B"):
                vk, vi = T.axis.remap("SS", [k, i])
                B[vk, vi] = S[vi, 0]


@pytest.mark.parametrize("nested", [(), (2,), (1,)])
def test_sums_are_kept_from_one_iteration_of_their_loop_to_the_next(nested):
    """Also where the blocks of the sum and of its init stand within others."""
    s = Schedule(running_sums)
    loops = s.get_loops("S")
    for at in nested:
        s.blockize(loops[at])
    assert compacted(s.mod) == {"S": ([4, 3], ())}


@pytest.mark.parametrize("name", ["F = T.decl_buffer((4, 8), data=M.data)",
                                  "F = T.decl_buffer((8, 4), data=M.data)"])
@pytest.mark.parametrize("inside", [False, True])
def test_memory_of_two_names_stays_where_and_as_large_as_it_is(name, inside):
    index = "v, j" if "(4, 8)" in name else "(v * 8 + j) // 4, j % 4"
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    M = T.alloc_buffer((4, 8))
    {"pass" if inside else name}
    for i, j in T.grid(4, 8):
        with T.block("M"):
            v, w = T.axis.remap("SS", [i, j])
            M[v, w] = A[v, w] + T.float32(1)
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            {name if inside else "pass"}
            for j in range(8):
                B[v, j] = F[{index}]
""")
    assert compacted(func) == {"M": ([4, 8], ())}


def under(write, read):
    """Tiles of four of ten elements, of which a condition leaves some out in writing and in
    reading."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((10,), "int32"), C: T.Buffer((10,), "int32"), M: T.Buffer((3,), "int32")):
    B = T.alloc_buffer((12,), "int32")
    for i in range(3):
        for j in range(4):
            with T.block("B"):
                v = T.axis.spatial(12, i * 4 + j)
                T.where({write})
                B[v] = A[T.min(v, 9)] * 2
        for j in range(4):
            with T.block("C"):
                v = T.axis.spatial(10, i * 4 + j)
                T.where({read})
                C[v] = B[v]
""")


@pytest.mark.parametrize("write, read", [
    ("i < 2", "i < 2 and i * 4 + j < 10"), ("i < 2", "i // 2 * 8 + i * 4 + j < 7"),
    ("i >= 1", "i * 4 + j < 10 and 5 <= i * 4 + j"), ("i != 1", "i * 4 + j < 10 and i != 1")])
def test_what_is_read_is_written_under_the_same_condition(write, read):
    assert compacted(Schedule(under(write, read)).mod) == {"B": ([4], ("i",))}


@pytest.mark.parametrize("write, read", [
    ("i < 2", "i * 4 + j < 10"), ("i < 1", "i // 2 * 8 + i * 4 + j < 7"),
    ("M[i] < 1", "M[i] < 1 and i * 4 + j < 10")])
def test_what_is_read_may_not_have_been_written(write, read):
    found = allocations(lower(Schedule(under(write, read)).mod, until="CompactBufferAllocation"))
    assert found["B"][1] == ()


def memories(func):
    """What a program without blocks allocates: the shape of each buffer, and its memory."""
    return {s.body.buffer.name: ([int(d) for d in s.body.buffer.shape],
                                 [int(e) for e in s.extents])
            for s in pre_order(func.body) if isinstance(s, S.Allocate)}


@pytest.mark.parametrize("step", ["LowerOpaqueBlock", "CompactBufferAllocation"])
def test_memory_is_compacted_after_blocks_are_gone_as_before(step):
    s = Schedule(chain)
    i0, _ = s.split(s.get_loops(s.get_block("D"))[0], [5, 8])
    s.compute_at(s.get_block("C"), i0)
    s.compute_at(s.get_block("B"), i0)
    mod = lower(s.mod, until="ConvertBlocksToOpaque")
    first, second = CompactBufferAllocation(), LowerOpaqueBlock()
    if step == "LowerOpaqueBlock":
        first, second = second, first
    after = second(first(mod))
    assert set(map(str, memories(after["main"]).values())) == {"([8], [8])"}
    args = arguments(chain)
    for got, want in zip(run(after, args), run(IRModule({"main": chain}), args)):
        assert (got == want).all()


def test_memory_under_two_names_or_of_another_type_keeps_its_size():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    M = T.allocate([64], "int32", "global")
    B = T.decl_buffer((64,), "int32", data=M)
    B2 = T.decl_buffer((64,), "int32", data=M)
    N = T.allocate([256], "int8", "global")
    C = T.decl_buffer((64,), "int32", data=N)
    for i in range(8):
        B[i] = A[i]
        C[i] = B2[i]
        A[i] = C[i] + 1
""")
    after = apply(CompactBufferAllocation(), func)
    assert memories(after) == {"B": ([64], [64]), "C": ([64], [256])}


def test_threads_share_memory_without_blocks_too():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(8, thread="threadIdx.x"):
            with T.block(""):
                T.reads(A[b, t])
                T.writes(C[b, t])
                B = T.alloc_buffer((4, 8), "int32", scope="shared")
                L = T.alloc_buffer((4, 8), "int32", scope="local")
                B[b, t] = A[b, t]
                L[b, t] = B[b, 7 - t]
                C[b, t] = L[b, t]
""")
    after = CompactBufferAllocation()(LowerOpaqueBlock()(IRModule({"main": func})))["main"]
    assert memories(after) == {"B": ([1, 8], [1, 8]), "L": ([1, 1], [1, 1])}


def test_what_a_condition_leaves_out_needs_no_memory():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((20,), "int32"), C: T.Buffer((24,), "int32"), D: T.Buffer((20,), "int32")):
    with T.block(""):
        T.reads(A[0:20])
        T.writes(C[0:24], D[0:20])
        B = T.alloc_buffer((20,), "int32")
        E = T.alloc_buffer((20,), "int32")
        for i in range(20):
            if i < 12:
                B[i] = A[i]
            if A[i] < 3:
                E[i] = A[i]
                D[i] = E[i]
        for i in range(24):
            C[i] = T.if_then_else(2 <= i and i < 14, B[i - 2], 0)
""")
    after = apply(CompactBufferAllocation(), func)
    found = {b.name: int(b.shape[0]) for s in pre_order(after.body) if isinstance(s, S.Block)
             for b in s.alloc_buffers}
    assert found == {"B": 12, "E": 20}


def test_attributes_that_are_no_threads_stand_around_accesses():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    B = T.allocate([64], "int32", "global")
    B_1 = T.decl_buffer((64,), "int32", data=B)
    with T.attr(0, "pragma_unroll_explicit", 1):
        for i in range(8):
            B_1[i] = A[i]
    for i in range(8):
        A[i] = B_1[i] + 1
""")
    assert memories(apply(CompactBufferAllocation(), func)) == {"B_1": ([8], [8])}


ROWS = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    m, n = T.int32(), T.int32()
    A = T.match_buffer(a, (m, n), "float32")
    C = T.match_buffer(c, (m, n), "float32")
    B = T.alloc_buffer((m, n), "float32")
    for i, j in T.grid(m, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(m, n):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""


def test_a_tile_of_a_symbolic_size_moves_where_it_is_constant():
    """Eight elements of a row are a tile; a row has a symbolic length, and stays where it was."""
    for tile, place in ((8, ("i", "j_0")), (None, ())):
        s = Schedule(from_source(ROWS))
        i, j = s.get_loops("C")
        s.compute_at("B", s.split(j, [None, tile])[0] if tile else i)
        mod = lower(s.mod, until="CompactBufferAllocation")
        (found,) = [(b, loops) for b, loops in buffers(mod) if b.name == "B"]
        assert found[1] == place
        assert tile is None or [int(d) for d in found[0].shape] == [1, 8]
        a = np.arange(3 * 21, dtype="float32").reshape(3, 21)
        out = np.zeros_like(a)
        tvm.build(s.mod, target="llvm")["main"](a, out)
        np.testing.assert_array_equal(out, a * 2 + 1)


@pytest.mark.parametrize("kind", ["cuda", "webgpu"])
def test_tiles_of_a_symbolic_product_lie_in_shared_memory_and_registers(kind):
    """They were arrays of the whole product, which each launch allocated."""
    func = from_source("""
@T.prim_func
def main(a: T.handle, B: T.Buffer((96, 50), "float32"), c: T.handle):
    T.func_attr({"tir.noalias": True})
    m = T.int32()
    A = T.match_buffer(a, (m, 96), "float32")
    C = T.match_buffer(c, (m, 50), "float32")
    for i, j, k in T.grid(m, 50, 96):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")
    with tvm.target.Target(kind):
        mod = dlight.ApplyDefaultSchedule(dlight.gpu.Matmul())(tvm.IRModule({"main": func}))
    lowered = lower(mod, target=tvm.target.Target(kind))
    (kernel,) = [f for f in lowered.functions.values() if is_kernel(f)]
    pointers = [p.name for p in kernel.params if p.dtype == "handle"]
    assert sorted(pointers) == ["A", "B", "C"]
    sizes = {s.buffer_var.name: int(s.extents[0]) for s in pre_order(kernel.body)
             if isinstance(s, S.Allocate)}
    assert sizes["C_pad_local"] == 16 and sizes["A_pad_shared"] == 64 * 16
