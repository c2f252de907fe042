"""`args_converter`: decorators that make Relax expressions of the arguments of a function.

    @args_converter.to_expr("x", "others")       # numbers, strings, tuples become expressions
    def f(x, *others): ...

    @args_converter.auto                         # by annotations: Expr, List[Expr], Optional[...]
    def g(x: Expr, shape: List[Expr]): ...
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

from .expr import Expr, as_expr


def _to_expr(value: Any) -> Any:
    return None if value is None else as_expr(value)


def _to_list(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"a list or tuple is needed, it is {value!r:.60}")
    return [as_expr(item) for item in value]


def _around(function: Callable[..., Any], converters: dict[str, Callable[[Any], Any]]
            ) -> Callable[..., Any]:
    signature = inspect.signature(function)
    unknown = [name for name in converters if name not in signature.parameters]
    if unknown:
        raise ValueError(f"{function.__name__} has no argument {unknown[0]!r}; it has "
                         + ", ".join(signature.parameters))
    kinds = {name: p.kind for name, p in signature.parameters.items()}

    @functools.wraps(function)
    def converted(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        for name, convert in converters.items():
            if name not in bound.arguments:
                continue
            value = bound.arguments[name]
            try:
                if kinds[name] is inspect.Parameter.VAR_POSITIONAL:
                    value = tuple(map(convert, value))
                elif kinds[name] is inspect.Parameter.VAR_KEYWORD:
                    value = {key: convert(item) for key, item in value.items()}
                else:
                    value = convert(value)
            except TypeError as error:
                raise TypeError(f"argument {name!r} of {function.__name__}: {error}") from None
            bound.arguments[name] = value
        return function(*bound.args, **bound.kwargs)

    return converted


def _needed(annotation: Any) -> Callable[[Any], Any] | None:
    """What an annotation asks for: an expression, a list of them, or nothing."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if type(None) in inner:  # Optional[...]
        rest = [a for a in inner if a is not type(None)]
        return _needed(rest[0]) if len(rest) == 1 else None
    if annotation is Expr:
        return _to_expr
    return _to_list if origin is list and inner == (Expr,) else None


class ArgsConverter:
    """The decorators; `args_converter` is the one there is."""

    def to_expr(self, *arg_names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Make expressions of the named arguments; None stays."""
        return lambda function: _around(function, dict.fromkeys(arg_names, _to_expr))

    def to_list_expr(self, *arg_names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Make lists of expressions of the named arguments; None stays."""
        return lambda function: _around(function, dict.fromkeys(arg_names, _to_list))

    def auto(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Make of each argument what its annotation asks for: an Expr, a list of Expr."""
        hints = typing.get_type_hints(function)
        found = {name: _needed(hint) for name, hint in hints.items() if name != "return"}
        return _around(function, {name: f for name, f in found.items() if f is not None})


args_converter = ArgsConverter()

__all__ = ["ArgsConverter", "args_converter"]
