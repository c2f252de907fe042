"""What stands between the loops and a block (if, while, let) and loops that may not run at all."""

import pytest

from mlc_lab.script import from_source

from .common import kept, refused


def writer(around):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), D: T.Buffer((8,), "float32"),
         L: T.Buffer((8,), "int32")):
    C = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v, 0] + T.float32(1)
    for i in range(8):
        {around}
            with T.block("D"):
                v = T.axis.spatial(8, i)
                D[v] = C[v] * T.float32(2)
""")


@pytest.mark.parametrize("around", ["if i < 3:", "if L[i] > 0:", "for j in range(L[i]):",
                                    "for j in range(T.max(i - 4, 0)):", "for j in range(0):"])
@pytest.mark.parametrize("act", [
    lambda sch: sch.cache_write("D", 0, "global"),
    lambda sch: sch.reindex_cache_write("D", 0, "global", lambda i: (i // 2, i % 2)),
    lambda sch: sch.reverse_compute_inline("D"),
    lambda sch: sch.reverse_compute_at("D", sch.get_loops("C")[0])])
def test_what_may_not_run_does_not_come_to_run(around, act):
    refused(writer(around), act)


def reduction(around, index="i"):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), D: T.Buffer((8,), "float32")):
    for i in range(8):
        {around}
            for k in range(8):
                with T.block("D"):
                    v = T.axis.spatial(8, {index})
                    w = T.axis.reduce(8, k)
                    with T.init():
                        D[v] = T.float32(0)
                    D[v] = D[v] + A[v, w]
""")


@pytest.mark.parametrize("around, index", [("if i < 3:", "i"),
                                           ("with T.LetStmt(7 - i) as x:", "x")])
def test_an_init_stays_where_it_is_said_whether_it_runs(around, index):
    func = reduction(around, index)
    refused(func, lambda sch: sch.decompose_reduction("D", sch.get_loops("D")[0]),
            "conditions_stay")
    kept(func, lambda sch: sch.decompose_reduction("D", sch.get_loops("D")[1]))


WHILE = """
@T.prim_func
def main(X: T.Buffer((4,), "float32"), D: T.Buffer((4,), "float32"), W: T.Buffer((1,), "int32")):
    C = T.alloc_buffer((4,), "float32")
    for i in range(4):
        with T.block("C"):
            v = T.axis.spatial(4, i)
            C[v] = X[v] + T.float32(1)
    with T.block("Z"):
        T.reads()
        T.writes(W[0])
        W[0] = 0
    while W[0] < 3:
        for i in range(4):
            with T.block("D"):
                v = T.axis.spatial(4, i)
                D[v] = C[v] + X[3 - v]
        for i in range(4):
            with T.block("X"):
                v = T.axis.spatial(4, i)
                X[v] = D[3 - v] * T.float32(2)
        with T.block("W"):
            T.reads(W[0])
            T.writes(W[0])
            W[0] = W[0] + 1
"""


@pytest.mark.parametrize("act", [
    lambda sch: sch.compute_inline("C"), lambda sch: sch.cache_read("D", 1, "global"),
    lambda sch: sch.cache_write("X", 0, "global")])
def test_in_a_while_what_follows_comes_before_the_next_turn(act):
    refused(from_source(WHILE), act)


@pytest.mark.parametrize("act", [
    lambda sch: sch.parallel(sch.get_loops("X")[0]),
    lambda sch: sch.vectorize(sch.get_loops("X")[0]),
    lambda sch: sch.reorder(*sch.get_loops("X")[::-1])])
def test_a_predicate_may_read_what_the_block_writes(act):
    refused(from_source("""
@T.prim_func
def main(X: T.Buffer((8, 8), "int32"), B: T.Buffer((8,), "int32")):
    for i, j in T.grid(7, 7):
        with T.block("X"):
            v, w = T.axis.remap("SS", [i, j])
            T.where(X[i, j + 1] > 0)
            X[v + 1, w] = B[v]
"""), act)


def test_a_copy_is_made_where_its_predicate_is_known():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("C"):
            v = T.axis.spatial(8, i)
            C[v] = A[v] + T.float32(1)
    for i in range(8):
        with T.block("D"):
            v = T.axis.spatial(8, i)
            T.where(C[i] > T.float32(0))
            D[v] = A[v] + T.float32(1)
""")
    refused(func, lambda sch: sch.reindex_cache_read("D", 0, "global", lambda i: (i // 2, i % 2)))


@pytest.mark.parametrize("maybe", [
    "while X[v, w] > 2:\n    t[0] = A[v, w]\n    X[v, w] = X[v, w] - 1",
    "for k in range(1):\n    if X[v, w] < 2:\n        continue\n    t[0] = A[v, w]",
    "for k in range(2):\n    if X[v, w] < 2:\n        break\n    t[0] = A[v, w]"])
def test_what_a_loop_may_leave_out_is_not_surely_written(maybe):
    lines = maybe.replace("\n", "\n            ")
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), X: T.Buffer((4, 4), "int32"),
         B: T.Buffer((4, 4), "float32")):
    t = T.alloc_buffer((1,))
    for i, j in T.grid(4, 4):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            if v == 0 and w == 0:
                t[0] = T.float32(9)
            {lines}
            B[v, w] = t[0]
""")
    refused(func, lambda sch: sch.reorder(*sch.get_loops("B")[::-1]))
    for loop in (0, 1):
        refused(func, lambda sch, n=loop: sch.parallel(sch.get_loops("B")[n]))


def test_a_loop_that_is_left_early_is_no_matter_of_others():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            for j in range(8):
                if A[v, j] > T.float32(0.5):
                    break
                B[v, j] = A[v, j]
""")
    kept(func, lambda sch: sch.parallel(sch.get_loops("B")[0]))
    refused(func, lambda sch: sch.cache_write("B", 0, "global"), "every_element_is_written")


def test_cache_index_under_a_condition():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((4,), "float32"), N: T.Buffer((1,), "int32")):
    if N[0] > 2:
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi * 2] + A[vi * 2 + 1] + A[vi * 2]
""")
    sch = kept(func, lambda sch: sch.cache_index("B", "global", 0))
    assert sch.mod.script().count("index_var") > 2
