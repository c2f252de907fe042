"""When one struct info is at least as general as another, and what two have in common.

Dimensions are compared by `arith.Analyzer` where they are symbolic.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Sequence

from ..arith import Analyzer
from ..ir.structural import structural_equal
from ..tir import expr as E
from ..tir import op as O
from .struct_info_nodes import (
    OBJECT, FuncStructInfo, ObjectStructInfo, PrimStructInfo, ShapeStructInfo, StructInfo,
    TensorStructInfo, TupleStructInfo,
)

def same_dim(a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer | None = None) -> bool:
    """Whether two dimensions are surely equal."""
    if a is b:
        return True
    if type(a) is E.IntImm and type(b) is E.IntImm:
        return a.value == b.value
    return (analyzer or Analyzer()).can_prove_equal(a, b)


def surely_different(a: E.PrimExpr, b: E.PrimExpr, analyzer: Analyzer | None = None) -> bool:
    """Whether two dimensions can never be equal (n and n + 1)."""
    if type(a) is E.IntImm and type(b) is E.IntImm:
        return a.value != b.value
    if a is b:
        return False
    difference = (analyzer or Analyzer()).simplify(O.sub(a, b))
    return type(difference) is E.IntImm and difference.value != 0


def same_shape(a: Any, b: Any, analyzer: Analyzer | None = None) -> bool:
    """Whether two sequences of dimensions are surely equal."""
    return len(a) == len(b) and all(same_dim(x, y, analyzer) for x, y in zip(a, b))




class BaseCheck(IntEnum):
    """How one struct info relates to another, from surely unrelated to surely a subtype."""

    FAIL_L0 = 0  # no value has both
    FAIL_L1 = 1  # some value may have both, seen from the kinds
    FAIL_L2 = 2  # cannot be proved, a run-time check decides
    PASS = 3


BaseCheckResult = BaseCheck


def _check_dims(base: Sequence[Any], derived: Sequence[Any], analyzer: Analyzer) -> BaseCheck:
    if len(base) != len(derived):
        return BaseCheck.FAIL_L0
    result = BaseCheck.PASS
    for a, b in zip(base, derived):
        if not same_dim(a, b, analyzer):
            if surely_different(a, b, analyzer):
                return BaseCheck.FAIL_L0
            result = BaseCheck.FAIL_L2
    return result


def _check_shape(base: tuple[Any, int], derived: tuple[Any, int], analyzer: Analyzer) -> BaseCheck:
    """Shapes as (dims or None, ndim)."""
    (dims_a, ndim_a), (dims_b, ndim_b) = base, derived
    if -1 not in (ndim_a, ndim_b) and ndim_a != ndim_b:
        return BaseCheck.FAIL_L0
    if ndim_b == -1 and ndim_a != -1:
        return BaseCheck.FAIL_L1
    if dims_a is None:
        return BaseCheck.PASS
    if dims_b is None:
        return BaseCheck.FAIL_L2
    return _check_dims(dims_a, dims_b, analyzer)


def struct_info_base_check(base: StructInfo, derived: StructInfo,
                           analyzer: Analyzer | None = None) -> BaseCheck:
    """Whether every value of `derived` has `base` too (PASS), or how far that is from true."""
    if base is derived:
        return BaseCheck.PASS
    analyzer = analyzer or Analyzer()
    if type(base) is ObjectStructInfo:
        return BaseCheck.PASS
    if type(derived) is ObjectStructInfo:
        return BaseCheck.FAIL_L1
    if type(derived) is not type(base):
        return BaseCheck.FAIL_L0
    if isinstance(base, TensorStructInfo) and isinstance(derived, TensorStructInfo):
        result = BaseCheck.PASS
        if base.dtype != derived.dtype and base.dtype:
            if derived.dtype:
                return BaseCheck.FAIL_L0
            result = BaseCheck.FAIL_L1
        if base.vdevice is not None and base.vdevice != derived.vdevice:
            if derived.vdevice is not None:
                return BaseCheck.FAIL_L0
            result = BaseCheck.FAIL_L1
        if base.shape is not None and base.shape is derived.shape:
            return result
        return min(result, _check_shape((base.dims, base.ndim), (derived.dims, derived.ndim),
                                        analyzer))
    if isinstance(base, ShapeStructInfo) and isinstance(derived, ShapeStructInfo):
        return _check_shape((base.values, base.ndim), (derived.values, derived.ndim), analyzer)
    if isinstance(base, PrimStructInfo) and isinstance(derived, PrimStructInfo):
        if base.dtype != derived.dtype:
            return BaseCheck.FAIL_L0
        if base.value is None:
            return BaseCheck.PASS
        if derived.value is None:
            return BaseCheck.FAIL_L2
        return _check_dims((base.value,), (derived.value,), analyzer)
    if isinstance(base, TupleStructInfo) and isinstance(derived, TupleStructInfo):
        if len(base.fields_) != len(derived.fields_):
            return BaseCheck.FAIL_L0
        return min((struct_info_base_check(a, b, analyzer)
                    for a, b in zip(base.fields_, derived.fields_)), default=BaseCheck.PASS)
    assert isinstance(base, FuncStructInfo) and isinstance(derived, FuncStructInfo)
    return _check_func(base, derived, analyzer)


def _check_func(base: FuncStructInfo, derived: FuncStructInfo, analyzer: Analyzer) -> BaseCheck:
    if base.purity and not derived.purity:
        return BaseCheck.FAIL_L0
    result = struct_info_base_check(base.ret, derived.ret, analyzer)
    if base.params is None:
        return result
    if derived.params is None:
        return min(result, BaseCheck.FAIL_L2)
    if structural_equal(base, derived) is True:
        return BaseCheck.PASS
    if len(base.params) != len(derived.params):
        return BaseCheck.FAIL_L0
    for a, b in zip(base.params, derived.params):  # parameters vary the other way
        result = min(result, struct_info_base_check(b, a, analyzer))
    return result


def is_base_of(base: StructInfo, derived: StructInfo) -> bool:
    """Whether every value of `derived` surely has `base` too."""
    return struct_info_base_check(base, derived) is BaseCheck.PASS


def struct_info_lca(a: StructInfo, b: StructInfo, analyzer: Analyzer | None = None) -> StructInfo:
    """The most precise struct info that values of both have."""
    analyzer = analyzer or Analyzer()
    if struct_info_base_check(a, b, analyzer) is BaseCheck.PASS:
        return a
    if struct_info_base_check(b, a, analyzer) is BaseCheck.PASS:
        return b
    if isinstance(a, TensorStructInfo) and isinstance(b, TensorStructInfo):
        dtype = a.dtype if a.dtype == b.dtype else ""
        vdevice = a.vdevice if a.vdevice == b.vdevice else None
        if a.ndim != b.ndim:
            return TensorStructInfo(None, dtype, vdevice)
        if a.shape is not None and (a.shape is b.shape or (
                a.dims is not None and b.dims is not None
                and same_shape(a.dims, b.dims, analyzer))):
            return TensorStructInfo(a.shape, dtype, vdevice)
        return TensorStructInfo(None, dtype, vdevice, a.ndim)
    if isinstance(a, ShapeStructInfo) and isinstance(b, ShapeStructInfo):
        return ShapeStructInfo(ndim=a.ndim if a.ndim == b.ndim else -1)
    if isinstance(a, PrimStructInfo) and isinstance(b, PrimStructInfo):
        return PrimStructInfo(a.dtype) if a.dtype == b.dtype else OBJECT
    if isinstance(a, TupleStructInfo) and isinstance(b, TupleStructInfo):
        if len(a.fields_) != len(b.fields_):
            return OBJECT
        return TupleStructInfo([struct_info_lca(x, y, analyzer)
                                for x, y in zip(a.fields_, b.fields_)])
    if isinstance(a, FuncStructInfo) and isinstance(b, FuncStructInfo):
        ret = struct_info_lca(a.ret, b.ret, analyzer)
        purity = a.purity and b.purity
        if a.params is None or b.params is None or len(a.params) != len(b.params):
            return FuncStructInfo(None, ret, purity)
        same = all(x == y for x, y in zip(a.params, b.params))
        return FuncStructInfo(a.params if same else None, ret, purity)
    return OBJECT


__all__ = ["BaseCheck", "BaseCheckResult", "is_base_of", "same_dim", "same_shape",
           "struct_info_base_check", "struct_info_lca", "surely_different"]
