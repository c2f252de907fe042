"""Forms that hold over all that follows: lets, assertions, allocations, attributes, threads."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...ir import dtype as dt
from ...tir import expr as E
from ...tir import op as O
from ...tir import stmt as S
from .. import tir as T
from ..values import Pending
from .buffers import shape_of
from .table import form, of_syntax

if TYPE_CHECKING:
    from ...tir.expr import IterVar, Var
    from ..parser import Parser


@form("Assert")
def assert_form(parser: Parser, condition: Any, message: Any = "") -> Pending:
    """The rest, after making sure of a condition."""
    condition, message = O.convert(T.as_expr(condition)), O.convert(message)
    return Pending(lambda name: parser.emit(
        lambda body: S.AssertStmt(condition, message, body)))


@form("LetStmt")
def let_stmt(parser: Parser, value: Any, type_annotation: object = None, *,
             var: Var | None = None) -> Pending:
    """The rest, with a variable bound to a value."""
    value = O.convert(T.as_expr(value))

    def finish(name: str) -> E.Var:
        bound = var
        if bound is None:
            kind = type_annotation
            if isinstance(kind, T.DtypeName):
                bound = E.Var(name, kind.dtype)
            elif isinstance(kind, E.Var):
                bound = kind.with_name(name)
            else:
                hint = value.type_annotation if isinstance(value, E.Var) else None
                bound = E.Var(name, hint if hint is not None else value.dtype)
        parser.emit(lambda body: S.LetStmt(bound, value, body))
        return bound

    return Pending(finish)


@of_syntax("Let")
def let_expr(parser: Parser, node: ast.Call) -> Any:
    """T.Let(body, where={x: value}): binds x in body. The values do not see the names."""
    where = next((k.value for k in node.keywords if k.arg == "where"), None)
    if where is None and len(node.args) > 1:
        where = node.args[1]
    if not node.args or not isinstance(where, ast.Dict):
        raise parser.error(node, "it is T.Let(body, where={x: value})")
    pairs = []
    for key, value in zip(where.keys, where.values):
        if not isinstance(key, ast.Name):
            raise parser.error(key or node, "T.Let binds names")
        value = O.convert(parser.operand(value))
        hint = value.type_annotation if isinstance(value, E.Var) else None
        pairs.append((E.Var(key.id, hint if hint is not None else value.dtype), value))
    parser.scopes.append({var.name: var for var, _ in pairs})
    body = O.convert(parser.operand(node.args[0]))
    parser.scopes.pop()
    for var, value in reversed(pairs):
        body = E.Let(var, value, body)
    return body


@form("allocate")
def allocate(parser: Parser, extents: Any, dtype: Any,
             scope: str = "global", condition: Any = None,
             annotations: dict | None = None) -> Pending:
    """The rest, with a pointer to fresh memory."""
    dtype = T.dtype_of(dtype)
    extents = shape_of(extents)
    condition = S.TRUE if condition is None else O.convert(condition)
    notes = {k: S.annotation_value(v) for k, v in (annotations or {}).items()} or S.EMPTY

    def finish(name: str) -> E.Var:
        element = "int8" if dtype == "bool" else dtype
        var = E.Var(name, E.PointerType(E.PrimType(element), scope))
        parser.emit(lambda body: S.Allocate(var, dtype, extents, condition, body, notes))
        return var

    return Pending(finish)


@form("allocate_const")
def allocate_const(parser: Parser, data: object, dtype: Any,
                   extents: Any, annotations: dict | None = None
                   ) -> Pending:
    """The rest, with a pointer to constant data."""
    import numpy as np

    dtype = T.dtype_of(dtype)
    extents = shape_of(extents)
    shape = [O.as_int(e) for e in extents]
    array = None if data is None else np.array(data, dtype=dt.numpy_dtype(dtype)).reshape(shape)
    notes = {k: S.annotation_value(v) for k, v in (annotations or {}).items()} or S.EMPTY

    def finish(name: str) -> E.Var:
        var = E.Var(name, E.PointerType(E.PrimType(dtype), "global"))
        parser.emit(lambda body: S.AllocateConst(var, dtype, extents, array, body, notes))
        return var

    return Pending(finish)


@form("attr")
def attr(parser: Parser, node: Any, attr_key: str, value: Any) -> Pending:
    """The rest under an attribute."""
    value = O.convert(T.as_expr(value))
    if isinstance(node, (int, float)) and not isinstance(node, bool):
        node = O.const(node)
    return Pending(lambda name: parser.emit(
        lambda body: S.AttrStmt(node, attr_key, value, body)))


@form("realize")
def realize(parser: Parser, *args: object) -> None:
    """Refused: BufferRealize belongs to a stage of TVM that does not exist here."""
    raise ValueError("T.realize belongs to TE's old lowering, which this compiler does not have")


@form("env_thread")
def env_thread(parser: Parser, thread_tag: str, dtype: str = "int32") -> Pending:
    """A GPU thread axis, launched later."""

    def finish(name: str) -> E.ThreadAxis:
        return E.IterVar(None, E.Var(name, dtype), E.IterVar.ThreadIndex, thread_tag)

    return Pending(finish)


@form("launch_thread")
def launch_thread(parser: Parser, thread: IterVar | str, extent: Any) -> Pending:
    """The rest, run by `extent` threads of an axis."""
    extent = E.const_index(T.as_expr(extent))

    def finish(name: str) -> E.Var:
        if isinstance(thread, E.IterVar):
            axis = E.IterVar(None, thread.var, thread.iter_type, thread.thread_tag)
        elif isinstance(thread, str):
            axis = E.IterVar(None, E.Var(name, extent.dtype), E.IterVar.ThreadIndex, thread)
        else:
            raise TypeError('T.launch_thread takes a thread axis such as "threadIdx.x"')
        key = "virtual_thread" if axis.thread_tag.startswith("vthread") else "thread_extent"
        parser.emit(lambda body: S.AttrStmt(axis, key, extent, body))
        return axis.var

    return Pending(finish)
