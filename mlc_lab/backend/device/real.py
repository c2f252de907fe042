"""Real devices: what their drivers can do beyond memory, and which there are.

A driver opens its device when it is asked for first. Where the package is not installed, or finds
no device, there is none, and the device of that type is simulated.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime.driver import PACKAGES, Driver
from ..source import ENDED
from .watch import limit_s, until

if TYPE_CHECKING:
    from ..source import KernelSource

#: device type -> the module here that has its driver
OPENERS = {"cuda": ".cuda", "opencl": ".opencl", "webgpu": ".webgpu"}
#: kernels that are named where an error may be any one's that ran since the last wait
_NAMED = 4


class RealDriver(Driver):
    """A device that compiles and runs kernels. Its memories have numbers, which stand for addresses
    in tensors: `memories` has what each stands for."""

    #: whether accesses that may lie outside of their arrays are looked at
    watches = False
    #: what the device's package raises
    errors: tuple[type[Exception], ...] = ()

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(kind, name)
        self.memories: dict[int, Any] = {}
        self.numbers = itertools.count(1)
        self.started: deque[str] = deque(maxlen=_NAMED)  # kernels since the last wait
        self.busy = ""  # why the device takes no more work
        #: kernels that ran since the last wait and note what goes wrong: source and memory
        self.noting: dict[str, tuple[KernelSource, Any]] = {}

    def make(self, nbytes: int) -> Any:
        """Memory as the device's package has it."""
        raise TypeError(f"{self.name} does not hand out memory")

    def release(self, memory: Any) -> None:
        """Give back what `make` made."""

    def allocate(self, nbytes: int) -> int:
        try:
            memory = self.make(nbytes)
        except self.errors as error:
            raise MemoryError(f"{self.name} has no memory of {nbytes} bytes: {error}") from None
        number = next(self.numbers)
        self.memories[number] = memory
        return number

    def free(self, memory: int) -> None:
        found = self.memories.pop(memory, None)
        if found is not None:
            self.release(found)

    def done(self, action: Callable[[], Any]) -> Any:
        """What an action on the device gives. Raises KernelError where it fails."""
        try:
            return action()
        except self.errors as error:
            raise KernelError(f"work on {self.name} failed: {error}") from None

    def look(self) -> Callable[[], bool]:
        """A function that says whether all is done that was started so far, and does not wait."""
        raise TypeError(f"{self.name} does not say what it does")

    def wait(self) -> None:
        """Wait until all is done that was started.

        Raises KernelError where that takes too long. A kernel cannot be stopped from the process
        that started it: until it ends, the device takes no more work.
        """
        limit = limit_s()
        if not self.done(lambda: until(self.look(), limit)):
            self.busy = (
                f"work on {self.name} has not ended after {limit:g} s: a kernel runs without end, "
                f"or for long. Started since the last wait: {self.names()}. It cannot be stopped "
                "from within this process: wait on with dev.sync(), or start the process anew, in "
                "a notebook by restarting the kernel. MLC_LAB_DEVICE_LIMIT in the environment is "
                "the number of seconds that are waited, 0 for no end")
            raise KernelError(self.busy)
        self.busy = ""
        self.started.clear()
        noting, self.noting = self.noting, {}
        for kernel, memory in noting.values():
            note = self.done(partial(self.take_note, memory))
            if note > ENDED:
                raise KernelError(f"{kernel.name}, which ran on {self.name}, is not right: "
                                  f"{kernel.sites[note - ENDED - 1]}. The index was taken for 0")
            if note == ENDED:
                raise KernelError(self.ended(kernel.name))

    def take_note(self, memory: Any) -> int:
        """What a kernel has noted in memory that `make` made; 0 is there afterwards."""
        raise TypeError(f"{self.name} takes no notes")

    def ended(self, name: str) -> str:
        """What it means that a loop of a kernel was ended."""
        return f"{self.name} ended a loop of {name} whose condition still held"

    def free_to_work(self) -> None:
        """Raises KernelError, without waiting, where work was given up that still runs."""
        if self.busy:
            if not self.done(self.look()):
                raise KernelError(f"the device is busy: {self.busy}")
            self.busy = ""

    def names(self) -> str:
        """The kernels since the last wait, in words."""
        return ", ".join(dict.fromkeys(self.started)) or "not known"

    def compile(self, kernel: KernelSource) -> Any:
        """A kernel that `launch` takes. Raises RuntimeError with the compiler's words."""
        raise TypeError(f"{self.name} does not compile kernels")

    def launch(self, kernel: Any, pointers: Sequence[int], scalars: Sequence[Any],
               grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        """Start a kernel on memory and numbers, in the order of its source's parameters. Work is
        done in the order in which it was started."""
        raise TypeError(f"{self.name} does not launch kernels")

    @contextmanager
    def clock(self, run: Callable[[], Any]) -> Iterator[Callable[[int], float]]:
        """Measures `run`, which launches kernels: a function that runs it so many times and gives
        the nanoseconds. Here they are those of the host, from the first launch until all is done.
        """

        def nanoseconds(number: int) -> float:
            self.sync()
            start = time.perf_counter()
            for _ in range(number):
                run()
            self.sync()
            return (time.perf_counter() - start) * 1e9

        yield nanoseconds

    def flush_cache(self, nbytes: int) -> None:
        """Write so many bytes, so that the device's caches hold nothing of what came before."""
        memory = self.allocate(nbytes)
        try:
            self.write(memory, np.ones(nbytes, np.uint8))
            self.sync()
        finally:
            self.free(memory)


class KernelError(RuntimeError):
    """A kernel that a device's compiler refuses, or whose run failed."""


def buffers_suffice(kernel: KernelSource, most: int, device: str, own: int = 0) -> None:
    """Refuse a kernel with more arrays than a device can give it, which has `own` among them."""
    count = len(kernel.pointers) + own
    if count > most:
        names = ", ".join(p.name for p in kernel.pointers)
        raise KernelError(
            f"{kernel.name} uses {count} buffers ({names}), and {device} has at most {most} for a "
            "kernel: put several into one, or let several kernels do the work")


def compile_error(kernel: KernelSource, device: str, words: object) -> KernelError:
    """The error for a kernel that does not compile: the statements that the compiler's words point
    at, with the blocks that they came from, and the source numbered by lines."""
    text = kernel.text.splitlines()
    lines = "\n".join(f"{n:4} {line}" for n, line in enumerate(text, 1))
    found = "".join(f"line {n}{_block_above(text, n)}: {text[n - 1].strip()}\n"
                    for n in dict.fromkeys(int(m) for m in _PLACE.findall(str(words)))
                    if 1 <= n <= len(text))
    return KernelError(f"the kernel {kernel.name} does not compile for {device}:\n{found}{words}\n"
                       f"{lines}")


#: how compilers write where a mistake is: file.cl:10:13, wgsl:10:13, kernel.cu(10): error
_PLACE = re.compile(r"(?::(?=\d+:\d)|\((?=\d+\): ))(\d+)")


def _block_above(text: Sequence[str], number: int) -> str:
    """The block that a line came from, as the comment above it says; "" where none does."""
    depth = len(text[number - 1]) - len(text[number - 1].lstrip())
    for line in reversed(text[:number - 1]):
        own = len(line) - len(line.lstrip())
        if own <= depth and line.strip().startswith("// block "):
            return f", of block {line.strip().removeprefix('// block ')}"
        depth = min(depth, own) if line.strip() else depth
    return ""


def real_driver(kind: str) -> Driver | None:
    """The driver of the real device of a type; None where its package or the device is missing."""
    module = OPENERS.get(kind)
    if module is None:
        return None
    try:
        import_module(PACKAGES[kind])
    except ImportError:
        return None
    return import_module(module, __package__).open_device()


__all__ = ["OPENERS", "KernelError", "RealDriver", "buffers_suffice", "compile_error",
           "real_driver"]
