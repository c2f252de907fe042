"""cache_write of te: a computation into memory of its own, and a copy of that."""

from __future__ import annotations

from typing import NamedTuple, Sequence

from ..tir.expr import IterVar, PrimExpr, Range, Reduce, Var
from ..tir.functor import substitute
from .tensor import ComputeOp


class Cached(NamedTuple):
    """The two computations; the outputs of `copy` are the tensors of the one before."""

    made: ComputeOp
    copy: ComputeOp


def renewed(axes: Sequence[IterVar], table: dict[Var, PrimExpr]) -> list[IterVar]:
    """New axes in place of others, which `table` replaces from then on: in ranges too."""
    out = []
    for iv in axes:
        dom = Range.from_min_extent(substitute(iv.dom.min, table), substitute(iv.dom.extent, table))
        out.append(IterVar(dom, Var(iv.var.name, iv.var.dtype), iv.iter_type))
        table[iv.var] = out[-1].var
    return out


def cached(op: ComputeOp, name: str, axis: Sequence[IterVar]) -> Cached:
    """The computation of `op` over other axes into tensors called `name`, and its copy."""
    table: dict[Var, PrimExpr] = {old.var: new.var for old, new in zip(op.axis, axis)}
    reduce_axis = renewed(op.reduce_axis, table)

    def moved(value: PrimExpr) -> PrimExpr:
        if not isinstance(value, Reduce):
            return substitute(value, table)
        return Reduce(value.combiner, tuple(substitute(e, table) for e in value.source),
                      tuple(reduce_axis), substitute(value.condition, table), value.value_index,
                      tuple(substitute(e, table) for e in value.init))

    made = ComputeOp(name, op.tag, op.attrs, axis, list(map(moved, op.body)))
    copy = ComputeOp(op.name, op.tag, None, op.axis,
                     [t(*[iv.var for iv in op.axis]) for t in made.outputs])
    copy.outputs = op.outputs
    return Cached(made, copy)


__all__ = ["Cached", "cached", "renewed"]
