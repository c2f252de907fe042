"""unblockize: what a block holds takes its place, under the loops around it."""

import numpy as np
import pytest

import mlc_lab
from mlc_lab import te, topi
from mlc_lab.backend.interp import interpret
from mlc_lab.schedule import Schedule, ScheduleError
from mlc_lab.script import tir as T

from .common import check
from .test_cache_read import start


@T.prim_func
def rows(A: T.Buffer((12, 7), "float32"), N: T.Buffer((6,), "int32"),
         B: T.Buffer((12,), "float32")):
    for i_0 in range(6):
        with T.block("B_o"):
            vi_o = T.axis.spatial(6, i_0)
            for i_1 in range(2):
                with T.block("B"):
                    vi_i = T.axis.spatial(2, i_1)
                    with T.block("B_init"):
                        vi = T.axis.spatial((vi_o * 2 + vi_i, vi_o * 2 + vi_i + 1), vi_o * 2 + vi_i)
                        B[vi] = T.float32(0)
                    for k in range(N[vi_o]):
                        with T.block("B_update"):
                            vi = T.axis.spatial(12, vi_o * 2 + vi_i)
                            vk = T.axis.reduce(7, k)
                            B[vi] = B[vi] + A[vi, vk]


def runs_alike(func, mod, *arrays, written):
    """Whether a program and its schedule give the same, interpreted and compiled."""
    results = []
    for compiled in (False, True):
        for program in (func, mod):
            given = [*map(np.copy, arrays), np.full(written, 3, "float32")]
            if compiled:
                mlc_lab.build(program, target="llvm")(*given)
            else:
                interpret(program, *given)
            results.append(given[-1])
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-5, atol=1e-6)


def test_each_statement_gets_loops_of_its_own_and_the_last_keeps_those_there_were():
    sch = Schedule(rows)
    block, init, update = (sch.get_block(n) for n in ("B", "B_init", "B_update"))
    loop = sch.get_loops(block)[0]
    sch.unblockize(block)
    assert sch.get(sch.get_loops(update)[0]) is sch.get(loop)
    assert sch.get(sch.get_loops(init)[0]) is not sch.get(loop)
    assert [str(iv.dom.extent) for iv in sch.get(init).iter_vars] == ["2"]
    k = sch.get_loops(update)[1]
    sch.reorder(k, loop)
    sch.vectorize(loop)
    lengths = np.array([0, 7, 3, 1, 0, 2], "int32")
    table = np.random.rand(12, 7).astype("float32")
    runs_alike(rows, sch.mod, table, lengths, written=12)
    again = Schedule(rows)
    again.apply_trace(sch.trace)
    assert again.mod.script() == sch.mod.script()


def test_a_block_of_one_iteration_goes_too():
    sch, before = start(rows)
    block = sch.get_block("B")
    loop = sch.get_loops(block)[0]
    one = sch.blockize(sch.split(loop, factors=[None, 1])[1])
    sch.unblockize(block)
    sch.unblockize(one)
    assert "B_o" in sch.mod.script() and '"B"' not in sch.mod.script()
    lengths = np.array([2, 0, 7, 5, 1, 1], "int32")
    runs_alike(rows, sch.mod, np.random.rand(12, 7).astype("float32"), lengths, written=12)


def test_a_plain_tile_is_what_it_was():
    @T.prim_func
    def plain(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] * T.float32(2)

    sch, before = start(plain)
    block = sch.get_block("B")
    inner = sch.split(sch.get_loops(block)[0], factors=[None, 4])[1]
    sch.blockize(inner)
    whole = sch.blockize([block])
    sch.unblockize(whole)
    check(sch, before)


@T.prim_func
def bounds(A: T.Buffer((12, 7), "float32"), N: T.Buffer((12,), "int32"),
           B: T.Buffer((12,), "float32")):
    for i_0 in range(6):
        with T.block("B_o"):
            vi_o = T.axis.spatial(6, i_0)
            for i_1 in range(2):
                with T.block("B"):
                    vi_i = T.axis.spatial(2, i_1)
                    with T.block("B_init"):
                        vi = T.axis.spatial(12, vi_o * 2 + vi_i)
                        B[vi] = T.float32(0)
                    for k in range(N[vi_o * 2 + vi_i]):
                        with T.block("B_update"):
                            vi = T.axis.spatial(12, vi_o * 2 + vi_i)
                            vk = T.axis.reduce(N[vi_o * 2 + vi_i], k)
                            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def prefix(B: T.Buffer((12,), "float32")):
    for i_0 in range(1):
        with T.block("B_o"):
            vi_o = T.axis.spatial(1, i_0)
            for i_1 in range(11):
                with T.block("B"):
                    vi_i = T.axis.spatial(11, i_1)
                    with T.block("first"):
                        vi = T.axis.spatial(11, vi_i)
                        B[vi + 1] = B[vi] + T.float32(1)
                    with T.block("second"):
                        vi = T.axis.spatial(11, vi_i)
                        B[vi] = B[vi] * T.float32(2)


@T.prim_func
def names_it(A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32")):
    for i_0 in range(6):
        with T.block("B_o"):
            vi_o = T.axis.spatial(6, i_0)
            for i_1 in range(2):
                with T.block("B"):
                    vi_i = T.axis.spatial(2, i_1)
                    with T.block("inner"):
                        vi = T.axis.spatial(12, vi_o * 2 + vi_i)
                        B[vi] = A[vi_o * 2 + vi_i]


def test_what_would_change_the_program_is_refused():
    for func, rule in ((bounds, "domain_is_known"), (prefix, "complete_block"),
                       (names_it, "iterators_are_bound")):
        sch, before = start(func)
        with pytest.raises(ScheduleError) as caught:
            sch.unblockize(sch.get_block("B"))
        assert caught.value.rule == rule and sch.mod is before
    sch, before = start(rows)
    sch.parallel(sch.get_loops(sch.get_block("B"))[0])
    for name, rule in (("B_o", "block_is_inside_another"), ("B", "loop_has_no_annotation"),
                       ("B_update", "complete_block")):
        with pytest.raises(ScheduleError) as caught:
            sch.unblockize(sch.get_block(name))
        assert caught.value.rule == rule


def test_a_loop_whose_bounds_are_data_stays_inside_of_those_that_say_them():
    data, indices, indptr = (te.placeholder(s, dtype=d, name=n) for s, d, n in (
        ((9, 4, 1), "float32", "D"), ((9,), "int32", "I"), ((4,), "int32", "P")))
    x = te.placeholder((8, 16), name="X")
    y = topi.nn.sparse_dense(x, data, indices, indptr)
    s = te.create_schedule(y.op)
    block = y.op.input_tensors[0]
    i, nb, j = block.op.axis
    k, c = block.op.reduce_axis
    s[block].reorder(i, k, nb, j, c)
    with pytest.raises(ScheduleError, match="domain_is_known|loops_are_independent"):
        mlc_lab.lower(s, [x, data, indices, indptr, y])
