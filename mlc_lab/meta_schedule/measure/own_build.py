"""Functions of one's own in LocalBuilder (`f_build`, `f_export`, `initializer`).

The worker processes know nothing of what a notebook has defined. Such a build gets a process that
is forked from this one for it, so a build that crashes, hangs or takes too much memory ends there.
What comes back is JSON.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from ...above import above
from ...runtime.registry import get_global_func


class Answer(NamedTuple):
    """How a call in a process of its own ended: "ok", "error", "timeout" or "crash", and what it
    gave or why not."""

    status: str
    text: str


def in_a_fork(function: Callable[[], str], seconds: float, memory: int) -> Answer:
    """What a function gives in a process forked for it, that has so many seconds and bytes."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(False)

    def child() -> None:
        ours.close()
        try:
            _limit_memory(memory)
            answer = Answer("ok", function())
        except BaseException:  # whatever it is, it is told
            answer = Answer("error", traceback.format_exc(limit=-4)[-4000:])
        theirs.send_bytes(json.dumps(answer).encode())
        theirs.close()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)  # what this process would do at its end is not the child's to do

    process = context.Process(target=child, daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(seconds):
            return Answer("timeout", f"it was given up after {seconds:g} s")
        return Answer(*json.loads(ours.recv_bytes()))
    except EOFError:
        process.join(1)
        return Answer("crash", f"its process ended with {process.exitcode}")
    finally:
        ours.close()
        process.kill()
        process.join()


def _limit_memory(more: int) -> None:
    """Let this process take so many bytes beside what it has, where the system can tell."""
    import resource

    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/statm", encoding="ascii") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (size + more, hard))


class OwnBuild:
    """What LocalBuilder does where it is given functions. Names are those of the registry."""

    def __init__(self, f_build: Any, f_export: Any, initializer: Callable[[], object] | None,
                 seconds: float, memory: int) -> None:
        if "fork" not in multiprocessing.get_all_start_methods():
            raise ValueError(
                "f_build and f_export need processes that are forked, which this system has not: "
                "write a class under ms.builder.PyBuilder whose build(build_inputs) calls them, "
                "and give that as `builder`")
        for name, given in (("f_build", f_build), ("f_export", f_export)):
            if given is not None and not isinstance(given, str) and not callable(given):
                raise TypeError(f"{name}= takes a function or its name, not {given!r}")
        self.f_build, self.f_export, self.initializer = f_build, f_export, initializer
        self.seconds, self.memory = seconds, memory
        known = in_a_fork(self._names_are_known, seconds, memory)
        if known.status != "ok":
            raise ValueError(f"LocalBuilder: f_build={f_build!r}, f_export={f_export!r}: "
                             f"{known.text.strip().splitlines()[-1]}")

    def _names_are_known(self) -> str:
        if self.initializer is not None:
            self.initializer()
        for given in (self.f_build, self.f_export):
            if isinstance(given, str):
                get_global_func(given)
        return ""

    def __call__(self, mod: Any, target: Any, params: Any) -> Answer:
        """Build a module; the answer's text is the path of what was exported."""
        def run() -> str:
            if self.initializer is not None:
                self.initializer()
            build, export = _found(self.f_build, _build), _found(self.f_export, _export)
            path = export(build(mod, target, params))
            if not isinstance(path, (str, os.PathLike)):
                raise TypeError(f"f_export has to give the path of what it wrote, not {path!r}")
            return os.fspath(path)

        return in_a_fork(run, self.seconds, self.memory)


def _found(given: Any, default: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is given, or named, or not."""
    return get_global_func(given) if isinstance(given, str) else given or default


def _build(mod: Any, target: Any, params: Any) -> Any:
    del params
    return above("module that runs")(mod, target)


def _export(module: Any) -> str:
    path = os.path.join(tempfile.mkdtemp(), "tvm_tmp_mod.so")
    module.export_library(path)
    return path


__all__ = ["Answer", "OwnBuild", "in_a_fork"]
