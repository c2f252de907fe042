"""Rewriting and collecting the dimensions, values and shape variables of struct info."""

from __future__ import annotations

from typing import Callable, Iterable, Mapping

from ..arith import Analyzer
from ..tir import expr as E
from ..tir.functor import free_vars, substitute
from .struct_info_nodes import (
    Expr, FuncStructInfo, PrimStructInfo, ShapeExpr, ShapeStructInfo, StructInfo,
    TensorStructInfo, TupleStructInfo, as_dim,
)

def map_struct_info(info: StructInfo, on_prim: Callable[[E.PrimExpr], E.PrimExpr],
                    on_expr: Callable[[Expr], Expr | None] | None = None) -> StructInfo:
    """`info` with its dimensions and shape variables replaced; the same object if none changed.

    `on_expr` may answer None for a shape's variable: then the shape is forgotten.
    """
    if type(info) is TensorStructInfo:
        shape = info.shape
        if shape is None:
            return info
        if type(shape) is ShapeExpr:
            new = _map_values(shape.values, on_prim)
            return info if new is shape.values else TensorStructInfo.from_fields(
                ShapeExpr.from_fields(tuple(map(as_dim, new))), info.dtype, info.ndim,
                info.vdevice)
        new = on_expr(shape) if on_expr is not None else shape
        return info if new is shape else TensorStructInfo(new, info.dtype, info.vdevice, info.ndim)
    if type(info) is ShapeStructInfo:
        if info.values is None:
            return info
        new = _map_values(info.values, on_prim)
        return info if new is info.values else ShapeStructInfo(new)
    if type(info) is PrimStructInfo:
        if info.value is None:
            return info
        new = on_prim(info.value)
        return info if new is info.value else PrimStructInfo(info.dtype, new)
    if type(info) is TupleStructInfo:
        new = tuple(map_struct_info(f, on_prim, on_expr) for f in info.fields_)
        return info if all(a is b for a, b in zip(new, info.fields_)) else TupleStructInfo(new)
    if type(info) is FuncStructInfo:
        params = info.params if info.params is None else tuple(
            map_struct_info(p, on_prim, on_expr) for p in info.params)
        ret = map_struct_info(info.ret, on_prim, on_expr)
        if ret is info.ret and all(a is b for a, b in zip(params or (), info.params or ())):
            return info
        return FuncStructInfo(params, ret, info.purity, info.derive)
    return info


def _map_values(values: tuple, on_prim: Callable[[E.PrimExpr], E.PrimExpr]) -> tuple:
    new = tuple(v if type(v) is E.IntImm else on_prim(v) for v in values)
    return values if all(a is b for a, b in zip(new, values)) else new


def substitute_struct_info(info: StructInfo, tir_map: Mapping[E.Var, E.PrimExpr],
                           var_map: Mapping[Expr, Expr] | None = None) -> StructInfo:
    """`info` with symbolic dimensions (and shape variables) replaced by maps."""
    if not tir_map and not var_map:
        return info
    analyzer = Analyzer()

    def prim(e: E.PrimExpr) -> E.PrimExpr:
        new = substitute(e, tir_map)
        return e if new is e else as_dim(analyzer.simplify(new))

    return map_struct_info(info, prim, lambda v: (var_map or {}).get(v, v))


def prims_of(info: StructInfo | None) -> Iterable[E.PrimExpr]:
    """The dimensions and scalar values that `info` mentions, in order."""
    if type(info) is TensorStructInfo:
        if type(info.shape) is ShapeExpr:
            yield from info.shape.values
    elif type(info) is ShapeStructInfo:
        yield from info.values or ()
    elif type(info) is PrimStructInfo:
        if info.value is not None:
            yield info.value
    elif type(info) is TupleStructInfo:
        for item in info.fields_:
            yield from prims_of(item)
    elif type(info) is FuncStructInfo:
        for item in info.params or ():
            yield from prims_of(item)
        yield from prims_of(info.ret)


def tir_vars_in_struct_info(info: StructInfo | None) -> list[E.Var]:
    """The symbolic variables that `info` mentions, each once, in order of appearance."""
    found: dict[E.Var, None] = {}
    for item in prims_of(info):
        if type(item) is not E.IntImm:
            found.update(dict.fromkeys(free_vars(item)))
    return list(found)


def definable_tir_vars(info: StructInfo | None) -> list[E.Var]:
    """The symbolic variables that a value of this struct info gives a value to.

    A dimension that is a plain variable defines it; `n + 1` does not define n.
    """
    if type(info) is FuncStructInfo:
        return []
    if type(info) is TupleStructInfo:
        found: dict[E.Var, None] = {}
        for item in info.fields_:
            found.update(dict.fromkeys(definable_tir_vars(item)))
        return list(found)
    return list(dict.fromkeys(p for p in prims_of(info) if isinstance(p, E.Var)))


def erase_to_well_defined(info: StructInfo, keep_tir: Callable[[E.Var], bool] | None = None,
                          keep_var: Callable[[Expr], bool] | None = None) -> StructInfo:
    """`info` with every shape forgotten that mentions a variable that is not kept."""
    def known(values: Iterable[E.PrimExpr]) -> bool:
        return keep_tir is None or all(
            type(v) is E.IntImm or all(keep_tir(x) for x in free_vars(v)) for v in values)

    if type(info) is TensorStructInfo:
        shape = info.shape
        if shape is None:
            return info
        fine = known(shape.values) if type(shape) is ShapeExpr else (
            keep_var is None or keep_var(shape))
        return info if fine else TensorStructInfo(None, info.dtype, info.vdevice, info.ndim)
    if type(info) is ShapeStructInfo:
        return info if known(info.values or ()) else ShapeStructInfo(ndim=info.ndim)
    if type(info) is PrimStructInfo:
        return info if info.value is None or known((info.value,)) else PrimStructInfo(info.dtype)
    if type(info) is TupleStructInfo:
        return TupleStructInfo([erase_to_well_defined(f, keep_tir, keep_var)
                                for f in info.fields_])
    return info


__all__ = ["definable_tir_vars", "erase_to_well_defined", "map_struct_info", "prims_of",
           "substitute_struct_info", "tir_vars_in_struct_info"]
