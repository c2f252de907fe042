"""Indices that a block, or its neighbour, sets itself are something else before it has run."""

import pytest

from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source

from .common import check_compiled, kept, refused

HEAD = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), X: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float32")):
    P = T.alloc_buffer((8,), "int32")
    M = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("P"):
            v = T.axis.spatial(8, i)
            P[v] = X[v]
    for i in range(8):
        with T.block("M"):
            v = T.axis.spatial(8, i)
            M[v] = A[v] * T.float32(2)
"""


def before(consumer, declared=""):
    """A producer M, and a consumer B that has to do with the index P."""
    lines = "\n".join("            " + line for line in (
        declared + consumer).splitlines())
    return from_source(HEAD + f"""
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
{lines}
""")


def move(sch):
    sch.compute_at("M", sch.get_loops("B")[0])


WHILE = "P[v] = 0\nB[v] = T.float32(0)\nwhile P[v] < v:\n    B[v] = B[v] + M[P[v]]\n    " \
        "P[v] = P[v] + 1"


@pytest.mark.parametrize("declared", ["", "T.reads(X[v], P[v], B[v], M[P[v]])\n"
                                          "T.writes(P[v], B[v])\n"])
@pytest.mark.parametrize("consumer", [
    "P[v] = (X[v] + 1) % 8\nB[v] = M[P[v]]", WHILE,
    "q: T.int32 = P[v]\nP[v] = P[v] + 1\nB[v] = M[q] + M[P[v]]"])
def test_a_region_does_not_name_what_the_block_writes(consumer, declared):
    sch = kept(before(consumer, declared), move)
    assert "M[0:8]" in sch.mod.script()


def test_what_a_neighbour_sets_in_the_same_iteration_is_not_known_before_it():
    func = from_source(HEAD + """
    for i in range(8):
        with T.block("Q"):
            v = T.axis.spatial(8, i)
            P[v] = (P[v] + v) % 8
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = M[P[v]]
""")
    for index in (0, 1):
        kept(func, lambda sch, n=index: sch.compute_at("M", sch.get_loops("B")[0], index=n))
    near = kept(before("B[v] = M[P[v]]"), move)  # here nothing changes it
    assert "T.axis.spatial(8, P[i])" in near.mod.script()


def test_the_block_that_is_moved_sets_the_index_that_says_where():
    kept(from_source("""
@T.prim_func
def main(X: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    Y = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("Y"):
            v = T.axis.spatial(8, i)
            Y[v] = X[v] + 1
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            w = T.axis.spatial(8, Y[i])
            B[v] = Y[w]
"""), lambda sch: sch.compute_at("Y", sch.get_loops("B")[0]))


@pytest.mark.parametrize("consumer", ["P[0] = X[v]\nB[v] = M[P[0] + 1]",
                                      "q: T.int32 = X[v]\nB[v] = M[q + 1]"])
def test_a_copy_by_iterators_needs_an_index_that_is_known_outside(consumer):
    def reindex(sch):
        reads = [r.buffer.name for r in sch.get(sch.get_block("B")).reads]
        sch.reindex("B", ("read", reads.index("M")))

    refused(before(consumer), reindex)
    kept(before("B[v] = M[X[v] + 1]"), reindex)


def test_a_start_that_builds_on_what_is_there_reads_it():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), D: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("D"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                D[v] = D[v] * T.float32(2)
            D[v] = D[v] + A[v, r]
""")
    refused(func, lambda sch: sch.cache_write("D", 0, "global"))
    refused(func, lambda sch: sch.reindex("D", ("write", 0)))


def test_an_init_that_reads_is_seen_to_read():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    S = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("S"):
            v = T.axis.spatial(4, i)
            S[v] = A[v, 0]
    for i, k in T.grid(4, 8):
        with T.block("C"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                C[v] = S[3 - v]
            C[v] = T.max(C[v], A[v, r])
""")

    def act(sch):
        i, k = sch.get_loops("C")
        init = sch.decompose_reduction("C", i)
        assert sch.get_consumers("S")
        assert [r.buffer.name for r in sch.get(init).reads] == ["S"]

    kept(func, act)

    def late(sch):
        i, k = sch.get_loops("C")
        sch.decompose_reduction("C", i)
        sch.compute_at("S", i)

    refused(func, late)


def test_machine_code_follows_an_index_of_ones_own():
    sch = Schedule(before(WHILE))
    original = sch.mod
    move(sch)
    check_compiled(sch, original)


SIZES = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), X: T.Buffer((4,), "int32"),
         C: T.Buffer((4, 8), "float32")):
    L = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("L"):
            v = T.axis.spatial(4, i)
            L[v] = X[v] + 1
    for i in range(4):
        for j in {bound}:
            for k in range(3):
                with T.block("C"):
                    v, r = T.axis.remap("SR", [i, k])
                    w = T.axis.spatial(8, j)
                    {where}
                    with T.init():
                        C[v, w] = T.float32(0)
                    C[v, w] = C[v, w] + A[v, r] * A[v, w]
        with T.block("M"):
            v = T.axis.spatial(4, i)
            L[(v + 1) % 4] = 2
"""


@pytest.mark.parametrize("bound, where", [("range(L[i])", "pass"),
                                          ("range(8)", "T.where(j < L[i])")])
def test_which_iterations_run_is_said_by_what_is_there_by_then(bound, where):
    func = from_source(SIZES.format(bound=bound, where=where))
    refused(func, lambda sch: sch.decompose_reduction("C", sch.get_loops("C")[0]))
    kept(func, lambda sch: sch.decompose_reduction("C", sch.get_loops("C")[1]))


def test_a_copy_in_the_loops_of_a_block_needs_their_bounds():
    text = SIZES.format(bound="range(L[i])", where="pass")

    text = text.replace("A[v, r] * A[v, w]", "A[v, w]")

    def own(sch):
        sch.reindex_cache_read("C", 0, "global", lambda v, r, w: (v, w))

    refused(from_source(text), own)
    kept(from_source(text.replace("L[(v + 1) % 4] = 2", "L[v] = 2")
                     .replace("range(L[i])", "range(X[i])")), own)


def test_a_block_around_another_name_for_memory_names_the_memory():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i in range(4):
        with T.block("B"):
            v = T.axis.spatial(4, i)
            F = T.decl_buffer((32,), data=A.data)
            for j in range(8):
                B[v, j] = F[v * 8 + j]
""")
    sch = kept(func, lambda sch: sch.blockize(["B"]))
    assert "T.reads(A[0:4, 0:8])" in sch.mod.script()


@pytest.mark.parametrize("view", [False, True])
def test_a_copy_by_iterators_is_not_made_of_what_blocks_inside_access(view):
    there = "W[w]" if view else "D[w]"
    match = "W = T.match_buffer(D[0:4], (4,), offset_factor=1)" if view else "pass"
    refused(from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), D: T.Buffer((4,), "float32")):
    for z in range(1):
        with T.block("D"):
            r = T.axis.reduce(1, z)
            T.reads(A[0:4, 0:8])
            T.writes(D[0:4])
            {match}
            with T.init():
                for i in range(4):
                    with T.block("start"):
                        w = T.axis.spatial(4, i)
                        D[w] = T.float32(0)
            for i, k in T.grid(4, 8):
                with T.block("inner"):
                    w, r = T.axis.remap("SR", [i, k])
                    {there} = {there} + A[w, r]
"""), lambda sch: sch.reindex("D", ("write", 0)))
