"""Reading expressions as iteration maps, fusing sums, and checking what the maps take.

See `iter_map.py` for what iteration maps are and `detect_iter_map` for the way in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Sequence

from ..tir.expr import (
    Add, Cast, FloorDiv, FloorMod, IntImm, Mul, PrimExpr, Range, SizeVar, Sub, Var,
)
from . import expr_util as U
from .iter_map_expr import (
    IterMark, IterSplitExpr, IterSumExpr, Number, Numbers, Unresolved, collect_splits,
    marks_within, number,
)

if TYPE_CHECKING:
    from .analyzer import Analyzer


class _Fused(NamedTuple):
    """A sum that was made one mark: its value is offset + mark."""

    flat: tuple[IterSplitExpr, ...]
    mark: IterMark
    offset: Number


class IterMapRewriter:
    """Rewrites expressions over `input_iters` into iteration maps; see `detect_iter_map`."""

    #: whether `padded` is asked before a division; see `index_map.py`
    pads = False
    padded: Callable[[IterSplitExpr, Number, Number], tuple[IterSplitExpr, Number]]

    def __init__(self, analyzer: Analyzer, input_iters: Mapping[Var, Range],
                 trivial: bool = True, windows: bool = False) -> None:
        self.windows = windows  # whether sums may overlap, as in a sliding window
        self.uneven = windows  # whether divisors need not divide the extent
        self.analyzer = analyzer
        self.n = Numbers(analyzer)
        self.var_map: dict[PrimExpr, IterSumExpr] = {}
        self.input_marks: list[IterMark] = []
        self.fused: list[_Fused] = []
        self.constrained: list[_Fused] = []
        for var, rng in input_iters.items():
            low, extent = number(rng.min), number(rng.extent)
            if trivial and type(extent) is int and extent == 1:
                self.var_map[var] = IterSumExpr([], low, var.dtype)
                continue
            source = var if type(low) is int and low == 0 else U.sub(var, rng.min)
            mark = IterMark(source, extent)
            self.var_map[var] = IterSumExpr([IterSplitExpr(mark)], low, var.dtype)
            self.input_marks.append(mark)

    # ------------------------------------------------------------------- reading expressions

    def read(self, e: PrimExpr) -> Any:
        """An IterSumExpr, or a Number where no iterator occurs."""
        if type(e) is IntImm:
            return e.value
        kind = type(e)
        if kind is Var or kind is SizeVar:
            found = self.var_map.get(e)
            if found is None:
                return e
            return found
        visit = _READ.get(kind)
        if visit is not None:
            return visit(self, e)
        return self.other(e)

    def other(self, e: PrimExpr) -> PrimExpr:
        """A node of no affine kind: fine if there is no iterator in it."""
        for child in e.children():
            if isinstance(child, PrimExpr) and type(self.read(child)) is IterSumExpr:
                raise Unresolved(f"{type(e).__name__} of an iterator is not affine: {e!r}")
        return e

    def to_sum(self, value: Any, dtype: str) -> IterSumExpr:
        """A fresh sum that may be changed."""
        if type(value) is IterSumExpr:
            return IterSumExpr(value.args, value.base, value.dtype)
        return IterSumExpr([], value, dtype)

    def add_split(self, total: IterSumExpr, split: IterSplitExpr, sign: int) -> None:
        """Add a split; one of the same part of the same mark takes the scale."""
        for place, old in enumerate(total.args):
            if old.source is split.source and self.same_part(old, split):
                scale = self.n.add(old.scale, self.n.mul(split.scale, sign))
                if type(scale) is int and scale == 0:
                    del total.args[place]
                else:
                    total.args[place] = IterSplitExpr(old.source, old.lower_factor, old.extent,
                                                      scale)
                return
        if sign == 1:
            total.args.append(split)
        else:
            total.args.append(IterSplitExpr(split.source, split.lower_factor, split.extent,
                                            self.n.mul(split.scale, sign)))

    def same_part(self, a: IterSplitExpr, b: IterSplitExpr) -> bool:
        """Whether two splits are equal but for their scale."""
        return a.source is b.source and self.n.equal(a.lower_factor, b.lower_factor) and (
            self.n.equal(a.extent, b.extent))

    def is_top(self, split: IterSplitExpr) -> bool:
        """Whether a split reaches to the end of its mark."""
        return self.n.at_least(self.n.mul(split.lower_factor, split.extent), split.source.extent)

    # ------------------------------------------------------------------- fusing

    def combine(self, args: list[IterSplitExpr]) -> list[IterSplitExpr]:
        """Join splits that lie side by side in one mark: x // 4 * 4 + x % 4 is x."""
        if len(args) < 2 or len({id(a.source) for a in args}) == len(args):
            return args
        args = list(args)
        joined = True
        while joined:
            joined = False
            for i, high in enumerate(args):
                for j, low in enumerate(args):
                    if i == j or high.source is not low.source:
                        continue
                    if self.n.equal(high.lower_factor,
                                    self.n.mul(low.lower_factor, low.extent)) and self.n.equal(
                            high.scale, self.n.mul(low.scale, low.extent)):
                        args[min(i, j)] = IterSplitExpr(
                            low.source, low.lower_factor, self.n.mul(high.extent, low.extent),
                            low.scale)
                        del args[max(i, j)]
                        joined = True
                        break
                if joined:
                    break
        return args

    def fuse(self, args: list[IterSplitExpr]) -> tuple[IterSplitExpr, Number]:
        """Splits added up as one split of a mark, plus an offset. Raises Unresolved.

        Picks the smallest scale first; each next scale must be the product of the extents so far
        (or less, if sums may overlap).
        """
        n = self.n
        args = self.combine(args)
        if len(args) == 1 and not self.constrained:
            return args[0], 0
        base = self.smallest(args)
        base_scale = args[base].scale
        left = list(range(len(args)))
        covered, extra = base_scale, 0  # the values reached so far: multiples of base_scale below
        flat: list[IterSplitExpr] = []
        grouped: list[IterSplitExpr] = []
        while left:
            place, scale = base, base_scale
            if flat:
                place, scale = self.next_scale(args, left, covered, base_scale)
            pattern = self.longest_constraint(args, left, place, scale)
            if pattern is None:
                left.remove(place)
                split = args[place]
                flat.append(split)
                part, lower, extent = split.source, split.lower_factor, split.extent
            else:
                fused, places = pattern
                for k in places:
                    left.remove(k)
                    flat.append(args[k])
                part, lower, extent = fused.mark, 1, fused.mark.extent
                extra = n.add(extra, n.mul(fused.offset, scale))
            grouped.append(IterSplitExpr(part, lower, extent, n.div(scale, base_scale)))
            covered = n.mul(covered, extent) if scale is covered or n.equal(scale, covered) else (
                n.add(n.mul(n.sub(extent, 1), scale), covered))
        if len(grouped) == 1:
            only = grouped[0]
            return IterSplitExpr(only.source, only.lower_factor, only.extent, base_scale), extra
        flat.reverse()
        grouped.reverse()
        flat = [IterSplitExpr(s.source, s.lower_factor, s.extent, n.div(s.scale, base_scale))
                for s in flat]
        known = self.find(flat)
        if known is not None:
            if not n.equal(extra, n.mul(known.offset, base_scale)):
                raise Unresolved("a sum is used with two different offsets")
            return IterSplitExpr(known.mark, 1, known.mark.extent, base_scale), extra
        wide = any(s.source.source.dtype == "int64" for s in grouped)
        mark = IterMark(IterSumExpr(grouped, 0, "int64" if wide else "int32"),
                        n.div(covered, base_scale))
        self.fused.append(_Fused(tuple(flat), mark, 0))
        return IterSplitExpr(mark, 1, mark.extent, base_scale), extra

    def find(self, flat: Sequence[IterSplitExpr]) -> _Fused | None:
        """The mark made of these splits before."""
        for known in self.fused:
            if len(known.flat) == len(flat) and all(
                    a.source is b.source and self.same_part(a, b) and self.n.equal(
                        a.scale, b.scale) for a, b in zip(known.flat, flat)):
                return known
        return None

    def smallest(self, args: list[IterSplitExpr]) -> int:
        """The last of the args with the smallest scale; constants before symbols."""
        best = -1
        for place in range(len(args) - 1, -1, -1):
            scale = args[place].scale
            if type(scale) is int:
                if scale <= 0:
                    raise Unresolved(f"an iterator is multiplied with {scale}")
                if best < 0 or scale < args[best].scale:
                    best = place
        if best >= 0:
            return best
        for place, arg in enumerate(args):
            if all(self.n.divides(arg.scale, other.scale) for other in args):
                return place
        raise Unresolved("no iterator has the smallest scale for certain")

    def next_scale(self, args: list[IterSplitExpr], left: list[int], covered: Number,
                   unit: Number) -> tuple[int, Number]:
        """The remaining arg whose scale is what is covered so far, from the right, and its scale.

        In a sliding window (i * 2 + k with k in [0, 3)) the scale may also be smaller: the steps
        overlap, but all values are taken.
        """
        for place in reversed(left):
            if self.n.equal(args[place].scale, covered):
                return place, covered
        if self.windows and type(covered) is int and type(unit) is int:
            inside = [k for k in left if type(args[k].scale) is int
                      and args[k].scale <= covered and args[k].scale % unit == 0]
            if inside:
                place = min(reversed(inside), key=lambda k: args[k].scale)
                return place, args[place].scale
        raise Unresolved(
            f"a sum of iterators is no mixed-radix number: no iterator is scaled by {covered!r}")

    def longest_constraint(self, args: list[IterSplitExpr], left: list[int], place: int,
                           expected: Number) -> tuple[_Fused, list[int]] | None:
        """The largest sum limited by a predicate whose lowest part is args[place]."""
        best = None
        for fused in self.constrained:
            if best is not None and len(fused.flat) <= len(best[0].flat):
                continue
            if not self.same_part(fused.flat[-1], args[place]):
                continue
            places, unit = [], fused.flat[-1].scale
            for split in reversed(fused.flat):
                for k in left:
                    if k not in places and self.same_part(args[k], split) and self.n.equal(
                            self.n.mul(split.scale, expected), self.n.mul(args[k].scale, unit)):
                        places.append(k)
                        break
                else:
                    break
            if len(places) == len(fused.flat):
                best = (fused, places)
            else:
                raise Unresolved("only a part of a sum that a predicate limits occurs in an index")
        return best

    def normal(self, value: Any, dtype: str) -> IterSumExpr:
        """A value with at most one split."""
        if type(value) is not IterSumExpr:
            return IterSumExpr([], value, dtype)
        if not value.args:
            return value
        split, extra = self.fuse(value.args)
        return IterSumExpr([split], self.n.add(value.base, extra), value.dtype)

    def limit(self, e: PrimExpr, low: Number | None, high: Number | None) -> None:
        """Take a predicate low <= e < high into account."""
        n = self.n
        total = self.read(e)
        if type(total) is not IterSumExpr or not total.args:
            return
        if low is not None:
            low = n.sub(low, total.base)
        if high is not None:
            high = n.sub(high, total.base)
        args = self.combine(total.args)
        split, offset = self.fuse(args)
        if not (type(split.scale) is int and split.scale == 1):
            raise Unresolved(f"a predicate on a multiple is not understood: {e!r}")
        mark = split.source
        whole = n.equal(split.lower_factor, 1) and n.equal(split.extent, mark.extent)
        start, end = offset, n.add(offset, split.extent)
        if low is not None:
            start = n.max(low, start)
        if high is not None:
            end = n.min(high, end)
        if n.equal(start, offset) and n.equal(end, n.add(offset, split.extent)):
            return  # says nothing new
        shift = n.sub(start, offset)
        if isinstance(mark.source, IterSumExpr) and whole:
            source: Any = IterSumExpr(mark.source.args, n.sub(mark.source.base, shift), e.dtype)
        else:
            source = IterSumExpr([IterSplitExpr(mark, split.lower_factor, split.extent, 1)],
                                 n.sub(0, shift), e.dtype)
        new = IterMark(source, n.sub(end, start))
        flat = tuple(self.flatten(args))
        self.fused = [f for f in self.fused if not self.is_same(f.flat, flat)]
        self.constrained = [f for f in self.constrained if not self.is_same(f.flat, flat)]
        entry = _Fused(flat, new, start)
        self.fused.append(entry)
        self.constrained.append(entry)

    def flatten(self, args: list[IterSplitExpr]) -> list[IterSplitExpr]:
        """Splits from the largest scale down, as `fuse` orders them."""
        constant = [a for a in args if type(a.scale) is int]
        symbolic = [a for a in args if type(a.scale) is not int]
        return symbolic + sorted(constant, key=lambda a: -a.scale)

    def is_same(self, a: tuple, b: tuple) -> bool:
        """Whether two flat sums have the same splits."""
        return len(a) == len(b) and all(self.same_part(x, y) for x, y in zip(a, b))

    def check_constraints(self) -> None:
        """Two limited sums must be nested or have nothing in common."""
        for i, small in enumerate(self.constrained):
            for large in self.constrained[i + 1:]:
                inside = [any(self.same_part(a, b) for b in large.flat) for a in small.flat]
                if any(inside) and not all(inside):
                    raise Unresolved("the sums that predicates limit overlap in part")

    # ------------------------------------------------------------------- checking

    def check(self, bindings: Sequence[IterSumExpr], level: str) -> None:
        """The splits of each mark must not overlap; for `bijective` they must cover it."""
        splits = collect_splits(bindings)
        for mark, parts in splits.items():
            self.sorted_splits(mark, parts, level)
        for fused in self.constrained:
            if fused.mark not in splits:
                self.check_unused_constraint(fused, splits)
        if level == "bijective":
            for mark in self.input_marks:
                if mark not in splits and not self.n.equal(mark.extent, 1):
                    raise Unresolved(f"iterator {mark.source!r} does not occur in the indices")

    def check_unused_constraint(self, fused: _Fused, splits: Mapping[IterMark, Any]) -> None:
        """A limited sum that no index contains: using its parts is fine if they are not limited.

        Alone, the topmost part still takes all its values if the limit lies in its last iteration.
        """
        used = [s for s in fused.flat if any(m in splits for m in marks_within(s.source))]
        if not used:
            return
        top = fused.flat[0]
        if used == [top] and top.source in splits and self.n.equal(
                fused.offset, 0) and not self.n.at_least(
                self.n.mul(self.n.sub(top.extent, 1), top.scale), fused.mark.extent) and all(
                type(v) is int for v in (top.extent, top.scale, fused.mark.extent)):
            return
        raise Unresolved("a predicate limits a sum of which the indices use only parts")

    def takes_all(self, split: IterSplitExpr) -> bool:
        """Whether one split of a mark, divided unevenly, takes all its values."""
        factor, extent, whole = split.lower_factor, split.extent, split.source.extent
        return (isinstance(factor, int) and isinstance(extent, int) and isinstance(whole, int)
                and factor * (extent - 1) < whole)

    def sorted_splits(self, mark: IterMark, parts: list[IterSplitExpr],
                      level: str) -> list[IterSplitExpr]:
        """The parts of a mark from the lowest up. Raises Unresolved where they overlap."""
        n = self.n
        left = list(parts)
        out: list[IterSplitExpr] = []
        expected: Number = 1
        while left:
            found = next((s for s in left if n.equal(s.lower_factor, expected)), None)
            if found is None:
                if level == "bijective":
                    raise Unresolved(f"a part of {mark.source!r} is missing in the indices")
                found = next((s for s in left if n.divides(expected, s.lower_factor)
                              and not (type(s.lower_factor) is int and type(expected) is int
                                       and s.lower_factor < expected)), None)
                if found is None:
                    raise Unresolved(f"two indices use overlapping parts of {mark.source!r}")
                found = min((s for s in left if n.divides(expected, s.lower_factor)),
                            key=lambda s: s.lower_factor if type(s.lower_factor) is int else 0)
            left.remove(found)
            out.append(found)
            expected = n.mul(found.lower_factor, found.extent)
        ok = n.equal(expected, mark.extent) if level == "bijective" else n.divides(
            expected, mark.extent) or len(parts) == 1 and self.takes_all(parts[0])
        if not ok:
            raise Unresolved(f"the indices do not cover {mark.source!r} evenly")
        return out


# ------------------------------------------------------------------------------- by node type


def _read_add(s: IterMapRewriter, e: Add | Sub) -> Any:
    a, b = s.read(e.a), s.read(e.b)
    sign = 1 if type(e) is Add else -1
    if not isinstance(a, IterSumExpr) and not isinstance(b, IterSumExpr):
        return s.n.add(a, b) if sign == 1 else s.n.sub(a, b)
    out = s.to_sum(a, e.dtype)
    if isinstance(b, IterSumExpr):
        for split in b.args:
            s.add_split(out, split, sign)
        b = b.base
    out.base = s.n.add(out.base, b) if sign == 1 else s.n.sub(out.base, b)
    return out


def _read_mul(s: IterMapRewriter, e: Mul) -> Any:
    a, b = s.read(e.a), s.read(e.b)
    if not isinstance(a, IterSumExpr):
        a, b = b, a
    if not isinstance(a, IterSumExpr):
        return s.n.mul(b, a)
    if isinstance(b, IterSumExpr):
        if a.args and b.args:
            raise Unresolved(f"the product of two iterators is not affine: {e!r}")
        if b.args:
            a, b = b, a
        b = b.base
    if type(b) is int and b == 0:
        return 0
    return IterSumExpr([IterSplitExpr(i.source, i.lower_factor, i.extent, s.n.mul(i.scale, b))
                        for i in a.args], s.n.mul(a.base, b), a.dtype)


def _divisor(n: Numbers, b: Number, scale: Number, e: PrimExpr) -> Number:
    """How many steps of an iterator a divisor spans. Raises Unresolved where it counts downwards:
    the parts of a mark are divided from its first value on."""
    if type(b) is int and b <= 0 or type(scale) is int and scale <= 0:
        raise Unresolved(f"{e!r} divides an iterator that counts downwards")
    return n.div(b, scale)


def _read_div(s: IterMapRewriter, e: FloorDiv) -> Any:
    a, b = s.read(e.a), s.read(e.b)
    if type(b) is IterSumExpr:
        if b.args:
            raise Unresolved(f"division by an iterator is not affine: {e!r}")
        b = b.base
    if type(a) is not IterSumExpr:
        return s.n.div(a, b)
    n, total = s.n, s.normal(a, e.dtype)
    if not total.args:
        return n.div(total.base, b)
    split, base = total.args[0], total.base
    if n.equal(b, 1):
        return total
    if n.divides(b, split.scale):
        new = IterSplitExpr(split.source, split.lower_factor, split.extent, n.div(split.scale, b))
        return IterSumExpr([new], n.div(base, b), e.dtype)
    if not n.divides(split.scale, b):
        raise Unresolved(f"{e!r} divides by {b!r}, which the scale {split.scale!r} does not divide")
    divisor = _divisor(n, b, split.scale, e)  # (x * s + base) // (d * s) = (x + base // s) // d
    base = n.div(base, split.scale)
    if s.pads:
        split, base = s.padded(split, base, divisor)
    rest = n.mod(base, divisor)
    if not n.equal(rest, 0):
        if type(rest) is int and type(split.extent) is int and type(divisor) is int and (
                split.extent + rest <= divisor):
            return n.div(base, divisor)
        raise Unresolved(f"the offset in {e!r} is no multiple of the divisor")
    base = n.div(base, divisor)
    if n.divides(divisor, split.extent):
        new = IterSplitExpr(split.source, n.mul(split.lower_factor, divisor),
                            n.div(split.extent, divisor), 1)
        return IterSumExpr([new], base, e.dtype)
    if n.at_least(divisor, split.extent):
        return base
    if s.uneven and type(divisor) is int and type(split.extent) is int and s.is_top(split):
        new = IterSplitExpr(split.source, n.mul(split.lower_factor, divisor),
                            -(-split.extent // divisor), 1)
        return IterSumExpr([new], base, e.dtype)
    raise Unresolved(f"the divisor in {e!r} does not divide the extent {split.extent!r}")


def _read_mod(s: IterMapRewriter, e: FloorMod) -> Any:
    a, b = s.read(e.a), s.read(e.b)
    if type(b) is IterSumExpr:
        if b.args:
            raise Unresolved(f"a remainder by an iterator is not affine: {e!r}")
        b = b.base
    if type(a) is not IterSumExpr:
        return s.n.mod(a, b)
    n, total = s.n, s.normal(a, e.dtype)
    if not total.args:
        return n.mod(total.base, b)
    split, base = total.args[0], total.base
    if n.divides(b, split.scale):
        return n.mod(base, b)
    if not n.divides(split.scale, b):
        raise Unresolved(f"{e!r} takes a remainder by {b!r}, which the scale {split.scale!r} does "
                         "not divide")
    divisor, scale = _divisor(n, b, split.scale, e), split.scale
    small = n.mod(base, scale)  # (x * s + q * s + r) % (d * s) = ((x + q) % d) * s + r
    base = n.div(base, scale)
    if s.pads:
        split, base = s.padded(split, base, divisor)
    offset = n.mod(base, divisor)
    if n.equal(offset, 0):
        if n.divides(divisor, split.extent):
            new = IterSplitExpr(split.source, split.lower_factor, divisor, scale)
            return IterSumExpr([new], small, e.dtype)
        if n.at_least(divisor, split.extent):
            return IterSumExpr([split], small, e.dtype)
        if s.uneven and type(divisor) is int and type(split.extent) is int and s.is_top(split):
            new = IterSplitExpr(split.source, split.lower_factor, divisor, scale)
            return IterSumExpr([new], small, e.dtype)
    elif type(offset) is int and type(divisor) is int and type(split.extent) is int and (
            offset + split.extent <= divisor):
        return IterSumExpr([split], n.add(n.mul(offset, scale), small), e.dtype)
    raise Unresolved(f"the divisor in {e!r} does not divide the extent {split.extent!r}")


def _read_cast(s: IterMapRewriter, e: Cast) -> Any:
    value = s.read(e.value)
    if type(value) is IterSumExpr:
        if e.dtype not in U.INDEX_DTYPES:
            raise Unresolved(f"a cast to {e.dtype} of an iterator is not affine")
        return IterSumExpr(value.args, value.base, e.dtype)
    return value if type(value) is int else e


_READ = {Add: _read_add, Sub: _read_add, Mul: _read_mul, FloorDiv: _read_div,
         FloorMod: _read_mod, Cast: _read_cast}
