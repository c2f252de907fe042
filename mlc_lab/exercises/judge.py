"""Checks an answer, in a process of its own: `check("03.2", answer, seed="a student")`.

The process has limited processor time and memory and is ended when it takes more; it is kept for
the next answer. What it does stands in `judging.py`. What bounds an answer is counted in its
program (`checks/work.py`), so that marks do not depend on the machine; where even the clock on the
wall runs out, since the machine has other things to do, the answer is *not judged*: that is no
mark.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..reading import DataError
from ..workers.pool import Worker
from . import book
from .answers import AnswerError, as_data
from .catalogue import get
from .exercise import Variant
from .result import Result, Row

_SERVICE = f"{__package__}.judging"
#: seconds of processor time for all checks of an answer, seconds after which it is given up in any
#: case, and bytes of memory beyond what the process starts with
TIME, WALL, MEMORY = 60.0, 900.0, 4 << 30


class Judge:
    """A process that checks answers, started when it is needed; a context manager."""

    def __init__(self, timeout_s: float = TIME, memory: int = MEMORY, wall_s: float = WALL) -> None:
        self.timeout_s, self.memory, self.wall_s = timeout_s, memory, wall_s
        self._worker: Worker | None = None
        self._lock = threading.Lock()

    def check(self, id: str, answer: Any, seed: int | str = 0, folder: str | Path | None = None,
              on_row: Callable[[Row], None] | None = None) -> Result:
        """The marks of an answer; `on_row` is called with each row as soon as it is known. See
        `check`."""
        variant = get(id, folder).variant(seed)
        try:
            data = as_data(variant.exercise.kind, answer)
        except AnswerError as error:
            return unread(variant, error)
        tell = on_row or _unheard
        reply = self._ask("check", id, data, seed, folder, lambda e: tell(Row(**e["row"])))
        if reply["status"] == "ok":
            return Result.from_dict(reply["result"])
        found = nothing(variant, self._why(reply))
        if reply["status"] == "timeout" and found.error is not None:
            found.error |= {"again": True,
                            "hint": "nothing is wrong with the answer: check it again"}
        return found

    def watch(self, id: str, answer: Any, place: Mapping[str, Any] | None = None,
              seed: int | str = 0, folder: str | Path | None = None) -> dict[str, Any]:
        """Accesses of an answer's program, as a view draws them, with the "position" of the one at
        a `place` where it is wrong (see `Found`); or {"message": why there are none}."""
        reply = self._ask("watch", id, answer, seed, folder, None, place=dict(place or {}))
        return reply["watched"] if reply["status"] == "ok" else {"message": self._why(reply)}

    def _ask(self, do: str, id: str, answer: Any, seed: int | str, folder: str | Path | None,
             on_event: Callable[[dict[str, Any]], None] | None, **more: Any) -> dict[str, Any]:
        request = {"do": do, "id": id, "answer": answer, "seed": str(seed), "cpu": self.timeout_s,
                   **more,
                   "folder": None if folder is None else str(Path(folder).resolve())}
        with self._lock:
            if self._worker is None or not self._worker.alive:
                self._worker = Worker(_SERVICE, memory=self.memory)
            return self._worker.call(request, self.wall_s, on_event)

    def _why(self, reply: dict[str, Any]) -> str:
        """Why there is no answer of the process."""
        return {
            "timeout": f"not judged: the machine was too busy to check it in {self.wall_s:g} s",
            "cpu": f"stopped: checking took more than {self.timeout_s:g} s of processor time",
            "memory": "stopped: it asked for more memory than an answer may use",
            "crash": f"the program crashed: {reply.get('reason', '')}",
        }.get(reply["status"]) or reply.get("reason", "")

    def close(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _unheard(row: Row) -> None:
    """Nobody waits for rows."""


def unread(variant: Variant, error: AnswerError) -> Result:
    """The marks of an answer that cannot be read: none, and why."""
    return nothing(variant, error.message, error.hint, error.line)


def nothing(variant: Variant, message: str, hint: str = "", line: int = 0) -> Result:
    """No marks in any row, for one reason."""
    rows = [Row(c.kind, c.title, 0, c.points, False) for c in variant.checks]
    return Result(variant.exercise.id, variant.seed, rows,
                  {"message": message, "hint": hint, "line": line})


_judge = Judge()
atexit.register(_judge.close)


def check(id: str, answer: Any, seed: int | str = 0, folder: str | Path | None = None,
          on_row: Callable[[Row], None] | None = None) -> Result:
    """Check an answer to an exercise.

    Parameters
    ----------
    id : the exercise, as "03.2".
    answer : a Schedule, the text of one or of a program, or what is predicted (see `answers.py`).
    seed : which variant: a number, or the student's name.
    folder : a teacher's folder of exercises.
    on_row : called with each row of the marks as soon as it is known. By default rows are printed
        as they come where somebody sees them, in a notebook or at a prompt. There what was reached
        is kept too, as the card and the terminal do it.

    Returns the marks, row by row, with what is wrong and where. Raises ExerciseError for an
    exercise that there is not; nothing for an answer, whatever it is.
    """
    if on_row is not None or not hasattr(sys, "ps1"):  # Python and IPython set it for a person
        return _judge.check(id, answer, seed, folder, on_row)
    found = _judge.check(id, answer, seed, folder, _print)
    if not found.error:
        problem = book.keep(found, as_data(get(id, folder).kind, answer))
        if problem:
            print(problem, file=sys.stderr)
    return found


def _print(row: Row) -> None:
    print(row, flush=True)


def watch(id: str, answer: Any, place: Mapping[str, Any] | None = None, seed: int | str = 0,
          folder: str | Path | None = None) -> dict[str, Any]:
    """What the program of an answer (plain data) reads and writes; see `Judge.watch`."""
    return _judge.watch(id, answer, place, seed, folder)


def points(id: str, answer: Any, seed: int | str = 0, folder: str | Path | None = None) -> float:
    """The points of an answer, after its marks are printed: what a graded cell of a notebook ends
    with. See `check`. Raises DataError where the answer was not judged: that is no mark."""
    found = check(id, answer, seed, folder, _unheard)
    print(found)
    if not found.judged:
        raise DataError(f"{(found.error or {})['message']}; run this cell again")
    return float(found.points)


__all__ = ["Judge", "check", "nothing", "points", "unread", "watch"]
