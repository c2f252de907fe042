"""Iterations that get values, conditions and places from memory that a block makes, or from a view:
each iteration has its own."""

import itertools

import numpy as np
import pytest
from mlc_lab.backend.interp import interpret
from mlc_lab.lower import lower
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import from_source

HEAD = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"),
         C: T.Buffer((4, 4), "float32")):
    for i in range(4):
        with T.block("o"):
            vi = T.axis.spatial(4, i)
            T.reads(A[0:4])
            T.writes(B[0:4], C[0:4, 0:4])
"""
MADE = """
            M = T.alloc_buffer((1,), scope="{scope}")
            with T.block("w"):
                M[0] = A[vi]
"""
INNER = """
            for j in range(4):
                with T.block("r"):
                    vj = T.axis.spatial(4, j)
                    {store}
"""
GUARDED = """
            if M[0] > T.float32(0):
                for j in range(4):
                    with T.block("r"):
                        vj = T.axis.spatial(4, j)
                        {store}
"""
VIEW = "            M = T.match_buffer(A[vi], (1,), offset_factor=1)\n"
WINDOW = "            M = T.match_buffer(C[vi, 0:4], (4,), offset_factor=1)\n"

#: every iteration of i writes all of B: the last one stays
OVERLAPPING = {
    "value": MADE + INNER.format(store="B[vj] = M[0]"),
    "value of a view": VIEW + INNER.format(store="B[vj] = M[0]"),
    "value and more": MADE + INNER.format(store="B[vj] = M[0] + A[vj]"),
    "two ways": MADE + GUARDED.format(store="B[vj] = A[vj]") + """
            if M[0] <= T.float32(0):
                for j in range(4):
                    with T.block("s"):
                        vj = T.axis.spatial(4, j)
                        B[vj] = A[3 - vj]
""",
    "two ways by a view": VIEW + GUARDED.format(store="B[vj] = A[vj]") + """
            if M[0] <= T.float32(0):
                for j in range(4):
                    with T.block("s"):
                        vj = T.axis.spatial(4, j)
                        B[vj] = A[3 - vj]
""",
    "place": MADE + INNER.format(store="C[T.Cast('int32', T.abs(M[0])) % 4, vj] = A[vi]"),
}


@pytest.mark.parametrize("body", OVERLAPPING.values(), ids=OVERLAPPING)
@pytest.mark.parametrize("scope", ["local", "global", "shared"])
@pytest.mark.parametrize("how", ["parallel", "vectorize", "bind"])
def test_iterations_that_store_different_values_at_one_place_stay_in_order(body, scope, how):
    sch = Schedule(from_source(HEAD + body.format(scope=scope)))
    loop = sch.get_loops(sch.get_block("o"))[0]
    with pytest.raises(ScheduleError):
        getattr(sch, how)(loop, *(["blockIdx.x"] if how == "bind" else []))


#: each iteration of i has elements of its own, or stores what the others store there
INDEPENDENT = {
    "window": WINDOW + INNER.format(store="M[vj] = A[vj]"),
    "window in a window": WINDOW + """
            with T.block("m"):
                W = T.match_buffer(M[0:4], (4,), offset_factor=1)
                for j in range(4):
                    with T.block("r"):
                        vj = T.axis.spatial(4, j)
                        W[vj] = A[vj]
""",
    "definition": "            x: T.int32 = vi + 0\n" + INNER.format(store="C[x, vj] = A[vj]"),
    "made": MADE + INNER.format(store="C[vi, vj] = M[0]"),
    "made, everywhere": MADE + GUARDED.format(store="B[vj] = A[vj]"),
    "loop": """
            for k in range(vi):
                for j in range(4):
                    with T.block("r"):
                        vj = T.axis.spatial(4, j)
                        B[vj] = A[vj]
""",
}


@pytest.mark.parametrize("body", INDEPENDENT.values(), ids=INDEPENDENT)
@pytest.mark.parametrize("scope", ["local", "global", "shared"])
@pytest.mark.parametrize("first", ["outer", "inner"])
def test_two_loops_on_one_axis_of_threads(body, scope, first):
    """What the inner one does must not depend on the outer one, by whatever name."""
    func = from_source(HEAD + body.format(scope=scope))
    for outer, inner in itertools.product(["blockIdx.x", "threadIdx.x"], repeat=2):
        sch = Schedule(func)
        loops = [(sch.get_loops(sch.get_block("o"))[0], outer),
                 (sch.get_loops(sch.get_block("r"))[-1], inner)]
        try:
            for loop, axis in loops if first == "outer" else loops[::-1]:
                sch.bind(loop, axis)
        except ScheduleError:
            continue
        assert outer != inner
        want, got = ([np.array([1, -2, 3, -4], "float32"), np.zeros(4, "float32"),
                      np.zeros((4, 4), "float32")] for _ in range(2))
        interpret(func, *want)
        interpret(lower(sch.mod, target="cuda"), *got)
        for a, b in zip(got, want):
            np.testing.assert_array_equal(a, b)


TWO_NAMES = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for k in range(1):
        with T.block("o"):
            vk = T.axis.spatial(1, k)
            V = T.match_buffer(B[{view}], (4,), "int32", offset_factor=1)
            for i, j in T.grid(2, 2):
                with T.block("c"):
                    v = T.axis.spatial(4, i * 2 + j)
                    B[v] = V[{read}] + 1
"""


@pytest.mark.parametrize("act", [
    lambda s, i, j: s.parallel(i), lambda s, i, j: s.vectorize(j),
    lambda s, i, j: s.bind(i, "threadIdx.x"), lambda s, i, j: s.reorder(j, i),
    lambda s, i, j: s.reindex("c", ("read", 0)), lambda s, i, j: s.cache_read("c", 0, "local"),
    lambda s, i, j: s.cache_write("c", 0, "local"), lambda s, i, j: s.blockize(j),
])
def test_memory_by_two_names(act):
    """A store to a buffer changes what its view shows."""
    sch = Schedule(from_source(TWO_NAMES.format(view="vk:vk + 4", read="0")))
    i, j = sch.get_loops(sch.get_block("c"))
    with pytest.raises(ScheduleError, match="one_name"):
        act(sch, i, j)
    sch.fuse(i, j)  # keeps all in order


def test_two_names_of_elements_apart():
    """One execution of the block reads a row and writes another."""
    sch = Schedule(from_source("""
@T.prim_func
def main(B: T.Buffer((4, 4), "int32")):
    for k in range(1, 4):
        with T.block("o"):
            t = T.axis.scan(T.Range(1, 4), k)
            V = T.match_buffer(B[0:4, 0:4], (4, 4), "int32", offset_factor=1)
            for i, j in T.grid(2, 2):
                with T.block("c"):
                    v = T.axis.spatial(4, i * 2 + j)
                    B[t, v] = V[t - 1, 3 - v] + 1
"""))
    i, j = sch.get_loops(sch.get_block("c"))
    sch.parallel(i)
    sch.vectorize(j)


def test_two_names_of_what_is_only_read():
    sch = Schedule(from_source(TWO_NAMES.replace("match_buffer(B", "match_buffer(A").replace(
        "V[{read}] + 1", "V[v] + A[v]").format(view="vk:vk + 4")))
    sch.parallel(sch.get_loops(sch.get_block("c"))[0])


PRODUCER = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4, 4), "int32")):
    M = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("p"):
            v = T.axis.spatial(4, i)
            M[v] = A[v] * 2
    for i in range(4):
        with T.block("c"):
            v = T.axis.spatial(4, i)
"""


def test_a_producer_of_places():
    """An element names the place to which its consumer stores."""
    sch = Schedule(from_source(PRODUCER + """
            B[v, M[v] % 4] = A[v]
"""))
    arrays = [np.array([3, 1, 2, 5], "int32"), np.zeros((4, 4), "int32")]
    want, got = ([a.copy() for a in arrays] for _ in range(2))
    interpret(sch.mod["main"], *want)
    sch.reverse_compute_inline("c")
    interpret(sch.mod["main"], *got)
    np.testing.assert_array_equal(want[1], got[1])
    assert not sch.get(sch.get_block("root")).alloc_buffers


def test_a_producer_of_conditions_stays_before():
    sch = Schedule(from_source(PRODUCER + """
            T.where(M[i] > 2)
            B[v, 0] = M[v]
"""))
    with pytest.raises(ScheduleError, match="conditions_stay"):
        sch.reverse_compute_inline("c")


def test_loops_on_one_axis_that_share_their_work():
    """All threads fetch together what each of them uses."""
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4, 4), "float32")):
    S = T.alloc_buffer((4,), scope="shared")
    for i in range(4):
        for j in range(4):
            with T.block("fetch"):
                vj = T.axis.spatial(4, j)
                S[vj] = A[vj]
        for j in range(4):
            with T.block("use"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = S[vj]
"""))
    (i, j), _ = sch.get_loops(sch.get_block("fetch")), sch.get_loops(sch.get_block("use"))
    sch.bind(i, "threadIdx.x")
    sch.bind(j, "threadIdx.x")


def test_a_copy_outside_names_no_memory_of_the_inside():
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4, 2), "float32")):
    for i in range(4):
        with T.block("o"):
            v = T.axis.spatial(4, i)
            for j in range(2):
                with T.block("m"):
                    w = T.axis.spatial(2, j)
                    M = T.alloc_buffer((1,), "int32")
                    with T.block("s"):
                        M[0] = 1
                    with T.block("t"):
                        B[v, M[0] % 2] = A[v]
"""))
    for act in (lambda: sch.reindex_cache_write("o", 0, "global", lambda i: (i,)),
                lambda: sch.reindex("o", ("write", 0))):
        with pytest.raises(ScheduleError, match="index_is_known_outside"):
            act()


def test_memory_as_large_as_an_iterator_says():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for i, k in T.grid(4, 1):
        with T.block("o"):
            v, u = T.axis.remap("SS", [i, k])
            T.reads(A[v, 0:4])
            T.writes(B[v, 0:4])
            M = T.alloc_buffer((v + 1,))
            for j in range(v + 1):
                with T.block("s"):
                    w = T.axis.spatial(v + 1, j)
                    M[w] = A[v, w]
            for j in range(v + 1):
                with T.block("t"):
                    w = T.axis.spatial(v + 1, j)
                    B[v, w] = M[w]
""")
    sch = Schedule(func)
    sch.transform_block_layout("o", lambda i, k: (i, k))
    A = np.arange(16, dtype="float32").reshape(4, 4)
    want, got = np.zeros((4, 4), "float32"), np.zeros((4, 4), "float32")
    interpret(func, A, want)
    interpret(sch.mod["main"], A, got)
    np.testing.assert_array_equal(got, want)


def test_the_strides_of_a_view_of_a_view():
    sch = Schedule(from_source("""
@T.prim_func
def main(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32")):
    C = T.alloc_buffer((3,))
    for i in range(3):
        with T.block("c"):
            v = T.axis.spatial(3, i)
            C[v] = A[v]
    with T.block("o"):
        u = T.axis.spatial(1, 0)
        T.reads(C[0:3])
        T.writes(B[0:3])
        V = T.match_buffer(C[0:3], (3,), offset_factor=1)
        with T.block("m"):
            w = T.axis.spatial(1, 0)
            T.reads(V[0:3])
            T.writes(B[0:3])
            W = T.match_buffer(V[0:3], (3,), strides=[1], offset_factor=1)
            for i in range(3):
                with T.block("b"):
                    v = T.axis.spatial(3, i)
                    B[v] = W[v]
"""))
    with pytest.raises(ScheduleError, match="views_have_their_strides"):
        sch.storage_align("c", 0, axis=0, factor=4, offset=0)
    sch.storage_align("c", 0, axis=0, factor=1, offset=0)
    lower(sch.mod)
