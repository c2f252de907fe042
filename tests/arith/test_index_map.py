"""Index maps: inverses give the indices back, padding is where it is said to be."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlc_lab.tir import IntImm, Var
from mlc_lab.tir.function import IndexMap

from .common import function_of

CASES = [
    (lambda i: [i // 4, i % 4], [16]), (lambda i: [i // 4, i % 4], [14]),
    (lambda i, j: [i // 4, j, i % 4], [16, 8]), (lambda i, j: [j, i], [16, 8]),
    (lambda i, j: [i * 8 + j], [16, 8]), (lambda i, j: [i // 4, j // 4, i % 4, j % 4], [13, 11]),
    (lambda n, h, w, c: [n, h, c // 4, w, c % 4], [1, 3, 2, 10]),
    (lambda i: [(i + 1) // 4, (i + 1) % 4], [14]), (lambda i: [i + 1], [14]),
    (lambda i, j: [(i * 7 + j) // 4, (i * 7 + j) % 4], [4, 7]),
    (lambda i, j: [(i * 7 + j) // 4, (i * 7 + j) % 4], [3, 7]),
    (lambda i: [i // 4 // 2, i // 4 % 2, i % 4], [30]),
    (lambda i: [i // 8, i % 8 // 2, i % 2], [21]),
    (lambda i, j: [i, j // 3, j % 3], [1, 7]),
    (lambda i, j: [(i * 5 + j) // 6, (i * 5 + j) % 6], [4, 5]),
]


def check_inverse(mapping, shape):
    inverse, padding = mapping.non_surjective_inverse(shape)
    forward = [function_of(e, mapping.initial_indices) for e in mapping.final_indices]
    back = [function_of(e, inverse.initial_indices) for e in inverse.final_indices]
    padded = function_of(padding, inverse.initial_indices)
    reached = set()
    for point in itertools.product(*map(range, shape)):
        value = tuple(f(*point) for f in forward)
        assert tuple(f(*value) for f in back) == point
        assert value not in reached
        reached.add(value)
        assert not padded(*value)
    ranges = mapping.map_ranges(shape)
    box = itertools.product(*(range(r.min.value, r.min.value + r.extent.value) for r in ranges))
    for value in box:
        assert bool(padded(*value)) == (value not in reached), value


@pytest.mark.parametrize("func,shape", CASES)
def test_the_inverse_is_one_and_padding_is_the_rest(func, shape):
    check_inverse(IndexMap.from_func(func), shape)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 12), st.integers(1, 12), st.sampled_from([1, 2, 3, 4]),
       st.sampled_from([1, 2, 3, 5]), st.booleans())
def test_tiled_layouts_have_inverses(rows, columns, a, b, swap):
    def tile(i, j):
        outer, inner = [i // a, j // b], [i % a, j % b]
        return inner + outer if swap else outer + inner

    check_inverse(IndexMap.from_func(tile), [rows, columns])


def test_shapes_and_names_are_those_of_tvm():
    mapping = IndexMap.from_func(lambda i, j: [i // 4, j, i % 4])
    assert [int(d) for d in mapping.map_shape([14, 8])] == [4, 8, 4]
    inverse, padding = mapping.non_surjective_inverse([14, 8])
    assert repr(inverse) == "lambda axis0, j, axis2: (axis0 * 4 + axis2, j,)"
    assert repr(padding) == "axis0 == 3 and 2 <= axis2"


def test_bijectivity_is_told():
    mapping = IndexMap.from_func(lambda i: [i // 4, i % 4])
    assert mapping.is_bijective([16])
    assert not mapping.is_bijective([14])


def test_an_uneven_map_has_no_plain_inverse():
    mapping = IndexMap.from_func(lambda i: [i // 4, i % 4])
    with pytest.raises(ValueError, match="not bijective"):
        mapping.inverse([14])


@pytest.mark.parametrize("func,shape", [(lambda i, j: [i + j], [4, 4]), (lambda i, j: [i], [4, 4]),
                                        (lambda i: [i * i], [4])])
def test_what_cannot_be_inverted_is_refused(func, shape):
    with pytest.raises(ValueError, match="cannot be inverted"):
        IndexMap.from_func(func).non_surjective_inverse(shape)


def test_the_number_of_dimensions_must_fit():
    with pytest.raises(ValueError, match="takes 1 indices, but 2"):
        IndexMap.from_func(lambda i: [i]).inverse([4, 4])


def test_a_given_inverse_is_used():
    mapping = IndexMap.from_func(lambda i: [i * i], inverse_index_map=lambda j: [j])
    assert mapping.inverse([4]) is mapping.inverse_index_map
    i = Var("i", "int64")
    built = IndexMap([i], [i * i], lambda j: [j])
    assert built.inverse([4]).initial_indices[0].dtype == "int64"


def test_a_shape_of_int64_stays_one():
    mapping = IndexMap.from_func(lambda i: [i // 4, i % 4])
    for extent in (16, 14):
        assert [d.dtype for d in mapping.map_shape([IntImm("int64", extent)])] == ["int64"] * 2
        assert [d.dtype for d in mapping.map_shape([extent])] == ["int32"] * 2


@pytest.mark.parametrize("shape, one", [([4, 4], False), ([1, 4], False), ([1, 1], True)])
def test_a_map_to_nothing_is_of_one_element(shape, one):
    mapping = IndexMap.from_func(lambda i, j: (), 2)
    assert mapping.is_bijective(shape) == one
    if one:
        assert [int(i) for i in mapping.inverse(shape).final_indices] == [0, 0]
    else:
        with pytest.raises(ValueError, match="is lost"):
            mapping.inverse(shape)
