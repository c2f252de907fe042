"""replay-trace: replay the traces of the space with fresh random decisions."""

from __future__ import annotations

from .candidate import MeasureCandidate
from .search_strategy import SearchStrategy


class ReplayTrace(SearchStrategy):
    """Each candidate is a design space's trace, its sampling instructions decided anew.

    A design space without choices is one candidate, proposed once if there are others.
    `max_fail_count` tries in a row without a valid program end the search.
    """

    def __init__(self, max_fail_count: int = 100) -> None:
        self.max_fail_count = max_fail_count

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next batch."""
        room, out, fails = self.room(), [], 0
        random = [s for s in self.design_spaces if any(i.kind.sampling for i in s.trace.insts)]
        fixed = [s for s in self.design_spaces if s not in random] if self.proposed == 0 else []
        while len(out) < room and fails < self.max_fail_count:
            if fixed and random:
                space = fixed.pop(0)
            else:
                space = self.context.rng.choice(random or self.design_spaces)
            sch = self.context.replay(space.trace, fresh=True)
            if sch is None:
                fails += 1
                continue
            fails = 0
            out.append(MeasureCandidate(sch, self.context.args_info, "replay-trace"))
        self.proposed += len(out)
        return out or None
