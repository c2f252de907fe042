"""Rules of sizes as values, and of operators that make tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ....ir.dtype import is_float
from ....tir import op as O
from ....tir.expr import PrimExpr
from ... import op
from ...expr import Constant
from .arithmetic import whole
from .importer import Importer, dtype_name, is_tensor, rule
from .indexing import _getitem
from .views import ORDERS, given_sizes, reshaped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from ...expr import Expr
    from .importer import Operand, Size, Sizes

# ------------------------------------------------------------------------------- sizes


@rule("size", "sym_size")
def _size(im: Importer, x: Any, dim: Any = None) -> Any:
    return im.shape(x) if dim is None else im.shape(x)[dim]


@rule("shape")
def _shape(im: Importer, x: Expr) -> Any:
    return im.shape(x)


@rule("dim", "ndim", "ndimension")
def _dim(im: Importer, x: Expr) -> int:
    return im.ndim(x)


@rule("len")
def _len(im: Importer, x: Sequence[Any]) -> Any:
    return im.shape(x)[0] if is_tensor(x) else len(x)


@rule("numel", "sym_numel", "nelement")
def _numel(im: Importer, x: Expr) -> Any:
    total: Any = 1
    for d in im.shape(x):
        total = total * d
    return total


@rule("is_floating_point")
def _is_floating_point(im: Importer, x: Expr) -> bool:
    return is_float(im.dtype(x))


@rule("sym_int", "int_")
def _sym_int(im: Importer, x: Size) -> Any:
    return whole(x)


@rule("sym_float")
def _sym_float(im: Importer, x: Size) -> Any:
    return O.cast(x, "float64") if isinstance(x, PrimExpr) else float(x)


@rule("_sym_sqrt", "sym_sqrt")
def _sym_sqrt(im: Importer, x: Size) -> Any:
    return O.sqrt(O.cast(x, "float64")) if isinstance(x, PrimExpr) else math.sqrt(x)


@rule("sym_max")
def _sym_max(im: Importer, a: Operand, b: Operand) -> Any:
    return max(a, b) if not isinstance(a, PrimExpr) and not isinstance(
        b, PrimExpr) else O.max_value_of(a, b)


@rule("sym_min")
def _sym_min(im: Importer, a: Operand, b: Operand) -> Any:
    return min(a, b) if not isinstance(a, PrimExpr) and not isinstance(
        b, PrimExpr) else O.min_value_of(a, b)


@rule("item", "_local_scalar_dense")
def _item(im: Importer, x: Expr) -> Any:
    """A number out of a tensor: one that is known, a whole one as a size, another as it is."""
    if isinstance(x, Constant) and x.data.numpy().size == 1:
        return x.data.numpy().item()
    if is_float(im.dtype(x)):
        return reshaped(im, x, [])
    if im.dtype(x) == "bool":
        raise ValueError("the truth of a tensor is known to the run only: use torch.where or "
                         "torch.cond")
    return im.size_from(x)


@rule("getattr")
def _getattr(im: Importer, x: Expr, name: str, default: object = None) -> Any:
    if isinstance(x, (tuple, list)) or not is_tensor(x):  # what max, sort and topk give
        return _getitem(im, x, {"values": 0, "indices": 1}[name])
    if name == "shape":
        return im.shape(x)
    if name == "ndim":
        return im.ndim(x)
    if name == "dtype":
        return f"torch.{im.dtype(x)}"
    if name in ("data", "real"):
        return x
    if name in ("device", "layout", "requires_grad", "is_cuda"):
        return {"device": "cpu"}.get(name, False)
    if name in ("T", "mT", "H", "mH"):
        order = ORDERS[next(names for names in ORDERS if name in names)](im.ndim(x))
        return x if order == sorted(order) else im.emit(op.permute_dims(x, order))
    raise ValueError(f"the attribute {name} of a tensor is not translated")


# ------------------------------------------------------------------------------- made tensors


@rule("arange")
def _arange(im: Importer, *numbers: Operand, dtype: Any = None, start: Any = 0,
            end: Any = None, step: Any = 1) -> Any:
    given = list(numbers)
    if end is not None:
        given = [start, end, step] if not given else [*given, end, step][:3]
    start, end, step = {1: lambda: (0, given[0], 1), 2: lambda: (*given, step),
                        3: lambda: tuple(given)}[len(given)]()
    kind = "float32" if any(isinstance(v, float) for v in (start, end, step)) else "int64"
    kind = dtype_name(dtype, kind)
    if all(isinstance(v, (int, float)) for v in (start, end, step)):
        count = max(math.ceil((end - start) / step), 0)
        if is_float(kind) or any(isinstance(v, float) for v in (start, end, step)):
            values = start + np.arange(count, dtype="float64") * step
            return im.const(values, kind)
    return im.emit(op.arange(start, end, step, kind))


@rule("linspace")
def _linspace(im: Importer, start: Any, end: Any, steps: Any, *,
              dtype: object = None) -> Any:
    kind = dtype_name(dtype)
    if all(isinstance(v, (int, float)) for v in (start, end, steps)):
        if is_float(kind):
            return im.const(np.linspace(start, end, steps).astype(kind), kind)
        start, end = int(start), int(end)
        step, at = (end - start) / max(steps - 1, 1), np.arange(steps)
        values = np.where(at < steps // 2, start + step * at, end - step * (steps - 1 - at))
        return im.const((values if steps > 1 else at + start).astype(kind), kind)
    if not is_float(kind):
        raise ValueError("linspace of integers needs a number of steps that is known")
    start, end = im.tensor(start, kind), im.tensor(end, kind)
    last = im.tensor(O.max_value_of(steps - 1, 1) if isinstance(steps, PrimExpr)
                     else max(steps - 1, 1), kind)
    at = im.emit(op.arange(0, steps, 1, kind))
    at = im.emit(op.divide(im.emit(op.multiply(at, im.emit(op.subtract(end, start)))), last))
    return im.emit(op.add(at, start))


@rule("logspace")
def _logspace(im: Importer, start: Any, end: Any, steps: Any, base: float = 10.0, *,
              dtype: object = None) -> Any:
    kind = dtype_name(dtype)
    if not all(isinstance(v, (int, float)) for v in (start, end, steps)):
        raise ValueError("logspace needs bounds and a number of steps that are known")
    return im.const(np.logspace(start, end, steps, base=base).astype(kind), kind)


def _filled(im: Importer, sizes: Any, value: Operand, dtype: object) -> Any:
    kind = dtype_name(dtype, "float32" if isinstance(value, float) else im.dtype(value))
    if isinstance(value, PrimExpr) or is_tensor(value):
        return im.broadcast(im.tensor(value, kind), list(sizes))
    return im.full(list(sizes), value, kind)


@rule("full")
def _full(im: Importer, size: Sizes, fill_value: Operand, *, dtype: object = None) -> Any:
    return _filled(im, size, fill_value, dtype)


@rule("full_like")
def _full_like(im: Importer, x: Expr, fill_value: Operand, *, dtype: object = None) -> Any:
    return _filled(im, im.shape(x), fill_value, dtype_name(dtype, im.dtype(x)))


def _constant(value: int, *names: str) -> None:
    """zeros(sizes), zeros_like(x), x.new_zeros(sizes) and the like."""
    @rule(*names)
    def made(im: Importer, *sizes: Any, size: Any = None, dtype: object = None) -> Any:
        given = given_sizes(sizes[0], sizes[1:]) if sizes else list(size or ())
        return _filled(im, given, value, dtype_name(dtype))

    @rule(*(f"{n}_like" for n in names))
    def like(im: Importer, x: Expr, *, dtype: object = None) -> Any:
        return _filled(im, im.shape(x), value, dtype_name(dtype, im.dtype(x)))

    @rule(*(f"new_{n}" for n in names))
    def new(im: Importer, x: Expr, *sizes: Any, size: Any = None, dtype: object = None
            ) -> Any:
        given = given_sizes(sizes[0], sizes[1:]) if sizes else list(size or ())
        return _filled(im, given, value, dtype_name(dtype, im.dtype(x)))


_constant(0, "zeros", "empty")
_constant(1, "ones")


@rule("empty_strided", "new_empty_strided")
def _empty_strided(im: Importer, *args: Any, dtype: Any = None) -> Any:
    """Memory without values; 0 here."""
    like = args[0] if is_tensor(args[0]) else None
    size: Any = args[1] if like is not None else args[0]
    return im.zeros(size, dtype_name(dtype, im.dtype(like) if like is not None else "float32"))


@rule("empty_permuted")
def _empty_permuted(im: Importer, size: Any, physical_layout: Sequence[int], *,
                    dtype: Any = None) -> Any:
    return im.zeros(size, dtype_name(dtype))


@rule("new_full")
def _new_full(im: Importer, x: Expr, size: Sizes, fill_value: Operand, *, dtype: object = None
              ) -> Any:
    return _filled(im, size, fill_value, dtype_name(dtype, im.dtype(x)))


@rule("scalar_tensor")
def _scalar_tensor(im: Importer, value: Operand, *, dtype: object = None) -> Any:
    return _tensor(im, value, dtype=dtype_name(dtype))


@rule("tensor", "as_tensor")
def _tensor(im: Importer, value: Operand, *, dtype: object = None) -> Any:
    if is_tensor(value):
        return value if dtype is None else im.cast(value, dtype_name(dtype))
    if isinstance(value, (list, tuple)) and any(is_tensor(v) or isinstance(v, PrimExpr)
                                                for v in value):
        kind = dtype_name(dtype, im.dtype(value[0]))
        parts = [reshaped(im, im.tensor(v, kind), [1]) for v in value]
        return im.emit(op.concat(parts, 0))
    if isinstance(value, (list, tuple)):
        numbers = np.asarray(value)
        kind = {"f": "float32", "i": "int64", "b": "bool"}[numbers.dtype.kind]
        return im.const(numbers, dtype_name(dtype, kind))
    return im.tensor(value, dtype_name(dtype, im.dtype(value)))


@rule("eye")
def _eye(im: Importer, n: Size, m: Size | None = None, *, dtype: object = None) -> Any:
    return im.emit(op.eye(n, m, 0, dtype_name(dtype)))


def _triangle(name: str, pick: Callable[..., Sequence[np.ndarray]]) -> None:
    @rule(name)
    def translate(im: Importer, row: int, col: int, offset: int = 0, *, dtype: object = None
                  ) -> Any:
        return im.const(np.array(pick(row, offset, col)), dtype_name(dtype, "int64"))


_triangle("tril_indices", np.tril_indices)
_triangle("triu_indices", np.triu_indices)


@rule("vander")
def _vander(im: Importer, x: Expr, N: Size | None = None, increasing: bool = False) -> Any:
    from .arithmetic import _pow

    count = im.shape(x)[0] if N is None else N
    powers = im.emit(op.arange(0, count, 1, "int64")) if increasing else im.emit(
        op.arange(count - 1, -1, -1, "int64"))
    dtype = im.dtype(x) if is_float(im.dtype(x)) else "int64"
    return _pow(im, im.cast(im.emit(op.expand_dims(x, [1])), dtype), im.cast(powers, dtype))
