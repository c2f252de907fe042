"""How a search shows where it is: one line in a terminal, the table at the end."""

from __future__ import annotations

import sys
import time
from typing import Any


class Progress:
    """Prints the table at the beginning and the end and, in a terminal, a line that follows.

    In a notebook nothing is written while the search runs but the line; standard error stays empty.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet, self.bar = quiet, None

    def start(self, scheduler: Any) -> None:
        """The search begins."""
        self.begun = time.perf_counter()
        if self.quiet or not sys.stdout.isatty():
            return
        try:
            from tqdm import tqdm
        except ImportError:
            return
        total = min(scheduler.max_trials_global, sum(t.wanted for t in scheduler.tasks))
        self.bar = tqdm(total=total, file=sys.stdout, unit="trial", dynamic_ncols=True,
                        initial=sum(t.trials for t in scheduler.tasks))

    def update(self, scheduler: Any, record: Any) -> None:
        """A trial is done."""
        if self.bar is not None:
            best = [t.best_time * 1e6 for t in scheduler.tasks if t.best_time is not None]
            failed = sum(t.failures for t in scheduler.tasks)
            self.bar.set_postfix_str(
                f"best {min(best):.2f} us" if len(best) == 1 else f"{len(best)} tasks"
                + (f", {failed} failed" if failed else ""), refresh=False)
            self.bar.update(1)

    def finish(self, scheduler: Any) -> None:
        """The search is over."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
        if not self.quiet and scheduler.tasks:
            print(scheduler.tuning_statistics())
            if scheduler.interrupted:
                print("Stopped: what was found is in the database; the same call goes on from here")
