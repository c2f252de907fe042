"""Macros: pieces of a program that are written into it where they are called."""

import pytest

from laws import check_program
from mlc_lab.ir.diagnostics import DiagnosticError
from mlc_lab.ir.structural import assert_structural_equal
from mlc_lab.script import from_source, tir as T


def test_macros():
    scale = 3.0

    @T.macro
    def scaled(buffer, i):
        with T.block("scaled"):
            vi = T.axis.spatial(16, i)
            buffer[vi] = buffer[vi] * scale

    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            scaled(A, i)
        for i in range(16):
            scaled(buffer=B, i=i)

    assert check_program(f).count("* T.float32(3.0)") == 2


def test_macros_bind_arguments_as_python_does():
    @T.macro
    def update(i, *rest, out, scale=2, **inputs):
        vi, vj, vk = T.axis.remap("SSR", [i, *rest])
        out[vi, vj] = out[vi, vj] + inputs["left"][vi, vk] * inputs["right"][vk, vj] * scale

    @T.prim_func(private=True)
    def inlined(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"),
                C: T.Buffer((4, 4), "int32")):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("update"):
                update(i, j, k, out=C, left=A, right=B)

    @T.prim_func(private=True)
    def written(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"),
                C: T.Buffer((4, 4), "int32")):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] * 2

    assert_structural_equal(inlined, written)


@pytest.mark.parametrize("call, words", [
    ("f(A)", "macro f takes \\(buffer, i, k=K\\)"), ("f(A, i, j=2)", "macro f takes"),
    ("f(A, i, buffer=A)", "macro f takes"),
    ("f(A, i)", "the default of k in macro f is K, which is not written out")])
def test_arguments_that_do_not_fit_are_refused(call, words):
    with pytest.raises(DiagnosticError, match=words):
        from_source(f"""
@T.macro
def f(buffer, i, k=K):
    buffer[i] = buffer[i] * k

@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    for i in range(16):
        {call}
""", {"K": 2})
