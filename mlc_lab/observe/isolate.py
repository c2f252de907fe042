"""Measures programs in a child process: one that crashes or hangs ends only that process.

This is the side that asks; what the process does stands in `isolated.py`. It is kept for the next
program, and started anew after a crash or a timeout. Memory is limited where the system can do
that.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from ..ir.module import IRModule
from ..workers.pool import Worker

_SERVICE = f"{__package__}.isolated"

#: seconds for building, running, checking and timing one program
TIMEOUT = 30.0
#: bytes of memory that a measured program may ask for, beyond what the child has when it starts
MEMORY = 8 << 30


class Isolated:
    """Measures programs against a reference program, in a child process.

    `reference` is the IRModule whose results are right; None where nothing is checked. `cost(mod)`
    gives what `measure.Measurement.one` gives, `counted(mod, caches)` what is counted of a program;
    a crash, a timeout or too much memory become its message.
    """

    def __init__(self, reference: IRModule | None, target: Any = "llvm",
                 sizes: Mapping[str, int] | None = None, *, timeout_s: float = TIMEOUT,
                 memory: int = MEMORY, trusted: bool = False) -> None:
        self.reference = reference
        self.setup = {"do": "begin", "target": target if isinstance(target, (str, dict)) else
                      str(target), "sizes": dict(sizes or {}), "trusted": trusted}
        self.timeout_s, self.memory = timeout_s, memory
        self.worker: Worker | None = None
        #: why the reference itself could not be run; then results are not checked
        self.unchecked = ""
        self._referred = False  # whether the child knows the reference
        self._asking = threading.Lock()  # one request at a time: an answer is that to the last one

    def refer(self, reference: IRModule) -> None:
        """Compare with another program from now on."""
        if reference is not self.reference:
            self.reference, self.unchecked, self._referred = reference, "", False

    def cost(self, mod: IRModule, seconds: float) -> dict[str, Any]:
        """The cost of a program, timed for about `seconds`. Raises for no fault of the program."""
        return self._of(mod, {"do": "cost", "seconds": seconds})

    def counted(self, mod: IRModule, caches: list[dict[str, Any]] | None, inner: bool = True
                ) -> dict[str, Any]:
        """The inner loop of a program, unless it is not asked for, and, in caches as
        `CacheHierarchy.to_dict` has them, its counts; see `count_steps.py`. Raises for no fault of
        the program."""
        return self._of(mod, {"do": "counted", "caches": caches, "inner": inner})

    def accesses(self, mod: IRModule, caches: list[dict[str, Any]], limit: int, offered: int
                 ) -> dict[str, Any]:
        """The first accesses of a program, as `AccessTrace.shown` has them, or {"message"}."""
        return self._of(mod, {"do": "accesses", "caches": caches, "limit": limit,
                              "offered": offered})

    def _of(self, mod: IRModule, request: dict[str, Any]) -> dict[str, Any]:
        from ..ir.serialize import SerializeError

        try:
            with self._asking:
                worker = self.worker
                if worker is None or not worker.alive:
                    worker = self._start()
                elif not self._referred:
                    worker = self._refer(worker)
                return self._ask(worker, {**request, "module": mod})
        except SerializeError as error:
            return {"message": f"not measured: {error}"}

    def _start(self) -> Worker:
        """Start a child."""
        worker = self.worker = Worker(_SERVICE, memory=self.memory, threads=None)
        self._ask(worker, self.setup)
        return self._refer(worker)

    def _refer(self, worker: Worker) -> Worker:
        """Let a child run the reference once."""
        self._referred = True
        if self.unchecked or self.reference is None:
            return worker  # it crashed or hung before: once is enough
        reply = self._ask(worker, {"do": "reference", "module": self.reference})
        self.unchecked = reply.get("message", "")
        return worker if worker.alive else self._start()

    def _ask(self, worker: Worker, request: dict[str, Any]) -> dict[str, Any]:
        """The cost that the child answers, or a message that says why there is none."""
        reply = worker.call(request, self.timeout_s)
        status = reply["status"]
        if status == "ok":
            return reply["cost"]
        if status == "timeout":
            return {"message": f"stopped: it took more than {self.timeout_s:g} s"}
        return {"message": f"it crashed: {reply['reason']}" if status == "crash" else
                f"not measured: {reply['reason']}"}

    def close(self) -> None:
        """End the child. What another thread waits for is answered with a message."""
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.close()

    def __enter__(self) -> Isolated:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
