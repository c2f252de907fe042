"""Sorting and searching: sort, argsort, topk, bucketize, nonzero, unique, and drawing by chance."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from ...ir.dtype import is_integer
from ...tir import expr as E
from ...tir import op as O
from ..expr import Call, Expr, ExternFunc, PrimValue
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo, as_dim
from .common import (
    axis_of, dim_text, join_dtype, like, misfit, need_at_least, need_ndim, need_same, show,
    tensor_of, whole,
)
from .declare import (
    Axis, Flag, FloatTensor, IntegerTensor, Kind, Scalar, Tensor, Text, Whole, any_info,
    like_first, operator,
)
from .later import te, topi


@operator("relax.sort", like_first)
def sort(x: Tensor, axis: Axis = -1, descending: Flag = False) -> Tensor:
    """The elements in order along `axis`."""
    return topi.sort(x, axis, not descending)


def _holds_places(call: Call, info: TensorStructInfo) -> None:
    """Refuse a dtype that has no numbers for all places of a dimension."""
    dtype = call.attrs.dtype
    size = info.dims[call.attrs.axis % info.ndim] if info.dims else None
    size = size.value if type(size) is E.IntImm else 0
    if not (is_integer(dtype) or dtype in ("float32", "float64")):
        raise misfit(call, f"places are whole numbers, and dtype is {dtype}")
    if is_integer(dtype) and size > np.iinfo(dtype).max + 1:
        raise misfit(call, f"{dtype} has no numbers for the {size} places of the dimension: use "
                           "int32 or int64")


def _infer_argsort(call: Call, data: TensorStructInfo) -> StructInfo:
    _holds_places(call, data)
    return like(data, call.attrs.dtype)


@operator("relax.argsort", _infer_argsort)
def argsort(data: Tensor, axis: Axis = -1, descending: Flag = False,
            dtype: Text = "int32") -> Tensor:
    """The indices that sort along `axis`."""
    return topi.argsort(data, None, axis, not descending, dtype)


def _infer_topk(call: Call, info: TensorStructInfo) -> StructInfo:
    attrs = call.attrs
    if attrs.ret_type != "values":
        _holds_places(call, info)
    if info.dims is None:
        values = TensorStructInfo(None, info.dtype, ndim=info.ndim)
    else:
        dims = list(info.dims)
        axis = attrs.axis % info.ndim
        if attrs.k > 0:
            need_at_least(call, dims[axis], as_dim(attrs.k), lambda: (
                f"data is {show(info)}: k is {attrs.k}, and dimension {axis} has "
                f"{dim_text(dims[axis])} element(s); take a smaller k, or 0 for all"))
            dims[axis] = as_dim(attrs.k)
        values = tensor_of(dims, info.dtype)
    indices = like(values, attrs.dtype)
    kinds = {"both": TupleStructInfo([values, indices]), "values": values, "indices": indices}
    if attrs.ret_type not in kinds:
        raise misfit(call, f"ret_type is both, values or indices, not {attrs.ret_type!r}")
    return kinds[attrs.ret_type]


@operator("relax.topk", _infer_topk)
def topk(data: Tensor, k: Whole = 1, axis: Axis = -1, ret_type: Text = "both",
         largest: Flag = True, dtype: Text = "int32") -> Any:
    """The k largest (or smallest) along `axis`, all of them for k < 1, in order.

    ret_type is both, values or indices. More than there are cannot be taken: an error, where the
    extent of `axis` is symbolic at run time.
    """
    return topi.topk(data, k, axis, ret_type, not largest, dtype)


def _infer_bucketize(call: Call, x: TensorStructInfo, edges: TensorStructInfo) -> StructInfo:
    need_ndim(call, edges, 1, "boundaries")
    join_dtype(call, x.dtype, edges.dtype, ("input_tensor", "boundaries"))
    return like(x, "int32" if call.attrs.out_int32 else "int64")


@operator("relax.bucketize", _infer_bucketize)
def bucketize(input_tensor: Tensor, boundaries: Tensor, out_int32: Flag = False,
              right: Flag = False) -> Tensor:
    """The index of the bucket each element falls into."""
    return topi.searchsorted(boundaries, input_tensor, right, "int32" if out_int32 else "int64")


def _infer_nonzero(call: Call, x: TensorStructInfo) -> StructInfo:
    return TensorStructInfo(None, "int64", ndim=2)


def _found_by(name: str) -> Any:
    """A call of a function of the virtual machine (`relax/vm/searching.py`)."""
    return lambda bb, call: Call(ExternFunc(name), call.args, None, [call.struct_info])


@operator("relax.nonzero", _infer_nonzero, legalize=_found_by("relax.run.nonzero"),
          any_shape=True)
def nonzero(x: Tensor) -> Tensor:
    """The indices of elements that are not 0: [ndim, count], count known at run time."""


def _infer_unique(call: Call, info: TensorStructInfo, *rest: StructInfo) -> StructInfo:
    ndim = 1 if len(call.args) == 5 else info.ndim
    names = ("sorted", "return_index", "return_inverse", "return_counts", "axis")
    for name, arg in zip(names, call.args[1:]):
        if not isinstance(arg, PrimValue) or type(arg.value) is not E.IntImm:
            raise misfit(call, f"{name} must be a constant")
    if len(call.args) == 6 and info.ndim != -1:
        axis_of(call, call.args[5].value.value, info.ndim)
    out: list[StructInfo] = [TensorStructInfo(None, info.dtype, ndim=ndim)]
    for flag in call.args[2:5]:
        if flag.value.value:
            out.append(TensorStructInfo(None, "int64", ndim=1))
    return out[0] if len(out) == 1 else TupleStructInfo(out)


#: a flag as an argument
Choice = Annotated[Any, Kind(lambda value: value if isinstance(value, Expr) else PrimValue(
    E.IntImm("int64", whole("a flag", value))), any_info)]


@operator("relax.unique", _infer_unique, legalize=_found_by("relax.run.unique"), any_shape=True)
def unique(x: Tensor, sorted: Choice = True, return_index: Choice = False,
           return_inverse: Choice = False, return_counts: Choice = False,
           axis: Scalar | None = None) -> Any:
    """The distinct elements, as numpy.unique; how many is known at run time."""


def _infer_multinomial(call: Call, prob: TensorStructInfo, sample: TensorStructInfo,
                       *given: TensorStructInfo) -> StructInfo:
    for name, info in (("prob", prob), ("uniform_sample", sample)):
        need_ndim(call, info, 2, name)
    join_dtype(call, prob.dtype, sample.dtype, ("prob", "uniform_sample"))
    rows, first = prob, "prob"
    if given:
        rows, first = given[0], "sample_indices"
        need_ndim(call, rows, 2, first)
        if rows.dims is not None:
            need_same(call, rows.dims[1], as_dim(1), lambda: (
                f"sample_indices is {show(rows)}, it must have shape (n, 1)"))
    if rows.dims is not None and sample.dims is not None:
        need_same(call, rows.dims[0], sample.dims[0], lambda: (
            f"{first} is {show(rows)} and uniform_sample is {show(sample)}: they must have one "
            "number of rows"))
    return like(sample, call.attrs.dtype)


@operator("relax.multinomial_from_uniform", _infer_multinomial)
def multinomial_from_uniform(prob: FloatTensor, uniform_sample: FloatTensor,
                             sample_indices: IntegerTensor | None = None,
                             dtype: Text = "int64") -> Tensor:
    """Indices drawn by probability from uniform samples.

    How many running totals of the probabilities a sample reaches is the class it falls into.
    """
    total, classes = topi.cumsum(prob, 1), prob.shape[1]
    k = te.reduce_axis((0, classes), "k")

    def passed(i: Any, j: Any) -> Any:
        row = i if sample_indices is None else O.cast(sample_indices(i, 0), total.shape[0].dtype)
        return te.sum(O.cast(O.greater_equal(uniform_sample(i, j), total(row, k)), dtype), axis=k)

    count = te.compute(uniform_sample.shape, passed, name="passed")
    last = O.cast(classes - 1, dtype)
    return te.compute(uniform_sample.shape, lambda *i: O.min_value_of(count(*i), last),
                      name="chosen")
