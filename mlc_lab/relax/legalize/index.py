"""Rows of indexing, scattering, sorting and choosing."""

from __future__ import annotations

from typing import Any

from ... import te, topi
from ...tir import op as O
from ...tir.expr import Var
from ...topi.indexing import kept_inside
from ...topi.transform import injective
from ...topi.utils import number
from ..expr import Call, Expr, ShapeExpr
from ..op.index import slice_start
from ..struct_info import ShapeStructInfo
from .common import attr_row, legalize, prim


@legalize("take")
def _take(bb: Any, call: Call) -> Expr:
    def take(x: Any, indices: Any) -> Any:
        axis, mode = call.attrs.axis, call.attrs.get("mode", "fast")
        # where TVM says nothing of indices outside ("fast"), they must not end the process
        return topi.take(x, indices, 0 if axis is None else axis,
                         mode="numpy" if mode == "fast" else mode)

    return bb.call_te(take, *call.args)


def _numbers(arg: Expr) -> list[Any]:
    return [prim(f) for f in arg.fields_]


@legalize("strided_slice")
def _strided_slice(bb: Any, call: Call) -> Expr:
    x, axes, begin, end = call.args[:4]
    parts = [_numbers(a) for a in (axes, begin, end)]
    strides = _numbers(call.args[4]) if len(call.args) > 4 else None
    out = call.struct_info
    if out.dims is None:
        return call

    def strided_slice(x: Any, axes: Any, begin: Any, end: Any, strides: Any, shape: Any) -> Any:
        if all(O.as_int(d) is not None for d in x.shape):
            return topi.strided_slice(x, begin, end, strides, axes)
        # symbolic bounds: first elements as numpy counts them, sizes as they were inferred
        first, step = {}, {}
        for n, k in enumerate(axes):
            k = k % x.ndim
            step[k] = 1 if strides is None else strides[n]
            first[k] = slice_start(x.shape[k], begin[n], end[n], step[k],
                                   call.attrs.assume_inbound)
        return injective(shape, lambda *i: x(*[
            first[k] + v * step[k] if k in first else v for k, v in enumerate(i)]),
            "T_strided_slice")

    return bb.call_te(strided_slice, x, *parts, strides, out.shape)


@legalize("dynamic_strided_slice")
def _dynamic_strided_slice(bb: Any, call: Call) -> Expr:
    """The sizes are computed first; naming them (match_cast) makes the slice itself a kernel."""
    from ..op.base import tensor_to_shape

    x, begin, end, strides = call.args
    ndim = x.struct_info.ndim

    def shape_func(x: Any, begin: Any, end: Any, strides: Any) -> Any:
        def element(k: Any) -> Any:
            total: Any = O.const(0, "int64")
            for d in reversed(range(ndim)):
                total = O.if_then_else(O.equal(k, d), _extent(x.shape[d], begin, end, strides, d),
                                       total)
            return total

        return te.compute((ndim,), element, name="T_shape_func_strided_slice_dynamic")

    sizes = bb.emit(bb.call_te(shape_func, x, begin, end, strides,
                               primfunc_name_hint="shape_func"))
    shape = bb.emit(tensor_to_shape(sizes))
    names = [Var(f"s{k}" if k else "s", "int64") for k in range(ndim)]
    bb.match_cast(shape, ShapeStructInfo(names))
    return bb.call_te(topi.dynamic_strided_slice, x, begin, end, strides, ShapeExpr(names),
                      primfunc_name_hint="dynamic_strided_slice")


def _extent(size: Any, begin: Any, end: Any, strides: Any, d: int) -> Any:
    """How many elements numpy takes of a dimension."""
    size = O.cast(size, "int64")
    low, high, step = (O.cast(t(d), "int64") for t in (begin, end, strides))
    low = O.if_then_else(low < 0, low + size, low)
    high = O.if_then_else(high < 0, high + size, high)
    floor, top = O.if_then_else(step < 0, -1, 0), O.if_then_else(step < 0, size - 1, size)
    low, high = (O.max_value_of(O.min_value_of(v, top), floor) for v in (low, high))
    up = O.floordiv(high - low - 1, step)  # so that a large step does not wrap around
    down = O.floordiv(low - high - 1, O.const(0, "int64") - step)
    return O.max_value_of(O.if_then_else(step < 0, down, up) + 1, 0)


attr_row("gather_elements", lambda x, i, attrs: topi.gather(x, attrs.axis, i, "numpy"), "gather")
attr_row("scatter_elements", lambda x, i, u, attrs: topi.scatter_elements(
    x, i, u, attrs.axis, attrs.reduction))


@legalize("gather_nd")
def _gather_nd(bb: Any, call: Call) -> Expr:
    def gather_nd(x: Any, indices: Any) -> Any:
        b, depth = call.attrs.batch_dims, number(indices.shape[-1])
        count = indices.ndim - 1
        shape = [*indices.shape[:-1], *x.shape[b + depth:]]

        def element(*i: Any) -> Any:
            at = []
            for d in range(depth):
                at.append(kept_inside(indices(*i[:count], d), x.shape[b + d], "numpy"))
            return x(*i[:b], *at, *i[count:])

        return injective(shape, element, "T_gather_nd")

    return bb.call_te(gather_nd, *call.args)


@legalize("scatter_nd")
def _scatter_nd(bb: Any, call: Call) -> Expr:
    if O.as_int(call.args[1].struct_info.dims[-1]) is None:
        return call  # how long an index vector is must be known

    def scatter_nd(x: Any, indices: Any, updates: Any) -> Any:
        order = [indices.ndim - 1, *range(indices.ndim - 1)]
        return topi.scatter_nd(x, topi.transpose(indices, order), updates, call.attrs.reduction)

    return bb.call_te(scatter_nd, *call.args)


@legalize("slice_scatter")
def _slice_scatter(bb: Any, call: Call) -> Expr:
    x, src, start, end, step = call.args
    return bb.call_te(topi.slice_scatter, x, src, prim(start), prim(end), prim(step),
                      call.attrs.axis)


attr_row("index_tensor", lambda x, indices, attrs: topi.index_tensor(x, indices))
attr_row("index_put", lambda x, indices, values, attrs: topi.index_put(
    x, indices, values, attrs.accumulate))


@legalize("one_hot")
def _one_hot(bb: Any, call: Call) -> Expr:
    indices, on, off = call.args
    return bb.call_te(topi.one_hot, indices, prim(on), prim(off), call.attrs.depth,
                      call.attrs.axis, call.struct_info.dtype)


attr_row("sort", lambda x, attrs: topi.sort(x, attrs.axis, not attrs.descending))
attr_row("argsort", lambda x, attrs: topi.argsort(
    x, None, attrs.axis, not attrs.descending, attrs.dtype))
attr_row("topk", lambda x, attrs: topi.topk(
    x, min(attrs.k, O.as_int(x.shape[attrs.axis])) if O.as_int(x.shape[attrs.axis]) is not None
    else attrs.k, attrs.axis, attrs.ret_type, not attrs.largest, attrs.dtype))
attr_row("bucketize", lambda x, edges, attrs: topi.searchsorted(
    edges, x, attrs.right, "int32" if attrs.out_int32 else "int64"))


@legalize("multinomial_from_uniform")
def _multinomial(bb: Any, call: Call) -> Expr:
    """How many running totals of the probabilities a sample reaches is the class it falls into."""
    def multinomial_from_uniform(prob: Any, sample: Any, rows: Any = None) -> Any:
        total = topi.cumsum(prob, 1)
        classes = prob.shape[1]
        k = te.reduce_axis((0, classes), "k")
        dtype = call.attrs.dtype

        def passed(i: Any, j: Any) -> Any:
            row = O.cast(rows(i, 0), total.shape[0].dtype) if rows is not None else i
            return te.sum(O.cast(O.greater_equal(sample(i, j), total(row, k)), dtype), axis=k)

        count = te.compute(sample.shape, passed, name="passed")
        last = O.cast(classes - 1, dtype)
        return te.compute(sample.shape, lambda *i: O.min_value_of(count(*i), last), name="chosen")

    return bb.call_te(multinomial_from_uniform, *call.args)
