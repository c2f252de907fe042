"""Two iterations that clash, found by trying: the example under a refusal about dependence.

A refusal says by a rule why a read may come before its write. Here that is made concrete: loop
values at which the consumer reads an element, and where, if anywhere, that element is written. The
search tries the first two and the last value of every loop, so it is quick, and it may find
nothing; the refusal stands without it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from ..tir import expr as E
from ..tir.stmt import For

#: loop values tried for one example, in all
LIMIT = 4096

_BINARY = {
    E.Add: lambda a, b: a + b, E.Sub: lambda a, b: a - b, E.Mul: lambda a, b: a * b,
    E.FloorDiv: lambda a, b: a // b, E.FloorMod: lambda a, b: a % b, E.Min: min, E.Max: max,
    E.EQ: lambda a, b: a == b, E.NE: lambda a, b: a != b, E.LT: lambda a, b: a < b,
    E.LE: lambda a, b: a <= b, E.GT: lambda a, b: a > b, E.GE: lambda a, b: a >= b,
    E.And: lambda a, b: a and b, E.Or: lambda a, b: a or b,
}


class _Unknown(Exception):
    """The expression has no value here: it depends on data or on a symbolic size."""


def evaluate(expr: Any, values: dict[Any, int]) -> int:
    """The value of an integer expression where its variables have `values`."""
    kind = type(expr)
    if kind is E.IntImm:
        return expr.value
    if kind is E.Var or kind is E.SizeVar:
        if expr in values:
            return values[expr]
        raise _Unknown
    if kind in _BINARY:
        b = evaluate(expr.b, values)
        if b == 0 and kind in (E.FloorDiv, E.FloorMod):
            raise _Unknown
        return _BINARY[kind](evaluate(expr.a, values), b)
    if kind is E.Cast:
        return evaluate(expr.value, values)
    if kind is E.Not:
        return not evaluate(expr.a, values)
    if kind is E.Select:
        return evaluate(expr.true_value if evaluate(expr.condition, values)
                        else expr.false_value, values)
    raise _Unknown


Loops = Sequence[tuple[Any, Any, Any]]  # (variable, first value, extent)


def loop_triples(loops: Sequence[For]) -> list[tuple[Any, Any, Any]]:
    """Loops as this search takes them."""
    return [(lp.loop_var, lp.min, lp.extent) for lp in loops]


def _points(loops: Loops, every: bool, start: dict | None = None) -> Iterator[dict[Any, int]]:
    """Values of the loops: all of them (`every`, up to 64 each) or the first two and the last."""
    choices = []
    for _, low, extent in loops:
        low, count = evaluate(low, {}), evaluate(extent, {})
        if every:
            picked = range(min(count, 64))
        else:
            picked = sorted({n for n in (0, 1, count - 1) if 0 <= n < count})
        choices.append([low + n for n in picked])
    for values in itertools.islice(itertools.product(*choices), LIMIT):
        yield {**(start or {}), **{var: v for (var, _, _), v in zip(loops, values)}}


def unwritten_read(consumer: str, producers: str, buffer: Any, shared: Loops, own: Loops,
                   read: Sequence[tuple[Any, Any]], written: Sequence[tuple[Any, Any]],
                   predicate: Any = None) -> str:
    """An element that the consumer reads before it is written, as a sentence; "" if none is found.

    `shared` are the loops around both, `own` those of the consumer alone; `read` and `written` give
    the first and the last index in each dimension, the former in both kinds of loops, the latter
    (all that the producers have written in one iteration of `shared`) in `shared` alone.
    """
    try:
        for point in _points([*shared, *own], every=False):
            if predicate is not None and not evaluate(predicate, point):
                continue
            element = _outside(read, written, buffer, point)
            if element is not None:
                break
        else:
            return ""
        where = f"{buffer.name}[{', '.join(map(str, element))}]"
        text = f"{_values([*shared, *own], point)}{consumer} reads {where}"
        for other in _points(shared, every=True):
            if all(evaluate(low, other) <= at <= evaluate(high, other)
                   for at, (low, high) in zip(element, written)):
                return f"{text}; {_values(shared, other)}{producers} writes it"
        return f"{text}, which no iteration of {producers} that was tried writes"
    except _Unknown:
        return ""


def touched_twice(first: str, first_loops: Loops, first_region: Sequence[tuple[Any, Any]],
                  second: str, second_loops: Loops, second_region: Sequence[tuple[Any, Any]],
                  buffer: Any, verbs: tuple[str, str] = ("writes", "writes")) -> str:
    """An element that two blocks touch, with the loop values where they do; "" if none is found."""
    try:
        for point in _points(first_loops, every=False):
            element = [evaluate(low, point) for low, _ in first_region]
            for other in _points(second_loops, every=True):
                if all(evaluate(low, other) <= at <= evaluate(high, other)
                       for at, (low, high) in zip(element, second_region)):
                    where = f"{buffer.name}[{', '.join(map(str, element))}]"
                    return (f"{_values(first_loops, point)}{first} {verbs[0]} {where}; "
                            f"{_values(second_loops, other)}{second} {verbs[1]} it")
        return ""
    except _Unknown:
        return ""


def _outside(read: Sequence, written: Sequence, buffer: Any, point: dict) -> list[int] | None:
    """An element of the read box that is not in the written box, clipped to the buffer."""
    corner = []
    found = False
    for (low, high), (first, last), extent in zip(read, written, buffer.shape):
        size = evaluate(extent, {})
        low, high = max(evaluate(low, point), 0), min(evaluate(high, point), size - 1)
        first, last = evaluate(first, point), evaluate(last, point)
        if low > high:
            return None
        if not found and low < first:
            corner.append(low)
            found = True
        elif not found and high > last:
            corner.append(high)
            found = True
        else:
            corner.append(low)
    return corner if found else None


def _values(loops: Loops, point: dict) -> str:
    said = ", ".join(f"{var.name} = {point[var]}" for var, _, _ in loops)
    return said + ": " if said else ""


__all__ = ["evaluate", "loop_triples", "unwritten_read", "touched_twice"]
