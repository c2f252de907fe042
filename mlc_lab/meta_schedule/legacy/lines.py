"""Logs of one JSON line a measurement. A kill may cut off the last one: what is appended begins on
a new line, and damaged lines are skipped."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Callable, Iterable

if TYPE_CHECKING:
    pass


def append(path: Any, lines: Iterable[str]) -> None:
    """Add lines (without their ends) to a file, made if there is none."""
    text = "".join(line + "\n" for line in lines)
    with open(path, "ab+") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                text = "\n" + text
        file.write(text.encode())


def read(path: Any, decode: Callable[[str], Any], what: str) -> list[Any]:
    """`decode(line)` of each line; empty ones and comments ("#") are none.

    Lines for which it raises ValueError are passed over, with one warning that counts them.
    Raises ValueError for a file that has lines and no good one; `what` says what was expected.
    """
    out, damaged, why = [], 0, ""
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith("#"):
                continue
            try:
                out.append(decode(line))
            except ValueError as error:
                damaged += 1
                why = why or f"line {number}: {error}"
    if damaged and not out:
        raise ValueError(f"{path} is no {what}: it has no good line ({why})")
    if damaged:
        warnings.warn(f"{path}: {damaged} damaged line{'s' if damaged > 1 else ''} passed over, "
                      f"{len(out)} read ({why})", stacklevel=3)
    return out


__all__ = ["append", "read"]
