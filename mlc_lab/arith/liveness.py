"""Whether an iteration writes what it reads, and so where memory for it can be made.

A buffer that is written, in each iteration of a loop, before it is read there carries nothing from
one iteration to the next: it may be allocated inside of the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..ir.structural import structural_equal
from ..tir import op
from ..tir.buffer import Buffer
from ..tir.expr import LE, LT, PrimExpr, Range, Var
from ..tir.functor import pre_order, substitute, uses_var
from ..tir.op import as_int
from ..tir.stmt import TRUE, BlockRealize, For, ForKind, Stmt
from .access import Access, bind_loops, conjuncts, depends_on_data, is_about
from .analyzer import Analyzer
from .linear_form import Reader, follows
from .omega import plus
from .region import estimate_region_strict_bound

if TYPE_CHECKING:
    from .int_set import IntSet


def innermost_place(buffer: Buffer, accesses: Sequence[Access], lanes: Stmt | None = None
                    ) -> Stmt | None:
    """The innermost loop or block realization in which `buffer` can be allocated; None if it has to
    stay where it is. `accesses` are all of the buffer; `lanes` is a loop that counts as vectorized,
    whatever it says."""
    common = accesses[0].path
    for access in accesses[1:]:
        depth = 0
        for a, b in zip(common, access.path):
            if a is not b:
                break
            depth += 1
        common = common[:depth]
    limit = len(common)
    is_shared = buffer.scope not in ("global", "local")  # by threads, and by lanes then
    for at, item in enumerate(common):
        if type(item) is not For:
            continue
        tag = item.thread_binding.thread_tag if item.thread_binding is not None else ""
        on_gpu = tag.startswith(("threadIdx", "blockIdx")) and buffer.scope == "global"
        if (item.kind is ForKind.VECTORIZED or item is lanes) and (
                is_shared or not _lanes_overlap(accesses, at)) or on_gpu:
            limit = min(limit, at)
    analyzer = Analyzer()
    bind_loops(analyzer, common[:limit])
    for depth in range(limit, 0, -1):
        item = common[depth - 1]
        if type(item) is BlockRealize and item.block.iter_vars and depth == len(common):
            continue  # inside of the only block that uses it nothing would be gained
        if written_first(accesses, depth, analyzer):
            return item
    return None


def _lanes_overlap(accesses: Sequence[Access], at: int) -> bool:
    """Whether different iterations of the loop `path[at]` may touch one element."""
    writes = [a for a in accesses if a.write]
    return any(_overlap(a, b, at) for a in writes for b in accesses)


def _overlap(a: Access, b: Access, at: int) -> bool:
    reader = Reader()
    points = []
    for side, access in enumerate((a, b)):
        point = {}
        for depth, item in enumerate(access.path):
            if type(item) is not For:
                continue
            key = item.loop_var if depth < at else (item.loop_var, side)
            point[item.loop_var] = {key: 1}
            first = plus(point[item.loop_var], reader.form(item.min, point), -1)
            reader.not_negative(first)
            reader.not_negative(plus(plus(reader.form(item.extent, point), first, -1), {None: -1}))
        for _, predicate in access.predicates:
            reader.require(predicate, point)
        points.append(point)
    loop: Any = a.path[at]
    lane = loop.loop_var
    reader.not_negative(plus(plus(points[1][lane], points[0][lane], -1), {None: -1}))
    for (low, size), (other, extent) in zip(a.region, b.region):
        x, y = reader.form(low, points[0]), reader.form(other, points[1])
        reader.not_negative(plus(plus(plus(x, reader.form(size, points[0])), y, -1), {None: -1}))
        reader.not_negative(plus(plus(plus(y, reader.form(extent, points[1])), x, -1), {None: -1}))
    return not reader.impossible()


def written_first(accesses: Sequence[Access], depth: int, analyzer: Analyzer) -> bool:
    """Whether inside of `path[depth - 1]` every read of a buffer follows a write that covers it;
    `accesses` are all of the buffer."""
    known: dict[tuple[int, int], Any] = {}
    for access in accesses:
        if not access.write and not any(
                _fills(write, access, depth, analyzer, known) for write in accesses
                if write.write and write.order < access.order):
            return False
    return True


def _fills(write: Access, read: Access, depth: int, analyzer: Analyzer, known: dict) -> bool:
    """Whether a write fills what a read needs, in the same iteration of all loops around both; the
    init of a reduction fills what the reduction itself reads in all of its iterations."""
    inits = [realize for realize, _ in write.inits]
    if read.inits or not any(item is realize for item in read.path for realize in inits):
        for a, b in zip(write.path[depth:], read.path[depth:]):
            if a is not b:
                break
            depth += 1
    key = (write.order, depth)
    if key not in known:
        known[key] = _written(write, depth, analyzer)
    found = known[key]
    if found is None:
        return False
    box, conditions = found
    return all(_covers(w, r, dim, analyzer) for w, r, dim in zip(
        box, read.bounds(depth, analyzer), read.buffer.shape)) and (
            not conditions or _happens_under(read, conditions))


def _happens_under(read: Access, conditions: Sequence[PrimExpr]) -> bool:
    """Whether conditions hold wherever a read happens. What depends on data counts on neither side:
    the data may have changed since it was asked."""
    if read.lets or any(map(depends_on_data, conditions)):
        return False
    loops = [(item.loop_var, item.min, item.extent) for item in read.path if type(item) is For
             and not depends_on_data(item.min) and not depends_on_data(item.extent)]
    given = [c for _, predicate in read.predicates for c in conjuncts(predicate)
             if not depends_on_data(c)]
    return all(any(structural_equal(c, g) for g in given) or follows(c, loops, given)
               for c in conditions)


def _written(write: Access, depth: int, analyzer: Analyzer
             ) -> tuple[list[IntSet], list[PrimExpr]] | None:
    """The box that a write surely fills in an iteration of `path[depth - 1]`, as far as it lies
    inside of the buffer, and the conditions on the loops around under which it does so; None if it
    may leave gaps.

    The init of a reduction counts if all loops of the reduction are inside of it.
    """
    if write.guarded or write.lets:
        return None
    outer = {item.loop_var for item in write.path[:depth] if type(item) is For}
    if outer and any(uses_var(value, outer) for _, reduced in write.inits for value in reduced):
        return None
    parts = [c for at, predicate in write.predicates if at >= depth
             for c in conjuncts(predicate)]
    cuts = [c for c in parts if not _only_bounds(c, write, depth, analyzer)]
    domains = write.domains(depth)
    around = [c for c in cuts if not uses_var(c, domains)]
    inside = [c for c in cuts if uses_var(c, domains)]
    if any(not is_about(c, domains) for c in inside):
        return None
    region = [Range.from_min_extent(low, size) for low, size in write.region]
    box = estimate_region_strict_bound(
        region, domains, op.all(*inside) if inside else TRUE, analyzer)
    return None if box is None else (box, around)


def _only_bounds(e: PrimExpr, write: Access, depth: int, analyzer: Analyzer) -> bool:
    """Whether a predicate skips no element of the buffer, as the bounds of splits do.

    Either it says that the index written lies inside of the buffer (`i * 16 + j < 100` for an
    element i * 16 + j of 100), or it cuts iterations of a reduction, of which the first is left.
    """
    if not isinstance(e, (LT, LE)):
        return False
    limit = e.b if type(e) is LT else e.b + 1
    for (index, size), dim in zip(write.region, write.buffer.shape):
        if as_int(size) == 1 and analyzer.can_prove_equal(e.a, index):
            return analyzer.can_prove(dim <= limit)
    inner = {item.loop_var: item.min for item in write.path[depth:] if type(item) is For}
    used = [item for item in pre_order(e) if isinstance(item, Var)]
    if not all(v in inner for v in used) or any(
            uses_var(index, v) for index, _ in write.region for v in used):
        return False
    return analyzer.can_prove(substitute(e, inner))


def _covers(write: IntSet, read: IntSet, dim: PrimExpr, analyzer: Analyzer) -> bool:
    """Whether one interval holds another, as far as both lie inside of the buffer."""
    if not write.has_lower_bound() or not write.has_upper_bound():
        return False
    if not read.has_lower_bound() or not read.has_upper_bound():
        low_ok = analyzer.can_prove(write.min_value <= 0)
        return low_ok and analyzer.can_prove(write.max_value >= dim - 1)
    low = write.min_value is read.min_value or analyzer.can_prove(
        write.min_value <= read.min_value) or analyzer.can_prove(write.min_value <= 0)
    if not low:
        return False
    return write.max_value is read.max_value or analyzer.can_prove(
        write.max_value >= read.max_value) or analyzer.can_prove(write.max_value >= dim - 1)


__all__ = ["innermost_place", "written_first"]
