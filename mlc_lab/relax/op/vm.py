"""R.vm: what the virtual machine offers to a program that is lowered for it."""

from __future__ import annotations

from typing import Annotated, Any

from ..expr import Expr, ExternFunc, Tuple
from .declare import (
    LATER, DataType, Kind, Scalar, Shape, String, Tensor, Value, any_info, operator,
)
from .memory import allocated, an_object, no_value

Callee = Annotated[Any, Kind(lambda f: ExternFunc(f) if isinstance(f, str) else f,
                             any_info)]
Arguments = Annotated[Any, Kind(lambda a: a if isinstance(a, Expr) else Tuple(a),
                                any_info)]


@operator("relax.vm.alloc_storage", an_object, legalize=LATER)
def alloc_storage(shape: Shape, runtime_device_index: Scalar, dtype: DataType,
                  storage_scope: String = "global") -> Any:
    """Storage of the bytes that the shape says."""


@operator("relax.vm.alloc_tensor", allocated(2, 3), legalize=LATER)
def alloc_tensor(storage: Value, offset: Scalar, shape: Shape, dtype: DataType,
                 runtime_device_ind: Scalar = 0) -> Tensor:
    """A tensor in a storage."""


@operator("relax.vm.call_tir_dyn", an_object, legalize=LATER, pure=False)
def call_tir_dyn(func: Callee, args: Arguments) -> Any:
    """A call of a PrimFunc that takes its scalars from a shape in the last argument."""


@operator("relax.vm.kill_object", no_value, legalize=LATER, pure=False)
def kill_object(obj: Value) -> Any:
    """The object is not used again."""
