"""Attention: products, a softmax and a mask, which are legalised in turn.

As separate operators each of them gets the schedule its shape asks for.
"""

from __future__ import annotations

import math
from typing import Any

from ...tir import op as O
from ..expr import Call, Expr, as_expr, const
from ..struct_info import StructInfo, TensorStructInfo
from .common import (
    dims_of, info_of, join_dtype, need_fill, need_float, need_ndim, need_same, one_of, real, show,
    tensor_info, tensor_of, whole,
)
from .declare import constructor
from .elementwise import add, astype, equal, multiply, where
from .later import te, utils
from .linear_algebra import matmul
from .nn import softmax
from .reduction import max
from .registry import make_call
from .reshaping import permute_dims


def _infer_attention(call: Call) -> StructInfo:
    names = ("query", "key", "value")
    infos = [tensor_info(call, k, n) for k, n in enumerate(names)]
    q, k, v = infos
    one_of(call, "causal_mask", call.attrs.causal_mask, (None, "TopLeft", "BottomRight"))
    need_float(call, q, "query")
    for info, name in zip(infos, names):
        need_ndim(call, info, 4, name)
        join_dtype(call, q.dtype, info.dtype, ("query", name))
    bias = tensor_info(call, 3, "bias") if len(call.args) > 3 else None
    if bias is not None:
        need_ndim(call, bias, 4, "bias")
        join_dtype(call, q.dtype, bias.dtype, ("query", "bias"))
    dims = dims_of(infos)
    if dims is None:
        return TensorStructInfo(None, q.dtype, ndim=4)
    of_query, of_key, of_value = dims
    for dim, at in ((0, 1), (2, 1), (3, 1), (0, 2), (2, 2)):
        need_same(call, of_query[dim], dims[at][dim], lambda dim=dim, at=at: (
            f"query is {show(q)} and {names[at]} is {show(infos[at])}: dimension {dim} must "
            "agree"))
    need_same(call, of_key[1], of_value[1], lambda: (
        f"key is {show(k)} and value is {show(v)}: dimension 1 must agree"))
    if bias is not None and bias.dims is not None:
        wanted = (of_query[0], of_query[2], of_query[1], of_key[1])
        need_fill(call, bias, wanted, "bias")
    return tensor_of([*of_query[:3], of_value[3]], q.dtype)


def _masked(bb: Any, scores: Expr, mask: str | None, window: int | None) -> Expr:
    """Scores whose key comes after their query (or too long before it) as minus infinity.

    "TopLeft" counts queries and keys from their beginnings, "BottomRight" from their ends.
    """
    def causal_mask(x: Any) -> Any:
        queries, keys = x.shape[-2:]
        shift = keys - queries if mask == "BottomRight" else O.const(0, keys.dtype)

        def element(*i: Any) -> Any:
            here = i[-2] + shift
            kept = O.less_equal(i[-1], here) if mask else O.const(True, "bool")
            if window is not None:
                kept = O.logical_and(kept, O.less(here - i[-1], O.const(window, keys.dtype)))
            return O.if_then_else(kept, x(*i), O.const(-math.inf, x.dtype))

        return te.compute(x.shape, element, name="T_causal_mask", tag="injective")

    return bb.call_te(causal_mask, scores)


def _attention(bb: Any, call: Call) -> Expr:
    query, key, value = call.args[:3]
    a = call.attrs
    dtype = query.struct_info.dtype
    wide = utils.sum_type(dtype)  # in which the scores stay until they are weights

    def typed(x: Expr, wanted: str) -> Expr:
        return x if info_of(x).dtype == wanted else bb.emit(astype(x, wanted))

    def scaled(x: Expr) -> Expr:
        size, scale = query.struct_info.dims[3], a.scale
        length = O.as_int(size)
        if scale is None and length is None:  # a size that only the run knows
            def by_size(x: Any, size: Any) -> Any:
                root = O.sqrt(O.cast(size, "float32"))
                return te.compute(x.shape, lambda *i: x(*i) * O.cast(1 / root, x.dtype),
                                  name="T_scaled", tag="elemwise")

            return bb.emit_te(by_size, x, size)
        scale = 1 / math.sqrt(length) if scale is None and length is not None else scale
        return bb.emit(multiply(x, const(scale, info_of(x).dtype)))

    head = query
    if wide == dtype:
        head = scaled(query)
    q = bb.emit(permute_dims(head, [0, 2, 1, 3]))
    k = bb.emit(permute_dims(key, [0, 2, 3, 1]))
    v = bb.emit(permute_dims(value, [0, 2, 1, 3]))
    scores = bb.emit(matmul(q, k, None if wide == dtype else wide))
    if wide != dtype:
        scores = scaled(scores)
    if len(call.args) > 3:
        scores = bb.emit(add(scores, typed(call.args[3], wide)))
    if a.causal_mask or a.window_size is not None:
        scores = bb.emit(_masked(bb, scores, a.causal_mask, a.window_size))
    weights = typed(bb.emit(softmax(scores, -1)), dtype)
    out = bb.emit(matmul(weights, v))
    if _may_be_blind(call):
        most = bb.emit(max(scores, [3], True))
        blind = bb.emit(equal(most, const(-math.inf, wide)))
        out = bb.emit(where(blind, const(0, dtype), out))
    return permute_dims(out, [0, 2, 1, 3])


def _may_be_blind(call: Call) -> bool:
    """Whether a mask may let a query look at nothing."""
    if len(call.args) > 3 or call.attrs.window_size is not None:
        return True
    queries, keys = (O.as_int(dims[1]) if dims else None for dims in (
        info_of(t).dims for t in call.args[:2]))
    return call.attrs.causal_mask == "BottomRight" and (
        queries is None or keys is None or queries > keys)


@constructor("relax.nn.attention", _infer_attention, legalize=_attention)
@constructor("relax.nn.attention_bias", _infer_attention, legalize=_attention)
def attention(query: Any, key: Any, value: Any, bias: Any = None, scale: Any = None,
              causal_mask: str | None = None, window_size: int | None = None) -> Expr:
    """softmax(query @ key.T * scale + bias) @ value on [batch, length, heads, head size].

    `scale` is 1/sqrt(head size) where it is not given; `causal_mask` is "TopLeft", "BottomRight"
    or None. A query that may look at nothing (its row of scores is -inf) gets zeros.
    """
    args = tuple(map(as_expr, (query, key, value)))
    attrs = {"scale": None if scale is None else real("scale", scale),
             "causal_mask": causal_mask,
             "window_size": None if window_size is None else whole("window_size", window_size)}
    if bias is not None:
        return make_call("relax.nn.attention_bias", (*args, as_expr(bias)), attrs)
    return make_call("relax.nn.attention", args, attrs)
