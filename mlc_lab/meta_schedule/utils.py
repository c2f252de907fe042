"""TVM's `meta_schedule.utils`: what classes written for TVM import from there."""

from __future__ import annotations


def derived_object(cls: type) -> type:
    """Decorator of a user's own runner, builder, rule or callback: the class as it is, since a
    Python class needs no counterpart in another language here."""
    return cls


__all__ = ["derived_object"]
