"""The native runtime: parts in LLVM IR, compiled and linked when they are first used.

Its parts are written in ``native/``: argument checks, the thread pool, clocks and the like.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import threading
from collections.abc import Iterable
from typing import Any

from .jit import Machine, compile_ir, host_machine
from .linking import Library, link
from .llir import ModuleText
from .native import PARTS, SYMBOLS, part_of

__all__ = [
    "address_of", "ffi_symbols", "native_address", "native_symbols", "native_text", "num_threads",
    "packed", "set_num_threads",
]

_lock = threading.RLock()


def native_text(parts: Iterable[str], where: Machine) -> str:
    """The LLVM IR of native parts, for linking into an exported library."""
    m = ModuleText(where.triple, where.data_layout)
    for part in parts:
        part_of(part)(m, where.triple)
    return str(m)


def ffi_symbols() -> dict[str, int]:
    """The functions of libtvm_ffi that compiled code calls."""
    import tvm_ffi

    names = ("TVMFFIErrorSetRaisedFromCStr", "TVMFFIObjectDecRef", "TVMFFIFunctionGetGlobal")
    names += ("TVMFFIFunctionCall", "TVMFFITensorFromDLPackVersioned")
    return {name: address_of(tvm_ffi.LIB, name) for name in names}


def address_of(library: ctypes.CDLL, name: str) -> int:
    """Where a function of a library lies."""
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0


@functools.cache
def _native(part: str) -> Library:
    # Compile time matters here: every process pays for it, and no loop of a kernel runs in it.
    where = host_machine(0)
    compiled = compile_ir(native_text([part], where), where, level=0)
    used = ffi_symbols() if part in ("args", "clock", "tensor") else {}
    library = link(compiled.obj, PARTS[part], used)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    if part == "pool":
        ctypes.CFUNCTYPE(None, ctypes.c_int64)(library.address("mlc_lab_pool_set_threads"))(
            _threads
        )
        atexit.register(ctypes.CFUNCTYPE(None)(library.address("mlc_lab_pool_stop")))
    return library


def native_address(name: str) -> int:
    """The address of a symbol of the native runtime; its part is compiled when first asked for."""
    with _lock:
        return _native(SYMBOLS[name]).address(name)


def native_symbols(names: Iterable[str]) -> dict[str, int]:
    """Addresses of those of ``names`` that the native runtime defines."""
    return {name: native_address(name) for name in names if name in SYMBOLS}


def packed(address: int, keep: Any = None, name: str = "") -> Any:
    """The tvm-ffi function at ``address``; it keeps ``keep`` alive."""
    import tvm_ffi

    func: Any = tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=keep)
    if name:
        func.__name__ = name
    return func


# -- the number of threads ------------------------------------------------------------------------


def _default_threads() -> int:
    for variable in ("MLC_LAB_NUM_THREADS", "TVM_NUM_THREADS"):
        text = os.environ.get(variable, "")
        if text.isdigit() and int(text) > 0:
            return int(text)
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:
        count = os.cpu_count() or 1
    try:  # a container's share of the machine
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        if quota != "max":
            count = min(count, max(1, round(int(quota) / int(period))))
    except (OSError, ValueError):
        pass
    return count


_threads = _default_threads()


def num_threads() -> int:
    """How many threads ``T.parallel`` loops run on, the calling thread included."""
    return _threads


def set_num_threads(count: int) -> None:
    """Set how many threads ``T.parallel`` loops run on (at least one)."""
    global _threads
    if count < 1:
        raise ValueError(f"a parallel loop needs at least one thread, not {count}")
    _threads = int(count)
    if _native.cache_info().currsize:
        address = native_address("mlc_lab_pool_set_threads")
        ctypes.CFUNCTYPE(None, ctypes.c_int64)(address)(_threads)
