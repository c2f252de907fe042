"""The cache of keys and values as a value of a model written with `nn`.

A method of the model makes the cache, and another one takes it and calls
`attention_with_fused_qkv`. Between the steps the caller says which tokens come: the functions
`vm.builtin.kv_state_add_sequence`, `..._begin_forward`, `..._end_forward` and their like are got by
`tvm.get_global_func`.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from typing import Any

from .... import op as R
from .....tir import IntImm
from ....expr import PrimValue, ShapeExpr, StringImm
from ....struct_info import ObjectStructInfo, TensorStructInfo
from ..tensor import Object, Tensor, emit


class RopeMode(enum.IntEnum):
    """When keys are turned by their positions: not at all, before they are kept, or each time."""

    NONE = 0
    NORMAL = 1
    INLINE = 2


class PagedKVCache(Object):
    """A cache in pages, which sequences of a batch share."""

    def attention_with_fused_qkv(self, layer_id: int, qkv: Tensor, num_qo_heads: int,
                                 attn_score_scaling_factor: float = 1.0) -> Tensor:
        """The attention of the step's tokens to their sequences so far, in a layer.

        `qkv` is (batch, tokens, num_qo_heads + 2 * num_kv_heads, features): its keys and values
        are kept. Gives (batch, tokens, num_qo_heads, features).
        """
        batch, tokens, heads, features = qkv.shape
        flat = qkv.reshape(batch * tokens, heads, features)
        call = R.call_dps_packed(
            "vm.builtin.attention_kv_cache_attention_with_fused_qkv",
            [self._expr, PrimValue(layer_id), PrimValue(attn_score_scaling_factor), flat._expr],
            TensorStructInfo((batch * tokens, num_qo_heads, features), qkv.dtype))
        return Tensor(_expr=emit(call, "attention")).reshape(
            batch, tokens, num_qo_heads, features)

    def get_query_positions(self, total_length: Any) -> Tensor:
        """Where each token of the step stands in its sequence: int32, (total_length,)."""
        call = R.call_pure_packed("vm.builtin.attention_kv_cache_get_query_positions", self._expr,
                                  sinfo_args=TensorStructInfo((total_length,), "int32"))
        return Tensor(_expr=emit(call, "q_positions"))


def is_no_factor(factors: Any) -> bool:
    """Whether these say that LongRoPE is not used: models without it pass zero, as a number or
    `PrimValue`."""
    if isinstance(factors, PrimValue):
        factors = factors.value
    return factors is None or (isinstance(factors, (int, IntImm)) and int(factors) == 0)


class TIRPagedKVCache(PagedKVCache):
    """A cache in memory of the host."""

    def __init__(self, max_batch_size: Any, max_total_seq_len: Any, prefill_chunk_size: Any,
                 page_size: Any, support_sliding_window: Any, layer_partition: ShapeExpr,
                 num_hidden_layers: int, num_attention_heads: int, num_key_value_heads: int,
                 rope_mode: RopeMode, head_dim: int, rope_scale: float, rope_theta: float,
                 rope_scaling: Mapping[str, Any], rope_ext_factors: Any, rotary_dim: int,
                 dtype: str, target: Any = None, name: str = "paged_kv_cache") -> None:
        """The cache for up to `max_batch_size` sequences of `max_total_seq_len` tokens together,
        `prefill_chunk_size` in a step, in pages of `page_size`; these are numbers or variables.

        Keys are turned by `rope_mode`, `rope_scale`, `rope_theta`, `rope_scaling` in their first
        `rotary_dim` features. Where `support_sliding_window` is 1, making the cache is refused.
        Raises NotImplementedError for `rope_ext_factors` other than None or zero.
        """
        if not is_no_factor(rope_ext_factors) or rope_scaling.get("rope_type") == "longrope":
            raise NotImplementedError("a cache turns keys plainly or as llama3 does; for LongRoPE "
                                      "turn them before, by llama_rope_with_position_map, with "
                                      "rope_mode=RopeMode.NONE")
        call = R.call_pure_packed(
            "vm.builtin.paged_attention_kv_cache_create_on_cpu",
            ShapeExpr([max_batch_size, max_total_seq_len, prefill_chunk_size, page_size,
                       support_sliding_window]), layer_partition,
            PrimValue(num_attention_heads), PrimValue(num_key_value_heads), PrimValue(head_dim),
            PrimValue(int(rope_mode)), PrimValue(float(rope_scale)), PrimValue(float(rope_theta)),
            R.zeros((), dtype), StringImm(json.dumps(dict(rope_scaling))), PrimValue(rotary_dim),
            sinfo_args=ObjectStructInfo())
        super().__init__(_expr=call, _name=name)


__all__ = ["PagedKVCache", "RopeMode", "TIRPagedKVCache"]
