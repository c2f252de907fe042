"""LimitUnroll: which loops say that their bodies are not to be copied, and what LLVM is told."""

import numpy as np
import pytest

from mlc_lab.backend.llvm import generate
from mlc_lab.build import build
from mlc_lab.ir.structural import structural_equal
from mlc_lab.lower import LimitUnroll, lower
from mlc_lab.runtime import jit
from mlc_lab.schedule import Schedule
from mlc_lab.script import from_source
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order
from .programs import arguments, check_stages, matmul, run


def limited(text):
    """The counts of the loops of a lowered program, outermost first; None where nothing is said."""
    mod = from_source(f"@T.prim_func\n{text}")
    mod = lower(mod, until="SumLanes")
    out = LimitUnroll()(mod)
    args = arguments(out["main"])
    for a, b in zip(run(mod, args), run(out, args)):
        np.testing.assert_array_equal(a, b)
    assert structural_equal(from_source(out.script()), out, True) is True
    assert LimitUnroll()(out) is out
    notes = [s.annotations.get("unroll_count") for s in pre_order(out["main"].body)
             if type(s) is S.For]
    return [None if n is None else int(n) for n in notes]


def elementwise(extent):
    return f"""
def main(A: T.Buffer(({extent},), "float32"), B: T.Buffer(({extent},), "float32")):
    for i in range({extent}):
        B[i] = A[i] * T.float32(2)
"""


def test_loops_over_elements_stay_unless_they_are_short():
    assert limited(elementwise(128)) == [1]
    assert limited(elementwise(8)) == [None]


def test_a_reduction_is_left_to_llvm():
    assert limited("""
def main(A: T.Buffer((128,), "float32"), B: T.Buffer((1,), "float32")):
    for i in range(128):
        B[0] = B[0] + A[i]
""") == [None]


def tile(k, rows, lanes=8):
    """A register tile: each of `rows` stores is three accesses of vectors."""
    return f"""
def main(A: T.Buffer(({k}, {rows}), "float32"), B: T.Buffer(({k}, {lanes}), "float32"),
         C: T.Buffer(({rows}, {lanes}), "float32")):
    T.func_attr({{"tir.noalias": True}})
    for k in range({k}):
        for i in T.unroll({rows}):
            for j in T.vectorized({lanes}):
                C[i, j] = C[i, j] + A[k, i] * B[k, j]
"""


@pytest.mark.parametrize(("k", "rows", "want"), [
    (128, 2, None),  # six accesses: small
    (128, 3, 2),  # nine, and an even number of iterations
    (127, 3, 1),
    (128, 22, 1),  # sixty-six are too many to double
    (8, 3, 2),
    (4, 3, None),  # few iterations that add up
])
def test_a_large_body_is_doubled_at_most(k, rows, want):
    assert limited(tile(k, rows)) == [want]


def test_loops_around_one_that_stays_stay():
    assert limited("""
def main(A: T.Buffer((4, 128), "float32"), B: T.Buffer((4, 128), "float32")):
    for i in range(4):
        for j in range(128):
            B[i, j] = A[i, j] * T.float32(2)
""") == [1, 1]


def test_copies_of_short_loops_within_each_other_multiply():
    nest = """
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range({}):
        for j in range(2):
            for v in T.vectorized(8):
                B[i * 16 + j * 8 + v] = A[i * 16 + j * 8 + v]
"""
    assert limited(nest.format(2)) == [None, None]
    assert limited(nest.format(4)) == [1, None]


def test_a_parallel_loop_is_a_function_of_its_own():
    assert limited("""
def main(A: T.Buffer((16, 128), "float32"), B: T.Buffer((16, 128), "float32")):
    for o in range(2):
        for i in T.parallel(8):
            for j in range(128):
                B[o * 8 + i, j] = A[o * 8 + i, j] * T.float32(2)
""") == [None, 1, 1]


def test_a_count_that_is_given_stays():
    text = elementwise(128).replace("range(128)", 'T.serial(128, annotations={"unroll_count": 4})')
    assert limited(text) == [4]
    mod = from_source(f"@T.prim_func\n{text}")
    assert '!{!"llvm.loop.unroll.count", i32 4}' in generate(lower(mod), jit.host_machine())[0]
    build(mod, "llvm")


def test_a_schedule_can_give_it():
    sch = Schedule(matmul)
    loop = sch.get_loops("C")[-1]
    sch.annotate(loop, "unroll_count", 4)
    last = check_stages(sch.mod)["LimitUnroll"]
    counts = [s.annotations["unroll_count"] for s in pre_order(last["main"].body)
              if type(s) is S.For and s.annotations]
    assert 4 in map(int, counts)


@pytest.mark.parametrize("text", [elementwise(128), tile(128, 3)])
def test_llvm_is_told_what_the_program_says(text):
    mod = lower(from_source(f"@T.prim_func\n{text}"))
    ir = generate(mod, jit.host_machine())[0]
    said = [int(s.annotations["unroll_count"]) for s in pre_order(mod["main"].body)
            if type(s) is S.For and s.annotations]
    assert said and ir.count('!{!"llvm.loop.unroll.disable"}') == said.count(1)
    assert ir.count('!{!"llvm.loop.unroll.count", i32 2}') == said.count(2)
