"""Which real devices there are: a row for each type that has a driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...runtime.driver import Driver

#: device type -> a function that gives a driver, or None where there is no such device
OPENERS: Mapping[str, Callable[[], Driver | None]] = {}


def real_driver(kind: str) -> Driver | None:
    """The driver of the real device of a type; None where its package or the device is missing."""
    opener = OPENERS.get(kind)
    return opener() if opener is not None else None


__all__ = ["OPENERS", "real_driver"]
