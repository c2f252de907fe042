"""Making patterns, under TVM's names: wildcard(), is_op("relax.add"), is_const(), ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Sequence

from .pattern import (
    AttrPattern, CallPattern, ConstantPattern, DataTypePattern, DataflowVarPattern, DFPattern,
    ExprPattern, ExternFuncPattern, GlobalVarPattern, NotPattern, PrimArrPattern,
    TupleGetItemPattern, TuplePattern, UnorderedTuplePattern, VarPattern, WildcardPattern,
)

if TYPE_CHECKING:
    from ..expr import Expr


def wildcard() -> WildcardPattern:
    """Matches anything; standing twice, the same thing twice."""
    return WildcardPattern()


def is_op(op_name: str) -> ExprPattern:
    """An operator: `is_op("relax.add")(a, b)` matches its calls."""
    from ..op.registry import lookup

    return ExprPattern(lookup(op_name).op)


def is_expr(expr: Expr) -> ExprPattern:
    """Exactly this expression."""
    return ExprPattern(expr)


def is_var(name: str = "") -> VarPattern:
    """A variable."""
    return VarPattern(name)


def is_dfv(name: str = "") -> DataflowVarPattern:
    """A dataflow variable."""
    return DataflowVarPattern(name)


def is_gv(name: str = "") -> GlobalVarPattern:
    """A function of the module."""
    return GlobalVarPattern(name)


def is_const() -> ConstantPattern:
    """A constant."""
    return ConstantPattern()


def is_tuple(fields: Sequence[DFPattern] | None = None, unordered: bool = False) -> TuplePattern:
    """A tuple."""
    return UnorderedTuplePattern(fields) if unordered else TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """An item of a tuple."""
    return TupleGetItemPattern(tuple_value, index)


def is_shape(shape: Sequence[Any]) -> PrimArrPattern:
    """A shape as a value."""
    return PrimArrPattern(shape)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """A value of a dtype."""
    return DataTypePattern(pattern or wildcard(), dtype)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """A call with these attributes."""
    return AttrPattern(pattern or wildcard(), attrs)


def reject(pattern: DFPattern) -> NotPattern:
    """Anything but this."""
    return NotPattern(pattern)


def _destination_call(op_name: str, callee: DFPattern, args: Any) -> CallPattern:
    if args is None:
        return is_op(op_name)(callee, varg_default_wildcard=True)
    inner = args if isinstance(args, DFPattern) else TuplePattern(args)
    return is_op(op_name)(callee, inner, varg_default_wildcard=True)


def is_call_tir(func_name: str, args: Any = None) -> CallPattern:
    """R.call_tir of the function of that name."""
    return _destination_call("relax.call_tir", GlobalVarPattern(func_name), args)


def is_call_dps_packed(func_name: str, args: Any = None) -> CallPattern:
    """R.call_dps_packed of the function of that name."""
    return _destination_call("relax.call_dps_packed", ExternFuncPattern(func_name), args)


def is_call_packed(func_name: str, args: Any = None) -> CallPattern:
    """R.call_packed of the function of that name."""
    return CallPattern(ExternFuncPattern(func_name), args)


def make_fused_bias_activation_pattern(op_name: str, with_bias: bool = False,
                                       activation: str | None = None,
                                       allow_reshape: bool = False) -> DFPattern:
    """`op`, then an add of a bias, then an activation: what libraries offer as one kernel."""
    out: DFPattern = is_op(op_name)(wildcard(), wildcard())
    if allow_reshape:
        out = out | is_op("relax.reshape")(out, wildcard())
    if with_bias:
        out = is_op("relax.add")(out, wildcard())
    return is_op(activation)(out) if activation else out


__all__ = ["has_attr", "has_dtype", "is_call_dps_packed", "is_call_packed", "is_call_tir",
           "is_const", "is_dfv", "is_expr", "is_gv", "is_op", "is_shape", "is_tuple",
           "is_tuple_get_item", "is_var", "make_fused_bias_activation_pattern", "reject",
           "wildcard"]
