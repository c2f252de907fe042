"""What LLVM's own passes leave is looked at before code is made of it."""

import numpy as np

from mlc_lab.backend.interp import interpret
from mlc_lab.build import build
from mlc_lab.script import from_source

# loops written out, of which LLVM 22.1's vectorizer of straight code uses a sum before it is there
PROGRAM = """
@T.prim_func
def main(A: T.Buffer((36,), "float32"), B: T.Buffer((36,), "float32"),
         C: T.Buffer((36,), "float32")):
    M = T.decl_buffer((36,))
    first = T.decl_buffer((6,), "int32")
    second = T.decl_buffer((6,), "int32")
    for i, j in T.grid(6, 6):
        M[i * 6 + j] = T.float32(1.0)
    for i in range(5):
        for j in range(i + 1):
            copy = T.decl_buffer((1,), scope="local")
            copy[0] = M[i * 6 + j]
            copy[0] = copy[0] + A[i * 6 + j]
            M[i * 6 + j] = copy[0]
        for j in range(i + 1, i + 1 + (5 - i)):
            copied = T.decl_buffer((1,), scope="local")
            copied[0] = M[i * 6 + j]
            M[i * 6 + j] = copied[0]
    for j in range(6):
        last = T.decl_buffer((1,), scope="local")
        last[0] = M[j + 30]
        last[0] = last[0] + A[j + 30]
        M[j + 30] = last[0]
    for j in range(6):
        B[j] = M[j * 6]
    for i in range(1, 6):
        for j in range(6 - i):
            if i != 2:
                B[i * 6 + j] = M[j * 6 + i]
    for i in range(6):
        first[i] = i + 1
    for i in range(6):
        second[i] = i - 1
    for i, j in T.grid(3, 4):
        C[i * 12 + j + 1] = M[i * 12 + j + 1] + M[first[i * 2] * 6 + second[j + 1]]
"""


def test_a_module_that_the_vectorizer_spoils_is_compiled_without_it():
    func = from_source(PROGRAM)
    a = np.random.default_rng(0).standard_normal(36).astype("float32")
    want, got = (np.zeros((2, 36), "float32") for _ in range(2))
    interpret(func, a, *want)
    build(func, target="llvm")(a, *got)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_code_that_is_not_to_be_optimised_has_no_vectors():
    """LLVM's instruction selection at level 0 aborts on some code that its passes vectorized."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for i in range(256):
        with T.block("B"):
            v = T.axis.spatial(256, i)
            B[v] = A[v] * T.float32(2)
""")
    assert " x float>" in build(func, target="llvm").get_source("ll")
    assert " x float>" not in build(func, target="llvm -opt-level=0").get_source("ll")
