"""Forms that TVM's simplifier comes to, which programs written for it compare with."""

import pytest

from mlc_lab import arith, tir
from mlc_lab.ir import structural_equal

x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
CASES = [
    (tir.truncdiv(x, 2) < 3, x < 6),
    (tir.truncmod(x + y * 10, -2), tir.truncmod(x + y * 10, 2)),
    ((x - x % 9) % 9, tir.IntImm("int32", 0)),
    (x - (x + y) // 5 * 5, (x + y) % 5 - y),
    (x * 3 - x // 2 * 6, x % 2 * 3),
    (tir.And(x // 8 == 3, x % 8 == 4), x == 28),
    (tir.And(x // 10 == 5, x % 10 < 7), tir.And(tir.LE(tir.IntImm("int32", 50), x), x < 57)),
    (tir.And(x < 20, x % 5 < 2), tir.And(x < 17, x % 5 < 2)),
    (tir.Cast("int32", tir.FloatImm("float32", -2.75)), tir.IntImm("int32", -2)),
    (tir.clz(tir.IntImm("int32", 128)), tir.IntImm("int32", 24)),
]


@pytest.mark.parametrize("before, after", CASES, ids=lambda e: repr(e))
def test_rewritten(before, after):
    analyzer = arith.Analyzer()
    assert structural_equal(analyzer.rewrite_simplify(before), after)


def test_a_value_less_itself_is_zero_in_each_type_of_integers():
    for dtype in ("int8", "uint8", "uint32", "uint64"):
        v = tir.Var("v", dtype)
        gone = arith.Analyzer().rewrite_simplify(tir.Sub(v, v))
        assert structural_equal(gone, tir.IntImm(dtype, 0))
        assert structural_equal(arith.Analyzer().rewrite_simplify(tir.EQ(v, v)),
                                tir.IntImm("bool", 1))
    f = tir.Var("f", "float32")  # is none where it is infinite
    assert isinstance(arith.Analyzer().rewrite_simplify(tir.Sub(f, f)), tir.Sub)


def test_modular_sets_of_bits():
    analyzer = arith.Analyzer()
    assert analyzer.modular_set((x * 4 + 2) >> 1) == (2, 1)
    assert analyzer.modular_set((x * 16 + y * 4) & 31) == (4, 0)
