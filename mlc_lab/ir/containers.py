"""Which container a value of any type is. A checker knows nothing of the items after `isinstance`;
after these it takes them for `Any`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeGuard


def is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    """A tuple."""
    return isinstance(value, tuple)


def is_sequence(value: object) -> TypeGuard[tuple[Any, ...] | list[Any]]:
    """A tuple or a list."""
    return isinstance(value, (tuple, list))


def is_dict(value: object) -> TypeGuard[dict[Any, Any]]:
    """A dict."""
    return isinstance(value, dict)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """A dict or what is read as one."""
    return isinstance(value, Mapping)


__all__ = ["is_dict", "is_mapping", "is_sequence", "is_tuple"]
