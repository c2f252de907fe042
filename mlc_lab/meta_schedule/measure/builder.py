"""Builders: from scheduled modules to object code, in worker processes, several at once.

No linker takes part: the object code travels to the runner, which links it in memory.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple, Sequence

from ...runtime.export import write_object
from ...workers.pool import shared_pool, usable_cpus
from ..defaults import is_gpu
from .own_build import Answer, OwnBuild

#: what the worker processes serve
SERVICE = f"{__package__}.service"


class BuilderInput(NamedTuple):
    """A module to build for a target."""

    mod: Any
    target: Any
    params: Any = None


@dataclass(init=False)
class BuilderResult:
    """Object code with its description, or the path of what a user's own builder wrote, or why
    there is neither.

    `status` is "ok", "build_error", "crash", "timeout" or "memory"; `seconds` what building took.
    TVM's form is `BuilderResult(artifact_path, error_msg)`, one of the two None. Object code has an
    `artifact_path` as well: a file for `tvm.runtime.load_module`, which is written when it is asked
    for, in a folder of its own that belongs to who asked. Raises TypeError
    for arguments of neither form, ValueError for a result without anything that was built.
    """

    obj: bytes | None
    meta: dict | None
    status: str
    reason: str
    seconds: float
    path: str | None

    def __init__(self, obj: Any = None, meta: Any = None, status: str | None = None,
                 reason: str = "", seconds: float = 0.0, artifact_path: Any = None,
                 error_msg: str | None = None) -> None:
        if isinstance(obj, (str, os.PathLike)):
            obj, artifact_path = None, obj
        if isinstance(meta, str):
            meta, error_msg = None, meta
        for what, given, kinds in (("obj", obj, (bytes, bytearray)), ("meta", meta, dict),
                                   ("status", status, str), ("error_msg", error_msg, str),
                                   ("artifact_path", artifact_path, (str, os.PathLike))):
            if given is not None and not isinstance(given, kinds):
                raise TypeError(
                    f"{what} of a BuilderResult is given as {type(given).__name__}; it takes "
                    "(artifact_path, error_msg), texts, or (obj, meta), object code and a dict")
        self.obj, self.meta, self.seconds = obj, meta, seconds
        self.path = None if artifact_path is None or obj is not None else os.fspath(artifact_path)
        self.status = status or ("ok" if error_msg is None else "build_error")
        self.reason = reason or error_msg or ""
        if self.status == "ok" and obj is None and artifact_path is None:
            raise ValueError("this BuilderResult says neither what was built (artifact_path or "
                             "obj) nor why not (error_msg)")

    @property
    def artifact_path(self) -> str | None:
        """The file of what was built; None if there is none."""
        if self.path is None and self.obj is not None:
            folder = tempfile.mkdtemp(prefix="mlc_lab_build_")
            self.path = write_object(os.path.join(folder, "built.o"), self.obj)
        return self.path

    def discard_file(self) -> None:
        """Remove the file that `artifact_path` wrote."""
        if self.path is not None and self.obj is not None:
            shutil.rmtree(os.path.dirname(self.path), ignore_errors=True)
            self.path = None

    @property
    def error_msg(self) -> str | None:
        """Why there is no object code; None if there is."""
        return None if self.status == "ok" else self.reason


class Builder:
    """Interface: override `build`, which answers a list of inputs with a list of results."""

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Build all; the results are in the order of the inputs."""
        return [f.result() for f in map(self.submit, build_inputs)]

    def submit(self, build_input: BuilderInput) -> Future:
        """A future of one result."""
        future: Future = Future()
        future.set_result(self.build([build_input])[0])
        return future

    def cancel(self) -> None:
        """Drop what has not begun."""

    @staticmethod
    def create(kind: Any = "local", **options: Any) -> "Builder":
        """The builder called `kind` ("local"), or the one given."""
        if isinstance(kind, str):
            if kind != "local":
                raise ValueError(f'there is no builder {kind!r}; "local" builds in processes here')
            return LocalBuilder(**options)
        return kind


PyBuilder = Builder


class LocalBuilder(Builder):
    """Builds in worker processes of this machine.

    Parameters
    ----------
    max_workers: processes; by default one less than the cores one may use.
    timeout_sec: after that a build is given up, and its worker replaced.
    memory_mb: what a build may take.

    f_build, f_export, initializer: functions of one's own, or names in the registry of functions.
        `f_build(mod, target, params)` gives a module, `f_export(module)` the path of what it wrote;
        each build is then made in a process that is forked for it, where `initializer()` is called
        first, and the result has that `artifact_path`, which a runner of one's own has to load.

    Raises ValueError where a name is not known after `initializer()`, or nothing can be forked.
    """

    def __init__(self, max_workers: int | None = None, timeout_sec: float = 15.0,
                 memory_mb: int = 4096, f_build: Any = None, f_export: Any = None,
                 initializer: Any = None) -> None:
        cpus = usable_cpus()
        self.max_workers = max_workers or max(1, min(8, len(cpus) - 1))
        self.timeout_sec, self.memory_mb = timeout_sec, memory_mb
        self.own: OwnBuild | None = None
        self._waiting: ThreadPoolExecutor | None = None
        if f_build is not None or f_export is not None:
            self.own = OwnBuild(f_build, f_export, initializer, timeout_sec, memory_mb << 20)
        self.pool = shared_pool(SERVICE, "build", self.max_workers, cpus[:-1], memory_mb << 20, 1)

    def submit(self, build_input: BuilderInput) -> Future:
        """A future of one result."""
        if self.own is not None:
            return then(self._threads().submit(self.own, *build_input), _own_result)
        request = {"do": "build", "module": build_input.mod, "target": str(build_input.target)}
        # of a simulated GPU the worker runs all warps, which takes longer than to compile
        patience = self.timeout_sec * (4 if is_gpu(build_input.target) else 1)
        return then(self.pool.submit(request, patience), _result)

    def _threads(self) -> ThreadPoolExecutor:
        if self._waiting is None:
            self._waiting = ThreadPoolExecutor(self.max_workers, "own build")
        return self._waiting

    def cancel(self) -> None:
        """Drop what has not begun."""
        self.pool.cancel()
        if self._waiting is not None:
            self._waiting.shutdown(wait=False, cancel_futures=True)
            self._waiting = None


def _own_result(answer: Answer) -> BuilderResult:
    if answer.status == "ok":
        return BuilderResult(artifact_path=answer.text)
    what = {"error": "An exception occurred", "timeout": "Timeout", "crash": "It crashed"}
    status = "build_error" if answer.status == "error" else answer.status
    return BuilderResult(None, None, status, f"LocalBuilder: {what[answer.status]}: {answer.text}")


def _result(reply: dict) -> BuilderResult:
    if reply["status"] == "ok":
        return BuilderResult(reply["obj"], reply["meta"], seconds=reply["seconds"])
    status = "build_error" if reply["status"] == "error" else reply["status"]
    return BuilderResult(None, None, status, "while it was built: " + reply["reason"])


def then(future: Future, function: Callable) -> Future:
    """A future of `function(result)`."""
    out: Future = Future()

    def done(source: Future) -> None:
        if source.cancelled():
            out.cancel()
            out.set_running_or_notify_cancel()
            return
        try:
            out.set_result(function(source.result()))
        except Exception as error:
            out.set_exception(error)

    future.add_done_callback(done)
    return out


__all__ = ["Builder", "BuilderInput", "BuilderResult", "LocalBuilder", "PyBuilder"]
