"""Storage and tensors in it, as the passes that plan memory write them: R.memory."""

from __future__ import annotations

from typing import Annotated, Any, Callable

from ..expr import Call, DataTypeImm, Expr, Tuple
from ..struct_info import (
    OBJECT, PrimStructInfo, ShapeStructInfo, StructInfo, TensorStructInfo,
)
from .base import VOID
from .common import like, misfit, shape_arg, shape_values, show
from .declare import (
    LATER, DataType, Kind, Rule, Scalar, Shape, String, Tensor, Value, any_info, as_dtype,
    like_first, operator, prim_arg,
)


def an_object(call: Call, *rest: Any) -> StructInfo:
    """Any object."""
    return OBJECT


def no_value(call: Call, *rest: Any) -> StructInfo:
    """Nothing: the call is made for its effect."""
    return VOID


def allocated(shape: int, dtype: int) -> Rule:
    """The tensor that an allocation makes, from its shape and dtype arguments."""
    def infer(call: Call, *infos: Any) -> StructInfo:
        info, kind = shape_values(call, shape), call.args[dtype]
        if not isinstance(kind, DataTypeImm):
            raise misfit(call, "the dtype must be written as R.dtype(...)")
        return TensorStructInfo(call.args[shape], kind.value, ndim=info.ndim)

    return infer


@operator("relax.memory.alloc_storage", an_object, legalize=LATER)
def alloc_storage(size: Shape, virtual_device_index: Scalar, storage_scope: String,
                  dtype: DataType) -> Any:
    """Storage of `size` bytes (a shape of one value)."""


def _in_storage(call: Call, storage: StructInfo, offset: StructInfo, *rest: Any) -> StructInfo:
    if not isinstance(offset, PrimStructInfo):
        raise misfit(call, f"the offset must be a scalar, it is {show(offset)}")
    return allocated(2, 3)(call)


@operator("relax.memory.alloc_tensor", _in_storage, legalize=LATER)
def alloc_tensor(storage: Value, offset: Scalar, shape: Shape, dtype: DataType,
                 runtime_device_ind: Scalar = 0) -> Tensor:
    """A tensor in a storage, `offset` bytes from its start."""


@operator("relax.memory.kill_storage", no_value, legalize=LATER, pure=False)
def kill_storage(storage: Value) -> Any:
    """The storage is not used again."""


@operator("relax.memory.kill_tensor", no_value, legalize=LATER, pure=False)
def kill_tensor(tensor: Value) -> Any:
    """The tensor is not used again."""


def _given(convert: Callable[[Any], Expr]) -> Kind:
    """An argument, or an empty tuple where it is not given."""
    return Kind(lambda value: Tuple(()) if value is None else convert(value), any_info)


GivenShape = Annotated[Any, _given(shape_arg)]
GivenDtype = Annotated[Any, _given(as_dtype)]
GivenScalar = Annotated[Any, _given(prim_arg)]


def _infer_view(call: Call, data: TensorStructInfo, shape: StructInfo, *rest: Any) -> StructInfo:
    dtype = call.args[2].value if isinstance(call.args[2], DataTypeImm) else data.dtype
    if isinstance(shape, ShapeStructInfo):
        return TensorStructInfo(call.args[1], dtype, ndim=shape.ndim)
    return like(data, dtype)


@operator("relax.memory.view", _infer_view, legalize=LATER)
def view(data: Tensor, shape: GivenShape = None, dtype: GivenDtype = None,
         relative_byte_offset: GivenScalar = None) -> Tensor:
    """The memory of a tensor as another tensor."""


@operator("relax.memory.ensure_zero_offset", like_first, legalize=LATER)
def ensure_zero_offset(data: Tensor) -> Tensor:
    """data, copied where it does not start at the beginning of its memory."""
