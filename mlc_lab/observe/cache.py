"""What the simulator models of caches, and what it counts. (`machine/caches.py` describes them.)

The model, which `cache_code.py` turns into machine code:

- A level has `size / (line * ways)` sets of `ways` lines; a line's set is its number modulo the
  number of sets. All caches are empty at the start.
- A load or store that misses a level asks the next one, and on its way back the line is put into
  every level that missed (write-allocate; neither inclusive nor exclusive, as in cachegrind). An
  access that spans several lines asks for each of them.
- A store marks the line dirty in the first level. A dirty line that is evicted is written back: it
  becomes dirty in the first level below that holds it, or goes to memory. That does not count as a
  use: it does not affect replacement, and is no hit or miss.
- A parallel loop runs on several cores. Each has the levels but the last for itself (all of them,
  if there is only one); the last is shared. The iterations are simulated one after the other, core
  by core, and a store on one core invalidates no line of another.
- Not modelled: prefetching, address translation, and other programs on the machine. That is why
  the counts are the same every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..machine.caches import CacheHierarchy


@dataclass(frozen=True)
class LevelCount:
    """What one level saw. `bytes_in` came from the level below, `bytes_out` were written back."""

    name: str
    lookups: int
    misses: int
    line: int
    written_back: int

    @property
    def hits(self) -> int:
        return self.lookups - self.misses

    @property
    def bytes_in(self) -> int:
        return self.misses * self.line

    @property
    def bytes_out(self) -> int:
        return self.written_back * self.line

    @property
    def bytes_moved(self) -> int:
        """Bytes between this level and the one below it (after the last one: memory)."""
        return self.bytes_in + self.bytes_out

    @property
    def miss_rate(self) -> float:
        return self.misses / self.lookups if self.lookups else 0.0


def level_counts(hierarchy: CacheHierarchy, lookups: int, misses: Sequence[int],
                 written_back: Sequence[int]) -> tuple[LevelCount, ...]:
    """The counts of each level: a level is asked once for each miss of the one above."""
    out = []
    for level, missed, back in zip(hierarchy, misses, written_back, strict=True):
        out.append(LevelCount(level.name, int(lookups), int(missed), level.line, int(back)))
        lookups = missed
    return tuple(out)
