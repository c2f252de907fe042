"""`I` of the builder: modules."""

from __future__ import annotations

from typing import Any

from ...ir.module import IRModule
from .frames import Frame, IRBuilder


class ModuleFrame(Frame):
    """An IRModule under construction."""

    word = "module"

    def __init__(self) -> None:
        super().__init__(lambda body: None)
        self.functions: dict[str, Any] = {}
        self.attrs: dict[str, Any] = {}

    def take(self, made: Any) -> None:
        """One more function, under its own name."""
        name = str((made.attrs or {}).get("global_symbol", "main"))
        if name in self.functions:
            raise ValueError(f"the module has a function {name!r} already")
        self.functions[name] = made

    def made(self) -> IRModule:
        """The module."""
        return IRModule(self.functions, attrs=self.attrs)


def ir_module() -> ModuleFrame:
    """A module; the functions that are built inside belong to it."""
    return ModuleFrame()


def module_attrs(attrs: dict[str, Any]) -> None:
    """Attributes of the module."""
    IRBuilder.current().innermost(ModuleFrame, "I.module_attrs").attrs.update(attrs)


__all__ = ["ModuleFrame", "ir_module", "module_attrs"]
