"""decompose_reduction: the init runs before the loops only where nobody can tell."""

import pytest

from mlc_lab.script import from_source

from .common import kept, refused


def reduction(loops, bind, init="B[v] = T.float32(0)", where="", more=""):
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 5), "float32"), B: T.Buffer((4,), "float32"),
         C: T.Buffer((4,), "float32")):
    for {loops}:
        with T.block("B"):
            {bind}
            {where}
            with T.init():
                {init}
            B[v] = B[v] + A[v, vk]
        {more}
""")


def bound(v, vk):
    return f"v = T.axis.spatial(4, {v})\n            vk = T.axis.reduce(5, {vk})"


PLAIN = 'v, vk = T.axis.remap("SR", [i, k])'
BACK = bound("i", "4 - k")


@pytest.mark.parametrize("loops, bind, where, legal", [
    ("i, k in T.grid(4, 5)", PLAIN, "", [True, True]),
    ("k, i in T.grid(5, 4)", PLAIN, "", [True, False]),
    # each iteration of r starts anew, or adds the same again
    ("r, i, k in T.grid(2, 4, 5)", PLAIN, "", [False, True, True]),
    ("i, r, k in T.grid(4, 2, 5)", PLAIN, "", [False, False, True]),
    ("i, k, r in T.grid(4, 5, 2)", PLAIN, "", [False, False, False]),
    ("i, k in T.grid(4, 5)", BACK, "", [False, False]),
    # rows that nothing is added to are not set either: the init has a condition
    ("i, k in T.grid(4, 5)", PLAIN, "T.where(k < i)", [True, True]),
    ("i, k in T.grid(4, 5)", PLAIN, "T.where(k < i + 1)", [True, True]),
    ("i, k in T.grid(4, 5)", PLAIN, "T.where(i < 3)", [True, True]),
    ("i, k in T.grid(4, 3)", bound("i", "k + 1"), "", [False, False]),
    ("f in range(20)", bound("f // 5", "f % 5"), "", [True]),
    ("f in range(20)", bound("f % 4", "f // 4"), "", [True])])
def test_the_init_goes_first_where_it_was_the_first(loops, bind, where, legal):
    for level, good in enumerate(legal):
        (kept if good else refused)(
            reduction(loops, bind, where=where),
            lambda sch, n=level: sch.decompose_reduction("B", sch.get_loops("B")[n]))


@pytest.mark.parametrize("loop, vk, legal", [
    ("range(k, k + 1)", "k // 4", False),  # the init runs for each value of k
    ("range(4 - k)", "k", True), ("range(T.min(4, k + 4))", "k", True)])
def test_which_elements_are_met_depends_on_the_loop_of_the_reduction(loop, vk, legal):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 5), "float32"), B: T.Buffer((4,), "float32")):
    for k in range(4):
        for i in {loop}:
            with T.block("B"):
                v = T.axis.spatial(4, i)
                vk = T.axis.reduce(4, {vk})
                with T.init():
                    B[v] = T.float32(0)
                B[v] = B[v] + A[v, vk]
""")
    for act in (lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[0]),
                lambda sch: sch.blockize(sch.get_loops("B")[0])):
        (kept if legal else refused)(func, act)


def test_the_two_iterations_of_a_refusal_name_the_init():
    error = refused(reduction("r, i, k in T.grid(2, 4, 5)", PLAIN),
                    lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[0]))
    assert error.rule == "init_runs_once"
    assert error.conflict == ("r = 0, i = 0, k = 0: B reads B[0]; "
                              "r = 1, i = 0, k = 0: the init of B writes it")


def test_who_reads_the_sums_of_the_round_before_must_still_see_them():
    reader = """with T.block("C"):
            u = T.axis.spatial(4, i)
            C[u] = C[u] + B[3 - u]"""
    func = reduction("k, i in T.grid(5, 4)", PLAIN, more=reader)
    refused(func, lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[0]))


def test_the_init_may_use_the_start_of_a_reduction_iterator():
    func = reduction("i, k in T.grid(4, 5)", PLAIN, "B[v] = T.Cast('float32', vk + 2)")
    kept(func, lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[1]))


@pytest.mark.parametrize("extent", ["T.min(k + 1, 1)", "T.max(1 - k, 1)", "k % 2 + 1", "2 - k % 2"])
def test_bounds_that_depend_on_the_reduction(extent):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for i, k in T.grid(4, 4):
        for j in range({extent}):
            with T.block("B"):
                vi, vj = T.axis.spatial(4, i), T.axis.spatial(4, j)
                vk = T.axis.reduce(4, k)
                with T.init():
                    B[vi, vj] = T.float32(0)
                B[vi, vj] += A[vi, vk]
""")
    sch = kept(func, lambda sch: sch.decompose_reduction("B", sch.get_loops("B")[1]))
    from_source(sch.mod.script())
