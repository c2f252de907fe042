"""The brackets of `A[...]`: indices and slices, and the load or region that they make."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ..reading.python_text import written
from ..tir import expr as E
from ..tir import op as O
from ..tir.buffer import Buffer
from ..tir.stmt import BufferRegion
from . import tir as T
from .regions import extent_between
from .values import Pending, described, is_floating

if TYPE_CHECKING:
    from .evaluator import Evaluator


def buffer_indices(ev: Evaluator, node: ast.Subscript, buffer: Buffer) -> list[Any]:
    """The indices of an access: expressions and slices.

    Raises DiagnosticError for more or fewer than the buffer has dimensions, and for indices that
    are no integers.
    """
    part = node.slice
    parts = ev.items(part.elts) if isinstance(part, ast.Tuple) else [ev.eval(part)]
    if len(parts) == 1 and isinstance(parts[0], (tuple, list)):
        parts = list(parts[0])
    parts = [ev.settle(v, "v") if isinstance(v, Pending) else v for v in parts]
    parts = [v if isinstance(v, slice) else T.as_expr(ev.one_value(v)) for v in parts]
    if len(parts) != len(buffer.shape) and not any(isinstance(v, slice) for v in parts):
        name = written(node.value)
        shape = ", ".join(map(repr, buffer.shape))
        raise ev.error(
            node, f"{name} has {len(buffer.shape)} dimension(s), it is accessed with "
            f"{len(parts)} ind{'ex' if len(parts) == 1 else 'ices'}",
            f"its shape is ({shape})")
    if len(parts) > len(buffer.shape):
        raise ev.error(node, f"{written(node.value)} has only {len(buffer.shape)} "
                             "dimension(s)")
    for value in parts:
        if isinstance(value, (float, E.FloatImm, str)) or (
                isinstance(value, E.PrimExpr) and is_floating(value)):
            raise ev.error(node, f"an index must be an integer, not {described(value)}",
                           "convert it with T.cast(x, \"int32\")")
    return parts


def load(ev: Evaluator, node: ast.AST, buffer: Buffer, parts: list[Any]) -> Any:
    """A load, or a region where there are slices without step."""
    slices = [v for v in parts if isinstance(v, slice)]
    if not slices:
        return E.BufferLoad(buffer, parts)
    if any(s.step is not None for s in slices):
        return E.BufferLoad(buffer, vector_indices(ev, node, buffer, parts))
    ranges = []
    for axis, value in enumerate(parts):
        if isinstance(value, slice):
            low, high = _bounds(value, buffer.shape[axis])
            ranges.append(E.Range.from_min_extent(low, extent_between(low, high)))
        else:
            value = E.const_index(value)
            ranges.append(E.Range.from_min_extent(value, E.IntImm(value.dtype, 1)))
    for dim in buffer.shape[len(parts):]:
        ranges.append(E.Range.from_min_extent(E.IntImm(dim.dtype, 0), dim))
    return BufferRegion(buffer, tuple(ranges))


def vector_indices(ev: Evaluator, node: ast.AST, buffer: Buffer, parts: list[Any]) -> list[Any]:
    """Indices with slices as ramps. Raises DiagnosticError where a length is no constant."""
    out = []
    for axis, value in enumerate(parts):
        if isinstance(value, slice):
            low = E.const_index(0 if value.start is None else T.as_expr(value.start))
            step = O.convert(1 if value.step is None else value.step, low)
            length = O.as_int(extent_between(*_bounds(value, buffer.shape[axis])))
            stride = O.as_int(step)
            if length is None or stride is None:
                raise ev.error(node, "the length of a vector access must be a constant")
            lanes = -(-length // stride)
            if lanes > 1 and axis < len(parts) - 1:
                raise ev.error(node, "only the last index may be a range: elements that lie side "
                                     "by side are one vector", "loop over the other dimensions")
            out.append(low if lanes == 1 else E.Ramp(low, step, lanes))
        else:
            out.append(E.const_index(value))
    return out


def _bounds(part: slice, extent: Any) -> tuple[Any, Any]:
    """First and last (excluded) index of a slice, in one dtype; a literal takes the other's."""
    low = E.const_index(0 if part.start is None else T.as_expr(part.start))
    high = E.const_index(extent if part.stop is None else T.as_expr(part.stop))
    if low.dtype == high.dtype:
        return low, high
    if type(low) is E.IntImm and not isinstance(part.start, E.PrimExpr):
        return O.cast(low, high.dtype), high
    if type(high) is E.IntImm:
        return low, O.cast(high, low.dtype)
    return O.match_types(low, high)


__all__ = ["buffer_indices", "load", "vector_indices"]
