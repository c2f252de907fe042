"""Iteration maps: what they claim (onto, one to one), their inverses and divisions, by counting."""

import itertools
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlc_lab import tir
from mlc_lab.arith import (
    Analyzer, IterMark, detect_iter_map, estimate_region_lower_bound,
    estimate_region_strict_bound, estimate_region_upper_bound, inverse_affine_iter_map,
    iter_map_simplify, normalize_iter_map_to_expr, normalize_to_iter_sum, subspace_divide,
)
from mlc_lab.arith import iter_map
from mlc_lab.arith.expr_util import TRUE
from mlc_lab.tir import IntImm, Range, SizeVar, Var

from .common import function_of

I, J, K = VARS = tuple(Var(n, "int32") for n in "ijk")
EXTENTS = st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), min_size=3, max_size=3)
CONSTANTS = st.sampled_from([1, 2, 3, 4, 6, 8, 12])
DIVISORS = st.sampled_from([1, 2, 2, 3, 3, 4, 4, 6, 8, 12, -2, -3])


def const(value):
    return IntImm("int32", value)


def indices():
    """Random indices, most of them close to being iteration maps."""
    leaf = st.sampled_from(VARS)

    def extend(inner):
        return st.one_of(
            st.builds(lambda a, c, b: a * c + b, inner, CONSTANTS, inner),
            st.builds(lambda a, c: a // c, inner, DIVISORS),
            st.builds(lambda a, c: a % c, inner, DIVISORS),
            st.builds(lambda a, c: a + c, inner, st.integers(0, 4)),
            st.builds(lambda a, c: c - a, inner, st.integers(0, 4)),
            st.builds(lambda a, c: a * c, inner, CONSTANTS))

    return st.lists(st.recursive(leaf, extend, max_leaves=3), min_size=1, max_size=3)


def predicates():
    """No predicate, or an upper (or lower) limit of a sum."""
    limit = st.builds(lambda a, c, b, n: a * c + b < n, st.sampled_from(VARS), CONSTANTS,
                      st.sampled_from(VARS), st.integers(1, 40))
    single = st.builds(lambda a, n: a < n, st.sampled_from(VARS), st.integers(1, 8))
    lower = st.builds(lambda a, n: a >= n, st.sampled_from(VARS), st.integers(0, 3))
    total = st.builds(lambda a, b: a + b, st.sampled_from(VARS), st.sampled_from(VARS))
    part = st.one_of(st.builds(lambda a, c, n: a % c >= n, total, CONSTANTS, st.integers(0, 5)),
                     st.builds(lambda a, c, n: a // c >= n, total, CONSTANTS, st.integers(0, 3)))
    between = st.builds(lambda a, c, b, low, n: tir.all(a * c + b >= low, a * c + b < low + n),
                        st.sampled_from(VARS), CONSTANTS, st.sampled_from(VARS),
                        st.integers(0, 6), st.integers(1, 12))
    return st.one_of(st.just(TRUE), st.just(TRUE), limit, single, lower, part, between,
                     st.builds(tir.logical_and, limit, single))


def setting(extents, starts=(0, 0, 0)):
    doms = {v: Range(s, s + n) for v, n, s in zip(VARS, extents, starts)}
    points = list(itertools.product(*(range(s, s + n) for n, s in zip(extents, starts))))
    return doms, points


def values_of(exprs, points):
    fs = [function_of(tir.op.convert(e), VARS) for e in exprs]
    return [tuple(f(*p) for f in fs) for p in points]


@settings(max_examples=600, deadline=None)
@given(indices(), EXTENTS, predicates(), st.sampled_from(["surjective", "bijective", "nocheck"]),
       st.sampled_from([(0, 0, 0), (0, 0, 0), (1, 0, 2)]))
def test_what_detection_claims_is_true(exprs, extents, predicate, level, starts):
    doms, points = setting(extents, starts)
    found = detect_iter_map(exprs, doms, predicate, level)
    holds = function_of(predicate, VARS)
    points = [p for p in points if holds(*p)]
    if not found.indices:
        assert found.errors
        return
    if not points:
        return
    values = values_of(exprs, points)
    assert values_of([normalize_iter_map_to_expr(e) for e in found.indices], points) == values
    assert all(len(e.args) <= 1 for e in found.indices)
    for column, total in zip(zip(*values), found.indices):  # extents are what they say
        split = total.args[0] if total.args else None
        size = split.extent if split is not None else 1
        scale = split.scale if split is not None else 1
        assert set(column) <= {total.base + scale * n for n in range(size)}
    if level != "nocheck":
        sides = [set(column) for column in zip(*values)]
        assert set(values) == set(itertools.product(*sides))
        for column, total in zip(sides, found.indices):
            assert len(column) == (total.args[0].extent if total.args else 1)
    if level == "bijective":
        assert len(set(values)) == len(points)
        assert len(points) == prod(len(set(c)) for c in zip(*values))


@settings(max_examples=300, deadline=None)
@given(indices(), EXTENTS, predicates())
def test_simplified_indices_have_the_same_values(exprs, extents, predicate):
    doms, points = setting(extents)
    holds = function_of(predicate, VARS)
    points = [p for p in points if holds(*p)]
    new = iter_map_simplify(exprs, doms, predicate)
    assert values_of(new, points) == values_of(exprs, points)


@settings(max_examples=400, deadline=None)
@given(indices(), EXTENTS, predicates(), st.sampled_from([(0, 0, 0), (2, 0, 1)]))
def test_the_inverse_of_a_bijective_map_gives_the_iterators_back(exprs, extents, predicate, starts):
    doms, points = setting(extents, starts)
    found = detect_iter_map(exprs, doms, predicate, "bijective")
    if not found.indices:
        return
    outputs = [Var(f"o{i}", "int32") for i in range(len(exprs))]
    inverse = inverse_affine_iter_map(found.indices, outputs)
    holds = function_of(predicate, VARS)
    points = [p for p in points if holds(*p)]
    for point, value in zip(points, values_of(exprs, points)):
        for var, e in inverse.items():
            assert function_of(e, outputs)(*value) == point[VARS.index(var)]
    for var in doms:
        assert var in inverse or len({p[VARS.index(var)] for p in points}) <= 1


@settings(max_examples=400, deadline=None)
@given(indices(), EXTENTS, predicates(), st.sets(st.sampled_from(VARS)))
def test_a_division_puts_outer_and_inner_together_again(exprs, extents, predicate, inner):
    doms, points = setting(extents)
    found = subspace_divide(exprs, doms, inner, predicate)
    if not found:
        return
    holds = function_of(predicate, VARS)
    for e, (outer_mark, inner_mark) in zip(exprs, found):
        outer_e = normalize_iter_map_to_expr(outer_mark)
        inner_e = normalize_iter_map_to_expr(inner_mark)
        assert not any(tir.uses_var(outer_e, v) for v in inner)
        assert not any(tir.uses_var(inner_e, v) for v in VARS if v not in inner)
        f, g, h = (function_of(tir.op.convert(x), VARS) for x in (e, outer_e, inner_e))
        for p in points:
            if holds(*p):
                assert f(*p) == g(*p) * inner_mark.extent + h(*p)
                # the base of each half is its first value
                assert 0 <= g(*p) - outer_mark.source.base < outer_mark.extent
                assert 0 <= h(*p) - inner_mark.source.base < inner_mark.extent
    outer_pred, inner_pred = (function_of(p, VARS) for p in found[-1])
    assert all((outer_pred(*p) and inner_pred(*p)) or not holds(*p) for p in points)


# ------------------------------------------------------------------------------- by hand


def test_fused_and_split_loops_are_bijective():
    r = Range(0, 64 * 128)
    found = detect_iter_map([I // 128, I % 128], {I: r}, True, "bijective")
    assert [repr(normalize_iter_map_to_expr(e)) for e in found.indices] == ["i // 128", "i % 128"]
    a, b = Var("a", "int32"), Var("b", "int32")
    assert repr(inverse_affine_iter_map(found.indices, [a, b])[I]) == "a * 128 + b"


def test_a_predicate_makes_an_uneven_split_bijective():
    doms = {I: Range(0, 43), J: Range(0, 3)}
    assert detect_iter_map([I * 3 + J], doms, I * 3 + J < 128, "bijective").indices
    assert [repr(e) for e in iter_map_simplify([(I * 3 + J) // 4], doms, I * 3 + J < 128)] == [
        "(i * 3 + j) // 4"]


@pytest.mark.parametrize("exprs,word", [
    ([I, I], "overlapping"), ([I * J], "product"), ([I * 5 + J], "radix"),
    ([tir.min(I, J)], "affine"), ([I // 3, I % 3], "evenly"), ([I % 6 // 4], "divide"),
], ids=lambda e: str(e) if isinstance(e, str) else None)
def test_what_is_no_map_is_refused_with_a_reason(exprs, word):
    found = detect_iter_map(exprs, {I: Range(0, 8), J: Range(0, 4)})
    assert not found.indices
    assert word in found.errors[0]


def test_a_sliding_window_is_surjective_but_not_bijective():
    doms = {I: Range(0, 8), J: Range(0, 3)}
    found = detect_iter_map([I * 2 + J], doms, True, "surjective")
    assert found.indices[0].args[0].extent == 17
    assert not detect_iter_map([I * 2 + J], doms, True, "bijective").indices


def test_a_missing_iterator_is_surjective_but_not_bijective():
    doms = {I: Range(0, 8), J: Range(0, 4)}
    assert detect_iter_map([I], doms, True, "surjective").indices
    assert not detect_iter_map([I], doms, True, "bijective").indices


def test_symbolic_extents_fuse_and_split():
    n = SizeVar("n", "int32")
    doms = {I: Range(0, 8), J: Range(0, n)}
    found = detect_iter_map([I * n + J], doms, True, "bijective")
    assert repr(normalize_iter_map_to_expr(found.indices[0])) == "i * n + j"
    found = detect_iter_map([I // n, I % n], {I: Range(0, n * 8)}, True, "bijective")
    assert [repr(normalize_iter_map_to_expr(e)) for e in found.indices] == ["i // n", "i % n"]


def test_trivial_iterators_are_kept_on_demand():
    doms = {I: Range(0, 1), J: Range(0, 4)}
    assert [repr(e) for e in iter_map_simplify([I * 4 + J], doms)] == ["j"]
    kept = iter_map_simplify([I * 4 + J], doms, simplify_trivial_iterators=False)
    assert [repr(e) for e in kept] == ["i * 4 + j"]


def test_indices_that_stay_are_the_same_objects():
    e = I * 4 + J
    assert iter_map_simplify([e, K], {I: Range(0, 8), J: Range(0, 4), K: Range(0, 3)})[0] is e


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.permutations(VARS), st.integers(1, 3), st.sampled_from([0, 0, 0, 1])),
                min_size=1, max_size=3),
       EXTENTS, st.sampled_from([0, 0, 0, 1]), st.booleans(),
       st.sampled_from(["surjective", "bijective", "nocheck"]))
def test_what_is_seen_to_be_normal_at_a_glance_is_what_the_whole_way_gives(
        written, extents, first, trivial, level):
    doms = {v: Range.from_min_extent(const(0 if v is not K else first), const(n))
            for v, n in zip(VARS, extents)}
    exprs = []
    for order, length, wrong in written:
        terms, scale = [], 1
        for v in order[:length]:
            terms.append(v * scale)
            scale *= doms[v].extent.value + wrong
        exprs.append(sum(terms[-2::-1], terms[-1]))
    quick = iter_map_simplify(exprs, doms, TRUE, level, None, trivial)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iter_map, "_is_normal", lambda *given: False)
        slow = iter_map_simplify(exprs, doms, TRUE, level, None, trivial)
    assert [repr(e) for e in quick] == [repr(e) for e in slow]


def test_a_condition_from_below_is_no_first_value_of_a_half():
    doms = {I: Range(0, 4), J: Range(0, 2), K: Range(0, 3)}
    held = tir.all(1 <= I * 2 + J, I * 2 + J < 5)
    (_, inner), _ = subspace_divide([I * 2 + J + 2], doms, [I, J], held)
    assert (inner.source.base, inner.extent) == (3, 4)
    assert repr(normalize_iter_map_to_expr(inner.source.args[0])) == "i * 2 + j - 1"


def test_blockize_divides_the_inner_loops_off():
    doms = {I: Range(0, 4), J: Range(0, 4), K: Range(0, 3)}
    (outer, inner), preds = subspace_divide([I * 12 + J * 3 + K], doms, [K])
    assert (repr(normalize_iter_map_to_expr(outer)), outer.extent) == ("i * 4 + j", 16)
    assert (repr(normalize_iter_map_to_expr(inner)), inner.extent) == ("k", 3)
    assert all(p.value for p in preds)


def test_best_effort_sums_keep_what_is_not_affine_in_the_base():
    total = normalize_to_iter_sum(J + I * 4 + tir.min(I, J), {I: Range(0, 8), J: Range(0, 4)})
    assert [s.scale for s in total.args] == [4, 1]
    assert isinstance(total.base, tir.Min)


def test_marks_are_printed_with_their_parts():
    assert "extent=4" in repr(IterMark(I, 4))


# ------------------------------------------------------------------------------- regions


@settings(max_examples=400, deadline=None)
@given(indices(), EXTENTS, predicates(), st.sets(st.sampled_from(VARS)),
       st.lists(st.integers(1, 3), min_size=3, max_size=3))
def test_regions_are_bounded_as_promised(exprs, extents, predicate, relaxed, sizes):
    doms, points = setting(extents)
    inner = {v: doms[v] for v in VARS if v in relaxed}
    analyzer = Analyzer()
    for v in VARS:
        if v not in inner:
            analyzer.bind(v, doms[v])
    region = [Range.from_min_extent(e, const(n)) for e, n in zip(exprs, sizes)]
    strict = estimate_region_strict_bound(region, inner, predicate, analyzer)
    lower = estimate_region_lower_bound(region, inner, predicate, analyzer)
    upper = estimate_region_upper_bound(region, inner, predicate, analyzer)
    fs = [function_of(e, VARS) for e in exprs]
    holds = function_of(predicate, VARS)
    fixed = [i for i, v in enumerate(VARS) if v not in inner]
    groups = {}
    for p in points:
        groups.setdefault(tuple(p[i] for i in fixed), []).append(p)
    for group in groups.values():
        inside = [p for p in group if holds(*p)]
        if not inside:
            continue
        touched = set()
        for p in inside:
            touched |= set(itertools.product(*(range(f(*p), f(*p) + n)
                                               for f, n in zip(fs, sizes))))

        def box(sets, p=group[0]):
            return set(itertools.product(*(
                range(function_of(s.min_value, VARS)(*p), function_of(s.max_value, VARS)(*p) + 1)
                for s in sets)))

        if all(s.has_lower_bound() and s.has_upper_bound() for s in upper):
            assert touched <= box(upper)
        if strict is not None:
            assert touched == box(strict)
        if lower is not None:
            assert box(lower) <= touched


def test_what_counts_downwards_is_not_divided_from_its_first_value_on():
    """(2 - i) % 2 was bounded by 3 and 0, and a buffer of that shape had a negative extent."""
    region = [Range.from_min_extent((2 - I) % 2, const(1))]
    assert estimate_region_strict_bound(region, {I: Range(0, 3)}) is None
    (bound,) = estimate_region_upper_bound(region, {I: Range(0, 3)})
    assert (bound.min_value.value, bound.max_value.value) == (0, 1)


def test_a_limit_of_a_sum_within_a_remainder_limits_its_iterators():
    region = [Range.from_min_extent(I, const(1))]
    doms = {I: Range(0, 6), J: Range(0, 3)}
    assert estimate_region_strict_bound(region, doms, (I + J) % 8 >= 5) is None


def test_a_tile_touches_a_tile():
    region = [Range.from_min_extent(I * 4 + J, const(1)), Range.from_min_extent(K, const(3))]
    rows, columns = estimate_region_strict_bound(region, {J: Range(0, 4), K: Range(0, 8)})
    assert (repr(rows.min_value), repr(rows.max_value)) == ("i * 4", "i * 4 + 3")
    assert (repr(columns.min_value), repr(columns.max_value)) == ("0", "9")


def test_a_reversed_index_touches_from_its_last_value_to_its_first():
    def touched(start, length):
        found = estimate_region_strict_bound(
            [Range.from_min_extent(start, const(length))], {J: Range(0, 5)})
        return found and (repr(found[0].min_value), repr(found[0].max_value))

    assert touched(const(4) - J, 1) == ("0", "4")
    assert touched(I - J * 2, 2) == ("i - 8", "i + 1")
    assert touched(const(9) - J * 2, 1) is None  # gaps


def test_a_diagonal_has_no_strict_bound_but_an_upper_one():
    region = [Range.from_min_extent(J, const(1))] * 2
    assert estimate_region_strict_bound(region, {J: Range(0, 4)}) is None
    found = estimate_region_upper_bound(region, {J: Range(0, 4)})
    assert [(repr(s.min_value), repr(s.max_value)) for s in found] == [("0", "3")] * 2


def test_a_region_that_grows_with_a_loop_has_only_an_upper_bound():
    region = [Range.from_min_extent(const(0), J + 1)]
    assert estimate_region_strict_bound(region, {J: Range(0, 4)}) is None
    found, = estimate_region_upper_bound(region, {J: Range(0, 4)})
    assert (repr(found.min_value), repr(found.max_value)) == ("0", "3")
