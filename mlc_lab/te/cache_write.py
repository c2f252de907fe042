"""cache_write of te: a computation into memory of its own, and a copy of that.

Where the loops of the computation were split, fused or reordered before, the memory is laid out as
they are: a dimension for each loop.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

from ..tir import op as O
from ..tir.expr import CommReducer, IntImm, IterVar, PrimExpr, Range, Reduce, Var
from ..tir.functor import substitute, uses_var
from .error import TensorExprError
from .tensor import ComputeOp
from .tensor_compute import TensorComputeOp


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


def kept(axes: Sequence[IterVar], table: dict[Var, PrimExpr]) -> list[IterVar]:
    """The axes themselves, which are reduced over elsewhere; others, which `table` gets, where
    their ranges depend on what it replaces."""
    out = []
    for iv in axes:
        moves = any(uses_var(e, set(table)) for e in (iv.dom.min, iv.dom.extent))
        out += renewed([iv], table) if moves else [iv]
    return out


def moved_combiner(combiner: CommReducer, table: dict[Var, PrimExpr]) -> CommReducer:
    """A reducer whose result or identity may name axes that `table` replaces."""
    result, identity = (tuple(substitute(e, table) for e in part)
                        for part in (combiner.result, combiner.identity_element))
    if all(a is b for a, b in zip((*result, *identity),
                                  (*combiner.result, *combiner.identity_element))):
        return combiner
    return CommReducer(combiner.lhs, combiner.rhs, result, identity)


def cached(op: ComputeOp, name: str, axis: Sequence[IterVar]) -> Cached:
    """The computation of `op` over other axes into tensors called `name`, and its copy."""
    table: dict[Var, PrimExpr] = {old.var: new.var for old, new in zip(op.axis, axis)}
    return _two(op, name, axis, table, [], [iv.var for iv in op.axis])


def relaid(op: ComputeOp, name: str, steps: Sequence[tuple], leaves: Sequence[IterVar]) -> Cached:
    """The computation of `op` into tensors with a dimension for each of `leaves`, the loops that
    `steps` made of its axes, and its copy, which puts the elements back in place."""
    if isinstance(op, TensorComputeOp):
        raise TensorExprError(f"cache_write of {op.name}, which calls {op.intrin.name}, must come "
                              "before its loops are changed")
    for method, args, _ in steps:
        if method not in ("split", "fuse", "reorder"):
            raise TensorExprError(f"cache_write of {op.name} must come before a loop of it is "
                                  f"changed by {method}: that is said of the copy")
        if any(isinstance(a, IterVar) and a.iter_type == IterVar.CommReduce for a in args):
            raise TensorExprError(f"cache_write of {op.name} must come before its reduction loops "
                                  "are changed: these are loops of the stage that it makes")
    spatial = [iv for iv in leaves if iv.iter_type != IterVar.CommReduce]
    axis = [IterVar(Range.from_min_extent(IntImm(iv.var.dtype, 0), iv.dom.extent),
                    Var(iv.var.name.replace(".", "_") + ".c", iv.var.dtype), IterVar.DataPar)
            for iv in spatial]
    values, inside = positions(steps, {iv: new.var for iv, new in zip(spatial, axis)})
    down: dict[IterVar, PrimExpr] = {iv: iv.var for iv in op.axis}
    for method, args, results in steps:
        if method == "split":
            outer, inner = results
            down[outer] = O.floordiv(down[args[0]], inner.dom.extent)
            down[inner] = O.floormod(down[args[0]], inner.dom.extent)
        elif method == "fuse" and args:
            at = down[args[0]]
            for part in args[1:]:
                at = at * part.dom.extent + down[part]
            down[results[0]] = at
        elif method == "fuse":
            down[results[0]] = IntImm(results[0].var.dtype, 0)
    table: dict[Var, PrimExpr] = {iv.var: values[iv] for iv in op.axis}
    return _two(op, name, axis, table, inside, [down[iv] for iv in spatial])


def positions(steps: Sequence[tuple], at: dict[IterVar, PrimExpr]
              ) -> tuple[dict[IterVar, PrimExpr], list[PrimExpr]]:
    """The value of every axis in terms of the leaves of `steps`, whose values `at` has, and what
    must hold to be inside of all: splits may add places."""
    values, inside = dict(at), []
    for method, args, results in reversed(steps):
        if method == "split":
            parent, (outer, inner) = args[0], results
            extent, factor = parent.dom.extent, inner.dom.extent
            values[parent] = values[outer] * factor + values[inner]
            if not _divides(extent, factor, outer.dom.extent):
                inside.append(O.less(values[parent], extent))
        elif method == "fuse" and args:
            rest = values[results[0]]
            for axis in reversed(args[1:]):
                values[axis] = O.floormod(rest, axis.dom.extent)
                rest = O.floordiv(rest, axis.dom.extent)
            values[args[0]] = rest
    return values, inside


def _divides(extent: PrimExpr, factor: PrimExpr, parts: PrimExpr) -> bool:
    size, by, count = map(O.as_int, (extent, factor, parts))
    return by is not None and count is not None and by * count == size


def _two(op: ComputeOp, name: str, axis: Sequence[IterVar], table: dict[Var, PrimExpr],
         inside: Sequence[PrimExpr], back: Sequence[PrimExpr]) -> Cached:
    """The computation over `axis`, with its variables replaced by `table` and where `inside` holds,
    and the copy, whose element is read at `back`."""
    reduce_axis = kept(op.reduce_axis, table)

    def moved(value: PrimExpr) -> PrimExpr:
        if not isinstance(value, Reduce):
            new = substitute(value, table)
            if not inside:
                return new
            return O.if_then_else(O.all(*inside), new, O.cast(O.const(0), new.dtype))
        return Reduce(moved_combiner(value.combiner, table),
                      tuple(substitute(e, table) for e in value.source), tuple(reduce_axis),
                      O.all(*inside, substitute(value.condition, table)),
                      value.value_index, tuple(substitute(e, table) for e in value.init))

    body = list(map(moved, op.body))
    made = op.over(name, axis, body) if isinstance(op, TensorComputeOp) else ComputeOp(
        name, op.tag, op.attrs, axis, body)
    copy = ComputeOp(op.name, op.tag, None, op.axis, [t(*back) for t in made.outputs])
    copy.outputs = op.outputs
    return Cached(made, copy)


__all__ = ["Cached", "cached", "kept", "moved_combiner", "positions", "relaid", "renewed"]
