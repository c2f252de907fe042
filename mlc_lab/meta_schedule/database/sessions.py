"""The sessions of a database: which searches were made, when, where, and how they ended.

A session (`Database.sessions()`) is one search of one task:

    id, task, workload, target, started, finished (Unix times; finished None while it runs or if it
    was killed), state ("running", "done", "stopped"), trials_wanted, seed, pid, host,
    machine  {"cpu": name, "cores": threads used, "peak_gflops": FMA peak of those cores,
              "numpy_s": seconds numpy takes, where known}
"""

from __future__ import annotations

import json
import math
import os
import platform
import time
from functools import lru_cache
from typing import Any

from ...reading import DataError, read_json, shown
from ...target import Target
from ..workload import Workload
from .file import COLUMN_TYPES, DatabaseError, DatabaseFile


class SessionLog(DatabaseFile):
    """The searches noted in a file."""

    def begin_session(self, task: str, workload: Workload, target: str, wanted: int, seed: int,
                      space: str, machine: dict) -> int:
        """Note that a search begins; returns its number.

        `wanted` trials are asked for; `space` says in which space, so that another search like
        this one can go on with it; `machine` is described at the head of this file.
        """
        cursor = self._do(
            "INSERT INTO sessions (task, workload, target, space, started, state, trials_wanted, "
            "seed, pid, host, machine) VALUES (?, ?, ?, ?, ?, 'running', ?, ?, ?, ?, ?)",
            (task, workload.shash, target, space, time.time(), wanted, seed, os.getpid(),
             platform.node(), json.dumps(machine)))
        return cursor.lastrowid

    def interrupted_session(self, task: str, workload: Workload, target: str, space: str,
                            wanted: int) -> dict | None:
        """A search like this one that was stopped or killed before it was through."""
        rows = self._all(
            "SELECT * FROM sessions WHERE task=? AND workload=? AND target=? AND space=? AND "
            "trials_wanted=? ORDER BY id DESC LIMIT 1",
            (task, workload.shash, target, space, wanted))
        if not rows or rows[0]["state"] == "done" or (
                rows[0]["state"] == "running" and _alive(rows[0])):
            return None
        return dict(rows[0])

    def update_session(self, session: int, **changes: object) -> None:
        """Change fields of a session."""
        if "machine" in changes:
            changes["machine"] = json.dumps(changes["machine"])
        names = ", ".join(f"{n}=?" for n in changes)
        self._do(f"UPDATE sessions SET {names} WHERE id=?", [*changes.values(), session])

    def sessions(self) -> list[dict[str, Any]]:
        """The searches, see the head of this file."""
        out = []
        for row in self._all("SELECT * FROM sessions ORDER BY id"):
            try:
                data = columns_of(row, "sessions", self.path)
                data["machine"] = _machine(data["machine"])
            except DataError as error:
                raise DatabaseError(f"a search noted in {self.path} is damaged: {error}") from None
            out.append(data)
        return out


def columns_of(row: Any, table: str, path: str) -> dict[str, Any]:
    """A row as a dict. Raises DataError where a value is of another type than its column."""
    data = {name: row[name] for name in COLUMN_TYPES[table]}
    for name, kinds in COLUMN_TYPES[table].items():
        if data[name] is not None and (not isinstance(data[name], kinds) or (
                type(data[name]) is float and not math.isfinite(data[name]))):
            raise DataError(f"{name} in row {row['id']} of {path} is {shown(data[name])}")
    _is_target(data["target"])
    return data


@lru_cache(maxsize=1000)
def _is_target(text: str | None) -> None:
    """Raise DataError for what is no target."""
    Target(text or "llvm")


def _machine(text: str | None) -> dict[str, Any]:
    """What a search noted of its machine."""
    machine = read_json(text or "{}", "the machine of a search")
    if not isinstance(machine, dict):
        raise DataError(f"a machine is {shown(machine)}")
    for name, kinds in (("cpu", str), ("cores", int), ("peak_gflops", (int, float)),
                        ("numpy_s", (int, float))):
        if not isinstance(machine.get(name), (kinds, type(None))):
            raise DataError(f"{name} of a machine is {shown(machine[name])}")
    return machine


def _alive(row: Any) -> bool:
    """Whether the process of a search runs, as far as one can tell."""
    if row["host"] != platform.node() or not row["pid"]:
        return row["host"] != platform.node()  # of another machine one cannot tell
    if row["pid"] == os.getpid():
        return False  # one process runs one search of a task at a time
    try:
        os.kill(row["pid"], 0)
    except ProcessLookupError:
        return False
    except OverflowError:  # no process has such a number
        return False
    except OSError:
        return True
    return True


__all__ = ["SessionLog", "columns_of"]
