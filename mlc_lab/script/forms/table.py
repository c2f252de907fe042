"""The table of forms: how a word of the script language finds its function and is called."""

from __future__ import annotations

import ast
import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Callable

from .. import tir as T
from ..values import Pending, described

if TYPE_CHECKING:
    from ..evaluator import Evaluator
    from ..statements import StatementParser


#: annotation of a form's parameter -> what a script may give for it, and what that is called
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a string"), "str | None": ((str, type(None)), "a string"),
    "int": ((int,), "a whole number"), "bool": ((bool, int), "True or False"),
    "dict": ((dict,), 'a dict such as {"key": value}'),
    "dict | None": ((dict, type(None)), 'a dict such as {"key": value}'),
}


@lru_cache(maxsize=None)
def _signature(fn: Callable) -> tuple[inspect.Signature, dict[str, tuple]]:
    """The signature of a form, and the types of those of its parameters that are plain values."""
    found = inspect.signature(fn)
    return found, {name: _TYPES[p.annotation] for name, p in found.parameters.items()
                   if p.annotation in _TYPES}


@lru_cache(maxsize=None)
def _positions(fn: Callable) -> tuple[dict[str, tuple[int, type | None]], int] | None:
    """The parameters of a form after the parser, with their places and types, and how many of them
    need a value; None for a form that takes any number, and for one that takes dicts."""
    _, types = _signature(fn)
    params = list(inspect.signature(fn).parameters.values())[1:]
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD or dict in types.get(p.name, ((),))[0]
           for p in params):
        return None
    needed = sum(1 for p in params if p.default is p.empty)
    places = {p.name: (k, types[p.name][0][0] if p.name in types else None)
              for k, p in enumerate(params)}
    return places, needed


def _fits(fn: Callable, args: list, kwargs: dict[str, Any]) -> bool:
    """Whether it is plain to see that the arguments fit a form: no name for one that has a place,
    and plain values of the right type. Where it is not, `bind` says what is wrong."""
    found = _positions(fn)
    if found is None or len(args) > len(found[0]):
        return False
    places, needed = found
    for (_, kinds), value in zip(places.values(), args):
        if kinds is not None and type(value) is not kinds:
            return False
    given = len(args)
    for name, value in kwargs.items():
        place, kinds = places.get(name, (-1, None))
        if place < len(args) or kinds is not None and type(value) is not kinds:
            return False
        given += place < needed
    return given >= needed


class FormTable:
    """All forms by name, and how they are called."""

    def __init__(self) -> None:
        self.table: dict[str, Callable] = {}
        #: those that read the syntax tree of the call in place of its arguments
        self.of_syntax: dict[str, Callable] = {}

    def add(self, *names: str) -> Callable:
        """Decorator: the function is the form of these names."""

        def register(fn: Callable) -> Callable:
            for name in names:
                self.table[name] = fn
            return fn

        return register

    def add_of_syntax(self, name: str) -> Callable:
        """Decorator: the function is given the parser and the syntax tree of the call."""

        def register(fn: Callable) -> Callable:
            self.of_syntax[name] = fn
            return fn

        return register

    def call(self, parser: Evaluator, node: ast.Call, form: T.Form,
             place: StatementParser | None = None) -> Any:
        """Evaluate the arguments and apply a form, at a place that may be another's.

        Raises DiagnosticError at the call for a form that has no meaning here and for arguments
        that do not fit it.
        """
        raw = self.of_syntax.get(form.name)
        if raw is not None:
            return raw(place or parser, node)
        fn = self.table.get(form.name)
        if fn is None:
            raise parser.error(node.func, f"T.{form.name} cannot be used here")
        args, kwargs = parser.values(node)
        if _fits(fn, args, kwargs):
            return fn(place or parser, *args, **kwargs)
        signature, types = _signature(fn)
        try:
            bound = signature.bind(place or parser, *args, **kwargs)
        except TypeError as error:
            names = [str(p) for p in list(signature.parameters.values())[1:]]
            text = str(error).replace("'parser'", "")
            raise parser.error(node, f"T.{form.name}: {text}",
                               f"it is T.{form.name}({_plain(names)})") from None
        for name, (kinds, wanted) in types.items():
            value = bound.arguments.get(name)
            if name not in bound.arguments:
                continue
            if not isinstance(value, kinds):
                raise parser.error(node, f"T.{form.name}: {name} takes {wanted}, not "
                                         f"{described(value)}")
            if isinstance(value, dict) and not all(isinstance(k, str) for k in value):
                raise parser.error(node, f"T.{form.name}: the keys of {name} are strings")
        return fn(*bound.args, **bound.kwargs)

    def buffer(self, parser: StatementParser, *args: object, **kwargs: object) -> Pending:
        """T.Buffer(...)"""
        return self.table["Buffer"](parser, *args, **kwargs)


def _plain(names: list[str]) -> str:
    return ", ".join(n.split(":")[0] + (" =" + n.split("=", 1)[1] if "=" in n else "")
                     for n in names)


FORMS = FormTable()
form, of_syntax = FORMS.add, FORMS.add_of_syntax


__all__ = ["FORMS", "FormTable", "form", "of_syntax"]
