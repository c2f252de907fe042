"""Dot products of the size of a vector register of AVX-512."""

from __future__ import annotations

from ...tir.function import TensorIntrin
from .dot_product import dot_product

VNNI_DOT_16x4_INTRIN = "dot_16x4_vnni"
AVX512_DOT_16x4_INTRIN = "dot_16x4_avx512"

_pair = dot_product(16, 4, "uint8", "int8", "int32")
dot_product_16x4_u8i8i32_desc = _pair[0]
TensorIntrin.register(VNNI_DOT_16x4_INTRIN, *_pair)
TensorIntrin.register(AVX512_DOT_16x4_INTRIN, *_pair)

__all__ = ["AVX512_DOT_16x4_INTRIN", "VNNI_DOT_16x4_INTRIN", "dot_product_16x4_u8i8i32_desc"]
