"""The names of struct info, which TVM has in one place: its classes, and what is asked of them."""

from .struct_info_check import (
    BaseCheck, BaseCheckResult, is_base_of, same_dim, same_shape, struct_info_base_check,
    struct_info_lca, surely_different,
)
from .struct_info_functor import (
    definable_tir_vars, erase_to_well_defined, map_struct_info, prims_of, substitute_struct_info,
    tir_vars_in_struct_info,
)
from .struct_info_nodes import (
    MAKERS, OBJECT, Expr, FuncStructInfo, ItemsAsFields, ObjectStructInfo, PrimStructInfo,
    ShapeExpr, ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, as_dim,
)

__all__ = [
    "BaseCheck", "BaseCheckResult", "Expr", "FuncStructInfo", "ItemsAsFields", "MAKERS", "OBJECT",
    "ObjectStructInfo", "PrimStructInfo", "ShapeExpr", "ShapeStructInfo", "StructInfo",
    "TensorStructInfo", "TupleStructInfo", "as_dim", "definable_tir_vars",
    "erase_to_well_defined", "is_base_of", "map_struct_info", "prims_of", "same_dim",
    "same_shape", "struct_info_base_check", "struct_info_lca", "substitute_struct_info",
    "surely_different", "tir_vars_in_struct_info",
]
