"""Devices: where a tensor lives and where a kernel runs.

The CPU, and GPUs: `cuda(0)`, `opencl(0)`, `webgpu(0)` and `metal(0)` are there on every machine,
simulated where there is no real one (`driver.py`). Other types exist so that programs which name
them parse and print.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm_ffi import Device as _FFIDevice
from tvm_ffi import core as _core

from .driver import driver_of, has_driver

__all__ = ["Device", "cpu", "cuda", "device", "metal", "opencl", "webgpu"]

# Target kinds that are another spelling of a device type.
_ALIASES = {
    "llvm": "cpu",
    "c": "cpu",
    "stackvm": "cpu",
    "test": "cpu",
    "hybrid": "cpu",
    "composite": "cpu",
    "sdaccel": "opencl",
    "aocl": "opencl",
    "aocl_sw_emu": "opencl",
    "ext_dev": "ext_dev",
    "nvptx": "cuda",
    "gpu": "cuda",
    "cl": "opencl",
}


#: the names that tvm-ffi knows; its stubs leave it out
_NAMES: Mapping[str, int] = vars(_FFIDevice)["_DEVICE_NAME_TO_TYPE"]


class Device(_FFIDevice):
    """A device type and an index, printed as TVM prints it: ``cpu(0)``."""

    @property
    def device_type(self) -> int:
        """The DLPack device type code (1 is the CPU)."""
        return self.dlpack_device_type()

    @property
    def device_id(self) -> int:
        """The zero-based index of the device among those of its type."""
        return self.index

    @property
    def exist(self) -> bool:
        """Whether kernels can be run on this device by this library."""
        return (self.type == "cpu" and self.index == 0) or has_driver(self.type, self.index)

    @property
    def simulated(self) -> bool:
        """Whether kernels for this device run as code for the CPU, as there is no real one."""
        return has_driver(self.type, self.index) and driver_of(self.type).simulated

    @property
    def device_name(self) -> str:
        """What the device calls itself."""
        return driver_of(self.type).name if has_driver(self.type, self.index) else self.type

    def _attribute(self, name: str) -> Any:
        """What the device's driver says of it; None where it says nothing."""
        if not has_driver(self.type, self.index):
            return None
        return driver_of(self.type).attributes().get(name)

    @property
    def compute_version(self) -> str | None:
        """The compute capability of a CUDA device, such as "9.0"; None of others."""
        return self._attribute("compute_version")

    @property
    def max_threads_per_block(self) -> int | None:
        """How many threads a block can have; None where that is not known."""
        return self._attribute("max_threads_per_block")

    @property
    def max_shared_memory_per_block(self) -> int | None:
        """Bytes of shared memory that a block can have; None where that is not known."""
        return self._attribute("max_shared_memory_per_block")

    @property
    def max_thread_dimensions(self) -> list[int] | None:
        """How many threads a block can have along x, y and z; None where that is not known."""
        return self._attribute("max_thread_dimensions")

    @property
    def warp_size(self) -> int | None:
        """Threads that run together; None where that is not known."""
        return self._attribute("warp_size")

    @property
    def multi_processor_count(self) -> int | None:
        """How many multiprocessors the device has; None where that is not known."""
        return self._attribute("multi_processor_count")

    @property
    def max_clock_rate(self) -> int | None:
        """The highest clock in kHz; None where that is not known."""
        return self._attribute("max_clock_rate")

    @property
    def l2_cache_size_bytes(self) -> int | None:
        """Bytes of the second-level cache; None where that is not known."""
        return self._attribute("l2_cache_size_bytes")

    @property
    def total_global_memory(self) -> int | None:
        """Bytes of the device's memory; None where that is not known."""
        return self._attribute("total_global_memory")

    @property
    def available_global_memory(self) -> int | None:
        """Bytes of the device's memory that are free; None where that is not known."""
        return self._attribute("available_global_memory")

    @property
    def api_version(self) -> int | None:
        """The version of the interface, 13000 for CUDA 13; None where that is not known."""
        return self._attribute("api_version")

    @property
    def driver_version(self) -> str | None:
        """The version that the driver calls itself; None where that is not known."""
        return self._attribute("driver_version")

    def sync(self, stream: object = None) -> None:
        """Wait for outstanding work; kernels on the CPU have finished when their call returns."""
        if has_driver(self.type, self.index):
            driver_of(self.type).sync()

    def __repr__(self) -> str:
        return f"{self.type}({self.index})"

    __str__ = __repr__


# Tensors report their device through this class.
_core._set_class_device(Device)


def device(dev_type: str | int | Device = "cpu", dev_id: int = 0) -> Device:
    """The device named by a device type or a target kind, such as ``"cpu"`` or ``"llvm"``.

    Raises ValueError for an unknown name.
    """
    if isinstance(dev_type, _FFIDevice):
        return dev_type
    if isinstance(dev_type, str):
        name = dev_type.split()[0] if dev_type.strip() else ""
        name, _, index = name.partition(":")
        if index:
            dev_id = int(index)
        dev_type = _ALIASES.get(name, name)
        if dev_type not in _NAMES:
            known = ", ".join(sorted({*_NAMES, *_ALIASES}))
            raise ValueError(f"unknown device type {dev_type!r}; the known names are {known}")
    return Device(dev_type, dev_id)


def cpu(dev_id: int = 0) -> Device:
    """The CPU."""
    return Device("cpu", dev_id)


def cuda(dev_id: int = 0) -> Device:
    """The CUDA device with index ``dev_id``."""
    return Device("cuda", dev_id)


def opencl(dev_id: int = 0) -> Device:
    """The OpenCL device with index ``dev_id``."""
    return Device("opencl", dev_id)


def metal(dev_id: int = 0) -> Device:
    """The Metal device with index ``dev_id``."""
    return Device("metal", dev_id)


def webgpu(dev_id: int = 0) -> Device:
    """The WebGPU device with index ``dev_id``."""
    return Device("webgpu", dev_id)
