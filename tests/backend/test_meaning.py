"""The definition of TensorIR: each kind of statement against numpy, errors, GPU kernels.

That the quick interpreter agrees with it on random programs is the business of tests/fuzz.
"""

import numpy as np
import pytest
from mlc_lab.backend.interp import interpret
from mlc_lab.backend.interp_memory import DivisionByZero, InterpError, OutOfBounds
from mlc_lab.backend.meaning import evaluate
from mlc_lab.script import from_source


def func(text):
    """The function `main` of a script."""
    return from_source("@T.prim_func\n" + text)


def both(text, *arrays):
    """What a program leaves by the definition; the quick interpreter must leave the same."""
    other = [a.copy() for a in arrays]
    evaluate(func(text), *arrays)
    interpret(func(text), *other)
    for a, b in zip(arrays, other):
        np.testing.assert_array_equal(a, b)
    return arrays[-1]


def test_block_with_init_window_and_predicate():
    a = np.arange(12, dtype="float32").reshape(3, 4)
    got = both("""
def main(A: T.Buffer((3, 4), "float32"), C: T.Buffer((3,), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi = T.axis.spatial(3, i)
            vj = T.axis.reduce(4, j)
            T.where(i < 3)
            T.reads(A[vi, 0:4])
            T.writes(C[vi])
            W = T.match_buffer(A[vi, 0:4], (4,), strides=("s",), offset_factor=1)
            with T.init():
                C[vi] = T.float32(1)
            C[vi] = C[vi] + W[vj]
""", a, np.zeros(3, "float32"))
    np.testing.assert_array_equal(got, a.sum(1) + 1)


def test_lanes_are_computed_by_themselves():
    """A lane that is not chosen or not stored may not divide, and may not read."""
    a = np.array([3, 0, 2, 0], "int32")
    text = """
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in T.vectorized(4):
        B[i] = T.if_then_else(A[i] != 0, 6 // A[i], A[i + 40])
"""
    with pytest.raises(OutOfBounds):
        evaluate(func(text), a, np.zeros(4, "int32"))
    got = both(text.replace("A[i + 40]", "-1"), a, np.zeros(4, "int32"))
    np.testing.assert_array_equal(got, [2, -1, 3, -1])
    with pytest.raises(DivisionByZero):
        evaluate(func(text.replace("T.if_then_else", "T.Select").replace("A[i + 40]", "-1")), a,
                 np.zeros(4, "int32"))


def test_two_types_of_one_memory():
    got = both("""
def main(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "int32")):
    bits = T.decl_buffer((2,), "int32", data=A.data)
    for i in range(2):
        B[i] = bits[i] + T.reinterpret("int32", A[i]) - bits[i]
""", np.array([1.0, -2.5], "float32"), np.zeros(2, "int32"))
    np.testing.assert_array_equal(got, np.array([1.0, -2.5], "float32").view("int32"))


def test_loops_are_left():
    got = both("""
def main(B: T.Buffer((6,), "int32")):
    for i in range(6):
        if i == 1:
            T.continue_loop()
        if i == 4:
            T.break_loop()
        B[i] = i * 10
""", np.full(6, -1, "int32"))
    np.testing.assert_array_equal(got, [0, -1, 20, 30, -1, -1])


KERNEL = """
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.attr(T.iter_var(bx, None, "ThreadIndex", "blockIdx.x"), "thread_extent", 2)
    T.attr(T.iter_var(tx, None, "ThreadIndex", "threadIdx.x"), "thread_extent", 4)
    S = T.decl_buffer((4,), "float32", scope="shared")
    S[tx] = A[bx * 4 + tx]
    T.tvm_storage_sync("shared")
    B[bx * 4 + tx] = S[3 - tx]
"""


def kernel(text):
    """`text` with its thread axes defined."""
    head, _, body = text.partition("):\n")
    return (head + "):\n    bx = T.int32()\n    tx = T.int32()\n" + body)


def test_threads_wait_for_each_other():
    a = np.arange(8, dtype="float32")
    got = both(kernel(KERNEL), a, np.zeros(8, "float32"))
    np.testing.assert_array_equal(got, a.reshape(2, 4)[:, ::-1].reshape(-1))
    one = KERNEL.replace('    T.tvm_storage_sync("shared")', '    if tx < 2:\n'
                         '        T.tvm_storage_sync("shared")')
    with pytest.raises(InterpError, match="never reach"):
        evaluate(func(kernel(one)), a, np.zeros(8, "float32"))


def test_what_has_no_meaning_is_said():
    with pytest.raises(InterpError, match="no meaning"):
        evaluate(func('def main():\n    T.evaluate(T.call_extern("int32", "getpid"))'))
