"""Code of programs made in a process of its own: for a reader who waits, or ahead of time.

A `Coder` makes one after another: first what a reader waits for, then, as long as no other worker
process is busy, what a reader may want next. A compiler that takes too long is stopped with its
process, and the answer says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from ..ir.module import IRModule
from ..ir.serialize import SerializeError
from ..workers import pool
from ..workers.pool import Worker
from .lowered import code_of
from .recording import Recording

_SERVICE = f"{__package__}.isolated"
#: seconds after which a compiler is stopped
LIMIT_S = 30.0
#: seconds without work after which the process ends; it starts again when it is asked
IDLE_S = 60.0
#: seconds between looks at whether other processes are busy
_LOOK_S = 0.2


@dataclass
class _Job:
    mod: IRModule
    target: Any
    done: Callable[[dict[str, Any]], None]
    ahead: bool


class Coder:
    """Makes the code of programs, one at a time, in a process."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self.limit_s = limit_s
        self._jobs: dict[Hashable, _Job] = {}
        self._lock = threading.Condition()
        self._thread: threading.Thread | None = None
        self._worker: Worker | None = None

    def ask(self, key: Hashable, mod: IRModule, target: Any, done: Callable[[dict], None],
            ahead: bool = False) -> None:
        """Make the code of a program and call `done(code)` from a thread, or `done({"message"})`.

        With `ahead` it is made when nobody waits. What was asked before under the same key, and has
        not begun, is forgotten.
        """
        with self._lock:
            self._jobs.pop(key, None)
            self._jobs[key] = _Job(mod, target, done, ahead)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
            self._lock.notify()

    def _next(self) -> _Job | None:
        """The next job, waited for; None after nothing was asked for a while."""
        with self._lock:
            while True:
                waited = [key for key, job in self._jobs.items() if not job.ahead]
                if waited or (self._jobs and pool.busy() == 0):
                    return self._jobs.pop(waited[0] if waited else next(iter(self._jobs)))
                if not self._lock.wait(_LOOK_S if self._jobs else IDLE_S) and not self._jobs:
                    self._thread = None
                    if self._worker is not None:
                        self._worker.close()
                        self._worker = None
                    return None

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job.done(self._make(job))

    def _make(self, job: _Job) -> dict[str, Any]:
        try:
            if self._worker is None or not self._worker.alive:
                self._worker = Worker(_SERVICE)
            target = job.target if isinstance(job.target, (str, dict)) else str(job.target)
            reply = self._worker.call({"do": "code", "module": job.mod, "target": target},
                                      self.limit_s)
        except SerializeError:  # a program that only this process has
            recording = Recording()
            recording.modules = [job.mod]
            return code_of(recording, [0], job.target)
        except Exception as error:  # the reader is told, whatever it is
            return {"message": f"{type(error).__name__}: {error}"}
        if reply["status"] == "ok":
            return reply["code"]
        if reply["status"] == "timeout":
            return {"message": f"the compiler took more than {self.limit_s:g} s and was stopped"}
        return {"message": f"the compiler ended: {reply['reason']}"}


#: the one of this process
SHARED = Coder()

__all__ = ["Coder", "SHARED"]
