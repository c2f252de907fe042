"""Forms about the function: its attributes and return type; and `T.evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

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


def refuse_twice(func: Any, attrs: Mapping[str, Any], language: str) -> None:
    """ValueError for an attribute that a function has been given already, and for a global symbol
    of a function that is private."""
    for key in attrs:
        if key == "global_symbol" and getattr(func, "private", False):
            raise ValueError("a private function has no global_symbol: leave it out, or "
                             "private=True")
        if key in func.attrs:
            raise ValueError(f"the attribute {key!r} is given twice: {language}.func_attr sets it "
                             "once")


@form("func_attr")
def func_attr(parser: Parser, attrs: dict) -> None:
    """Attributes of the function."""
    if not isinstance(attrs, dict):
        raise TypeError('T.func_attr takes a dict, for example {"global_symbol": "main"}')
    refuse_twice(parser.func, attrs, "T")
    parser.func.attrs.update({k: S.annotation_value(v) for k, v in attrs.items()})


@form("func_ret")
def func_ret(parser: Parser, ret_type: object) -> None:
    """The return type of the function."""
    parser.func.ret_type = T.dtype_of(ret_type)


@form("evaluate")
def evaluate(parser: Parser, value: ExprLike) -> None:
    """A value computed for its effect."""
    parser.emit(S.Evaluate(O.convert(T.as_expr(value))))
