"""VectorizeLoop: vectors where they are right, lanes one by one where not."""

import textwrap

import numpy as np
import pytest
from mlc_lab import build
from mlc_lab.backend.interp import interpret
from mlc_lab.backend.meaning import evaluate
from mlc_lab.ir.module import IRModule
from mlc_lab.lower import VectorizeLoop, lower
from mlc_lab.script import from_source
from mlc_lab.script import tir as T
from mlc_lab.tir import expr as E
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order
from .programs import arguments, run


def vectorized(func):
    mod = IRModule({"main": func})
    out = VectorizeLoop()(mod)
    args = arguments(func)
    for a, b in zip(run(mod, args), run(out, args)):
        assert (a == b).all()
    body = out["main"].body
    assert not any(isinstance(s, S.For) and s.kind is S.ForKind.VECTORIZED
                   for s in pre_order(body))
    return body


def loops(body):
    return [s for s in pre_order(body) if isinstance(s, S.For)]


def test_ramps_and_broadcasts():
    @T.prim_func
    def f(A: T.Buffer((32,), "float32"), S: T.Buffer((4,), "float32"),
          B: T.Buffer((32,), "float32")):
        for i in range(4):
            for j in T.vectorized(8):
                B[i * 8 + j] = T.max(A[31 - (i * 8 + j)] * S[i], T.float32(0)) + T.exp(A[j])

    body = vectorized(f).body
    assert isinstance(body, S.BufferStore) and body.indices[0].lanes == 8
    loads = [e for e in pre_order(body.value) if isinstance(e, E.BufferLoad)]
    assert loads[0].indices[0].stride.value == -1
    assert isinstance(loads[1].indices[0], E.Var)


def test_selects_casts_lets_and_comparisons():
    @T.prim_func
    def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
        for j in T.vectorized(8):
            B[j] = T.Select(A[j] > 20 and j < 6, T.Cast("float32", A[j] + j),
                            T.float32(1)) + T.Cast("float32", T.popcount(A[j]))

    assert not loops(vectorized(f))


def test_a_branch_per_lane_is_done_lane_by_lane():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for j in T.vectorized(8):
            if j < 5:
                B[j] = A[j]
            B[j] = B[j] + 1.0

    body = vectorized(f)
    assert isinstance(body.seq[0], S.For)
    assert isinstance(body.seq[1], S.BufferStore)


def test_a_uniform_branch_stays_a_branch():
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(2):
            for j in T.vectorized(8):
                if A[i] > 0.0:
                    B[i * 8 + j] = A[i * 8 + j]

    assert len(loops(vectorized(f))) == 1


def test_lazy_choice_between_lanes():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for j in T.vectorized(8):
            B[j] = T.if_then_else(j > 0, A[j - 1], T.float32(0))

    @T.prim_func
    def harmless(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for j in T.vectorized(8):
            B[j] = A[j] + T.if_then_else(j > 3, T.float32(1), T.float32(2))

    assert len(loops(vectorized(f))) == 1
    assert not loops(vectorized(harmless))


def test_an_update_of_one_element_is_serial():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
        for j in T.vectorized(8):
            B[0] = B[0] + A[j]

    @T.prim_func
    def g(B: T.Buffer((1,), "float32")):
        for _j in T.vectorized(8):
            B[0] = B[0] + 1.0

    @T.prim_func
    def once(B: T.Buffer((1,), "float32")):
        for _j in T.vectorized(8):
            B[0] = T.float32(3)

    assert len(loops(vectorized(f))) == 1
    assert len(loops(vectorized(g))) == 1
    assert isinstance(vectorized(once), S.BufferStore)


def test_a_dependence_between_lanes_is_serial():
    @T.prim_func
    def f(A: T.Buffer((9,), "float32")):
        for j in T.vectorized(8):
            A[j + 1] = A[j] + 1.0

    assert len(loops(vectorized(f))) == 1


def test_loops_inside():
    @T.prim_func
    def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "float32")):
        for j in T.vectorized(8):
            B[j] = T.float32(0)
            for k in range(4):
                B[j] = B[j] + A[k, j]

    @T.prim_func
    def ragged(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for j in T.vectorized(8):
            for k in range(j):
                B[j] = B[j] + A[k]

    body = vectorized(f)
    assert isinstance(body.seq[1], S.For) and isinstance(body.seq[1].body, S.BufferStore)
    assert len(loops(vectorized(ragged))) == 2


def test_effects_and_allocations_are_per_lane():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for j in T.vectorized(8):
            C = T.allocate([1], "float32", "local")
            C_1 = T.decl_buffer((1,), "float32", data=C, scope="local")
            C_1[0] = A[j]
            B[j] = C_1[0] * 2.0

    assert len(loops(vectorized(f))) == 1


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float64"])
def test_other_types(dtype):
    @T.prim_func
    def f(A: T.Buffer((8,), dtype), B: T.Buffer((8,), dtype)):
        for j in T.vectorized(8):
            B[j] = A[j] * A[7 - j] + A[j]

    assert not loops(vectorized(f))


def test_memory_allocated_inside_is_one_for_each_lane():
    @T.prim_func
    def f(A: T.Buffer((4, 16), "float32"), C: T.Buffer((4,), "float32")):
        for i in T.vectorized(4):
            t = T.allocate([16], "float32", "global")
            tb = T.Buffer((16,), "float32", data=t)
            for k in range(16):
                tb[k] = A[0, k] * 2.0
            for k in range(16):
                tb[k] = tb[k] + T.float32(i)
            C[i] = tb[0] + tb[3] * tb[15]

    body = vectorized(f)
    assert [s for s in pre_order(body) if isinstance(s, S.Allocate)][0].extents[0].value == 64
    assert all(int(s.extent) == 16 for s in loops(body))


def test_memory_of_the_lanes_that_is_passed_on_leaves_them_one_by_one():
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        for i in T.vectorized(4):
            t = T.allocate([1], "float32", "global")
            tb = T.Buffer((1,), "float32", data=t)
            tb[0] = A[i]
            C[i] = T.call_extern("float32", "fabsf", T.Cast("float32", T.isnullptr(t)))

    mod = VectorizeLoop()(IRModule({"main": f}))
    assert int(loops(mod["main"].body)[0].extent) == 4


@pytest.mark.parametrize("body", [
    # lanes leave at different times, a guard that the partition of loops decides for some of them
    "if i < 2:\n    T.break_loop()",
    "if A[i] > T.Cast('float32', k):\n    T.continue_loop()",
    "if i > k:\n    B[i] = B[i] * T.float32(2)\n    T.break_loop()",
    # all leave together
    "if k == 2:\n    T.break_loop()",
    "if A[0] > T.float32(3):\n    T.continue_loop()",
    # within another loop
    "for m in range(3):\n    if i == m:\n        T.break_loop()\n    B[i] = B[i] + T.float32(5)",
])
@pytest.mark.parametrize("outside", [False, True])
def test_lanes_that_leave_a_loop(body, outside):
    """Each lane leaves the loop that it is in, not one over the lanes that stands for vectors."""
    inner = textwrap.indent(body + "\nB[i] = B[i] + A[i]", " " * 12)
    loops = ("    for k in range(4):\n        for i in T.vectorized({n}):\n" if outside else
             "    for i in T.vectorized({n}):\n        for k in range(4):\n")
    if outside and not body.startswith("for"):
        inner = inner.replace("T.break_loop", "T.continue_loop")  # `break` leaves the vectors
    for n in (3, 4, 8):
        func = from_source("@T.prim_func\ndef main(A: T.Buffer((8,), 'float32'), "
                           "B: T.Buffer((8,), 'float32')):\n" + loops.format(n=n) + inner)
        runs_as_written(func)


@pytest.mark.parametrize("leave", ["T.break_loop()", "T.continue_loop()", "T.evaluate(T.ret(0))"])
def test_a_vectorized_loop_that_is_left(leave):
    """The lanes after the one that leaves do nothing; the vector does not begin without it."""
    for condition in ("i == 2", "A[i] > T.float32(2)", "A[0] > T.float32(-9)"):
        runs_as_written(from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.vectorized(8):
        B[i] = A[i] + T.float32(1)
        if {condition}:
            {leave}
        B[i] = B[i] * T.float32(2)
"""))


def runs_as_written(func):
    A = np.random.default_rng(0).integers(-4, 5, 8).astype("float32")
    want = np.zeros(8, "float32")
    evaluate(func, A, want)
    lowered = lower(func)
    for go in (build(func, target="llvm")["main"], lambda *args: interpret(lowered, *args)):
        got = np.zeros(8, "float32")
        go(A, got)
        np.testing.assert_array_equal(got, want)
