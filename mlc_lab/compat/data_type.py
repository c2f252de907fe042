"""DataType: the name of a type of elements, with what TVM's class of that name says of it."""

from __future__ import annotations

from enum import IntEnum

from ..ir import dtype as dt


class DataTypeCode(IntEnum):
    """The kinds of numbers, as TVM and DLPack count them."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    E4M3Float = 6
    E5M2Float = 7


class DataType(str):
    """A type such as "float32x4", which is its name as a string too.

    Raises ValueError for what is no type.
    """

    __slots__ = ()

    def __new__(cls, name: str) -> DataType:
        dt.parse(dt.canonical(str(name)))  # refuses what is no type
        return super().__new__(cls, name)

    @property
    def bits(self) -> int:
        """Bits of one element."""
        return dt.parse(dt.canonical(str(self)))[1]

    @property
    def lanes(self) -> int:
        """Elements of a vector; 1 of a scalar."""
        return dt.parse(dt.canonical(str(self)))[2]

    @property
    def type_code(self) -> DataTypeCode:
        """The kind of numbers."""
        return _CODES[dt.parse(dt.canonical(str(self)))[0]]

    def itemsize(self) -> int:
        """Bytes of one value, all lanes of it."""
        return -(-self.bits * self.lanes // 8)


_CODES = {"bool": DataTypeCode.UINT, "bfloat": DataTypeCode.BFLOAT,
          "float8_e4m3fn": DataTypeCode.E4M3Float, "float8_e5m2": DataTypeCode.E5M2Float,
          "int": DataTypeCode.INT, "uint": DataTypeCode.UINT, "float": DataTypeCode.FLOAT,
          "handle": DataTypeCode.HANDLE}

__all__ = ["DataType", "DataTypeCode"]
