"""Real devices: what their drivers can do beyond memory, and which there are.

A driver opens its device when it is asked for first. Where the package is not installed, or finds
no device, there is none, and the device of that type is simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...runtime.driver import Driver

if TYPE_CHECKING:
    from ..source import KernelSource

#: device type -> the module here that has its driver, and the package that it needs
OPENERS: dict[str, tuple[str, str]] = {
    "opencl": (".opencl", "pyopencl"), "webgpu": (".webgpu", "wgpu"),
}


class RealDriver(Driver):
    """A device that compiles and runs kernels."""

    def compile(self, kernel: KernelSource) -> Any:
        """A kernel that `launch` takes. Raises RuntimeError with the compiler's words."""
        raise TypeError(f"{self.name} does not compile kernels")

    def launch(self, kernel: Any, pointers: Sequence[int], scalars: Sequence[Any],
               grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        """Start a kernel on memory and numbers, in the order of its source's parameters. Work is
        done in the order in which it was started."""
        raise TypeError(f"{self.name} does not launch kernels")


class KernelError(RuntimeError):
    """A kernel that a device's compiler refuses, or whose run failed."""


def compile_error(kernel: KernelSource, device: str, words: object) -> KernelError:
    """The error for a kernel that does not compile, with its source numbered by lines."""
    lines = "\n".join(f"{n:4} {line}" for n, line in enumerate(kernel.text.splitlines(), 1))
    return KernelError(f"the kernel {kernel.name} does not compile for {device}:\n{words}\n{lines}")


def real_driver(kind: str) -> Driver | None:
    """The driver of the real device of a type; None where its package or the device is missing."""
    row = OPENERS.get(kind)
    if row is None:
        return None
    module, package = row
    try:
        import_module(package)
    except ImportError:
        return None
    return import_module(module, __package__).open_device()


__all__ = ["OPENERS", "KernelError", "RealDriver", "compile_error", "real_driver"]
