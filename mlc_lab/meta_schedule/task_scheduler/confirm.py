"""The last step of a task: its best programs are measured once more, in turns.

During a search each program is measured once, at its own time and with one placement of the tensors
in their pages. Other work on the machine lasts about as long as a measurement, and slows a program
by more than the best ones differ; so may the placement. So the best time may be a matter of luck.
Here the programs alternate in many short turns, and each turn has another placement.
"""

from __future__ import annotations

import math
import statistics
import time
from typing import TYPE_CHECKING, Any

from ..measure.runner import RunnerInput
from ..measure.service import robust
from .task_record import TaskRecord

if TYPE_CHECKING:
    from ..database.database import Database

#: programs that are measured again at most, and how far from the best they may be
CANDIDATES, NEAR = 12, 1.3
#: no further turn begins when this share of the search's time is used up
MIN_TURNS, MAX_TURNS, TIME_SHARE = 3, 16, 0.2
#: seconds that a repeat takes, three of which are a turn; one is where a call takes longer
REPEAT = 2e-3


def note(task: TaskRecord, record: Any, build: Any) -> None:
    """Remember a program that may be one of the best."""
    if record.status != "ok" or record.time is None:
        return
    task.leading.append((record, build))
    task.leading.sort(key=lambda pair: pair[0].time)
    del task.leading[CANDIDATES:]


def confirm(task: TaskRecord, runner: Any, database: Database) -> None:
    """Measure the best programs of a task again.

    The new times replace those of the records, scaled by one factor such that their geometric mean
    stays what it was: so they remain comparable with the times of all other records. A program that
    fails now is recorded as failed.
    """
    if not task.leading or not getattr(runner, "varies", False):
        return
    most = NEAR * task.leading[0][0].time
    leading = [pair for pair in task.leading if pair[0].time <= most]
    if len(leading) < 2:
        return
    turns: dict[int, list[float]] = {record.id: [] for record, _ in leading}
    end = time.perf_counter() + TIME_SHARE * task.seconds
    for turn in range(1, MAX_TURNS + 1):
        if turn > MIN_TURNS and time.perf_counter() > end:
            break
        for record, build in leading:
            if record.status != "ok":
                continue
            calls = math.ceil(REPEAT / record.time)
            (future,) = runner.run([RunnerInput(
                build, task.reference, task.context.num_threads, placement=turn,
                exactly=(calls, 3 if calls > 1 else 1))])
            result = future.result()
            if result.status == "ok":
                turns[record.id].append(min(result.times))
            else:
                record.status, record.reason, record.times = result.status, result.reason, ()
    good = [record for record, _ in leading if record.status == "ok"]
    if good:
        again = {record.id: robust(turns[record.id]) for record in good}
        level = statistics.geometric_mean(record.time / again[record.id] for record in good)
        for record in good:
            record.times = tuple(level * turn for turn in turns[record.id])
    for record, _ in leading:
        database.revise_tuning_record(record)
    found = (r for r in database.fastest(task.workload, 1 << 20, str(task.context.target))
             if r.session == task.session)
    best = next(found, None)
    task.best_time = best.time if best else None


__all__ = ["confirm", "note"]
