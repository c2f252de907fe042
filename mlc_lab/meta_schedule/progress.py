"""How a search shows where it is: a live board in a notebook, one line in a terminal, the table at
the end."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .task_scheduler.task_scheduler import TaskScheduler


class Progress:
    """Prints the table at the beginning and the end and, in a terminal, a line that follows.

    In a notebook a tuning board is drawn while the search runs; standard error stays empty.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet, self.bar, self.board = quiet, None, None

    def start(self, scheduler: TaskScheduler) -> None:
        """The search begins."""
        self.begun = time.perf_counter()
        if self.quiet:
            return
        self.board = _live_board(scheduler)
        if self.board is not None or not sys.stdout.isatty():
            return
        try:
            from tqdm import tqdm
        except ImportError:
            return
        total = min(scheduler.max_trials_global, sum(t.wanted for t in scheduler.tasks))
        self.bar = tqdm(total=total, file=sys.stdout, unit="trial", dynamic_ncols=True,
                        initial=sum(t.trials for t in scheduler.tasks))

    def update(self, scheduler: TaskScheduler, record: Any) -> None:
        """A trial is done."""
        if self.board is not None:
            self.board.refresh(force=False)
        if self.bar is not None:
            best = [t.best_time * 1e6 for t in scheduler.tasks if t.best_time is not None]
            failed = sum(t.failures for t in scheduler.tasks)
            modelled = " by the model" if any(t.modelled for t in scheduler.tasks) else ""
            self.bar.set_postfix_str(
                f"best {min(best):.2f} us{modelled}" if len(best) == 1 else f"{len(best)} tasks"
                + (f", {failed} failed" if failed else ""), refresh=False)
            self.bar.update(1)

    def confirming(self) -> None:
        """A task has had its trials; its best programs are measured once more."""
        if self.bar is not None:
            self.bar.set_postfix_str("the best ones once more")

    def finish(self, scheduler: TaskScheduler) -> None:
        """The search is over."""
        if self.board is not None:
            self.board.finish()
            self.board = None
        if self.bar is not None:
            self.bar.close()
            self.bar = None
        if not self.quiet and scheduler.tasks:
            print(scheduler.tuning_statistics())
            if scheduler.interrupted:
                print("Stopped: what was found is in the database; the same call goes on from here")
                return
            for task in scheduler.tasks:
                if task.exhausted and task.trials:
                    print(f"Task {task.context.task_name} ended after {task.trials} of "
                          f"{task.wanted} trials: {task.context.search_strategy.ending}")


def _live_board(scheduler: TaskScheduler) -> Any:
    """A tuning board in the output of the notebook cell that searches; None where there is none."""
    shell = sys.modules.get("IPython")
    shell = shell.get_ipython() if shell is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    try:
        from IPython.display import display

        view = scheduler.database.board(peak_gflops=False).show(running=True)
    except ImportError:
        return None
    display(view)
    return view
