"""SplitVector: vectors of a power of two of lanes, and the numbers that the whole vector gives."""

import numpy as np
import pytest

import mlc_lab as tvm
from mlc_lab.backend.interp import interpret
from mlc_lab.ir.module import IRModule
from mlc_lab.ir.structural import structural_equal
from mlc_lab.lower import SplitVector, lower
from mlc_lab.script import from_source
from mlc_lab.script import tir as T
from mlc_lab.tir import stmt as S
from mlc_lab.tir.functor import pre_order
from .programs import arguments, run


def tile_of(rows, lanes):
    @T.prim_func
    def tile(A: T.Buffer((rows, 20), "float32"), B: T.Buffer((20, lanes), "float32"),
             C: T.Buffer((rows, lanes), "float32")):
        T.func_attr({"tir.noalias": True})
        for k in range(20):
            for i in T.unroll(rows):
                for j in T.vectorized(lanes):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]

    return tile


@pytest.mark.parametrize("lanes", [3, 5, 7, 9, 11, 17, 21, 31, 33, 49])
def test_a_tile_of_odd_vectors_stays_in_registers(lanes):
    """Vectors of powers of two, and a scalar for the last lane: LLVM can hold those."""
    func = tile_of(3, lanes)
    rng = np.random.default_rng(lanes)
    a, b, c = (rng.standard_normal(s).astype("float32") for s in ((3, 20), (20, lanes), (3, lanes)))
    want = c + a @ b
    lib = tvm.build(func, target="llvm")
    out = tvm.nd.array(c.copy())
    lib["tile"](tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-5, atol=1e-5)
    args = [a, b, c.copy()]
    interpret(func, *args)
    np.testing.assert_allclose(args[2], want, rtol=1e-5, atol=1e-5)
    assert f"<{lanes} x float>" not in lib.get_source("ll")


def split(func):
    """The lowered function before and after the pass; both give the same, and so does its text."""
    before = lower(IRModule({"main": func}), until="LowerIntrin")
    after = SplitVector()(before)
    args = arguments(before["main"])
    for a, b in zip(run(before, args), run(after, args)):
        np.testing.assert_array_equal(a, b)
    assert structural_equal(from_source(after.script()), after, True) is True
    assert SplitVector()(after) is after
    return before, after


def stores(mod):
    return [s for s in pre_order(mod["main"].body) if type(s) is S.BufferStore]


@pytest.mark.parametrize(("lanes", "parts"), [(3, [2, 1]), (12, [8, 4]), (31, [16, 8, 4, 2, 1])])
def test_the_largest_powers_of_two_come_first(lanes, parts):
    @T.prim_func
    def scale(A: T.Buffer((lanes,), "float32"), C: T.Buffer((lanes,), "float32")):
        T.func_attr({"tir.noalias": True})
        for j in T.vectorized(lanes):
            C[j] = T.exp(A[j]) * T.float32(2) + C[j]

    _, after = split(scale)
    assert [int(s.value.dtype.partition("x")[2] or 1) for s in stores(after)] == parts


@T.prim_func
def shifted(A: T.Buffer((24,), "float32")):
    A[4:16] = A[0:12] + T.Broadcast(T.float32(1), 12)


@T.prim_func
def other_arguments(A: T.Buffer((12,), "float32"), C: T.Buffer((12,), "float32")):
    C[0:12] = A[0:12] + T.Broadcast(T.float32(1), 12)


@pytest.mark.parametrize("func", [shifted, other_arguments])
def test_values_are_computed_before_one_is_stored(func):
    _, after = split(func)
    names = [s for s in pre_order(after["main"].body) if type(s) is S.LetStmt]
    assert len(names) == len(stores(after)) == 2


def test_two_arguments_that_share_memory():
    """Machine code reads the whole vector before it writes a part, as the interpreter does."""
    memory = np.arange(24, dtype="float32")
    want = memory.copy()
    interpret(other_arguments, want[:12], want[4:16])
    lib = tvm.build(other_arguments, target="llvm")
    lib["other_arguments"](memory[:12], memory[4:16])
    np.testing.assert_array_equal(memory, want)


@T.prim_func
def even(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for j in T.vectorized(16):
        C[j] = A[j]


@T.prim_func
def apart(A: T.Buffer((24,), "float32"), C: T.Buffer((24,), "float32")):
    for j in T.vectorized(12):
        C[j * 2] = A[j]


@T.prim_func
def reinterpreted(A: T.Buffer((12,), "float32"), C: T.Buffer((12,), "int32")):
    for j in T.vectorized(12):
        C[j] = T.reinterpret("int32", A[j])


@pytest.mark.parametrize("func", [even, apart, reinterpreted])
def test_other_stores_stay(func):
    before, after = split(func)
    assert after is before
