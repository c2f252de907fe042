"""The interface of search strategies: which candidate to measure next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...above import above
from .candidate import MeasureCandidate

if TYPE_CHECKING:
    from ..context import TuneContext
    from ..cost_model.cost_model import CostModel
    from ..database.database import Database


class SearchStrategy:
    """Proposes candidates, and is given their results.

    To write one: override `generate_measure_candidates`, and `notify_runner_results` if it learns.
    `initialize_with_tune_context` sets `self.context` (mod, target, space_generator, rng, ...).
    """

    context: Any = None
    max_trials = 0
    num_trials_per_iter = 64
    database: Any = None
    cost_model: Any = None
    proposed = 0
    #: programs of these spaces that the database knew a time of
    recalled = 0
    #: why there is nothing more, where that comes before the trials are used up
    ending = "all programs of its space were tried"

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Called once, with the task."""
        self.context = context

    def pre_tuning(self, max_trials: int, num_trials_per_iter: int, design_spaces: list,
                   database: Database | None = None, cost_model: CostModel | None = None) -> None:
        """Called before the search begins."""
        self.max_trials, self.num_trials_per_iter = max_trials, num_trials_per_iter
        self.design_spaces = design_spaces
        self.database, self.cost_model = database, cost_model
        self.proposed = self.recalled = 0

    def post_tuning(self) -> None:
        """Called when the search has ended."""

    def work_ahead(self) -> bool:
        """Do a few milliseconds of what the next batch needs; False if there is nothing to do.

        Called while candidates are built and measured, as often as there is time.
        """
        return False

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next batch, at most `num_trials_per_iter`; None when there is nothing more."""
        raise TypeError(f"{type(self).__name__} has to define generate_measure_candidates()")

    def notify_runner_results(self, measure_candidates: Sequence[MeasureCandidate],
                              results: Sequence[Any]) -> None:
        """Called with the results of a batch."""

    def clone(self) -> "SearchStrategy":
        """One like this for another task."""
        import copy

        return copy.copy(self)

    def room(self) -> int:
        """How many candidates the next batch may have."""
        return max(0, min(self.num_trials_per_iter, self.max_trials - self.proposed))

    @staticmethod
    def create(kind: Any = "evolutionary", **options: object) -> "SearchStrategy":
        """The strategy called `kind`, or the one given."""
        makers = above("search strategies")
        if isinstance(kind, str):
            if kind not in makers:
                raise ValueError(f"there is no search strategy {kind!r}; choose one of "
                                 f"{', '.join(makers)}")
            return makers[kind](**options)
        if isinstance(kind, type):
            return kind(**options)
        return kind


PySearchStrategy = SearchStrategy
