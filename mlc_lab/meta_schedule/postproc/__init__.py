"""Postprocessors: last changes to a candidate before it is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .disallow_dynamic_loop import DisallowDynamicLoop
from .postproc import Postproc, PyPostproc
from .rewrite_cooperative_fetch import RewriteCooperativeFetch
from .rewrite_layout import RewriteLayout
from .rewrite_parallel_vectorize_unroll import RewriteParallelVectorizeUnroll
from .rewrite_reduction_block import RewriteReductionBlock
from .rewrite_tensorize import RewriteTensorize
from .rewrite_unbound_block import RewriteUnboundBlock
from .rewrite_unroll import RewriteUnroll
from .verify_gpu_code import VerifyGPUCode
from .verify_registers import VerifyRegisters

if TYPE_CHECKING:
    from ...target.target import Target


def for_cpu(target: Target | str | None) -> list[Postproc]:
    """Those for CPUs, in order."""
    return [DisallowDynamicLoop(), VerifyRegisters(), RewriteLayout(),
            RewriteParallelVectorizeUnroll(), RewriteReductionBlock(), RewriteTensorize()]



def for_gpu(target: Target | str | None) -> list[Postproc]:
    """Those for GPUs, in order."""
    return [DisallowDynamicLoop(), VerifyGPUCode(), RewriteCooperativeFetch(),
            RewriteUnboundBlock(), RewriteUnroll()]


create = Postproc.create

__all__ = ["DisallowDynamicLoop", "Postproc", "PyPostproc", "RewriteCooperativeFetch",
           "RewriteLayout", "RewriteParallelVectorizeUnroll", "RewriteReductionBlock",
           "RewriteTensorize", "RewriteUnboundBlock", "RewriteUnroll", "VerifyGPUCode",
           "VerifyRegisters", "create", "for_cpu", "for_gpu"]
