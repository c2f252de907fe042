"""Rows of attention: products, a softmax and a mask, which are legalised in turn.

As separate operators each of them gets the schedule its shape asks for.
"""

from __future__ import annotations

import math
from typing import Any

from ... import te
from ...tir import op as O
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
            return O.if_then_else(kept, x(*i), O.const(-math.inf, x.dtype) if x.dtype != (
                "float16") else O.min_value(x.dtype))

        return te.compute(x.shape, element, name="T_causal_mask", tag="injective")

    return bb.call_te(causal_mask, scores)


def _attention(bb: Any, call: Call) -> Expr:
    from ..op.elementwise import add, multiply
    from ..op.linear_algebra import matmul
    from ..op.manipulate import permute_dims
    from ..op.nn import softmax

    query, key, value = call.args[:3]
    a = call.attrs
    if a.causal_mask not in (None, "TopLeft", "BottomRight"):
        raise ValueError(f'attention: causal_mask "{a.causal_mask}" is none of "TopLeft", '
                         '"BottomRight"')
    scale = a.scale
    if scale is None:
        scale = 1 / math.sqrt(O.as_int(query.struct_info.dims[3]))
    scaled = bb.emit(multiply(query, const(scale, query.struct_info.dtype)))
    q = bb.emit(permute_dims(scaled, [0, 2, 1, 3]))
    k = bb.emit(permute_dims(key, [0, 2, 3, 1]))
    v = bb.emit(permute_dims(value, [0, 2, 1, 3]))
    scores = bb.emit(matmul(q, k))
    if len(call.args) > 3:
        scores = bb.emit(add(scores, call.args[3]))
    if a.causal_mask or a.window_size is not None:
        scores = bb.emit(_masked(bb, scores, a.causal_mask, a.window_size))
    weights = bb.emit(softmax(scores, -1))
    return permute_dims(bb.emit(matmul(weights, v)), [0, 2, 1, 3])


legalize("nn.attention")(_attention)
legalize("nn.attention_bias")(_attention)
