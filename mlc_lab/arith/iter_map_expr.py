"""The nodes of iteration maps, arithmetic on their factors, and maps written out as expressions.

    IterMark       a source (a loop variable, or a sum) taken as one iterator in [0, extent)
    IterSplitExpr  (mark // lower_factor) % extent * scale
    IterSumExpr    split + ... + split + base

Factors, extents, scales and bases are Python ints where they are constant, expressions otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator, Sequence, Union

from ..tir.expr import Add, IntImm, PrimExpr, Sub, const_index
from . import expr_util as U
from .expr_util import imm

if TYPE_CHECKING:
    from .analyzer import Analyzer

#: an int where it is constant
Number = Union[int, PrimExpr]


class IterMark:
    """`source` (a PrimExpr or an IterSumExpr) as an iterator over [0, extent)."""

    __slots__ = ("source", "extent")

    def __init__(self, source: Any, extent: Any) -> None:
        self.source = source
        self.extent = number(extent)

    def __repr__(self) -> str:
        return f"IterMark({self.source!r}, extent={self.extent!r})"


class IterMapExpr:
    """Base of what an iteration map is made of: a split, or a sum of splits."""

    __slots__ = ()


class IterSplitExpr(IterMapExpr):
    """(source // lower_factor) % extent * scale."""

    __slots__ = ("source", "lower_factor", "extent", "scale")

    def __init__(self, source: IterMark, lower_factor: Any = 1, extent: Any = None,
                 scale: Any = 1) -> None:
        self.source = source
        self.lower_factor = number(lower_factor)
        self.extent = source.extent if extent is None else number(extent)
        self.scale = number(scale)

    def __repr__(self) -> str:
        return (f"IterSplit({self.source!r}, lower_factor={self.lower_factor!r}, "
                f"extent={self.extent!r}, scale={self.scale!r})")


class IterSumExpr(IterMapExpr):
    """The sum of splits and a base."""

    __slots__ = ("args", "base", "dtype")

    def __init__(self, args: Iterable[IterSplitExpr], base: Any, dtype: str = "int32") -> None:
        self.args = list(args)
        self.base = number(base)
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"IterSum({self.args!r}, base={self.base!r})"


class Unresolved(Exception):
    """The expression is no iteration map; the message says which part."""


def number(value: Any) -> Number:
    """A constant as a Python int, anything else as it is."""
    return value.value if type(value) is IntImm else value


def expression(value: Number, dtype: str) -> PrimExpr:
    """A number as an expression."""
    return imm(value, dtype) if isinstance(value, int) else value


class Numbers:
    """Arithmetic on factors and extents: ints at once, symbols through the analyzer."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def _build(self, build: Any, a: Number, b: Number) -> Number:
        return number(self.analyzer.simplify(build(*_typed(a, b))))

    def add(self, a: Number, b: Number) -> Number:
        """a + b"""
        return a + b if type(a) is int and type(b) is int else self._build(U.add, a, b)

    def sub(self, a: Number, b: Number) -> Number:
        """a - b"""
        return a - b if type(a) is int and type(b) is int else self._build(U.sub, a, b)

    def mul(self, a: Number, b: Number) -> Number:
        """a * b"""
        return a * b if type(a) is int and type(b) is int else self._build(U.mul, a, b)

    def div(self, a: Number, b: Number) -> Number:
        """a // b"""
        return a // b if type(a) is int and type(b) is int else self._build(U.floordiv, a, b)

    def mod(self, a: Number, b: Number) -> Number:
        """a % b"""
        return a % b if type(a) is int and type(b) is int else self._build(U.floormod, a, b)

    def equal(self, a: Number, b: Number) -> bool:
        """Whether a == b for certain."""
        if type(a) is int and type(b) is int:
            return a == b
        return self.analyzer.can_prove_equal(*_typed(a, b))

    def divides(self, b: Number, a: Number) -> bool:
        """Whether b divides a for certain."""
        if type(a) is int and type(b) is int:
            return b != 0 and a % b == 0
        if type(b) is int and b == 1 or type(a) is int and a == 0:
            return True
        rest = self.mod(a, b)
        return isinstance(rest, int) and rest == 0

    def at_least(self, a: Number, b: Number) -> bool:
        """Whether a >= b for certain."""
        if type(a) is int and type(b) is int:
            return a >= b
        x, y = _typed(a, b)
        return self.analyzer.can_prove(U.ge(x, y))

    def max(self, a: Number, b: Number) -> Number:
        """The larger one."""
        return a if self.at_least(a, b) else b if self.at_least(b, a) else self._build(
            U.maximum, a, b)

    def min(self, a: Number, b: Number) -> Number:
        """The smaller one."""
        return a if self.at_least(b, a) else b if self.at_least(a, b) else self._build(
            U.minimum, a, b)


def _typed(a: Number, b: Number) -> tuple[PrimExpr, PrimExpr]:
    symbol: Any = b if type(a) is int else a
    return expression(a, symbol.dtype), expression(b, symbol.dtype)


def new_analyzer(analyzer: Analyzer | None) -> Analyzer:
    """`analyzer`, or a new one where none is given."""
    if analyzer is not None:
        return analyzer
    from .analyzer import Analyzer

    return Analyzer()


def collect_splits(bindings: Sequence[IterSumExpr]) -> dict[IterMark, list[IterSplitExpr]]:
    """The splits of every mark that occurs in `bindings`, inner ones included."""
    splits: dict[IterMark, list[IterSplitExpr]] = {}
    for binding in bindings:
        _add_splits(binding, splits)
    return splits


def _add_splits(total: IterSumExpr, splits: dict[IterMark, list[IterSplitExpr]]) -> None:
    for split in total.args:
        known = splits.get(split.source)
        if known is None:
            splits[split.source] = [split]
            if isinstance(split.source.source, IterSumExpr):
                _add_splits(split.source.source, splits)
        else:
            known.append(split)


def marks_within(mark: IterMark) -> Iterator[IterMark]:
    """A mark and those of the sums that it was made of."""
    yield mark
    if isinstance(mark.source, IterSumExpr):
        for split in mark.source.args:
            yield from marks_within(split.source)


# ------------------------------------------------------------------------------- written out


def split_to_expr(split: IterSplitExpr, dtype: str, n: Numbers) -> PrimExpr:
    """A split as an ordinary expression."""
    mark = split.source
    source = mark.source
    source = sum_to_expr(source, n, dtype) if isinstance(source, IterSumExpr) else source
    if source.dtype != dtype:
        source = source.astype(dtype)
    lower, extent, scale = split.lower_factor, split.extent, split.scale
    if type(extent) is int and extent == 1 and not (type(lower) is int and lower == 1):
        return imm(0, dtype)
    if type(lower) is int and lower == 1 and n.equal(extent, mark.extent):
        out = source
    elif n.at_least(n.mul(lower, extent), mark.extent):
        out = U.floordiv(source, expression(lower, dtype))
    else:
        out = U.floordiv(U.floormod(source, expression(n.mul(lower, extent), dtype)),
                         expression(lower, dtype))
    return out if type(scale) is int and scale == 1 else U.mul(out, expression(scale, dtype))


def sum_to_expr(total: IterSumExpr, n: Numbers, dtype: str | None = None) -> PrimExpr:
    """A sum as an ordinary expression."""
    dtype = dtype or total.dtype
    out: PrimExpr | None = None
    for split in total.args:
        item = split_to_expr(split, dtype, n)
        out = item if out is None else U.add(out, item)
    base = total.base
    if out is None:
        base = expression(base, dtype)
        return base if base.dtype == dtype else base.astype(dtype)
    if type(base) is int and type(out) is not IntImm:
        return out if base == 0 else Add(out, imm(base, dtype)) if base > 0 else Sub(
            out, imm(-base, dtype))
    base = expression(base, dtype)
    return U.add(out, base if base.dtype == dtype else base.astype(dtype))


def normalize_iter_map_to_expr(e: PrimExpr | IterSumExpr | IterSplitExpr | IterMark,
                               analyzer: Analyzer | None = None) -> PrimExpr:
    """An IterSumExpr, IterSplitExpr or IterMark as an ordinary expression."""
    n = Numbers(new_analyzer(analyzer))
    if isinstance(e, IterSumExpr):
        return sum_to_expr(e, n)
    if isinstance(e, IterSplitExpr):
        return split_to_expr(e, _dtype_of(e.source), n)
    if isinstance(e, IterMark):
        return normalize_iter_map_to_expr(e.source, analyzer)
    return const_index(e)


def _dtype_of(mark: IterMark) -> str:
    return mark.source.dtype
