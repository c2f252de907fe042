"""Profiler: how long the parts of a search take, added up by name.

    with Profiler() as profiler:
        with Profiler.timeit("build"):
            ...
    profiler.get()  # {"build": 1.2, "Total": 1.5}, in seconds
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any

_current: ContextVar[Profiler | None] = ContextVar("profiler", default=None)


class Profiler:
    """Adds up the times of parts while its `with` block runs."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begin = 0.0
        self._tokens: list[Token[Profiler | None]] = []

    def __enter__(self) -> Profiler:
        self._begin = time.perf_counter()
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *exc: Any) -> None:
        self.add("Total", time.perf_counter() - self._begin)
        _current.reset(self._tokens.pop())

    def add(self, name: str, seconds: float) -> None:
        """Add to the time of a part."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def get(self) -> dict[str, float]:
        """The seconds of each part, and "Total" once the block has ended."""
        return dict(self.seconds)

    def table(self) -> str:
        """The parts with their seconds and their share of the total, the longest first."""
        whole = self.seconds.get("Total") or sum(self.seconds.values()) or 1.0
        rows = sorted(self.seconds.items(), key=lambda item: -item[1])
        width = max((len(name) for name, _ in rows), default=0)
        return "\n".join(f"{name:<{width}} {seconds:10.4f} s {seconds / whole:7.1%}"
                         for name, seconds in rows)

    @staticmethod
    def current() -> Profiler | None:
        """The profiler whose block is running, if there is one."""
        return _current.get()

    @staticmethod
    @contextmanager
    def timeit(name: str) -> Iterator[None]:
        """Add the time of a block to the part called `name`, where a profiler is running."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            profiler = Profiler.current()
            if profiler is not None:
                profiler.add(name, time.perf_counter() - begin)


__all__ = ["Profiler"]
