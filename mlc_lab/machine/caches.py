"""Caches: levels, how they are described, and this machine's."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

REPLACEMENTS = ("lru", "fifo", "random", "plru")
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class CacheError(ValueError):
    """A cache that is not possible: the message says what does not fit, and what would."""


def _power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def size_text(size: int) -> str:
    """Bytes as people write them: "32 KiB"."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % (unit // 4) == 0:
            return f"{size / unit:g} {name}"
    return f"{size} B"


@dataclass(frozen=True)
class CacheLevel:
    """One level of cache.

    Attributes
    ----------
    name : str
        "L1", "L2", ...
    size, line : int
        Bytes in all, and bytes of a line (a power of two, at least 4).
    ways : int
        Lines of a set. `size // line` makes the cache fully associative, 1 direct-mapped.
    replacement : str
        Which line a full set evicts: "lru" the one used longest ago, "fifo" the one that came
        first, "random" any (the same every time, by `seed`), "plru" the one that a binary
        tree of bits points at (ways: a power of two, at most 64).
    """

    name: str
    size: int
    line: int = 64
    ways: int = 8
    replacement: str = "lru"
    seed: int = 1

    def __post_init__(self) -> None:
        if not _power_of_two(self.line) or self.line < 4:
            raise CacheError(f"{self.name}: a line of {self.line} bytes cannot be: it has to be a "
                             "power of two, at least 4")
        if self.ways < 1 or self.size < self.line * self.ways or self.size % (
                self.line * self.ways):
            step = self.line * max(self.ways, 1)
            raise CacheError(f"{self.name}: {self.size} bytes cannot be cut into sets of "
                             f"{self.ways} lines of {self.line} bytes; the size has to be a "
                             f"multiple of {step}, at least that")
        if self.replacement not in REPLACEMENTS:
            raise CacheError(f"{self.name}: there is no replacement {self.replacement!r}; choose "
                             f"one of {', '.join(REPLACEMENTS)}")
        if self.replacement == "plru" and not (_power_of_two(self.ways) and self.ways <= 64):
            raise CacheError(f"{self.name}: tree-PLRU needs a number of ways that is a power of "
                             f"two and at most 64, not {self.ways}; choose lru, fifo or random")
        if self.seed < 1:
            raise CacheError(f"{self.name}: the seed has to be a positive number")

    @property
    def sets(self) -> int:
        """The number of sets."""
        return self.size // (self.line * self.ways)

    def __str__(self) -> str:
        ways = {1: "direct-mapped", self.size // self.line: "fully associative"}
        how = ways.get(self.ways, f"{self.ways}-way")
        return f"{self.name} {size_text(self.size)}, {self.line} B lines, {how}, {self.replacement}"


@dataclass(frozen=True)
class CacheHierarchy:
    """Levels of cache, the one nearest to the core first.

    >>> print(CacheHierarchy.parse("32K:8, 512K:8:64:fifo"))
    L1 32 KiB, 64 B lines, 8-way, lru; L2 512 KiB, 64 B lines, 8-way, fifo
    """

    levels: tuple[CacheLevel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        if not self.levels:
            raise CacheError("a hierarchy of caches has at least one level")
        if len({level.name for level in self.levels}) < len(self.levels):
            raise CacheError("the levels of a hierarchy need names of their own")
        for upper, lower in zip(self.levels, self.levels[1:], strict=False):
            if lower.line < upper.line:
                raise CacheError(f"{lower.name} has shorter lines ({lower.line} B) than "
                                 f"{upper.name} ({upper.line} B) above it; lines stay as long or "
                                 "grow from level to level")

    def __iter__(self) -> Any:
        return iter(self.levels)

    def __len__(self) -> int:
        return len(self.levels)

    def is_private(self, number: int) -> bool:
        """Whether each core has the level `number` (from 0) for itself."""
        return number < len(self.levels) - 1 or len(self.levels) == 1

    def __str__(self) -> str:
        return "; ".join(map(str, self.levels))

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain data for JSON."""
        return [asdict(level) for level in self.levels]

    @classmethod
    def from_dict(cls, data: Iterable[Mapping[str, Any]]) -> CacheHierarchy:
        """The hierarchy that `to_dict` gave. Raises CacheError."""
        return cls(tuple(CacheLevel(**level) for level in data))

    @classmethod
    def parse(cls, text: str) -> CacheHierarchy:
        """Levels written as `size:ways:line:replacement`, separated by commas; the end of each
        may be left out: "32K:8, 512K:8, 32M:16:64:plru". Raises CacheError."""
        levels = []
        for number, part in enumerate(text.split(","), 1):
            size, *rest = part.strip().split(":")
            found = re.fullmatch(r"(\d+)\s*([KMG]?)(i?B)?", size.strip(), re.I)
            if found is None or len(rest) > 3 or not all(x.strip().isdigit() for x in rest[:2]):
                raise CacheError(f"{part.strip()!r} describes no cache: write its size, ways, "
                                 'bytes of a line and replacement, as in "32K:8:64:lru"')
            nbytes = int(found[1]) * _UNITS[found[2].upper()]
            line = int(rest[1]) if len(rest) > 1 else 64
            ways = int(rest[0]) if rest else min(8, max(nbytes // line, 1))
            levels.append(CacheLevel(f"L{number}", nbytes, line, ways,
                                     rest[2].strip().lower() if len(rest) > 2 else "lru"))
        return cls(tuple(levels))

    @classmethod
    def machine(cls) -> CacheHierarchy:
        """The data caches of this machine, LRU; usual ones where the system reports none."""
        return cls(_machine_levels())

    @classmethod
    def small(cls) -> CacheHierarchy:
        """Caches small enough to watch a 16 x 16 matrix fall out of them."""
        return cls((CacheLevel("L1", 512, 32, 2), CacheLevel("L2", 2048, 32, 4)))


def as_hierarchy(caches: Any) -> CacheHierarchy:
    """What people pass for `caches=`: None (this machine), "small", a text for `parse`, levels,
    or the plain data of `to_dict`. Raises CacheError for anything else."""
    if isinstance(caches, CacheHierarchy):
        return caches
    if caches is None or caches == "machine":
        return CacheHierarchy.machine()
    if isinstance(caches, str):
        return CacheHierarchy.small() if caches == "small" else CacheHierarchy.parse(caches)
    if isinstance(caches, CacheLevel):
        return CacheHierarchy((caches,))
    if isinstance(caches, Iterable):
        levels = []
        for item in caches:
            if isinstance(item, Mapping):
                try:
                    item = CacheLevel(**item)
                except TypeError as error:
                    raise CacheError(f"{dict(item)} describes no cache level: {error}") from None
            if not isinstance(item, CacheLevel):
                raise CacheError(f"a level of cache is a CacheLevel, not {item!r}")
            levels.append(item)
        return CacheHierarchy(tuple(levels))
    raise CacheError(f"caches are given as a text like '32K:8, 512K:8' or as CacheLevels, "
                     f"not as {caches!r}")


# ---------------------------------------------------------------------------- this machine's

_FOLDER = Path("/sys/devices/system/cpu/cpu0/cache")
_USUAL = (CacheLevel("L1", 32 << 10), CacheLevel("L2", 512 << 10),
          CacheLevel("L3", 8 << 20, ways=16))


@functools.cache
def _machine_levels() -> tuple[CacheLevel, ...]:
    try:
        found = _sysctl_levels() if sys.platform == "darwin" else _sysfs_levels(_FOLDER)
        return CacheHierarchy(tuple(found)).levels if found else _USUAL
    except (OSError, ValueError, KeyError, subprocess.SubprocessError):
        return _USUAL


def cache_bytes() -> dict[str, int]:
    """The size of each data cache of this machine, by level."""
    return {level.name: level.size for level in _machine_levels()}


def system_caches() -> list[dict[str, Any]]:
    """What the system reports of the caches of the first core, those of instructions too: level,
    type, size in bytes, line in bytes, ways; [] if it reports nothing."""
    if sys.platform != "darwin":
        return _sysfs(_FOLDER)
    kinds = {"l1d": (1, "data"), "l1i": (1, "instruction"), "l2": (2, "unified")}
    values = _sysctl([f"hw.{name}cachesize" for name in kinds])
    return [{"level": level, "type": kind, "bytes": values[f"hw.{name}cachesize"]}
            for name, (level, kind) in kinds.items() if f"hw.{name}cachesize" in values]


def _sysfs(folder: Path) -> list[dict[str, Any]]:
    """Linux: one folder a cache of the first core. What cannot be read is left out."""
    found = []
    for index in sorted(folder.glob("index*")):

        def read(name: str, index: Path = index) -> str:
            return (index / name).read_text().strip()

        try:
            text = read("size")
            size = int(text.rstrip("KMG")) * _UNITS[text[-1]]
            line = int(read("coherency_line_size"))
            ways = int(read("ways_of_associativity")) or size // line
            found.append({"level": int(read("level")), "type": read("type").lower(),
                          "bytes": size, "line": line, "ways": ways})
        except (OSError, ValueError, KeyError):
            continue
    return found


def _sysfs_levels(folder: Path) -> list[CacheLevel]:
    return [CacheLevel(f"L{c['level']}", c["bytes"], c["line"], c["ways"])
            for c in _sysfs(folder) if c["type"] != "instruction"]


def _sysctl(names: Iterable[str]) -> dict[str, int]:
    """macOS: the numbers that the system reports under these names."""
    values = {}
    for name in names:
        done = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, timeout=5)
        if done.returncode == 0 and done.stdout.strip().isdigit():
            values[name] = int(done.stdout)
    return values


def _sysctl_levels() -> list[CacheLevel]:
    """macOS: sizes, but not the ways: these are guessed, a usual number that divides the size."""
    values = _sysctl(["hw.cachelinesize", "hw.perflevel0.l1dcachesize", "hw.perflevel0.l2cachesize",
                    "hw.l1dcachesize", "hw.l2cachesize", "hw.l3cachesize"])
    line = values.get("hw.cachelinesize", 64)
    levels = []
    for number in (1, 2, 3):
        kind = f"l{number}{'d' if number == 1 else ''}cachesize"
        size = values.get(f"hw.perflevel0.{kind}") or values.get(f"hw.{kind}")
        if size:
            ways = next(w for w in (8, 16, 12, 4, 2, 1) if size % (w * line) == 0)
            levels.append(CacheLevel(f"L{number}", size, line, ways))
    return levels
