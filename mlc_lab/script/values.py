"""What a script's expressions stand for while it is parsed, besides IR and Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping

if TYPE_CHECKING:
    import ast

from ..ir.module import GlobalVar
from ..tir import expr as E
from ..tir.buffer import Buffer
from . import tir as T


class Pending:
    """A definition that waits for the name it is assigned to."""

    __slots__ = ("finish", "done")

    def __init__(self, finish: Callable[[str], Any]) -> None:
        self.finish = finish
        self.done: Any = None


class Expands:
    """What the parser unfolds where a script calls it: a macro, a word of a language."""

    def expand_in_script(self, parser: Any, node: ast.AST, args: list[Any], kwargs: dict[str, Any]
                         ) -> Any:
        """The value of a call; statements go to the parser."""
        raise NotImplementedError


class ModuleRef:
    """The module under construction, by its class name or `cls`: its functions are attributes."""

    def __init__(self, functions: Mapping[str, GlobalVar]) -> None:
        self.functions = functions


class Hidden:
    """A name that can be used no longer, and why."""

    def __init__(self, reason: str, hint: str) -> None:
        self.reason, self.hint = reason, hint


def is_floating(value: object) -> bool:
    """Whether a value is of a floating point type."""
    if isinstance(value, E.PrimExpr):
        return value.dtype.startswith(("float", "bfloat"))
    return isinstance(value, float) or str(getattr(value, "dtype", "")).startswith("float")


def described(value: object) -> str:
    """What a value is, for a message."""
    if isinstance(value, Buffer):
        return f"buffer {value.name}"
    if isinstance(value, E.PrimExpr):
        return f"a value of type {value.dtype}"
    if isinstance(value, T.Form):
        return repr(value)
    return f"a Python {type(value).__name__}"


__all__ = ["Expands", "Hidden", "ModuleRef", "Pending", "described", "is_floating"]
