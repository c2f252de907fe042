"""Task schedulers: which program's turn it is."""

from .gradient_based import GradientBased
from .round_robin import RoundRobin
from .task_record import TaskRecord
from .task_scheduler import PyTaskScheduler, TaskScheduler, TuneError

create = TaskScheduler.create
#: the schedulers by name
MAKERS = {"round-robin": RoundRobin, "gradient": GradientBased}

__all__ = ["GradientBased", "PyTaskScheduler", "RoundRobin", "TaskRecord", "TaskScheduler",
           "TuneError", "create"]
