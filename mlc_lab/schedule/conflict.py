"""Do two executions touch the same element, one of them writing, and how far are they apart?

Reordering, moving and running at the same time are all legal as long as no two executions that
touch one element, one of them writing it, change their order. This file states that question once:

    clash(a, b, shared, bad)   an example of two iterations that touch one element and stand to each
                               other in a `bad` way; None where there is certainly none
    first_clash(some, others, shared, bad)   the same for any two of many accesses

`a` and `b` are accesses (see `footprint.py`), `shared` the loops around both, in which they may be
in different iterations. Loops that are not shared and not the accesses' own stand still.

Four steps, the cheap first. Other memory, or no write: no clash. Intervals of distances
(`distance.py`), and whether a bad distance is in them. Linear equations and inequalities in
integers (`arith/omega.py`), which know of bounds that depend on other loops, of conditions and of
symbolic sizes. At last, if all sizes are constant, all iterations are tried. What is left counts as
a clash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..arith.linear_form import Point, Reader
from ..arith.omega import plus
from ..tir import op
from ..tir.buffer import may_overlap
from ..tir.expr import PrimExpr, Var
from ..tir.stmt import Block
from .distance import ZERO, Distance, Distances, distance
from .footprint import Access, Loop
from .witness import Unknown, first_meeting, meet


class Clash(NamedTuple):
    """Two accesses that meet; `first` and `second` are values of all loops around each, and
    `element` where they meet, or None where that is not known."""

    a: Access
    b: Access
    first: Mapping[Any, int] | None = None
    second: Mapping[Any, int] | None = None
    element: tuple[int, ...] | None = None

    @property
    def name(self) -> str:
        """The name of the buffer, or of its pointer."""
        return getattr(self.a.buffer, "name", self.a.memory.name)

    @property
    def blocks(self) -> list[Block]:
        """The blocks that the two are in."""
        return list(dict.fromkeys(x.block for x in (self.a, self.b) if x.block is not None))

    @property
    def what(self) -> str:
        """What the two do, without an example: "C writes it, D reads it"."""
        return ", ".join(dict.fromkeys(f"{_who(x)} {_verb(x)} it" for x in (self.a, self.b)))

    def text(self, first: str = "", second: str = "") -> str:
        """The clash as a sentence, with the names of the two blocks; "" without an example."""
        if self.first is None or self.second is None or self.element is None:
            return ""
        where = f"{self.name}[{', '.join(map(str, self.element))}]"
        return (f"{_said(self.first)}{first or _who(self.a)} {_verb(self.a)} {where}; "
                f"{_said(self.second)}{second or _who(self.b)} {_verb(self.b)} it")


def _who(access: Access) -> str:
    return access.block.name_hint if access.block is not None else "a statement"


def _verb(access: Access) -> str:
    return "writes" if access.write else "reads"


def _said(values: Mapping[Any, int]) -> str:
    text = ", ".join(f"{var.name} = {value}" for var, value in values.items())
    return text + ": " if text else ""


# ------------------------------------------------------------------------------- bad ways to stand


class Relation(NamedTuple):
    """How two executions stand to each other: the expressions that are equal at both, those that
    are less at the first, and those that are greater there."""

    equal: tuple[PrimExpr, ...] = ()
    less: tuple[PrimExpr, ...] = ()
    greater: tuple[PrimExpr, ...] = ()


class Bad(NamedTuple):
    """What must not be: one of some relations. They come in groups, each with a relation that
    all of the group imply. `test` says of a box of distances whether it may hold a bad one.
    `symmetric`: with two executions, the two the other way round are bad too."""

    test: Callable[[Distance], bool]
    groups: Sequence[tuple[Relation, Sequence[Relation]]]
    symmetric: bool = False

    def __call__(self, box: Distance) -> bool:
        return self.test(box)


def _always(box: Distance) -> bool:
    return True


#: any two iterations, the same too
always = Bad(_always, ((Relation(), (Relation(),)),), True)


def apart(*variables: Var) -> Bad:
    """Bad: different iterations of one of these loops."""
    def test(box: Distance) -> bool:
        return any(box.get(v, ZERO) != ZERO for v in variables)

    return Bad(test, _alone(Relation((), *sides) for v in variables
                            for sides in (((v,),), ((), (v,)))), True)


def _alone(relations: Iterable[Relation]) -> list[tuple[Relation, Sequence[Relation]]]:
    return [(relation, (relation,)) for relation in relations]


def later(order: Sequence[Any], same_too: bool) -> Bad:
    """Bad: b in a later iteration than a, of loops nested as `order`; with `same_too` also b in the
    same iteration."""

    def test(box: Distance) -> bool:
        for var in order:
            low, high = box.get(var, ZERO)
            if high > 0:
                return True
            if low > 0 or high < 0:
                return False
        return same_too

    relations = [Relation(tuple(order[:i]), (var,)) for i, var in enumerate(order)]
    if same_too:
        relations.append(Relation(tuple(order)))
    return Bad(test, _alone(relations))


def reversed_by(old: Sequence[Any], new: Sequence[Any]) -> Bad:
    """Bad: what comes first when loops are nested as `old` comes second when nested as `new`.

    Both say when something runs, lexicographically: by loops, or by any expressions over them.
    """
    groups: list[tuple[Relation, Sequence[Relation]]] = []
    for a, first in enumerate(old):
        group: list[tuple[tuple[Any, ...], Any]] = []
        for b, second in enumerate(new):
            equal = (*old[:a], *new[:b])
            if first is not second and not any(e is first or e is second for e in equal):
                group.append((equal, second))
        if group:
            still = tuple(old[:a])
            groups += [
                (Relation(still, (first,)), [Relation(e, (first,), (s,)) for e, s in group]),
                (Relation(still, (), (first,)), [Relation(e, (s,), (first,)) for e, s in group])]
    plain = all(isinstance(e, Var) or not isinstance(e, PrimExpr) for e in (*old, *new))
    return Bad(_turned(old, new) if plain else always.test, groups, True)


def _turned(old: Sequence[Any], new: Sequence[Any]) -> Callable[[Distance], bool]:
    def test(box: Distance) -> bool:
        for sign in (1, -1):
            for i, var in enumerate(old):  # the first loop that differs, outermost in `old`
                low, high = box.get(var, ZERO)
                if (high if sign > 0 else -low) > 0:
                    still = set(old[:i])
                    for other in new:  # the first loop that differs in `new`
                        if other is var:
                            break
                        if other in still:
                            continue
                        low2, high2 = box.get(other, ZERO)
                        if (-low2 if sign > 0 else high2) > 0:
                            return True
                        if not low2 <= 0 <= high2:
                            break  # it always differs, and the right way round
                if not low <= 0 <= high:
                    break
        return False

    return test


# ------------------------------------------------------------------------------- equations


def never(a: Access, b: Access, shared: Sequence[Loop], outer: Sequence[Loop],
          relation: Relation, steady: Callable[[Any], bool]) -> bool:
    """Whether it is certain that two executions in a relation do not touch the same element."""
    reader = Reader(steady, _positive(a, b, (*outer, *shared)))
    same = {v for v, _, _ in outer} | {e for e in relation.equal if isinstance(e, Var)}
    points: list[Point] = []
    for side, access in enumerate((a, b)):
        loops = (*outer, *shared, *access.loops)
        point = {v: {v if v in same else (v, side): 1} for v, _, _ in loops}
        _inside(reader, loops, access.conditions, point)
        points.append(point)
    p, q = points
    for e in relation.equal:
        if e not in same:
            reader.zero(plus(reader.form(e, p), reader.form(e, q), -1))
    for e in relation.less:
        reader.not_negative(_less(reader, e, p, q))
    for e in relation.greater:
        reader.not_negative(_less(reader, e, q, p))
    _same_element(reader, a, p, b, q)
    return reader.impossible()


def _positive(a: Access, b: Access, loops: Iterable[Loop]) -> frozenset[Var]:
    """Sizes that are at least 1, since a loop runs and an access hits an element."""
    sizes = [extent for _, _, extent in (*loops, *a.loops, *b.loops)]
    for buffer in (a.buffer, b.buffer):
        sizes += buffer.shape if buffer is not None else ()
    return frozenset(e for e in sizes if isinstance(e, Var))


def _less(reader: Reader, e: PrimExpr, p: Point, q: Point) -> dict[Any, Any]:
    return plus(plus(reader.form(e, q), reader.form(e, p), -1), {None: -1})


def _inside(reader: Reader, loops: Iterable[Loop], conditions: Iterable[PrimExpr], point: Point
            ) -> None:
    """The loops run within their bounds, the conditions hold."""
    for var, low, extent in loops:
        at = plus(point[var], reader.form(low, point), -1)
        reader.not_negative(at)
        reader.not_negative(plus(plus(reader.form(extent, point), at, -1), {None: -1}))
    for condition in conditions:
        reader.require(condition, point)


def _same_element(reader: Reader, a: Access, p: Point, b: Access, q: Point) -> None:
    if a.spans is None or b.spans is None or a.buffer is not b.buffer or a.buffer is None:
        return
    if a.buffer.strides and may_overlap(a.buffer):  # different indices may be one place
        sides = [reader.form(a.buffer.offset_of([s[0] for s in spans if s])[0], point)
                 for spans, point in ((a.spans, p), (b.spans, q)) if all(map(_is_point, spans))]
        if len(sides) == 2:
            reader.zero(plus(sides[0], sides[1], -1))
        return
    for span, other in zip(a.spans, b.spans):
        if span is None or other is None:
            continue
        x, y = reader.form(span[0], p), reader.form(other[0], q)
        if _is_point(span) and _is_point(other):
            reader.zero(plus(x, y, -1))
        else:  # two intervals that meet
            last, final = reader.form(span[1], p), reader.form(other[1], q)
            reader.not_negative(plus(plus(plus(x, last), y, -1), {None: -1}))
            reader.not_negative(plus(plus(plus(y, final), x, -1), {None: -1}))


def _is_point(span: Any) -> bool:
    return span is not None and op.is_const_int(span[1], 1)


# ------------------------------------------------------------------------------- the answer


def clash(a: Access, b: Access, shared: Sequence[Loop] = (), bad: Bad = always,
          outer: Sequence[Loop] = (), steady: Callable[[Any], bool] = lambda buffer: False
          ) -> Clash | None:
    """Two iterations in which `a` and `b` touch one element, one of them writing, and that stand in
    a bad relation; None if there are certainly none.

    `shared`: the loops around both, outermost first, in which they may be in different iterations;
    `outer`: loops around those, in which they are in the same. `steady` says which buffers nothing
    writes between the two. A Clash without example says that nothing is proved.
    """
    if a.memory is not b.memory or not (a.write or b.write):
        return None
    box = distance(a, b, shared, outer)
    if box is None or not bad(box):
        return None
    return _example(a, b, shared, bad, outer, steady)


def _example(a: Access, b: Access, shared: Sequence[Loop], bad: Bad, outer: Sequence[Loop],
             steady: Callable[[Any], bool]) -> Clash | None:
    """The answer of `clash` where distances do not rule it out."""
    around, still = (*outer, *shared), tuple(v for v, _, _ in outer)
    for _, relations in bad.groups:
        for relation in relations:
            found = first_meeting(
                a, b, around, relation._replace(equal=(*still, *relation.equal)))
            if found is not None:
                return Clash(a, b, *found)
    unknown = False
    for relation in _possible(a, b, shared, bad, outer, steady):
        try:
            found = meet(a, b, around, relation._replace(equal=(*still, *relation.equal)))
        except Unknown:
            unknown = True
            continue
        if found is not None:
            return Clash(a, b, *found)
    return Clash(a, b) if unknown else None


def _possible(a: Access, b: Access, shared: Sequence[Loop], bad: Bad, outer: Sequence[Loop],
              steady: Callable[[Any], bool]) -> Iterator[Relation]:
    """The bad relations in which the two may touch one element, as far as equations say."""
    for guard, relations in bad.groups:
        if never(a, b, shared, outer, guard, steady):
            continue
        for relation in relations:
            if relation is guard or not never(a, b, shared, outer, relation, steady):
                yield relation


def first_clash(some: Iterable[Access], others: Iterable[Access], shared: Sequence[Loop] = (),
                bad: Bad = always, outer: Sequence[Loop] = (),
                but: Callable[[Access, Access], bool] | None = None,
                steady: Callable[[Any], bool] = lambda buffer: False) -> Clash | None:
    """The first clash of one access with one of others; `but` says which pairs do not count."""
    distances = Distances(shared, outer)
    for a, b in _pairs(some, others, some is others and bad.symmetric):
        if but is not None and but(a, b):
            continue
        box = distances.anywhere(a, b)
        if box is None or not bad(box):
            continue
        box = distances(a, b)
        if box is not None and bad(box):
            found = _example(a, b, shared, bad, outer, steady)
            if found is not None:
                return found
    return None


def _pairs(some: Iterable[Access], others: Iterable[Access], once: bool
           ) -> Iterator[tuple[Access, Access]]:
    """Two accesses of the same memory, one of them a write; `once`: not the other way round too."""
    touching: dict[Var, list[tuple[int, Access]]] = {}
    writing: dict[Var, list[tuple[int, Access]]] = {}
    for position, b in enumerate(others):
        touching.setdefault(b.memory, []).append((position, b))
        if b.write:  # a read is only compared with these: there may be thousands of reads
            writing.setdefault(b.memory, []).append((position, b))
    for own, a in enumerate(some):
        for position, b in (touching if a.write else writing).get(a.memory, ()):
            if not once or position >= own:
                yield a, b


__all__ = ["Bad", "Clash", "Relation", "always", "apart", "clash", "first_clash", "later", "never",
           "reversed_by"]
