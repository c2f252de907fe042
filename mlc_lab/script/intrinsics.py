"""How calls of intrinsics are written: what differs from `tir/op/given.py`, which has the types."""

from __future__ import annotations

from ..tir.op.intrinsic import DTYPE_FIRST, DTYPE_LAST, GIVEN_DTYPES

#: names in scripts that differ from the Op's
CALL_NAMES = {"tir.tvm_call_packed": "call_packed", "tir.tvm_call_cpacked": "call_cpacked",
              "tir.tvm_call_packed_lowered": "call_packed_lowered"}

#: what a decorator of functions is told by name; the last two, of 0.24 and later, say nothing more
PRIM_FUNC_OPTIONS = ("private", "check_well_formed", "s_tir", "persistent")

__all__ = ["CALL_NAMES", "DTYPE_FIRST", "DTYPE_LAST", "GIVEN_DTYPES", "PRIM_FUNC_OPTIONS"]
