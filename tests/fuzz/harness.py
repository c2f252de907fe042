"""Run a fuzz target: draw cases, shrink a failing one, survive one that kills the process.

A case is a function of the integers that it draws. In a worker process hypothesis draws them, and
makes a failing case small. Where a case ends the process or hangs, the batch is run once more with
each case in a process of its own: the integers come through a pipe then, so hypothesis shrinks a
crash as it shrinks an exception. A case is printed with its integers: they run it again.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

T = TypeVar("T")

_integers = lru_cache(maxsize=None)(st.integers)

#: the longest that one case may take, in seconds; most take one, but on a busy machine a case waits
CASE_SECONDS = 240

#: what targets count, for the summary: counts["accepted split"] += 1
counts: Counter[str] = Counter()

#: lines that describe the case that runs, printed if it fails: `note(program.script())`
_notes: list[str] = []


def note(text: str) -> None:
    """Say something of this case that is printed if it fails."""
    _notes.append(text)


class Lost(AssertionError):
    """A case ended its process, or did not end in time."""


class Draw:
    """The source of a case's choices. All of them are integers of `integer`, and are kept.

    Small values should mean simple cases: shrinking goes towards the lower bound, and towards the
    front of a sequence.
    """

    def __init__(self, source: Callable[[int, int], int]):
        self._source = source
        self.taken: list[int] = []

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        if low == high:
            return low
        value = self._source(low, high)
        self.taken.append(value)
        return value

    def choice(self, items: Sequence[T]) -> T:
        """One of the items; the first is the simplest."""
        return items[self.integer(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        """True in about so many of 100 cases; False is the simpler one."""
        return self.integer(0, 99) >= 100 - percent

    def sample(self, items: Sequence[T], size: int) -> list[T]:
        """`size` different items, in random order."""
        rest, out = list(items), []
        for _ in range(size):
            out.append(rest.pop(self.integer(0, len(rest) - 1)))
        return out

    def permutation(self, items: Sequence[T]) -> list[T]:
        """All items in random order; as they are is the simplest."""
        return self.sample(items, len(items))


class Replay:
    """The integers of a case that ran before; the lower bound where they do not fit."""

    def __init__(self, taken: Sequence[int]):
        self._rest = iter(taken)

    def __call__(self, low: int, high: int) -> int:
        value = next(self._rest, low)
        return value if low <= value <= high else low


def replay(case: Callable[[Draw], None], taken: Sequence[int]) -> None:
    """Run one case again from its integers."""
    case(Draw(Replay(taken)))


@dataclass
class Finding:
    """A case for which a law does not hold, as small as it could be made."""

    target: str
    seed: int
    error: str
    notes: list[str]
    taken: list[int]

    def text(self) -> str:
        """What a person reads."""
        parts = [f"target {self.target}, seed {self.seed}", *self.notes, self.error,
                 "again: python dev.py fuzz --only " + self.target + " --replay "
                 + ",".join(map(str, self.taken))]
        return "\n".join(parts)


@dataclass
class Batch:
    """What a number of cases gave."""

    cases: int = 0
    seconds: float = 0.0
    finding: Finding | None = None
    counts: dict[str, int] = field(default_factory=dict)


def run(name: str, case: Callable[[Draw], None], first_seed: int, cases: int,
        isolated: bool = False) -> Batch:
    """Run up to `cases` cases drawn from a seed; stop at the first that fails, made small."""
    last: dict[str, Any] = {}
    began, done = time.monotonic(), 0
    counts.clear()

    # The case runs while its data are drawn: `st.data()` would describe each of its integers,
    # which took a quarter of the time.
    @st.composite
    def attempts(source: Any) -> None:
        nonlocal done
        done += 1
        _notes.clear()
        draw = Draw(lambda low, high: source(_integers(low, high)))
        try:
            if isolated:
                _run_in_child(case, draw)
            else:
                with _watch():
                    case(draw)
        except Exception as error:
            if type(error).__module__.partition(".")[0] == "hypothesis":
                raise  # hypothesis ends cases that draw too much in this way
            last.update(error=_describe(error), notes=list(_notes), taken=list(draw.taken))
            raise

    @seed(first_seed)
    @settings(max_examples=cases, deadline=None, database=None, print_blob=False,
              phases=[Phase.generate, Phase.shrink], report_multiple_bugs=False,
              suppress_health_check=list(HealthCheck))
    @given(attempts())
    def attempt(_: None) -> None:
        pass

    finding = None
    try:
        attempt()
    except Exception as error:
        if not last:
            raise
        finding = Finding(name, first_seed, last["error"], last["notes"], last["taken"])
        finding.error = finding.error or _describe(error)
    return Batch(done, time.monotonic() - began, finding, dict(counts))


def _describe(error: BaseException) -> str:
    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return "".join(lines[-8:]).rstrip()


@contextlib.contextmanager
def _watch() -> Iterator[None]:
    """End the process, with the stack on stderr, if a case takes too long."""
    faulthandler.dump_traceback_later(CASE_SECONDS, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _run_in_child(case: Callable[[Draw], None], draw: Draw) -> None:
    """Run a case in a forked process that asks here for its integers."""
    from multiprocessing import Pipe

    here, there = Pipe()
    child = os.fork()
    if child == 0:
        here.close()
        _answer(case, there)  # does not return
    there.close()
    end: tuple[Any, ...] = ("lost",)
    until = time.monotonic() + CASE_SECONDS
    try:
        while end == ("lost",):
            if not here.poll(max(0.0, until - time.monotonic())):
                end = ("late",)
                break
            kind, *rest = here.recv()
            if kind == "draw":
                here.send(draw.integer(*rest))
            elif kind == "note":
                _notes.append(rest[0])
            else:
                end = (kind, *rest)
    except (EOFError, ConnectionError):
        pass  # the process is gone
    finally:
        # also where hypothesis has seen enough of this case and raises from `draw`
        if end[0] in ("lost", "late"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        here.close()
        _, status = os.waitpid(child, 0)
    if end[0] == "late":
        raise Lost(f"the case did not end in {CASE_SECONDS} s")
    if end[0] == "lost":
        raise Lost("the case ended its process: " + _status(status))
    if end[0] == "failed":
        raise AssertionError(end[1])


class _SentNotes(list):
    """Notes of a child: the parent has them even if the child is lost."""

    def __init__(self, pipe: Any):
        super().__init__()
        self._pipe = pipe

    def append(self, text: str) -> None:
        self._pipe.send(("note", text))


def _answer(case: Callable[[Draw], None], pipe: Any) -> None:
    """The child's side of `_run_in_child`: run the case, send what came of it, end."""
    global _notes

    def ask(low: int, high: int) -> int:
        pipe.send(("draw", low, high))
        return pipe.recv()

    _notes = _SentNotes(pipe)
    try:
        case(Draw(ask))
        pipe.send(("held",))
    except BaseException as error:
        pipe.send(("failed", _describe(error)))
    finally:
        os._exit(0)


def _status(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit status {os.waitstatus_to_exitcode(status)}"
