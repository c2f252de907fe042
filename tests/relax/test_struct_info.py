"""Struct info: which is more general, what two have in common, symbolic dimensions."""

import pytest

from mlc_lab import relax
from mlc_lab.relax import struct_info as SI
from mlc_lab.relax.struct_info import BaseCheck, struct_info_base_check, struct_info_lca
from mlc_lab.tir import Var

n, m = Var("n", "int64"), Var("m", "int64")
T, S, P = relax.TensorStructInfo, relax.ShapeStructInfo, relax.PrimStructInfo
TU, F, OBJ = relax.TupleStructInfo, relax.FuncStructInfo, relax.ObjectStructInfo()


@pytest.mark.parametrize("base, derived, expected", [
    (OBJ, T((1,)), BaseCheck.PASS),
    (T((1,)), OBJ, BaseCheck.FAIL_L1),
    (T((n, 4)), T((n, 4)), BaseCheck.PASS),
    (T((n + 1, 4)), T((1 + n, 4)), BaseCheck.PASS),
    (T((n * 2,)), T((n + n,)), BaseCheck.PASS),
    (T((n,)), T((m,)), BaseCheck.FAIL_L2),
    (T((n,)), T((n + 1,)), BaseCheck.FAIL_L0),
    (T((2,)), T((3,)), BaseCheck.FAIL_L0),
    (T(ndim=2), T((2, n)), BaseCheck.PASS),
    (T((2, n)), T(ndim=2), BaseCheck.FAIL_L2),
    (T(ndim=2), T(ndim=3), BaseCheck.FAIL_L0),
    (T(ndim=2), T(), BaseCheck.FAIL_L1),
    (T((2,), ""), T((2,), "int8"), BaseCheck.PASS),
    (T((2,), "int8"), T((2,), ""), BaseCheck.FAIL_L1),
    (T((2,), "int8"), T((2,), "int16"), BaseCheck.FAIL_L0),
    (T((2,)), S((2,)), BaseCheck.FAIL_L0),
    (S(ndim=2), S((n, m)), BaseCheck.PASS),
    (S((n, m)), S((n, m)), BaseCheck.PASS),
    (P("int64"), P(value=3), BaseCheck.PASS),
    (P(value=3), P("int64"), BaseCheck.FAIL_L2),
    (P("int64"), P("int32"), BaseCheck.FAIL_L0),
    (TU([T(), OBJ]), TU([T((1,)), S((1,))]), BaseCheck.PASS),
    (TU([T((1,))]), TU([T((1,)), OBJ]), BaseCheck.FAIL_L0),
    (F([T((2,))], OBJ), F([T(ndim=1)], T((2,))), BaseCheck.PASS),
    (F([T(ndim=1)], OBJ), F([T((2,))], OBJ), BaseCheck.FAIL_L2),
    (F([OBJ], OBJ), F([OBJ], OBJ, purity=False), BaseCheck.FAIL_L0),
    (F([OBJ], OBJ, purity=False), F([OBJ], OBJ), BaseCheck.PASS),
])
def test_base_check(base, derived, expected):
    assert struct_info_base_check(base, derived) is expected
    assert base.is_base_of(derived) is (expected is BaseCheck.PASS)


@pytest.mark.parametrize("a, b, expected", [
    (T((n, 4)), T((n, 4)), T((n, 4))),
    (T((n, 4)), T((m, 4)), T(ndim=2)),
    (T((2,)), T((2, 2)), T()),
    (T((2,), "int8"), T((2,), "int16"), T((2,), "")),
    (T((2,)), S((2,)), OBJ),
    (S((n,)), S((m,)), S(ndim=1)),
    (S((n,)), S((n, m)), S()),
    (P(value=1), P(value=2), P("int64")),
    (TU([T((2,)), S((n,))]), TU([T((3,)), S((n,))]), TU([T(ndim=1), S((n,))])),
    (TU([T((2,))]), TU([]), OBJ),
    (F([T((2,))], T((2,))), F([T((2,))], T((3,))), F([T((2,))], T(ndim=1))),
])
def test_common_part(a, b, expected):
    assert struct_info_lca(a, b) == expected
    assert struct_info_lca(b, a) == expected
    assert struct_info_lca(a, b).is_base_of(a) and struct_info_lca(a, b).is_base_of(b)


def test_equality_and_hash_are_structural():
    assert T((n, 4)) == T((n, 4)) and hash(T((n, 4))) == hash(T((n, 4)))
    assert T((n, 4)) != T((m, 4)) and T((2,)) != T((2,), "int8")


def test_substitution_and_erasure():
    info = TU([T((n, m + 1)), S((m,)), P(value=n)])
    assert SI.substitute_struct_info(info, {m: SI.as_dim(3)}) == TU(
        [T((n, 4)), S((3,)), P(value=n)])
    assert SI.substitute_struct_info(info, {}) is info
    assert SI.erase_to_well_defined(info, lambda v: v is n) == TU([T(ndim=2), S(ndim=1),
                                                                   P(value=n)])
    assert SI.tir_vars_in_struct_info(info) == [n, m]
    assert SI.definable_tir_vars(info) == [n, m]
    assert SI.definable_tir_vars(T((n + 1,))) == []


def test_bad_struct_info_is_refused():
    with pytest.raises(TypeError, match=r"write \(4,\)"):
        T(4)
    with pytest.raises(ValueError, match="does not agree"):
        T((1, 2), ndim=3)
    with pytest.raises(TypeError, match="dimension"):
        T((1.5,))
    with pytest.raises(ValueError, match="unknown dtype"):
        T((1,), "flot32")


def test_int32_dimensions_become_int64():
    assert T((Var("k", "int32"),)).shape[0].dtype == "int64"


def test_a_shape_can_be_held_by_a_variable():
    s = relax.Var("s", S((n, 4)))
    info = T(s, "float32")
    assert info.ndim == 2 and info.dims == (n, info.dims[1])
    assert info.is_base_of(T(s, "float32"))
    with pytest.raises(TypeError, match="ShapeStructInfo"):
        T(relax.Var("x", T((1,))))
