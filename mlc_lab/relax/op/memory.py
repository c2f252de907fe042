"""Storage and tensors in it, as the passes that plan memory write them: R.memory."""

from __future__ import annotations

from typing import Any

from ..expr import Call, DataTypeImm, Expr, PrimValue, StringImm, Tuple, as_expr
from ..struct_info import OBJECT, PrimStructInfo, ShapeStructInfo, StructInfo, TensorStructInfo
from .base import VOID
from .common import like, misfit, shape_arg, shape_values, show, tensor_info
from .registry import make_call, register_op


def _prim(value: Any) -> Expr:
    return value if isinstance(value, Expr) else PrimValue(value)


def _dtype(value: Any) -> Expr:
    return value if isinstance(value, Expr) else DataTypeImm(value)


def _string(value: Any) -> Expr:
    return value if isinstance(value, Expr) else StringImm(value)


def alloc_storage(size: Any, virtual_device_index: Any, storage_scope: Any, dtype: Any) -> Call:
    """Storage of `size` bytes (a shape of one value)."""
    return make_call("relax.memory.alloc_storage", (
        shape_arg(size), _prim(virtual_device_index), _string(storage_scope), _dtype(dtype)))


def alloc_tensor(storage: Any, offset: Any, shape: Any, dtype: Any,
                 runtime_device_ind: Any = 0) -> Call:
    """A tensor in a storage, `offset` bytes from its start."""
    return make_call("relax.memory.alloc_tensor", (
        storage, _prim(offset), shape_arg(shape), _dtype(dtype), _prim(runtime_device_ind)))


def tensor_of_args(call: Call, shape: int, dtype: int) -> StructInfo:
    """The tensor that an allocation makes, from its shape and dtype arguments."""
    info = shape_values(call, shape)
    kind = call.args[dtype]
    if not isinstance(kind, DataTypeImm):
        raise misfit(call, "the dtype must be written as R.dtype(...)")
    return TensorStructInfo(call.args[shape], kind.value, ndim=info.ndim)


def kill_storage(storage: Any) -> Call:
    """The storage is not used again."""
    return make_call("relax.memory.kill_storage", (storage,))


def kill_tensor(tensor: Any) -> Call:
    """The tensor is not used again."""
    return make_call("relax.memory.kill_tensor", (tensor,))


def view(data: Any, shape: Any = None, dtype: Any = None, relative_byte_offset: Any = None) -> Call:
    """The memory of a tensor as another tensor."""
    none = Tuple(())
    return make_call("relax.memory.view", (
        as_expr(data), none if shape is None else shape_arg(shape),
        none if dtype is None else _dtype(dtype),
        none if relative_byte_offset is None else _prim(relative_byte_offset)))


def _infer_view(call: Call) -> StructInfo:
    info = tensor_info(call, 0)
    dtype = call.args[2].value if isinstance(call.args[2], DataTypeImm) else info.dtype
    shape = call.args[1].struct_info_
    if isinstance(shape, ShapeStructInfo):
        return TensorStructInfo(call.args[1], dtype, ndim=shape.ndim)
    return like(info, dtype)


def ensure_zero_offset(data: Any) -> Call:
    """data, copied where it does not start at the beginning of its memory."""
    return make_call("relax.memory.ensure_zero_offset", (as_expr(data),))


def _check_storage(call: Call) -> StructInfo:
    info = call.args[1].struct_info_
    if not isinstance(info, PrimStructInfo):
        raise misfit(call, f"the offset must be a scalar, it is {show(info)}")
    return tensor_of_args(call, 2, 3)


register_op("relax.memory.alloc_storage", lambda call: OBJECT)
register_op("relax.memory.alloc_tensor", _check_storage)
register_op("relax.memory.kill_storage", lambda call: VOID, pure=False)
register_op("relax.memory.kill_tensor", lambda call: VOID, pure=False)
register_op("relax.memory.view", _infer_view)
register_op("relax.memory.ensure_zero_offset", lambda call: like(tensor_info(call, 0)))

__all__ = ["alloc_storage", "alloc_tensor", "ensure_zero_offset", "kill_storage", "kill_tensor",
           "tensor_of_args", "view"]
