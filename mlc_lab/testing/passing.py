"""Values that go through the calling convention of packed functions, and come back."""

from __future__ import annotations

from typing import Any

from ..runtime import Device
from ..runtime.registry import convert


def echo(value: Any) -> Any:
    """The value as a packed function gets it and gives it back."""
    return convert(lambda given: given)(value)


def device_test(dev: Device, device_type: int, device_id: int) -> Device:
    """A device that was passed to a function. AssertionError unless it is of this type and
    number."""
    given = echo(dev)
    assert (given.device_type, given.device_id) == (device_type, device_id), given
    return given


__all__ = ["device_test", "echo"]
