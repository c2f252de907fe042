"""Names of Relax that other versions have for the same things.

`relax.DynTensorType(2, "float32")` and its like are what Relax had before struct info; later
versions call struct info types.
"""

from __future__ import annotations

from typing import Any

from .. import relax
from . import early_relax
from ..relax.script import names as R
from .namespaces import by_dotted_name


def dyn_tensor_type(ndim: int = -1, dtype: str | None = "float32") -> Any:
    """A tensor of so many dimensions."""
    return relax.TensorStructInfo(None, dtype, ndim=ndim)


def func_type(arg_types: Any, ret_type: Any) -> Any:
    """A function of these types."""
    return relax.FuncStructInfo(arg_types, ret_type)


#: name after `relax.` in another version -> what it is here
NAMES: dict[str, Any] = {
    # before struct info
    "DynTensorType": dyn_tensor_type, "ShapeType": relax.ShapeStructInfo,
    "ObjectType": relax.ObjectStructInfo, "FuncType": func_type,
    "PackedFuncType": relax.ObjectStructInfo, "RuntimeDepShape": early_relax.RuntimeDepShape,
    "function": R.function, "vm_build": early_relax.VM_BUILD,
    # later versions, which call struct info types
    "TensorType": relax.TensorStructInfo, "TupleType": relax.TupleStructInfo,
    "PrimType": relax.PrimStructInfo, "AnyType": relax.ObjectStructInfo,
    "Type": relax.StructInfo,
}
#: name after `R.` in another version -> what it is here
R_NAMES: dict[str, Any] = {
    "Any": R.Object, "call_tir_packed": R.call_dps_packed,
    "invoke_closure_pure": R.invoke_pure_closure,
    "entry": by_dotted_name("script.parser.relax.entry"), **early_relax.R_ONLY,
}

__all__ = ["NAMES", "R_NAMES", "dyn_tensor_type", "func_type"]
