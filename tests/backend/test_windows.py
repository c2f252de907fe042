"""Windows on regions (`match_buffer`): every backend finds the elements of the region."""

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.backend.meaning import evaluate
from mlc_lab.build import build
from mlc_lab.script import from_source

WINDOWS = {
    "as declared": ("T.match_buffer(A[i, 4:12], (8,))", "j"),
    "every dimension": ("T.match_buffer(A[i, 4:12], (1, 8))", "0, j"),
    "as the region is": ("T.match_buffer(A[i, 4:12])", "0, j"),
    "strides said": ('T.match_buffer(A[i, 4:12], (8,), strides=[1])', "j"),
    "strides and offset asked": (
        'T.match_buffer(A[i, 4:12], (8,), strides=["s"], elem_offset="o")', "j"),
    "several rows": ("T.match_buffer(A[i:i + 2, 4:12], (2, 8))", "1, j"),
    "a window on a window": (
        "T.match_buffer(A[i, 2:14], (12,))\n            W = T.match_buffer(W[2:10], (8,))", "j"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_shows_its_region(name):
    window, at = WINDOWS[name]
    if name == "a window on a window":
        first, second = window.split("\n")
        inner = f"""W = {first}
            with T.block("inner"):
                V = {second.strip().removeprefix("W = ")}
                for j in range(8):
                    V[{at}] = V[{at}] * 2 + 1"""
    else:
        inner = f"""W = {window}
            for j in range(8):
                W[{at}] = W[{at}] * 2 + 1"""
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((9, 16), "float32")):
    for k in range(4):
        with T.block("rows"):
            i = T.axis.spatial(8, k * 2)
            {inner}
""")
    rows = [1, 3, 5, 7] if name == "several rows" else [0, 2, 4, 6]
    before = np.arange(144, dtype="float32").reshape(9, 16)
    expected = before.copy()
    expected[rows, 4:12] = expected[rows, 4:12] * 2 + 1
    for run in (interpret, evaluate, lambda func, a: build(func)(a)):
        a = before.copy()
        run(func, a)
        np.testing.assert_array_equal(a, expected)
