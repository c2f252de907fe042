"""Two iterations that clash, found by trying: the example under a refusal about dependence.

A refusal says by a rule why a read may come before its write. Here that is made concrete: loop
values at which the consumer reads an element, and where, if anywhere, that element is written. The
search tries the first two and the last value of every loop, so it is quick, and it may find
nothing; the refusal stands without it.

`meet` tries all values: whether two accesses touch one element at all.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..ir import dtype as dt
from ..tir import expr as E
from ..tir.numbers import convert, fit
from ..tir.stmt import For

if TYPE_CHECKING:
    from ..tir.buffer import Buffer
    from ..tir.expr import PrimExpr
    from .conflict import Relation
    from .footprint import Access

#: loop values tried for one example, in all
LIMIT = 4096

#: points of one access, and pairs of them, that `meet` looks at
POINTS, PAIRS = 1 << 16, 1 << 22


def _and(a: int, b: int) -> int:
    return a and b


def _or(a: int, b: int) -> int:
    return a or b


#: on numbers, and all but the last on arrays of them
_BINARY: dict[type[PrimExpr], Callable[[Any, Any], Any]] = {
    E.Add: operator.add, E.Sub: operator.sub, E.Mul: operator.mul,
    E.FloorDiv: vars(operator)["floordiv"], E.FloorMod: operator.mod, E.Min: min, E.Max: max,
    E.EQ: operator.eq, E.NE: operator.ne, E.LT: operator.lt, E.LE: operator.le, E.GT: operator.gt,
    E.GE: operator.ge, E.And: _and, E.Or: _or,
}


class Unknown(Exception):
    """The expression has no value here: it depends on data or on a symbolic size."""


def evaluate(expr: PrimExpr, values: dict[Any, int]) -> int:
    """The value of an integer expression where its variables have `values`, as the program that
    computes it gets it: what does not fit into its type wraps around."""
    kind = type(expr)
    if type(expr) is E.IntImm:
        return expr.value
    if kind is E.Var or kind is E.SizeVar:
        if expr in values:
            return values[expr]
        raise Unknown
    fn = _BINARY.get(kind)
    if fn is not None and isinstance(expr, E.BinaryOp):
        b = evaluate(expr.b, values)
        if b == 0 and kind in (E.FloorDiv, E.FloorMod):
            raise Unknown
        return fit(expr.dtype)(fn(evaluate(expr.a, values), b))
    if type(expr) is E.Cast:
        if dt.is_float(expr.dtype) or dt.is_float(expr.value.dtype):
            raise Unknown
        return convert(evaluate(expr.value, values), expr.value.dtype, expr.dtype)
    if type(expr) is E.Not:
        return not evaluate(expr.a, values)
    if type(expr) is E.Select:
        return evaluate(expr.true_value if evaluate(expr.condition, values)
                        else expr.false_value, values)
    raise Unknown


Loops = Sequence[tuple[Any, Any, Any]]  # (variable, first value, extent)
Point = dict[Any, int]  # values of loops


def loop_triples(loops: Sequence[For]) -> list[tuple[Any, Any, Any]]:
    """Loops as this search takes them."""
    return [(lp.loop_var, lp.min, lp.extent) for lp in loops]


def _points(loops: Loops, every: bool, start: Point | None = None) -> Iterator[dict[Any, int]]:
    """Values of the loops: all of them (`every`, up to 64 each) or the first two and the last."""
    choices: list[list[int]] = []
    for _, low, extent in loops:
        low, count = evaluate(low, {}), evaluate(extent, {})
        if every:
            picked: Sequence[int] = range(min(count, 64))
        else:
            picked = sorted({n for n in (0, 1, count - 1) if 0 <= n < count})
        choices.append([low + n for n in picked])
    for values in itertools.islice(itertools.product(*choices), LIMIT):
        yield {**(start or {}), **{var: v for (var, _, _), v in zip(loops, values)}}


def unwritten_read(consumer: str, producers: str, buffer: Buffer, shared: Loops, own: Loops,
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
    except Unknown:
        return ""


def touched_twice(first: str, first_loops: Loops, first_region: Sequence[tuple[Any, Any]],
                  second: str, second_loops: Loops, second_region: Sequence[tuple[Any, Any]],
                  buffer: Buffer, verbs: tuple[str, str] = ("writes", "writes")) -> str:
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
    except Unknown:
        return ""


def _outside(read: Sequence[tuple[Any, Any]], written: Sequence[tuple[Any, Any]], buffer: Buffer,
             point: Point) -> list[int] | None:
    """An element of the read box that is not in the written box, clipped to the buffer."""
    corner: list[int] = []
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


def _values(loops: Loops, point: Point) -> str:
    said = ", ".join(f"{var.name} = {point[var]}" for var, _, _ in loops)
    return said + ": " if said else ""


# ------------------------------------------------------------------------------- all points


class Meeting(NamedTuple):
    """Loop values at which two accesses touch one element."""

    first: dict[Any, int]
    second: dict[Any, int]
    element: tuple[int, ...]


_ARRAYS: dict[type[PrimExpr], Callable[[Any, Any], Any]] = {
    **_BINARY, E.Min: np.minimum, E.Max: np.maximum, E.And: np.logical_and,
    E.Or: np.logical_or}


def meet(a: Access, b: Access, around: Loops, relation: Relation) -> Meeting | None:
    """Where two accesses (`footprint.Access`) touch one element at points p and q such that
    relation.equal are the same at both, relation.less less at p and relation.greater greater at p.

    None: nowhere, every point was looked at. `around` are the loops around both. Raises Unknown if
    there are too many points, or if an index depends on data or on a symbolic size.
    """
    if a.buffer is not b.buffer or a.buffer is None or a.buffer.strides:
        raise Unknown
    p, q = _Points(a, around), _Points(b, around)
    left, right = _one_key([*zip(p.elements, q.elements),
                            *((p.values(e), q.values(e)) for e in relation.equal)],
                           p.count, q.count)
    lower = [(p.values(e), q.values(e)) for e in relation.less]
    higher = [(p.values(e), q.values(e)) for e in relation.greater]
    order = np.argsort(right, kind="stable")
    right = right[order]
    start = np.searchsorted(right, left, "left")
    count = np.searchsorted(right, left, "right") - start
    if count.sum(initial=0) > PAIRS:
        raise Unknown
    for step in range(int(count.max(initial=0))):
        mine = np.flatnonzero(count > step)
        theirs = order[start[mine] + step]
        good = np.ones(len(mine), bool)
        for x, y in lower:
            good &= x[mine] < y[theirs]
        for x, y in higher:
            good &= x[mine] > y[theirs]
        hit = np.flatnonzero(good)
        if len(hit):
            at, other = int(mine[hit[0]]), int(theirs[hit[0]])
            return Meeting(p.at(at), q.at(other), tuple(int(e[at]) for e in p.elements))
    return None


def first_meeting(a: Access, b: Access, around: Loops, relation: Relation) -> Meeting | None:
    """The answer of `meet` where it is found in the first iterations; None says nothing.

    Each loop stands at its first value, and where the relation wants a loop to differ, at its first
    two. Most dependences are met there: every iteration of a sum touches the same element.
    """
    if a.buffer is not b.buffer or a.buffer is None or a.buffer.strides:
        return None
    try:
        p = _first_point(a, around, relation.greater)
        q = _first_point(b, around, relation.less)
        if p is None or q is None:
            return None
        if any(evaluate(e, p) != evaluate(e, q) for e in relation.equal) \
                or any(evaluate(e, p) >= evaluate(e, q) for e in relation.less) \
                or any(evaluate(e, p) <= evaluate(e, q) for e in relation.greater):
            return None
        element: list[int] = []
        for axis, dim in enumerate(a.buffer.shape):
            first, last = _interval(a, axis, dim, p)
            other, final = _interval(b, axis, dim, q)
            if max(first, other) > min(last, final):
                return None
            element.append(max(first, other))
    except Unknown:
        return None
    return Meeting(p, q, tuple(element))


def _first_point(access: Access, around: Loops, second: Sequence[Any]) -> dict[Any, int] | None:
    """The first iteration of all loops, the second one of those in `second`; None where there is
    none, or where the access is not made in it."""
    point: dict[Any, int] = {}
    for var, low, extent in (*around, *access.loops):
        step = int(any(var is e for e in second))
        if evaluate(extent, point) <= step:
            return None
        point[var] = evaluate(low, point) + step
    for condition in access.conditions:
        if not evaluate(condition, point):
            return None
    return point


def _interval(access: Access, axis: int, dim: PrimExpr, point: dict[Any, int]) -> tuple[int, int]:
    """The first and the last index of an access in one dimension."""
    span = None if access.spans is None else access.spans[axis]
    low, size = (0, dim) if span is None else (evaluate(span[0], point), span[1])
    return low, low + evaluate(size, point) - 1


class _Points:
    """All points at which an access is made, as one array for each loop variable, and the elements
    it touches there. Raises Unknown where they cannot be listed."""

    def __init__(self, access: Access, around: Loops) -> None:
        self.run((*around, *access.loops), access.conditions)
        if access.buffer is None:
            raise Unknown
        sizes = [evaluate(dim, {}) for dim in access.buffer.shape]
        self.elements: list[np.ndarray] = []
        for axis, span in enumerate(access.spans or (None,) * len(sizes)):
            size = sizes[axis] if span is None else evaluate(span[1], {})
            inner, outer = self._repeat(np.full(self.count, size))
            self.elements = [e[outer] for e in self.elements]
            self.elements.append(inner if span is None else self.values(span[0]) + inner)

    def run(self, loops: Loops, conditions: Sequence[Any]) -> None:
        """Take the loops through all their values where the conditions hold."""
        self.table: dict[Any, np.ndarray] = {}
        self.count = 1
        for var, low, extent in loops:
            start = self.values(low)
            inner, outer = self._repeat(np.maximum(self.values(extent), 0))
            self.table[var] = start[outer] + inner
        for condition in conditions:
            try:
                self._take(np.flatnonzero(self.values(condition)))
            except Unknown:
                continue  # it may hold everywhere

    def _repeat(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each point several times: the number of the repetition, and which point it was."""
        total = int(times.sum())
        if total > POINTS:
            raise Unknown
        outer = np.repeat(np.arange(self.count), times)
        inner = np.arange(total) - np.repeat(np.cumsum(times) - times, times)
        self._take(outer)
        return inner, outer

    def _take(self, which: np.ndarray) -> None:
        self.table = {var: values[which] for var, values in self.table.items()}
        self.count = len(which)

    def values(self, e: PrimExpr) -> np.ndarray:
        """An expression at every point."""
        out = self._value(e)
        return np.full(self.count, out, np.int64) if np.ndim(out) == 0 else out

    def _value(self, e: PrimExpr) -> Any:
        kind = type(e)
        if type(e) is E.IntImm:
            return e.value
        if type(e) is E.Var or type(e) is E.SizeVar:
            if e not in self.table:
                raise Unknown
            return self.table[e]
        if isinstance(e, E.BinaryOp) and kind in _ARRAYS:
            if e.dtype not in _KINDS[kind in _ARITHMETIC]:  # there they wrap around
                raise Unknown
            a, b = self._value(e.a), self._value(e.b)
            if kind in (E.FloorDiv, E.FloorMod) and not np.all(b):
                raise Unknown
            return _ARRAYS[kind](a, b)
        if type(e) is E.Cast:
            return _cast(self._value(e.value), e.value.dtype, e.dtype)
        if type(e) is E.FloatImm and e.dtype in ("float32", "float64"):
            return np.dtype(e.dtype).type(e.value)
        if type(e) is E.Div and e.dtype in ("float32", "float64"):
            return self._value(e.a) / self._value(e.b)
        if type(e) is E.Not:
            return np.logical_not(self._value(e.a))
        if type(e) is E.Select:
            return _CHOOSE(self._value(e.condition), self._value(e.true_value),
                           self._value(e.false_value))
        if type(e) is E.Call:
            name = getattr(e.op, "name", "")
            if name == "tir.likely":
                return self._value(e.args[0])
            if name in _ROUNDING and e.dtype in ("float32", "float64"):
                return _ROUNDING[name](self._value(e.args[0]))
        raise Unknown

    def at(self, place: int) -> dict[Any, int]:
        """The loop values of one point."""
        return {var: int(values[place]) for var, values in self.table.items()}


_CHOOSE: Callable[[Any, Any, Any], Any] = np.where
_ROUNDING = {"tir.floor": np.floor, "tir.ceil": np.ceil, "tir.trunc": np.trunc}
_INDEX, _REAL = ("int32", "int64", "bool"), ("float32", "float64")
_ARITHMETIC = (E.Add, E.Sub, E.Mul, E.FloorDiv, E.FloorMod)
#: types of operations, and of arithmetic
_KINDS = ((*_INDEX, *_REAL), ("int32", "int64", *_REAL))


def _cast(value: Any, source: str, target: str) -> Any:
    """Values of one type in another; Unknown for types that indices are not made of."""
    if source in _INDEX and target in ("int32", "int64"):
        return value if source != "int64" else np.asarray(value).astype(target).astype(np.int64)
    if source in (*_INDEX, *_REAL) and target in _REAL:
        return np.asarray(value).astype(target)
    if source in _REAL and target in ("int32", "int64"):
        if not np.all(np.abs(value) < 1 << 31):  # what that gives depends on the type
            raise Unknown
        return np.trunc(value).astype(np.int64)
    raise Unknown


def holds_everywhere(conditions: Sequence[Any], loops: Loops, given: Sequence[Any]) -> bool:
    """Whether conditions hold for all values of loops where the `given` ones hold, by trying them.
    Raises Unknown where they cannot be tried."""
    points = _Points.__new__(_Points)
    points.run(loops, given)
    return all(bool(np.all(points.values(c))) for c in conditions)


def _one_key(pairs: Sequence[tuple[Any, Any]], n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Several columns of two tables as one each: equal where all of them are."""
    left, right = np.zeros(n, np.int64), np.zeros(m, np.int64)
    for a, b in pairs:
        _, found = np.unique(np.concatenate([a, b]), return_inverse=True)
        width = int(found.max(initial=0)) + 1
        _, found = np.unique(np.concatenate([left, right]) * width + found, return_inverse=True)
        left, right = found[:n], found[n:]
    return left, right


__all__ = ["Meeting", "Unknown", "evaluate", "first_meeting", "holds_everywhere", "loop_triples",
           "meet", "touched_twice", "unwritten_read"]
