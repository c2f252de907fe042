"""compute_at and reverse_compute_at keep what a block computes and what others read."""

import numpy as np
import pytest

from mlc_lab.build import build
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source, tir as T

from .common import kept, refused
from .test_inlining import elsewhere, overwritten


def at(block, other, level=0):
    return lambda sch: sch.compute_at(block, sch.get_loops(other)[level])


def reverse_at(block, other, level=0):
    return lambda sch: sch.reverse_compute_at(block, sch.get_loops(other)[level])


def test_inputs_must_not_change_before_the_new_place():
    error = refused(overwritten, at("C", "B"))
    assert error.rule == "nothing_is_passed" and "U writes X[0]" in error.conflict
    kept(elsewhere, at("C", "B"))


def test_an_input_that_is_used_again_in_every_iteration():
    @T.prim_func
    def reused(A: T.Buffer((8,), "float32"), B: T.Buffer((8, 4), "float32"),
               D: T.Buffer((8,), "float32")):
        X = T.alloc_buffer((1,))
        C = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("X"):
                v = T.axis.spatial(8, i)
                X[0] = A[v] * T.float32(3)
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = X[0] + T.float32(1)
            for j in range(4):
                with T.block("B"):
                    v, vj = T.axis.remap("SS", [i, j])
                    B[v, vj] = C[v]
        for i in range(8):
            with T.block("D"):
                v = T.axis.spatial(8, i)
                D[v] = A[v]

    kept(reused, at("C", "B", 1))  # X is written again only after that


def test_an_input_that_the_next_iteration_overwrites():
    @T.prim_func
    def reused(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        X = T.alloc_buffer((1,))
        C = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("X"):
                v = T.axis.spatial(8, i)
                X[0] = A[v] * T.float32(3)
            with T.block("C"):
                v = T.axis.spatial(8, i)
                C[v] = X[0] + T.float32(1)
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = C[v]

    refused(reused, at("C", "B"))


def test_parts_that_are_computed_twice_are_no_reason_to_refuse():
    @T.prim_func
    def pipeline(A: T.Buffer((12,), "float32"), D: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((12,))
        C = T.alloc_buffer((10,))
        for i in range(12):
            with T.block("B"):
                v = T.axis.spatial(12, i)
                B[v] = A[v] + T.float32(1)
        for i in range(10):
            with T.block("C"):
                v = T.axis.spatial(10, i)
                C[v] = B[v] + B[v + 2]
        for i in range(8):
            with T.block("D"):
                v = T.axis.spatial(8, i)
                D[v] = C[v] + C[v + 2]

    def steps(sch):
        sch.compute_at("B", sch.get_loops("C")[0])
        sch.compute_at("C", sch.get_loops("D")[0])

    kept(pipeline, steps)


def test_a_consumer_does_not_pass_who_reads_what_it_overwrites():
    @T.prim_func
    def update(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32"),
               E: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("B"):
                v = T.axis.spatial(8, i)
                B[v] = A[v] * T.float32(2)
        for i in range(8):
            with T.block("E"):
                v = T.axis.spatial(8, i)
                E[v] = D[v] + T.float32(1)
        for i in range(8):
            with T.block("D"):
                v = T.axis.spatial(8, i)
                D[v] = B[v]

    error = refused(update, reverse_at("D", "B"))
    assert error.rule == "nothing_is_passed"
    assert error.conflict == "i = 0: D writes D[0]; i = 0: E reads it"
    kept(update, at("B", "D"))


def test_a_reduction_that_takes_its_values_backwards():
    @T.prim_func
    def backwards(A: T.Buffer((5,), "float32"), B: T.Buffer((1,), "float32")):
        C = T.alloc_buffer((5,))
        for i in range(5):
            with T.block("C"):
                v = T.axis.spatial(5, i)
                C[v] = A[v] + T.float32(1)
        for r in range(5):
            with T.block("B"):
                v = T.axis.spatial(1, 0)
                vr = T.axis.reduce(5, r)
                with T.init():
                    B[v] = T.float32(0)
                B[v] = B[v] + C[4 - vr]

    assert refused(backwards, reverse_at("B", "C")).rule == "reduction_is_whole"
    kept(backwards, at("C", "B"))


def test_a_reduction_may_come_to_its_values_one_after_the_other():
    @T.prim_func
    def forwards(A: T.Buffer((4, 5), "float32"), B: T.Buffer((4,), "float32")):
        C = T.alloc_buffer((4, 5))
        for i, j in T.grid(4, 5):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + T.float32(1)
        for i, r in T.grid(4, 5):
            with T.block("B"):
                v, vr = T.axis.remap("SR", [i, r])
                with T.init():
                    B[v] = T.float32(0)
                B[v] = B[v] + C[v, vr]

    kept(forwards, reverse_at("B", "C", 0))
    kept(forwards, reverse_at("B", "C", 1))


def reduction(loops, v, vk, init, update):
    """A reduction Y whose result Z copies."""
    return from_source(f"""
@T.prim_func
def main(A: T.Buffer((4, 5), "float32"), Z: T.Buffer((4,), "float32")):
    Y = T.alloc_buffer((4,))
    for {loops}:
        with T.block("Y"):
            v = T.axis.spatial(4, {v})
            vk = T.axis.reduce(5, {vk})
            with T.init():
                {init}
            {update}
    for i in range(4):
        with T.block("Z"):
            v = T.axis.spatial(4, i)
            Z[v] = Y[v]
""")


SUM = "Y[v] = T.float32(0)", "Y[v] = Y[v] + A[v, vk]"
HORNER = "Y[v] = T.float32(1)", "Y[v] = Y[v] * T.float32(2) + A[v, vk]"


@pytest.mark.parametrize("parts, loops, v, vk, legal", [
    (SUM, "i, k in T.grid(4, 5)", "i", "k", True),
    (SUM, "k, i in T.grid(5, 4)", "i", "k", True),
    (HORNER, "k, i in T.grid(5, 4)", "i", "k", True),
    (SUM, "r, i, k in T.grid(2, 4, 5)", "i", "k", True),
    (SUM, "f in range(20)", "f % 4", "f // 4", True),
    # twice the same values, the init last, an order that changes what comes out
    (SUM, "i, k, r in T.grid(4, 5, 2)", "i", "k", False),
    (SUM, "i, k in T.grid(4, 5)", "i", "4 - k", False),
    (HORNER, "i, k in T.grid(4, 5)", "i", "4 - k", False),
    (SUM, "i, k in T.grid(4, 3)", "i", "k", False),
    (("Y[3 - v] = T.float32(0)", SUM[1]), "k, i in T.grid(5, 4)", "i", "k", False)])
def test_a_reduction_that_moves_has_combined_each_value_once(parts, loops, v, vk, legal):
    (kept if legal else refused)(reduction(loops, v, vk, *parts), at("Y", "Z"))


def test_a_block_whose_iterations_write_one_element():
    @T.prim_func
    def last_wins(A: T.Buffer((4, 5), "float32"), Z: T.Buffer((9,), "float32")):
        Y = T.alloc_buffer((9,))
        for j, i in T.grid(5, 4):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi + vj] = A[vi, vj]
        for i in range(8):
            with T.block("Z"):
                v = T.axis.spatial(8, i)
                Z[v] = Y[v]

    refused(last_wins, at("Y", "Z"))


def test_who_reads_the_result_of_the_iteration_before():
    @T.prim_func
    def carried(A: T.Buffer((8,), "float32"), Z: T.Buffer((8,), "float32"),
                W: T.Buffer((8,), "float32")):
        Y = T.alloc_buffer((8,))
        for i in range(1):
            with T.block("first"):
                v = T.axis.spatial(8, i)
                Y[v] = T.float32(0)
        for i in range(7):
            with T.block("W"):
                v = T.axis.spatial(8, i)
                W[v] = Y[v]
            with T.block("Y"):
                v = T.axis.spatial(8, i + 1)
                Y[v] = A[v]
        for i in range(8):
            with T.block("Z"):
                v = T.axis.spatial(8, i)
                Z[v] = Y[v]

    refused(carried, at("Y", "Z"))


def test_a_block_stays_under_its_condition():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), n: T.int32, Z: T.Buffer((8,), "float32")):
    Y = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("Y"):
            v = T.axis.spatial(8, i)
            Y[v] = A[v]
    if n > 3:
        for i in range(8):
            with T.block("Z"):
                v = T.axis.spatial(8, i)
                Z[v] = Y[v]
""")
    assert refused(func, reverse_at("Z", "Y")).rule == "conditions_stay"


def test_a_statement_outside_of_blocks_is_not_passed():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), Z: T.Buffer((8,), "float32")):
    Y = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("Y"):
            v = T.axis.spatial(8, i)
            Y[v] = A[v]
    for i in range(8):
        A[i] = T.float32(7)
    for i in range(8):
        with T.block("Z"):
            v = T.axis.spatial(8, i)
            Z[v] = Y[v]
""")
    refused(func, at("Y", "Z"))
    refused(func, lambda sch: sch.compute_inline("Y"))
    kept(func, reverse_at("Z", "Y"))


def test_a_producer_over_a_symbolic_size_gets_loops_of_that_size():
    func = from_source("""
@T.prim_func
def main(a: T.handle, z: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    Z = T.match_buffer(z, (n,))
    Y = T.alloc_buffer((n,))
    for i in range(n):
        with T.block("Y"):
            v = T.axis.spatial(n, i)
            Y[v] = A[v]
    for i in range(n):
        with T.block("Z"):
            v = T.axis.spatial(n, i)
            Z[v] = Y[v] + Y[n - 1 - v]
""")
    sch = Schedule(func)
    sch.compute_at("Y", sch.get_loops("Z")[0])
    assert "2147483647" not in sch.mod.script()


def test_loops_that_grow_with_a_loop_up_to_a_symbolic_size_have_no_longest():
    """Not what an int32 can hold: there a loop ran two thousand million times."""
    func = from_source("""
@T.prim_func
def main(a: T.handle, z: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    Z = T.match_buffer(z, (n,))
    Y = T.alloc_buffer((n,))
    for i in range(n):
        with T.block("Y"):
            v = T.axis.spatial(n, i)
            Y[v] = A[v]
    for i in range(n):
        with T.block("Z"):
            v = T.axis.spatial(n, i)
            Z[v] = Y[v] + Y[0]
""")
    sch = Schedule(func)
    sch.compute_at("Y", sch.get_loops("Z")[0])
    assert "2147483647" not in sch.mod.script() and "range(i + 1)" in sch.mod.script()
    run = build(sch.mod)
    for n in (1, 5):
        a, z = np.arange(1, n + 1, dtype="float32"), np.zeros(n, "float32")
        run(a, z)
        assert np.array_equal(z, a + 1)


def test_a_declared_region_that_grows_with_a_loop_inside():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), Z: T.Buffer((8,), "float32")):
    Y = T.alloc_buffer((8, 8))
    for i, j in T.grid(8, 8):
        with T.block("Y"):
            v, w = T.axis.remap("SS", [i, j])
            Y[v, w] = A[v, w]
    for i, j in T.grid(8, 8):
        with T.block("Z"):
            v, w = T.axis.remap("SR", [i, j])
            T.reads(Y[v, 0:w + 1])
            T.writes(Z[v])
            with T.init():
                Z[v] = T.float32(0)
            Z[v] = Z[v] + Y[v, w]
""")
    kept(func, at("Y", "Z"))


@pytest.mark.parametrize("index", ["v % n", "T.min(v, n - 1)"])
def test_what_is_read_without_a_known_bound_is_read_up_to_the_buffers_own(index):
    text = """
@T.prim_func
def main(a: T.handle, Z: T.Buffer((4,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n, 4))
    Y = T.alloc_buffer((n, 4))
    for i, j in T.grid(COUNT, 4):
        with T.block("Y"):
            v, w = T.axis.remap("SS", [i, j])
            Y[v, w] = A[v, w]
    for i in range(4):
        with T.block("Z"):
            v = T.axis.spatial(4, i)
            Z[v] = Y[INDEX, v]
""".replace("INDEX", index)
    refused(from_source(text.replace("COUNT", "T.min(n, 2)")), at("Y", "Z"))
    sch = Schedule(from_source(text.replace("COUNT", "n")))
    sch.compute_at("Y", sch.get_loops("Z")[0])


TRIANGLES = """
@T.prim_func
def main(A: T.Buffer((12, 12), "float32"), C: T.Buffer((12, 12), "float32")):
    B = T.alloc_buffer((12, 12))
    for i in range(12):
        for j in range({written}):
            with T.block("B"):
                {axes}
                B[vi, vj] = A[vi, vj] * T.float32(2)
    for i in range(12):
        for j in range({read}):
            with T.block("C"):
                {axes}
                C[vi, vj] = B[vi, vj] + T.float32(1)
"""
AXES = {"remap": 'vi, vj = T.axis.remap("SS", [i, j])',
        "spatial": "vi = T.axis.spatial(12, i); vj = T.axis.spatial(12, j)"}


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("move", [at("B", "C"), at("B", "C", 1), reverse_at("C", "B"),
                                  reverse_at("C", "B", 1)])
def test_triangular_stages_move_into_each_other(axes, move):
    kept(from_source(TRIANGLES.format(written="i + 1", read="i + 1", axes=AXES[axes])), move)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_triangle_moves_into_tiles(level):
    def act(sch):
        i, j = sch.get_loops("C")
        sch.split(i, factors=[None, 4])
        sch.compute_at("B", sch.get_loops("C")[level])

    kept(from_source(TRIANGLES.format(written="i + 1", read="i + 1", axes=AXES["remap"])), act)


def test_what_a_triangle_leaves_out_is_not_read_where_it_was_not_written():
    wider = from_source(TRIANGLES.format(written="i + 1", read="i + 2 - i // 11",
                                         axes=AXES["spatial"]))
    assert refused(wider, at("B", "C")).rule == "stage_pipeline"
    kept(from_source(TRIANGLES.format(written="12", read="i + 1", axes=AXES["remap"])),
         at("B", "C"))


def partial_sums(shared):
    """A reduction over a loop (of `shared` turns) in which its sums are read before they are
    complete."""
    return from_source(f'''
@T.prim_func
def main(A: T.Buffer((5, 4), "float32"), C: T.Buffer((3, 3), "float32")):
    S = T.alloc_buffer((5,))
    for k in range({shared}):
        for i in range(5):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + A[vi, vk]
        for j in range(3):
            with T.block("C"):
                vk = T.axis.spatial(3, k)
                vj = T.axis.spatial(3, j)
                C[vk, vj] = S[vj] + S[vj + 2]
''')  # fmt: skip


def test_sums_that_are_read_before_they_are_complete_are_not_computed_at_once():
    error = refused(partial_sums(3), at("S", "C", 1))
    assert error.rule == "what_is_read_is_final" and "k = 1, i = 0: S writes it" in error.conflict
    kept(partial_sums(1), at("S", "C", 1))  # of one turn, they are complete


def test_what_is_computed_of_sums_that_are_not_complete_is_not_computed_once():
    """A copy of the sums is written anew in each turn: only the last turn's is of all of them."""
    def made(turns):
        return from_source(f'''
@T.prim_func
def main(A: T.Buffer((3, 4), "float32"), O: T.Buffer((3,), "float32")):
    S = T.alloc_buffer((4,), "float32")
    C = T.alloc_buffer((4,), "float32")
    D = T.alloc_buffer((3,), "float32")
    for k in range({turns}):
        for i in range(4):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + A[vk, vi]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = S[vi]
        for i in range(3):
            with T.block("D"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    D[vi] = T.float32(0)
                D[vi] = D[vi] + C[vi + vk]
    for i in range(3):
        with T.block("O"):
            vi = T.axis.spatial(3, i)
            O[vi] = D[vi]
''')  # fmt: skip

    error = refused(made(2), at("D", "O", 0))
    assert error.rule == "nothing_is_passed" and "C writes it" in error.conflict
    kept(made(1), at("D", "O", 0))


def test_sums_of_a_loop_that_was_split_are_read_before_they_are_complete():
    def split(sch):
        sch.split(sch.get_loops("S")[0], [2, 2])
        at("S", "C", 2)(sch)

    assert refused(partial_sums(3), split).rule == "what_is_read_is_final"


def test_whole_sums_of_each_turn_move_to_who_reads_them():
    @T.prim_func
    def rows(A: T.Buffer((6, 4), "float32"), C: T.Buffer((6, 3), "float32")):
        S = T.alloc_buffer((6,))
        for i in range(6):
            for k in range(4):
                with T.block("S"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        S[vi] = T.float32(0)
                    S[vi] = S[vi] + A[vi, vk]
            for j in range(3):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = S[vi] * T.float32(2)

    kept(rows, at("S", "C", 1))


def test_a_consumer_keeps_its_condition_where_it_is_moved():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((10, 13), "float32")):
    B = T.alloc_buffer((16, 16))
    for i_0, i_1, j in T.grid(4, 4, 16):
        with T.block("B"):
            vi = T.axis.spatial(16, i_0 * 4 + i_1)
            vj = T.axis.spatial(16, j)
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 16):
        with T.block("C"):
            T.where(i < 10 and j < 13)
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
""")
    sch = kept(func, lambda s: s.reverse_compute_at("C", s.get_loops("B")[0]))
    predicate = sch.state.realize_of(sch.get_sref(sch.get_block("C"))).predicate
    assert str(predicate) == "i_0 * 4 + ax0 < 10 and ax1 < 13"
