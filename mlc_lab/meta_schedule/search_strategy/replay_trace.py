"""replay-trace: replay the traces of the space with fresh random decisions."""

from __future__ import annotations

from .candidate import MeasureCandidate
from .search_strategy import SearchStrategy


class ReplayTrace(SearchStrategy):
    """Each candidate is a design space's trace, its sampling instructions decided anew.

    `max_fail_count` tries in a row without a valid program end the search.
    """

    def __init__(self, max_fail_count: int = 100) -> None:
        self.max_fail_count = max_fail_count

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next batch."""
        room, out, fails = self.room(), [], 0
        while len(out) < room and fails < self.max_fail_count:
            space = self.context.rng.choice(self.design_spaces)
            sch = self.context.replay(space.trace, fresh=True)
            if sch is None:
                fails += 1
                continue
            fails = 0
            out.append(MeasureCandidate(sch, self.context.args_info, "replay-trace"))
        self.proposed += len(out)
        return out or None
