"""Paths from an object to a part of it: `ObjectPath.root().attr("body").array_index(0)`.

Two paths are equal if they take the same steps. Printing writes them as Python would:
`<root>.body[0]`.
"""

from __future__ import annotations

from typing import Any


class ObjectPath:
    """A path; made by `root`, and by the methods that take one step more."""

    __slots__ = ("parent", "step")

    def __init__(self, parent: ObjectPath | None, step: Any) -> None:
        self.parent, self.step = parent, step

    @staticmethod
    def root(root_name: str | None = None) -> RootPath:
        """The path of no steps."""
        return RootPath(None, root_name)

    def attr(self, attr_key: str | None) -> ObjectPath:
        """On to an attribute; None stands for one that is not known."""
        if attr_key is None:
            return UnknownAttributeAccessPath(self, None)
        return AttributeAccessPath(self, attr_key)

    def array_index(self, index: int) -> ArrayIndexPath:
        """On to an element of an array."""
        return ArrayIndexPath(self, int(index))

    def missing_array_element(self, index: int) -> MissingArrayElementPath:
        """On to an element that the array does not have."""
        return MissingArrayElementPath(self, int(index))

    def map_value(self, key: Any) -> MapValuePath:
        """On to the value of a key."""
        return MapValuePath(self, key)

    def missing_map_entry(self) -> MissingMapEntryPath:
        """On to an entry that the map does not have."""
        return MissingMapEntryPath(self, None)

    def steps(self) -> list[ObjectPath]:
        """The paths on the way, from the root to this one."""
        found: list[ObjectPath] = []
        path: ObjectPath | None = self
        while path is not None:
            found.append(path)
            path = path.parent
        return found[::-1]

    def get_prefix(self, length: int) -> ObjectPath:
        """The first `length` steps, the root among them. IndexError where there are not as many."""
        if length < 1:
            raise IndexError("Prefix length must be at least 1")
        steps = self.steps()
        if length > len(steps):
            raise IndexError("Attempted to get a prefix longer than the path itself")
        return steps[length - 1]

    def is_prefix_of(self, other: ObjectPath) -> bool:
        """Whether `other` begins as this path does."""
        return len(self) <= len(other) and self == other.get_prefix(len(self))

    def _key(self) -> tuple[Any, ...]:
        return tuple((type(path), path.step) for path in self.steps())

    def __len__(self) -> int:
        return len(self.steps())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _text(self) -> str:
        raise NotImplementedError(type(self))

    def __repr__(self) -> str:
        return "".join(path._text() for path in self.steps())


class RootPath(ObjectPath):
    """The object itself."""

    __slots__ = ()

    def _text(self) -> str:
        return "<root>" if self.step is None else str(self.step)


class AttributeAccessPath(ObjectPath):
    """A step to an attribute."""

    __slots__ = ()

    def _text(self) -> str:
        return f".{self.step}"


class UnknownAttributeAccessPath(ObjectPath):
    """A step to an attribute whose name is not known."""

    __slots__ = ()

    def _text(self) -> str:
        return ".<unknown attribute>"


class ArrayIndexPath(ObjectPath):
    """A step to an element of an array."""

    __slots__ = ()

    def _text(self) -> str:
        return f"[{self.step}]"


class MissingArrayElementPath(ObjectPath):
    """A step to an element that an array does not have."""

    __slots__ = ()

    def _text(self) -> str:
        return f"[<missing element #{self.step}>]"


class MapValuePath(ObjectPath):
    """A step to a value of a map."""

    __slots__ = ()

    def _text(self) -> str:
        return f'["{self.step}"]' if isinstance(self.step, str) else f"[{self.step}]"


class MissingMapEntryPath(ObjectPath):
    """A step to an entry that a map does not have."""

    __slots__ = ()

    def _text(self) -> str:
        return "[<missing entry>]"


class ObjectPathPair:
    """Where two objects differ: the path in each."""

    __slots__ = ("lhs_path", "rhs_path")

    def __init__(self, lhs_path: ObjectPath, rhs_path: ObjectPath) -> None:
        self.lhs_path, self.rhs_path = lhs_path, rhs_path

    def __iter__(self) -> Any:
        return iter((self.lhs_path, self.rhs_path))

    def __getitem__(self, index: int) -> ObjectPath:
        return (self.lhs_path, self.rhs_path)[index]


__all__ = ["ArrayIndexPath", "AttributeAccessPath", "MapValuePath", "MissingArrayElementPath",
           "MissingMapEntryPath", "ObjectPath", "ObjectPathPair", "RootPath",
           "UnknownAttributeAccessPath"]
