"""Matrix products of a library within tensor expressions; the library is numpy's BLAS.

The registered functions are `tvm.contrib.cblas.matmul(a, b, out, transa, transb)` and
`tvm.contrib.cblas.batch_matmul`, the same of three dimensions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import te
from ...runtime import register_func
from ...tir import call_packed

_MATMUL, _BATCHED = "tvm.contrib.cblas.matmul", "tvm.contrib.cblas.batch_matmul"


def _product(a: Any, b: Any, out: Any, transa: Any = False, transb: Any = False) -> None:
    turned = [np.swapaxes(x.numpy(), -1, -2) if turn else x.numpy()
              for x, turn in ((a, transa), (b, transb))]
    out.copyfrom(np.matmul(*turned).astype(out.dtype, copy=False))


for _name in (_MATMUL, _BATCHED):
    register_func(_name, _product, override=True)


def matmul(lhs: Any, rhs: Any, transa: bool = False, transb: bool = False, **kwargs: object) -> Any:
    """The product of two matrices; `transa` and `transb` say which of them is transposed."""
    return _call(_MATMUL, [], lhs, rhs, transa, transb, kwargs)


def batch_matmul(lhs: Any, rhs: Any, transa: bool = False, transb: bool = False,
                 **kwargs: object) -> Any:
    """The products of matrices, one for each of the first dimension."""
    return _call(_BATCHED, [lhs.shape[0]], lhs, rhs, transa, transb, kwargs)


def _call(name: str, lead: list, lhs: Any, rhs: Any, transa: bool, transb: bool, kwargs: dict
          ) -> Any:
    rows = lhs.shape[-1] if transa else lhs.shape[-2]
    columns = rhs.shape[-2] if transb else rhs.shape[-1]
    return te.extern(
        (*lead, rows, columns), [lhs, rhs],
        lambda ins, outs: call_packed(name, ins[0], ins[1], outs[0], transa, transb),
        **{"name": "C", **kwargs})


__all__ = ["batch_matmul", "matmul"]
