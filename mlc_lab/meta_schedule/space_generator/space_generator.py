"""The interface of space generators: which programs a search may choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...above import above
from ...ir.diagnostics import MLCError
from ...schedule import Schedule

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ...tir.function import PrimFunc
    from ..context import TuneContext


class SpaceError(MLCError, ValueError):
    """A space that cannot be made: its function raised, or it is empty."""


class SpaceGenerator:
    """Makes design spaces: schedules whose traces contain random choices.

    `sch_rules`, `postprocs` and `mutator_probs` are lists (a dict for the last), or "from-target".
    """

    context: Any = None

    def __init__(self, sch_rules: object = "from-target", postprocs: object = "from-target",
                 mutator_probs: object = "from-target") -> None:
        self.sch_rules: Any = sch_rules
        self.postprocs: Any = postprocs
        self.mutator_probs: Any = mutator_probs

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Called once, with the task; fills in what depends on the target."""
        self.context = context
        from ..defaults import default_mutators, default_postprocs, default_rules

        for name, make in (("sch_rules", default_rules), ("postprocs", default_postprocs),
                           ("mutator_probs", default_mutators)):
            value = getattr(self, name)
            if isinstance(value, str):
                setattr(self, name, make(context.target))
            elif value is None:
                setattr(self, name, {} if name == "mutator_probs" else [])
        for part in (*self.sch_rules, *self.postprocs, *self.mutator_probs):
            part.initialize_with_tune_context(context)

    def generate_design_space(self, mod: IRModule | PrimFunc, seed: int = -1) -> list[Schedule]:
        """The design spaces of a program."""
        raise TypeError(f"{type(self).__name__} has to define generate_design_space(mod)")

    @property
    def description(self) -> str:
        """A text that is the same for the same space; searches are resumed by it."""
        return type(self).__name__

    def clone(self) -> "SpaceGenerator":
        """One like this for another task."""
        import copy

        return copy.copy(self)

    @staticmethod
    def create(kind: Any = "post-order-apply", **options: object) -> "SpaceGenerator":
        """The generator called `kind`, or the one given; a function becomes a ScheduleFn."""
        makers = above("space generators")
        if isinstance(kind, str):
            if kind not in makers:
                raise ValueError(f"there is no space generator {kind!r}; choose one of "
                                 f"{', '.join(filter(None, makers))}, or give "
                                 "ScheduleFn(function)")
            return makers[kind](**options)
        if isinstance(kind, SpaceGenerator):
            return kind
        if callable(kind):
            return makers[None](kind, **options)
        raise TypeError(f"a space is a SpaceGenerator, a function or a name, not {kind!r}")


PySpaceGenerator = SpaceGenerator
