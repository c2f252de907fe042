"""Numbers of a schedule that are left open: the live page draws a slider for each.

    tile = live("tile", 8, choices=[1, 2, 4, 8, 16])
    j0, j1 = sch.split(j, factors=[None, tile])

To the schedule such a number is a sampled one, as those that a search decides: the trace has a
`sample_categorical` of its choices before the step that takes it, and replays with any of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..ir.containers import is_sequence
from ..tir.op import as_int
from ..tir.stmt import For

if TYPE_CHECKING:
    from .schedule import Schedule

#: values that one number may have
MOST = 256
#: the largest extent whose divisors are looked for
_LARGE = 1 << 40


class OpenNumber:
    """A number with a name, a value to begin with, and the values that it may have."""

    def __init__(self, name: str, value: int,
                 choices: Iterable[int] | Callable[[int], Iterable[int]]) -> None:
        self.name, self.value, self.choices = name, value, choices

    def of(self, extent: int | None) -> list[int]:
        """The choices, where the number divides a loop of this extent. Raises ValueError."""
        if callable(self.choices):
            if extent is None:
                raise ValueError(f"the choices of {self.name!r} depend on the extent of a loop, "
                                 "and there is none here of constant extent: give them as a list")
            found = [int(c) for c in self.choices(extent)]
        else:
            found = [int(c) for c in self.choices]
        found = sorted(set(found))
        if self.value not in found:
            raise ValueError(f"{self.name!r} begins with {self.value}, which is none of its "
                             f"choices {found[:20]}")
        if len(found) > MOST:
            raise ValueError(f"{self.name!r} has {len(found)} choices, more than {MOST}")
        return found

    def __repr__(self) -> str:
        return f"live({self.name!r}, {self.value})"


def divisors(extent: int) -> list[int]:
    """The whole numbers that divide a loop's extent: for `live(..., choices=divisors)`."""
    if extent > _LARGE:
        raise ValueError(f"a loop of {extent} iterations has too many divisors to look for: give "
                         "the choices as a list")
    small = [n for n in range(1, math.isqrt(extent) + 1) if extent % n == 0]
    return sorted({*small, *(extent // n for n in small)})


def live(name: str, value: int,
         choices: Iterable[int] | Callable[[int], Iterable[int]] = divisors) -> Any:
    """A number of a schedule that is left open, to be given to a primitive instead of an int.

    Parameters
    ----------
    name : str
        What it is called; two numbers of one name are one.
    value : int
        What it is at first.
    choices : list of int, or a function of the extent of the loop that a step splits
        What it may be; by default what divides that extent.

    The primitive raises ValueError where the choices do not hold the value.
    """
    return OpenNumber(name, value, choices)


def take_open_numbers(sch: Schedule, args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments in which each open number has become a sampled one of the schedule."""
    if not any(map(_holds, args.values())):
        return dict(args)
    loop = args.get("loop")
    sref = sch.known_sref(loop) if loop is not None else None
    stmt = sref.stmt if sref is not None else None
    extent = as_int(stmt.extent) if isinstance(stmt, For) else None

    def taken(value: Any) -> Any:
        if isinstance(value, OpenNumber):
            known = sch.open_numbers.get(value.name)
            if known is None:
                found = value.of(extent)
                known = sch.sample_categorical(found, [1.0 / len(found)] * len(found),
                                               decision=found.index(value.value))
                sch.open_numbers[value.name] = known
            return known
        if is_sequence(value):
            return [taken(v) for v in value]
        return value

    return {name: taken(value) if _holds(value) else value for name, value in args.items()}


def _holds(value: Any) -> bool:
    return isinstance(value, OpenNumber) or is_sequence(value) and any(map(_holds, value))


__all__ = ["OpenNumber", "divisors", "live", "take_open_numbers"]
