"""Rows of operators that make tensors."""

from __future__ import annotations

from typing import Any

from ... import topi
from ..expr import Call, Expr
from .common import attr_row, immediate, known, legalize, prim


@legalize("full")
def _full(bb: Any, call: Call) -> Expr:
    shape, value = call.args
    dtype = known(call.attrs.dtype) or value.struct_info.dtype
    return bb.call_te(topi.full, shape, dtype, immediate(value))


@legalize("full_like")
def _full_like(bb: Any, call: Call) -> Expr:
    x, value = call.args
    dtype = known(call.attrs.dtype) or x.struct_info.dtype
    return bb.call_te(topi.full, x.struct_info.shape, dtype, immediate(value),
                      primfunc_name_hint="full")


def _filled(value: int) -> Any:
    def row(bb: Any, call: Call) -> Expr:
        info = call.struct_info
        return bb.call_te(topi.full, info.shape, info.dtype, value,
                          primfunc_name_hint="ones" if value else "zeros")

    return row


for _name in ("zeros", "zeros_like"):
    legalize(_name)(_filled(0))
for _name in ("ones", "ones_like"):
    legalize(_name)(_filled(1))


@legalize("arange")
def _arange(bb: Any, call: Call) -> Expr:
    start, end, step = map(prim, call.args)
    return bb.call_te(topi.arange, start, end, step, call.attrs.dtype)


@legalize("eye")
def _eye(bb: Any, call: Call) -> Expr:
    n, m, k = map(prim, call.args)
    return bb.call_te(topi.eye, n, m, k, call.attrs.dtype)


@legalize("eye_like")
def _eye_like(bb: Any, call: Call) -> Expr:
    info = call.struct_info
    return bb.call_te(topi.eye, *info.dims, prim(call.args[1]), info.dtype,
                      primfunc_name_hint="eye")


attr_row("tril", lambda x, attrs: topi.tril(x, attrs.k))
attr_row("triu", lambda x, attrs: topi.triu(x, attrs.k))
