"""What functions take and give beside tensors and numbers: shapes; strings are Python's own."""

from __future__ import annotations

from tvm_ffi import Shape as ShapeTuple

String = str

__all__ = ["ShapeTuple", "String"]
