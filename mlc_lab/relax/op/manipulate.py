"""Operators that join tensors, take them apart, and repeat or move their elements."""

from __future__ import annotations

from typing import Annotated, Any, Sequence

from ...arith import Analyzer
from ...arith.index_map import map_ranges, map_shape, padded_inverse
from ...reading import limits
from ...tir import expr as E
from ...tir import op as O
from ...tir.functor import substitute
from ..expr import Call, Expr, Tuple
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo, as_dim
from .common import (
    axis_of, dim_text, dims_of, info_of, join_dtype, misfit, need_at_least, need_ndim, need_same,
    plain_int, product, show, show_shape, tensor_of,
)
from .declare import (
    Axis, Ints, Kind, Tensor, Tensors, Whole, like_first, operator, prim, prim_arg,
)
from .later import te, topi, utils

_ONE = E.IntImm("int64", 1)


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


def _infer_concat(call: Call, infos: tuple[TensorStructInfo, ...]) -> StructInfo:
    if call.attrs.axis is None:  # flattened first: their shapes may be any
        dtype = _one_dtype(call, infos)
        shapes = dims_of(infos)
        if shapes is None:
            return tensor_of(None, dtype, 1)
        total: Any = as_dim(0)
        for dims in shapes:
            total = O.add(total, product(dims))
        return tensor_of([Analyzer().simplify(total)], dtype)
    dtype, ndim = _join_all(call, infos)
    if ndim == -1:
        return TensorStructInfo(None, dtype)
    axis = axis_of(call, call.attrs.axis, ndim)
    shapes = dims_of(infos)
    if shapes is None:
        return tensor_of(None, dtype, ndim)
    first, total, analyzer = shapes[0], shapes[0][axis], Analyzer()
    for k, dims in enumerate(shapes[1:], 2):
        for d in range(ndim):
            if d != axis:
                need_same(call, first[d], dims[d], lambda k=k, d=d, dims=dims: (
                    f"tensor 1 has shape {show_shape(first)} and tensor {k} "
                    f"{show_shape(dims)}: dimension {d} differs, only dimension {axis} may"))
        total = analyzer.simplify(O.add(total, dims[axis]))
    return tensor_of([*first[:axis], total, *first[axis + 1:]], dtype)


@operator("relax.concat", _infer_concat, hint="concatenate", layout="along", precision="follow")
def concat(tensors: Tensors, axis: Whole | None = 0) -> Tensor:
    """Tensors one after another along `axis` (flattened first for None)."""
    if axis is None:
        return topi.concatenate([topi.reshape(t, (-1,)) for t in tensors], 0)
    return topi.concatenate(tensors, axis)


def _infer_stack(call: Call, infos: tuple[TensorStructInfo, ...]) -> StructInfo:
    dtype, ndim = _join_all(call, infos)
    if ndim == -1:
        return TensorStructInfo(None, dtype)
    axis = axis_of(call, call.attrs.axis or 0, ndim + 1)
    known = next((i.dims for i in infos if i.dims is not None), None)
    if known is None:
        return tensor_of(None, dtype, ndim + 1)
    for k, info in enumerate(infos[1:], 2):
        dims = info.dims or ()
        for a, b in zip(known, dims):
            need_same(call, a, b, lambda k=k, dims=dims: (
                f"tensor 1 has shape {show_shape(known)} and tensor {k} {show_shape(dims)}: "
                "only tensors of one shape are stacked"))
    return tensor_of([*known[:axis], as_dim(len(infos)), *known[axis:]], dtype)


@operator("relax.stack", _infer_stack)
def stack(tensors: Tensors, axis: Whole | None = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    return topi.stack(tensors, axis or 0)


def _cuts(value: Any) -> Any:
    return tuple(map(plain_int, value)) if isinstance(value, (tuple, list)) else plain_int(value)


Cuts = Annotated[Any, Kind(_cuts)]
Indexing = Annotated[str, Kind(lambda value: value or "ij")]


def _infer_split(call: Call, info: TensorStructInfo) -> StructInfo:
    cuts = call.attrs.indices_or_sections
    count = len(cuts) + 1 if isinstance(cuts, tuple) else cuts
    if not 1 <= count <= limits.RESULTS:
        raise misfit(call, f"x cannot be split into {count} pieces (1 to {limits.RESULTS} are "
                     "possible)")
    unknown, dims = TensorStructInfo(None, info.dtype, ndim=info.ndim), info.dims
    if dims is None:
        return TupleStructInfo([unknown] * count)
    axis = axis_of(call, call.attrs.axis, info.ndim)
    dim, analyzer = dims[axis], Analyzer()

    def piece(extent: Any) -> StructInfo:
        return tensor_of([*dims[:axis], analyzer.simplify(extent), *dims[axis + 1:]], info.dtype)

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


def _split(bb: Any, call: Call) -> Expr:
    axis, cuts = call.attrs.axis, call.attrs.indices_or_sections
    info = call.args[0].struct_info
    if not isinstance(cuts, tuple):  # where each piece begins: all have one size but the last
        pieces: Any = call.struct_info
        size = pieces.fields_[0].dims[axis % info.ndim]
        cuts = tuple(utils.simplify(size * k) for k in range(1, cuts))

    def split(x: Any, indices: Any) -> Any:
        pieces = topi.split(x, indices, axis)
        return pieces if len(pieces) > 1 else pieces[0]

    if not cuts:  # one piece: the whole, still as a tuple
        return Tuple([call.args[0]])
    return bb.call_te(split, call.args[0], list(cuts))


@operator("relax.split", _infer_split, legalize=_split, layout="along", precision="follow")
def split(x: Tensor, indices_or_sections: Cuts, axis: Whole = 0) -> Any:
    """Pieces of x along `axis`: so many of one size, or cut at the indices."""


def _infer_tile(call: Call, info: TensorStructInfo) -> StructInfo:
    repeats = call.attrs.repeats
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


@operator("relax.tile", _infer_tile)
def tile(data: Tensor, repeats: Ints) -> Tensor:
    """data repeated as a whole, `repeats[k]` times along each dimension."""
    return topi.tile(data, repeats)


def _infer_repeat(call: Call, info: TensorStructInfo) -> StructInfo:
    times, axis = call.attrs.repeats, call.attrs.axis
    if times < 0:
        raise misfit(call, f"repeats is {times}, it cannot be negative")
    if axis is None:
        return tensor_of(None if info.dims is None else [
            O.mul(product(info.dims), as_dim(times))], info.dtype, 1)
    if info.ndim == -1:
        return info
    axis = axis_of(call, axis, info.ndim)
    if info.dims is None:
        return tensor_of(None, info.dtype, info.ndim)
    dims = list(info.dims)
    dims[axis] = O.mul(dims[axis], as_dim(times))
    return tensor_of(dims, info.dtype)


@operator("relax.repeat", _infer_repeat)
def repeat(data: Tensor, repeats: Whole, axis: Whole | None = None) -> Tensor:
    """Each element `repeats` times along `axis` (of the flattened tensor for None)."""
    if axis is None:
        data, axis = topi.reshape(data, (-1,)), 0
    return topi.repeat(data, repeats, axis)


@operator("relax.flip", like_first)
def flip(data: Tensor, axis: Axis) -> Tensor:
    """The elements in reverse order along `axis`."""
    return topi.flip(data, axis)


def _infer_meshgrid(call: Call, infos: tuple[TensorStructInfo, ...]) -> StructInfo:
    dtype = _one_dtype(call, infos)
    if call.attrs.indexing not in ("ij", "xy"):
        raise misfit(call, f"indexing is ij or xy, not {call.attrs.indexing!r}")
    for k, info in enumerate(infos, 1):
        if info.ndim > 1:
            raise misfit(call, f"tensor {k} is {show(info)}, it must be a vector")
    shapes = dims_of(infos)
    dims = None if shapes is None else [shape[0] if shape else _ONE for shape in shapes]
    if dims is not None and call.attrs.indexing == "xy" and len(dims) > 1:
        dims[0], dims[1] = dims[1], dims[0]
    return TupleStructInfo([tensor_of(dims, dtype, len(infos))] * len(infos))


def _meshgrid(bb: Any, call: Call) -> Expr:
    def meshgrid(xs: Any) -> Any:
        grids = topi.meshgrid(xs, call.attrs.indexing)
        return grids if len(grids) > 1 else grids[0]

    made = bb.call_te(meshgrid, *call.args)
    return made if len(call.args[0].struct_info.fields_) > 1 else Tuple([bb.emit(made)])


@operator("relax.meshgrid", _infer_meshgrid, legalize=_meshgrid)
def meshgrid(tensors: Tensors, indexing: Indexing = "ij") -> Any:
    """Coordinate grids of vectors."""


def _index_map(value: Any) -> Any:
    if callable(value) and not hasattr(value, "initial_indices"):
        from ...tir import IndexMap

        return IndexMap.from_func(value, index_dtype="int64")
    if not hasattr(value, "initial_indices"):
        raise TypeError(f"index_map must be an IndexMap or a function, it is {value!r}")
    return value


Mapping = Annotated[Any, Kind(_index_map)]
Filler = Annotated[Any, Kind(prim_arg)]


def _infer_layout_transform(call: Call, info: TensorStructInfo) -> StructInfo:
    mapping = call.attrs.index_map
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


def _layout_transform(bb: Any, call: Call) -> Expr:
    index_map = call.attrs.index_map
    value = prim(call.attrs.pad_value) if call.attrs.pad_value is not None else 0
    shape = list(info_of(call).dims or ())
    source = list(call.args[0].struct_info.dims)

    def layout_transform(x: Any) -> Any:
        back, outside = padded_inverse(index_map, source)

        def element(*i: Any) -> Any:
            table = dict(zip(back.initial_indices, i))
            read = x(*[substitute(e, table) for e in back.final_indices])
            if O.is_const_int(outside, 0):
                return read
            return O.if_then_else(substitute(outside, table), O.const(value, x.dtype), read)

        return te.compute(shape, element, name="te_layout_transform", tag="injective")

    return bb.call_te(layout_transform, call.args[0], primfunc_name_hint="te_layout_transform")


@operator("relax.layout_transform", _infer_layout_transform, legalize=_layout_transform)
def layout_transform(x: Tensor, index_map: Mapping, pad_value: Filler | None = None) -> Tensor:
    """The elements rearranged by an index map, as the schedule's transform_layout."""
