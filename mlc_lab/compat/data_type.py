"""DataType: the name of a type of elements, with what TVM's class of that name says of it."""

from __future__ import annotations

from ..ir import dtype as dt


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
    def type_code(self) -> str:
        """The kind of numbers: "int", "uint", "float", "bfloat", ..."""
        return dt.parse(dt.canonical(str(self)))[0]

    def itemsize(self) -> int:
        """Bytes of one value, all lanes of it."""
        return -(-self.bits * self.lanes // 8)


__all__ = ["DataType"]
