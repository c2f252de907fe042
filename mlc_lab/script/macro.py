"""Macros: functions under @T.macro, whose bodies are inlined where a script calls them."""

from __future__ import annotations

import ast
from collections import ChainMap
from typing import TYPE_CHECKING, Any, Mapping

from ..reading.python_text import written
from .source import Source
from .values import Expands

if TYPE_CHECKING:
    from .statements import StatementParser


class Macro(Expands):
    """A function under @T.macro: its body is parsed anew at every call."""

    def __init__(self, tree: ast.FunctionDef, source: Source, env: Mapping[str, Any],
                 hygienic: bool, scopes: list[dict]) -> None:
        self.tree, self.source, self.env = tree, source, env
        self.hygienic, self.scopes = hygienic, scopes

    def expand_in_script(self, parser: StatementParser, node: ast.Call, args: list[Any],
                         kwargs: dict[str, Any]) -> Any:
        """Inline the body at a call; its value, in a language whose macros have one.

        Raises DiagnosticError where the arguments are not those of the macro.
        """
        bound = self._bound(parser, node, args, kwargs)
        saved = parser.source, parser.env, parser.scopes, parser.met
        outer = self.scopes if self.hygienic else parser.scopes
        parser.source, parser.scopes = self.source, [*outer, bound]
        parser.env = self.env if self.hygienic else ChainMap(dict(parser.env), dict(self.env))
        parser.met = {}
        parser.budget.again(self.tree)
        parser.budget.enter()
        try:
            for item in self.tree.body:
                parser.statement(item)
        finally:
            parser.source, parser.env, parser.scopes, parser.met = saved
            parser.budget.leave()
        return parser.macro_value()

    def _default(self, parser: StatementParser, node: ast.Call, name: str, default: ast.expr
                 ) -> Any:
        try:
            return ast.literal_eval(default)
        except (ValueError, TypeError):
            raise parser.error(node, f"the default of {name} in macro {self.tree.name} is "
                               f"{written(default)}, which is not written out as a number, a "
                               "string or the like", f"give {name} in the call") from None

    def _bound(self, parser: StatementParser, node: ast.Call, args: list[Any],
               kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by the names of the parameters, as Python binds them."""
        spec = self.tree.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        only_by_name = [a.arg for a in spec.kwonlyargs]
        defaults = dict(zip(reversed(names), reversed(spec.defaults)))
        defaults.update((n, d) for n, d in zip(only_by_name, spec.kw_defaults) if d is not None)
        bound = dict(zip(names, args))
        twice = [n for n in kwargs if n in bound]
        rest = {n: v for n, v in kwargs.items() if n not in names and n not in only_by_name}
        bound.update((n, v) for n, v in kwargs.items() if n not in rest)
        missing = [n for n in (*names, *only_by_name) if n not in bound and n not in defaults]
        if twice or missing or (len(args) > len(names) and spec.vararg is None) or (
                rest and spec.kwarg is None):
            raise parser.error(node, f"macro {self.tree.name} takes ({ast.unparse(spec)})")
        for name in (*names, *only_by_name):
            if name not in bound:
                bound[name] = self._default(parser, node, name, defaults[name])
        if spec.vararg is not None:
            bound[spec.vararg.arg] = tuple(args[len(names):])
        if spec.kwarg is not None:
            bound[spec.kwarg.arg] = rest
        return bound

    def __call__(self, *args: object, **kwargs: object) -> Any:
        raise TypeError(f"macro {self.tree.name} can only be called in a script")


__all__ = ["Macro"]
