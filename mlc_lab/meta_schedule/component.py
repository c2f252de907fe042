"""What schedule rules, postprocessors, mutators and callbacks have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .context import TuneContext


class Component:
    """A part of a search that knows its task once it has begun."""

    context: Any = None

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Called once, with the task (target, rng, mod, ...)."""
        self.context = context

    def clone(self) -> "Component":
        """One like this for another task."""
        import copy

        return copy.copy(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
