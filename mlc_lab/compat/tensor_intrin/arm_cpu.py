"""Dot products of the size of a vector register of Arm's processors."""

from __future__ import annotations

from ...tir.function import TensorIntrin
from .dot_product import (
    DP4A_S8S8S32_INTRIN,
    DP4A_S8U8S32_INTRIN,
    DP4A_U8S8S32_INTRIN,
    DP4A_U8U8U32_INTRIN,
    dot_product,
)

ARM_DOT_4x4_i8_NEON_INTRIN = "dot_4x4_i8i8s32_neon"
ARM_DOT_4x4_i8_SDOT_INTRIN = "dot_4x4_i8i8s32_sdot"
ARM_DOT_4x4_u8_UDOT_INTRIN = "dot_4x4_u8u8u32_udot"
ARM_DOT_4x4_u8_HDOT_INTRIN = "dot_4x4_u8u8i32_hdot"

_signed = dot_product(4, 4, "int8", "int8", "int32")
neon_4x4_i8i8i32_desc = _signed[0]
TensorIntrin.register(ARM_DOT_4x4_i8_NEON_INTRIN, *_signed)
TensorIntrin.register(ARM_DOT_4x4_i8_SDOT_INTRIN, *_signed)
TensorIntrin.register(ARM_DOT_4x4_u8_UDOT_INTRIN, *dot_product(4, 4, "uint8", "uint8", "uint32"))
TensorIntrin.register(ARM_DOT_4x4_u8_HDOT_INTRIN, *dot_product(4, 4, "uint8", "uint8", "int32"))

__all__ = ["ARM_DOT_4x4_i8_NEON_INTRIN", "ARM_DOT_4x4_i8_SDOT_INTRIN",
           "ARM_DOT_4x4_u8_HDOT_INTRIN", "ARM_DOT_4x4_u8_UDOT_INTRIN", "DP4A_S8S8S32_INTRIN",
           "DP4A_S8U8S32_INTRIN", "DP4A_U8S8S32_INTRIN", "DP4A_U8U8U32_INTRIN",
           "neon_4x4_i8i8i32_desc"]
