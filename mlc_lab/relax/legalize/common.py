"""What the rows share: registering, scalars as immediates, axes and layouts."""

from __future__ import annotations

from typing import Any, Callable

from ...tir import expr as E
from ... import topi
from ...tir import op as O
from ...topi.utils import sum_type
from ..expr import Call, Constant, Expr, PrimValue
from ..op.registry import register_legalize

Row = Callable[[Any, Call], Expr]


def legalize(name: str) -> Callable[[Row], Row]:
    """A decorator: the function is the row of `relax.<name>`."""
    return lambda fn: register_legalize(f"relax.{name}", fn)


def te_row(name: str, fn: Callable[..., Any], hint: str | None = None) -> None:
    """The row of an operator that is a function of its arguments alone, in their order."""
    hint = hint or name.rpartition(".")[2]

    def row(bb: Any, call: Call) -> Expr:
        args = list(map(immediate, call.args))
        if not any(isinstance(a, Expr) for a in args):  # a kernel reads at least one tensor
            args = list(call.args)
        return bb.call_te(fn, *args, primfunc_name_hint=hint)

    register_legalize(f"relax.{name}", row)


def attr_row(name: str, fn: Callable[..., Any], hint: str | None = None) -> None:
    """The row of an operator `fn(*arguments, attributes)`."""
    hint = hint or name.rpartition(".")[2]

    def row(bb: Any, call: Call) -> Expr:
        def made(*args: Any) -> Any:
            return fn(*args, call.attrs)

        return bb.call_te(made, *call.args, primfunc_name_hint=hint)

    register_legalize(f"relax.{name}", row)


def immediate(value: Any) -> Any:
    """A constant of no dimensions as a number in the program; anything else as it is."""
    if isinstance(value, Constant) and not value.data.shape:
        return O.const(value.data.numpy().item(), str(value.data.dtype))
    return value


def prim(value: Any) -> Any:
    """A Python number where a value is a known scalar; else an expression of the host program."""
    if isinstance(value, Constant) and not value.data.shape:
        return value.data.numpy().item()
    if isinstance(value, PrimValue):
        value = value.value
    return value.value if isinstance(value, (E.IntImm, E.FloatImm)) else value


def axis_list(axis: Any) -> Any:
    """An attribute of axes as a list, None where it means all."""
    if axis is None:
        return None
    return [axis] if isinstance(axis, int) else list(axis)


def known(value: Any) -> Any:
    """A dtype attribute, None for "void"."""
    return None if value in (None, "", "void") else value


def widened(x: Any) -> Any:
    """A te tensor in the type in which sums of its elements are kept."""
    wide = sum_type(x.dtype)
    return x if wide == x.dtype else topi.cast(x, wide)


def to_layout(value: Expr, layout: str, wanted: str) -> Expr:
    """A tensor with its dimensions in another order of letters."""
    if layout == wanted:
        return value
    from ..op.manipulate import permute_dims

    return permute_dims(value, [layout.index(c) for c in wanted])


def ndim_of(value: Expr) -> int:
    """The number of dimensions of a tensor."""
    return value.struct_info.ndim


__all__ = ["Row", "attr_row", "axis_list", "immediate", "known", "legalize", "ndim_of", "prim",
           "te_row", "to_layout", "widened"]
