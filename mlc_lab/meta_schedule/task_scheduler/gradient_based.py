"""GradientBased: the task from which most is to be gained is next.

After Zheng et al., "Ansor" (OSDI 2020), section 6: the gain of one more batch is estimated from the
last batches' gain and from what the task could still gain at the speed of similar tasks.
"""

from __future__ import annotations

from .task_record import TaskRecord
from .task_scheduler import TaskScheduler


class GradientBased(TaskScheduler):
    """`alpha` weighs the gain of the last `window` batches against the estimate of what is left."""

    def __init__(self, alpha: float = 0.2, window_size: int = 3, seed: int = -1) -> None:
        self.alpha, self.window = alpha, window_size

    def next_task(self) -> TaskRecord | None:
        """Tasks that were never tried first, those with most work before others; then the one of
        the steepest descent."""
        open_tasks = [t for t in self.tasks if not t.done]
        if not open_tasks:
            return None
        untried = [t for t in open_tasks if t.round == 0 or not t.history]
        if untried:
            return max(untried, key=lambda t: t.weight * t.context.flop)
        speeds = [t.context.flop / t.best_time for t in self.tasks if t.best_time]
        top = max(speeds, default=0.0)
        return max(open_tasks, key=lambda t: self._gain(t, top))

    def _gain(self, task: TaskRecord, top: float) -> float:
        best = task.history[-1]
        past = task.history[-1 - self.window] if len(task.history) > self.window else (
            task.history[0])
        backward = max(0.0, past - best) / min(self.window, max(1, len(task.history) - 1))
        optimistic = best / max(1, task.round)
        if top and task.context.flop:
            similar = max(0.0, best - task.context.flop / top)
            forward = min(optimistic, max(similar, best * 0.02))
        else:
            forward = optimistic
        return task.weight * (self.alpha * backward + (1 - self.alpha) * forward)
