"""Executables as files: bytecode, constants and object code in one, checked when it is read.

    8 bytes    "MLCLABVM"
    4 bytes    version of the format
    8 bytes    length of the description
    8 bytes    length of the data
    32 bytes   SHA-256 of description and data
    ...        the description: JSON
    ...        the data: object code, then the constants, each at a multiple of 64 bytes

Numbers are little-endian. Nothing in a file is executed to read it; the object code runs when a
function is called.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend.llvm import why_not_here
from ...ir.dtype import numpy_dtype
from ...reading import MISTAKES, DataError, read_json, reason
from ...runtime import jit
from ...runtime.export import module_of_object
from ...runtime.ndarray import tensor_at
from .bytecode import (
    VM_REGISTER, VOID_REGISTER, Arg, CallInstr, DType, Executable, Goto, If, Ret, VMFunction,
)

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"MLCLABVM"
VERSION = 1
_HEAD = struct.Struct("<8sIQQ32s")
_ALIGN = 64


def save(executable: Executable, path: str | Path) -> str:
    """Write an executable to a file and return its path. The file is complete or not there."""
    path = os.fspath(path)
    if executable.device != "cpu":
        raise ValueError(f"an executable for {executable.device} cannot be written to a file; "
                         "its kernels' source can: executable.lib.imported_modules[0].get_source()")
    data = bytearray()

    def put(blob: bytes) -> list[int]:
        data.extend(bytes(-len(data) % _ALIGN))
        data.extend(blob)
        return [len(data) - len(blob), len(blob)]

    machine, code = None, None
    if executable.lib is not None:
        compiled = executable.lib._compiled
        code = put(executable.lib.get_source("obj"))
        if compiled is not None:
            where = compiled.machine
            machine = [where.triple, where.cpu, where.features]
        else:
            machine = executable._machine
    description = {
        "target": executable.target, "exec_mode": executable.exec_mode, "machine": machine,
        "names": executable.names, "code": code,
        "functions": [_function_out(f) for f in executable.functions.values()],
        "constants": [_constant_out(c, put) for c in executable.constants],
        "compiled": executable.compiled, "not_compiled": executable.not_compiled,
        "memory": executable.memory,
    }
    text = json.dumps(description).encode()
    digest = hashlib.sha256(text + data).digest()
    folder = os.path.dirname(os.path.abspath(path))
    handle, part = tempfile.mkstemp(dir=folder, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_HEAD.pack(MAGIC, VERSION, len(text), len(data), digest))
            file.write(text)
            file.write(data)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    return path


def load(path: str | Path) -> Executable:
    """The executable in a file that `export_library` wrote.

    Raises FileNotFoundError, or DataError (a ValueError), saying what is wrong with the file. The
    checksum finds damage, not malice: the object code in a file is code, and trusted as such.
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        raw = file.read()
    if raw[:len(MAGIC)] != MAGIC:
        raise DataError(f"{path!r} is no saved executable: it does not start with {MAGIC!r}")
    if len(raw) < _HEAD.size:
        raise DataError(f"{path!r} is damaged: it ends within its header")
    _, version, text_size, data_size, digest = _HEAD.unpack_from(raw)
    if version != VERSION:
        raise DataError(f"{path!r} has version {version} of the format, this is version "
                         f"{VERSION}: build and export the model again")
    body = raw[_HEAD.size:]
    if len(body) != text_size + data_size:
        raise DataError(f"{path!r} is damaged: it should hold {text_size + data_size} bytes after "
                         f"its header and holds {len(body)} (an interrupted copy?)")
    if hashlib.sha256(body).digest() != digest:
        raise DataError(f"{path!r} is damaged: its checksum does not agree with what it holds")
    try:
        description = read_json(body[:text_size], "its description")
        return _executable_in(description, body[text_size:], path)
    except _Unfit:
        raise
    except MISTAKES as error:
        raise DataError(f"{path!r} is damaged: {reason(error)}") from error


class _Unfit(DataError):
    """An executable that is whole, and not for this machine."""


def _executable_in(description: dict, data: bytes, path: str) -> Executable:
    out = Executable()
    out.target, out.exec_mode = description["target"], description["exec_mode"]
    out.names = list(description["names"])
    memory = np.frombuffer(bytearray(data), np.uint8)
    out.constants = [_constant_in(c, memory) for c in description["constants"]]
    for f in description["functions"]:
        function = VMFunction(f["name"], f["params"], f["registers"])
        function.code = [_instruction_in(i) for i in f["code"]]
        out.functions[function.name] = function
    out.compiled, out.not_compiled = description["compiled"], description["not_compiled"]
    out.memory = description["memory"]
    out._machine = description["machine"]
    _check(out)
    if description["code"] is not None:
        refusal = why_not_here(jit.machine(*description["machine"]))
        if refusal:
            raise _Unfit(f"{path!r} cannot run here: {refusal}")
        start, size = description["code"]
        if not 0 <= start <= start + size <= len(data):
            raise DataError("its code lies outside of the file")
        out.lib = module_of_object(bytes(data[start:start + size]), path, (out.constants,))
        from .native import fill_constants

        fill_constants(out)
    return out


#: registers that a function may have
_REGISTERS = 1 << 24


def _check(executable: Executable) -> None:
    """Raise DataError for bytecode that refers to what is not there."""
    texts = [executable.target, executable.exec_mode, *executable.names, *executable.functions]
    for table in (executable.compiled, executable.not_compiled):
        texts += [*table, *table.values()]
    for function in executable.functions.values():
        texts += function.params
    if not all(isinstance(t, str) for t in texts):
        raise DataError("a name in its description is no text")
    if not all(map(_is_number, executable.memory.values())):
        raise DataError("a size of memory is no number")
    for function in executable.functions.values():
        if not isinstance(function.params, list) or not _is_number(
                function.registers, _REGISTERS) or len(function.params) > function.registers:
            raise DataError(f"function {function.name[:60]} has {function.registers!r} registers "
                            f"for {len(function.params)} parameters")
        for at, instruction in enumerate(function.code):
            if not _fits(executable, function, at, instruction):
                raise DataError(f"instruction {at} of function {function.name[:60]} refers to what "
                                "is not there")
        if not function.code or type(function.code[-1]) not in (Ret, Goto):
            raise DataError(f"function {function.name[:60]} does not end with a return")


def _is_number(value: object, end: int = 1 << 63, low: int = 0) -> bool:
    return type(value) is int and low <= value < end


def _fits(executable: Executable, function: VMFunction, at: int, instruction: Any) -> bool:
    """Whether registers, names, constants and places of an instruction are there."""
    def register(number: Any) -> bool:
        return number in (VM_REGISTER, VOID_REGISTER) or _is_number(number, function.registers)

    def place(offset: Any) -> bool:
        return _is_number(offset, 1 << 31, -1 << 31) and 0 <= at + offset < len(function.code)

    kind = type(instruction)
    if kind is Ret:
        return register(instruction.value)
    if kind is Goto:
        return place(instruction.offset)
    if kind is If:
        return register(instruction.cond) and place(instruction.false_offset)
    sizes = {"c": len(executable.constants), "f": len(executable.names)}
    return register(instruction.dst) and _is_number(instruction.func, sizes["f"]) and all(
        register(a.value) if a.kind == "r" else _is_number(a.value, 1 << 63, -1 << 63)
        if a.kind == "i" else _is_number(a.value, sizes[a.kind]) for a in instruction.args)


# ------------------------------------------------------------------------------ parts


def _function_out(function: VMFunction) -> dict:
    return {"name": function.name, "params": function.params, "registers": function.registers,
            "code": [_instruction_out(i) for i in function.code]}


def _instruction_out(instruction: Any) -> list:
    kind = type(instruction)
    if kind is CallInstr:
        args = [[a.kind, a.value] for a in instruction.args]
        return ["call", instruction.dst, instruction.func, args]
    return [{Ret: "ret", Goto: "goto", If: "if"}[kind], *instruction]


def _instruction_in(row: list) -> Any:
    if row[0] == "call":
        return CallInstr(row[1], row[2], tuple(Arg(k, v) for k, v in row[3]))
    return {"ret": Ret, "goto": Goto, "if": If}[row[0]](*row[1:])


def _constant_out(value: Any, put: Any) -> dict:
    if hasattr(value, "shape"):
        view = np.ascontiguousarray(value._view())
        return {"kind": "tensor", "dtype": str(value.dtype), "shape": [int(d) for d in value.shape],
                "at": put(view.tobytes())}
    if isinstance(value, DType):
        return {"kind": "dtype", "value": str(value)}
    if isinstance(value, str):
        return {"kind": "string", "value": value}
    if isinstance(value, tuple):
        return {"kind": "shape", "value": [int(v) for v in value]}
    if isinstance(value, float):
        return {"kind": "float", "value": value.hex()}
    raise TypeError(f"a constant of type {type(value).__name__} cannot be saved")


def _constant_in(row: dict, memory: np.ndarray) -> Any:
    kind = row["kind"]
    if kind == "tensor":
        start, size = row["at"]
        width = numpy_dtype(row["dtype"]).itemsize
        if not 0 <= start <= start + size <= len(memory) or not all(
                type(d) is int and d >= 0 for d in row["shape"]) or (
                math.prod(row["shape"]) * width != size):
            raise DataError("a constant lies outside of the file, or is not as long as its shape")
        # a copy, aligned as kernels like it
        raw = np.empty(size + 128, np.uint8)
        first = -raw.ctypes.data % 128
        raw[first:first + size] = memory[start:start + size]
        return tensor_at(raw[first:first + size], 0, tuple(row["shape"]), row["dtype"])
    if kind == "float":
        return float.fromhex(row["value"])
    return {"dtype": DType, "string": str, "shape": tuple}[kind](row["value"])


__all__ = ["MAGIC", "load", "save"]
