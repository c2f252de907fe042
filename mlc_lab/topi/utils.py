"""What all operators share: shapes as text, axes by number, sizes as Python ints where known."""

from __future__ import annotations

from typing import Any, Sequence

from .. import te
from ..arith import Analyzer
from ..ir import dtype as dt
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.buffer import extent_of
from ..tir.data_layout import Layout
from ..tir.expr import IntImm, PrimExpr


def sum_type(dtype: str) -> str:
    """The type in which sums and products of many numbers of `dtype` are kept.

    A float of 16 bits (or 8) would soon stop growing: 2048 + 1 is 2048 in float16, 256 + 1 is 256
    in bfloat16.
    """
    return "float32" if dt.is_float(dtype) and dt.bits_of(dtype) <= 16 else dtype


def rounded(x: Tensor, dtype: str) -> Tensor:
    """A result that was computed in `sum_type(dtype)`, in `dtype`."""
    if x.dtype == dtype:
        return x
    return te.compute(x.shape, lambda *i: O.cast(x(*i), dtype), name="T_cast", tag="elemwise",
                      varargs_names=axes(x.ndim))


def axes(ndim: int) -> list[str]:
    """The axis names ax0, ax1, ..."""
    return [f"ax{i}" for i in range(ndim)]


def text(shape: Sequence[Any]) -> str:
    """A shape for an error message: (1, n, 3)."""
    return "(" + ", ".join(str(getattr(d, "value", d)) for d in shape) + ")"


def shape_of(sizes: Any) -> list[PrimExpr]:
    """A shape given as an int, a tuple or a list, as expressions."""
    if not isinstance(sizes, (list, tuple)):
        sizes = [sizes] if isinstance(sizes, (int, PrimExpr)) else list(sizes)
    return [extent_of(d) for d in sizes]


def simplify(e: Any) -> Any:
    """An expression in its simplest form; Python ints stay ints."""
    return Analyzer().simplify(e) if isinstance(e, PrimExpr) else e


def get_const_int(expr: Any) -> int:
    """The Python int that an expression comes to. Raises ValueError where it is not constant."""
    known = O.as_int(simplify(expr))
    if known is None:
        raise ValueError(f"{expr!r} is no constant integer")
    return known


def get_const_float(expr: Any) -> float:
    """The Python float of a constant. Raises ValueError for anything else."""
    expr = simplify(expr)
    value = getattr(expr, "value", expr)
    if not isinstance(value, (int, float)):
        raise ValueError(f"{expr!r} is no constant number")
    return float(value)


def get_const_tuple(in_tuple: Sequence[Any]) -> tuple:
    """A shape with Python ints where sizes are constant, expressions where they are not."""
    return tuple(number(simplify(d)) for d in in_tuple)


def number(value: Any) -> Any:
    """A Python int where `value` is a constant, else the expression itself."""
    known = O.as_int(value)
    return value if known is None else known


def axis_of(name: str, axis: Any, ndim: int) -> int:
    """`axis` counted from the front. Raises ValueError where there is no such dimension."""
    axis = number(axis)
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise ValueError(f"{name}: axis {axis!r} is no whole number that counts dimensions from 0, "
                         f"or from -1 backwards")
    axis = axis.__index__()
    if not -ndim <= axis < ndim:
        raise ValueError(f"{name}: axis {axis} is not one of the {ndim} dimensions")
    return axis % ndim


def axes_of(name: str, given: Any, ndim: int) -> list[int]:
    """Several axes, sorted, each once; None means all of them."""
    if given is None:
        return list(range(ndim))
    several = given if isinstance(given, (list, tuple)) else [given]
    return sorted({axis_of(name, a, ndim) for a in several})


def differ(a: Any, b: Any) -> bool:
    """Whether two sizes are certainly different."""
    x, y = O.as_int(a), O.as_int(b)
    if x is not None and y is not None:
        return x != y
    if a is b:
        return False
    left, right = (O.convert(v) for v in (a, b))
    return isinstance(left, PrimExpr) and (
        O.is_const_int(Analyzer().simplify(O.not_equal(left, right)), 1))


def same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are certainly the same."""
    return a is b or Analyzer().can_prove_equal(a, b)


def need(ok: bool, message: str) -> None:
    """Refuse with ValueError unless `ok`."""
    if not ok:
        raise ValueError(message)


def need_rank(name: str, tensor: Tensor, rank: int, what: str) -> None:
    """Refuse a tensor whose number of dimensions is not `rank`; `what` names the layout."""
    if tensor.ndim != rank:
        raise ValueError(f"{name}: {tensor.name} has {tensor.ndim} dimensions "
                         f"{text(tensor.shape)} and {what} needs {rank}")


def zero_of(like: PrimExpr) -> IntImm:
    """The index 0 in the type of a size."""
    return IntImm(like.dtype, 0)


def product(sizes: Sequence[Any]) -> Any:
    """The product of sizes, 1 for none."""
    out: Any = 1
    for d in sizes:
        out = d if isinstance(out, int) and out == 1 else out * d
    return out


def dilated(extent: Any, dilation: Any) -> Any:
    """How far a window reaches whose elements are `dilation` apart."""
    return simplify((extent - 1) * dilation + 1)


def window_count(size: Any, reach: Any, padding: Any, stride: Any, ceil: bool = False) -> Any:
    """How many windows, `stride` apart, fit into a dimension with `padding` elements around it.

    With `ceil` the last may hang over the end by less than a stride.
    """
    beyond = stride - 1 if ceil else 0
    return simplify(O.floordiv(size - reach + (padding + beyond), stride) + 1)


def ravel(indices: Sequence[Any], shape: Sequence[Any]) -> Any:
    """The row-major position of `indices` in `shape`."""
    flat: Any = None
    for i, d in zip(indices, shape):
        flat = i if flat is None else flat * d + i
    return IntImm("int32", 0) if flat is None else flat


def unravel(flat: Any, shape: Sequence[Any]) -> list[Any]:
    """The indices of the row-major position `flat` in `shape`; of an empty one there are none."""
    out = []
    for d in reversed(shape):
        if O.is_const_int(d, 0):
            out.append(zero_of(O.convert(d)))
            continue
        out.append(O.floormod(flat, d))
        flat = O.floordiv(flat, d)
    return out[::-1]


def pair(value: Any, count: int, name: str) -> list[Any]:
    """`count` numbers from one number or from as many."""
    if not isinstance(value, (list, tuple)):
        return [number(value)] * count
    if len(value) == 1:
        return [number(value[0])] * count
    if len(value) != count:
        raise ValueError(f"{name} takes one number or {count}, got {tuple(value)}")
    return [number(v) for v in value]


def get_shape(src_shape: Sequence[Any], src_layout: Any, dst_layout: Any) -> tuple:
    """The sizes of `src_shape`, which is in one layout, in the order of another of the same axes.

    ValueError where the layouts split an axis by different factors: then other sizes are wanted.
    """
    src, dst = (x if isinstance(x, Layout) else Layout(x) for x in (src_layout, dst_layout))
    need(sorted(src.parts, key=str) == sorted(dst.parts, key=str) and len(src) == len(src_shape),
         f"get_shape: {text(src_shape)} in the layout {src.name} has no such shape in {dst.name}")
    return get_const_tuple([src_shape[src.index_of(letter)] for letter, _ in dst.parts])
