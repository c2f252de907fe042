"""Two recordings as one, so that a view can lay a step of one beside a step of the other.

Both have their own keys. Where they stand for the same thing they get the same one here:

1. if both start from the same program, what stands on the same line there is the same thing;
2. what was made later is the same if it has the same kind and name and came from the same things
   (both schedules split i, say);
3. of what is left, lines that read the same, each taken once in order.

Everything else stays apart. The result is plain data: {"format": "mlc-lab/comparison",
"version": 1, "title": text, "recording": a recording with the steps of both, and the `slots` that
align its programs (`alignment.py`), "split": number of steps of the first, "names": what the two
are called}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .alignment import slots_of
from .recording import Recording

FORMAT = "mlc-lab/comparison"
VERSION = 1


def joined(first: Recording, second: Recording, title: str | None = None,
           names: Sequence[str] | None = None) -> dict[str, Any]:
    """Both recordings as one comparison. See the head of this file."""
    table = _same_keys(first, second)
    keys = list(first.keys)
    for key, name in enumerate(second.keys):
        if key not in table:
            table[key] = len(keys)
            keys.append(name)
    one, two = first.to_dict(), second.to_dict()
    lines, programs = len(first.lines), len(first.programs)
    data = {
        **one,
        "keys": [list(key) for key in keys],
        "lines": one["lines"] + [[text, [table[k] for k in at]] for text, at in second.lines],
        "parts": [recording.parts_of(line) for recording in (first, second)
                  for line in range(len(recording.lines))],
        "programs": one["programs"] + [
            {**p, "lines": [n + lines for n in p["lines"]]} for p in two["programs"]],
        "docs": {**two["docs"], **one["docs"]},
        "steps": one["steps"] + [_moved(step, table, programs) for step in two["steps"]],
    }  # fmt: skip
    data.pop("code", None)
    data["slots"] = slots_of(data, [(first.steps[0].before, programs + second.steps[0].before)])
    called = list(names or (first.title, second.title))
    return {"format": FORMAT, "version": VERSION, "title": title or " / ".join(called),
            "names": called, "recording": data,
            "split": len(first.steps), "preludes": [first.prelude, second.prelude]}


def _moved(step: dict[str, Any], table: dict[int, int], programs: int) -> dict[str, Any]:
    """A step of the second recording with its programs and keys as they are called now."""
    moved = {**step, "before": step["before"] + programs, "after": step["after"] + programs}
    if step.get("origins"):
        moved["origins"] = [[table[k], [table[o] for o in olds]] for k, olds in step["origins"]]
    if step.get("error"):
        faults = [table[k] for k in step["error"].get("keys", [])]
        moved["error"] = {**step["error"], "keys": faults}
    return moved


def _same_keys(first: Recording, second: Recording) -> dict[int, int]:
    """Keys of the second recording that stand for something in the first: second -> first."""
    table: dict[int, int] = {}
    taken: set[int] = set()

    def pair(old: int, new: int) -> None:
        if new not in table and old not in taken and first.keys[old][0] == second.keys[new][0]:
            table[new] = old
            taken.add(old)

    def pair_lines(a: tuple[str, list[int]], b: tuple[str, list[int]]) -> None:
        if len(a[1]) == len(b[1]):
            for old, new in zip(a[1], b[1]):
                pair(old, new)

    start, other = first.steps[0].before, second.steps[0].before
    if first.text(start) == second.text(other):
        for i, j in zip(first.programs[start].lines, second.programs[other].lines):
            pair_lines(first.lines[i], second.lines[j])
    made: dict[tuple[Any, ...], list[int]] = {}
    for step in first.steps:
        for key, olds in step.origins:
            made.setdefault((*first.keys[key], frozenset(olds)), []).append(key)
    for step in second.steps:
        for key, olds in step.origins:
            if all(old in table for old in olds):
                same = made.get((*second.keys[key], frozenset(table[old] for old in olds)), [])
                for old in same:
                    pair(old, key)
    read: dict[str, list[list[int]]] = {}
    for text, at in first.lines:
        if at and not taken.issuperset(at):
            read.setdefault(text.strip(), []).append(at)
    for text, at in second.lines:
        if at and read.get(text.strip()) and not all(key in table for key in at):
            pair_lines((text, read[text.strip()].pop(0)), (text, at))
    return table


__all__ = ["FORMAT", "VERSION", "joined"]
