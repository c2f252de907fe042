"""Calls by name (of intrinsics, C functions, registered functions, LLVM), `ret`, and `let`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..expr import Call, Let, PrimExpr, StringImm, Var, int32
from .conversion import const, convert

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ..buffer import Buffer
    from ..expr import ExprLike, Op


def call_intrin(dtype: str, func_name: str | Op, *args: ExprLike | str, span: object = None
                ) -> PrimExpr:
    """A call of an intrinsic by name with the result type given.

    Raises ValueError where there is no intrinsic of that name.
    """
    return Call(dtype, func_name, tuple(convert(a) for a in args))


def call_extern(dtype: str, func_name: str, *args: ExprLike | str, span: object = None) -> PrimExpr:
    """A call of the C function `func_name`."""
    return call_intrin(dtype, "tir.call_extern", StringImm(func_name), *args)


def call_pure_extern(dtype: str, func_name: str, *args: ExprLike | str, span: object = None
                     ) -> PrimExpr:
    """A call of the C function `func_name`, which has no side effects."""
    return call_intrin(dtype, "tir.call_pure_extern", StringImm(func_name), *args)


def call_packed(*args: Any, span: object = None) -> PrimExpr:
    """A call of a registered function by name; buffers are passed as tensors."""
    return Call("int32", "tir.tvm_call_packed", tuple(
        _tensor_header(a) if hasattr(a, "elem_offset") else convert(a) for a in args))


def _tensor_header(buffer: Buffer) -> PrimExpr:
    """A buffer as an argument: its pointer, shape, strides and offset."""
    def shape(dims: Sequence[PrimExpr]) -> PrimExpr:
        return Call("handle", "tir.tvm_stack_make_shape", tuple(dims))

    strides = shape(buffer.strides) if buffer.strides else int32(0)
    return Call("handle", "tir.tvm_stack_make_array", (
        buffer.data, shape(buffer.shape), strides, int32(len(buffer.shape)),
        const(0, buffer.dtype), buffer.elem_offset))


def call_llvm_intrin(dtype: str, name: str | PrimExpr, *args: ExprLike, span: object = None
                     ) -> PrimExpr:
    """A call of an LLVM intrinsic by its name, e.g. "llvm.fma.v4f32"."""
    return call_intrin(dtype, "tir.call_llvm_intrin", name, *args)


def call_llvm_pure_intrin(dtype: str, name: str | PrimExpr, *args: ExprLike, span: object = None
                          ) -> PrimExpr:
    """A call of an LLVM intrinsic without side effects."""
    return call_intrin(dtype, "tir.call_llvm_pure_intrin", name, *args)


def ret(value: ExprLike, span: object = None) -> PrimExpr:
    """Return `value` from the function."""
    value = convert(value)
    return Call(value.dtype, "tir.ret", (value,))


def let(var: Var, value: ExprLike, body: PrimExpr) -> PrimExpr:
    """body with var standing for value."""
    return Let(var, convert(value, var), body)


__all__ = [
    "call_extern", "call_intrin", "call_llvm_intrin", "call_llvm_pure_intrin", "call_packed",
    "call_pure_extern", "let", "ret",
]
