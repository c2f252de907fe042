"""SpaceGeneratorUnion: the spaces of several generators together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from ...schedule import Schedule
from .space_generator import SpaceGenerator

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ...tir.function import PrimFunc
    from ..context import TuneContext


class SpaceGeneratorUnion(SpaceGenerator):
    """All design spaces of `space_generators`; rules and postprocessors are those of the first."""

    def __init__(self, space_generators: Sequence[SpaceGenerator] = (), **options: object) -> None:
        super().__init__(**options)
        self.space_generators = [SpaceGenerator.create(g) for g in space_generators]

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Every generator gets the task."""
        super().initialize_with_tune_context(context)
        for generator in self.space_generators:
            generator.initialize_with_tune_context(context)

    @property
    def description(self) -> str:
        """The generators'."""
        return f"Union({', '.join(g.description for g in self.space_generators)})"

    def generate_design_space(self, mod: IRModule | PrimFunc, seed: int = -1) -> list[Schedule]:
        """Those of all generators."""
        return [s for g in self.space_generators for s in g.generate_design_space(mod, seed)]
