"""The rules for GPUs under the names TVM gives them: `dlight.gpu.Matmul()`.

One rule a file. All of a function's blocks become kernels: `threads.py` has what the rules share,
and the way of every block that no rule is about.
"""

from __future__ import annotations

from ..base import KernelRule
from .fallback import Fallback
from .matmul import Matmul
from .reduction import Reduction
from .transpose import Transpose

GEMV = GeneralReduction = RMSNorm = Reduction


class LowBatchGEMV(Reduction):
    """A product of a few vectors with a matrix: the threads of a block together for each result.
    The number of vectors (`bucket`) is that of the kernel."""

    def __init__(self, bucket: int = 4) -> None:
        self.bucket = bucket


def default_rules() -> list[KernelRule]:
    """The rules in the order in which they are tried."""
    return [Matmul(), Reduction(), Transpose(), Fallback()]


__all__ = ["Fallback", "GEMV", "GeneralReduction", "LowBatchGEMV", "Matmul", "RMSNorm",
           "Reduction", "Transpose", "default_rules"]
