"""Drivers: what stands between tensors and a device, real or simulated.

A tensor on a device other than the CPU is made, copied and freed by the driver of the device.
`driver_of` finds it: that of `backend/device/` where its package and a device are there, else the
simulated one, whose memory is the host's.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from ..above import above

__all__ = ["KINDS", "PACKAGES", "Driver", "SimulatedDriver", "driver_of", "has_driver"]

#: the device types that kernels are made for
KINDS = ("cuda", "opencl", "metal", "webgpu")
#: the device types that real devices are used of -> the package it takes, which the extra of the
#: type's name installs
PACKAGES = {"cuda": "cuda.bindings", "opencl": "pyopencl", "webgpu": "wgpu"}


class Driver:
    """One device. A driver of a real one overrides everything but `host_memory` and `simulated`.

    Attributes
    ----------
    kind : str
        The device type, such as "opencl".
    host_memory : bool
        Whether tensors of the device lie in the host's memory.
    simulated : bool
        Whether kernels run as code for the CPU.
    name : str
        What the device calls itself.
    """

    host_memory = False
    simulated = False

    def __init__(self, kind: str, name: str) -> None:
        self.kind, self.name = kind, name

    def allocate(self, nbytes: int) -> int:
        """Memory of so many bytes, as a number that is not zero. Raises MemoryError."""
        raise TypeError(f"{self.name} does not hand out memory")

    def free(self, memory: int) -> None:
        """Give memory back."""

    def write(self, memory: int, source: np.ndarray) -> None:
        """Copy a compact array to the start of memory."""

    def read(self, memory: int, target: np.ndarray) -> None:
        """Copy from the start of memory into a compact array, after all work before is done."""

    def sync(self) -> None:
        """Wait for all work that was started."""

    def attributes(self) -> Mapping[str, Any]:
        """What is known of the device, by the names of attributes of `Device`."""
        return {}


class SimulatedDriver(Driver):
    """A device that is not there: its memory is the host's, and kernels run on the CPU."""

    host_memory = True
    simulated = True

    def __init__(self, kind: str) -> None:
        super().__init__(kind, f"simulated {kind} device")
        self.announced = False

    def announce(self) -> None:
        """Say, once, that the device is simulated."""
        if not self.announced:
            self.announced = True
            print(f"mlc_lab: no {self.kind} device is used here, {self.kind}(0) is simulated: "
                  "kernels run on this CPU, with the same results; times say whose they are."
                  + self._what_to_install())

    def _what_to_install(self) -> str:
        package = PACKAGES.get(self.kind)
        if package is None or os.environ.get("MLC_LAB_DEVICE") == "simulated":
            return ""
        try:
            import_module(package)
        except ImportError:
            extra = f"[{self.kind}]"
            return (f' For a real one, if this machine has one: pip install "mlc-lab{extra}" (in a '
                    f'checkout: pip install -e ".{extra}"), and start Python again.')
        return f" {package} is installed, and finds no device."


def has_driver(kind: str, index: int) -> bool:
    """Whether there is a device of that type and number: the simulated ones have number 0."""
    return kind in KINDS and index == 0


@functools.cache
def driver_of(kind: str) -> Driver:
    """The driver of the device number 0 of a type in `KINDS`.

    With MLC_LAB_DEVICE=simulated in the environment it is the simulated one.
    """
    real: Any = None
    if os.environ.get("MLC_LAB_DEVICE") != "simulated":
        real = above("driver of a real device")(kind)
    return real if real is not None else SimulatedDriver(kind)
