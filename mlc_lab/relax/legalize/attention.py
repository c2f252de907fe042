"""Rows of attention: products, a softmax and a mask, which are legalised in turn.

As separate operators each of them gets the schedule its shape asks for.
"""

from __future__ import annotations

import math
from typing import Any

from ... import te
from ...tir import op as O
from ...topi.utils import sum_type
from ..expr import Call, Expr, const
from .common import legalize


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
    from ..op.elementwise import add, astype, multiply
    from ..op.linear_algebra import matmul
    from ..op.manipulate import permute_dims
    from ..op.nn import softmax

    query, key, value = call.args[:3]
    a = call.attrs
    dtype = query.struct_info.dtype
    wide = sum_type(dtype)  # in which the scores stay until they are weights

    def typed(x: Expr, wanted: str) -> Expr:
        return x if x.struct_info.dtype == wanted else bb.emit(astype(x, wanted))

    def scaled(x: Expr) -> Expr:
        size, scale = query.struct_info.dims[3], a.scale
        if scale is None and O.as_int(size) is None:  # a size that only the run knows
            def by_size(x: Any, size: Any) -> Any:
                root = O.sqrt(O.cast(size, "float32"))
                return te.compute(x.shape, lambda *i: x(*i) * O.cast(1 / root, x.dtype),
                                  name="T_scaled", tag="elemwise")

            return bb.emit_te(by_size, x, size)
        scale = 1 / math.sqrt(O.as_int(size)) if scale is None else scale
        return bb.emit(multiply(x, const(scale, x.struct_info.dtype)))

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
    return permute_dims(bb.emit(matmul(weights, v)), [0, 2, 1, 3])


legalize("nn.attention")(_attention)
legalize("nn.attention_bias")(_attention)
