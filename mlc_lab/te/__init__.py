"""Tensor expressions: programs written as what each element is.

    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    te.create_prim_func([A, B]).show()

Read `tensor.py`, `operation.py`, `create_prim_func.py`, and `schedule.py` for schedules in the
manner of TVM's first years (`te.create_schedule`).
"""

from ..above import name_above as _name_above
from ..tir import op as _op
from ..tir.expr import CommReducer, IterVar, Reduce, Var
from ..tir.function import IndexMap as _IndexMap
from ..tir.op import *  # noqa: F403
from ..tir.op import abs, all, any, max, min, power, round
from ..tir.reduction import comm_reducer, prod, sum
from . import saving as _saving  # noqa: F401  (makes tensors savable)
from .create_prim_func import create_prim_func
from .hybrid_op import HybridOp
from .operation import (
    compute, extern, extern_primfunc, placeholder, reduce_axis, scan, size_var, thread_axis, var,
)
from .schedule import Schedule, Stage, create_schedule
from .tag import tag_scope
from .tensor import ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp, Tensor, TensorSlice
from .tensor_compute import TensorComputeOp
from .tensor_intrin import decl_tensor_intrin

pow = power
#: stands between the indices of a layout where one axis of memory ends: `lambda i, j: [i,
#: te.AXIS_SEPARATOR, j]`
AXIS_SEPARATOR = _IndexMap.AXIS_SEPARATOR


def __getattr__(name: str) -> object:
    """A name of TVM's `te` that stands above: `hybrid`."""
    return _name_above("te", name)


__all__ = [
    "AXIS_SEPARATOR", "CommReducer", "ComputeOp", "ExternOp", "HybridOp", "IterVar", "Operation",
    "PlaceholderOp", "Reduce",
    "ScanOp", "Schedule", "Stage", "Tensor", "TensorComputeOp", "TensorSlice", "Var", "abs",
    "all", "any", "comm_reducer", "compute", "create_prim_func", "create_schedule",
    "decl_tensor_intrin", "extern", "extern_primfunc", "max", "min", "placeholder", "pow",
    "power", "prod", "reduce_axis", "round", "scan", "size_var", "sum", "tag_scope",
    "thread_axis", "var", *(
        n for n in _op.__all__ if n not in ("abs", "all", "any", "max", "min", "pow", "round")),
]
