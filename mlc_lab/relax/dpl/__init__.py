"""The pattern language: shapes of computation graphs to look for, and rewrites of what is found.

    x = wildcard()
    gelu_like = is_op("relax.multiply")(x, is_op("relax.sigmoid")(x))
    gelu_like.match(expr)
    rewrite_call(gelu_like, lambda expr, found: relax.op.nn.silu(found[x]), mod["main"])

`pattern.py` has the patterns and how one matches, `make.py` their constructors, `context.py`
several patterns that must hang together (`used_by`, `only_used_by`), `rewrite.py` the rewrites.
"""

from .context import PatternContext
from .make import (
    has_attr, has_dtype, is_call_dps_packed, is_call_packed, is_call_tir, is_const, is_dfv,
    is_expr, is_gv, is_op, is_shape, is_tuple, is_tuple_get_item, is_var,
    make_fused_bias_activation_pattern, reject, wildcard,
)
from .pattern import (
    AndPattern, AttrPattern, CallPattern, ConstantPattern, DataTypePattern, DataflowVarPattern,
    DFPattern, ExprPattern, ExternFuncPattern, FunctionPattern, GlobalVarPattern, NotPattern,
    OrPattern, PatternSeq, PrimArrPattern, ShapePattern, StructInfoPattern, TupleGetItemPattern,
    TuplePattern, UnorderedTuplePattern, VarPattern, WildcardPattern,
)
from .rewrite import rewrite_bindings, rewrite_call

__all__ = [
    "AndPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DFPattern", "DataTypePattern",
    "DataflowVarPattern", "ExprPattern", "ExternFuncPattern", "FunctionPattern",
    "GlobalVarPattern", "NotPattern", "OrPattern", "PatternContext", "PatternSeq",
    "PrimArrPattern", "ShapePattern", "StructInfoPattern", "TupleGetItemPattern", "TuplePattern",
    "UnorderedTuplePattern", "VarPattern", "WildcardPattern", "has_attr", "has_dtype",
    "is_call_dps_packed", "is_call_packed", "is_call_tir", "is_const", "is_dfv", "is_expr",
    "is_gv", "is_op", "is_shape", "is_tuple", "is_tuple_get_item", "is_var",
    "make_fused_bias_activation_pattern", "reject", "rewrite_bindings", "rewrite_call", "wildcard",
]
