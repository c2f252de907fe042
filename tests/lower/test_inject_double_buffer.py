"""Double buffers: filled an iteration ahead where that keeps the program's meaning."""

import numpy as np
import pytest

from mlc_lab import build
from mlc_lab.ir.module import IRModule
from mlc_lab.ir.transform import PassContext, Sequential
from mlc_lab.lower import InjectDoubleBuffer, Simplify
from mlc_lab.script import from_source
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order

ROWS = """
@T.prim_func
def main(A: T.Buffer((40,), "float32"), C: T.Buffer((40,), "float32")):
    for i in {loop}:
        B_data = T.allocate([4], "float32", "global")
        B = T.{declared}((4,), data=B_data)
        {before}
        with T.attr(B_data, "double_buffer_scope", 1):
            for j in range(4):
                B[j] = A[i * 4 + j] * T.float32(2)
        for j in range(4):
            C[i * 4 + j] = B[j] + {more}
"""


def program(loop="range(10)", declared="Buffer", before="T.evaluate(0)", more="T.float32(1)"):
    return from_source("from mlc_lab.script import tir as T\n" + ROWS.format(**locals()))


def doubled(func, split=1):
    with PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": split}}):
        return Sequential([InjectDoubleBuffer(), Simplify()])(IRModule({"main": func}))["main"]


def runs(func):
    a = np.random.default_rng(1).uniform(-1, 1, 40).astype("float32")
    c = np.zeros(40, "float32")
    build(func, target="llvm")(a, c)
    return c


def marks(func):
    return {s.attr_key for s in pre_order(func.body) if type(s) is S.AttrStmt}


@pytest.mark.parametrize("declared", ["Buffer", "decl_buffer"])
@pytest.mark.parametrize("split", [0, 1, 2, 4])
def test_memory_has_two_halves_and_the_values_are_the_same(split, declared):
    func = program(declared=declared)
    new = doubled(func, split)
    (made,) = [s for s in pre_order(new.body) if type(s) is S.Allocate]
    assert [int(n) for n in made.extents] == [8]
    assert type(new.body) is S.Allocate  # before the loop
    assert marks(new) == {"double_buffer_write"}
    np.testing.assert_array_equal(runs(new), runs(func))


def test_the_next_fill_comes_before_the_use():
    new = doubled(program())
    loop = next(s for s in pre_order(new.body)
                if type(s) is S.For and s.loop_var.name.startswith("i"))
    assert int(loop.extent) == 9
    fill, use = (s for s in loop.body.seq if type(s) is not S.Evaluate)
    assert type(fill) is S.AttrStmt and fill.attr_key == "double_buffer_write"
    assert "(i_outer + 1) % 2 * 4" in fill.script() and "i_outer % 2 * 4" in use.script()


@pytest.mark.parametrize("extent", [0, 1, 2, 7])
@pytest.mark.parametrize("split", [0, 1, 2, 4])
def test_loops_of_any_length(extent, split):
    func = program(loop=f"range({extent})")
    np.testing.assert_array_equal(runs(doubled(func, split)), runs(func))


SIZED = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4))
    C = T.match_buffer(c, (n, 4))
    for i in range(n):
        B_data = T.allocate([4], "float32", "global")
        B = T.Buffer((4,), data=B_data)
        with T.attr(B_data, "double_buffer_scope", 1):
            for j in range(4):
                B[j] = A[i, j] * T.float32(2)
        for j in range(4):
            C[i, j] = B[j]
"""


@pytest.mark.parametrize("split", [0, 1, 2, 4])
def test_a_length_that_is_known_when_it_runs(split):
    func = from_source("from mlc_lab.script import tir as T\n" + SIZED)
    new = doubled(func, split)
    assert "double_buffer_write" in marks(new)
    for n in (0, 1, 2, 5, 8):
        a = np.arange(4 * n, dtype="float32").reshape(n, 4)
        c = np.zeros_like(a)
        build(new, target="llvm")(a, c)
        np.testing.assert_array_equal(c, 2 * a)


@pytest.mark.parametrize("change", [
    {"before": "A[i * 4] = T.float32(3)"},            # the fill reads what another part writes
    {"more": "A[39 - i * 4]", "before": "A[0] = A[1]"},
    {"before": "B[0] = T.float32(7)"},                # written outside of the scope
    {"loop": "T.parallel(10)"},                       # iterations have no order
    {"before": "T.evaluate(T.call_extern(\"int32\", \"rand\"))"},  # nobody knows what it does
])
def test_what_may_not_change_places_stays(change):
    func = program(**change)
    assert InjectDoubleBuffer()(IRModule({"main": func}))["main"] is func


BEHIND_A_CONDITION = """
@T.prim_func
def main(A: T.Buffer((40,), "float32"), C: T.Buffer((40,), "float32")):
    for i in range(10):
        B_data = T.allocate([4], "float32", "global")
        B = T.Buffer((4,), data=B_data)
        if i > 2:
            with T.attr(B_data, "double_buffer_scope", 1):
                for j in range(4):
                    B[j] = A[i * 4 + j - 8]
            for j in range(4):
                C[i * 4 + j] = B[j]
"""


def test_a_fill_behind_a_condition_stays():
    """Ahead of its condition it would read before the beginning of A."""
    func = from_source("from mlc_lab.script import tir as T\n" + BEHIND_A_CONDITION)
    assert InjectDoubleBuffer()(IRModule({"main": func}))["main"] is func


def test_an_odd_number_of_iterations_at_once_is_refused():
    with pytest.raises(ValueError, match="split_loop is 0, 1 or even"):
        doubled(program(), 3)
