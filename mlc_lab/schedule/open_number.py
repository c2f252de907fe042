"""Numbers of a schedule that are left open: the live page draws a slider for each.

    tile = live("tile", 8, choices=[1, 2, 4, 8, 16])
    j0, j1 = sch.split(j, factors=[None, tile])

To the schedule such a number is a sampled one, as those that a search decides: the trace has a
`sample_categorical` of its choices before the step that takes it, and replays with any of them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..ir.containers import is_sequence
from ..tir.op import as_int
from ..tir.stmt import For

if TYPE_CHECKING:
    from .schedule import Schedule

#: values that one number may have
MOST = 256
#: how many values of a list are read: it may have no end
_LONGEST = 1 << 16
#: the largest extent whose divisors are looked for
_LARGE = 1 << 40


class OpenNumber:
    """A number with a name, a value to begin with, and the values that it may have."""

    def __init__(self, name: str, value: int,
                 choices: Iterable[int] | Callable[[int], Iterable[int]]) -> None:
        given: Any = name
        if not isinstance(given, str) or not given:
            raise ValueError(f"a number that is left open has a name, a text, not {given!r}")
        self.name, self.value = name, _whole(name, value)
        self.choices = choices if callable(choices) else _list(name, choices)

    def of(self, extent: int | None) -> list[int]:
        """The choices, where the number divides a loop of this extent. Raises ValueError."""
        if callable(self.choices):
            if extent is None:
                raise ValueError(f"the choices of {self.name!r} depend on the extent of a loop, "
                                 "and there is none here of constant extent: give them as a list")
            try:
                given = self.choices(extent)
            except Exception as error:
                raise ValueError(f"the choices of {self.name!r} are a function, which fails for a "
                                 f"loop of {extent} iterations: {type(error).__name__}: {error}"
                                 ) from error
            found = _list(self.name, given)
        else:
            found = self.choices
        found = sorted(set(found))
        if len(found) > MOST:
            raise ValueError(f"{self.name!r} has {len(found)} choices, more than {MOST}")
        if self.value not in found:
            raise ValueError(f"{self.name!r} begins with {self.value}, which is none of its "
                             f"choices {found[:20]}")
        return found

    def __repr__(self) -> str:
        return f"live({self.name!r}, {self.value})"


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{name!r} is a whole number, such as 8, not {value!r}") from None


def _list(name: str, choices: Any) -> list[int]:
    if isinstance(choices, str) or not hasattr(choices, "__iter__"):
        raise ValueError(f"the choices of {name!r} are a list of whole numbers, such as [2, 4, 8], "
                         f"or a function of a loop's extent, such as divisors, not {choices!r}")
    items: Iterable[Any] = choices
    return [_whole(name, c) for c in islice(items, _LONGEST)]


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

    Raises ValueError where the value or a choice is no whole number; so does the primitive where
    the choices do not hold the value.
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
    if isinstance(value, OpenNumber):
        return True
    return is_sequence(value) and any(map(_holds, value))


__all__ = ["OpenNumber", "divisors", "live", "take_open_numbers"]
