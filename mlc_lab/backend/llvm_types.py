"""How dtypes and constants of TensorIR are written in LLVM IR.

bool is i1 in registers and i8 in memory. bfloat16 is i16 everywhere: arithmetic on it is done in
float32 by the code generator, since few processors have instructions for it. Unsigned types are
LLVM's plain integers; the instructions differ.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from ..ir import dtype as dt

_FLOATS = {16: "half", 32: "float", 64: "double"}


@lru_cache(maxsize=None)
def element_type(dtype: str) -> str:
    """The LLVM type of one lane in a register. Raises ValueError for a type without one."""
    code, bits, _ = dt.parse(dtype)
    if code in ("int", "uint"):
        return f"i{bits}"
    if code == "float":
        return _FLOATS[bits]
    if code == "bool":
        return "i1"
    if code == "bfloat":
        return "i16"
    if code == "handle":
        return "ptr"
    if code == "void":
        return "void"
    raise ValueError(f"no machine code can be made for values of type {dtype!r}")


@lru_cache(maxsize=None)
def register_type(dtype: str) -> str:
    """The LLVM type of a value in a register."""
    lanes = dt.lanes_of(dtype)
    element = element_type(dtype)
    return element if lanes <= 1 else f"<{lanes} x {element}>"


@lru_cache(maxsize=None)
def memory_element(dtype: str) -> str:
    """The LLVM type of one lane in memory."""
    return "i8" if dt.is_bool(dtype) else element_type(dtype)


@lru_cache(maxsize=None)
def lane_bytes(dtype: str) -> int:
    """Bytes that one lane takes in memory."""
    return dt.bytes_of(dt.element_of(dtype))


def float_constant(value: float, dtype: str) -> str:
    """A floating point constant; the value is rounded to the type first."""
    return _float_constant(value, str(value)[0] == "-", dtype)


@lru_cache(maxsize=4096)
def _float_constant(value: float, negative: bool, dtype: str) -> str:
    """`float_constant`, remembered; 0.0 and -0.0 are equal, and have different signs."""
    bits = dt.bits_of(dtype)
    if dt.parse(dtype).code == "bfloat":
        return str(bfloat_bits(value))
    if bits == 16:
        return f"0xH{struct.unpack('<H', _pack_half(value))[0]:04X}"
    if bits == 32:
        value = _to_float32(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _to_float32(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _pack_half(value: float) -> bytes:
    try:
        return struct.pack("<e", value)
    except OverflowError:
        return struct.pack("<e", float("inf") if value > 0 else float("-inf"))


def bfloat_bits(value: float) -> int:
    """The bit pattern of the bfloat16 nearest to ``value``, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", _to_float32(value)))[0]
    if value != value:
        return 0x7FC0
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


@lru_cache(maxsize=4096)
def int_constant(value: int, dtype: str) -> str:
    """An integer or bool constant."""
    if dt.is_bool(dtype):
        return "true" if value else "false"
    return str(value)


@lru_cache(maxsize=None)
def iota(lanes: int, element: str) -> str:
    """The vector constant 0, 1, 2, ..."""
    return "<" + ", ".join(f"{element} {i}" for i in range(lanes)) + ">"
