"""A candidate: a schedule to be measured, and where it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class MeasureCandidate:
    """A schedule with the types of its arguments.

    `sch` is None while a candidate is judged by its decisions alone. `predicted` is the cost
    model's score (None without one), `parent` the record id of the trace this one was mutated from,
    `mutation` what was changed, `generation` the number of mutations.
    """

    sch: Any
    args_info: list[Any] = field(default_factory=list)
    strategy: str = "user"
    predicted: float | None = None
    parent: int | None = None
    mutation: str | None = None
    generation: int = 0
    features: Any = None
    failure: str = ""
    record_id: int | None = None
    #: the schedule that is postprocessed, and becomes `sch`, when the candidate is chosen (until
    #: then `sch` is the one that the cost model judges); None where both are one
    draft: Any = None
    #: of strategies that mutate: number of the design space, its trace with these decisions, a key
    space: int = 0
    decided: Any = None
    origin_key: Any = None
    #: the candidate it was mutated from, until it is proposed and `parent` is known
    source: Any = None

    @property
    def key(self) -> str:
        """The same for candidates with the same trace."""
        return trace_key(self.sch.trace)


def trace_key(trace: Any) -> str:
    """A text that traces with the same instructions and decisions share."""
    import json

    return json.dumps(trace.as_json(remove_postproc=True), separators=(",", ":"))
