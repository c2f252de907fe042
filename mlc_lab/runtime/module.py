"""Compiled modules: functions by name, their sources, saving, timing."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from ..above import above
from . import registry, timing
from .device import Device, device
from .timing import BenchmarkResult
from .torch_bits import guard

__all__ = ["BenchmarkResult", "Module", "load_module"]

# Symbols of compiled code carry this prefix, by the convention of tvm-ffi.
SYMBOL_PREFIX = "__tvm_ffi_"


class Module:
    """Functions compiled together.

    ``rt["name"]`` gives a function; calling the module calls its entry function. Functions take
    tensors, numpy arrays, torch tensors and whatever else speaks DLPack.
    """

    entry_name = "main"
    #: the type of device that the functions run on
    device_type = "cpu"
    #: whose time is measured, see `timing.BenchmarkResult`
    clock = ""

    def __init__(
        self,
        functions: Mapping[str, Any],
        kind: str = "llvm",
        entry: str | None = None,
        sources: Mapping[str, Callable[[], str | bytes]] | None = None,
        compiled: Any = None,
        imported: Iterable[Module] = (),
        refusal: str = "",
        names: Iterable[str] = (),
        library: Any = None,
    ) -> None:
        """``refusal`` says why the functions ``names`` cannot be run here, where they cannot;
        ``library`` is the ``linking.Library`` that holds their code, where one does."""
        self._functions = dict(functions)
        self._names = tuple(names) or tuple(self._functions)
        self._entry = entry
        self._sources = dict(sources or {})
        self._compiled = compiled
        self._refusal = refusal
        self._library = library
        self._imported = list(imported)
        self.type_key = kind

    # -- functions --------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """What made the module, such as ``"llvm"``."""
        return self.type_key

    @property
    def function_names(self) -> tuple[str, ...]:
        """The names of the functions compiled here."""
        return self._names

    @property
    def entry_func(self) -> Any:
        """The function that a call of the module runs: ``main``, or the only one there is."""
        return self.get_function(self._entry_name())

    def _entry_name(self) -> str:
        if self._entry is not None:
            return self._entry
        if "main" in self._names or len(self._names) != 1:
            return "main"
        return self._names[0]

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether the module, or with ``query_imports`` one it imports, has the function."""
        return name in self._names or (
            query_imports and any(m.implements_function(name, True) for m in self._imported)
        )

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        """The function ``name``.

        Raises AttributeError when there is none, and RuntimeError when the code is for another
        machine.
        """
        func = self._functions.get(name)
        if func is not None:
            guard()
            return func
        if name in ("main", "__tvm_main__") and self._entry_name() != name:
            return self.entry_func  # what was built on its own, or is "main" in the IRModule
        if query_imports:
            for module in self._imported:
                if module.implements_function(name, True):
                    return module.get_function(name, True)
        if self._refusal and name in self._names:
            raise RuntimeError(f"{name!r} cannot be called here: {self._refusal}")
        near = get_close_matches(name, self._names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise AttributeError(
            f"this module has no function {name!r}{hint} "
            f"(its functions: {', '.join(map(repr, self._names)) or 'none'})"
        )

    def data_address(self, name: str) -> int:
        """The address of a global of the code. Raises KeyError for one it does not have."""
        found = self._library.find(name) if self._library is not None else None
        if found is None:
            raise KeyError(f"this module's code has no data called {name!r}")
        return found

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError(f"a module's functions are found by name, not by {name!r}")
        return self.get_function(name, query_imports=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.get_function(name, query_imports=True)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._names]

    def __call__(self, *args: Any) -> Any:
        return self.entry_func(*args)

    def __repr__(self) -> str:
        return f"<module {self.type_key}: {', '.join(self._names)}>"

    # -- imports ----------------------------------------------------------------------------------

    @property
    def imported_modules(self) -> list[Module]:
        """The modules this one imports."""
        return list(self._imported)

    def import_module(self, module: Module) -> None:
        """Make the functions of ``module`` available here as well."""
        self._imported.append(module)

    # -- looking inside ---------------------------------------------------------------------------

    def get_source(self, fmt: str = "") -> str | bytes:
        """The code as text: ``"ll"`` (optimised LLVM IR), ``"asm"``; ``"obj"`` gives bytes.

        Raises ValueError for a format this module does not have.
        """
        first = "ll" if "ll" in self._sources or not self._sources else next(iter(self._sources))
        fmt = {"": first, "s": "asm", "o": "obj", "llvm": "ll"}.get(fmt, fmt)
        if fmt not in self._sources:
            have = ", ".join(map(repr, self._sources)) or "none"
            raise ValueError(f"this module has no source in the form {fmt!r}; it has: {have}")
        return self._sources[fmt]()

    inspect_source = get_source

    # -- timing -----------------------------------------------------------------------------------

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | str | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
        f_preproc: str | Callable[..., Any] = "",
    ) -> timing.TimeEvaluator:
        """A callable that measures the function on the arguments it is given.

        Parameters
        ----------
        number, repeat
            Calls per measurement, and measurements; the result holds one number per measurement.
        min_repeat_ms
            When positive, ``number`` grows until a measurement takes at least this long.
        cooldown_interval_ms, repeats_to_cooldown
            How long to rest, and after how many measurements.
        cache_flush_bytes
            How much memory to write before each measurement, to empty the caches.
        f_preproc
            A function, or the name of a registered one, called before each measurement.

        Returns
        -------
        A callable giving a :class:`~mlc_lab.runtime.timing.BenchmarkResult`, in seconds.
        """
        if dev is not None and device(dev).type != self.device_type:
            raise ValueError(f"this module's kernels run on the {self.device_type.upper()} here, "
                             f"not on {device(dev)!r}: build them for that target")
        preproc = registry.get_global_func(f_preproc) if isinstance(f_preproc, str) and f_preproc \
            else f_preproc or None
        options = {
            "number": number,
            "repeat": repeat,
            "min_repeat_ms": min_repeat_ms,
            "limit_zero_time_iterations": limit_zero_time_iterations,
            "cooldown_interval_ms": cooldown_interval_ms,
            "repeats_to_cooldown": repeats_to_cooldown,
            "cache_flush_bytes": cache_flush_bytes,
            "f_preproc": preproc,
        }
        return timing.TimeEvaluator(self[func_name], func_name, options, self.clock)

    # -- saving -----------------------------------------------------------------------------------

    def export_library(self, file_name: str | os.PathLike[str], **options: object) -> str:
        """Write the module to a file and return its path.

        ``.o`` writes object code, which :func:`load_module` loads without any linker. ``.so``,
        ``.dylib`` and ``.dll`` write a shared library that every program speaking tvm-ffi can
        load; that takes a C compiler (option ``cc``, or the variable ``CC``, or ``cc``). ``.ll``
        and ``.s`` write the code as text.
        """
        return above("export of a library")(self, os.fspath(file_name), **options)

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Write object code, LLVM IR or assembly, by ``fmt`` or by the ending of the name."""
        path = os.fspath(file_name)
        fmt = fmt or os.path.splitext(path)[1].lstrip(".")
        source = self.get_source(fmt)
        mode = "wb" if isinstance(source, bytes) else "w"
        with open(path, mode) as file:
            file.write(source)


def load_module(path: str | os.PathLike[str], fmt: str = "") -> Module:
    """The module in a file that ``export_library`` wrote. See :mod:`mlc_lab.runtime.export`."""
    return above("load of a library")(os.fspath(path), fmt)


@functools.cache
def system_lib() -> Module:
    """A module without functions: nothing is linked into the interpreter statically."""
    return Module({}, kind="system")
