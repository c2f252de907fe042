"""Measuring schedules of one program, for the older interfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...target import Target
from ..defaults import num_cores
from ..measure.builder import Builder, BuilderInput
from ..measure.runner import Reference, Runner, RunnerInput, RunnerResult
from ..workload import arguments, as_workload, text_key

if TYPE_CHECKING:
    from ...ir.module import IRModule
    from ...tir.function import PrimFunc


class Bench:
    """Builds, checks and times schedules of `mod`, the unscheduled program.

    Raises ValueError where that program itself cannot be built or run.
    """

    def __init__(self, mod: IRModule | PrimFunc, target: Any,
                 builder: object = "local", runner: object = "local") -> None:
        self.mod, self.target = as_workload(mod), Target(target)
        self.builder, self.runner = Builder.create(builder), Runner.create(runner)
        self.threads = num_cores(self.target)
        build = self.builder.build([BuilderInput(self.mod, self.target)])[0]
        if build.status != "ok":
            raise ValueError(f"the program cannot be built as it is: {build.reason}")
        self.reference = Reference(text_key(self.mod), arguments(self.mod["main"]), build)
        failure = self.runner.prepare(self.reference).result()
        if failure:
            raise ValueError(f"the program cannot be run as it is: {failure}")
        self.best: float | None = None

    def measure(self, modules: Sequence[Any]) -> list[RunnerResult]:
        """The result of each module; an exception among them says why one could not be made."""
        futures = [m if isinstance(m, Exception) else
                   self.builder.submit(BuilderInput(as_workload(m), self.target))
                   for m in modules]
        out = []
        for future in futures:
            if isinstance(future, Exception):
                out.append(RunnerResult(status="schedule_error", reason=str(future)))
                continue
            build = future.result()
            if build.status != "ok":
                out.append(RunnerResult(status=build.status, reason=build.reason))
                continue
            item = RunnerInput(build, self.reference, self.threads, self.best)
            result = self.runner.run([item])[0].result()
            if result.time is not None and (self.best is None or result.time < self.best):
                self.best = result.time
            out.append(result)
        return out


__all__ = ["Bench"]
