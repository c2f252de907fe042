"""What the frontends share: detached parameters, and the list of what cannot be translated."""

from __future__ import annotations

from typing import Any, Sequence

from ...ir.diagnostics import MLCError
from ...ir.module import IRModule
from ..op.registry import StructInfoError


class MissingOperators(MLCError, NotImplementedError):
    """A model uses operators that a frontend has no rule for.

    `missing` lists them all: (operator, where in the model), in the order of the model.
    """

    def __init__(self, frontend: str, missing: Sequence[tuple[str, str]], advice: str) -> None:
        self.missing = list(missing)
        kinds = list(dict.fromkeys(name for name, _ in self.missing))
        lines = [f"{frontend} has no rule for {len(kinds)} operator(s) of this model:"]
        for kind in kinds:
            lines.append(f"  {kind}")
            lines += [f"    {where}" for name, where in self.missing if name == kind]
        super().__init__("\n".join([*lines, advice]))


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[Any]]]:
    """The module without the attribute "params" of its functions, and those lists by function name.

    The functions take them after their inputs: `vm["main"](x, *params["main"])`.
    """
    out = mod.copy()
    params: dict[str, list[Any]] = {}
    for var, func in list(mod.functions.items()):
        if "params" in (func.attrs or {}):
            params[var.name_hint] = list(func.attrs["params"])
            out.update_func(var, func.without_attr("params"))
    return out, params


def located(error: Exception, place: str) -> Exception:
    """An error of a rule, with the place in the model in front of its message."""
    if isinstance(error, StructInfoError):
        return StructInfoError(f"{place}: {error.op}", error.reason)
    kind = type(error) if type(error) in (TypeError, ValueError, IndexError) else ValueError
    return kind(f"{place}: {error}")


def identifier(name: str) -> str:
    """A name of a framework as a name of a variable."""
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return text if text and not text[0].isdigit() else f"v_{text}"


__all__ = ["MissingOperators", "detach_params", "identifier", "located"]
