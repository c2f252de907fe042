"""rfactor of te: a reduction becomes slices that are independent, and a reduction over those.

Both are new computations (as in TVM's te): where a split does not divide, the places outside count
as the reducer's identity, so that any sizes and any commutative reducer will do.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ..tir import op as O
from ..tir.expr import IntImm, IterVar, PrimExpr, Range, Reduce, Var
from ..tir.functor import substitute, uses_var
from .cache_write import kept, moved_combiner, positions, renewed
from .tensor import ComputeOp


class Factored(NamedTuple):
    """The two computations; the outputs of `final` are the tensors of the reduction before."""

    slices: ComputeOp
    final: ComputeOp


def factored(op: ComputeOp, steps: Sequence[tuple], leaves: Sequence[IterVar], axis: IterVar,
             factor_axis: int) -> Factored:
    """The computations for a reduction in slices, one for each value of `axis`.

    `steps` are the splits and fusions of reduction axes, in order, and `leaves` the loops they
    left, of which `axis` is one. The slices lie at dimension `factor_axis` of the new tensors.
    """
    reduce = op.reduction
    if reduce.init:
        raise ValueError(f"rfactor of {op.name}: its init= would count once "
                         "for each slice; add it in a stage of its own")
    slot = _place(op, factor_axis)
    table: dict[Var, PrimExpr] = {}
    spatial = renewed(op.axis, table)
    if uses_var(axis.dom.extent, {iv.var for iv in op.axis}):
        raise ValueError(f"rfactor of {op.name}: how many slices {axis.var.name} makes depends on "
                         "the element; split it by a factor, and take the inner loop")
    slice_axis = IterVar(_from_zero(axis), Var(axis.var.name, axis.var.dtype), IterVar.DataPar)
    inner = {iv: slice_axis if iv is axis else kept([iv], table)[0] for iv in leaves}
    at: dict[IterVar, PrimExpr] = {iv: new.var for iv, new in inner.items()}
    at[axis] = slice_axis.var + axis.dom.min
    values, inside = _positions(op, steps, at)
    table |= {iv.var: substitute(values[iv], table) for iv in op.reduce_axis}
    inside = [substitute(c, table) for c in (*inside, reduce.condition)]
    condition = O.all(*[c for c in inside if not O.is_const_int(c, 1)] or [IntImm("bool", 1)])
    source = [substitute(e, table) for e in reduce.source]
    # whole axes before parts of others
    left = [inner[iv] for iv in sorted(leaves, key=lambda iv: iv not in op.reduce_axis)
            if iv is not axis]
    axes = list(spatial)
    axes.insert(slot, slice_axis)
    slices = ComputeOp(f"{op.name}_rf", op.tag, None, axes, _partial(
        reduce.replace(combiner=moved_combiner(reduce.combiner, table)), source, left, condition))
    return Factored(slices, _final(op, slices, axis, slot))


def _place(op: ComputeOp, factor_axis: int) -> int:
    rank = len(op.axis)
    if not -rank - 1 <= factor_axis <= rank:
        raise ValueError(f"rfactor of {op.name}: factor_axis={factor_axis}, and the slices can be "
                         f"placed at {-rank - 1} .. {rank}")
    return factor_axis % (rank + 1)


def _from_zero(iv: IterVar) -> Range:
    return Range.from_min_extent(IntImm(iv.var.dtype, 0), iv.dom.extent)


def _positions(op: ComputeOp, steps: Sequence[tuple], at: dict[IterVar, PrimExpr]
               ) -> tuple[dict[IterVar, PrimExpr], list[PrimExpr]]:
    """`positions`, where the axes of the operation may start elsewhere than at zero."""
    values, inside = positions(steps, at)
    for iv in op.reduce_axis:
        if not O.is_const_int(iv.dom.min, 0) and iv not in at:
            values[iv] = values[iv] + iv.dom.min
    return values, inside


def _partial(reduce: Reduce, source: Sequence[PrimExpr], axes: Sequence[IterVar],
             condition: PrimExpr) -> list[PrimExpr]:
    """The elements of the slices; plain values where each slice has a single element."""
    if axes:
        return [Reduce(reduce.combiner, tuple(source), tuple(axes), condition, i, ())
                for i in range(len(source))]
    if O.is_const_int(condition, 1):
        return list(source)
    identity = reduce.combiner.identity_element
    return [O.if_then_else(condition, s, O.cast(e, s.dtype)) for s, e in zip(source, identity)]


def _final(op: ComputeOp, slices: ComputeOp, axis: IterVar, slot: int) -> ComputeOp:
    """The reduction over the slices, which takes the place of `op`."""
    reduce = op.reduction
    over = IterVar(_from_zero(axis), Var(axis.var.name + ".v", axis.var.dtype),
                   IterVar.CommReduce)
    indices: list[Any] = [iv.var for iv in op.axis]
    indices.insert(slot, over.var)
    source = tuple(t(*indices) for t in slices.outputs)
    body = [Reduce(reduce.combiner, source, (over,), IntImm("bool", 1), i, ())
            for i in range(len(source))]
    final = ComputeOp(op.name, op.tag, op.attrs, op.axis, body)
    final.outputs = op.outputs
    return final


__all__ = ["Factored", "factored"]
