"""The names of a script: its own, by scope, and those of the place it stands in; its errors."""

from __future__ import annotations

import ast
import builtins
from typing import Any, Callable, Mapping

from ..ir.diagnostics import DiagnosticError
from ..reading import reason, similar
from . import bounded
from .bounded import LEAVES, Budget
from .source import Source
from .values import Hidden


class Scopes:
    """Names. `scopes` are the script's own, innermost last, `env` those of the place it stands in.

    Parsers of one text share a `budget`, which bounds what they make.
    """

    #: what else a name is, alone or after a module: of another version of the language
    elsewhere: Callable[..., Any] | None = None

    def __init__(self, source: Source, env: Mapping[str, Any], budget: Budget | None = None
                 ) -> None:
        self.source = source
        self.env = env
        self.budget = budget or Budget()
        self.scopes: list[dict[str, Any]] = [{}]
        #: names met in `env`
        self.met: dict[str, Any] = {}

    # --------------------------------------------------------------------------- errors, names

    def error(self, node: Any, message: str, hint: str = "") -> DiagnosticError:
        """The error for a mistake at a node of the syntax tree."""
        return self.source.error(node, message, hint)

    def define(self, name: str, value: object) -> None:
        """Bind a name in the innermost scope."""
        self.scopes[-1][name] = value

    def lookup(self, node: ast.Name) -> Any:
        """The value of a name."""
        value = self.find(node)
        if type(value) not in LEAVES:
            self.budget.use(value)
        return value

    def find(self, node: ast.Name) -> Any:
        """The value of a name that is only looked into: it does not become part of anything."""
        name = node.id
        for scope in reversed(self.scopes):
            if name in scope:
                value = scope[name]
                if type(value) is Hidden:
                    raise self.error(node, value.reason, value.hint)
                return value
        if name in self.met:
            return self.met[name]
        if name in self.env and name[:2] != "__":
            value = self.met[name] = self.env[name]
            return value
        if name in bounded.NAMES:
            return bounded.NAMES[name]
        other = None if self.elsewhere is None else self.elsewhere(name)
        if other is not None:
            return other
        raise self.unknown(node, name)

    def unknown(self, node: ast.AST, name: str) -> DiagnosticError:
        """The error for a name that is none of a script; in a call of it, at the call."""
        if name == "metadata":
            return self.error(node, "the constants are not in this text",
                              "print the program with script(show_meta=True) to keep them")
        if hasattr(builtins, name):
            return self.error(node, f"{name} cannot be used in a script: scripts are parsed and "
                                    "never executed", "of Python's own functions a script has "
                                    + ", ".join(sorted(bounded.NAMES)))
        known = {n for s in self.scopes for n in s} | set(self.env)
        close = similar(name, [k for k in known if not k.startswith("_")], 3)
        hint = f"did you mean {' or '.join(close)}?" if close else (
            "define it before this line, or in the scope around the function")
        return self.error(node, f"undefined name {name!r}", hint)

    def mistake(self, node: ast.AST, error: BaseException) -> DiagnosticError:
        """The error at a node for what was raised while its value was made."""
        return self.error(node, reason(error), getattr(error, "hint", ""))


__all__ = ["Scopes"]
