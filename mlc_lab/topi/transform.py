"""Rearranging the elements of one tensor: order, shape, parts, copies."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Sequence

from .. import te
from ..te.tensor import Tensor
from ..tir import op as O
from ..tir.expr import IntImm, PrimExpr
from .utils import (
    axes as axis_names, axis_of, axes_of, differ, need, number, product, shape_of, simplify,
    text, unravel, zero_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

#: sizes of this much and more stand for "to the end" in a slice
UNBOUNDED = 2**31 - 1


def injective(shape: Sequence[Any], element: Callable[..., Any], name: str) -> Tensor:
    """A tensor every element of which is read from somewhere; axes are ax0, ax1, ..."""
    return te.compute(shape, element, name=name, tag="injective",
                      varargs_names=axis_names(len(shape)))


def transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The dimensions in the order `axes`, reversed by default."""
    given = axes if axes is not None and len(axes) else reversed(range(a.ndim))
    order = [axis_of("transpose", x, a.ndim) for x in given]
    if sorted(order) != list(range(a.ndim)):
        raise ValueError(f"transpose: axes {list(axes or ())} is no order of {a.ndim} dimensions")
    place = {d: i for i, d in enumerate(order)}
    return injective([a.shape[d] for d in order],
                     lambda *i: a(*[i[place[d]] for d in range(a.ndim)]), "T_transpose")


def reshape(a: Tensor, newshape: Sequence[Any]) -> Tensor:
    """The same elements, in row-major order, under another shape; one size may be -1."""
    shape = shape_with_rest(a, newshape)
    have, want = (O.as_int(simplify(product(s))) for s in (a.shape, shape))
    if have is not None and want is not None and have != want:
        raise ValueError(f"reshape: {a.name} of shape {text(a.shape)} has {have} elements, the "
                         f"new shape {text(shape)} holds {want}")

    def element(*i: PrimExpr) -> Any:
        flat: Any = IntImm(shape[0].dtype if shape else "int32", 0)
        for index, d in zip(i, shape):
            flat = flat * d + index
        return a(*unravel(flat, a.shape))

    return injective(shape, element, "T_reshape")


def shape_with_rest(a: Tensor, newshape: Sequence[Any]) -> list[PrimExpr]:
    """A new shape in which a size of -1 is what is left of the elements of `a`."""
    sizes = list(newshape) if isinstance(newshape, (list, tuple)) else [newshape]
    rest = [i for i, d in enumerate(sizes) if O.as_int(d) == -1]
    if len(rest) > 1:
        raise ValueError(f"reshape: {text(sizes)} leaves more than one size open")
    if rest:
        known = product([d for i, d in enumerate(sizes) if i != rest[0]])
        sizes[rest[0]] = simplify(O.floordiv(product(a.shape), known))
    return shape_of(sizes)


def flatten(data: Tensor) -> Tensor:
    """(n, a, b, ...) as (n, a * b * ...)."""
    size = simplify(product(data.shape[1:]))
    size = size if isinstance(size, PrimExpr) else IntImm(data.shape[0].dtype, size)

    def element(i: PrimExpr, j: PrimExpr) -> Any:
        at, rest = [], j
        for d in reversed(data.shape[1:]):
            at.append(O.floormod(rest, d))
            rest = O.floordiv(rest, d)
        return data(i, *reversed(at))

    return te.compute((data.shape[0], size), element, tag="injective")


def squeeze(a: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """Without dimensions of size 1: those of `axis`, or all of them."""
    if axis is None:
        gone = [i for i, d in enumerate(a.shape) if O.is_const_int(d, 1)]
    else:
        gone = axes_of("squeeze", axis, a.ndim)
        for i in gone:
            need(O.as_int(a.shape[i]) in (None, 1),
                 f"squeeze: dimension {i} of {text(a.shape)} is not 1")
    shape = [d for i, d in enumerate(a.shape) if i not in gone]

    def element(*i: PrimExpr) -> Any:
        rest = iter(i)
        return a(*[zero_of(d) if k in gone else next(rest) for k, d in enumerate(a.shape)])

    return injective(shape, element, "T_squeeze")


def expand_dims(a: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """With `num_newaxis` dimensions of size 1 before dimension `axis`."""
    at = axis_of("expand_dims", axis, a.ndim + 1)
    one = IntImm(a.shape[0].dtype if a.ndim else "int32", 1)
    shape = [*a.shape[:at], *[one] * num_newaxis, *a.shape[at:]]
    return injective(shape, lambda *i: a(*i[:at], *i[at + num_newaxis:]), "T_expand_dims")


def flip(a: Tensor, axis: int = 0) -> Tensor:
    """In reverse order along `axis`."""
    k = axis_of("flip", axis, a.ndim)
    return injective(a.shape, lambda *i: a(
        *[a.shape[k] - 1 - x if d == k else x for d, x in enumerate(i)]), "T_reverse_sequence")


def tile(a: Tensor, reps: Sequence[Any]) -> Tensor:
    """`a` repeated as a whole, reps times along each dimension (the last ones if fewer)."""
    reps = list(reps) if isinstance(reps, (list, tuple)) else [reps]
    ndim = max(a.ndim, len(reps))
    one = IntImm(a.shape[0].dtype if a.ndim else "int32", 1)
    sizes = [one] * (ndim - a.ndim) + list(a.shape)
    times = [1] * (ndim - len(reps)) + reps
    shape = [simplify(d * t) for d, t in zip(sizes, times)]

    def element(*i: PrimExpr) -> Any:
        return a(*[x if number(t) == 1 or O.is_const_int(d, 0) else O.floormod(x, d)
                   for x, d, t in zip(i[ndim - a.ndim:], a.shape, times[ndim - a.ndim:])])

    return injective(shape, element, "T_tile")


def repeat(a: Tensor, repeats: int, axis: int = 0) -> Tensor:
    """Every slice along `axis` repeated."""
    k = axis_of("repeat", axis, a.ndim)
    shape = [simplify(d * repeats) if i == k else d for i, d in enumerate(a.shape)]
    each = max(repeats, 1)  # no element is asked for where there are no repeats
    return injective(shape, lambda *i: a(
        *[O.floordiv(x, each) if d == k else x for d, x in enumerate(i)]), "T_repeat")


def slice_bounds(name: str, size: PrimExpr, begin: Any, end: Any, stride: int
                 ) -> tuple[Any, Any]:
    """The first index and the number of elements of a slice, with Python's meaning.

    None stands for the whole side. Where `size` is symbolic, bounds that are not negative are taken
    to be inside; a slice that ends before it begins is empty there too.
    """
    if stride == 0:
        raise ValueError(f"{name}: the stride of a slice is 0")
    known = O.as_int(size)
    begin, end = number(begin), number(end)
    if known is not None and all(v is None or isinstance(v, int) for v in (begin, end)):
        picked = range(known)[slice(begin, end, stride)]
        return IntImm(size.dtype, picked.start), IntImm(size.dtype, len(picked))

    def inside(v: Any, otherwise: Any) -> Any:
        if v is None or (isinstance(v, int) and v >= UNBOUNDED):
            return otherwise
        if isinstance(v, int) and v < 0:
            return O.max_value_of(size + v, 0) if v < -1 else size + v
        return O.cast(O.convert(v), size.dtype)

    if stride > 0:
        low, high = inside(begin, zero_of(size)), inside(end, size)
        count = high - low if stride == 1 else O.floordiv(high - low + (stride - 1), stride)
    else:
        low = inside(begin, size - 1)
        high = inside(end, IntImm(size.dtype, -1))
        count = O.floordiv(low - high + (-stride - 1), -stride)
    count = simplify(count)
    least = O.as_int(count)
    return simplify(low), zero_of(size) if least is not None and least < 0 else count


def strided_slice(a: Tensor, begin: Sequence[Any], end: Sequence[Any],
                  strides: Sequence[Any] | None = None, axes: Sequence[int] | None = None,
                  slice_mode: str = "end", assume_inbound: bool = True) -> Tensor:
    """a[begin:end:stride] along `axes` (the first ones by default).

    With slice_mode "size", `end` gives how many elements to take (-1: all that are left).
    """
    begin, end = list(begin), list(end)
    steps = list(strides) if strides is not None and len(strides) else [1]
    steps += [1] * (len(begin) - len(steps)) if len(steps) > 1 else steps * (len(begin) - 1)
    where = [axis_of("strided_slice", k, a.ndim) for k in axes] if axes else list(
        range(len(begin)))
    need(len(begin) <= a.ndim and len(where) == len(begin) and len(end) <= len(begin),
         f"strided_slice: {len(begin)} bounds for {len(where)} axes of {text(a.shape)}")
    end += [None] * (len(begin) - len(end))
    shape, first, step = list(a.shape), {}, {}
    for k, b, e, s in zip(where, begin, end, steps):
        stride = number(s)
        need(isinstance(stride, int), "strided_slice: strides are numbers")
        if slice_mode == "size":
            stride = 1
            e = None if number(e) == -1 else b + e
        first[k], shape[k] = slice_bounds("strided_slice", a.shape[k], b, e, stride)
        step[k] = stride

    def element(*i: PrimExpr) -> Any:
        return a(*[first[k] + x * step[k] if k in first else x for k, x in enumerate(i)])

    return injective(shape, element, "T_strided_slice")


def dynamic_strided_slice(a: Tensor, begin: Tensor, end: Tensor, strides: Tensor,
                          output_shape: Sequence[Any]) -> Tensor:
    """A slice whose bounds are tensors; `output_shape` says how large it is."""
    def element(*i: PrimExpr) -> Any:
        at = []
        for k, (x, d) in enumerate(zip(i, a.shape)):
            low, step = (O.cast(t(k), d.dtype) for t in (begin, strides))
            low = O.if_then_else(low < 0, low + d, low)
            low = O.min_value_of(O.max_value_of(low, 0), O.if_then_else(step < 0, d - 1, d))
            at.append(low + x * step)
        return a(*at)

    return injective(shape_of(output_shape), element, "T_strided_slice_dynamic")


def sliding_window(data: Tensor, axis: int, window_shape: Sequence[int],
                   strides: Sequence[int]) -> Tensor:
    """Windows over the dimensions from `axis` on: their positions, then their elements."""
    axis = axis_of("sliding_window", axis, data.ndim)
    count = data.ndim - axis
    need(len(window_shape) == len(strides) == count,
         f"sliding_window: {count} window sizes and strides are needed")
    moves = [simplify(O.floordiv(d - w, s) + 1)
             for d, w, s in zip(data.shape[axis:], window_shape, strides)]
    shape = [*data.shape[:axis], *moves, *window_shape]

    def element(*i: PrimExpr) -> Any:
        move, inner = i[axis:axis + count], i[axis + count:]
        return data(*i[:axis], *[m * s + w for m, s, w in zip(move, strides, inner)])

    return te.compute(shape_of(shape), element, name="T_sliding_window", tag="injective",
                      varargs_names=axis_names(len(shape)))


def reverse_sequence(a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0
                     ) -> Tensor:
    """The first seq_lengths[b] elements along `seq_axis` in reverse order, the rest as they are.

    A length above the size of the axis is that size, one below zero is zero.
    """
    s, b = (axis_of("reverse_sequence", x, a.ndim) for x in (seq_axis, batch_axis))
    need(seq_lengths.ndim == 1 and not differ(seq_lengths.shape[0], a.shape[b]),
         f"reverse_sequence: the lengths {text(seq_lengths.shape)} are not one for each of the "
         f"{text([a.shape[b]])} of axis {b}")

    def element(*i: PrimExpr) -> Any:
        length = O.min_value_of(O.cast(seq_lengths(i[b]), i[s].dtype),
                                O.cast(a.shape[s], i[s].dtype))
        turned = O.if_then_else(i[s] < length, length - 1 - i[s], i[s])
        return a(*[turned if k == s else x for k, x in enumerate(i)])

    return injective(a.shape, element, "T_reverse_sequence")


def meshgrid(a_tuple: Sequence[Tensor], indexing: str = "ij") -> list[Tensor]:
    """The coordinates of the grid that vectors span, as numpy does."""
    order = list(range(len(a_tuple)))
    if indexing == "xy" and len(order) >= 2:
        order[0], order[1] = 1, 0
    one = IntImm("int32", 1)
    sizes = [x.shape[0] if x.ndim else one for x in a_tuple]
    shape = [sizes[k] for k in order]
    place = {k: i for i, k in enumerate(order)}
    return [injective(shape, lambda *i, x=x, k=k: x(i[place[k]]) if x.ndim else x(), "T_meshgrid")
            for k, x in enumerate(a_tuple)]


def layout_transform(array: Tensor, src_layout: str, dst_layout: str,
                     schedule_rule: str = "None") -> Tensor:
    """From one layout to another: "NCHW" to "NHWC", "NCHW" to "NCHW4c", ...

    Sizes that a block does not divide are refused.
    """
    src, dst = _layout(src_layout), _layout(dst_layout)
    need(len(src) == array.ndim, f"layout_transform: {src_layout} does not have the {array.ndim} "
                                 f"dimensions of {text(array.shape)}")
    src_block = {n.upper(): b for n, b in src if n.islower()}
    dst_block = {n.upper(): b for n, b in dst if n.islower()}
    full: dict[str, Any] = {}
    for (name, _), d in zip(src, array.shape):
        if name.isupper():
            full[name] = d * src_block.get(name, 1)
    need({n for n, _ in src if n.isupper()} == {n for n, _ in dst if n.isupper()},
         f"layout_transform: {src_layout} and {dst_layout} name different dimensions")
    shape = []
    for name, block in dst:
        if name.islower():
            shape.append(block)
            continue
        size, by = simplify(full[name]), dst_block.get(name, 1)
        known = number(size)
        need(not isinstance(known, int) or known % by == 0,
             f"layout_transform: {by} does not divide the size {known} of {name} in {dst_layout}")
        shape.append(simplify(O.floordiv(O.convert(size), by)))

    def element(*i: PrimExpr) -> Any:
        at: dict[str, Any] = {}
        for (name, _block), x in zip(dst, i):
            if name.isupper():
                at[name] = at.get(name, 0) + x * dst_block.get(name, 1)
            else:
                at[name.upper()] = at.get(name.upper(), 0) + x
        return array(*[
            (O.floordiv(at[n], src_block[n]) if n in src_block else at[n]) if n.isupper()
            else O.floormod(at[n.upper()], b) for n, b in src])

    return injective(shape_of(shape), element, "T_layout_trans")


def _layout(text: str) -> list[tuple[str, int]]:
    """The dimensions of "NCHW4c": [("N", 0), ("C", 0), ("H", 0), ("W", 0), ("c", 4)]."""
    out, digits = [], ""
    for ch in text:
        if ch.isdigit():
            digits += ch
        else:
            need(ch.isupper() or bool(digits), f"layout {text}: the block {ch} has no size")
            out.append((ch, int(digits or 0)))
            digits = ""
    return out


def unravel_index(indices: Tensor, shape: Tensor) -> Tensor:
    """The coordinates (one a row) of flat positions in a shape given as a tensor."""
    count = number(shape.shape[0])

    def element(*i: PrimExpr) -> Any:
        rest, at = O.cast(indices(*i[1:]), indices.dtype), []
        for k in reversed(range(count)):
            size = O.cast(shape(k), indices.dtype)
            at.append(O.floormod(rest, size) if k else rest)
            rest = O.floordiv(rest, size)
        at.reverse()
        value = at[-1]
        for k in reversed(range(count - 1)):
            value = O.if_then_else(O.equal(i[0], k), at[k], value)
        return value

    return injective([IntImm("int32", count), *indices.shape], element, "T_unravel")


def shape(array: Tensor, dtype: str = "int32") -> Tensor:
    """The sizes of a tensor, as a vector."""
    def element(i: PrimExpr) -> Any:
        value = O.cast(O.convert(array.shape[-1]), dtype)
        for k in reversed(range(array.ndim - 1)):
            value = O.if_then_else(O.equal(i, k), O.cast(O.convert(array.shape[k]), dtype), value)
        return value

    return te.compute((array.ndim,), element, name="T_shape", tag="injective")


def tensor_size(array: Tensor, dtype: str = "int32") -> Tensor:
    """The number of elements, as a tensor without dimensions."""
    count = O.cast(O.convert(product(array.shape)), dtype)
    return te.compute((), lambda: count, name="T_ndarray_size", tag="injective")


ndarray_size = tensor_size  # TVM's name


def expand_like(a: Tensor, shape_like: Tensor, axis: int | Sequence[int]) -> Tensor:
    """`a` repeated along new axes, those of `shape_like` that `axis` names, to its shape."""
    new = sorted(axes_of("expand_like", axis, shape_like.ndim))
    old = [k for k in range(shape_like.ndim) if k not in new]
    if not old and a.ndim == 1 and number(a.shape[0]) == 1:  # a scalar, as TVM has it
        return te.compute(shape_like.shape, lambda *i: a(0), name="T_expand_like", tag="broadcast",
                          varargs_names=axis_names(shape_like.ndim))
    need(len(old) == a.ndim and not any(
        differ(d, shape_like.shape[k]) for d, k in zip(a.shape, old)),
        f"expand_like: {text(a.shape)} and the new axes {new} do not make "
        f"{text(shape_like.shape)}")
    return te.compute(shape_like.shape, lambda *i: a(*[i[k] for k in old]), name="T_expand_like",
                      tag="broadcast", varargs_names=axis_names(shape_like.ndim))


#: functions that TVM's `topi.transform` has, and the files that they are in here
_ELSEWHERE = {
    "one_hot": "indexing", "take": "indexing", "gather": "indexing", "gather_nd": "indexing",
    "strided_set": "indexing", "sequence_mask": "indexing", "adv_index": "indexing",
    "matrix_set_diag": "creation", "trilu": "creation", "arange": "creation",
    "concatenate": "joining", "split": "joining", "stack": "joining", "matmul": "linalg",
    "tensordot": "linalg", "where": "broadcast",
}


def __getattr__(name: str) -> Any:
    """A function that TVM has in this module."""
    if name in _ELSEWHERE:
        return getattr(import_module(f"{__package__}.{_ELSEWHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "dynamic_strided_slice", "expand_dims", "expand_like", "flatten", "flip", "injective",
    "layout_transform", "meshgrid", "ndarray_size", "repeat", "reshape", "reverse_sequence",
    "shape", "sliding_window", "slice_bounds", "squeeze", "strided_slice", "tensor_size", "tile",
    "transpose", "unravel_index",
]
