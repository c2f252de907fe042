"""Data types, written as TVM writes them: "float32", "int8", "uint1"/"bool", "float32x8", "handle".

A dtype in the IR is an (interned) string: comparing two is comparing two strings. This file
answers questions about such strings; every answer is cached.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

_PATTERN = re.compile(
    r"(int|uint|float|bfloat|handle|bool|void|float8_e4m3fn|float8_e5m2)(\d*)(?:x(\d+))?")


#: the lanes of the longest vector
MAX_LANES = 65535


class DType(NamedTuple):
    """A data type in parts. `code` is int, uint, float, bfloat, bool, handle or void."""

    code: str
    bits: int
    lanes: int


@lru_cache(maxsize=None)
def parse(dtype: str) -> DType:
    """Split a dtype string. Raises ValueError for a name that is no dtype."""
    if dtype == "" or dtype == "void":
        return DType("void", 0, 0)
    match = _PATTERN.fullmatch(dtype)
    if not match:
        raise ValueError(
            f"unknown dtype {dtype!r}: expected for example 'float32', 'int64', 'bool', "
            "'bfloat16', 'handle' or a vector such as 'float32x8'")
    code, bits, lanes = match.groups()
    if lanes and not (len(lanes) < 6 and 1 <= int(lanes) <= MAX_LANES):
        raise ValueError(f"unknown dtype {dtype[:60]!r}: a vector has 1 to {MAX_LANES} lanes")
    if code == "bool":
        return DType("bool", 1, int(lanes or 1))
    if code == "handle":
        return DType("handle", 64, int(lanes or 1))
    if code == "uint" and bits == "1":
        return DType("bool", 1, int(lanes or 1))
    if code.startswith("float8"):
        return DType(code, 8, int(lanes or 1))
    width = int(bits or {"bfloat": 16}.get(code, 32))
    known = {"int": (1, 4, 8, 16, 32, 64), "uint": (1, 4, 8, 16, 32, 64), "float": (16, 32, 64),
             "bfloat": (16,)}[code]
    if width not in known:
        raise ValueError(f"unknown dtype {dtype!r}: {code} comes in {', '.join(map(str, known))} "
                         "bits")
    return DType(code, width, int(lanes or 1))


@lru_cache(maxsize=None)
def canonical(dtype: str) -> str:
    """The one spelling of a dtype: 'float' -> 'float32', 'uint1' -> 'bool'."""
    return name(*parse(str(dtype)))


@lru_cache(maxsize=None)
def name(code: str, bits: int, lanes: int = 1) -> str:
    """The string for a data type given in parts."""
    if code == "void":
        return "void"
    base = code if code in ("bool", "handle") or code.startswith("float8") else f"{code}{bits}"
    return base if lanes == 1 else f"{base}x{lanes}"


@lru_cache(maxsize=None)
def with_lanes(dtype: str, lanes: int) -> str:
    """The same element type with another number of lanes."""
    code, bits, _ = parse(dtype)
    return name(code, bits, lanes)


@lru_cache(maxsize=None)
def element_of(dtype: str) -> str:
    """The scalar type of a vector type."""
    return with_lanes(dtype, 1)


@lru_cache(maxsize=None)
def lanes_of(dtype: str) -> int:
    """Number of vector lanes (1 for a scalar)."""
    return parse(dtype).lanes


@lru_cache(maxsize=None)
def bits_of(dtype: str) -> int:
    """Bits of one lane."""
    return parse(dtype).bits


@lru_cache(maxsize=None)
def bytes_of(dtype: str) -> int:
    """Bytes that one element (all lanes) takes in memory."""
    _, bits, lanes = parse(dtype)
    return max(1, (bits + 7) // 8) * lanes


@lru_cache(maxsize=None)
def is_int(dtype: str) -> bool:
    """Signed integer."""
    return parse(dtype).code == "int"


@lru_cache(maxsize=None)
def is_uint(dtype: str) -> bool:
    """Unsigned integer (bool counted, as in TVM)."""
    return parse(dtype).code in ("uint", "bool")


@lru_cache(maxsize=None)
def is_integer(dtype: str) -> bool:
    """Signed or unsigned integer, not bool."""
    return parse(dtype).code in ("int", "uint")


@lru_cache(maxsize=None)
def is_bool(dtype: str) -> bool:
    """Boolean."""
    return parse(dtype).code == "bool"


@lru_cache(maxsize=None)
def is_float(dtype: str) -> bool:
    """Floating point, bfloat16 and float8 included."""
    return parse(dtype).code in ("float", "bfloat") or parse(dtype).code.startswith("float8")


@lru_cache(maxsize=None)
def is_handle(dtype: str) -> bool:
    """Pointer."""
    return parse(dtype).code == "handle"


@lru_cache(maxsize=None)
def int_range(dtype: str) -> tuple[int, int]:
    """Smallest and largest value of an integer or bool type."""
    code, bits, _ = parse(dtype)
    if code == "int":
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if code in ("uint", "bool"):
        return 0, (1 << bits) - 1
    raise ValueError(f"{dtype} is no integer type")


_FLOAT_MAX = {"float16": 65504.0, "float32": 3.4028234663852886e38,
              "float64": 1.7976931348623157e308, "bfloat16": 3.3895313892515355e38,
              "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


def float_max(dtype: str) -> float:
    """Largest finite value of a floating point type."""
    return _FLOAT_MAX[element_of(dtype)]


@lru_cache(maxsize=None)
def numpy_dtype(dtype: str) -> np.dtype[np.generic]:
    """The numpy dtype that stores one scalar of `dtype`.

    bfloat16 and float8 come from ml_dtypes where it is installed; without it bfloat16 is stored
    as uint16 bits.
    """
    import numpy as np

    code, bits, _ = parse(dtype)
    if code == "bool":
        return np.dtype("bool")
    if code == "handle":
        return np.dtype("uint64")
    if code == "bfloat" or code.startswith("float8"):
        try:
            import ml_dtypes
        except ImportError:
            return np.dtype(f"uint{bits}")
        return np.dtype(getattr(ml_dtypes, name(code, bits)))
    if code in ("int", "uint") and bits < 8:
        return np.dtype(f"{code}8")
    return np.dtype(f"{code}{bits}")
