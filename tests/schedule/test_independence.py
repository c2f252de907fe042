"""Which iterations may change places or run at the same time, whatever blocks say of themselves."""

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.lower import lower
from mlc_lab.schedule import Schedule, ScheduleError, independence
from mlc_lab.schedule.independence import clash_between_iterations, labels_are_true
from mlc_lab.script import from_source, tir as T

from .common import check, random_arguments, row_sum


@T.prim_func
def sweep(A: T.Buffer((8, 9), "float32")):
    for i, j in T.grid(7, 7):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj] = A[vi, vj + 1] + A[vi, vj]


@T.prim_func
def forward(A: T.Buffer((8, 9), "float32")):
    for i, j in T.grid(7, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(A[vi + 1, vj + 1])
            A[vi + 1, vj + 1] = A[vi, vj + 1] + A[vi + 1, vj]


@T.prim_func
def horner(A: T.Buffer((4, 16), "float32"), C: T.Buffer((4,), "float32")):
    for i, k0, k1 in T.grid(4, 4, 4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(16, k0 * 4 + k1)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] * T.float32(0.5) + A[vi, vk]


@T.prim_func
def repeated(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, r, k in T.grid(4, 3, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def halo(A: T.Buffer((18, 18), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((18, 18))
    for i, j in T.grid(4, 4):
        for x, y in T.grid(6, 6):
            with T.block("B"):
                vi = T.axis.spatial(18, i * 4 + x)
                vj = T.axis.spatial(18, j * 4 + y)
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for x, y in T.grid(4, 4):
            with T.block("C"):
                vi = T.axis.spatial(16, i * 4 + x)
                vj = T.axis.spatial(16, j * 4 + y)
                C[vi, vj] = B[vi, vj] + B[vi + 2, vj + 2]


@T.prim_func
def carried(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((17,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi + 1] = A[vi]
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = T.if_then_else(vi > 0, B[vi], T.float32(0))


@T.prim_func
def histogram(I: T.Buffer((16, 4), "int32"), H: T.Buffer((5,), "int32")):
    for i, j in T.grid(16, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            H[I[vi, vj]] = H[I[vi, vj]] + 1


@T.prim_func
def gather(I: T.Buffer((16,), "int32"), A: T.Buffer((5, 4), "float32"),
           C: T.Buffer((5, 4), "float32")):
    for i, j in T.grid(16, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[I[vi], vj] = A[I[vi], vj] + T.float32(vi)


def permuted(func, *order):
    sch = Schedule(func)
    loops = sch.get_loops("B")
    sch.reorder(*(loops[i] for i in order))
    return sch


@pytest.mark.parametrize("func, order", [
    (forward, (1, 0)), (horner, (1, 0, 2)), (horner, (1, 2, 0)), (repeated, (1, 2, 0)),
    (repeated, (1, 0, 2)), (halo, (1, 0)), (histogram, (1, 0)), (gather, (1, 0))])
def test_loops_are_reordered_where_no_two_iterations_that_clash_change_places(func, order):
    check(permuted(func, *order), Schedule(func).mod)


@pytest.mark.parametrize("func, order, rule", [
    (sweep, (1, 0), "dependences_keep_their_order"),
    (horner, (0, 2, 1), "dependences_keep_their_order"),
    (repeated, (0, 2, 1), "init_runs_first")])
def test_an_order_that_changes_the_result_is_refused(func, order, rule):
    with pytest.raises(ScheduleError) as caught:
        permuted(func, *order)
    assert caught.value.rule == rule
    first, _, second = caught.value.conflict.partition("; ")
    assert first and second and first != second
    assert first.partition(": ")[0] != second.partition(": ")[0]


@pytest.mark.parametrize("func, expected", [
    (sweep, "10"), (forward, "11"), (horner, "011"), (repeated, "011"), (halo, "00"),
    (carried, "1"), (histogram, "11"), (gather, "10")])
def test_iterations_run_at_the_same_time_where_none_clash(func, expected):
    sch = Schedule(func)
    loops = [sch.get(rv) for rv in sch.get_loops("B")]
    srefs = [sch.state.get_sref(loop) for loop in loops]
    found = [clash_between_iterations(sch.state, s) is not None for s in srefs[:len(expected)]]
    assert found == [c == "1" for c in expected]


@pytest.mark.parametrize("kind", ["parallel", "vectorize"])
@pytest.mark.parametrize("func", [sweep, carried, repeated])
def test_a_loop_whose_iterations_depend_on_each_other_stays_serial(func, kind):
    sch = Schedule(func)
    before = sch.mod
    with pytest.raises(ScheduleError) as caught:
        getattr(sch, kind)(sch.get_loops("B")[1 if func is repeated else 0])
    first, _, second = caught.value.conflict.partition("; ")
    assert first.partition(": ")[0] != second.partition(": ")[0] and second
    assert sch.mod is before


def test_a_loop_over_a_block_that_was_taken_apart_is_refused_with_the_advice_to_come_earlier():
    sch = Schedule(row_sum)
    i, k = sch.get_loops("B")
    sch.decompose_reduction("B", k)
    with pytest.raises(ScheduleError, match="before sch.decompose_reduction") as caught:
        sch.parallel(i)
    assert caught.value.conflict == ""
    with pytest.raises(ScheduleError) as caught:
        sch.parallel(k)
    assert caught.value.conflict.startswith("i = 0, k = 0: B_update")


def test_labels_are_judged_by_the_body():
    for func, expected in ((sweep, False), (forward, False), (horner, False), (repeated, True),
                           (halo, True), (histogram, False), (gather, False)):
        sch = Schedule(func)
        block = sch.state.get_sref(sch.get(sch.get_block("B")))
        assert labels_are_true(sch.state, block) is expected


def test_memory_that_each_iteration_fills_itself_may_be_filled_by_several():
    sch = Schedule(halo)
    i, j = sch.get_loops("C")[:2]
    sch.parallel(i)
    check(sch, Schedule(halo).mod)
    args = random_arguments(halo)
    interpret(halo, *args)
    np.testing.assert_allclose(args[1], 2 * (args[0][:-2, :-2] + args[0][2:, 2:]), rtol=1e-5)


@pytest.mark.parametrize("kind", ["spatial", "reduce"])
@pytest.mark.parametrize("at", ["vi, vj, vk", "vi, vj, 0", "vj, vi, 0", "vi, vi, 0",
                                "vi + vj, vj, 0", "vi, vj, vk // 2", "vi * 4 + vj, 0, 0",
                                "vj + vi * 5, 0, vk", "vi * 3 + vj, 0, 0", "vi * 2 + vj, vi, 0",
                                "vi * 4 + vj, vi, 0", "vj * 4 + vk, vi, 0", "vi * -4 + vj, 0, 0"])
def test_what_is_seen_of_labels_at_a_glance_is_what_the_solver_finds(kind, at, monkeypatch):
    seen = set()
    for value in ("C[{}] + A[vk]", "A[vk] - C[{}]", "C[{}] - A[vk]", "C[{}] + C[{}]", "A[vk]",
                  "C[vj, vi, 0] + A[vk]", "T.max(C[{}], A[vk])", "C[{}] * A[vk] + A[vk]"):
        func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((20, 4, 4), "float32")):
    for i, j, k in T.grid(4, 4, 4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vj = T.axis.spatial(4, j)
            vk = T.axis.{kind}(4, k)
            C[{at}] = {value.replace("{}", at)}
""")
        sch = Schedule(func)
        block = sch.get(sch.get_block("B"))
        for within in (False, True):
            glance = independence._check_labels(block, within)
            with monkeypatch.context() as patch:
                patch.setattr(independence, "_plainly_labelled", lambda *_: False)
                assert independence._check_labels(block, within) == glance, (value, within)
            seen.add(glance)
    assert seen <= {"", "spatial", "reduce"} and (at != "vi, vi, 0" or seen == {"spatial"})


@pytest.mark.parametrize("second, bound, expected", [
    ("j", "", ""), ("j + 1", "", "spatial"), ("j + 1", "T.where(j < 3)", ""),
    ("j * 2", "", "spatial"), ("3 - j", "", "")])
def test_domains_count_where_bindings_stay_within(second, bound, expected):
    sch = Schedule(from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vj = T.axis.spatial(4, {second})
            {bound}
            A[vi * 4 + vj] = A[vi * 4 + vj] + T.float32(1)
"""))
    block = sch.state.get_sref(sch.get(sch.get_block("B")))
    assert independence.why_labels_are_false(sch.state, block) == expected


#: a copy that each iteration fills and sums into before it is read
STAGED = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), O: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4,))
    for i in range(4):
        with T.block("S"):
            v = T.axis.spatial(4, i)
            T.reads(A[v])
            T.writes(B[0:4])
            for j in range(4):
                with T.block("first"):
                    w = T.axis.spatial(4, j)
                    B[w] = T.float32(0)
            for j in range(4):
                with T.block("then"):
                    w = T.axis.spatial(4, j)
                    B[w] = B[w] + A[v]
        with T.block("O"):
            v = T.axis.spatial(4, i)
            O[v] = B[v]
"""


@pytest.mark.parametrize("scope", ["global", "local", "shared", "shared.dyn", "warp"])
@pytest.mark.parametrize("order", ["scope first", "vectorize first"])
def test_lanes_have_the_memory_of_threads_together(scope, order):
    """Lowering gives each lane its own copy of other memory, and of this one to none."""
    sch = Schedule(from_source(STAGED))
    steps = [lambda: sch.set_scope("S", 0, scope), lambda: sch.vectorize(sch.get_loops("S")[0])]
    if order == "vectorize first":
        steps.reverse()
    if scope in ("global", "local"):
        for step in steps:
            step()
        a, out = np.arange(4, dtype="float32"), np.zeros(4, "float32")
        interpret(lower(sch.mod), a, out)
        assert out.tolist() == a.tolist()
    else:
        steps[0]()
        with pytest.raises(ScheduleError, match="clash|same element|at the same time"):
            steps[1]()
