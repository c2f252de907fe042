"""NarrowDataType and ForceNarrowIndexToInt32: narrower indices, the same program."""

import numpy as np
import pytest

from mlc_lab.backend.interp import interpret
from mlc_lab.ir import structural_equal
from mlc_lab.ir.module import IRModule
from mlc_lab.lower import ForceNarrowIndexToInt32, LowerError, NarrowDataType
from mlc_lab.script import from_source
from mlc_lab.tir import For, pre_order


def narrowed(text, step):
    return step(IRModule({"main": from_source(text)}))["main"]


NEST = """
@T.prim_func
def main(A: T.Buffer(({size},), "float32"), B: T.Buffer(({size},), "float32")):
    for i, j in T.grid({m}, {n}):
        B[i * {n} + j] = A[i * {n} + j] + T.float32(1)
"""


@pytest.mark.parametrize("m, n, bits, want", [
    ("2", "2", 32, "int32"), ("T.int64(2)", "T.int64(2)", 32, "int32"), ("2", "2", 16, "int16"),
    ("T.int64(65536)", "T.int64(65536)", 32, "int64"), ("1024", "1024", 16, "int32")])
def test_loops_are_as_narrow_as_what_is_computed_of_them(m, n, bits, want):
    func = narrowed(NEST.format(size=4, m=m, n=n), NarrowDataType(bits))
    assert {s.loop_var.dtype for s in pre_order(func.body) if isinstance(s, For)} == {want}


def test_a_narrow_program_computes_what_it_did():
    text = """
    @T.prim_func
    def main(A: T.Buffer((T.int64(64),), "float32"), B: T.Buffer((T.int64(64),), "int64")):
        for i in range(T.int64(8)):
            for j in range(T.int64(8)):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.where(i * T.int64(8) + j < T.int64(60))
                    B[vi * T.int64(8) + vj] = T.Cast("int64", A[vj * T.int64(8) + vi]) + (
                        vi * T.int64(1000000000))
    """
    before, after = from_source(text), narrowed(text, NarrowDataType(32))
    a = np.arange(64, dtype="float32")
    outs = []
    for func in (before, after):
        outs.append(np.zeros(64, "int64"))
        interpret(IRModule({"main": func}), a, outs[-1])
    np.testing.assert_array_equal(*outs)
    block = after.body.block.body.body.body.block if hasattr(after.body, "block") else None
    assert block is not None
    # a product of vi does not fit, and what is bound to it is as wide
    assert [iv.var.dtype for iv in block.iter_vars] == ["int64", "int32"]


def test_all_indices_are_int32_when_forced():
    after = narrowed("""
    @T.prim_func
    def main(A: T.Buffer((T.int64(128),), "float32"), n: T.int64):
        for i in range(T.int64(16)):
            A[i + n] = T.Select(T.int64(1) <= i, A[i], T.Cast("float32", i))
            A[T.int64(0)] = T.Cast("float32", T.clz(i))
    """, ForceNarrowIndexToInt32())
    want = from_source("""
    @T.prim_func
    def main(A: T.Buffer((128,), "float32"), n: T.int32):
        for i in range(16):
            A[i + n] = T.Select(1 <= i, A[i], T.Cast("float32", i))
            A[0] = T.Cast("float32", T.clz(i) - 32 + 64)
    """)
    assert structural_equal(after, want), after.script()


@pytest.mark.parametrize("text, why", [
    (NEST.format(size="T.int64(4)", m="T.int64(65536)", n="T.int64(65536)"), "needs int64"),
    ("@T.prim_func\ndef main(A: T.Buffer((4,), 'int64')):\n    A[0] = A[1]", "which are data")])
def test_what_fits_no_int32_is_refused(text, why):
    with pytest.raises(LowerError, match=why):
        narrowed(text, ForceNarrowIndexToInt32())


def test_regions_of_blocks_are_of_one_type():
    after = narrowed("""
    @T.prim_func
    def main(A: T.Buffer((T.int64(128),), "float32"), B: T.Buffer((T.int64(128),), "float32")):
        for i, j in T.grid(T.int64(16), T.int64(8)):
            with T.block("B"):
                vi = T.axis.spatial(T.int64(128), i * T.int64(8) + j)
                B[vi] = A[vi] + T.float32(1)
    """, NarrowDataType(32))
    (block,) = [n for n in pre_order(after.body) if getattr(n, "name_hint", "") == "B"]
    for region in (*block.reads, *block.writes):
        assert {e.dtype for r in region.region for e in (r.min, r.extent)} == {"int32"}
