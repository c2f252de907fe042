"""Rotary positions (RoPE): features of queries and keys are turned by angles that grow with the
position, so that their product depends on how far they stand apart.

A function of frequencies takes the position `s`, the feature `d`, the number of features that are
turned, and theta; it gives the cosine and the sine of the angle, and values of variables in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..... import te, tir
from .....tir import PrimFunc
from .....tir import op as O
from ..calls import tensor_ir_op
from ..tensor import Tensor

#: cosine, sine, and the values of variables in them, those that need others first
Turn = tuple[Any, Any, dict[tir.Var, Any]]


def _divisor(d: Any, d_range: int, theta: float) -> Any:
    return O.power(O.const(theta, "float32"),
                   O.cast(O.floormod(d * 2, d_range), "float32") / O.const(d_range, "float32"))


def _turn(angle: Any, dtype: str, name: str = "freq", factor: float = 1.0) -> Turn:
    var = tir.Var(name, "float32")
    cos, sin = O.cos(var), O.sin(var)
    if factor != 1.0:
        cos, sin = cos * O.const(factor, "float32"), sin * O.const(factor, "float32")
    return O.cast(cos, dtype), O.cast(sin, dtype), {var: O.cast(angle, "float32")}


def rope_freq_default(s: Any, d: Any, d_range: int, theta: float, dtype: str) -> Turn:
    """The angle s / theta^(2d/d_range)."""
    return _turn(O.cast(s, "float32") / _divisor(d, d_range, theta), dtype)


def rope_freq_llama3(s: Any, d: Any, d_range: int, theta: float, dtype: str, factor: float,
                     low_freq_factor: float, high_freq_factor: float,
                     original_max_position_embeddings: float) -> Turn:
    """As LLaMA 3 does: what turns slowly turns slower by `factor`, what turns fast as before."""
    inverse = tir.Var("orig_freq", "float32")
    span = high_freq_factor - low_freq_factor
    turns = inverse * O.const(original_max_position_embeddings / (2 * math.pi), "float32")
    smooth = O.max(O.const(0.0, "float32"), O.min(
        O.const(1.0, "float32"),
        (turns - O.const(low_freq_factor, "float32")) / O.const(span, "float32")))
    smoothed = (1.0 - smooth) * inverse / O.const(factor, "float32") + smooth * inverse
    cos, sin, values = _turn(O.cast(s, "float32") * smoothed, dtype, "smoothed_freq")
    return cos, sin, {**values, inverse: O.const(1.0, "float32") / _divisor(d, d_range, theta)}


def rope_freq_longrope(s: Any, d: Any, d_range: int, theta: float, dtype: str,
                       max_position_embeddings: int, original_max_position_embeddings: int,
                       ext_factors: Any = None) -> Turn:
    """As LongRoPE does: each pair of features has a divisor of its own, and all are scaled."""
    scale = max_position_embeddings / original_max_position_embeddings
    factor = math.sqrt(1 + math.log(scale) / math.log(original_max_position_embeddings)) if (
        scale > 1.0) else 1.0
    divisor = _divisor(d, d_range, theta)
    if ext_factors is not None:
        divisor = ext_factors[O.floormod(d, d_range // 2)] * divisor
    return _turn(O.cast(s, "float32") / divisor, dtype, factor=factor)


def switch_rope_freq_func(rope_scaling: Mapping[str, Any]) -> Callable[..., Turn]:
    """The function of frequencies of a kind of scaling, as models' configurations say it.

    Raises ValueError for a kind that is not known.
    """
    kind = rope_scaling.get("rope_type")
    if kind is None:
        return rope_freq_default
    if kind == "llama3":
        return partial(rope_freq_llama3, **{name: rope_scaling[name] for name in (
            "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")})
    if kind == "longrope":
        return partial(rope_freq_longrope, **{name: rope_scaling[name] for name in (
            "max_position_embeddings", "original_max_position_embeddings")})
    raise ValueError(f"rope_type {kind!r} is not known: there are llama3, longrope, and none")


def _turned(x: Callable[[Any], Any], d: Any, position: Any, rotary_dim: int, theta: float,
            dtype: str, frequency: Callable[..., Turn]) -> Any:
    """Feature d of a head, turned by its position; `x(d)` is the feature before."""
    cos, sin, values = frequency(position, d, rotary_dim, theta, "float32")
    half = rotary_dim // 2
    other = O.if_then_else(d < half, -x(d + half), x(d - half))
    done = O.cast(cos * O.cast(x(d), "float32") + sin * O.cast(other, "float32"), dtype)
    for var, value in values.items():
        done = tir.Let(var, value, done)
    return O.if_then_else(d < rotary_dim, done, x(d))


def _parts(qkv: te.Tensor, num_q: int, num_kv: int, turned: Callable[..., Any]) -> list[te.Tensor]:
    """Queries, keys and values of a fused tensor; `turned(head, feature, *tokens)` is an element of
    the first two. The last two dimensions are the heads and the features."""
    lead, features = qkv.shape[:-2], qkv.shape[-1]
    return [
        te.compute((*lead, num_q, features), lambda *i: turned(i[-2], i[-1], *i[:-2]), "q"),
        te.compute((*lead, num_kv, features),
                   lambda *i: turned(i[-2] + num_q, i[-1], *i[:-2]), "k"),
        te.compute((*lead, num_kv, features),
                   lambda *i: qkv(*i[:-2], i[-2] + num_q + num_kv, i[-1]), "v"),
    ]


def llama_rope(qkv: Tensor, total_seq_len: Any, theta: float, scale: float, num_q_heads: int,
               num_kv_heads: int, rope_scaling: Mapping[str, Any], rotary_dim: int | None = None
               ) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of a fused tensor, the first two turned by their positions.

    `qkv` is (batch, tokens, num_q_heads + 2 * num_kv_heads, features); the last token stands at
    `total_seq_len - 1`. The first `rotary_dim` features are turned, by default all.
    """
    batch, tokens, heads, features = qkv.shape
    if heads != num_q_heads + 2 * num_kv_heads:
        raise ValueError(f"qkv has {heads} heads, and {num_q_heads} of queries with twice "
                         f"{num_kv_heads} make {num_q_heads + 2 * num_kv_heads}")
    dtype, size = qkv.dtype, rotary_dim or features
    b, s, total = (tir.Var(name, "int64") for name in ("batch_size", "seq_len", "total_seq_len"))
    fused = te.placeholder((b, s, heads, features), dtype, "qkv")
    frequency = switch_rope_freq_func(rope_scaling)

    def turned(head: Any, feature: Any, row: Any, token: Any) -> Any:
        position = O.cast(token + total - s, "float32") * O.const(scale, "float32")
        return _turned(lambda d: fused(row, token, head, d), feature, position, size, theta, dtype,
                       frequency)

    parts = _parts(fused, num_q_heads, num_kv_heads, turned)
    func = te.create_prim_func([fused, *parts, total]).without_attr("global_symbol")
    outs = [Tensor.placeholder((batch, tokens, count, features), dtype)
            for count in (num_q_heads, num_kv_heads, num_kv_heads)]
    return tensor_ir_op(func, "llama_rope", [qkv, total_seq_len], outs)


def llama_rope_with_position_map(theta: float, scale: float, head_dim: int, num_q_heads: int,
                                 num_kv_heads: int, dtype: str, rope_scaling: Mapping[str, Any],
                                 rotary_dim: int | None = None) -> PrimFunc:
    """The kernel (qkv, position_map, q, k, v, apply_rope) that turns each token by the position
    that is said of it; with LongRoPE the last parameter is the divisors' factors, (head_dim / 2,).

    `qkv` is (tokens, num_q_heads + 2 * num_kv_heads, head_dim), the positions are int32.
    """
    size, heads = rotary_dim or head_dim, num_q_heads + 2 * num_kv_heads
    tokens = tir.Var("seq_len", "int64")
    fused = te.placeholder((tokens, heads, head_dim), dtype, "qkv")
    positions = te.placeholder((tokens,), "int32", "position_map")
    frequency = switch_rope_freq_func(rope_scaling)
    long = rope_scaling.get("rope_type") == "longrope"
    last: Any = tir.Var("apply_rope", "int32")
    if long:
        last = te.placeholder((head_dim // 2,), "float32", "ext_factors")
        frequency = partial(frequency, ext_factors=last)

    def turned(head: Any, feature: Any, token: Any) -> Any:
        position = O.cast(positions(token), "float32") * O.const(scale, "float32")
        done = _turned(lambda d: fused(token, head, d), feature, position, size, theta, dtype,
                       frequency)
        return done if long else O.if_then_else(last > 0, done, fused(token, head, feature))

    parts = _parts(fused, num_q_heads, num_kv_heads, turned)
    return te.create_prim_func([fused, positions, *parts, last])


__all__ = ["llama_rope", "llama_rope_with_position_map", "rope_freq_default", "rope_freq_llama3",
           "rope_freq_longrope", "switch_rope_freq_func"]
