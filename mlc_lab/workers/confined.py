"""Functions that were handed in are called here, in a process of their own that may do little.

    with Confined("def twice(x):\\n    return 2 * x") as run:
        run.call("twice", 4)            # 8

The process has limits on processor time, memory, sizes of files and number of processes, an empty
environment, and an empty folder as its working folder; on Linux it can start nothing, write no
file, open no connection (`confinement.py` has all of it, and what is missing elsewhere). With the
end of the block it is killed together with all processes of its group, and the folder is removed.

Results are plain data, and are what the function says: they may be wrong, forged or hostile. Who
calls must know the right ones from elsewhere, and never send them. What comes back is read as JSON
within bounds; a result too long, no JSON, or too late ends the process.

What this does not protect from stands in docs/safety.md.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..reading import DataError, read_json, shortened

_ROOT = str(Path(__file__).resolve().parents[2])
#: seconds of processor time, seconds until it is stopped, bytes of memory beyond those at its start
SECONDS, WALL, MEMORY = 4.0, 12.0, 512 << 20
#: bytes of one result; questions that a call may ask
MOST_RESULT, MOST_ASKED = 4 << 20, 10_000
#: whether one can wait for a pipe; on Windows only for sockets, so a thread ends what is late there
SELECTS = os.name != "nt"


class Failed(DataError):
    """A call that raised an exception. `line` is the line of the text, 0 where that is not known.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        self.line = line
        super().__init__(message)


class Stopped(Failed):
    """The process is gone, or was ended for what it did."""


class Confined:
    """A process that runs the functions of a text; a context manager.

    Parameters
    ----------
    text : the functions, as Python.
    prelude : Python of ours, which runs first; see `confined_child.py`.
    seconds : of processor time, from when the text begins to run.
    wall : seconds after which it is stopped in any case. Those in which it could run and waited for
        a processor do not count, where the system tells them: a busy machine gives the same marks.
    memory : bytes beyond what the process has when the text begins to run.

    Raises Stopped where the process cannot be started.
    """

    def __init__(self, text: str, prelude: str = "", seconds: float = SECONDS, wall: float = WALL,
                 memory: int = MEMORY) -> None:
        self.seconds, self.memory = seconds, memory
        self._folder = tempfile.mkdtemp(prefix="mlc-lab-")
        kept = {"SYSTEMROOT": os.environ["SYSTEMROOT"]} if "SYSTEMROOT" in os.environ else {}
        code = (f"import os, sys; sys.path.insert(0, {_ROOT!r})\n"
                "for n in 'OMP', 'OPENBLAS', 'MKL', 'MLC_LAB': os.environ[n + '_NUM_THREADS'] = '1'"
                "\nfrom mlc_lab.workers.confined_child import main; main()")
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", code], stdin=subprocess.PIPE, bufsize=0,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=kept, cwd=self._folder,
            start_new_session=True)
        self._rest = b""
        self._starved = 0.0
        self._end = time.monotonic() + 2 * wall  # starting, too, has an end
        if not SELECTS:
            threading.Thread(target=self._watch, daemon=True).start()
        try:
            #: what the process has given up, see `confinement.confine`
            self.rights: list[str] = self._exchange({
                "text": text, "prelude": prelude, "seconds": seconds, "memory": memory}, {})
        except BaseException:
            self.close()
            raise
        self._end = time.monotonic() + wall

    def __enter__(self) -> Confined:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and all of its group; remove its folder."""
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self.process.kill()
        self.process.wait()
        for pipe in filter(None, (self.process.stdin, self.process.stdout)):
            with contextlib.suppress(OSError):
                pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, name: str, *args: Any, ask: Mapping[str, Callable[..., Any]] | None = None
             ) -> Any:
        """What a function returns for some arguments, plain data both.

        `ask` has what the function may ask for while it runs, by name; an answer is plain data.
        What those raise ends the call, and is raised here. Raises Failed for a function that
        raises, and Stopped for one that was ended.
        """
        return self._exchange({"call": name, "args": args}, ask or {})

    def _exchange(self, request: dict[str, Any], ask: Mapping[str, Callable[..., Any]]) -> Any:
        self._send(request)
        for _ in range(MOST_ASKED):
            reply = self._receive()
            if isinstance(reply, dict):
                if "result" in reply:
                    return reply["result"]
                if isinstance(reply.get("error"), dict):
                    raise _failed(reply["error"])
                args = reply.get("args")
                if isinstance(reply.get("ask"), str) and isinstance(args, list) and (
                        reply["ask"] in ask):
                    self._send({"value": ask[reply["ask"]](*args)})
                    continue
            raise self._stop("it wrote something else into its results")
        raise self._stop(f"it asked more than {MOST_ASKED:,} times")

    def _send(self, value: Any) -> None:
        pipe = self.process.stdin
        assert pipe is not None
        data = memoryview(json.dumps(value).encode() + b"\n")
        while data:
            # a pipe that can be written takes this many bytes without waiting (PIPE_BUF)
            self._wait(pipe, selectors.EVENT_WRITE)
            try:
                data = data[os.write(pipe.fileno(), data[:512]):]
            except OSError:
                raise self._gone() from None

    def _receive(self) -> Any:
        pipe = self.process.stdout
        assert pipe is not None
        found = [self._rest]
        size = len(self._rest)
        while b"\n" not in found[-1]:
            if size > MOST_RESULT:
                raise self._stop(f"a result of more than {MOST_RESULT:,} bytes")
            self._wait(pipe, selectors.EVENT_READ)
            data = os.read(pipe.fileno(), 1 << 16)
            if not data:
                raise self._gone()
            found.append(data)
            size += len(data)
        line, self._rest = b"".join(found).split(b"\n", 1)
        try:
            return read_json(line, "the result")
        except (DataError, RecursionError) as error:
            raise self._stop(str(error)) from None

    def _watch(self) -> None:
        """End the process when its time is over; reads and writes of its pipes end with it."""
        while self.process.poll() is None:
            if self._left() <= 0:
                self.process.kill()
            time.sleep(0.05)

    def _wait(self, pipe: Any, event: int) -> None:
        if not SELECTS:
            return
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, event)
            while not selector.select(max(0.0, self._left())):
                if self._left() <= 0:
                    raise self._stop("it took too long")

    def _left(self) -> float:
        """The seconds that it has."""
        return self._end + self._waited() - time.monotonic()

    def _waited(self) -> float:
        """The seconds in which the process could run and had no processor, as far as is known."""
        with contextlib.suppress(OSError, ValueError, IndexError):  # gone: what was known
            told = Path(f"/proc/{self.process.pid}/schedstat").read_text("ascii").split()
            self._starved = int(told[1]) / 1e9
        return self._starved

    def _gone(self) -> Stopped:
        """Why the process has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        code = self.process.returncode
        if self._left() <= 0:
            return self._stop("it took too long")
        names = {-getattr(signal, n): n for n in ("SIGXCPU", "SIGKILL", "SIGSEGV")
                 if hasattr(signal, n)}
        name = names.get(code if code is not None else 1)
        if name in ("SIGXCPU", "SIGKILL"):
            return self._stop(f"it took more than {math.ceil(self.seconds)} s of processor time")
        return self._stop("its process ended without a result" + (
            ": it crashed" if name else ""))

    def _stop(self, why: str) -> Stopped:
        self.close()
        return Stopped(f"stopped: {why}")


def _failed(error: dict[str, Any]) -> Failed:
    line = error.get("line")
    return Failed(shortened(str(error.get("what", ""))), line if type(line) is int else 0)


__all__ = ["Confined", "Failed", "Stopped"]
