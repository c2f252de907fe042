"""Operators that move data as a whole: reshape, permute, concat, split, tile, ..."""

from __future__ import annotations

import math
from typing import Any, Sequence

from ...arith import Analyzer
from ...arith.index_map import map_ranges, map_shape, padded_inverse
from ...reading import limits
from ...tir import expr as E
from ...tir import op as O
from ..expr import Call, Expr, PrimValue, as_expr
from ..struct_info import (
    StructInfo, TensorStructInfo, TupleStructInfo, as_dim, same_dim,
)
from .common import (
    as_tuple_expr, axes_of, axis_of, dim_text, ints, join_dtype, like, misfit, need_at_least,
    need_fill, need_ndim, need_same, need_same_count, plain_int, product, shape_arg, shape_values,
    show, show_shape, tensor_info, tensor_list, tensor_of, whole,
)
from .registry import make_call, register_op

_ONE = E.IntImm("int64", 1)


def permute_dims(x: Any, axes: Any = None) -> Expr:
    """The dimensions in another order; reversed for None."""
    return make_call("relax.permute_dims", (as_expr(x),), {"axes": ints(axes)})


def _infer_permute(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "x")
    axes = call.attrs.axes
    if info.ndim == -1:
        return TensorStructInfo(None, info.dtype, ndim=-1 if axes is None else len(axes))
    if axes is None:
        axes = tuple(reversed(range(info.ndim)))
    elif len(axes) != info.ndim:
        raise misfit(call, f"x is {show(info)}, axes names {len(axes)} dimension(s): "
                           f"{list(axes)}")
    axes = axes_of(call, axes, info.ndim)
    return tensor_of(None if info.dims is None else [info.dims[a] for a in axes], info.dtype,
                     info.ndim)


register_op("relax.permute_dims", _infer_permute)


def expand_dims(x: Any, axis: Any) -> Expr:
    """New dimensions of extent 1 at `axis` of the result."""
    return make_call("relax.expand_dims", (as_expr(x),), {"axis": ints(axis)})


def _infer_expand(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "x")
    if info.ndim == -1:
        return TensorStructInfo(None, info.dtype)
    ndim = info.ndim + len(call.attrs.axis)
    axes = axes_of(call, call.attrs.axis, ndim)
    if info.dims is None:
        return tensor_of(None, info.dtype, ndim)
    rest = iter(info.dims)
    return tensor_of([_ONE if k in axes else next(rest) for k in range(ndim)], info.dtype)


register_op("relax.expand_dims", _infer_expand)


def squeeze(x: Any, axis: Any = None) -> Expr:
    """Without dimensions of extent 1: those named, or all."""
    return make_call("relax.squeeze", (as_expr(x),), {"axis": ints(axis)})


def _infer_squeeze(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "x")
    if info.ndim == -1:
        return TensorStructInfo(None, info.dtype)
    axes = call.attrs.axis
    if axes is None:
        if info.dims is None or any(type(d) is not E.IntImm for d in info.dims):
            return TensorStructInfo(None, info.dtype)
        return tensor_of([d for d in info.dims if d.value != 1], info.dtype)
    axes = axes_of(call, axes, info.ndim)
    if info.dims is None:
        return tensor_of(None, info.dtype, info.ndim - len(axes))
    for a in axes:
        need_same(call, _ONE, info.dims[a], lambda a=a: (
            f"x is {show(info)}: dimension {a} has extent {dim_text(info.dims[a])}, only extent 1 "
            "can be squeezed"))
    return tensor_of([d for k, d in enumerate(info.dims) if k not in axes], info.dtype)


register_op("relax.squeeze", _infer_squeeze)


def flatten(x: Any) -> Expr:
    """All elements as a vector."""
    return make_call("relax.flatten", (as_expr(x),))


def _infer_flatten(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "x")
    return tensor_of(None if info.dims is None else [product(info.dims)], info.dtype, 1)


register_op("relax.flatten", _infer_flatten)


def reshape(x: Any, shape: Any) -> Expr:
    """The elements in another shape; one dimension may be -1, 0 keeps the dimension of x."""
    x = as_expr(x)
    if isinstance(shape, (tuple, list)):
        shape = _fill_in(x, [as_dim(getattr(s, "value", s) if isinstance(s, Expr) else s)
                             for s in shape])
    return make_call("relax.reshape", (x, shape_arg(shape)))


def _fill_in(x: Expr, shape: list[Any]) -> Any:
    """A shape with its -1 worked out and its 0 taken from x."""
    def is_value(d: Any, value: int) -> bool:
        return type(d) is E.IntImm and d.value == value

    dims = getattr(x.struct_info_, "dims", None)
    if any(type(d) is E.IntImm and d.value < -1 for d in shape):
        raise misfit("reshape", f"{show_shape(shape)} has a negative extent; -1 stands for the one "
                                "that follows from the others, 0 keeps that of x")
    if not any(is_value(d, -1) or is_value(d, 0) for d in shape):
        return shape
    if dims is None:
        raise misfit("reshape", f"-1 and 0 in {show_shape(shape)} need the shape of x, which is "
                                "not known")
    for k, d in enumerate(shape):
        if is_value(d, 0):
            if k >= len(dims):
                raise misfit("reshape", f"dimension {k} of {show_shape(shape)} is 0, which keeps "
                                        f"that of x, but x has {len(dims)} dimension(s)")
            shape[k] = dims[k]
    unknown = [k for k, d in enumerate(shape) if is_value(d, -1)]
    if len(unknown) > 1:
        raise misfit("reshape", f"only one dimension can be -1, got {show_shape(shape)}")
    if unknown:
        rest = product(d for d in shape if not is_value(d, -1))
        total, fixed = product(dims), rest
        if type(total) is E.IntImm and type(fixed) is E.IntImm and (
                fixed.value == 0 or total.value % fixed.value):
            raise misfit("reshape", f"x has shape {show_shape(dims)}, {total.value} elements, "
                                    f"which do not fill {show_shape(shape)}")
        shape[unknown[0]] = as_dim(quotient(dims, [d for d in shape if not is_value(d, -1)]))
    return shape


def quotient(dims: Sequence[Any], others: Sequence[Any]) -> Any:
    """The product of `dims` over that of `others`, where factors that are in both are gone:
    (1, n, 128) over (1, n, 32) is 4. An int where nothing symbolic is left.

    Raises ValueError for two numbers that do not divide.
    """
    above, below = _factors(dims), _factors(others)
    rest_below: list[Any] = []
    for e in below[1]:
        k = next((k for k, f in enumerate(above[1]) if f is e or same_dim(f, e)), None)
        if k is None:
            rest_below.append(e)
        else:
            above[1].pop(k)
    common = math.gcd(above[0], below[0]) or 1
    number, divisor = above[0] // common, below[0] // common
    if not above[1] and not rest_below:
        if divisor != 1:
            raise ValueError(f"{above[0]} elements are no multiple of {below[0]}")
        return number
    total = product([number, *above[1]])
    rest = product([divisor, *rest_below])
    return Analyzer().simplify(total if O.is_const_int(rest, 1) else O.floordiv(total, rest))


def _factors(dims: Sequence[Any]) -> tuple[int, list[Any]]:
    """A product as a number and the symbolic factors."""
    number, rest, todo = 1, [], list(dims)
    while todo:
        d = todo.pop()
        value = d if isinstance(d, int) else getattr(d, "value", None)
        if isinstance(value, int):
            number *= value
        elif type(d) is E.Mul:
            todo += [d.a, d.b]
        else:
            rest.append(d)
    return number, rest


def _infer_reshape(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "x")
    shape = shape_values(call, 1)
    if shape.values is not None and info.dims is not None:
        need_same_count(call, info.dims, shape.values, lambda: (
            f"x has shape {show_shape(info.dims)} with {dim_text(product(info.dims))} elements, "
            f"the new shape {show_shape(shape.values)} has {dim_text(product(shape.values))}"))
    return TensorStructInfo(call.args[1], info.dtype, ndim=shape.ndim)


register_op("relax.reshape", _infer_reshape)


def broadcast_to(x: Any, shape: Any) -> Expr:
    """x repeated to fill `shape`."""
    return make_call("relax.broadcast_to", (as_expr(x), shape_arg(shape)))


def _infer_broadcast_to(call: Call) -> StructInfo:
    info, shape = tensor_info(call, 0, "x"), shape_values(call, 1)
    if info.dims is not None and shape.values is not None:
        need_fill(call, info, shape.values, "x")
    return TensorStructInfo(call.args[1], info.dtype, ndim=shape.ndim)


register_op("relax.broadcast_to", _infer_broadcast_to)


def collapse_sum_to(data: Any, shape: Any) -> Expr:
    """The sum over the dimensions that broadcasting `shape` to data's would repeat."""
    return make_call("relax.collapse_sum_to", (as_expr(data), shape_arg(shape)))


def collapse_sum_like(data: Any, collapse_target: Any) -> Expr:
    """collapse_sum_to the shape of another tensor."""
    return make_call("relax.collapse_sum_like", (as_expr(data), as_expr(collapse_target)))


def _collapsed(call: Call, data: TensorStructInfo, dims: Sequence[Any] | None) -> None:
    """Refuse a shape that cannot be broadcast to that of data."""
    if data.dims is None or dims is None:
        return

    def text() -> str:
        return f"{show_shape(dims)} cannot be broadcast to the shape of data, {show(data)}"

    if len(dims) > len(data.dims):
        raise misfit(call, text())
    for a, b in zip(reversed(dims), reversed(data.dims)):
        if not (type(a) is E.IntImm and a.value == 1):
            need_same(call, a, b, text)


def _infer_collapse_to(call: Call) -> StructInfo:
    data, shape = tensor_info(call, 0, "data"), shape_values(call, 1)
    _collapsed(call, data, shape.values)
    return TensorStructInfo(call.args[1], data.dtype, ndim=shape.ndim)


def _infer_collapse_like(call: Call) -> StructInfo:
    data, target = tensor_info(call, 0, "data"), tensor_info(call, 1, "collapse_target")
    _collapsed(call, data, target.dims)
    return like(target, data.dtype)


register_op("relax.collapse_sum_to", _infer_collapse_to)
register_op("relax.collapse_sum_like", _infer_collapse_like)


def concat(tensors: Any, axis: int | None = 0) -> Expr:
    """Tensors one after another along `axis` (flattened first for None)."""
    return make_call("relax.concat", (as_tuple_expr(tensors),), {
        "axis": None if axis is None else whole("axis", axis)})


def _join_all(call: Call, infos: Sequence[TensorStructInfo]) -> tuple[str, int]:
    """The one dtype and number of dimensions of several tensors."""
    dtype, ndim = _one_dtype(call, infos), infos[0].ndim
    for k, info in enumerate(infos[1:], 2):
        if -1 not in (ndim, info.ndim) and ndim != info.ndim:
            raise misfit(call, f"tensor 1 is {show(infos[0])} and tensor {k} is {show(info)}: "
                               "they differ in the number of dimensions")
        ndim = max(ndim, info.ndim)
    return dtype, ndim


def _one_dtype(call: Call, infos: Sequence[TensorStructInfo]) -> str:
    if not infos:
        raise misfit(call, "there is no tensor to join")
    dtype = infos[0].dtype
    for k, info in enumerate(infos[1:], 2):
        dtype = join_dtype(call, dtype, info.dtype, ("tensor 1", f"tensor {k}"))
    return dtype


def _infer_concat(call: Call) -> StructInfo:
    infos = tensor_list(call)
    if call.attrs.axis is None:  # flattened first: their shapes may be any
        dtype = _one_dtype(call, infos)
        if any(i.dims is None for i in infos):
            return tensor_of(None, dtype, 1)
        total: Any = as_dim(0)
        for info in infos:
            total = O.add(total, product(info.dims))
        return tensor_of([Analyzer().simplify(total)], dtype)
    dtype, ndim = _join_all(call, infos)
    if ndim == -1:
        return TensorStructInfo(None, dtype)
    axis = axis_of(call, call.attrs.axis, ndim)
    if any(i.dims is None for i in infos):
        return tensor_of(None, dtype, ndim)
    first, total, analyzer = infos[0].dims, infos[0].dims[axis], Analyzer()
    for k, info in enumerate(infos[1:], 2):
        for d in range(ndim):
            if d != axis:
                need_same(call, first[d], info.dims[d], lambda k=k, d=d, info=info: (
                    f"tensor 1 has shape {show_shape(first)} and tensor {k} "
                    f"{show_shape(info.dims)}: dimension {d} differs, only dimension {axis} may"))
        total = analyzer.simplify(O.add(total, info.dims[axis]))
    return tensor_of([*first[:axis], total, *first[axis + 1:]], dtype)


register_op("relax.concat", _infer_concat)


def stack(tensors: Any, axis: int = 0) -> Expr:
    """Tensors of one shape along a new axis."""
    return make_call("relax.stack", (as_tuple_expr(tensors),), {
        "axis": None if axis is None else whole("axis", axis)})


def _infer_stack(call: Call) -> StructInfo:
    infos = tensor_list(call)
    dtype, ndim = _join_all(call, infos)
    if ndim == -1:
        return TensorStructInfo(None, dtype)
    axis = axis_of(call, call.attrs.axis or 0, ndim + 1)
    known = next((i.dims for i in infos if i.dims is not None), None)
    if known is None:
        return tensor_of(None, dtype, ndim + 1)
    for k, info in enumerate(infos[1:], 2):
        for a, b in zip(known, info.dims or ()):
            need_same(call, a, b, lambda k=k, info=info: (
                f"tensor 1 has shape {show_shape(known)} and tensor {k} {show_shape(info.dims)}: "
                "only tensors of one shape are stacked"))
    return tensor_of([*known[:axis], as_dim(len(infos)), *known[axis:]], dtype)


register_op("relax.stack", _infer_stack)


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> Expr:
    """Pieces of x along `axis`: so many of one size, or cut at the indices."""
    if isinstance(indices_or_sections, (tuple, list)):
        cuts: Any = tuple(map(plain_int, indices_or_sections))
    else:
        cuts = plain_int(indices_or_sections)
    return make_call("relax.split", (as_expr(x),), {
        "indices_or_sections": cuts, "axis": whole("axis", axis)})


def _infer_split(call: Call) -> StructInfo:
    info, cuts = tensor_info(call, 0, "x"), call.attrs.indices_or_sections
    count = len(cuts) + 1 if isinstance(cuts, tuple) else cuts
    if not 1 <= count <= limits.RESULTS:
        raise misfit(call, f"x cannot be split into {count} pieces (1 to {limits.RESULTS} are "
                     "possible)")
    unknown = TensorStructInfo(None, info.dtype, ndim=info.ndim)
    if info.dims is None:
        return TupleStructInfo([unknown] * count)
    axis = axis_of(call, call.attrs.axis, info.ndim)
    dim, analyzer = info.dims[axis], Analyzer()

    def piece(extent: Any) -> StructInfo:
        return tensor_of([*info.dims[:axis], analyzer.simplify(extent), *info.dims[axis + 1:]],
                         info.dtype)

    if isinstance(cuts, tuple):
        edges = [as_dim(0), *map(as_dim, cuts), dim]
        for a, b in zip(edges, edges[1:]):
            need_at_least(call, b, a, lambda: (
                f"x is {show(info)}: the indices {list(cuts)} must rise from 0 to the "
                f"{dim_text(dim)} of dimension {axis}"))
        return TupleStructInfo([piece(O.max(O.sub(b, a), as_dim(0)))
                                for a, b in zip(edges, edges[1:])])
    size = O.ceildiv(dim, as_dim(count))
    last = O.sub(dim, O.mul(size, as_dim(count - 1)))
    need_at_least(call, analyzer.simplify(last), as_dim(0), lambda: (
        f"x is {show(info)}: {count - 1} pieces of {dim_text(size)} are more than the "
        f"{dim_text(dim)} of dimension {axis}"))
    if count > 1:
        return TupleStructInfo([piece(size)] * (count - 1) + [piece(last)])
    return TupleStructInfo([piece(size)])


register_op("relax.split", _infer_split)


def tile(data: Any, repeats: Any) -> Expr:
    """data repeated as a whole, `repeats[k]` times along each dimension."""
    return make_call("relax.tile", (as_expr(data),), {"repeats": ints(repeats)})


def _infer_tile(call: Call) -> StructInfo:
    info, repeats = tensor_info(call, 0, "data"), call.attrs.repeats
    if any(isinstance(r, int) and r < 0 for r in repeats):
        raise misfit(call, f"repeats is {list(repeats)}, none can be negative")
    if info.ndim == -1:
        return TensorStructInfo(None, info.dtype)
    ndim = max(info.ndim, len(repeats))
    if info.dims is None:
        return tensor_of(None, info.dtype, ndim)
    dims = [_ONE] * (ndim - info.ndim) + list(info.dims)
    times = [1] * (ndim - len(repeats)) + list(repeats)
    return tensor_of([O.mul(d, as_dim(t)) for d, t in zip(dims, times)], info.dtype)


register_op("relax.tile", _infer_tile)


def repeat(data: Any, repeats: int, axis: int | None = None) -> Expr:
    """Each element `repeats` times along `axis` (of the flattened tensor for None)."""
    return make_call("relax.repeat", (as_expr(data),), {
        "repeats": whole("repeats", repeats),
        "axis": None if axis is None else whole("axis", axis)})


def _infer_repeat(call: Call) -> StructInfo:
    info, times, axis = tensor_info(call, 0, "data"), call.attrs.repeats, call.attrs.axis
    if times < 0:
        raise misfit(call, f"repeats is {times}, it cannot be negative")
    if axis is None:
        return tensor_of(None if info.dims is None else [
            O.mul(product(info.dims), as_dim(times))], info.dtype, 1)
    if info.ndim == -1:
        return like(info)
    axis = axis_of(call, axis, info.ndim)
    if info.dims is None:
        return tensor_of(None, info.dtype, info.ndim)
    dims = list(info.dims)
    dims[axis] = O.mul(dims[axis], as_dim(times))
    return tensor_of(dims, info.dtype)


register_op("relax.repeat", _infer_repeat)


def flip(data: Any, axis: Any) -> Expr:
    """The elements in reverse order along `axis`."""
    return make_call("relax.flip", (as_expr(data),), {"axis": whole("axis", axis)})


def _infer_flip(call: Call) -> StructInfo:
    info = tensor_info(call, 0, "data")
    if info.ndim != -1:
        axis_of(call, call.attrs.axis, info.ndim)
    return like(info)


register_op("relax.flip", _infer_flip)


def meshgrid(tensors: Any, indexing: str | None = "ij") -> Expr:
    """Coordinate grids of vectors."""
    return make_call("relax.meshgrid", (as_tuple_expr(tensors),), {"indexing": indexing or "ij"})


def _infer_meshgrid(call: Call) -> StructInfo:
    infos = tensor_list(call)
    dtype = _one_dtype(call, infos)
    if call.attrs.indexing not in ("ij", "xy"):
        raise misfit(call, f"indexing is ij or xy, not {call.attrs.indexing!r}")
    for k, info in enumerate(infos, 1):
        if info.ndim > 1:
            raise misfit(call, f"tensor {k} is {show(info)}, it must be a vector")
    known = all(i.dims is not None for i in infos)
    dims = [i.dims[0] if i.ndim else _ONE for i in infos] if known else None
    if dims is not None and call.attrs.indexing == "xy" and len(dims) > 1:
        dims[0], dims[1] = dims[1], dims[0]
    return TupleStructInfo([tensor_of(dims, dtype, len(infos))] * len(infos))


register_op("relax.meshgrid", _infer_meshgrid)


def layout_transform(x: Any, index_map: Any, pad_value: Any = None) -> Expr:
    """The elements rearranged by an index map, as the schedule's transform_layout."""
    if callable(index_map) and not hasattr(index_map, "initial_indices"):
        from ...tir import IndexMap

        index_map = IndexMap.from_func(index_map, index_dtype="int64")
    if pad_value is not None and not isinstance(pad_value, Expr):
        pad_value = PrimValue(pad_value if not isinstance(pad_value, float)
                              else E.FloatImm("float32", pad_value))
    return make_call("relax.layout_transform", (as_expr(x),), {
        "index_map": index_map, "pad_value": pad_value})


def _infer_layout_transform(call: Call) -> StructInfo:
    info, mapping = tensor_info(call, 0, "x"), call.attrs.index_map
    need_ndim(call, info, len(mapping.initial_indices), "x")
    if info.dims is None:
        return tensor_of(None, info.dtype, len(mapping.final_indices))
    try:
        starts = [r.min for r in map_ranges(mapping, info.dims)]
        padded_inverse(mapping, info.dims)
    except ValueError as error:
        raise misfit(call, str(error)) from None
    for index, start in zip(mapping.final_indices, starts):
        if not Analyzer().can_prove_greater_equal(start, 0):
            raise misfit(call, f"index {index!r} begins at {start!r}; places begin at 0")
    return tensor_of(map_shape(mapping, info.dims), info.dtype)


register_op("relax.layout_transform", _infer_layout_transform)

__all__ = ["broadcast_to", "collapse_sum_like", "collapse_sum_to", "concat", "expand_dims",
           "flatten", "flip", "layout_transform", "meshgrid", "permute_dims", "repeat",
           "reshape", "split", "squeeze", "stack", "tile"]
