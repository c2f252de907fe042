"""Measuring one schedule of a reader's choice, with the same care as a search's candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..target import Target
from .database import TuningRecord
from .defaults import num_cores
from .measure.builder import Builder, BuilderInput
from .measure.runner import Reference, Runner, RunnerInput
from .workload import arguments

if TYPE_CHECKING:
    from ..schedule.schedule import Schedule


def measure_record(parent: TuningRecord, sch: Schedule, changed: str) -> TuningRecord:
    """Build, check and time `sch`, a schedule of the program of `parent`; a record of it that is
    not in a database yet. `changed` says what makes it different. A failure is a record too, with
    its status and reason."""
    mod, target = parent.workload.mod, Target(str(parent.target))
    builder, runner = Builder.create("local"), Runner.create("local")
    plain, built = builder.build([BuilderInput(mod, target), BuilderInput(sch.mod, target)])
    made = TuningRecord(
        sch.trace, parent.workload, target=parent.target, args_info=parent.args_info,
        task=parent.task, session=parent.session, trial=parent.trial, round=parent.round,
        generation=parent.generation + 1, parent=parent.id, mutation=changed, strategy="user",
        flop=parent.flop, build_s=built.seconds)
    if built.status != "ok":
        made.status, made.reason = built.status, built.reason
        return made
    checked = plain if plain.status == "ok" else None
    reference = Reference(parent.workload.shash, arguments(mod["main"]), checked)
    failure = runner.prepare(reference).result()
    if failure:
        made.status, made.reason = "run_error", failure
        return made
    (future,) = runner.run([RunnerInput(built, reference, num_cores(target))])
    found = future.result()
    made.status, made.reason, made.error = found.status, found.reason, found.error
    made.times, made.run_s = tuple(found.times), found.seconds
    return made


__all__ = ["measure_record"]
