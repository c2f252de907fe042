"""The rules for CPUs under the name TVM gives such a group: `dlight.cpu.GEMV()`."""

from __future__ import annotations

from .base import KernelRule
from .contraction import Contraction
from .elementwise import Elementwise
from .pooled import PooledContraction
from .reduction import Reduction
from .transpose import Transpose

Matmul = Conv = Contraction
GEMV = Reduction
Fallback = Elementwise


def default_rules() -> list[KernelRule]:
    """The rules in the order in which they are tried."""
    return [PooledContraction(), Contraction(), Reduction(), Transpose(), Elementwise()]


__all__ = ["Contraction", "Conv", "Elementwise", "Fallback", "GEMV", "Matmul", "PooledContraction",
           "Reduction", "Transpose", "default_rules"]
