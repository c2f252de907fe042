"""Dot products of the size of a vector register of Hexagon."""

from __future__ import annotations

from ...tir.function import TensorIntrin
from .dot_product import dot_product

VRMPY_u8u8i32_INTRIN = "dot_32x4_u8u8i32_vrmpy"
VRMPY_u8i8i32_INTRIN = "dot_32x4_u8i8i32_vrmpy"
VDMPY_i16i16i32_INTRIN = "dot_product_32x2_i16i16i32_vdmpy"

TensorIntrin.register(VRMPY_u8u8i32_INTRIN, *dot_product(32, 4, "uint8", "uint8", "int32"))
TensorIntrin.register(VRMPY_u8i8i32_INTRIN, *dot_product(32, 4, "uint8", "int8", "int32"))
TensorIntrin.register(VDMPY_i16i16i32_INTRIN, *dot_product(32, 2, "int16", "int16", "int32"))

__all__ = ["VDMPY_i16i16i32_INTRIN", "VRMPY_u8i8i32_INTRIN", "VRMPY_u8u8i32_INTRIN"]
