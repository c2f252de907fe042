"""`memoize(key)`: the reference data of a test is made once for each set of arguments.

TVM keeps such data in pickles from one run to the next. A pickle that is read can run anything, so
here what was made is kept in memory, as long as the process runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_made: dict[Any, Any] = {}


def _plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_plain, value))
    return isinstance(value, (str, int, float))


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable[..., Any]],
                                                              Callable[..., Any]]:
    """A decorator: the function runs once for the same arguments and variables around it.

    Those are strings, numbers and tuples of them; TypeError names one that is not. Nothing is
    saved, whatever `save_at_exit` is.
    """
    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def once(*args: object) -> Any:
            cells = [cell.cell_contents for cell in function.__closure__ or ()]
            for value in (*cells, *args):
                if not _plain(value):
                    raise TypeError(
                        f"{function.__name__} depends on {value!r:.60}: what is memoized depends "
                        "on strings, numbers and tuples of them only")
            # 1, 1.0 and True are equal, and not the same argument
            at = (key, function.__code__, repr((cells, args)))
            if at not in _made:
                _made[at] = function(*args)
            return _made[at]

        return once

    return around


__all__ = ["memoize"]
