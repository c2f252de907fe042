"""The process that runs a function which was handed in. Started by `confined.py`.

Lines of JSON go to and fro. The first one says what is run and within which limits; then each
{"call": name, "args": [...]} is answered by one line:

    {"result": value}                           what the function returned, as plain data
    {"error": {"what", "line", "outside"}}      the exception that it raised, and in which line
    {"ask": name, "args": [...]}                a question; the answer {"value": ...} is a line too

`prelude` is a text of ours that runs before any right is given up. It may import what answers use,
name it in `given` (the names that an answer sees), and define `call(names, name, *args)`, which
turns plain data into what the function takes and what it gives into plain data. It sees `ask`.

The answer shares this process with all that, and may change any of it. So nothing here is believed:
whatever arrives at the other side is what the answer says, and is only compared there.
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import Any

from .confinement import confine

#: how the text of an answer is called in its tracebacks
NAME = "<answer>"
#: the package of the exercises and their references, which an answer does not get
_HIDDEN = __name__.split(".")[0] + ".exercises"


def main() -> None:
    """Read what to run, give up rights, run it."""
    source, sink = io.FileIO(os.dup(0)), io.FileIO(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)  # what an answer prints must not mix with the results
    lines = io.BufferedReader(source)
    first = json.loads(lines.readline())

    def say(value: Any) -> None:
        try:
            data = json.dumps(value, allow_nan=False, default=_plain).encode() + b"\n"
        except ValueError as error:
            raise ValueError("it returned NaN or an infinity, and numbers are asked for"
                             if "float" in str(error) else str(error)) from None
        while data:
            data = data[sink.write(data) or 0:]

    def ask(name: str, *args: Any) -> Any:
        say({"ask": name, "args": args})
        return json.loads(lines.readline())["value"]

    ours: dict[str, Any] = {"ask": ask, "given": {}}
    try:
        exec(compile(first["prelude"], "<prelude>", "exec"), ours)
    except Exception as error:
        return say({"error": {"what": f"the prelude: {type(error).__name__}: {error}", "line": 0}})
    names: dict[str, Any] = {"__name__": "answer", **ours["given"]}
    call = ours.get("call", lambda names, name, *args: names[name](*args))
    sys.modules[_HIDDEN] = None  # type: ignore[assignment]  # an import of it fails
    say({"result": confine(first["seconds"], first["memory"], *_readable())})
    defined: dict[str, Any] | None = None
    while line := lines.readline():
        request = json.loads(line)
        try:
            if defined is None:
                exec(compile(first["text"], NAME, "exec"), names)
                defined = names
            value = call(names, request["call"], *request["args"])
            reply: Any = {"result": value}
            say(reply)
        except BaseException as error:  # SystemExit too: it is a result as any other
            say({"error": _told(error, request["call"], names)})


def _readable() -> tuple[list[str], list[str]]:
    """What can be read: Python, the packages that are installed and this one, and the empty folder;
    not the exercises, which have the references, nor the folder of a checkout, which may be that of
    a user's notebooks. And the folders of which just the names can be read."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    packages = [p for p in sys.path if p and p != os.path.dirname(ours)]
    listed: list[str] = []
    hidden = os.path.realpath(os.path.join(ours, "exercises"))
    found = [part for path in (ours, sys.prefix, sys.base_prefix, *packages, "/usr")
             for part in _without(os.path.realpath(path), hidden, listed)]
    return [*found, os.getcwd(), "/lib", "/lib64",
            "/etc/ld.so.cache", "/proc/self", "/proc/cpuinfo", "/proc/meminfo",
            "/sys/devices/system/cpu", "/dev/null", "/dev/urandom"], listed


def _without(path: str, hidden: str, listed: list[str]) -> list[str]:
    """The parts of a folder that do not hold `hidden`; the folders on the way go into `listed`."""
    if path == hidden:
        return []
    if not hidden.startswith(path.rstrip(os.sep) + os.sep):
        return [path]
    listed.append(path)
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return []
    return [part for name in names for part in _without(os.path.join(path, name), hidden, listed)]


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as plain data."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} is no plain data")


def _told(error: BaseException, name: str, names: dict[str, Any]) -> dict[str, Any]:
    """An exception as plain data; its own text may be anything, and may raise again."""
    if isinstance(error, KeyError) and name not in names:
        return {"what": f"there is no function {name}", "line": 0, "outside": True}
    if isinstance(error, MemoryError):
        return {"what": "it asked for more memory than it may use", "line": 0, "outside": True}
    try:
        what = f"{type(error).__name__}: {str(error)[:2000]}"
    except BaseException:
        what = type(error).__name__
    line = getattr(error, "lineno", 0) if isinstance(error, SyntaxError) else 0
    at = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == NAME:
            line = at.tb_lineno
        at = at.tb_next
    return {"what": what, "line": line if type(line) is int else 0, "outside": False}
