"""Rewriting a module: `Mutator`, which visits every module, effect and parameter of another."""

from __future__ import annotations

from typing import Any, Callable

from .module import Effect, Module, ModuleDict, ModuleList, ParameterDict, ParameterList
from .tensor import Parameter


class Mutator:
    """Replaces parts of a module, in place. Override a `visit_` method to give another part.

    `name` is the dotted name of what is visited. A method that is not overridden goes on into what
    the part holds.
    """

    def visit(self, name: str, node: Any) -> Any:
        """What is to stand in the place of `node`."""
        methods: dict[type, Callable[[str, Any], Any]] = {
            ModuleList: self.visit_modulelist, ModuleDict: self.visit_moduledict,
            ParameterList: self.visit_paramlist, ParameterDict: self.visit_paramdict,
            Module: self.visit_module, Effect: self.visit_effect, Parameter: self.visit_param}
        for kind, method in methods.items():
            if isinstance(node, kind):
                return method(name, node)
        return node

    def visit_param(self, name: str, node: Parameter) -> Any:
        """A parameter."""
        return node

    def visit_effect(self, name: str, node: Effect) -> Any:
        """An effect."""
        return node

    def visit_module(self, name: str, node: Module) -> Any:
        """A module: its attributes are visited."""
        for key, value in list(vars(node).items()):
            new = self.visit(f"{name}.{key}" if name else key, value)
            if new is not value:
                setattr(node, key, new)
        return node

    def _visit_items(self, name: str, node: Any) -> Any:
        for key, value in list(node.named_items()):
            new = self.visit(f"{name}.{key}" if name else key, value)
            if new is not value:
                node[int(key) if isinstance(node, (ModuleList, ParameterList)) else key] = new
        return node

    def visit_modulelist(self, name: str, node: ModuleList) -> Any:
        """A list of modules: each is visited."""
        return self._visit_items(name, node)

    def visit_moduledict(self, name: str, node: ModuleDict) -> Any:
        """A dictionary of modules: each is visited."""
        return self._visit_items(name, node)

    def visit_paramlist(self, name: str, node: ParameterList) -> Any:
        """A list of parameters: each is visited."""
        return self._visit_items(name, node)

    def visit_paramdict(self, name: str, node: ParameterDict) -> Any:
        """A dictionary of parameters: each is visited."""
        return self._visit_items(name, node)


__all__ = ["Mutator"]
