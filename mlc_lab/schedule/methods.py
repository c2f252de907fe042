"""The methods of Schedule that are primitives.

`@primitive` adds each as it is defined, also one in a file of your own. `methods.pyi`, which a test
holds current, has those of `primitive/` in plain sight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..above import above


def add_method(method: Callable[..., Any]) -> None:
    """Give every schedule one more method, or a new one in place of that of its name.

    ValueError: a Schedule has a method of that name which is no primitive.
    """
    name = method.__name__
    if any(name in vars(schedule) for schedule in Primitives.__subclasses__()):
        raise ValueError(f"a Schedule has {name!r} already: give the primitive another name")
    setattr(Primitives, name, method)


class Primitives:
    """What can be done to a program under schedule, one method a primitive."""


def _of_other_versions(self: Primitives, name: str) -> Any:
    """A method by the name that another version of TVM has for it."""
    known = above("methods of schedules").get(name)
    if known is None:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}",
                             name=name, obj=self)
    return getattr(self, known)


# not in the class: type checkers would take every name for a method then
setattr(Primitives, "__getattr__", _of_other_versions)  # noqa: B010

__all__ = ["Primitives", "add_method"]
