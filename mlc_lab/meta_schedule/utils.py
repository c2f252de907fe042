"""TVM's `meta_schedule.utils`: what classes written for TVM import from there."""

from __future__ import annotations


def derived_object(cls: type) -> type:
    """Decorator of a user's own runner, builder, rule or callback: the class as it is, since a
    Python class needs no counterpart in another language here. Its objects are printed as TVM
    prints them, `meta_schedule.Name(0x...)`, unless the class says how."""
    if "__str__" not in vars(cls):
        cls.__str__ = _as_tvm_prints  # type: ignore[method-assign, assignment]
    if not hasattr(cls, "_outer"):
        cls._outer = _itself  # type: ignore[attr-defined]
    return cls


def _itself(self: object) -> object:
    """TVM's way from a class of the user's to its counterpart, which is the same here."""
    return self


def _as_tvm_prints(self: object) -> str:
    return f"meta_schedule.{type(self).__name__}({id(self):#x})"


__all__ = ["derived_object"]
