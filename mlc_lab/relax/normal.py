"""What normal form means: leaves, blocks, and the struct info of a call of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from ..arith import Analyzer
from ..ir.module import GlobalVar
from ..tir import expr as E
from ..tir.functor import free_vars
from .expr import (
    BindingBlock, Call, Constant, DataTypeImm, DataflowVar, ExternFunc, PrimValue,
    ShapeExpr, StringImm, Tuple, Var,
)
from .op.common import show
from .op.registry import StructInfoError
from .struct_info import (
    OBJECT, BaseCheck, FuncStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, prims_of,
    struct_info_base_check, substitute_struct_info, erase_to_well_defined,
)

if TYPE_CHECKING:
    from .expr import Expr

LEAVES = frozenset((Var, DataflowVar, Constant, ShapeExpr, PrimValue, StringImm, DataTypeImm,
                    ExternFunc, GlobalVar))


def is_leaf(expr: Expr) -> bool:
    """Whether an expression may be an argument as it stands, tuples left aside."""
    return type(expr) in LEAVES


def is_leaf_tuple(expr: Expr) -> bool:
    """Whether it is a tuple of leaves (or of such tuples)."""
    return type(expr) is Tuple and all(is_leaf(f) or is_leaf_tuple(f) for f in expr.fields_)


def merge_blocks(blocks: Sequence[BindingBlock]) -> list[BindingBlock]:
    """Blocks without empty ones, neighbours that are no dataflow blocks joined."""
    out: list[BindingBlock] = []
    for block in blocks:
        if not block.bindings:
            continue
        if out and type(out[-1]) is BindingBlock and type(block) is BindingBlock:
            out[-1] = BindingBlock(out[-1].bindings + block.bindings)
        else:
            out.append(block)
    return out


def mentions_unknown(info: StructInfo | None, known: set[E.Var]) -> bool:
    """Whether a struct info mentions a symbolic variable that is not known."""
    return any(v not in known for p in prims_of(info) for v in free_vars(p))


def _match(pattern: E.PrimExpr, value: E.PrimExpr, found: dict[E.Var, E.PrimExpr]) -> None:
    if isinstance(pattern, E.Var) and pattern not in found:
        found[pattern] = value


def match_struct_info(pattern: StructInfo, given: StructInfo,
                      found: dict[E.Var, E.PrimExpr]) -> None:
    """Learn the values of the symbolic variables of a parameter from an argument."""
    if type(pattern) is not type(given):
        return
    if isinstance(pattern, TensorStructInfo) and isinstance(given, TensorStructInfo):
        if type(pattern.shape) is ShapeExpr and given.dims is not None:
            for p, v in zip(pattern.shape.values, given.dims):
                _match(p, v, found)
        return
    if isinstance(pattern, TupleStructInfo) and isinstance(given, TupleStructInfo):
        for p, v in zip(pattern.fields_, given.fields_):
            match_struct_info(p, v, found)
        return
    for p, v in zip(prims_of(pattern), prims_of(given)):
        _match(p, v, found)


def derive_call(info: FuncStructInfo, call: Call) -> StructInfo:
    """The struct info of a call of a function. Raises StructInfoError where arguments misfit."""
    name = getattr(call.op, "name_hint", None) or getattr(call.op, "global_symbol", "function")
    if info.params is None:
        if info.derive is not None:
            return info.derive(call)
        return call.sinfo_args[0] if len(call.sinfo_args) == 1 else info.ret
    if len(info.params) != len(call.args):
        raise StructInfoError(name, f"takes {len(info.params)} argument(s), {len(call.args)} "
                                    "given")
    found: dict[E.Var, E.PrimExpr] = {}
    given = [a.struct_info_ if a.struct_info_ is not None else OBJECT for a in call.args]
    for param, arg in zip(info.params, given):
        match_struct_info(param, arg, found)
    analyzer = Analyzer()
    for k, (param, arg) in enumerate(zip(info.params, given)):
        wanted = substitute_struct_info(param, found)
        if struct_info_base_check(wanted, arg, analyzer) is BaseCheck.FAIL_L0:
            raise StructInfoError(name, f"argument {k + 1} must be {show(wanted)}, it is "
                                        f"{show(arg)}")
    own = {v for p in info.params for e in prims_of(p) for v in free_vars(e)} - set(found)
    ret = substitute_struct_info(info.ret, found)
    return erase_to_well_defined(ret, lambda v: v not in own) if own else ret


__all__ = ["LEAVES", "derive_call", "is_leaf", "is_leaf_tuple", "match_struct_info",
           "mentions_unknown", "merge_blocks"]
