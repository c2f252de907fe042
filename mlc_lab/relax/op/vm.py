"""R.vm: what the virtual machine offers to a program that is lowered for it."""

from __future__ import annotations

from typing import Any

from ..expr import Call, DataTypeImm, Expr, ExternFunc, PrimValue, StringImm, Tuple
from ..struct_info import OBJECT
from .base import VOID
from .common import shape_arg
from .memory import tensor_of_args
from .registry import make_call, register_op


def _prim(value: Any) -> Expr:
    return value if isinstance(value, Expr) else PrimValue(value)


def alloc_storage(shape: Any, runtime_device_index: Any, dtype: Any,
                  storage_scope: Any = "global") -> Call:
    """Storage of the bytes that the shape says."""
    return make_call("relax.vm.alloc_storage", (
        shape_arg(shape), _prim(runtime_device_index),
        dtype if isinstance(dtype, Expr) else DataTypeImm(dtype),
        storage_scope if isinstance(storage_scope, Expr) else StringImm(storage_scope)))


def alloc_tensor(storage: Any, offset: Any, shape: Any, dtype: Any,
                 runtime_device_ind: Any = 0) -> Call:
    """A tensor in a storage."""
    return make_call("relax.vm.alloc_tensor", (
        storage, _prim(offset), shape_arg(shape),
        dtype if isinstance(dtype, Expr) else DataTypeImm(dtype), _prim(runtime_device_ind)))


def call_tir_dyn(func: Any, args: Any) -> Call:
    """A call of a PrimFunc that takes its scalars from a shape in the last argument."""
    return make_call("relax.vm.call_tir_dyn", (
        ExternFunc(func) if isinstance(func, str) else func,
        args if isinstance(args, Expr) else Tuple(args)))


def kill_object(obj: Any) -> Call:
    """The object is not used again."""
    return make_call("relax.vm.kill_object", (obj,))


register_op("relax.vm.alloc_storage", lambda call: OBJECT)
register_op("relax.vm.alloc_tensor", lambda call: tensor_of_args(call, 2, 3))
register_op("relax.vm.call_tir_dyn", lambda call: OBJECT, pure=False)
register_op("relax.vm.kill_object", lambda call: VOID, pure=False)

__all__ = ["alloc_storage", "alloc_tensor", "call_tir_dyn", "kill_object"]
