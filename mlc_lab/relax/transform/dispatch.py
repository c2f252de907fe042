"""DispatchSortScan, DispatchSampling: operators that libraries may do become calls of TensorIR
functions before the others.

TVM chooses here among kernels for the target. Each operator has one kernel in this project, whose
schedule is found later, so that these passes legalise them as LegalizeOps does.

before::

    s = R.sort(x, axis=-1)
    y = R.add(s, s)

after `DispatchSortScan()`::

    s = R.call_tir(cls.sort, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
    y = R.add(s, s)
"""

from __future__ import annotations

from ...ir.transform import Pass
from .legalize_ops import legalizing

_SORT_SCAN = frozenset(f"relax.{name}" for name in ("sort", "argsort", "topk", "cumsum", "cumprod"))
_SAMPLING = frozenset(("relax.multinomial_from_uniform",))


def DispatchSortScan() -> Pass:
    """Sorting and running totals become calls of TensorIR functions; other operators stay."""
    return legalizing("DispatchSortScan", DispatchSortScan.__doc__, {}, only=_SORT_SCAN)


def DispatchSampling() -> Pass:
    """Drawing by probability becomes a call of a TensorIR function; other operators stay."""
    return legalizing("DispatchSampling", DispatchSampling.__doc__, {}, only=_SAMPLING)


__all__ = ["DispatchSampling", "DispatchSortScan"]
