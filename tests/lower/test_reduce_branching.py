"""Branches that need not be, assumptions, assertions, and stores of nothing."""

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.ir import IRModule, structural_equal
from mlc_lab.ir.transform import PassContext
from mlc_lab.lower import (
    LowerError, ReduceBranchingThroughOvercompute, RemoveAssume, RemoveStoreUndef, SkipAssert,
)
from mlc_lab.script import from_source


def program(body, params="A: T.Buffer((16,), 'int32'), B: T.Buffer((4, 4), 'int32')"):
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    return from_source(f"@T.prim_func\ndef main({params}):\n{lines}\n")


def after(make, func):
    return make()(IRModule({"main": func}))["main"]


def same_results(func, new):
    results = []
    for f in (func, new):
        rng = np.random.default_rng(5)
        a = rng.integers(-9, 9, 16).astype("int32")
        b = rng.integers(-9, 9, (4, 4)).astype("int32")
        interpret(f, a, b)
        results.append((a, b))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


GONE = {
    "the other branch does as much": """
for i in range(16):
    if i < 14:
        A[i] = 1
        T.evaluate(0)
    else:
        A[i] = 1""",
    "zero is added": """
for i in range(16):
    if i > 0:
        A[0] = A[0] + i * i""",
    "one is a factor": """
for i in range(4):
    if i > 0:
        A[3] = (i + 1) * A[3]""",
    "zero is taken away, in a loop": """
for i in range(4):
    if i != 0:
        for j in range(4):
            B[j, i] = B[j, i] - i""",
    "an element is put back where a variable has one value": """
for i, j in T.grid(4, 4):
    if j > 0:
        B[i, j] = B[i, 0] * 1 + j * B[i, j] - j * B[i, j]
for i in range(1, 4):
    if i >= 2:
        B[i, 1] = B[1, i]""",
}


@pytest.mark.parametrize("name", GONE)
def test_a_branch_without_need_goes(name):
    func = program(GONE[name])
    new = after(ReduceBranchingThroughOvercompute, func)
    count = func.script().count("if "), new.script().count("if ")
    assert count[1] < count[0] and "else" not in new.script()
    same_results(func, new)


KEPT = {
    "values that are used later": """
for i in range(16):
    if i < 14:
        A[i] = 1""",
    "an element outside": """
for i in range(17):
    if i < 16:
        A[i] = A[i] + 0""",
    "an element outside that is only read": """
for i in range(17):
    if i < 16:
        A[0] = A[0] + (i - i) * A[i]""",
    "a division by what may be zero": """
for i in range(16):
    if i > 0:
        A[0] = A[0] + (i - i) * (8 // i)""",
    "iterations that run at once": """
for i in T.parallel(16):
    if i > 0:
        A[i % 2] = A[i % 2] + i * i""",
    "another element": """
for i in range(1, 4):
    if i >= 2:
        A[i] = A[i - 1] + i - i""",
    "a call with an effect": """
for i in range(16):
    if i > 0:
        T.evaluate(T.call_extern("int32", "f", i))""",
}


@pytest.mark.parametrize("name", KEPT)
def test_a_branch_that_matters_stays(name):
    func = program(KEPT[name])
    assert after(ReduceBranchingThroughOvercompute, func) is func


def test_zero_may_change_a_real_number():
    """-0.0 + 0.0 is 0.0."""
    func = program("for i in range(4):\n    if i > 0:\n        A[0] = A[0] + T.float32(i)",
                   "A: T.Buffer((16,), 'float32')")
    with PassContext(config={"tir.ReduceBranchingThroughOvercompute": {
            "use_dataflow_analysis": True}}):
        assert after(ReduceBranchingThroughOvercompute, func) is func


def test_assumptions_go_with_the_loops_that_make_them():
    func = program("""
for i in range(16):
    T.evaluate(T.assume(A[i] == 0))
for i in range(16):
    A[i] = 10""")
    assert structural_equal(after(RemoveAssume, func),
                            program("for i in range(16):\n    A[i] = 10"))


def test_assertions_go_and_what_is_below_them_stays():
    func = program('for i in range(16):\n    assert A[i] > 0, "no"\n    A[i] = 10')
    assert structural_equal(after(SkipAssert, func),
                            program("for i in range(16):\n    A[i] = 10"))


def test_stores_of_nothing_go():
    func = program("""
v: T.int32 = T.undef("int32")
A[0] = v + 1
A[1] = 2
A[2] = 1 + T.undef("int32")
T.evaluate(T.call_extern("int32", "f", A[3]))
w: T.int32 = A[3]
A[4] = T.shift_left(w, 1)""")
    assert structural_equal(after(RemoveStoreUndef, func), program(
        'A[1] = 2\nT.evaluate(T.call_extern("int32", "f", A[3]))\n'
        'w: T.int32 = A[3]\nA[4] = T.shift_left(w, 1)'))


@pytest.mark.parametrize("body", [
    'v: T.int32 = T.undef("int32")\nA[v] = 5', 'A[0] = A[T.undef("int32")]',
    'if T.undef("int32") > 3:\n    A[0] = 1', 'for i in range(T.undef("int32")):\n    A[i] = 1'])
def test_nothing_decides_nothing(body):
    with pytest.raises(LowerError, match="T.undef"):
        after(RemoveStoreUndef, program(body))
