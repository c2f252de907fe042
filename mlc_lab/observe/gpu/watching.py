"""What a run in step (`lockstep.py`) tells of: the threads that take part, memory, the places that
load and store; and who is told, a `Watcher`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .lockstep import Lockstep


class Mask:
    """The threads that take part: `lanes` is None for all, else one truth value a thread."""

    __slots__ = ("lanes", "number", "threads", "warps")
    _numbers = itertools.count()

    def __init__(self, lanes: np.ndarray | None, count: int, warp: int) -> None:
        self.lanes, self.number = lanes, next(self._numbers)
        self.threads = count if lanes is None else int(np.count_nonzero(lanes))
        self.warps = count // warp if lanes is None else int(
            np.count_nonzero(lanes.reshape(-1, warp).any(axis=1)))


@dataclass
class Memory:
    """What a pointer of a kernel points to. `scope` is "global", "shared" or "local"; `base` the
    address of global memory; `data` its numbers, None where they are not needed."""

    name: str
    dtype: str
    size: int
    scope: str
    base: int = 0
    data: np.ndarray | None = None


@dataclass(frozen=True)
class Site:
    """A place in the kernel that loads or stores."""

    number: int
    name: str
    scope: str
    write: bool
    nbytes: int
    node: Any = field(repr=False)
    statement: Any = field(repr=False)

    @property
    def text(self) -> str:
        """The access as it stands in the program."""
        index = ", ".join(map(str, self.node.indices))
        return f"{self.node.buffer.name}[{index}]"


class Watcher:
    """What is told of a run. Each does what it is made for."""

    #: whether it can be told once of loops whose iterations do alike (`repeats.py`)
    multiplies = False

    def mark(self) -> Any:
        """What `repeat` needs to know of now."""

    def repeat(self, before: Any, times: int, moved: Mapping[int, int]) -> None:
        """All that was told since `mark` is done `times` times in all. `moved` has by how many
        elements each site is moved from one time to the next, by its number."""

    def access(self, run: Lockstep, site: Site, own: Any, shift: int, key: Any) -> None:
        """Threads of `run.mask` access elements `own + shift`; `key` is the same where `own` is."""

    def branch(self, run: Lockstep, s: Any, test: Any) -> None:
        """A condition that is not the same for all threads."""

    def barrier(self, run: Lockstep, s: Any) -> None:
        """Threads of `run.mask` reach a barrier."""

    def store(self, run: Lockstep, site: Site, value: Any) -> None:
        """The value of the store told before, where values are computed."""


__all__ = ["Mask", "Memory", "Site", "Watcher"]
