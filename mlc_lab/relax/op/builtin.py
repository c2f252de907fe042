"""R.builtin: allocation before memory is planned."""

from __future__ import annotations

from typing import Any

from .base import HINT
from .declare import LATER, DataType, Scalar, Shape, String, Tensor, Value, operator
from .memory import allocated


@operator("relax.builtin.alloc_tensor", allocated(0, 1), legalize=LATER)
def alloc_tensor(shape: Shape, dtype: DataType, runtime_device_index: Scalar = 0,
                 storage_scope: String = "global") -> Tensor:
    """A new tensor on a device."""


@operator("relax.builtin.stop_lift_params", **HINT)
def stop_lift_params(x: Value) -> Any:
    """x; what is computed of it is not lifted out of the function."""
