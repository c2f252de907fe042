"""Saving compiled modules as object files and shared libraries, and loading them.

An exported file needs nothing beside it. Each function stands under its tvm-ffi symbol
``__tvm_ffi_<name>``; the constant ``__mlc_lab_meta`` holds a JSON text with the names of the
functions, the triple, and what native parts the code needs. The code generator writes that constant
into every module. The file ends with a checksum, which system loaders ignore, so that a damaged one
is refused here before it can crash the process.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from ..above import above
from ..reading import DataError, read_json
from . import jit, linking
from .llir import c_string
from .module import SYMBOL_PREFIX, Module
from .native import SYMBOLS
from .native_library import address_of, ffi_symbols, native_symbols, native_text, packed

__all__ = ["META_SYMBOL", "export_library", "load_module", "meta_global", "module_of",
           "module_of_object", "sources_of", "write_object"]

META_SYMBOL = "__mlc_lab_meta"
_SHARED = (".so", ".dylib", ".dll")
#: what comes before the checksum at the end of a file
_CHECKSUM = b"mlc-lab sha256:"
#: the first bytes of files that layers above write -> the extension that loads such a file
LOADERS = {b"MLCLABVM": "load a virtual machine's file"}


def meta_global(
    functions: list[str],
    triple: str,
    needs: list[str],
    entry: str | None,
    externs: list[str] | None = None,
    quick: list[str] | None = None,
) -> str:
    """The LLVM global that describes a module.

    ``needs`` are the symbols it takes from the runtime, ``externs`` those from elsewhere; ``quick``
    are functions so short that a call need not release the GIL.
    """
    meta = {"functions": functions, "triple": triple, "needs": needs, "entry": entry}
    meta["externs"], meta["quick"] = externs or [], quick or []
    body, size = c_string(json.dumps(meta))
    return f"@{META_SYMBOL} = constant [{size} x i8] {body}, align 1"


def module_of(
    obj: bytes,
    meta: dict[str, Any],
    compiled: jit.Compiled | None = None,
    keep: tuple[Any, ...] = (),
) -> Module:
    """Link object code into the process and wrap its functions in a module.

    ``meta`` is the description in the object's ``__mlc_lab_meta``.
    """
    names = meta["functions"]
    symbols = native_symbols(meta["needs"])
    ffi = ffi_symbols()
    symbols.update({name: ffi[name] for name in meta["needs"] if name in ffi})
    missing = [n for n in meta.get("externs", ()) if n not in symbols and not linking.in_process(n)]
    if missing:
        raise RuntimeError(
            f"the program calls {', '.join(map(repr, missing))}, and no library in this process "
            "defines that; load the library first (ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL))"
        )
    library = linking.link(obj, [SYMBOL_PREFIX + name for name in names], symbols, keep)
    functions = {
        name: packed(library.address(SYMBOL_PREFIX + name), library, name) for name in names
    }
    for name in meta.get("quick", ()):
        functions[name].release_gil = False
    return Module(functions, "llvm", meta.get("entry"), sources_of(obj, compiled), compiled,
                  library=library)


def sources_of(obj: bytes | None, compiled: jit.Compiled | None) -> dict[str, Any]:
    """What ``get_source`` of a module can give, each made when it is asked for."""
    if compiled is None:
        return {"obj": lambda: obj}
    return {
        "ll": lambda: compiled.ll,
        "asm": lambda: compiled.asm,
        "obj": lambda: compiled.obj,
    }


def c_compiler(cc: str | None = None) -> str:
    """The C compiler that links: the one given, that of the variable ``CC``, or one on the path."""
    found = cc or os.environ.get("CC") or next(filter(None, map(shutil.which, (
        "cc", "gcc", "clang"))), None)
    if found is None:
        raise RuntimeError(
            "a shared library takes a C compiler to link, and none is on the path (looked for cc, "
            "gcc and clang); export to a name ending in .o instead, which load_module can load"
        )
    return found


def part_objects(needs: list[str], where: jit.Machine) -> list[bytes]:
    """Object code, if any, of the parts of the runtime that a library has to bring with it."""
    parts = _closure_of_parts(needs)
    if not parts:
        return []
    text = native_text(parts, where)
    # Hidden, so that each of several libraries in one process uses its own.
    for result in ("ptr", "i32", "void"):
        text = text.replace(f"\ndefine {result} @mlc", f"\ndefine hidden {result} @mlc")
    return [jit.compile_ir(text, where).obj]


def parts_of_object(data: bytes) -> list[bytes]:
    """`part_objects` of what object code says that it needs; none for code of other compilers."""
    try:
        meta = _meta_in_object(data, "the object code")
    except DataError:
        return []
    return part_objects(meta["needs"], jit.host_machine())


def export_library(
    module: Module, path: str, cc: str | None = None,
    fcompile: Callable[[str, list[str]], object] | None = None,
    options: Sequence[str] = (), **others: object
) -> str:
    """Write ``module`` to ``path`` in the form that the ending of the name asks for."""
    ending = os.path.splitext(path)[1]
    if ending == ".o" or ending == ".obj":
        module.save(path, "obj")
        _append_checksum(path)
        return path
    if ending in (".ll", ".s"):
        module.save(path)
        return path
    if ending not in _SHARED:
        raise ValueError(
            f"cannot tell from {path!r} what to write: name it .o (object code, loads without a "
            "linker), .so, .dylib or .dll (a shared library), .ll or .s"
        )
    compiled = module._compiled
    if compiled is None:
        raise ValueError("this module holds no compiled code to export")
    compiler = c_compiler(cc)
    objects = [compiled.obj]
    objects += part_objects(json.loads(_read_meta_from(compiled))["needs"], compiled.machine)
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for index, data in enumerate(objects):
            names.append(os.path.join(folder, f"part{index}.o"))
            with open(names[-1], "wb") as file:
                file.write(data)
        if fcompile is not None:
            fcompile(path, names)
            return path
        command = [compiler, "-shared", "-fPIC", "-o", path, *names, *options]
        if ending == ".dylib":
            command += ["-undefined", "dynamic_lookup"]
        else:
            command += ["-lm", "-lpthread"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"linking failed: {' '.join(command)}\n{done.stderr}")
    if ending != ".dylib":  # appending would invalidate its signature
        _append_checksum(path)
    return path


def write_object(path: str, obj: bytes) -> str:
    """Write object code that `load_module` reads; its path."""
    with open(path, "wb") as file:
        file.write(obj)
    _append_checksum(path)
    return path


def _append_checksum(path: str) -> None:
    """Append the checksum of a file to it."""
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    with open(path, "ab") as file:
        file.write(_CHECKSUM + digest.encode())


def _without_checksum(data: bytes, path: str, required: bool = False) -> bytes:
    """What a file holds before its checksum; `required` says that it must have one.

    Raises DataError where the two do not agree, and where the end of an ELF file, its table of
    sections, is missing.
    """
    if data.startswith(b"\x7fELF\x02\x01") and len(data) >= 64:
        (table,), (size, count) = (struct.unpack_from(f, data, o) for f, o in (("<Q", 40),
                                                                               ("<HH", 58)))
        if table + size * count > len(data):
            raise DataError(f"{path!r} is damaged: its end is missing; export the module again")
    at = len(data) - len(_CHECKSUM) - 64
    if at < 0 or not data.startswith(_CHECKSUM, at):
        if required and b'{"functions": ' in data:
            raise DataError(f"{path!r} is damaged: its checksum is missing; export the module "
                            "again")
        return data
    if hashlib.sha256(data[:at]).hexdigest().encode() != data[at + len(_CHECKSUM):]:
        raise DataError(f"{path!r} is damaged: its checksum does not agree with what it holds; "
                        "export the module again")
    return data[:at]


def _closure_of_parts(needs: list[str]) -> list[str]:
    return sorted({SYMBOLS[name] for name in needs if name in SYMBOLS})


def _read_meta_from(compiled: jit.Compiled) -> str:
    """The description inside the IR of a compiled module."""
    literal = compiled.global_variable(META_SYMBOL).split(' c"', 1)[1].rsplit('"', 1)[0]
    out = bytearray()
    i = 0
    while i < len(literal):
        if literal[i] == "\\":
            out.append(int(literal[i + 1 : i + 3], 16))
            i += 3
        else:
            out.append(ord(literal[i]))
            i += 1
    return out.rstrip(b"\0").decode()


def load_module(path: str, fmt: str = "") -> Module:
    """Load an object file or a shared library written by ``export_library``.

    Raises FileNotFoundError, or DataError (a ValueError) when the file was not written by it, was
    damaged, or holds code for another machine. The checksum finds damage, not malice: a library is
    code, and whoever loads one trusts who made it (docs/safety.md).
    """
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no file {path!r} to load a module from")
    with open(path, "rb") as file:
        loader = LOADERS.get(file.read(8))
    if loader is not None:
        return above(loader)(path)
    ending = os.path.splitext(path)[1]
    if fmt in ("o", "obj") or (not fmt and ending in (".o", ".obj")):
        return _load_object(path)
    return _load_shared(path)


def _load_object(path: str) -> Module:
    with open(path, "rb") as file:
        return module_of_object(_without_checksum(file.read(), path, required=True), path)


def module_of_object(data: bytes, path: str, keep: tuple[Any, ...] = ()) -> Module:
    """The module in object code that was written here; ``path`` says where it came from.

    What is in ``keep`` lives as long as any function of the module.

    Raises DataError for code of another machine, or of another compiler.
    """
    meta = _meta_in_object(data, path)
    where = jit.host_machine()
    if meta["triple"].split("-")[0] != where.triple.split("-")[0]:
        raise DataError(
            f"{path!r} holds code for {meta['triple']}, which cannot run on this machine "
            f"({where.triple})"
        )
    return module_of(data, meta, None, keep)


def _meta_in_object(data: bytes, path: str) -> dict[str, Any]:
    """Find the JSON text by its opening, which no machine code resembles."""
    start = data.find(b'{"functions": ')
    end = data.find(b"\0", start)
    if start < 0 or end < 0:
        raise DataError(
            f"{path!r} was not written by export_library: it carries no description of its "
            "functions"
        )
    return _description(data[start:end], path)


def _description(text: bytes, path: str) -> dict[str, Any]:
    """What a module says of itself. Raises DataError where it is not as it should be."""
    meta = read_json(text, f"the description in {path!r}")
    for name, kind in (("functions", list), ("needs", list), ("externs", list), ("quick", list),
                       ("triple", str), ("entry", (str, type(None)))):
        value = meta.get(name, [] if name in ("externs", "quick") else ...)
        if not isinstance(value, kind) or isinstance(value, list) and not all(
                isinstance(item, str) for item in value):
            raise DataError(f"{path!r} is damaged: its description has no {name}")
    return meta


def _load_shared(path: str) -> Module:
    import tvm_ffi

    with open(path, "rb") as file:
        _without_checksum(file.read(), path)
    library = ctypes.CDLL(os.path.abspath(path))
    try:
        text = ctypes.c_char.in_dll(library, META_SYMBOL)
    except ValueError:
        # A library of another compiler: its functions are found when they are asked for.
        return _Foreign(tvm_ffi.load_module(path))
    meta = _description(ctypes.string_at(ctypes.addressof(text)), path)
    functions = {}
    for name in meta["functions"]:
        functions[name] = packed(address_of(library, SYMBOL_PREFIX + name), library, name)
    return Module(functions, "library", meta.get("entry"))


class _Foreign(Module):
    """A library that some other tvm-ffi compiler wrote."""

    def __init__(self, module: Any) -> None:
        super().__init__({}, "library")
        self._module = module

    def get_function(self, name: str, query_imports: bool = False) -> Any:
        return self._module.get_function(name, query_imports)
