"""Measure callbacks: called with every result of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

if TYPE_CHECKING:
    from ..task_scheduler.task_scheduler import TaskScheduler


class MeasureCallback:
    """To write one: override `apply`."""

    def apply(self, task_scheduler: TaskScheduler, task_id: int, measure_candidates: Sequence[Any],
              builder_results: Sequence[Any], runner_results: Sequence[Any]) -> None:
        """`task_scheduler.tasks[task_id]` is the task; the lists belong together one by one."""
        raise TypeError(f"{type(self).__name__} has to define apply(...)")

    @staticmethod
    def create(kind: Any = "default") -> list["MeasureCallback"]:
        """The callbacks of a name ("default": none are needed), or those given."""
        if kind is None or kind == "default":
            return []
        return list(kind) if isinstance(kind, (list, tuple)) else [kind]


class AddToDatabase(MeasureCallback):
    """TVM's name; results go into the database in any case."""

    def apply(self, *_: object) -> None:
        """Nothing is left to do."""


class RemoveBuildArtifact(MeasureCallback):
    """Removes the files that were written for those who asked for an `artifact_path`."""

    def apply(self, task_scheduler: TaskScheduler, task_id: int, measure_candidates: Sequence[Any],
              builder_results: Sequence[Any], runner_results: Sequence[Any]) -> None:
        """Builds of which nobody asked for a file have none."""
        for result in builder_results:
            result.discard_file()


class UpdateCostModel(AddToDatabase):
    """TVM's name; the model learns after every batch."""


PyMeasureCallback = MeasureCallback
