"""TVM's tir.analysis: purity, single definitions, bounds, allocated bytes, places of access."""

import pytest

from mlc_lab import relax, tir
from mlc_lab.compat import analysis
from mlc_lab.ir import IRModule, assert_structural_equal
from mlc_lab.schedule import ScheduleError
from mlc_lab.script import tir as T


@T.prim_func
def total(A: T.Buffer((4, 8), "float32")) -> T.float32:
    S = T.decl_buffer((1,), "float32")
    S[0] = 0.0
    for i, j in T.grid(4, 8):
        S[0] = S[0] + T.exp(A[i, j])
    T.ret(S[0])


@T.prim_func
def staged(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    C = T.alloc_buffer((8, 8), scope="shared")
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * 2.0
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = C[vi, vj] + 1.0


def test_what_writes_its_own_memory_only_is_pure():
    assert analysis.is_pure_function(total) and analysis.assert_pure_function(total)
    assert not analysis.is_pure_function(staged)
    with pytest.raises(AssertionError, match="it writes B"):
        analysis.assert_pure_function(staged)


def test_a_call_of_anything_is_not_pure():
    @T.prim_func
    def calls(x: T.float32):
        T.evaluate(T.call_extern("float32", "f", x))

    @T.prim_func
    def computes(x: T.float32):
        T.evaluate(T.call_pure_extern("float32", "f", x))

    @T.prim_func
    def through_another_name(A: T.Buffer((8,), "float32")):
        with T.block("root"):
            B = T.match_buffer(A[0:4], (4,))
            B[0] = T.float32(1)

    assert not analysis.is_pure_function(calls) and analysis.is_pure_function(computes)
    assert not analysis.is_pure_function(through_another_name)


def test_each_variable_is_bound_once():
    x = tir.Var("x", "int32")
    once = tir.Let(x, 1, x + 1)
    same, other = tir.Let(x, 1, x + 2), tir.Let(x, 2, x + 1)
    assert analysis.verify_ssa(tir.PrimFunc([], tir.Evaluate(once + same)))
    assert not analysis.verify_ssa(tir.PrimFunc([], tir.Evaluate(once + other)))
    assert not analysis.verify_ssa(tir.PrimFunc([x], tir.LetStmt(x, 1, tir.Evaluate(x))))
    assert analysis.verify_ssa(staged)


def test_an_access_outside_is_found_with_the_iteration_that_makes_it():
    @T.prim_func
    def outside(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i + 1]

    @T.prim_func
    def guarded(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
        for i in range(8):
            if i < 7:
                B[i] = A[i + 1]
            B[i] = T.if_then_else(i > 0, A[i - 1], A[n])

    @T.prim_func
    def in_block(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[7 - vi * 2]

    with pytest.raises(ScheduleError, match="buffer A has 8 elements.*at 8 where i = 7"):
        analysis.OOBChecker()(IRModule.from_expr(outside))
    with pytest.raises(ScheduleError, match="buffer A .* at -7 where i = 7"):
        analysis.OOBChecker()(IRModule.from_expr(in_block))
    analysis.OOBChecker()(IRModule.from_expr(guarded))


def test_allocated_bytes_are_those_of_one_time():
    @T.prim_func
    def two(A: T.Buffer((16,), "int8")):
        for i in range(16):
            B = T.decl_buffer((10,), "int8")
            B[0] = A[i]
            A[i] = B[0]
        C = T.decl_buffer((4,), "float32")
        C[0] = T.float32(0)
        A[0] = T.Cast("int8", C[0])

    assert analysis.calculate_allocated_bytes(staged) == {"main": {"shared": 256}}
    assert analysis.calculate_allocated_bytes(IRModule({"f": two})) == {"f": {"global": 16}}
    assert analysis.calculate_workspace_bytes(two, 32) == 32
    assert analysis.calculate_constant_bytes(two, 32) == 0


def test_the_place_of_all_accesses():
    found = analysis.detect_buffer_access_lca(staged)
    A, B = (staged.buffer_map[p] for p in staged.params)
    C = staged.body.block.alloc_buffers[0]
    grid = staged.body.block.body
    assert found[A] is grid and found[B] is grid and found[C] is grid  # the loop over blocks
    inner = analysis.detect_buffer_access_lca(staged.with_body(
        tir.BlockRealize((), True, staged.body.block.replace(body=grid.body.seq[0]))))
    assert inner[A].name_hint == "C"


def test_what_a_pointer_is_used_for():
    @T.prim_func
    def pointers():
        A = T.alloc_buffer((16,))
        B = T.alloc_buffer((16,))
        with T.block("opaque"):
            T.reads(A[0:16])
            T.writes(B[0:16])
            T.evaluate(A.access_ptr("r"))
            T.evaluate(B.access_ptr("w"))

    root = pointers.body.block
    known = {b.data: b for b in root.alloc_buffers}
    reads, writes = analysis.get_block_read_write_region(root.body.block, known)
    assert [r.buffer.name for r in reads] == ["A"] and [r.buffer.name for r in writes] == ["B"]


def test_the_anchor_is_the_largest_reduction():
    @T.prim_func
    def sums(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32"),
             C: T.Buffer((1,), "float32")):
        for i, j in T.grid(8, 8):
            with T.block("rows"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vj]
        for i in range(8):
            with T.block("all"):
                vi = T.axis.reduce(8, i)
                with T.init():
                    C[0] = 0.0
                C[0] = C[0] + B[vi]

    assert analysis.find_anchor_block(IRModule.from_expr(sums)).name_hint == "rows"
    assert analysis.find_anchor_block(IRModule.from_expr(staged)) is None


def test_memory_of_a_gpu_is_touched_by_threads():
    import mlc_lab as tvm

    @T.prim_func
    def on_host(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = A[i] + 1.0

    for func, kind, fits in [(staged, "cuda", True), (on_host, "cuda", False),
                             (on_host, "llvm", True)]:
        mod = IRModule.from_expr(func.with_attr("target", tvm.target.Target(kind)))
        if fits:
            analysis.VerifyMemory()(mod)
        else:
            with pytest.raises(RuntimeError, match="accesses A outside of all loops"):
                analysis.VerifyMemory()(mod)


def test_the_struct_info_of_a_function_says_what_it_takes_and_whether_it_writes():
    @T.prim_func
    def area(m: T.int32, n: T.int32) -> T.int32:
        T.ret(m * n)

    number = relax.PrimStructInfo("int32")
    assert_structural_equal(area.struct_info,
                            relax.FuncStructInfo([number, number], number, True))

    @T.prim_func
    def copy(A: T.Buffer((16,), "float32"), b: T.handle, n: T.int64):
        B = T.match_buffer(b, (n,), "float16")
        for i in range(16):
            B[i] = T.cast(A[i], "float16")

    info = copy.struct_info
    assert not info.purity and isinstance(info.ret, relax.TupleStructInfo)
    assert [str(p) for p in info.params] == [
        'R.Tensor((16,), dtype="float32")', 'R.Tensor((n,), dtype="float16")', 'R.Prim("int64")']
