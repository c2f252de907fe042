"""Struct info and dimensions as TVMScript, and what the printer knows of the function it is in.

A symbol is a string in the head of its function (`R.Tensor(("n", 4))`) and declared at the top of
the body (`n = T.int64()`).
"""

from __future__ import annotations

from typing import Any, Callable

from ...ir.diagnostics import WellFormedError
from ...script.print_expr import quote
from ...script.print_parts import var_creation
from ...script.printer import Printer
from ...tir import expr as E
from ...tir.functor import free_vars
from .. import struct_info as SI


class State:
    """What is known of the Relax function being printed."""

    __slots__ = ("frame", "insert_at", "heading", "head_vars", "used", "cls")

    def __init__(self, frame: Any, used: set[Any]) -> None:
        self.frame, self.used = frame, used
        #: the line where the next definition goes; None while the head is printed
        self.insert_at: int | None = None
        self.heading = True
        self.head_vars: list[str] = []
        self.cls = False


def states_of(p: Printer) -> list[State]:
    return p.__dict__.setdefault("_relax_functions", [])


def insert(p: Printer, state: State, text: str) -> None:
    """Add a line at the top of the body of the function."""
    at = state.insert_at
    assert at is not None  # the head is printed
    p.out.insert(at, text)
    state.insert_at = at + 1
    for other in states_of(p):
        if other is not state and other.insert_at is not None and other.insert_at >= at:
            other.insert_at += 1
    for frame in p.frames:
        if frame.start >= at and frame is not state.frame:
            frame.start += 1


# ------------------------------------------------------------------------------- scalars, shapes


def _symbol(p: Printer, var: E.Var) -> None:
    """Define a symbolic variable at the top of the outermost function, where it is new."""
    if var in p.names:
        return
    states = states_of(p)
    if not states:
        if not p.frames:
            p.enter(None)
        p.define(var, var.name or "v")
        return
    state = states[0]
    name = p.define(var, var.name or "v", state.frame)
    line = f"{name} = {var_creation(p, var)}"
    if state.insert_at is None:
        state.head_vars.append(line)
    else:
        insert(p, state, p.step * (1 if not state.frame.indent else 2) + line)


def prim(p: Printer, value: E.PrimExpr) -> str:
    """A dimension or scalar; int64 constants are plain numbers."""
    if type(value) is E.IntImm and value.dtype in ("int64", "bool"):
        return str(bool(value.value)) if value.dtype == "bool" else str(value.value)
    for var in free_vars(value):
        _symbol(p, var)
    saved, p.int_dtype = p.int_dtype, "int64"
    text = p.expr(value)
    p.int_dtype = saved
    if f"{p.T}." in text:
        p.used.add("T")
    return text


def dim(p: Printer, value: E.PrimExpr) -> str:
    """A dimension of a shape; in the head of a function what names symbols is a string."""
    text = prim(p, value)
    states = states_of(p)
    if type(value) is not E.IntImm and states and states[0].heading and free_vars(value):
        escaped = text.replace('"', '\\"')  # not quote(): the text may hold marks of spans
        return f'"{escaped}"'
    return text


def sequence(items: list[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


# ------------------------------------------------------------------------------- struct info


def tensor_info(p: Printer, info: SI.TensorStructInfo) -> str:
    """R.Tensor((n, 4), dtype="float32")"""
    args = []
    if type(info.shape) is SI.ShapeExpr:
        args.append(sequence([dim(p, d) for d in info.shape.values]))
        if not info.shape.values:
            args[0] = "()"
    elif info.shape is not None:
        args.append(p.attr(info.shape))
    if info.dtype:
        args.append(f"dtype={quote(info.dtype)}")
    if info.shape is None and info.ndim != -1:
        args.append(f"ndim={info.ndim}")
    if info.vdevice is not None:
        args.append(f"vdevice={p.attr(info.vdevice)}")
    return f"{p.R}.Tensor({', '.join(args)})" if args else f"{p.R}.Tensor"


def shape_info(p: Printer, info: SI.ShapeStructInfo) -> str:
    """R.Shape([n, 4]) or R.Shape(ndim=2)"""
    if info.values is not None:
        return f"{p.R}.Shape([{', '.join(dim(p, v) for v in info.values)}])"
    return f"{p.R}.Shape(ndim={info.ndim})"


def prim_info(p: Printer, info: SI.PrimStructInfo) -> str:
    """R.Prim("int64") or R.Prim(value=n)"""
    if info.value is None:
        return f"{p.R}.Prim({quote(info.dtype)})"
    return f"{p.R}.Prim(value={dim(p, info.value)})"


def tuple_info(p: Printer, info: SI.TupleStructInfo) -> str:
    """R.Tuple(...)"""
    if not info.fields_:
        return f"{p.R}.Tuple"
    return f"{p.R}.Tuple({', '.join(struct_info(p, f) for f in info.fields_)})"


def func_info(p: Printer, info: SI.FuncStructInfo) -> str:
    """R.Callable((params), ret, purity)"""
    if info.params is None:
        if type(info.ret) is SI.ObjectStructInfo and not info.purity:
            return f"{p.R}.Callable"
        return f"{p.R}.Callable(ret={struct_info(p, info.ret)}, purity={info.purity})"
    params = sequence([struct_info(p, f) for f in info.params]) if info.params else "()"
    return f"{p.R}.Callable({params}, {struct_info(p, info.ret)}, {info.purity})"


INFO: dict[type, Callable[[Printer, Any], str]] = {
    SI.TensorStructInfo: tensor_info, SI.ShapeStructInfo: shape_info, SI.PrimStructInfo: prim_info,
    SI.TupleStructInfo: tuple_info, SI.FuncStructInfo: func_info,
    SI.ObjectStructInfo: lambda p, info: f"{p.R}.Object",
}


def struct_info(p: Printer, info: SI.StructInfo | None) -> str:
    """The text of a struct info."""
    p.used.add("R")
    if type(info) not in INFO:
        raise WellFormedError("a variable has no struct info: normalize the function first",
                              "grammar", info)
    return INFO[type(info)](p, info)


__all__ = ["INFO", "State", "insert", "prim", "sequence", "states_of", "struct_info"]
