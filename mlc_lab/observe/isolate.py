"""Measures programs in a process of its own: one that crashes or hangs takes nothing with it.

The child is this module, run as `python -m mlc_lab.observe.isolate`. It gets one JSON object a line
on its standard input and answers with one a line; programs travel as the JSON of `ir.serialize`,
which is read without executing anything. It is kept for the next program, and started anew after a
crash or a timeout. Memory is limited where the system can do that (`resource`).
"""

from __future__ import annotations

import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: seconds for building, running, checking and timing one program
TIMEOUT = 30.0
#: bytes of memory that a measured program may ask for, beyond what the child has when it starts
MEMORY = 8 << 30


class Isolated:
    """Measures programs against a reference program, in a child process.

    `reference` is the IRModule whose results are right. `cost(mod)` gives what
    `measure.Measurement.one` gives; a crash, a timeout or too much memory become its message.
    """

    def __init__(self, reference: Any, target: Any = "llvm", sizes: Mapping[str, int] | None = None,
                 *, timeout_s: float = TIMEOUT, memory: int = MEMORY,
                 trusted: bool = False) -> None:  # fmt: skip
        self.reference = reference
        self.setup = {"target": target if isinstance(target, (str, dict)) else str(target),
                      "sizes": dict(sizes or {}), "memory": memory,
                      "timeout": timeout_s, "trusted": trusted}  # fmt: skip
        self.timeout_s = timeout_s
        self.process: subprocess.Popen | None = None
        #: why the reference itself could not be run; then results are not checked
        self.unchecked = ""

    def cost(self, mod: Any, seconds: float) -> dict[str, Any]:
        """The cost of a program, timed for about `seconds`. Never raises for the program's sake."""
        from ..ir.serialize import SerializeError, save_json

        try:
            request = {"module": save_json(mod), "seconds": seconds}
        except SerializeError as error:
            return {"message": f"not measured: {error}"}
        if self.process is None or self.process.poll() is not None:
            self._start()
        return self._ask(request)

    def _start(self) -> None:
        """Start a child and let it run the reference once."""
        from ..ir.serialize import save_json

        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH")) if p)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mlc_lab.observe.isolate"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path}, start_new_session=os.name == "posix",
        )  # fmt: skip
        weakref.finalize(self, _kill, self.process)
        self.answers: queue.Queue = queue.Queue()
        threading.Thread(target=_listen, args=(self.process, self.answers), daemon=True).start()
        self._ask(self.setup)
        if self.unchecked:
            return  # it crashed or hung before: once is enough
        told = self._ask({"reference": save_json(self.reference)})
        self.unchecked = told.get("message", "")
        if self.process is None:
            self._start()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer; a child that gives none is ended."""
        process = self.process
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            answer = self.answers.get(timeout=self.timeout_s)
        except queue.Empty:
            self.close()
            return {"message": f"stopped: it took more than {self.timeout_s:g} s"}
        except BrokenPipeError:
            answer = None
        except BaseException:  # an interrupt: the answer to this request must not be read later
            self.close()
            raise
        if answer is None:
            code = process.wait()
            self.process = None
            return {"message": f"it crashed: {_ending(code)}"}
        return answer

    def close(self) -> None:
        """End the child."""
        if self.process is not None:
            _kill(self.process)
            self.process = None

    def __enter__(self) -> Isolated:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _listen(process: subprocess.Popen, answers: queue.Queue) -> None:
    """Put each line the child answers into the queue, None at its end."""
    for line in process.stdout:
        try:
            answers.put(json.loads(line))
        except (ValueError, RecursionError):  # what it measured wrote into its answers
            process.kill()
            break
    answers.put(None)


def _kill(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        try:
            pipe.close()
        except OSError:
            pass


def _ending(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"its process ended with status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    words = {"SIGSEGV": "it touched memory that is not its own", "SIGFPE": "it divided by zero",
             "SIGABRT": "it aborted", "SIGKILL": "it was killed, for example for want of memory",
             "SIGILL": "it used an instruction this machine does not have",
             "SIGBUS": "it touched memory that is not there", "SIGALRM": "it hung"}  # fmt: skip
    return f"{words.get(name, 'it was ended')} ({name})"


# --------------------------------------------------------------------------------- in the child


def _limit_memory(limit: int) -> None:
    """Let this process have `limit` bytes more address space than it has now."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        wanted = now + limit
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    except (ImportError, OSError, ValueError):
        return  # no such limit on this system


def _serve(requests: Any, answers: Any) -> None:
    """Answer requests until there are no more."""
    from ..ir.serialize import load_json
    from . import measure
    from .recording import Recording

    setup = json.loads(requests.readline())
    modules: list[Any] = [None]  # the reference, if it is given
    session = measure.Measurement(
        Recording(), modules, target=setup["target"], sizes=setup["sizes"],
        trusted=setup["trusted"])
    _limit_memory(setup["memory"])

    def say(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()

    say({})
    for line in requests:
        if hasattr(signal, "alarm"):  # should the parent be gone when the program hangs
            signal.alarm(math.ceil(setup["timeout"]) + 5)
        request = json.loads(line)
        if "reference" in request:
            modules[0] = load_json(request["reference"])
            say(session.reference())
        else:
            measure.TIME_EACH = request["seconds"]
            modules[1:] = [load_json(request["module"])]
            say(session.one(1))
        if hasattr(signal, "alarm"):
            signal.alarm(0)


def main() -> None:
    """Serve on standard input and output; whatever else writes to the output goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
