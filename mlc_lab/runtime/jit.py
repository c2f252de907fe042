"""The LLVM engine: from IR text to machine code in this process, with no linker.

``compile_ir`` turns IR text into object code for a target machine; ``link`` puts object code into
executable memory and gives addresses. The native parts of the runtime are compiled here as well,
each on first use.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import itertools
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .llir import ModuleText
from .native import PARTS, SYMBOLS, part_of

__all__ = [
    "Compiled",
    "Library",
    "Machine",
    "compile_ir",
    "host_machine",
    "link",
    "machine",
    "native_address",
    "num_threads",
    "packed",
    "set_num_threads",
]


@functools.cache
def _llvm() -> Any:
    """llvmlite's binding, with the host's code generator ready; imported on first use."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def _all_targets() -> None:
    llvm = _llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@functools.cache
def host_cpu() -> tuple[str, str, str]:
    """The host's (triple, processor name, features), as LLVM detects them."""
    llvm = _llvm()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), _host_features()


def _host_features() -> str:
    features = _llvm().get_host_cpu_features()
    return features.flatten()


@dataclass(frozen=True)
class Machine:
    """What code is generated for. Empty ``cpu`` and ``features`` mean the triple's baseline."""

    triple: str
    cpu: str
    features: str
    opt_level: int = 3
    abi: str = ""

    @functools.cached_property
    def is_host(self) -> bool:
        """Whether code for this machine can run in this process."""
        here = host_cpu()[0].split("-")
        there = self.triple.split("-")
        same_system = any(s in "-".join(there[1:]) for s in _system_words("-".join(here[1:])))
        return here[0] == there[0] and same_system and "elf" not in there[-1:]

    @functools.cached_property
    def target_machine(self) -> Any:
        """The LLVM target machine. Raises ValueError for a triple LLVM does not know."""
        return self._make(jit=False)

    def _make(self, jit: bool) -> Any:
        llvm = _llvm()
        if self.triple.split("-")[0] != host_cpu()[0].split("-")[0]:
            _all_targets()
        try:
            target = llvm.Target.from_triple(self.triple)
        except RuntimeError as error:
            raise ValueError(
                f"LLVM has no code generator for the triple {self.triple!r}: {error}"
            ) from None
        # JIT-compiled code on Windows has to be ELF, with the far-reaching code model.
        windows = os.name == "nt" and self.is_host

        def make() -> Any:
            return target.create_target_machine(
                cpu=self.cpu,
                features=self.features,
                opt=self.opt_level,
                reloc="default" if windows else "pic",
                codemodel="jitdefault" if windows else "default",
                jit=jit,
                abiname=self.abi,
            )

        if not self.cpu or self.cpu == host_cpu()[1]:
            return make()
        made, said = _heard(make)
        if "is not a recognized processor" in said:
            raise ValueError(
                f"LLVM knows no processor {self.cpu!r} for {self.triple}; its names are such as "
                "'skylake', 'znver3' or 'apple-m1'. Without -mcpu, code is for this computer"
            )
        if said:  # of other things, such as a feature: as if nobody had listened
            os.write(2, said.encode())
        return made

    @functools.cached_property
    def data_layout(self) -> str:
        """The data layout string, without which LLVM guesses sizes and alignments."""
        return str(self.target_machine.target_data)


def _heard(make: Callable[[], Any]) -> tuple[Any, str]:
    """What `make` gives, and what LLVM writes to standard error meanwhile.

    LLVM only warns of a processor that it does not know, and ends the process later when it
    generates code for it.
    """
    with _lock:
        try:
            saved = os.dup(2)
        except OSError:  # there is no standard error
            return make(), ""
        try:
            with tempfile.TemporaryFile() as file:
                os.dup2(file.fileno(), 2)
                try:
                    made = make()
                finally:
                    os.dup2(saved, 2)
                file.seek(0)
                return made, file.read().decode(errors="replace")
        finally:
            os.close(saved)


def _system_words(rest: str) -> tuple[str, ...]:
    for words in (("linux",), ("darwin", "macos"), ("windows",), ("freebsd",)):
        if any(word in rest for word in words):
            return words
    return (rest,)


@functools.cache
def machine(triple: str, cpu: str = "", features: str = "", opt: int = 3, abi: str = "") -> Machine:
    """The machine of a triple, kept for the process."""
    return Machine(triple, cpu, features, opt, abi)


def host_machine(opt: int = 3) -> Machine:
    """This computer, with all features of its processor."""
    return machine(*host_cpu(), opt)


class Compiled:
    """One compiled module: its object code, and its optimised IR and assembly on demand."""

    def __init__(self, bitcode: bytes, obj: bytes | None, where: Machine) -> None:
        self._bitcode = bitcode
        self._obj = obj
        self.machine = where

    def _module(self) -> Any:
        llvm = _llvm()
        return llvm.parse_bitcode(self._bitcode, llvm.create_context())

    @property
    def obj(self) -> bytes:
        """The object code."""
        if self._obj is None:
            try:
                self._obj = self.machine.target_machine.emit_object(self._module())
            except RuntimeError as err:
                raise ValueError(
                    f"LLVM writes no object code for {self.machine.triple} ({err}); what there is "
                    'to see is get_source("asm") and get_source("ll")') from None
        return self._obj

    @property
    def ll(self) -> str:
        """The optimised LLVM IR."""
        return str(self._module())

    @property
    def asm(self) -> str:
        """The assembly."""
        return self.machine.target_machine.emit_assembly(self._module())


def compile_ir(
    text: str,
    where: Machine | None = None,
    vectorize: bool = True,
    unroll: bool = True,
    level: int = 3,
    emit: bool = True,
    imports: Iterable[str] = (),
) -> Compiled:
    """Optimise IR text with LLVM's standard pipeline and generate object code.

    ``vectorize`` and ``unroll`` switch LLVM's own loop transformations; ``level`` 0 runs only what
    puts variables into registers. Raises ValueError with
    LLVM's message when the text is not valid IR.
    """
    llvm = _llvm()
    where = where or host_machine()
    tm = where.target_machine
    try:
        context = llvm.create_context()
        module = llvm.parse_assembly(text, context)
        for other in imports:
            module.link_in(llvm.parse_assembly(other, context))
        module.verify()
    except RuntimeError as error:
        raise ValueError(f"the generated LLVM IR is not valid (a bug): {error}") from None
    options = llvm.create_pipeline_tuning_options(level)
    options.loop_vectorization = options.slp_vectorization = vectorize
    options.loop_interleaving = vectorize
    options.loop_unrolling = unroll
    builder = llvm.create_pass_builder(tm, options)
    if level:
        passes = builder.getModulePassManager()
    else:
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    bitcode = module.as_bitcode()
    return Compiled(bitcode, tm.emit_object(module) if emit else None, where)


# -- linking ------------------------------------------------------------------------------------


_lock = threading.RLock()
_numbers = itertools.count()


@functools.cache
def _engine() -> Any:
    """The process's linker of object code into memory. It is never freed: threads run in it."""
    llvm = _llvm()
    engine = llvm.create_lljit_compiler(
        host_machine()._make(jit=True), use_jit_link=os.name != "nt", suppress_errors=False
    )
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    return engine


class Library:
    """Object code in executable memory; the memory is freed with this object."""

    def __init__(self, tracker: Any, needs: tuple[Any, ...]) -> None:
        self._tracker = tracker
        self._needs = needs

    def address(self, name: str) -> int:
        """The address of an exported symbol; KeyError when it was not asked for at linking."""
        return self._tracker[name]

    def find(self, name: str) -> int | None:
        """The address of any symbol of the library, or None."""
        try:
            found = _engine().lookup(self._tracker.name, name)
        except RuntimeError:
            return None
        self._needs += (found,)
        return found[name]


def link(
    obj: bytes, exports: Iterable[str], symbols: Mapping[str, int], keep: tuple[Any, ...] = ()
) -> Library:
    """Link object code into this process.

    ``symbols`` gives addresses for undefined names beyond those of the process itself. Raises
    RuntimeError naming what is missing.
    """
    llvm = _llvm()
    builder = llvm.JITLibraryBuilder().add_object_img(obj).add_current_process()
    for name in exports:
        builder.export_symbol(name)
    for name, address in symbols.items():
        builder.import_symbol(name, address)
    with _lock:
        tracker = builder.link(_engine(), f"mlc_lab.{next(_numbers)}")
    return Library(tracker, keep)


def in_process(name: str) -> bool:
    """Whether some library in this process defines the symbol."""
    return _llvm().address_of_symbol(name) is not None or _in_c_library(name)


@functools.cache
def _in_c_library(name: str) -> bool:
    try:
        library = ctypes.CDLL(None) if os.name != "nt" else ctypes.cdll.msvcrt
        return hasattr(library, name)
    except (OSError, TypeError):
        return False


# -- the native runtime ---------------------------------------------------------------------------


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
    lib = tvm_ffi.LIB
    return {name: ctypes.cast(getattr(lib, name), ctypes.c_void_p).value for name in names}


@functools.cache
def _native(part: str) -> Library:
    # Quick to compile counts here: every process pays for it, and no loop of a kernel runs in it.
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

    func = tvm_ffi.Function.__from_extern_c__(address, keep_alive_object=keep)
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
