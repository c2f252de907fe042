"""The runtime: tensors, devices, the function registry, compiled modules, timing, threads.

It stands on apache-tvm-ffi, whose tensors and calling convention it uses, and knows nothing of the
compiler's IR. ``jit`` turns LLVM IR text into object code, ``linking`` into running code.
"""

from . import quick_ffi  # noqa: F401  (before anything imports tvm_ffi)
from .container import ShapeTuple
from .device import Device, cpu, cuda, device, metal, opencl, webgpu
from .module import Module, load_module
from .ndarray import NDArray, array, empty
from .object_path import ObjectPath, ObjectPathPair
from .registry import (
    PackedFunc,
    convert,
    get_global_func,
    list_global_func_names,
    register_func,
    remove_global_func,
)
from .timing import BenchmarkResult

__all__ = [
    "BenchmarkResult",
    "Device",
    "Module",
    "NDArray",
    "ObjectPath",
    "ObjectPathPair",
    "PackedFunc",
    "ShapeTuple",
    "array",
    "convert",
    "cpu",
    "cuda",
    "device",
    "empty",
    "get_global_func",
    "list_global_func_names",
    "load_module",
    "metal",
    "opencl",
    "register_func",
    "remove_global_func",
    "webgpu",
]
