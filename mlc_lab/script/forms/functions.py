"""Forms about the function: its attributes and return type; and `T.evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tir import op as O
from ...tir import stmt as S
from .. import tir as T
from .table import form

if TYPE_CHECKING:
    from ...tir.expr import ExprLike
    from ..parser import Parser


@form("func_name")
def func_name(parser: Parser, name: str) -> None:
    """The function's name; the definition already says it."""


@form("func_attr")
def func_attr(parser: Parser, attrs: dict) -> None:
    """Attributes of the function."""
    if not isinstance(attrs, dict):
        raise TypeError('T.func_attr takes a dict, for example {"global_symbol": "main"}')
    parser.func.attrs.update({k: S.annotation_value(v) for k, v in attrs.items()})


@form("func_ret")
def func_ret(parser: Parser, ret_type: object) -> None:
    """The return type of the function."""
    parser.func.ret_type = T.dtype_of(ret_type)


@form("evaluate")
def evaluate(parser: Parser, value: ExprLike) -> None:
    """A value computed for its effect."""
    parser.emit(S.Evaluate(O.convert(T.as_expr(value))))
