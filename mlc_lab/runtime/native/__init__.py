"""The native half of the runtime, written as LLVM IR and compiled on first use.

Each module here writes one part of it: ``args`` unpacks and checks the arguments of a kernel,
``pool`` runs parallel loops, ``memory`` gives scratch space, ``tensor`` allocates results,
``clock`` times calls, ``half`` converts to and from float16 where the processor cannot, ``stop``
ends loops.
``runtime/native_library.py`` compiles a part the first time a kernel needs it; ``export_library``
compiles them into the library it writes.
"""

from __future__ import annotations

from collections.abc import Callable

from ..llir import ModuleText

__all__ = ["PARTS", "SYMBOLS", "part_of"]

# Part -> the symbols it defines. Kernels refer to these names; parts may refer to each other.
PARTS: dict[str, tuple[str, ...]] = {
    "args": ("mlc_lab_check_args", "mlc_lab_fail", "mlc_lab_raise"),
    "pool": ("mlc_lab_parallel_launch", "mlc_lab_pool_set_threads", "mlc_lab_pool_stop"),
    "memory": ("mlc_lab_alloc", "mlc_lab_free", "mlc_lab_free_all"),
    "tensor": ("mlc_lab_new_tensor", "mlc_lab_new_tuple"),
    "clock": ("mlc_lab_time_calls",),
    "stop": ("mlc_lab_stopped", "mlc_lab_stop"),
    "half": ("__truncsfhf2", "__truncdfhf2", "__extendhfsf2"),
}

SYMBOLS: dict[str, str] = {name: part for part, names in PARTS.items() for name in names}


def part_of(name: str) -> Callable[[ModuleText, str], None]:
    """The writer of the part ``name``: it takes the module to write into and the target triple."""
    from importlib import import_module

    return import_module(f".{name}", __name__).write
