"""The methods of Schedule that are primitives.

`@primitive` adds each as it is defined, also one in a file of your own. `methods.pyi`, which a test
holds current, has those of `primitive/` in plain sight.
"""

from __future__ import annotations

from collections.abc import Callable


class Primitives:
    """What can be done to a program under schedule, one method a primitive."""

    @classmethod
    def add(cls, method: Callable) -> None:
        """Take one more method, or a new one of the same name."""
        name = method.__name__
        if any(name in vars(schedule) for schedule in cls.__subclasses__()):
            raise ValueError(f"a Schedule has {name!r} already: give the primitive another name")
        setattr(cls, name, method)


__all__ = ["Primitives"]
