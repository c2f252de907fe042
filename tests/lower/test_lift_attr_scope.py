"""LiftAttrScope: an attribute is said once, around all that is under it."""

from __future__ import annotations

import pytest

from mlc_lab import lower
from mlc_lab.ir import IRModule, assert_structural_equal
from mlc_lab.script import from_source

HEAD = """@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
"""
X = 'T.attr("x", "key", 1)'


def parsed(body):
    return IRModule({"main": from_source(HEAD + body.replace("X", X))})


CASES = {
    "out of a loop": ("""
    for i in range(8):
        with X:
            A[i] = T.float32(0)
        with X:
            B[i] = T.float32(0)
""", """
    with X:
        for i in range(8):
            A[i] = T.float32(0)
            B[i] = T.float32(0)
"""),
    "neighbours": ("""
    with X:
        A[0] = T.float32(0)
    with X:
        A[1] = T.float32(0)
    B[0] = T.float32(0)
    with T.attr("x", "key", 2):
        B[1] = T.float32(0)
""", """
    with X:
        A[0] = T.float32(0)
        A[1] = T.float32(0)
    B[0] = T.float32(0)
    with T.attr("x", "key", 2):
        B[1] = T.float32(0)
"""),
    "not beyond an allocation": ("""
    for i in range(8):
        data = T.allocate([8], "float32", "global")
        C = T.Buffer((8,), data=data)
        with X:
            C[i] = A[i]
        with X:
            B[i] = C[i]
""", """
    for i in range(8):
        data = T.allocate([8], "float32", "global")
        C = T.Buffer((8,), data=data)
        with X:
            C[i] = A[i]
            B[i] = C[i]
"""),
    "not beyond what it is about": ("""
    for i in range(8):
        with T.attr("x", "key", i):
            A[i] = T.float32(0)
""", """
    for i in range(8):
        with T.attr("x", "key", i):
            A[i] = T.float32(0)
"""),
    "both branches": ("""
    if n > 1:
        with X:
            A[0] = T.float32(0)
    else:
        with X:
            A[1] = T.float32(0)
""", """
    with X:
        if n > 1:
            A[0] = T.float32(0)
        else:
            A[1] = T.float32(0)
"""),
    "one branch of two": ("""
    if n > 1:
        with X:
            A[0] = T.float32(0)
    else:
        A[1] = T.float32(0)
    while n > 9:
        with X:
            A[2] = T.float32(0)
""", """
    if n > 1:
        with X:
            A[0] = T.float32(0)
    else:
        A[1] = T.float32(0)
    while n > 9:
        with X:
            A[2] = T.float32(0)
"""),
}


@pytest.mark.parametrize("case", CASES)
def test_where_it_is_said(case):
    before, after = map(parsed, CASES[case])
    new = lower.LiftAttrScope("key")(before)
    assert_structural_equal(new, after)
    assert_structural_equal(lower.LiftAttrScope("key")(new), after)


def test_another_attribute_stays_and_so_does_a_function_without():
    mod = parsed(CASES["neighbours"][0])
    assert lower.LiftAttrScope("other")(mod) is mod
