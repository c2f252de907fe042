"""What a rule is given: attributes and inputs that know whether they were looked at, and sizes.

What a model says and a rule does not look at would be dropped, and the result be another one. So
the importer refuses it, unless it says what holds anyway.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator

#: attributes that do not change what is translated: how torch or a device is to compute it, sizes
#: that inputs have anyway, and what is done in training alone
HARMLESS = frozenset({
    "consumed_inputs", "hidden_size", "is_test", "kernel_shape", "momentum", "num_outputs",
    "output_sequence", "saturate", "seed", "sorted", "stash_type", "storage_order"})


class Attributes(dict):
    """The attributes of a node, by name."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.seen: set[str] = set()

    def get(self, name: str, default: object = None) -> Any:
        self.seen.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> Any:
        self.seen.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.seen.add(str(name))
        return super().__contains__(name)

    def dropped(self, defaults: dict[str, Any]) -> list[str]:
        """The attributes that nothing looked at and that say something."""
        return [name for name in self if name not in self.seen and name not in HARMLESS
                and not (name in defaults and defaults[name] == super(Attributes, self)
                         .__getitem__(name))]


class Inputs(list):
    """The inputs of a node; None for one that is left out."""

    def __init__(self, values: Iterable[Any]) -> None:
        super().__init__(values)
        self.seen: set[int] = set()

    def __getitem__(self, at: Any) -> Any:
        self.seen.update(range(len(self))[at] if isinstance(at, slice) else [range(len(self))[at]])
        return super().__getitem__(at)

    def __iter__(self) -> Iterator[Any]:
        self.seen.update(range(len(self)))
        return super().__iter__()

    def dropped(self) -> list[int]:
        """The inputs that are there and that nothing looked at."""
        return [k for k in range(len(self)) if k not in self.seen
                and super(Inputs, self).__getitem__(k) is not None]


class Sizes(tuple):
    """Sizes, some of them symbolic: a vector of them, or with `rank` 0 one of them."""

    rank: int
    dtype: str

    def __new__(cls, values: Iterable[Any], rank: int = 1, dtype: str = "int64") -> Sizes:
        made = super().__new__(cls, values)
        made.rank, made.dtype = rank, dtype
        return made


class Items(list):
    """The tensors of a sequence."""


__all__ = ["Attributes", "HARMLESS", "Inputs", "Items", "Sizes"]
