"""The last passes of a program for a GPU: those that only its target's language can ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.transform import Pass
from ...lower.scalarize_vectors import ScalarizeVectors
from ...lower.verify_gpu_code import VerifyGPUCode
from .generator import DIALECTS

if TYPE_CHECKING:
    from ...target import Target


def last_passes(target: Target) -> list[Pass]:
    """VerifyGPUCode and ScalarizeVectors for the language of a target. PTX has CUDA's vectors."""
    dialect = DIALECTS.get(target.kind.name, DIALECTS["cuda"])
    return [VerifyGPUCode(target), ScalarizeVectors(
        dialect.vector_types, dialect.vector_lanes, dialect.aligned_vectors)]


__all__ = ["last_passes"]
