"""R.builtin: allocation before memory is planned."""

from __future__ import annotations

from typing import Any

from ..expr import Call, DataTypeImm, Expr, PrimValue, StringImm, as_expr
from .common import shape_arg
from .memory import tensor_of_args
from .registry import make_call, register_op


def alloc_tensor(shape: Any, dtype: Any, runtime_device_index: Any = 0,
                 storage_scope: Any = "global") -> Call:
    """A new tensor on a device."""
    return make_call("relax.builtin.alloc_tensor", (
        shape_arg(shape), dtype if isinstance(dtype, Expr) else DataTypeImm(dtype),
        runtime_device_index if isinstance(runtime_device_index, Expr)
        else PrimValue(runtime_device_index),
        storage_scope if isinstance(storage_scope, Expr) else StringImm(storage_scope)))


def stop_lift_params(x: Any) -> Call:
    """x; what is computed of it is not lifted out of the function."""
    return make_call("relax.builtin.stop_lift_params", (as_expr(x),))


register_op("relax.builtin.alloc_tensor", lambda call: tensor_of_args(call, 0, 1))
register_op("relax.builtin.stop_lift_params", lambda call: call.args[0].struct_info_)

__all__ = ["alloc_tensor", "stop_lift_params"]
