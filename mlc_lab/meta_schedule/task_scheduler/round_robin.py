"""RoundRobin: the tasks take turns."""

from __future__ import annotations

from .task_record import TaskRecord
from .task_scheduler import TaskScheduler


class RoundRobin(TaskScheduler):
    """Each task that is not done gets a batch, one after the other."""

    _last = -1

    def next_task(self) -> TaskRecord | None:
        """The next one after the last."""
        count = len(self.tasks)
        for step in range(1, count + 1):
            index = (self._last + step) % count
            if not self.tasks[index].done:
                self._last = index
                return self.tasks[index]
        return None
