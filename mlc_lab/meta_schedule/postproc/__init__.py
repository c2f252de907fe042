"""Postprocessors: last changes to a candidate before it is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .disallow_dynamic_loop import DisallowDynamicLoop
from .postproc import Postproc, PyPostproc
from .rewrite_layout import RewriteLayout
from .rewrite_parallel_vectorize_unroll import RewriteParallelVectorizeUnroll
from .rewrite_reduction_block import RewriteReductionBlock
from .rewrite_tensorize import RewriteTensorize
from .verify_registers import VerifyRegisters

if TYPE_CHECKING:
    from ...target.target import Target


def for_cpu(target: Target | str | None) -> list[Postproc]:
    """Those for CPUs, in order."""
    return [DisallowDynamicLoop(), VerifyRegisters(), RewriteLayout(),
            RewriteParallelVectorizeUnroll(), RewriteReductionBlock(), RewriteTensorize()]


create = Postproc.create

__all__ = ["DisallowDynamicLoop", "Postproc", "PyPostproc", "RewriteLayout",
           "RewriteParallelVectorizeUnroll", "RewriteReductionBlock", "RewriteTensorize",
           "VerifyRegisters", "create", "for_cpu"]
