"""split: one loop becomes several nested ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ...arith import Analyzer
from ...arith.scalable import can_prove_for_each_vscale
from ...ir import dtype as dt
from ...tir import op
from ...tir.expr import IntImm, PrimExpr, Var
from ...tir.functor import substitute
from ...tir.stmt import Block, For, ForKind
from ..error import Refusal
from ..guards import is_loop, loop_from_zero, loop_is_not_left, loop_is_plain
from ..instruction import primitive
from ..provenance import came_from
from ..rewrite import guarded, pair_blocks, simplify_bindings
from ..state import ScheduleState, StmtSRef

if TYPE_CHECKING:
    from ..instruction import LoopRV


@primitive("Split")
def split(state: ScheduleState, loop: StmtSRef, factors: Sequence[int | PrimExpr | None],
          preserve_unit_iters: bool = True, disable_predication: bool = False) -> list[LoopRV]:
    """Split a loop into nested loops of the given extents, outermost first.

    At most one factor may be None: it takes what is left, rounded up. Where the factors' product
    is more than the extent, the blocks inside get a predicate that skips the surplus; with
    `disable_predication` they do not, and the caller answers for the surplus iterations.
    `preserve_unit_iters` keeps loops of extent 1 in the bindings.

    Before::

        for i in range(128):
            with T.block("B"):
                vi = T.axis.spatial(128, i)
                B[vi] = A[vi] * T.float32(2.0)

    After `sch.split(i, factors=[None, 32])`::

        for i_0, i_1 in T.grid(4, 32):
            with T.block("B"):
                vi = T.axis.spatial(128, i_0 * 32 + i_1)
                B[vi] = A[vi] * T.float32(2.0)

    Errors: the loop must start at zero and carry no annotation or thread binding; factors are
    positive and cover the extent.
    """
    is_loop(loop)
    loop_is_plain(loop)
    loop_from_zero(loop)
    loop_is_not_left(loop, "would leave the innermost of the new loops only")
    stmt: For = loop.stmt
    analyzer = Analyzer()
    state.loop_domains_into(loop, analyzer)
    extents = _infer_factors(stmt, factors, analyzer)
    dtype = stmt.loop_var.dtype
    new_vars = [came_from(Var(f"{stmt.loop_var.name}_{k}", dtype), stmt)
                for k in range(len(extents))]
    position: PrimExpr = IntImm(dtype, 0)
    for var, extent in zip(new_vars, extents):
        term: PrimExpr = var
        if not preserve_unit_iters and op.is_const_int(extent, 1):
            term = IntImm(dtype, 0)
        position = op.add(op.mul(position, extent), term)
    for var, extent in zip(new_vars, extents):
        analyzer.bind(var, _range(extent))
    body = substitute(stmt.body, {stmt.loop_var: position})
    predicate = op.less(position, stmt.extent)
    if not disable_predication and not analyzer.can_prove(predicate):
        body = guarded(body, predicate)
    new: Any = body
    for var, extent in zip(reversed(new_vars), reversed(extents)):
        new = For(var, 0 if dtype == "int32" else IntImm(dtype, 0), extent, ForKind.SERIAL, new)
    new = simplify_bindings(new, state.loops_above(loop), preserve_unit_iters)
    reuse: dict[Block, Block] = {}
    pair_blocks(stmt.body, _below(new, len(extents)), reuse)
    state.replace(loop, new, reuse)
    out: list[LoopRV] = []
    node: Any = new
    for _ in extents:
        out.append(state.refs[node])
        node = node.body
    return out


def _below(stmt: Any, depth: int) -> Any:
    for _ in range(depth):
        stmt = stmt.body
    return stmt


def _range(extent: PrimExpr) -> Any:
    from ...tir.expr import Range

    return Range.from_min_extent(IntImm(extent.dtype, 0), extent)


def _infer_factors(stmt: For, factors: Sequence[Any], analyzer: Analyzer) -> list[PrimExpr]:
    """The extents of the new loops, the None factor filled in."""
    if not factors:
        raise Refusal("split_needs_factors", "factors= is empty: give the extents of the new "
                      "loops, for example [None, 4]", nodes=[stmt])
    if sum(f is None for f in factors) > 1:
        raise Refusal("one_factor_is_inferred", "at most one factor can be None: the rest must say "
                      "how large they are", nodes=[stmt])
    extent, dtype = stmt.extent, stmt.loop_var.dtype
    known: list[PrimExpr | None] = []
    for factor in factors:
        if factor is None:
            known.append(None)
            continue
        value = op.convert(factor)
        if op.as_int(value) is None:
            value = analyzer.simplify(value)
        if not (dt.is_integer(value.dtype)):
            raise Refusal("factors_are_integers", f"factor {factor!r} is not an integer")
        number = op.as_int(value)
        if number is not None and number <= 0:
            raise Refusal("factors_are_positive", f"factor {factor} is not positive: a loop of "
                          "that extent would never run", nodes=[stmt])
        known.append(value)
    _positions_fit(stmt, known)
    known = [None if f is None else op.cast(f, dtype) for f in known]
    product: PrimExpr = IntImm(dtype, 1)
    for factor in known:
        if factor is not None:
            product = op.mul(product, factor)
    if None in known:
        rest = analyzer.simplify(op.floordiv(op.add(extent, op.sub(product, 1)), product))
        return [rest if f is None else f for f in known]
    total = analyzer.simplify(product)
    if not can_prove_for_each_vscale(analyzer, op.greater_equal(total, extent)):
        raise Refusal(
            "factors_cover_extent", f"the factors multiply to {total!r}, less than the extent "
            f"{extent!r} of loop {stmt.loop_var.name}: some iterations would be lost",
            nodes=[stmt], hint="make one of the factors None, it takes what is left")
    return [f for f in known if f is not None]


def _positions_fit(stmt: For, factors: Sequence[PrimExpr | None]) -> None:
    """The last position, in the surplus of the last part too, must fit into the loop's type."""
    product = 1
    for factor in factors:
        product *= op.as_int(factor) or 1 if factor is not None else 1
    extent = op.as_int(stmt.extent) or 1
    top = product if None not in factors else max(-(-extent // product) * product,
                                                  extent + product - 1)
    if top > dt.int_range(stmt.loop_var.dtype)[1]:
        raise Refusal("positions_fit_their_type", f"loop {stmt.loop_var.name} would be split into "
                      f"{top} positions, more than {stmt.loop_var.dtype} can count", nodes=[stmt],
                      hint="use smaller factors, or an int64 loop")
