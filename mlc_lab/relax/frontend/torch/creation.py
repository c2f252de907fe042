"""Rules of sizes as values, and of operators that make tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.dtype import is_float
from ....tir import op as O
from ....tir.expr import PrimExpr
from ... import op
from .importer import Importer, dtype_name, is_tensor, rule
from .shapes import _getitem, _sizes, _t

# ------------------------------------------------------------------------------- sizes


@rule("size", "sym_size")
def _size(im: Importer, x: Any, dim: Any = None) -> Any:
    return im.shape(x) if dim is None else im.shape(x)[dim]


@rule("shape")
def _shape(im: Importer, x: Any) -> Any:
    return im.shape(x)


@rule("dim", "ndim")
def _dim(im: Importer, x: Any) -> int:
    return im.ndim(x)


@rule("numel", "sym_numel")
def _numel(im: Importer, x: Any) -> Any:
    total: Any = 1
    for d in im.shape(x):
        total = total * d
    return total


@rule("sym_int", "int_", "sym_float")
def _number(im: Importer, x: Any) -> Any:
    return x


@rule("sym_max")
def _sym_max(im: Importer, a: Any, b: Any) -> Any:
    return max(a, b) if not isinstance(a, PrimExpr) and not isinstance(
        b, PrimExpr) else O.max_value_of(a, b)


@rule("sym_min")
def _sym_min(im: Importer, a: Any, b: Any) -> Any:
    return min(a, b) if not isinstance(a, PrimExpr) and not isinstance(
        b, PrimExpr) else O.min_value_of(a, b)


@rule("getattr")
def _getattr(im: Importer, x: Any, name: str) -> Any:
    if isinstance(x, tuple) or not is_tensor(x):  # what max, sort and topk give
        return _getitem(im, x, {"values": 0, "indices": 1}[name])
    if name == "shape":
        return im.shape(x)
    if name == "ndim":
        return im.ndim(x)
    if name == "dtype":
        return im.dtype(x)
    if name == "device":
        return "cpu"
    if name in ("T", "mT", "H", "mH"):
        return _t(im, x)
    raise ValueError(f"the attribute {name} of a tensor is not translated")


# ------------------------------------------------------------------------------- made tensors


@rule("arange")
def _arange(im: Importer, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
    numbers = list(args)
    for name in ("start", "end", "step"):
        if name in kwargs:
            numbers.append(kwargs[name])
    start, end, step = {1: lambda: (0, numbers[0], 1), 2: lambda: (*numbers, 1),
                        3: lambda: tuple(numbers)}[len(numbers)]()
    kind = "float32" if any(isinstance(v, float) for v in (start, end, step)) else "int64"
    return im.emit(op.arange(start, end, step, dtype_name(dtype, kind)))


@rule("linspace")
def _linspace(im: Importer, start: Any, end: Any, steps: Any, *, dtype: Any = None, **kwargs: Any
              ) -> Any:
    if is_tensor(start) or is_tensor(end):
        raise ValueError("linspace between bounds that are tensors is not translated")
    kind = dtype_name(dtype)
    if all(isinstance(v, (int, float)) for v in (start, end, steps)):
        return im.const(np.linspace(start, end, steps).astype(kind), kind)
    if not is_float(kind):
        raise ValueError("linspace of integers needs a number of steps that is known")
    whole, last = im.operand(end - start, kind), im.operand(O.max_value_of(steps - 1, 1), kind)
    at = im.emit(op.arange(0, steps, 1, kind))
    at = im.emit(op.divide(im.emit(op.multiply(at, whole)), last))
    return im.emit(op.add(at, im.operand(start, kind)))


def _filled(im: Importer, sizes: Any, value: Any, dtype: Any) -> Any:
    kind = dtype_name(dtype, "float32" if isinstance(value, float) else im.dtype(value))
    return im.emit(op.full(list(sizes), im.const(value, kind), kind))


@rule("full")
def _full(im: Importer, size: Any, fill_value: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    return _filled(im, size, fill_value, dtype)


@rule("full_like")
def _full_like(im: Importer, x: Any, fill_value: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    return _filled(im, im.shape(x), fill_value, dtype_name(dtype, im.dtype(x)))


@rule("zeros", "empty")
def _zeros(im: Importer, *size: Any, dtype: Any = None, **kwargs: Any) -> Any:
    return _filled(im, _sizes(kwargs.get("size", size[0] if size else []), size[1:]), 0.0,
                   dtype_name(dtype))


@rule("ones")
def _ones(im: Importer, *size: Any, dtype: Any = None, **kwargs: Any) -> Any:
    return _filled(im, _sizes(kwargs.get("size", size[0] if size else []), size[1:]), 1.0,
                   dtype_name(dtype))


@rule("zeros_like", "empty_like")
def _zeros_like(im: Importer, x: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    return _filled(im, im.shape(x), 0, dtype_name(dtype, im.dtype(x)))


@rule("ones_like")
def _ones_like(im: Importer, x: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    return _filled(im, im.shape(x), 1, dtype_name(dtype, im.dtype(x)))


@rule("new_zeros", "new_empty")
def _new_zeros(im: Importer, x: Any, *size: Any, dtype: Any = None, **kwargs: Any) -> Any:
    return _filled(im, _sizes(size[0], size[1:]), 0, dtype_name(dtype, im.dtype(x)))


@rule("new_ones")
def _new_ones(im: Importer, x: Any, *size: Any, dtype: Any = None, **kwargs: Any) -> Any:
    return _filled(im, _sizes(size[0], size[1:]), 1, dtype_name(dtype, im.dtype(x)))


@rule("new_full")
def _new_full(im: Importer, x: Any, size: Any, fill_value: Any, *, dtype: Any = None,
              **kwargs: Any) -> Any:
    return _filled(im, size, fill_value, dtype_name(dtype, im.dtype(x)))


@rule("fill")
def _fill(im: Importer, x: Any, value: Any) -> Any:
    if is_tensor(value):
        return im.emit(op.full_like(x, im.cast(value, im.dtype(x))))
    return _filled(im, im.shape(x), value, im.dtype(x))


@rule("scalar_tensor", "tensor")
def _scalar_tensor(im: Importer, value: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    if isinstance(value, PrimExpr):
        return _size_tensor(im, value, dtype)
    return im.const(value, dtype_name(dtype, im.dtype(value)))


def _size_tensor(im: Importer, value: PrimExpr, dtype: Any) -> Any:
    """A symbolic size as a tensor of no dimensions."""
    one = im.emit(op.arange(value, value + 1, 1, dtype_name(dtype, "int64")))
    return im.emit(op.reshape(one, []))


@rule("eye")
def _eye(im: Importer, n: int, m: Any = None, *, dtype: Any = None, **kwargs: Any) -> Any:
    return im.emit(op.eye(n, m, 0, dtype_name(dtype)))
