"""replay-func: run the space's function anew for every candidate."""

from __future__ import annotations

from .candidate import MeasureCandidate
from .search_strategy import SearchStrategy


class ReplayFunc(SearchStrategy):
    """Each candidate is what the space makes of the program with fresh random choices."""

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next batch."""
        room, out = self.room(), []
        for _ in range(room * 10):
            if len(out) >= room:
                break
            spaces = self.context.generate_design_space()
            sch = self.context.rng.choice(spaces)
            if self.context.postprocess(sch):
                out.append(MeasureCandidate(sch, self.context.args_info, "replay-func"))
        self.proposed += len(out)
        return out or None
