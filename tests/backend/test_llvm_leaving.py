"""T.break and T.continue: machine code, the lowered program and the interpreter agree."""

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.build import build
from mlc_lab.lower import lower
from mlc_lab.script import from_source

HEAD = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
"""
PROGRAMS = {
    "break": """
    for i in range(8):
        if A[i] > 3:
            break
        B[i] = A[i]
    B[7] = 99
""",
    "a loop of one turn is left, not the one around it": """
    for i in range(8):
        for j in range(1):
            if A[i] > 3:
                continue
            B[i] = A[i] * 2
        for k in T.unroll(4):
            if k + A[i] > 5:
                break
            B[i] = B[i] + k
""",
    "while, with memory that is given back": """
    w = T.decl_buffer((1,), "int32")
    w[0] = 0
    while w[0] < 8:
        w[0] = w[0] + 1
        if A[w[0] - 1] == 2:
            continue
        if A[w[0] - 1] == 5:
            break
        big = T.decl_buffer((20000,), "int32")
        for i in range(20000):
            big[i] = i
            if i > A[w[0] - 1] * 3:
                break
        B[w[0] - 1] = big[A[w[0] - 1]]
""",
    "inside of a parallel loop": """
    for i in T.parallel(8):
        for j in range(8):
            big = T.decl_buffer((20000,), "int32")
            big[j] = A[j]
            if big[j] > A[i]:
                break
            if big[j] == 1:
                continue
            B[i] = B[i] + big[j]
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_that_are_left_early(name):
    func = from_source(HEAD + PROGRAMS[name].lstrip("\n"))
    compiled, lowered = build(func, target="llvm"), lower(func)["main"]
    for seed in range(20):
        a = np.random.default_rng(seed).integers(0, 7, 8).astype("int32")
        want, got, low = (np.zeros(8, "int32") for _ in range(3))
        interpret(func, a, want)
        compiled(a, got)
        interpret(lowered, a, low)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(low, want)


def test_a_parallel_loop_is_not_left():
    func = from_source(HEAD + """
    for i in T.parallel(8):
        if A[i] > 3:
            break
        B[i] = A[i]
""".lstrip("\n"))
    with pytest.raises(Exception, match="leave a serial loop"):
        build(func, target="llvm")
