"""Which iterations of a block run, in which order, and whether others could."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from ..arith import Analyzer, IterSumExpr, detect_iter_map
from ..arith.expr_util import conjuncts
from ..arith.linear_form import Reader, follows
from ..ir.structural import structural_equal
from ..tir import op
from ..tir.expr import LT, Add, BufferLoad, IntImm, IterVar, Mul, PrimExpr, Range, Var
from ..tir.functor import pre_order, substitute, uses_var
from ..tir.stmt import TRUE, Block, BlockRealize, For
from .footprint import Access, Loop, footprint, loops_of, reads_memory
from .witness import Unknown, evaluate

#: iterations, and elements, that are tried before nothing is known
POINTS, ELEMENTS = 4096, 1 << 15


def runs_everywhere(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether the loops around a block take its iterators through all values of their domains,
    every combination of them."""
    bound: set[Var] = set()
    chain = {lp.loop_var: lp for lp in loops}
    for iv, value in zip(realize.block.iter_vars, realize.iter_values):
        if type(value) is not Var:
            break
        loop = chain.get(value)
        if loop is None or value in bound or not (
                _equal(loop.min, iv.dom.min) and _equal(loop.extent, iv.dom.extent)):
            break
        bound.add(value)
    else:
        return op.is_const_int(realize.predicate, 1) and all(
            _independent(lp, chain) for lp in loops) and run_at_all(
            [lp for lp in loops if lp.loop_var not in bound])
    if op.is_const_int(realize.predicate, 1):
        digits = mixed_radix(realize.iter_values, loops)
        if digits is not None and all(
                op.is_const_int(iv.dom.min, low) and op.is_const_int(iv.dom.extent, extent)
                for iv, (low, extent) in zip(realize.block.iter_vars, digits)):
            return True
    return run_at_all(loops) and comes_to_run(
        realize.iter_values, realize.predicate, loops) and _runs_everywhere(realize, loops)


def comes_to_run(values: Sequence[PrimExpr], predicate: PrimExpr, loops: Sequence[For],
                 around: Sequence[Loop] = (), known: Sequence[PrimExpr] = ()) -> bool:
    """Whether the parts of a predicate that say nothing of `values` surely let some iteration of
    `loops` run: wherever one is in the loops `around` them, and what is `known` holds there.

    Such a part asks something of what is around, or of loops that only repeat. The other parts are
    those that narrow the values: what is left of these is found by those who read iteration maps,
    who take it that something is left.
    """
    if op.is_const_int(predicate, 1):
        return True
    driving = {lp.loop_var for lp in loops if any(uses_var(v, lp.loop_var) for v in values)}
    rest = [c for c in conjuncts(predicate) if not uses_var(c, driving)]
    if any(map(reads_memory, rest)):
        return False  # which may have changed

    def at(c: PrimExpr, last: bool) -> PrimExpr:
        for lp in reversed(loops):  # the bounds of one may depend on those around it
            if uses_var(c, lp.loop_var):
                end = op.sub(op.add(lp.min, lp.extent), 1) if last else lp.min
                c = substitute(c, {lp.loop_var: end})
        return c

    return any(all(follows(at(c, last), around, known) for c in rest) for last in (False, True))


def stays_in_domains(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether the loops around a block, with its predicate, give its iterators no values outside of
    their domains."""
    analyzer: Analyzer | None = None
    for iv, value in zip(realize.block.iter_vars, realize.iter_values):
        low, extent = iv.dom.min, iv.dom.extent
        loop = next((lp for lp in loops if lp.loop_var is value), None)
        if loop is not None and _equal(loop.min, low) and _equal(loop.extent, extent):
            continue
        first, size = op.as_int(low), op.as_int(extent)
        if first is not None and size is not None:
            if analyzer is None:
                analyzer = Analyzer()
                for lp in loops:
                    analyzer.bind(lp.loop_var, Range.from_min_extent(lp.min, lp.extent))
            least, most = analyzer.const_int_bound_tuple(value)
            if first <= least and (most < first + size or any(
                    type(c) is LT and _equal(c.b, iv.dom.extent) and first == 0 and (
                        structural_equal(c.a, value) is True)
                    for c in conjuncts(realize.predicate))):
                continue
        inside = op.logical_and(op.less_equal(low, value), op.less(value, op.add(low, extent)))
        if not follows(inside, loops_of(loops), conjuncts(realize.predicate)):
            return False
    return True


def mixed_radix(values: Sequence[PrimExpr], loops: Sequence[For]) -> list[tuple[int, int]] | None:
    """The first value and the number of values of each of some expressions whose digits the loops
    are, as those of i_0 * 8 + i_1: they take each combination of these values, and once where all
    loops are digits. None where it is not seen at a glance that they do.
    """
    chain: dict[Any, tuple[int, int]] = {}
    for lp in loops:
        if type(lp.min) is not IntImm or type(lp.extent) is not IntImm or lp.extent.value < 1:
            return None
        chain[lp.loop_var] = (lp.min.value, lp.extent.value)
    out: list[tuple[int, int]] = []
    for value in values:
        terms: list[tuple[int, Any]] = []
        if not _terms(value, 1, terms):
            return None
        low, extent = 0, 1
        for factor, var in sorted(terms, key=_factor):
            if var is None:
                low += factor
                continue
            found = chain.pop(var, None)  # a loop is a digit of one value
            if found is None or factor != extent and found[1] != 1:
                return None
            low, extent = low + factor * found[0], extent * found[1]
        out.append((low, extent))
    return out


def whole_mixed_radix(values: Sequence[PrimExpr], loops: Sequence[For]
                      ) -> list[tuple[int, int]] | None:
    """`mixed_radix`, where each loop is a digit of some expression: then each combination of the
    values comes once. None where it is not seen at a glance that this is so."""
    digits = mixed_radix(values, loops)
    once = digits is not None and prod(n for _, n in digits) == prod(
        op.as_int(lp.extent) or 0 for lp in loops)
    return digits if once else None


def told_apart(values: Sequence[PrimExpr], loops: Sequence[Loop]) -> set[Var]:
    """Those of some loops' variables of which two different values are never the same `values`,
    as far as that is seen at a glance: they are digits of one of these, whatever their base."""
    extents = {var: op.as_int(extent) for var, _, extent in loops}
    out: set[Var] = set()
    for value in values:
        terms: list[tuple[int, Any]] = []
        if not _terms(value, 1, terms):
            continue
        digits: list[Var] = []
        reach: int | None = 0  # the largest difference that the digits below make
        for factor, var in sorted(terms, key=_factor):
            if var is None or extents.get(var) == 1:
                continue
            if var not in extents or reach is None or factor <= reach or var in digits:
                break
            extent = extents[var]
            reach = None if extent is None else reach + factor * (extent - 1)
            digits.append(var)
        else:
            out.update(digits)
    return out


def _factor(term: tuple[int, Any]) -> int:
    return term[0]


def _terms(value: PrimExpr, factor: int, out: list[tuple[int, Any]]) -> bool:
    """Append the terms (factor, variable or None) of a sum; False if it is not a sum of such."""
    if type(value) is Var:
        out.append((factor, value))
        return True
    if type(value) is IntImm:
        out.append((factor * value.value, None))
        return True
    if type(value) is Add:
        return _terms(value.a, factor, out) and _terms(value.b, factor, out)
    return type(value) is Mul and type(value.b) is IntImm and _terms(
        value.a, factor * value.b.value, out)


def run_at_all(loops: Sequence[For], around: Sequence[Loop] = (), depth: int = 0) -> bool:
    """Whether the loops from `depth` on run at least once, each time. A size that the function is
    called with counts as at least one."""
    known = [*around, *loops_of(loops)]
    names = {var for var, _, _ in known}
    for number, lp in enumerate(loops[depth:], depth):
        if type(lp.extent) is IntImm:
            if lp.extent.value < 1:
                return False
        elif any(type(n) is BufferLoad or n in names for n in pre_order(lp.extent)) and not follows(
                op.greater_equal(lp.extent, 1), known[:len(around) + number]):
            return False
    return True


def _runs_everywhere(realize: BlockRealize, loops: Sequence[For]) -> bool:
    analyzer = Analyzer()
    domains = {lp.loop_var: Range.from_min_extent(lp.min, lp.extent) for lp in loops}
    if not domains:
        return op.is_const_int(realize.predicate, 1) and all(
            op.is_const_int(iv.dom.extent, 1) for iv in realize.block.iter_vars)
    found = detect_iter_map(realize.iter_values, domains, realize.predicate, "surjective", analyzer)
    if not found.indices:
        return False
    for total, iv in zip(found.indices, realize.block.iter_vars):
        extent: Any = 1
        if total.args:
            split = total.args[0]
            if split.scale != 1:
                return False
            extent = split.extent
        low = total.base if not isinstance(total.base, int) else IntImm(iv.dom.min.dtype,
                                                                        total.base)
        size = IntImm(iv.dom.extent.dtype, extent) if isinstance(extent, int) else extent
        if not (analyzer.can_prove_equal(low, iv.dom.min)
                and analyzer.can_prove_equal(size, iv.dom.extent)):
            return False
    return True


def reaches(values: Sequence[PrimExpr], loops: Sequence[For], predicate: PrimExpr,
            wanted: Sequence[PrimExpr], around: Sequence[Loop], known: Sequence[PrimExpr]) -> bool:
    """Whether there surely is an iteration of `loops`, in which the predicate holds, where `values`
    are what is `wanted`: whatever that is in the loops `around` it, where what is `known` holds.

    Each value is a sum whose digits are loops, as i_0 * 8 + i_1, of which only the first may have
    an extent that is not constant. So the wanted value says where the loops must be, and what is
    left to see is that they come there.
    """
    own = {lp.loop_var: lp for lp in loops}
    table: dict[Var, PrimExpr] = {}
    conditions = conjuncts(predicate)
    for value, want in zip(values, wanted):
        terms: list[tuple[int, Any]] = []
        if not _terms(value, 1, terms):
            return False
        for factor, var in terms:
            if var not in own:
                want = op.sub(want, factor if var is None else op.mul(var, factor))
        digits = sorted((t for t in terms if t[1] in own), key=_factor)
        if not digits:
            conditions.append(op.equal(want, 0))
        step = 1
        for factor, var in digits:
            lp = own[var]
            if factor != step or var in table:
                return False
            at = op.floordiv(want, factor)
            if var is not digits[-1][1]:
                extent = op.as_int(lp.extent)
                if extent is None or not op.is_const_int(lp.min, 0):
                    return False
                at, step = op.floormod(at, extent), factor * extent
            table[var] = at
    rest = own.keys() - table.keys()  # any of their iterations will do
    for lp in loops:
        if lp.loop_var in rest:
            conditions.append(op.greater_equal(lp.extent, 1))
        else:
            conditions += [op.greater_equal(lp.loop_var, lp.min),
                           op.less(lp.loop_var, op.add(lp.min, lp.extent))]
    if any(uses_var(c, rest) or reads_memory(c) for c in conditions) or any(
            map(reads_memory, known)):
        return False
    return all(follows(substitute(c, table), around, known) for c in conditions)


def tiles_cover(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether tiles that may overlap or stick out, cut by the predicate, are just the domain: each
    iterator is a sum of factor * loop over constant loops of its own.

    In the order of the factors, a loop leaves no gap if its factor is at most one more than what
    the loops before it reach.
    """
    chain = {lp.loop_var: lp for lp in loops}
    used: set[Var] = set()
    around = loops_of(loops)
    for iv, value in zip(realize.block.iter_vars, realize.iter_values):
        form = Reader(lambda buffer: False).form(value, {})
        low, extent = op.as_int(iv.dom.min), op.as_int(iv.dom.extent)
        if low is None or extent is None or not used.isdisjoint(form):
            return False
        used.update(v for v in form if v is not None)
        first, reach = form.pop(None, 0), 0
        for var, factor in sorted(form.items(), key=lambda item: abs(item[1])):
            start, turns = _constant(chain.get(var))
            if turns is None or turns < 1 or factor < 1 or factor > reach + 1:
                return False
            first, reach = first + factor * start, reach + factor * (turns - 1)
        if first > low or first + reach < low + extent - 1:
            return False
        inside = op.logical_and(op.greater_equal(value, low), op.less(value, low + extent))
        if not follows(inside, around, conjuncts(realize.predicate)):
            return False
    others = [lp for lp in loops if lp.loop_var not in used]
    if any((_constant(lp)[1] or 0) < 1 for lp in others):
        return False
    domain = [c for iv, value in zip(realize.block.iter_vars, realize.iter_values) for c in (
        op.greater_equal(value, iv.dom.min), op.less(value, iv.dom.min + iv.dom.extent))]
    # the predicate cuts nothing of the domain
    return all(follows(c, around, domain) for c in conjuncts(realize.predicate))


def _constant(loop: For | None) -> tuple[int, int | None]:
    """First value and extent of a loop that are numbers; the extent is None if they are not."""
    if loop is None or type(loop.min) is not IntImm:
        return 0, None
    return loop.min.value, op.as_int(loop.extent)


def _equal(a: PrimExpr, b: PrimExpr) -> bool:
    if a is b:
        return True
    return type(a) is IntImm and type(b) is IntImm and a.value == b.value


def _independent(loop: For, chain: dict[Var, For]) -> bool:
    """Whether a loop runs the same times in every iteration of the others."""
    return all(type(e) is IntImm or not uses_var(e, chain) for e in (loop.min, loop.extent))


def reduces_in_order(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether the iterations of a reduction come in the order of its iterators' values, the first
    iterator outermost: as loops over the iterators themselves would run them."""
    domains = {lp.loop_var: Range.from_min_extent(lp.min, lp.extent) for lp in loops}
    depth = {lp.loop_var: n for n, lp in enumerate(loops)}
    reduced = [(iv, v) for iv, v in zip(realize.block.iter_vars, realize.iter_values)
               if iv.iter_type == IterVar.CommReduce]
    values = [v for _, v in reduced if type(v) is not IntImm]
    if not values or not domains:
        return True
    names = [v for v in values if type(v) is Var]
    if len(names) == len(values):
        places = [depth.get(v, -1) for v in names]
        return places == sorted(places)
    found = detect_iter_map(values, domains, TRUE, "nocheck", Analyzer())
    if not found.indices:
        return False
    digits: list[tuple[Var, int]] = []
    for total in found.indices:
        for split in _leaves(total):
            if split is None:
                return False
            digits.append(split)
    order = [(depth[v], -low) for v, low in digits]
    return order == sorted(order)


def _leaves(total: IterSumExpr) -> list[tuple[Var, int] | None]:
    """(loop, lower factor) of the parts of a sum, the most significant first; None for a part that
    is not known."""
    out: list[tuple[Var, int] | None] = []
    for split in sorted(total.args, key=lambda s: -s.scale if type(s.scale) is int else 0):
        if type(split.scale) is not int or split.scale <= 0 or type(split.lower_factor) is not int:
            return [None]
        source = split.source.source
        if isinstance(source, Var):
            out.append((source, split.lower_factor))
        elif split.lower_factor == 1 and hasattr(source, "args"):
            out += _leaves(source)
        else:
            return [None]
    return out


def why_not_whole(realize: BlockRealize, loops: Sequence[For]) -> str:
    """Why a reduction may leave something else than the combination of all its values: values
    that are left out or taken twice, an init that does not come first. "" if it does not."""
    block = realize.block
    if not runs_everywhere(realize, loops):
        return "the loops around it may not take its iterators through all their values"
    reduced = [(iv, v) for iv, v in zip(block.iter_vars, realize.iter_values)
               if iv.iter_type == IterVar.CommReduce]
    spatial = [v for iv, v in zip(block.iter_vars, realize.iter_values)
               if iv.iter_type != IterVar.CommReduce]
    driving = [lp for lp in loops if any(uses_var(v, lp.loop_var) for _, v in reduced)]
    if not driving:
        return ""
    inside = loops[list(loops).index(driving[0]) + 1:]
    for lp in inside:
        if not op.is_const_int(lp.extent, 1) and not any(
                uses_var(v, lp.loop_var) for v in realize.iter_values):
            return f"each iteration of {lp.loop_var.name} repeats it"
    if reduces_in_order(realize, loops):
        return ""
    mixed = [lp for lp in driving if any(uses_var(v, lp.loop_var) for v in spatial)]
    if mixed:
        return f"loop {mixed[0].loop_var.name} drives both kinds of its iterators, and not in order"
    table = {lp.loop_var: lp.min for lp in driving}
    analyzer = Analyzer()
    first = [op.equal(substitute(v, table), iv.dom.min) for iv, v in reduced]
    if not all(analyzer.can_prove(c) for c in (*first, *(
            substitute(c, table) for c in conjuncts(realize.predicate) if uses_var(c, table)))):
        return "its init does not come first"
    return ""


def iterations(values_of: Sequence[PrimExpr], predicate: PrimExpr, loops: Sequence[For]
               ) -> set[tuple[int, ...]] | None:
    """The values that some expressions take together as loops run, where the predicate holds; None
    if they are too many or not constant."""
    out: set[tuple[int, ...]] = set()
    try:
        for count, values in enumerate(_values(loops_of(loops))):
            if count > POINTS:
                return None
            if evaluate(predicate, values):
                out.add(tuple(evaluate(v, values) for v in values_of))
    except Unknown:
        return None
    return out


def elements(accesses: Sequence[Access], around: Sequence[For]) -> set[tuple[
        tuple[int, ...], tuple[int, ...]]] | None:
    """(values of the loops around, element) of all that is surely touched; None if that depends on
    data, is not constant or too much."""
    out: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    tried = 0
    try:
        for access in accesses:
            loops = [*loops_of(around), *access.loops]
            for values in _values(loops):
                tried += 1
                if tried > POINTS:
                    return None
                if not all(evaluate(c, values) for c in access.conditions):
                    continue
                if access.spans is None or None in access.spans:
                    return None
                box = [(evaluate(s[0], values), evaluate(s[1], values)) for s in access.spans if s]
                where = tuple(values[lp.loop_var] for lp in around)
                for element in itertools.product(*(range(low, low + n) for low, n in box)):
                    out.add((where, element))
                    if len(out) > ELEMENTS:
                        return None
    except Unknown:
        return None
    return out


def _values(loops: Sequence[Loop], values: dict[Any, int] | None = None
            ) -> Iterator[dict[Any, int]]:
    """All values of nested loops. Raises Unknown where a bound is not constant."""
    values = {} if values is None else values
    if len(values) == len(loops):
        yield values
        return
    var, low, extent = loops[len(values)]
    start = evaluate(low, values)
    for value in range(start, start + evaluate(extent, values)):
        values[var] = value
        yield from _values(loops, values)
    values.pop(var, None)


def in_bounds(block: Block, accesses: Sequence[Access] | None = None) -> bool:
    """Whether a block touches nothing outside of its buffers for any values of its iterators."""
    for access in footprint(block) if accesses is None else accesses:
        if access.buffer is None or access.spans is None:
            continue
        if not _access_in_bounds(block, access):
            return False
    return True


def _access_in_bounds(block: Block, access: Access) -> bool:
    analyzer = None
    for span, dim in zip(access.spans or (), access.buffer.shape if access.buffer else ()):
        if span is None:
            continue
        low, extent = span
        if type(low) is IntImm and type(extent) is IntImm and type(dim) is IntImm:
            if 0 <= low.value and low.value + extent.value <= dim.value:
                continue
            return False
        analyzer = analyzer or knowing(block, access)
        if not (analyzer.can_prove(op.greater_equal(low, 0))
                and analyzer.can_prove(op.less_equal(op.add(low, extent), dim))):
            return False
    return True


def knowing(block: Block, access: Access) -> Analyzer:
    """An analyzer that knows the loops around an access and the conditions it is under."""
    analyzer = Analyzer()
    for iv in block.iter_vars:
        analyzer.bind(iv.var, iv.dom)
    for var, low, extent in access.loops:
        analyzer.bind(var, Range.from_min_extent(low, extent))
    for condition in access.conditions:
        if not any(type(n) is BufferLoad for n in pre_order(condition)):
            analyzer.enter_constraint(condition)
    return analyzer


__all__ = ["comes_to_run", "elements", "in_bounds", "iterations", "knowing", "mixed_radix",
           "reaches", "reduces_in_order", "run_at_all", "runs_everywhere", "stays_in_domains",
           "tiles_cover", "told_apart", "whole_mixed_radix", "why_not_whole"]
