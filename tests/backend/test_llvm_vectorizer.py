"""What LLVM's own passes leave is looked at before code is made of it."""

import re
import subprocess
import sys

import numpy as np
import pytest

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


# found by random schedules: LLVM 22's vectorizer of straight code does not schedule a bundle
ABORTS = '''
from mlc_lab.build import build
from mlc_lab.script import from_source
for target in ("llvm", "llvm -mcpu=x86-64", "llvm -mcpu=skylake-avx512"):
    build(from_source("""
@I.ir_module
class Module:
    @T.prim_func
    def main(A1: T.Buffer((1, 6), "float32"), O34: T.Buffer((1, 4), "float32")):
        # with T.block("root"):
        B2 = T.alloc_buffer((1, 6))
        B18 = T.alloc_buffer((1, 6))
        B26 = T.alloc_buffer((1, 4))
        for i5_0_0, i5_0_1, i5_1, i6 in T.grid(1, 2, 2, 6):
            with T.block("S7"):
                v3 = T.axis.spatial(1, (i5_0_0 * 2 + i5_0_1) * 2 + i5_1)
                v4 = T.axis.spatial(6, i6)
                T.where((i5_0_0 * 2 + i5_0_1) * 2 + i5_1 < 1 and i5_0_0 * 2 + i5_0_1 < 1)
                T.reads(A1[v3, v4])
                T.writes(B2[v3, v4])
                B2[v3, v4] = A1[v3, v4] * T.float32(2.0) + A1[v3, v4]
        for i10, i11 in T.grid(1, 6):
            with T.block("S12"):
                v8, v9 = T.axis.remap("SS", [i10, i11])
                B2[v8, v9] = T.max(B2[v8, v9], T.if_then_else(v8 < 0, B2[v8, v9], B2[v8, v8 % 6]))
        for i15, i16 in T.grid(1, 6):
            with T.block("S17"):
                v13, v14 = T.axis.remap("SS", [i15, i16])
                B2[v13, v14] = B2[v13, (v14 + 1) % 6] + T.if_then_else(
                    v14 == 0, B2[v13, v14], A1[v13, v14])
        for i19_0, i19_1, i23 in T.grid(2, 1, 1):
            for i24 in T.parallel(6):
                with T.block("S25"):
                    v21, v22 = T.axis.remap("SS", [i23, i24])
                    k20 = T.axis.reduce(2, i19_0 + i19_1)
                    T.reads(A1[v21, v22])
                    T.writes(B18[v21, v22])
                    with T.init():
                        B18[v21, v22] = T.float32(0.0)
                    B18[v21, v22] = B18[v21, v22] + A1[v21, v22] + T.float32(1.0)
        for i37, i38 in T.grid(1, 4):
            for ax0 in range(3):
                with T.block("S33"):
                    v27 = T.axis.spatial(1, 0)
                    v28, k29 = T.axis.remap("SR", [i38, ax0])
                    T.reads(B2[v27, v28 + k29])
                    T.writes(B26[v27, v28])
                    with T.init():
                        B26[v27, v28] = T.float32(0.0)
                    B26[v27, v28] = B26[v27, v28] + B2[v27, v28 + k29]
            with T.block("S39"):
                v35, v36 = T.axis.remap("SS", [i37, i38])
                T.reads(B26[v35, v36])
                T.writes(O34[v35, v36])
                O34[v35, v36] = B26[v35, v36]
"""), target=target)
'''


def test_no_program_makes_the_vectorizer_end_the_process():
    done = subprocess.run([sys.executable, "-c", ABORTS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


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


@pytest.mark.parametrize("lanes", [8, 16, 32, 128, 512])
def test_a_long_vector_of_single_elements_is_made_of_parts(lanes):
    """LLVM's time for a chain of insertions grows with the cube of its length."""
    mod = from_source(f"""
@T.prim_func
def main(A: T.Buffer(({lanes}, 3), "float32"), C: T.Buffer((3, {lanes}), "float32")):
    for i in range(3):
        for k in T.vectorized({lanes}):
            C[i, k] = A[{lanes - 1} - k, i]
""")
    made = build(mod, "llvm")
    text = made.get_source("ll")
    assert max(map(int, re.findall(r"insertelement <(\d+) x float>", text)), default=0) <= 16
    a, c = np.random.default_rng(0).random((lanes, 3), "float32"), np.zeros((3, lanes), "float32")
    made(a, c)
    np.testing.assert_array_equal(c, a[::-1].T)
