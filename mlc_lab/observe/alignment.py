"""Which lines of two programs face each other: the alignment that all views draw.

A line has a text and keys. Equal keys mean the same object, whatever its text says now, so a loop
that was moved is found again, and a line that merely reads the same is not taken for it. Lines
without keys (decorators, `with T.init():`) are known by their text. Two programs are aligned by the
heaviest chain of pairs whose line numbers increase on both sides.

A reader may lay any program of a recording beside any other, also in a page without a kernel. So
all programs are woven into one sequence of slots, as SCCS keeps the versions of a file (Rochkind,
"The Source Code Control System", 1975): each line has a slot, aligned lines share one, and the
slots of a program increase. Merging the slots of two programs aligns them. `woven` makes the slots;
`rows` merges them, as `rows` of `widgets/js/diff.js` does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

_NEAR = 6  # a line without keys may stand in many places: pairs with that many nearby are looked at

#: a line to align: its text without the indentation, and its keys
Keyed = tuple[str, tuple[int, ...]]


class Row(NamedTuple):
    """Two lines that face each other, by their numbers (-1: none), and how each is marked: ""
    (unchanged), "changed", "moved", "removed" or "new"."""

    left: int
    right: int
    left_mark: str
    right_mark: str


def heaviest_chain(pairs: Iterable[tuple[int, int, int]], size: int) -> list[tuple[int, int]]:
    """The pairs (a, b, weight) of the heaviest chain increasing in a and b, as (a, b); b < size.

    By a Fenwick tree of prefix maxima over b, in O(n log size).
    """
    ordered = sorted(pairs, key=lambda p: (p[0], -p[1]))
    best, source = [0] * (size + 1), [-1] * (size + 1)
    previous = [-1] * len(ordered)
    top, last = 0, -1
    for index, (_, b, weight) in enumerate(ordered):
        total, i = 0, b
        while i > 0:
            if best[i] > total:
                total, previous[index] = best[i], source[i]
            i -= i & -i
        total += weight
        if total > top:
            top, last = total, index
        i = b + 1
        while i <= size:
            if total > best[i]:
                best[i], source[i] = total, index
            i += i & -i
    chain = []
    while last >= 0:
        chain.append(ordered[last][:2])
        last = previous[last]
    return chain[::-1]


def _by_key(lines: Sequence[Keyed]) -> dict[int, int]:
    """The first line of each key."""
    found: dict[int, int] = {}
    for number, (_, keys) in enumerate(lines):
        for key in keys:
            found.setdefault(key, number)
    return found


def _candidates(before: Sequence[Keyed], after: Sequence[Keyed]) -> list[tuple[int, int, int]]:
    """Pairs of lines that may stand for the same thing, with weights for how likely, in 60ths."""
    by_key = _by_key(after)
    by_text: dict[str, list[int]] = {}
    for number, (text, keys) in enumerate(after):
        if not keys:
            by_text.setdefault(text, []).append(number)
    pairs = []
    for a, (text, keys) in enumerate(before):
        if not keys:
            there = by_text.get(text, [])
            at = bisect_left(there, a)
            near = sorted(there[max(at - _NEAR, 0) : at + _NEAR], key=lambda b: abs(b - a))
            pairs += [(a, b, 60) for b in near[:_NEAR]]
            continue
        shared: dict[int, int] = {}
        for key in keys:
            if key in by_key:
                shared[by_key[key]] = shared.get(by_key[key], 0) + 1
        for b, count in shared.items():
            every = max(len(keys), len(after[b][1]))
            weight = 480 if after[b][0] == text else 120 + 240 * count // every
            pairs.append((a, b, weight))
    return pairs


def aligned(before: Sequence[Keyed], after: Sequence[Keyed]) -> list[tuple[int, int]]:
    """Pairs of line numbers that face each other, increasing on both sides."""
    shorter = min(len(before), len(after))
    head = 0
    while head < shorter and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < shorter - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    a, b = before[head : len(before) - tail], after[head : len(after) - tail]
    middle = heaviest_chain(_candidates(a, b), len(b))
    return [
        *((i, i) for i in range(head)),
        *((head + i, head + j) for i, j in middle),
        *((len(before) - i, len(after) - i) for i in range(tail, 0, -1)),
    ]


@dataclass(eq=False)
class _Slot:
    """A place in the sequence of all programs; `line` is the one it held last."""

    line: Keyed = ("", ())
    next: _Slot | None = None


def _weave_in(start: _Slot, before: Sequence[Keyed], old: Sequence[_Slot], after: Sequence[Keyed]
              ) -> list[_Slot]:  # fmt: skip
    """The slots of a program that was made of another, whose slots are `old`."""
    known = {b: old[a] for a, b in aligned(before, after)}
    taken = set(old)
    at, first = start, 0
    while first < len(after):
        if first in known:
            at = known[first]
            first += 1
            continue
        last = next((n for n in range(first, len(after)) if n in known), len(after))
        free, slot, end = [], at.next, known.get(last)
        while slot is not end and slot is not None:
            if slot not in taken:
                free.append(slot)
            slot = slot.next
        if free:  # lines of an earlier program may have come back here
            back = aligned([slot.line for slot in free], after[first:last])
            known.update((first + b, free[a]) for a, b in back)
        for number in range(first, last):
            if number not in known:
                known[number] = at.next = _Slot(next=at.next)
            at = known[number]
        first = last
    for number, line in enumerate(after):
        known[number].line = line
    return [known[number] for number in range(len(after))]


def woven(programs: Sequence[Sequence[Keyed]], steps: Iterable[tuple[int, int]]
          ) -> list[list[int]]:  # fmt: skip
    """For each program the numbers of the slots of its lines, rising.

    `steps` are (before, after), numbers of programs: a program is aligned with the first one that
    it was made of, and with program 0 where no step makes it.
    """
    start = _Slot()
    found: dict[int, list[_Slot]] = {}

    def weave(number: int, old: int) -> None:
        if number not in found:
            before = programs[old] if old in found else ()
            found[number] = _weave_in(start, before, found.get(old, ()), programs[number])

    for before, after in steps:
        weave(before, 0)
        weave(after, before)
    for number in range(len(programs)):
        weave(number, 0)
    numbers: dict[_Slot, int] = {}
    slot = start.next
    while slot is not None:
        numbers[slot] = len(numbers)
        slot = slot.next
    return [[numbers[slot] for slot in found[n]] for n in range(len(programs))]


def runs_of(numbers: Sequence[int]) -> list[int]:
    """Rising numbers as [first, count, first, count, ...] of their unbroken runs."""
    runs: list[int] = []
    for number in numbers:
        if runs and runs[-2] + runs[-1] == number:
            runs[-1] += 1
        else:
            runs += [number, 1]
    return runs


def keyed(recording: Any, program: int) -> list[Keyed]:
    """The lines of a program of a recording, to be aligned."""
    lines = recording.lines
    return [(lines[i][0].strip(), tuple(lines[i][1])) for i in recording.programs[program].lines]


def slots_of(data: dict[str, Any], steps: Iterable[tuple[int, int]] = ()) -> list[list[int]]:
    """The slots of the programs of a recording as plain data, as runs.

    `steps` are pairs of programs to be aligned besides those that the recording's steps make: of a
    tree of attempts, all.
    """
    lines = [(text.strip(), tuple(keys)) for text, keys in data["lines"]]
    programs = [[lines[i] for i in program["lines"]] for program in data["programs"]]
    made = [(step["before"], step["after"]) for step in data.get("steps", ())]
    return [runs_of(numbers) for numbers in woven(programs, [*steps, *made])]


def rows(before: Sequence[Keyed], after: Sequence[Keyed]) -> list[Row]:
    """Both programs side by side: every line stands in one row, in order.

    A line that faces none is "moved" where what it stands for is elsewhere in the other program,
    "changed" where it shares its counterpart with another line (one loop became two), else
    "removed" or "new".
    """
    pairs = aligned(before, after)
    marks = [
        _alone(before, after, {b for _, b in pairs}, "removed"),
        _alone(after, before, {a for a, _ in pairs}, "new"),
    ]
    out: list[Row] = []
    i = j = 0
    for a, b in [*pairs, (len(before), len(after))]:
        while i < a or j < b:
            left, right = i < a, j < b
            out.append(Row(i if left else -1, j if right else -1,
                           marks[0][i] if left else "", marks[1][j] if right else ""))  # fmt: skip
            i, j = i + left, j + right
        if a < len(before):
            mark = "" if before[a][0] == after[b][0] else "changed"
            out.append(Row(a, b, mark, mark))
            i, j = a + 1, b + 1
    return out


def _alone(lines: Sequence[Keyed], others: Sequence[Keyed], paired: set[int], absent: str
           ) -> list[str]:  # fmt: skip
    """The mark of each line for the case that it faces none."""
    where = _by_key(others)
    marks = []
    for _, keys in lines:
        there = [where[key] for key in keys if key in where]
        marks.append(absent if not there else "changed" if paired.issuperset(there) else "moved")
    return marks
