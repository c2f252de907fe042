"""LowerIntrin: powers become products, choices that cost little evaluate both sides."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab import tir
from mlc_lab.backend.interp import interpret
from mlc_lab.ir.module import IRModule
from mlc_lab.lower import SplitVector, lower
from mlc_lab.script import from_source
from mlc_lab.script import tir as T
from mlc_lab.tir.functor import pre_order
from .programs import arguments, run


def lowered(func):
    """The function after the pass."""
    return lower(IRModule({"main": func}), until="LowerIntrin")


def names(mod):
    """The intrinsics that a module calls, and what kinds of choices it has."""
    return {e.op.name if type(e) is tir.Call else "select"
            for e in pre_order(mod["main"].body) if type(e) in (tir.Call, tir.Select)}


def computed(func, *args):
    """What the machine code leaves in the last argument."""
    given = [tvm.nd.array(a) for a in args]
    tvm.build(func, target="llvm")(*given)
    return given[-1].numpy()


@pytest.mark.parametrize("loop", ["range", "T.vectorized"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("exponent", [2, 3])
def test_squares_and_cubes_are_products(loop, dtype, exponent):
    """They are computed once, also of an operand that is a computation, and rounded once."""
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((12,), "{dtype}"), B: T.Buffer((12,), "{dtype}")):
    for i in {loop}(12):
        B[i] = T.pow(T.pow(A[i] + T.{dtype}(1), T.{dtype}({exponent})), T.{dtype}(2))
""")
    mod = lowered(func)
    assert not names(mod)
    assert sum(type(e) is tir.BufferLoad for e in pre_order(mod["main"].body)) == 1
    a, b = np.linspace(-1.5, 1.5, 12).astype(dtype), np.zeros(12, dtype)
    wide = np.float32 if dtype == "float16" else np.dtype(dtype).type
    once = ((a + np.ones((), dtype)).astype(wide) ** exponent).astype(dtype)
    want = (once.astype(wide) ** 2).astype(dtype)
    bound = {"rtol": 0 if dtype == "float16" else 1e-6, "atol": 0}
    np.testing.assert_allclose(computed(func, a, b), want, **bound)
    interpret(mod["main"], a, b)
    np.testing.assert_allclose(b, want, **bound)


@pytest.mark.parametrize("power", ["T.pow(A[i], T.float32(2.5))", "T.pow(A[i], A[i])",
                                   "T.Cast('float32', T.pow(i, 3))"])
def test_other_powers_stay_calls(power):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = {power}
""")
    assert names(lowered(func)) == {"tir.pow"}


def test_products_in_vectors_of_odd_lanes_are_split():
    @T.prim_func
    def main(A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32")):
        for i in T.vectorized(12):
            B[i] = T.pow(T.pow(A[i] - T.float32(1), T.float32(3)), T.float32(3))

    before = lowered(main)
    after = SplitVector()(before)
    assert after is not before
    args = arguments(before["main"])
    for a, b in zip(run(before, args), run(after, args)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("condition", "a", "b", "left"), [
    ("i < 5", "T.float32(1)", "T.Cast('float32', i) * T.float32(2)", {"select"}),
    ("A[i] > T.float32(0)", "T.float32(1)", "T.float32(0)", {"select"}),
    ("i < 5 or i == 7", "T.float32(1)", "T.float32(0)", {"select"}),
    # What one part of a condition guards the other part reads.
    ("i < 8 and A[i] > T.float32(0)", "T.float32(1)", "T.float32(0)", {"tir.if_then_else"}),
    # A side that reads memory, or takes long, is evaluated where it is chosen.
    ("i < 8", "A[i]", "T.float32(0)", {"tir.if_then_else"}),
    ("i < 8", "T.exp(T.Cast('float32', i))", "T.float32(0)", {"tir.if_then_else", "tir.exp"}),
    ("i < 8", "T.Cast('float32', 8 // (8 - i))", "T.float32(0)", {"tir.if_then_else"}),
])
def test_choices_that_cost_little_are_selects(condition, a, b, left):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((9,), "float32")):
    for i in range({8 if condition.startswith("A") else 9}):
        B[i] = T.if_then_else({condition}, {a}, {b})
""")
    mod = lowered(func)
    assert names(mod) == left
    x = np.linspace(-1, 1, 8).astype("float32")
    want = np.zeros(9, "float32")
    interpret(func, x, want)
    got = np.zeros(9, "float32")
    interpret(mod["main"], x, got)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_allclose(computed(func, x, np.zeros(9, "float32")), want, rtol=1e-6)


def test_a_fixed_point_product_of_each_channel():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((6,), "int32"), Y: T.Buffer((6,), "int32"), L: T.Buffer((6,), "int32"),
         R: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    for i in range(6):
        B[i] = T.q_multiply_shift_per_axis(A[i], Y[i], L[i], R[i], 31, True, False)
        C[i] = T.q_multiply_shift_per_axis(A[i], Y[i], L[i], R[i], 31, False, True, dtype="int32")
""")
    a = np.array([1000, -1000, 3, 7, -(2**30), 12345], "int32")
    y = np.array([2**30, 2**30, 1 << 20, 1073741825, 2**31 - 1, 1732584193], "int32")
    left = np.array([0, 1, 5, 2, 0, 3], "int32")
    right = np.array([0, 1, 2, 0, 4, 7], "int32")
    wide = [int(v) for v in a.astype("int64") * y]
    want = [[(v << s if shifted else v) + (1 << (r + 30)) >> (r + 31)
             for v, s, r in zip(wide, map(int, left), map(int, right))] for shifted in (1, 0)]
    for execute in (lambda *args: interpret(func, *args), tvm.build(func, target="llvm")):
        b, c = np.zeros(6, "int32"), np.zeros(6, "int32")
        execute(a, y, left, right, b, c)
        np.testing.assert_array_equal(b, np.array(want[0], "int64").astype("int32"))
        np.testing.assert_array_equal(c, want[1])


def test_a_fixed_point_product_in_lanes():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in T.vectorized(8):
        B[i] = T.q_multiply_shift_per_axis(A[i], Y[i], 2, 1, 31, True, True)
""")
    a = np.arange(-4, 4, dtype="int32") * 100
    y = np.full(8, 2**30 + 12345, "int32")
    want = np.zeros(8, "int32")
    interpret(func, a, y, want)
    np.testing.assert_array_equal(computed(func, a, y, np.zeros(8, "int32")), want)
    assert want[0] == -400
