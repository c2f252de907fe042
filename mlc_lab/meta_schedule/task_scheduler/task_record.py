"""TaskRecord: how far the search of one task has come."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ..context import TuneContext
from ..measure.runner import MODELLED, Reference


@dataclass
class TaskRecord:
    """One task of a search.

    `weight` is how often the program runs in the model; `trials` those measured, those of an
    interrupted search included; `session` its number in the database, 0 before it has begun;
    `history` the best time after each batch; `exhausted` whether its strategy had no more to
    propose before that many; `leading` the best records so far with what was built of them (see
    `confirm.py`); `modelled` whether its times are those of the model of a GPU.
    """

    context: TuneContext
    weight: float = 1.0
    workload: Any = None
    session: int = 0
    reference: Reference = field(init=False, repr=False, compare=False)
    ready: Future = field(init=False, repr=False, compare=False)
    trials: int = 0
    wanted: int = 0
    round: int = 0
    best_time: float | None = None
    failures: int = 0
    done: bool = False
    exhausted: bool = False
    modelled: bool = False
    history: list[float] = field(default_factory=list)
    leading: list[tuple] = field(default_factory=list)
    seconds: float = 0.0
    begun: float = field(default_factory=time.time)

    @property
    def is_terminated(self) -> bool:
        """TVM's name of `done`."""
        return self.done

    @property
    def runner_futures(self) -> None:
        """None: no measurement is under way while a task is picked."""
        return None

    def note(self, record: Any) -> None:
        """Count a record."""
        self.trials += 1
        self.modelled = self.modelled or record.reason == MODELLED
        if record.time is None or record.status != "ok":
            self.failures += 1
        elif self.best_time is None or record.time < self.best_time:
            self.best_time = record.time
