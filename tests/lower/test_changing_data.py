"""What a condition or a bound says of memory holds until the memory is written."""

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.build import build
from mlc_lab.lower import lower
from mlc_lab.script import from_source

BODIES = {
    "a branch that is decided": """
    for i in range(A[0]):
        A[0] = 0
        if i < A[0]:
            B[0] = B[0] + 1
        else:
            B[1] = B[1] + 1
""",
    "a loop under a condition that its neighbour ends": """
    if A[0] < 0:
        if A[0] * 2 < A[0]:
            A[0] = A[0] - (A[0] + A[0])
        for v in range(T.min(T.max(A[0], 0), 3)):
            A[0] = A[0] + A[0]
    B[0] = A[0]
""",
    "a loop that runs once": """
    for i in T.serial(A[0], A[0] + 1):
        A[0] = 5
        B[0] = i
""",
    "a loop that is written out": """
    for i in T.unroll(T.min(T.max(A[0], 0), 1), T.min(T.max(A[0], 0), 1) + 2):
        A[0] = A[0] + 1
        B[i % 2] = B[i % 2] + i + 1
""",
    "a loop that is cut where an inner one ends": """
    for i in range(3):
        for j in range(T.min(T.max(A[0], 0), 3)):
            if i + j < 2:
                B[0] = B[0] + 1
            B[1] = B[1] + 1
        A[0] = A[0] - 1
""",
    "a loop whose end changes": """
    for i in range(T.min(T.max(A[0], 0), 4)):
        if i < 2:
            B[0] = B[0] + i
        A[0] = A[0] + 1
""",
    "conditions of loops that start at the old end of others": """
    for i in range(T.min(T.max(A[0], 0), 3)):
        A[0] = 1
        for j in T.serial(T.min(T.max(A[0], 0), 3), 4):
            if i < j and i < 3:
                B[0] = B[0] + 1
            else:
                B[1] = B[1] + 1
""",
    "an iterator that is bound to data": """
    for i in range(2):
        with T.block("b"):
            v = T.axis.opaque(4, T.min(T.max(A[0], 0), 3))
            w = T.axis.opaque(2, i)
            A[0] = A[0] - 1
            with T.block("c"):
                x = T.axis.opaque(8, v + A[1] - A[1])
                A[1] = 3 + v
                B[w] = v * 10 + x
""",
    "a piece under a condition that its body changes": """
    if A[0] < 2:
        A[0] = A[0] + 2
        for i in range(4):
            if i < A[0] and i < 3:
                B[0] = B[0] + 1
""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
@pytest.mark.parametrize("first", [-1, 0, 1, 2, 3])
def test_what_is_known_of_data_ends_where_it_is_written(body, first):
    func = from_source('@T.prim_func\ndef main(A: T.Buffer((2,), "int32"), '
                       'B: T.Buffer((2,), "int32")):' + body)
    results = []
    for run in (lambda *a: interpret(func, *a), lambda *a: interpret(lower(func)["main"], *a),
                build(func, "llvm")):
        arrays = [np.array([first, 7], "int32"), np.zeros(2, "int32")]
        run(*arrays)
        results.append([a.tolist() for a in arrays])
    assert results[0] == results[1] == results[2]
