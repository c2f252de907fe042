"""has_reshape_pattern: which functions only move their input to another shape."""

import pytest

from mlc_lab.relax.analysis import has_reshape_pattern
from mlc_lab.script import from_source

#: (loops, values of the iterators, what is read); all write B[v0, v1] of (8, 3) from (4, 6)
SAME = "(v0 * 3 + v1) // 6, (v0 * 3 + v1) % 6"


def whole(loops, v0, v1, read=SAME, extra=""):
    head, indent = "", "    "
    for line in loops:
        head += f"{indent}{line}\n"
        indent += "    "
    return from_source(f"""
@T.prim_func
def f(A: T.Buffer((4, 6), "float32"), B: T.Buffer((8, 3), "float32")):
{head}{indent}with T.block("B"):
{indent}    v0 = T.axis.spatial(8, {v0})
{indent}    v1 = T.axis.spatial(3, {v1})
{indent}    {extra}
{indent}    B[v0, v1] = A[{read}]
""")


GRID = ["for i, j in T.grid(8, 3):"]


@pytest.mark.parametrize("func", [
    whole(GRID, "i", "j"),
    whole(["for k in T.thread_binding(24, thread='threadIdx.x'):"], "k // 3", "k % 3"),
    whole(["for a in range(2):", "for b in T.parallel(4):", "for j in T.vectorized(3):"],
          "a * 4 + b", "j"),
], ids=["loops", "fused", "split"])
def test_a_schedule_does_not_hide_it(func):
    assert has_reshape_pattern(func)


@pytest.mark.parametrize("func", [
    whole(["for i, j in T.grid(4, 3):"], "i", "j"),
    whole(["for i in range(3):"], "i", "i"),
    whole(GRID, "7 - i", "j"),
    whole(["for i, j in T.grid(9, 3):"], "i", "j", extra="T.where(i < 4)"),
    whole(GRID, "i", "j", "v0 % 4, v1"),
], ids=["half", "diagonal", "backwards", "predicate", "other"])
def test_what_is_not_surely_whole_is_none(func):
    assert not has_reshape_pattern(func)


TEXT = """
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, T.int64(128)), "float16")
    B = T.match_buffer(b, (T.int64(1), n, T.int64(4), T.int64(32)), "float16")
    for i0, i1, i2, i3 in T.grid(T.int64(1), n, T.int64(4), T.int64(32)):
        with T.block("B"):
            v0, v1, v2, v3 = T.axis.remap("SSSS", [i0, i1, i2, i3])
            B[v0, v1, v2, v3] = A[(ROW) % n, (v2 * T.int64(32) + v3) % T.int64(128)]
"""


def test_a_symbolic_size():
    row = "(v2 * T.int64(32) + v3) // T.int64(128) + v0 * n + v1"
    assert has_reshape_pattern(from_source(TEXT.replace("ROW", row)))
    assert not has_reshape_pattern(from_source(TEXT.replace("ROW", row + " + T.int64(1)")))
