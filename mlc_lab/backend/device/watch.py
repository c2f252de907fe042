"""Waiting for a device with an end: a kernel that never ends is reported, and the process lives."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

#: seconds after which a wait for a device is given up, unless the environment says otherwise
_LIMIT_S = 60.0
#: shortest and longest pause between looks, and their part of what was waited already
_SHORTEST_S, _LONGEST_S, _PART = 2e-5, 5e-3, 0.01


def limit_s() -> float:
    """Seconds that a wait for a device lasts at most: MLC_LAB_DEVICE_LIMIT of the environment, 0
    for no end."""
    given = os.environ.get("MLC_LAB_DEVICE_LIMIT", "")
    try:
        found = float(given or _LIMIT_S)
    except ValueError:
        found = -1.0
    if not found >= 0:
        raise ValueError(f"MLC_LAB_DEVICE_LIMIT is {given!r}: it is a number of seconds that a "
                         "kernel may take, 0 for no end")
    return found or float("inf")


def until(is_done: Callable[[], bool], limit: float) -> bool:
    """Look until it is done, for at most `limit` seconds; whether it is. Between looks Python runs,
    so that Ctrl+C is heard."""
    start = time.perf_counter()
    while not is_done():
        passed = time.perf_counter() - start
        if passed > limit:
            return False
        time.sleep(min(max(passed * _PART, _SHORTEST_S), _LONGEST_S))
    return True


__all__ = ["limit_s", "until"]
