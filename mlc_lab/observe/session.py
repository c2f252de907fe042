"""Recordings of schedules: of one schedule at any time, or of every schedule a program makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ir.module import IRModule
from ..schedule import Schedule
from ..schedule.error import rule_in_words
from .count_steps import count_steps
from .gpu import steps as gpu_steps
from .measure import Measurement
from .program import keys_of, number_of, origins_of
from .recording import Recorder, Recording, save_all

if TYPE_CHECKING:
    from ..target.target import TargetLike


#: statements that a simulated run executes in a second or so
_QUICK = 20_000_000


class ScheduleRecording:
    """A schedule's recording together with the modules it was made from, so it can be measured."""

    def __init__(self, recording: Recording, modules: list[IRModule]) -> None:
        self.recording, self.modules = recording, modules

    def measure(self, budget_s: float = 20.0, progress: bool = True, **options: Any
                ) -> Recording:
        """Time and check every program; see `measure.Measurement` for the options."""
        made = self.recording.measurement = Measurement(self.recording, self.modules, **options)
        return made.all(budget_s, progress)

    def count(self, caches: Any = None, budget_s: float = 60.0, **options: Any) -> Recording:
        """Count the cache misses of every program; see `count_steps.count_steps`."""
        return count_steps(self.recording, self.modules, caches, budget_s=budget_s, **options)

    def count_gpu(self, target: TargetLike, budget_s: float = 60.0,
                  sizes: dict[str, int] | None = None) -> Recording:
        """Count what every program does on a GPU; see `gpu/steps.py`."""
        return gpu_steps.count_each(self.recording, self.modules, target, sizes=sizes,
                                    budget_s=budget_s)


def record(sch: Schedule, title: str | None = None) -> ScheduleRecording:
    """The recording of all steps of a schedule so far, without costs.

    Instructions that only look something up become part of the step after them; those after the
    last step are left out.
    """
    start = sch.steps[0].before if sch.steps else sch.mod
    recorder = Recorder(title or _title(start), "sch = tvm.tir.Schedule(Module)")
    modules: list[IRModule] = []

    def number(mod: IRModule) -> int:
        found = number_of(mod, recorder)
        if found == len(modules):
            modules.append(mod)
        return found

    now = number(start)
    recorder.step("start", "", now, now)
    recorder.doc("start", "The program as it was.")
    lead: list[str] = []
    last = start
    for step in sch.steps:
        kind = step.instruction.kind
        if kind.pure and step.error is None and not kind.sampling:
            lead.append(step.python)
            continue
        error = None if step.error is None else _error(step.error, recorder)
        before, origins = now, []
        if step.after is not last:
            now, last = number(step.after), step.after
            keys = recorder.keys_in(before), recorder.keys_in(now)
            origins = origins_of(step.origins, recorder, *keys)
        recorder.step(kind.method, step.python, before, now, lead, error, origins)
        recorder.doc(kind.method, kind.doc)
        lead = []
    recorder.recording.modules = modules
    return ScheduleRecording(recorder.recording, modules)


def _title(mod: IRModule) -> str:
    names = [gv.name_hint for gv in mod.functions]
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _error(error: Any, recorder: Recorder) -> dict[str, Any]:
    """A ScheduleError as a recording has it. The call stands elsewhere in a view."""
    parts = [said] if (said := rule_in_words(error.rule)) else []
    parts.append(error.reason)
    if error.conflict:
        parts.append(f"Two iterations that clash: {error.conflict}")
    if error.hint:
        parts.append(f"Try: {error.hint}")
    refusal = {"rule": error.rule.replace("_", " "), "message": "\n\n".join(parts)}
    refusal["keys"] = keys_of(error.nodes, recorder)
    try:
        refusal["where"] = error.underlined()
    except Exception:  # the reason is wanted even if the program cannot be printed
        refusal["where"] = ""
    return refusal


def explore(
    sch: Schedule,
    measure: bool = True,
    *,
    counts: Any = None,
    budget_s: float = 20.0,
    sizes: dict[str, int] | None = None,
    target: TargetLike = "llvm",
    title: str | None = None,
    progress: bool = True,
    guess: bool = False,
    isolate: bool = True,
    trusted: bool = False,
) -> Any:
    """The stepper of a schedule, as a notebook widget: what `Schedule.explore` shows.

    Each step is timed and its result checked first, for at most about `budget_s` seconds (an
    interrupt ends that early and shows what was found), and what changed is counted, from which the
    view says why (see `why.py`); `measure=False` shows the steps at once. Cache misses are counted
    where that is quick; `counts=True` counts those of each step, in this machine's caches, or in
    those given: `counts="32K:8, 1M:16"`; `counts=False` counts nothing. `sizes` gives the values of
    symbolic sizes by name. For a GPU as `target` each step has the counts of `count_gpu` and the
    time of the model. Programs are timed in a process of their own, so that one that crashes or
    hangs costs only its own time; `isolate=False` does it in this one. A program that calls C
    functions, registered functions or imported code is not run, unless with `trusted=True`.
    `guess=True` is for a class: before a step is shown the viewer says whether it is legal and
    whether it makes the program faster. `.html(path)` of the result writes the same view as a page.
    Raises ImportError where the notebook parts are not installed.
    """
    made = record(sch, title)
    if gpu_steps.is_counted(target):
        if measure or counts:
            made.count_gpu(target, max(budget_s, 60.0), sizes)
        return made.recording.show(guess)
    if measure:
        made.measure(budget_s, progress, sizes=sizes, target=target, isolate=isolate,
                     trusted=trusted)
    if counts:
        made.count(None if counts is True else counts, max(budget_s, 60.0), progress=progress,
                   sizes=sizes, target=target, trusted=trusted, isolate=isolate)
    elif counts is None and measure:
        made.count(None, budget_s / 2, progress=progress, sizes=sizes, target=target,
                   trusted=trusted, isolate=isolate, most=_QUICK)
    return made.recording.show(guess)



class Session:
    """The schedules made while recording was on."""

    def __init__(self) -> None:
        self.schedules: list[Schedule] = []

    def recordings(self, measure: bool = False, budget_s: float = 60.0,
                   trusted: bool = False) -> list[Recording]:  # fmt: skip
        """One recording for each schedule that has at least one step, in order of creation.

        `trusted`: measure also what calls code outside of itself.
        """
        used = [s for s in self.schedules if s.steps]
        names: dict[str, int] = {}
        made = []
        for sch in used:
            one = record(sch)
            count = names[one.recording.title] = names.get(one.recording.title, 0) + 1
            if count > 1:
                one.recording.title += f" ({count})"
            if measure:
                one.measure(budget_s / len(used), trusted=trusted)
            made.append(one.recording)
        return made

    def save(self, path: str | Path, measure: bool = False, budget_s: float = 60.0,
             trusted: bool = False) -> None:  # fmt: skip
        """Write the recordings to a file that `recording.load_all` reads."""
        save_all(self.recordings(measure, budget_s, trusted), path)


@contextmanager
def recording_schedules() -> Iterator[Session]:
    """Keep every Schedule that is created inside the block.

    >>> with recording_schedules() as session:     # doctest: +SKIP
    ...     run_the_program()
    >>> session.recordings()                       # doctest: +SKIP
    """
    session, before = Session(), Schedule.on_create

    def keep(sch: Schedule) -> None:
        session.schedules.append(sch)
        if before is not None:
            before(sch)

    Schedule.on_create = keep
    try:
        yield session
    finally:
        Schedule.on_create = before
