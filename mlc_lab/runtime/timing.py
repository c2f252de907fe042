"""Measuring how long calls take."""

from __future__ import annotations

import functools
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm_ffi

from .native_library import native_address, packed
from .ndarray import NDArray, from_dlpack

__all__ = ["BenchmarkResult", "TimeEvaluator", "measure"]


class BenchmarkResult:
    """Seconds a call, one number per repeat, with their statistics.

    Attributes
    ----------
    results : tuple of float
        The mean seconds a call, for each repeat.
    mean, median, min, max, std : float
        Over ``results``, in seconds.
    clock : str
        Whose time it is, where it is not that of the device the kernel is for; "" else.
    """

    def __init__(self, results: Any, clock: str = "") -> None:
        self.clock = clock
        self.results = tuple(float(r) for r in results)
        self.mean = statistics.fmean(self.results)
        self.median = statistics.median(self.results)
        self.min = min(self.results)
        self.max = max(self.results)
        self.std = statistics.pstdev(self.results)

    def __repr__(self) -> str:
        return (
            f"BenchmarkResult(min={self.min}, mean={self.mean}, median={self.median}, "
            f"max={self.max}, std={self.std}, results={self.results}"
            + (f", clock={self.clock!r})" if self.clock else ")")
        )

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        head = " ".join(f"{f'{name} (ms)':^12}" for name in names)
        row = " ".join(f"{getattr(self, name) * 1000:^12.4f}" for name in names)
        note = f" ({self.clock})" if self.clock else ""
        return f"Execution time summary{note}:\n{head}\n{row}"


@functools.cache
def _time_calls() -> Any:
    return packed(native_address("mlc_lab_time_calls"), name="time_calls")


def _as_ffi(func: Callable[..., Any]) -> Any:
    return func if isinstance(func, tvm_ffi.Function) else tvm_ffi.convert(func)


def _as_argument(value: Any) -> Any:
    """Convert an array once, so that the conversion is not part of each call."""
    if isinstance(value, NDArray) or not hasattr(value, "__dlpack__"):
        return value
    return from_dlpack(value)


def _flush_caches(nbytes: int) -> None:
    scratch = np.empty(max(nbytes, 1), dtype=np.uint8)
    scratch.fill(1)


def time_calls(func: Callable[..., Any], number: int, *args: Any) -> float:
    """Seconds that ``number`` calls take together, with no call before them."""
    return _time_calls()(_as_ffi(func), number, *args) / 1e9


def measure(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    number: int = 10,
    repeat: int = 1,
    min_repeat_ms: float = 0,
    cooldown_interval_ms: float = 0,
    repeats_to_cooldown: int = 1,
    cache_flush_bytes: int = 0,
    f_preproc: Callable[..., Any] | None = None,
    limit_zero_time_iterations: int = 100,
    timer: Callable[..., float] | None = None,
    flush: Callable[[int], None] = _flush_caches,
) -> BenchmarkResult:
    """Time ``func(*args)``: ``repeat`` measurements of ``number`` calls each, in native code.

    One call comes first, unmeasured. With ``min_repeat_ms`` the number of calls grows until a
    measurement takes that many milliseconds. ``timer(func, number, *args)`` gives the nanoseconds
    of so many calls, by default by the CPU's clock, and ``flush`` empties the caches.
    """
    if number < 1 or repeat < 1:
        raise ValueError(f"number and repeat must be at least 1, not {number} and {repeat}")
    func = _as_ffi(func)
    clock: Callable[..., float] = timer if timer is not None else _time_calls()
    args = tuple(_as_argument(a) for a in args)
    func(*args)
    results = []
    for index in range(repeat):
        if cooldown_interval_ms and index and index % repeats_to_cooldown == 0:
            time.sleep(cooldown_interval_ms / 1000)
        if f_preproc is not None:
            f_preproc(*args)
        zeros = 0
        while True:
            if cache_flush_bytes:
                flush(cache_flush_bytes)
            nanoseconds = clock(func, number, *args)
            if nanoseconds >= min_repeat_ms * 1e6:
                break
            if nanoseconds == 0:
                zeros += 1
                if zeros >= limit_zero_time_iterations:
                    break
            # Aim at the time asked for, with a margin, but grow tenfold at most at a time.
            wanted = number * min_repeat_ms * 1e6 / max(nanoseconds, 1) * 1.1
            number = max(number + 1, math.ceil(min(wanted, number * 10)))
        results.append(nanoseconds / 1e9 / number)
    return BenchmarkResult(results)


class TimeEvaluator:
    """What ``time_evaluator`` returns: call it with a kernel's arguments to measure the kernel."""

    def __init__(self, func: Callable[..., Any], name: str, options: dict[str, Any],
                 clock: str = "") -> None:
        """`clock` says whose time is measured, see `BenchmarkResult`."""
        self.func, self.func_name, self.options, self.clock = func, name, options, clock

    def __call__(self, *args: Any) -> BenchmarkResult:
        return BenchmarkResult(measure(self.func, args, **self.options).results, self.clock)

    def __repr__(self) -> str:
        return f"<time evaluator of {self.func_name!r}>"
