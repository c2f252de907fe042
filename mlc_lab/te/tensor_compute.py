"""A computation written with an intrinsic: `te.compute(shape, lambda i: vadd(A[i, 0:16], ...))`.

What it computes is what the intrinsic says that it computes, over the parts of tensors that it is
given. So it is a `te.compute` like any other, over the axes of `fcompute` and those of the
intrinsic; a schedule puts the loops of the latter innermost and replaces them by the intrinsic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..tir import op as O
from ..tir.expr import IntImm, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var
from ..tir.functor import Mutator
from .error import TensorExprError
from .tensor import ComputeOp, Part, Tensor, TensorSlice

if TYPE_CHECKING:
    from .tensor_intrin import DeclaredIntrin


class IntrinCall:
    """What calling a declared intrinsic gives: the parts it reads, and outer reduction axes."""

    def __init__(self, intrin: DeclaredIntrin, parts: Sequence[Any],
                 reduce_axis: IterVar | Sequence[IterVar] | None) -> None:
        inputs = intrin.op.input_tensors
        self.intrin = intrin
        self.parts = [_part(p) for p in parts]
        axes = reduce_axis if isinstance(reduce_axis, (list, tuple)) else [reduce_axis]
        self.reduce_axis = [a for a in axes if isinstance(a, IterVar)]
        if len(self.parts) != len(inputs):
            raise TensorExprError(f"{intrin.name} reads {len(inputs)} tensors and was given "
                                  f"{len(self.parts)}")
        if self.reduce_axis and not intrin.op.reduce_axis:
            raise TensorExprError(f"{intrin.name} sums up nothing: reduce_axis= is for intrinsics "
                                  "that add to a sum")


def _part(value: Any) -> Part:
    if isinstance(value, Part):
        return value
    if isinstance(value, Tensor):
        return Part(value, ())
    if isinstance(value, TensorSlice):
        return Part(value.tensor, value.indices)
    if isinstance(value, ProducerLoad):
        return Part(value.producer, value.indices)
    raise TensorExprError("an intrinsic in a te.compute takes parts of tensors, such as "
                          f"A[i, 0:16], and was given a {type(value).__name__}")


class TensorComputeOp(ComputeOp):
    """A computation whose inner axes are looped over by calls of `intrin`, not by loops."""

    def __init__(self, name: str, tag: str, attrs: Mapping[str, Any] | None,
                 axis: Sequence[IterVar], body: Sequence[PrimExpr], intrin: DeclaredIntrin,
                 outer: int, outer_reduce: int) -> None:
        super().__init__(name, tag, attrs, axis, body)
        self.intrin, self.schedulable_ndim, self._reduced = intrin, outer, outer_reduce
        self.outer_axes = (*self.axis[:outer], *self.reduce_axis[:outer_reduce])
        self.inner_axes = (*self.axis[outer:], *self.reduce_axis[outer_reduce:])
        if not self.inner_axes:
            raise TensorExprError(f"{name}: a call of {intrin.name} computes a single element; "
                                  "write that element as an expression")

    def over(self, name: str, axis: Sequence[IterVar], body: Sequence[PrimExpr]
             ) -> TensorComputeOp:
        """The same over other axes, as many."""
        return TensorComputeOp(name, self.tag, self.attrs, axis, body, self.intrin,
                               self.schedulable_ndim, self._reduced)


def tensor_compute(name: str, tag: str, attrs: Mapping[str, Any] | None, shape: Sequence[PrimExpr],
                   outer: Sequence[IterVar], call: IntrinCall) -> TensorComputeOp:
    """The computation of `shape` whose parts at `outer` are calls of an intrinsic."""
    op = call.intrin.op
    sizes = _sizes(op, call.parts)
    rest = shape[len(outer):]
    own = op.axis[len(op.axis) - len(rest):]
    if len(rest) > len(op.axis) or any(not _is_one(iv, sizes) for iv in op.axis[:-len(own) or None]
                                       if iv not in own):
        raise TensorExprError(f"{name}: a call of {call.intrin.name} computes {len(op.axis)} "
                              f"dimensions, and {len(rest)} of {len(shape)} are left for it")
    inner = [IterVar(Range.from_min_extent(IntImm(d.dtype, 0), d), Var(iv.var.name, d.dtype),
                     IterVar.DataPar) for d, iv in zip(rest, own)]
    table: dict[Var, PrimExpr] = dict(sizes)
    table.update((iv.var, IntImm(iv.var.dtype, 0)) for iv in op.axis if iv not in own)
    table.update((iv.var, new.var) for iv, new in zip(own, inner))
    reduced = []
    for iv in op.reduce_axis:
        dom = Range.from_min_extent(_Reads({}, table).visit(iv.dom.min),
                                    _Reads({}, table).visit(iv.dom.extent))
        reduced.append(IterVar(dom, Var(iv.var.name, iv.var.dtype), IterVar.CommReduce))
        table[iv.var] = reduced[-1].var
    moved = _Reads(dict(zip(op.input_tensors, call.parts)), table).visit
    body: list[PrimExpr] = []
    for value in op.body:
        if isinstance(value, Reduce):
            value = Reduce(value.combiner, tuple(map(moved, value.source)),
                           (*call.reduce_axis, *reduced), moved(value.condition),
                           value.value_index, tuple(map(moved, value.init)))
        else:
            value = moved(value)
        body.append(value)
    return TensorComputeOp(name, tag, attrs, [*outer, *inner], body, call.intrin, len(outer),
                           len(call.reduce_axis))


def _is_one(iv: IterVar, sizes: Mapping[Var, PrimExpr]) -> bool:
    extent = iv.dom.extent
    return O.is_const_int(sizes.get(extent, extent) if isinstance(extent, Var) else extent, 1)


def _sizes(op: ComputeOp, parts: Sequence[Part]) -> dict[Var, PrimExpr]:
    """What the symbolic sizes of an intrinsic's tensors are, from the parts it is given."""
    sizes: dict[Var, PrimExpr] = {}
    for tensor, part in zip(op.input_tensors, parts):
        if tensor.ndim > part.tensor.ndim:
            raise TensorExprError(f"{tensor.name} has {tensor.ndim} dimensions, and the part of "
                                  f"{part.tensor.name} {part.tensor.ndim}")
        for want, have in zip(tensor.shape, part.region[part.tensor.ndim - tensor.ndim:]):
            if isinstance(want, Var):
                sizes.setdefault(want, have.extent)
            elif O.is_const_int(want) and O.is_const_int(have.extent) and (
                    O.as_int(want) != O.as_int(have.extent)):
                raise TensorExprError(f"{tensor.name} has {want} elements in a dimension, and the "
                                      f"part of {part.tensor.name} has {have.extent}")
    return sizes


class _Reads(Mutator):
    """Expressions over an intrinsic's tensors and axes as ones over parts of others."""

    def __init__(self, parts: Mapping[Tensor, Part], table: Mapping[Var, PrimExpr]) -> None:
        super().__init__()
        self.parts, self.table = parts, table

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.table.get(node, node)

    def visit_ProducerLoad(self, node: ProducerLoad) -> PrimExpr:
        part = self.parts[node.producer]
        indices = [self.visit(i) for i in node.indices]
        starts = [r.min for r in part.region]
        own = len(starts) - len(indices)
        return ProducerLoad(part.tensor, (*starts[:own], *(
            O.add(s, i) for s, i in zip(starts[own:], indices))))


__all__ = ["IntrinCall", "TensorComputeOp", "tensor_compute"]
