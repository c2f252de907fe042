"""The process of a worker: answers one request after the other with the handlers of a service.

Started by `pool.py`, so that the user's `__main__` is not imported again. Whatever a request does
(crash, hang, eat memory) happens here; the pool sees a dead or silent process and starts another
one. When the parent is gone, so is the worker.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from .messages import EVENT, decode, receive, send

#: how a process ends whose processor time is over, where the system has no timer for it
OUT_OF_TIME = 77


def main(service: str) -> None:
    """Serve requests, by the module called `service`, until standard input ends."""
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)  # what programs print must not mix with the answers
    requests: queue.Queue = queue.Queue()

    def listen() -> None:
        try:
            while True:
                requests.put(receive(source))
        except (EOFError, OSError, ValueError):
            os._exit(0)  # the parent is gone: stop, whatever a program is doing

    threading.Thread(target=listen, daemon=True).start()
    module: Any = None
    limited = False
    while True:
        # Read by this thread: reading may import modules, as `load` does, and two threads that
        # import modules which need each other may see one of them half done.
        request = decode(requests.get())
        if module is None:  # the first one says what the process may use
            module = importlib.import_module(service)
            limited = _set_up(module, request)
            continue
        reply = answer(module, request, lambda event: send(sink, {**event, "status": EVENT}))
        if reply["status"] == "memory" and not limited:
            reply["reason"] = "the machine has no more memory"
        try:
            send(sink, reply)
        except OSError:
            os._exit(0)
        if reply["status"] == "memory":
            sys.exit(0)


def _set_up(module: Any, request: dict) -> bool:
    """Take the cores and the memory that are given; whether memory is limited."""
    with contextlib.suppress(OSError, AttributeError):
        if request.get("cpus"):
            os.sched_setaffinity(0, request["cpus"])
    load = getattr(module, "load", None)
    if load is not None:
        load(request.get("role"))
    gc.freeze()  # what was imported stays: each search for garbage would walk over it
    return bool(request.get("memory")) and limit_memory(request["memory"])


def answer(module: Any, request: dict, tell: Callable[[dict], None]) -> dict:
    """Handle one request; errors become answers. A handler that is a generator tells what it
    yields on the way, and its answer is what it returns."""
    try:
        if request["do"] == "ping":
            return {"status": "ok", "pid": os.getpid()}
        with processor_time(request.get("cpu")):
            made: Any = module.HANDLERS[request["do"]](request)
            while inspect.isgenerator(made):
                try:
                    event: Any = next(made)
                except StopIteration as done:
                    return done.value
                tell(event)
            return made
    except MemoryError:
        return {"status": "memory", "reason": "it asked for more memory than a worker may use"}
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        return {"status": "error", "reason": what[:4000]}


@contextlib.contextmanager
def processor_time(seconds: float | None) -> Iterator[None]:
    """End this process when it has taken so much processor time, whatever it does then; None for
    any. Time in which others have the processor does not count."""
    if seconds is None:
        yield
    elif hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which also ends a loop in machine code
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    else:
        done = threading.Event()
        end = time.process_time() + seconds

        def watch() -> None:
            while not done.wait(0.25):
                if time.process_time() > end:
                    os._exit(OUT_OF_TIME)

        threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            done.set()


def limit_memory(extra: int) -> bool:
    """Let this process take at most `extra` bytes more than it has, where the system can do that.
    """
    try:
        import resource

        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        wanted = now + extra if hard == resource.RLIM_INFINITY else min(now + extra, hard)
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    except (ImportError, OSError, ValueError):
        return False
    return True
