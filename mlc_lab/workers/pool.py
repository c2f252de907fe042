"""Worker processes that are kept, fed, watched and replaced.

A `WorkerPool` has so many workers and one queue of requests. A request that kills its worker or
takes too long is answered with a status and a reason, its worker is replaced, and the next request
goes on. Answers are dicts with a `status`: "ok", or why not.
"""

from __future__ import annotations

import atexit
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Callable, Sequence

from .child import OUT_OF_TIME
from .messages import EVENT, LENGTH, decode, encode, receive, send

_ROOT = str(Path(__file__).resolve().parents[2])


_calls = 0
_counting = threading.Lock()


def busy() -> int:
    """How many processes are answering a request of this one."""
    return _calls


def _count(more: int) -> None:
    global _calls
    with _counting:
        _calls += more


class Worker:
    """One process; `call` gives it a request and waits for the answer.

    Parameters
    ----------
    service: the module whose handlers answer.
    role: what its `load` is told.
    cpus: the cores that it may use, all if there are none.
    memory: bytes that it may take beyond what it has when it is ready; None for any.
    threads: for parallel loops; None for as many as here.
    """

    def __init__(self, service: str, role: str = "", cpus: Sequence[int] = (),
                 memory: int | None = None, threads: int | None = 1) -> None:
        environment = dict(os.environ)
        path = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = _ROOT + (os.pathsep + path if path else "")
        if threads is not None:
            environment["MLC_LAB_NUM_THREADS"] = str(threads)
            for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
                environment[name] = "1"
        code = f"from mlc_lab.workers.child import main; main({service!r})"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=environment, start_new_session=True)
        self.answers: queue.Queue = queue.Queue()
        threading.Thread(target=_listen, args=(self.process.stdout, self.answers),
                         daemon=True).start()
        weakref.finalize(self, _stop, self.process)
        send(self.process.stdin, {"role": role, "cpus": list(cpus), "memory": memory})

    def call(self, request: dict, timeout: float,
             on_event: Callable[[dict], None] | None = None) -> dict:
        """The answer; after a status of "crash", "timeout" or "cpu" the process is gone. `timeout`
        is in seconds that pass; a request that has "cpu" may take so many of the processor.
        `on_event` is called with what the worker tells on the way.

        Raises TypeError for a request that cannot be sent.
        """
        data = encode(request)
        end = time.monotonic() + timeout
        _count(1)
        try:
            stdin = self.process.stdin
            assert stdin is not None
            stdin.write(LENGTH.pack(len(data)) + data)
            stdin.flush()
            while True:
                reply = self.answers.get(timeout=max(0, end - time.monotonic()))
                if not isinstance(reply, dict) or reply.get("status") != EVENT:
                    break
                if on_event is not None:
                    on_event(reply)
        except queue.Empty:
            self.close()
            return {"status": "timeout",
                    "reason": f"no answer within {timeout:g} s; it was stopped"}
        except (OSError, ValueError):
            reply = None
        except BaseException:  # an interrupt: the answer to this request must not be read later
            self.close()
            raise
        finally:
            _count(-1)
        if not isinstance(reply, dict) or not isinstance(reply.get("status"), str):
            self.close(wait=2)
            if self.process.returncode in _OUT_OF_TIME:
                return {"status": "cpu", "reason": f"it took more than {request.get('cpu'):g} s of "
                        "processor time"}
            return {"status": "crash", "reason": _death(self.process.returncode)}
        if reply["status"] == "memory":
            self.close()
        return reply

    @property
    def alive(self) -> bool:
        """Whether requests can be sent."""
        return self.process.poll() is None

    def close(self, wait: float = 0) -> None:
        """Stop the process, at once after `wait` seconds."""
        _stop(self.process, wait)


def _stop(process: subprocess.Popen, wait: float = 0) -> None:
    try:
        process.wait(timeout=wait)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in filter(None, (process.stdin, process.stdout)):
        try:
            pipe.close()
        except OSError:
            pass


def _listen(pipe: Any, answers: queue.Queue) -> None:
    try:
        while True:
            answers.put(decode(receive(pipe)))
    except (EOFError, OSError, ValueError):  # what it ran may have written into its answers
        answers.put(None)


#: how a process ends that has no processor time left
_OUT_OF_TIME = (OUT_OF_TIME, -getattr(signal, "SIGPROF", -OUT_OF_TIME))
#: what a process died of, in words
_DEATHS = {"SIGSEGV": "it touched memory that is not its own", "SIGFPE": "it divided by zero",
           "SIGABRT": "it aborted", "SIGILL": "it used an instruction this machine does not have",
           "SIGBUS": "it touched memory that is not there",
           "SIGKILL": "the system does that when memory runs out"}


def _death(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"the process died of {name}" + (f": {_DEATHS[name]}" if name in _DEATHS else "")
    return f"the process ended with code {code}"


class WorkerPool:
    """`count` workers on one queue. `make()` starts a worker; it is called again after a death."""

    def __init__(self, count: int, make: Callable[[], Worker]) -> None:
        self.make = make
        self.count = count
        self._queue: queue.Queue = queue.Queue()
        self._workers: list[Worker | None] = [None] * count
        self._closed = False
        for index in range(count):
            threading.Thread(target=_serve, args=(weakref.ref(self), self._queue, index),
                             daemon=True).start()
        _pools.add(self)

    def submit(self, request: dict, timeout: float,
               again: Callable[[Worker], None] | None = None) -> Future:
        """A future of the answer. `again(worker)` prepares a worker that is new."""
        future: Future = Future()
        self._queue.put((request, timeout, again, future))
        return future

    def cancel(self) -> None:
        """Drop what has not begun."""
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return
            if item is not None:
                item[3].cancel()

    def start(self) -> None:
        """Start the workers now, rather than with the first requests."""
        for index, worker in enumerate(self._workers):
            if worker is None:
                self._workers[index] = self.make()

    def kill_workers(self) -> None:
        """Stop what runs now; its request is answered with a crash."""
        for worker in self._workers:
            if worker is not None:
                worker.close()

    def close(self) -> None:
        """Stop everything."""
        self._closed = True
        self.cancel()
        for _ in range(self.count):
            self._queue.put(None)
        self.kill_workers()

    def _run(self, index: int, item: tuple) -> None:
        request, timeout, again, future = item
        if not future.set_running_or_notify_cancel():
            return
        worker = self._workers[index]
        if worker is None or not worker.alive:
            worker = self._workers[index] = self.make()
        try:
            reply = worker.call(request, timeout)
            if reply["status"] == "unprepared" and again is not None:
                trouble = again(worker)
                reply = trouble or worker.call(request, timeout)
        except Exception as error:  # e.g. a request that cannot be sent
            reply = {"status": "error", "reason": f"{type(error).__name__}: {error}"}
        future.set_result(reply)


def _serve(pool: Any, items: queue.Queue, index: int) -> None:
    """The thread of one worker; it does not keep the pool alive."""
    while True:
        item = items.get()
        owner = pool()
        if item is None or owner is None or owner._closed:
            if item is not None:
                item[3].cancel()
            return
        owner._run(index, item)
        del owner, item


_pools: weakref.WeakSet = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


_shared: dict[tuple, WorkerPool] = {}


def shared_pool(service: str, role: str, count: int, cpus: Sequence[int], memory: int | None,
                threads: int) -> WorkerPool:
    """The process's pool of that description: the next search finds its workers running."""
    key = (service, role, count, tuple(cpus), memory, threads)
    pool = _shared.get(key)
    if pool is None or pool._closed:
        pool = _shared[key] = WorkerPool(
            count, lambda: Worker(service, role, cpus, memory, threads))
    pool.start()
    return pool


def usable_cpus() -> list[int]:
    """The numbers of the cores this process may use."""
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:
        return list(range(os.cpu_count() or 1))
