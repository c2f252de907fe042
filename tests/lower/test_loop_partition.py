"""LoopPartition: the main part of a loop has no branches."""

import numpy as np
import pytest
from mlc_lab import build
from mlc_lab.backend.interp import interpret
from mlc_lab.ir.module import IRModule
from mlc_lab.lower import LoopPartition, lower
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.script import tir as T
from mlc_lab.tir import And
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order
from .programs import arguments, check_stages, matmul, run


def partitioned(func):
    mod = IRModule({"main": func})
    out = LoopPartition()(mod)
    args = arguments(func)
    for a, b in zip(run(mod, args), run(out, args)):
        assert (a == b).all()
    return out["main"].body


def ifs(body):
    return [s for s in pre_order(body) if isinstance(s, S.IfThenElse)]


@T.prim_func
def tail(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i, j in T.grid(7, 16):
        if i * 16 + j < 100:
            B[i * 16 + j] = A[i * 16 + j] + 1.0


def test_a_tail_is_split_off():
    body = partitioned(tail)
    assert [int(s.extent) for s in body.seq] == [6, 4]
    assert not ifs(body)


@T.prim_func
def both_ends(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        if i >= 3 and i < 60:
            B[i] = A[i - 3] + A[i + 4]


@T.prim_func
def swapped(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for j, i in T.grid(16, 7):
        if i * 16 + j < 100:
            B[i * 16 + j] = A[i * 16 + j] + 1.0


@T.prim_func
def falling(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i, j in T.grid(20, 5):
        if 90 - i * 5 - j >= 7:
            B[i * 5 + j] = A[i * 5 + j] + 1.0


@T.prim_func
def never(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i, j in T.grid(10, 10):
        if i * 10 + j < 3:
            B[i * 10 + j] = A[i * 10 + j] + 1.0


@pytest.mark.parametrize("program", [both_ends, swapped, falling, never])
def test_all_conditions_go(program):
    assert not ifs(partitioned(program))


def test_two_dimensions_give_four_parts():
    s = Schedule(matmul)
    i, j, k = s.get_loops(s.get_block("C"))
    i0, i1 = s.split(i, [None, 4])
    j0, j1 = s.split(j, [None, 8])
    s.reorder(i0, j0, k, i1, j1)
    s.vectorize(j1)
    s.decompose_reduction(s.get_block("C"), k)
    last = check_stages(s.mod)["LoopPartition"]
    assert not ifs(last["main"].body)


def test_a_parallel_loop_is_not_cut():
    s = Schedule(matmul)
    i, j, k = s.get_loops(s.get_block("C"))
    i0, i1 = s.split(i, [None, 4])
    s.parallel(i0)
    body = check_stages(s.mod)["LoopPartition"]["main"].body
    loops = [x for x in pre_order(body) if isinstance(x, S.For)
             and x.kind is S.ForKind.PARALLEL]
    assert len(loops) == 1 and int(loops[0].extent) == 4


def test_a_fused_loop_gets_two_versions():
    s = Schedule(matmul)
    i, j, k = s.get_loops(s.get_block("C"))
    i0, i1 = s.split(i, [None, 4])
    j0, j1 = s.split(j, [None, 8])
    s.reorder(i0, j0, i1, j1, k)
    s.parallel(s.fuse(i0, j0))
    check_stages(s.mod)


@T.prim_func
def small_part(A: T.Buffer((112,), "float32"), B: T.Buffer((100,), "float32"),
               C: T.Buffer((100,), "float32")):
    for i in range(7):
        for k, j in T.grid(64, 16):
            A[i * 16 + j] = A[i * 16 + j] * 0.5 + 1.0
        for j in range(16):
            if i * 16 + j < 100:
                B[i * 16 + j] = A[i * 16 + j] + 1.0
        for j in range(16):
            if 3 <= i * 16 + j and i * 16 + j < 100:
                C[i * 16 + j] = A[i * 16 + j] + 2.0


def test_a_loop_is_not_repeated_for_a_small_part_of_its_body():
    body = partitioned(small_part)
    assert int(body.extent) == 7 and len(body.body.seq) == 3
    heavy, one, two = body.body.seq
    assert not ifs(heavy)
    (choice,) = ifs(one)
    assert "i < 6" in repr(choice.condition)
    assert [int(case.extent) for case in (choice.then_case, choice.else_case)] == [16, 4]
    assert len(ifs(two)) == 2 and "max" not in repr(two)


@T.prim_func
def large_part(A: T.Buffer((112,), "float32"), B: T.Buffer((100,), "float32")):
    for i in range(7):
        for j in range(16):
            A[i * 16 + j] = A[i * 16 + j] * 0.5 + 1.0
        for k, j in T.grid(64, 16):
            if i * 16 + j < 100:
                B[i * 16 + j] = B[i * 16 + j] + A[i * 16 + j] + 1.0


def test_a_loop_is_cut_for_most_of_its_body():
    body = partitioned(large_part)
    assert len(body.seq) in (2, 3) and not ifs(body)


@T.prim_func
def by_size(a: T.handle, b: T.handle):
    T.func_attr({"global_symbol": "main"})
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * 2.0


def test_a_symbolic_bound():
    s = Schedule(by_size)
    i0, i1 = s.split(s.get_loops(s.get_block("B"))[0], [None, 8])
    s.vectorize(i1)
    for n in (3, 8, 20):
        check_stages(s.mod, {"n": n})
    body = lower(s.mod)["main"].body
    loop = next(x for x in pre_order(body) if isinstance(x, S.For))
    assert isinstance(loop.body, S.BufferStore) and loop.body.indices[0].lanes == 8


@T.prim_func
def by_data(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        if A[i] < 25:
            B[i] = 1


def test_conditions_on_data_are_left():
    mod = IRModule({"main": by_data})
    assert LoopPartition()(mod) is mod


def test_a_bound_is_not_cut_along_a_loop_that_says_how_far_inner_loops_run():
    @T.prim_func
    def main(A: T.Buffer((10, 10), "float32"), B: T.Buffer((10, 10), "float32")):
        for i in range(10):
            for j in range((i + 2) // 2):
                for k in range(2):
                    if j * 2 + k < i + 1:
                        B[i, j * 2 + k] = A[i, j * 2 + k] + 1.0

    check_stages(main)
    partitioned(main)


def test_a_loop_that_is_left_early_is_not_cut():
    @T.prim_func
    def main(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
        for i in range(128):
            if i < 100:
                B[i] = A[i] + 1.0
            if i == 20:
                break

    assert isinstance(partitioned(main), S.For)


@pytest.mark.parametrize("extent", ["n", "100"])
def test_a_loop_that_is_split_again_and_again_is_cut_as_one(extent):
    """Each split leaves a condition, and the first of them says all that the others do."""
    func = from_source(f"""
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, ({extent},), "float32")
    B = T.match_buffer(b, ({extent},), "float32")
    for i in range({extent}):
        with T.block("B"):
            v = T.axis.spatial({extent}, i)
            B[v] = A[v] + T.float32(1)
""")
    sch = Schedule(func)
    for _ in range(7):
        sch.split(sch.get_loops("B")[0], [None, 3])
    body = lower(sch.mod)["main"].body
    assert sum(isinstance(s, S.For) for s in pre_order(body)) <= 40
    assert all(not isinstance(s.condition, And) for s in ifs(body))
    x, y = np.arange(100, dtype="float32"), np.zeros(100, "float32")
    build(sch.mod)(x, y)
    assert np.array_equal(y, x + 1)


def test_conditions_that_all_follow_from_the_loops_are_dropped():
    @T.prim_func
    def main(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            if i < n and i + 1 > 0 and i // 2 < (n + 1) // 2:
                A[i] = T.float32(1)
            else:
                A[0] = T.float32(2)

    body = LoopPartition()(IRModule({"main": main}))["main"].body
    assert not ifs(body)


def test_the_corners_of_many_loops_keep_their_conditions():
    """Five loops that do not divide by their tiles have 2 ** 5 kinds of corners."""
    loops = "abcde"
    places = ", ".join("v" + x for x in loops)
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer(({'5, ' * 5}), "float32"), B: T.Buffer(({'5, ' * 5}), "float32")):
    for {', '.join(loops)} in T.grid({', '.join('5' * 5)}):
        with T.block("B"):
            {places} = T.axis.remap("SSSSS", [{', '.join(loops)}])
            B[{places}] = A[{places}] * T.float32(2)
""")
    sch = Schedule(func)
    inner = []
    for loop in sch.get_loops("B"):
        outer, rest = sch.split(loop, [None, 2])
        inner.append(rest)
    sch.reorder(*sch.get_loops("B")[::2], *inner)
    body = lower(sch.mod)["main"].body
    assert sum(isinstance(s, S.BufferStore) for s in pre_order(body)) <= 30
    x = np.random.default_rng(0).random((5,) * 5, "float32")
    y = np.zeros_like(x)
    build(sch.mod)(x, y)
    assert np.array_equal(y, 2 * x)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_a_bound_that_divides_by_a_size_is_asked_only_where_the_size_is_not_zero(n):
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), C: T.Buffer((4, 4), "float32"), n: T.int32):
    for i in range(4):
        for j in range(4):
            if n > 0:
                if i % n < 2:
                    C[i, j] = A[i % n, j]
            for k in range(n):
                if k < i // n:
                    C[i, j] = A[j // n, k]
""")
    array = np.random.default_rng(0).random((8, 4), "float32")
    want, got = np.zeros((4, 4), "float32"), np.zeros((4, 4), "float32")
    interpret(func, array, want, n)
    interpret(LoopPartition()(IRModule({"main": func}))["main"], array, got, n)
    assert np.array_equal(want, got)
