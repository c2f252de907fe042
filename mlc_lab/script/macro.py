"""Macros: functions under @T.macro, whose bodies are inlined where a script calls them."""

from __future__ import annotations

import ast
from collections import ChainMap
from typing import TYPE_CHECKING, Any, Mapping

from .source import Source

if TYPE_CHECKING:
    from .statements import StatementParser


class Macro:
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
        params = [a.arg for a in self.tree.args.args]
        bound = dict(zip(params, args))
        bound.update(kwargs)
        if len(args) > len(params) or set(bound) != set(params):
            raise parser.error(node, f"macro {self.tree.name} takes ({', '.join(params)})")
        saved = parser.source, parser.env, parser.scopes
        outer = self.scopes if self.hygienic else parser.scopes
        parser.source, parser.scopes = self.source, [*outer, bound]
        parser.env = self.env if self.hygienic else ChainMap(dict(parser.env), dict(self.env))
        try:
            for item in self.tree.body:
                parser.statement(item)
        finally:
            parser.source, parser.env, parser.scopes = saved
        return parser.macro_value()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"macro {self.tree.name} can only be called in a script")


__all__ = ["Macro"]
