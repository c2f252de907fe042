"""Replaying many traces of one program: what they share is replayed once.

Before each sampling instruction the schedule so far is kept, by the instructions and decisions that
led there; a trace that begins alike goes on from a copy of it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..ir.module import IRModule
from ..schedule import Schedule, Trace
from ..schedule.trace import ReplayTable, pair_outputs, translate_argument


class Replayer:
    """Replays traces on one module. `kept` schedules are held at most.

    With `late_checks`, whether threads and iterations stay independent is not proved after each
    step; whoever gets the schedule proves it once, with `check_late(False)`.
    """

    def __init__(self, mod: IRModule, kept: int = 128, late_checks: bool = False) -> None:
        self.mod, self.kept, self.late_checks = mod, kept, late_checks
        self._snapshots: OrderedDict[tuple, tuple[Schedule, dict, list]] = OrderedDict()

    def replay(self, trace: Trace, decisions: dict[int, Any] | None = None, seed: int = -1
               ) -> Schedule:
        """A schedule with the instructions of `trace` up to its postprocessing.

        `decisions` replaces the trace's own; an instruction without one samples. Raises
        ScheduleError where an instruction is refused.
        """
        if decisions is None:
            decisions = trace.decisions
        insts = trace.insts
        path: list[Any] = []
        points: list[tuple[int, tuple]] = []
        for index, inst in enumerate(insts):
            if inst.kind.name == "EnterPostproc":
                break
            if inst.kind.name == "Annotate" and isinstance(inst.args["ann_val"], int):
                path.append((index, inst.args["ann_val"]))  # a mutator may have changed it
            if inst.kind.sampling:
                points.append((index, (tuple(map(id, insts[:index])), *path)))
                decision = decisions.get(index)
                if decision is None:
                    break  # from here on every replay differs
                path.append((index, tuple(decision) if isinstance(decision, list) else decision))
        sch, table, start = self._from_snapshot(points, seed)
        if self.late_checks:
            sch.check_late(True)
        stops = dict(points)
        for index in range(start, len(insts)):
            inst = insts[index]
            if inst.kind.name == "EnterPostproc":
                break
            args = {name: translate_argument(value, table) for name, value in inst.args.items()}
            if inst.kind.sampling:
                if index in stops and index != start:
                    self._keep(stops[index], sch, table, insts)
                args["decision"] = decisions.get(index)
            outputs = sch.apply(inst.kind, args)
            pair_outputs(inst, outputs, table)
        return sch

    def _from_snapshot(self, points: list, seed: int) -> tuple[Schedule, ReplayTable, int]:
        for index, key in reversed(points):
            found = self._snapshots.get(key)
            if found is not None:
                self._snapshots.move_to_end(key)
                sch = found[0].copy()
                sch.seed(seed)
                return sch, ReplayTable(sch, found[1]), index
        sch = Schedule(self.mod, seed=seed, debug_mask="none")
        return sch, ReplayTable(sch), 0

    def _keep(self, key: tuple, sch: Schedule, table: dict, insts: list) -> None:
        # The instructions are held too, so that the ids in the key stay theirs.
        self._snapshots[key] = (sch.copy(), dict(table), insts)
        if len(self._snapshots) > self.kept:
            self._snapshots.popitem(last=False)


__all__ = ["Replayer"]
