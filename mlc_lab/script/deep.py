"""Recursive walks over very deep trees: run again with a larger stack when one runs out."""

from __future__ import annotations

from typing import Any, Callable


def deep(action: Callable[[], Any]) -> Any:
    """Run a recursive walk again with room for very deep trees if it runs out of stack."""
    try:
        return action()
    except RecursionError:
        import sys
        import threading

        result: list[Any] = []

        def attempt() -> None:
            try:
                result.append((True, action()))
            except BaseException as error:  # handed to the caller's thread below
                result.append((False, error))

        limit, stack = sys.getrecursionlimit(), threading.stack_size(512 << 20)
        sys.setrecursionlimit(200_000)
        try:
            thread = threading.Thread(target=attempt)
            thread.start()
            thread.join()
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(stack)
        good, value = result[0]
        if good:
            return value
        raise value from None


__all__ = ["deep"]
