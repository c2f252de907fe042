"""The dot product of a thread of AMD's GPUs."""

from __future__ import annotations

from ...tir.function import TensorIntrin
from .dot_product import dot_product_of_one

AMDGPU_SDOT4_INTRIN = "sdot4"

TensorIntrin.register(AMDGPU_SDOT4_INTRIN, *dot_product_of_one("int8", "int8", "int32"))

__all__ = ["AMDGPU_SDOT4_INTRIN"]
