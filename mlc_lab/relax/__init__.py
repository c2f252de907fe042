"""Relax, the language of whole models. Its whole grammar (a test keeps it in step):

    Expr    = Var(name_hint, struct_info_) | DataflowVar | GlobalVar(name_hint)
            | Constant(data) | ShapeExpr(values) | PrimValue(value) | StringImm(value)
            | DataTypeImm(value) | ExternFunc(global_symbol)
            | Tuple(fields_) | TupleGetItem(tuple_value, index)
            | Call(op, args, attrs, sinfo_args) | If(cond, true_branch, false_branch)
            | SeqExpr(blocks, body)
            | Function(params, body, ret_struct_info, is_pure, attrs)

    Block   = BindingBlock(bindings) | DataflowBlock
    Binding = VarBinding(var, value) | MatchCast(var, value, struct_info)

    Info    = TensorStructInfo(shape, dtype, ndim) | ShapeStructInfo(values, ndim)
            | PrimStructInfo(dtype, value) | TupleStructInfo(fields_)
            | FuncStructInfo(params, ret, purity) | ObjectStructInfo

Values are in normal form: what is nested in a call is a leaf or a tuple of leaves, and every
expression knows its struct info. A dataflow block is a piece of a computation graph: no effects, no
control flow; its DataflowVars are seen only in it.

Read `struct_info.py`, `expr.py`, `op/registry.py`, `block_builder.py`, `expr_functor.py`, then the
parser and printer of `R.` in `script/`, and the passes in `transform/`.
"""

from importlib import import_module as _import_module

from ..above import above as _above
from . import expr, expr_functor, op, script, struct_info
from .block_builder import BlockBuilder
from .expr import (
    Binding, BindingBlock, Call, Constant, DataTypeImm, DataflowBlock, DataflowVar, Expr,
    ExternFunc, Function, GlobalVar, If, MatchCast, PrimExpr, PrimValue, SeqExpr, StringImm, Tuple,
    TupleGetItem, Var, VarBinding, const, extern, get_shape_of,
)
from .expr_functor import PyExprMutator, PyExprVisitor
from .struct_info import (
    FuncStructInfo, ObjectStructInfo, PrimStructInfo, ShapeExpr, ShapeStructInfo, StructInfo,
    TensorStructInfo, TupleStructInfo,
)

#: names loaded when first asked for: name -> "module" or "module:name" of this package
_LATER: dict[str, str] = {
    "analysis": "analysis", "dpl": "dpl", "utils": "utils", "transform": "transform",
    "backend": "libraries", "frontend": "frontend", "vm": "vm", "libraries": "libraries",
    "register_library": "libraries:register_library",
    "args_converter": "args_converter:args_converter",
    "convert_to_expr": "utils:convert_to_expr",
    "binding_rewrite": "binding_rewrite",
    "DataflowBlockRewrite": "binding_rewrite:DataflowBlockRewrite",
    "call_tir": "op:call_tir", "call_tir_inplace": "op:call_tir_inplace",
    "call_tir_with_grad": "op:call_tir_with_grad",
    "call_dps_packed": "op:call_dps_packed", "call_pure_packed": "op:call_pure_packed",
    "training": "training", "pipeline": "pipeline", "well_formed": "analysis:well_formed",
    "get_pipeline": "pipeline:get_pipeline", "build": "building:build",
    "get_default_pipeline": "pipeline:get_default_pipeline",
    "register_pipeline": "pipeline:register_pipeline",
    "ExecBuilder": "vm.exec_builder:ExecBuilder", "VirtualMachine": "vm:VirtualMachine",
    "Executable": "vm:Executable",
    "VMExecutable": "vm:Executable", "VMInstrumentReturnKind": "vm:VMInstrumentReturnKind",
}


def __getattr__(name: str) -> object:
    """A part of the package that is loaded late."""
    path = _LATER.get(name)
    if path is None:
        if not name.startswith("_"):  # a name of another version
            other = _above("names of relax").get(name)
            if other is not None:
                return other
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = path.partition(":")
    try:
        found: object = _import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{module}":
            raise
        raise AttributeError(f"relax.{name} is not part of this version") from error
    value = getattr(found, attribute) if attribute else found
    globals()[name] = value
    return value


__all__ = [
    "Binding", "BindingBlock", "BlockBuilder", "Call", "Constant", "DataTypeImm", "DataflowBlock",
    "DataflowVar", "Expr", "ExternFunc", "FuncStructInfo", "Function", "GlobalVar", "If",
    "MatchCast", "ObjectStructInfo", "PrimExpr", "PrimStructInfo", "PrimValue", "PyExprMutator",
    "PyExprVisitor", "SeqExpr", "ShapeExpr", "ShapeStructInfo", "StringImm", "StructInfo",
    "TensorStructInfo", "Tuple", "TupleGetItem", "TupleStructInfo", "Var", "VarBinding", "const",
    "expr", "expr_functor", "extern", "get_shape_of", "op", "script",
    "struct_info",
]
