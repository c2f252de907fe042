"""`Analyzer.update`: what is known of a variable is said without a range."""

import pytest

from mlc_lab import arith, tir


def test_bounds_are_used_and_replaced_only_when_asked():
    analyzer, x = arith.Analyzer(), tir.Var("x", "int32")
    analyzer.update(x, arith.ConstIntBound(0, 10))
    assert analyzer.const_int_bound(x * 2 + 1) == (1, 21)
    assert analyzer.can_prove(x < 11)
    analyzer.update(x, arith.ConstIntBound(0, 10))
    with pytest.raises(ValueError, match="override=True"):
        analyzer.update(x, arith.ConstIntBound(-5, 10))
    analyzer.update(x, arith.ConstIntBound(-5, 20), True)
    assert analyzer.const_int_bound(x) == (-5, 20)
    assert not analyzer.can_prove(x < 11)


def test_modular_sets_are_used():
    analyzer, x = arith.Analyzer(), tir.Var("x", "int32")
    analyzer.update(x, arith.ModularSet(4, 1))
    assert analyzer.modular_set(x + 2) == (4, 3)
    with pytest.raises(ValueError, match="override=True"):
        analyzer.update(x, arith.ModularSet(4, 2))


def test_sets_are_used():
    analyzer, x = arith.Analyzer(), tir.Var("x", "int32")
    analyzer.update(x, arith.IntSet.interval(2, 9))
    assert analyzer.const_int_bound(x) == (2, 9)
    y = tir.Var("y", "int32")
    analyzer.update(y, arith.IntSet(3, arith.int_set.pos_inf()))
    assert analyzer.can_prove(y >= 3)
    with pytest.raises(TypeError, match="ConstIntBound"):
        analyzer.update(x, 3)


def test_extensions_say_what_is_not_here():
    analyzer = arith.Analyzer()
    analyzer.enabled_extensions = arith.Extension.TransitivelyProveInequalities
    assert analyzer.enabled_extensions == arith.Extension.TransitivelyProveInequalities
    with pytest.raises(NotImplementedError, match="ConvertBooleanToAndOfOrs"):
        analyzer.enabled_extensions = arith.Extension.ConvertBooleanToAndOfOrs
    x = tir.Var("x", "int32")
    assert analyzer.can_prove(x + 1 > x, arith.ProofStrength.SYMBOLIC_BOUND)


def test_inequalities_are_followed_when_asked():
    analyzer = arith.Analyzer()
    i, j, k = (tir.Var(name, "int32") for name in "ijk")
    cases = [((i < j, j <= k), i < k), ((i <= j + 5, j <= k + 7), i <= k + 12),
             ((i == j, j < k), i != k), ((i < j + 5, j < k + 7), i < k + 11)]
    for facts, goal in cases:
        with analyzer.constraint_scope(tir.all(*facts)):
            assert not analyzer.can_prove(goal)
            analyzer.enabled_extensions = arith.Extension.TransitivelyProveInequalities
            assert analyzer.can_prove(goal)
            assert not analyzer.can_prove(goal.a + 20 < goal.b)
            analyzer.enabled_extensions = arith.Extension.NoExtensions
