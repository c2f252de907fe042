"""CUDA devices through cuda-bindings (12 or 13): the driver's own functions, and NVRTC.

Kernels and copies go to the default stream of the device's primary context, which is that of torch
and CuPy too: their work and that of the lab is done in the order in which it was started, unless a
program makes streams of its own.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir import dtype as dt
from .nvrtc import CompileError, architecture_for, available, compile_cuda
from .real import KernelError, RealDriver, compile_error

if TYPE_CHECKING:
    from ..source import KernelSource

#: errors after which a context does nothing any more: an illegal address, a time-out, a trap, ...
_LOST = frozenset({700, 702, 710, 714, 715, 716, 717, 718, 719})


class CUDAError(RuntimeError):
    """What a function of the driver answers, with the number of the error."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.code = code


class _Kernel:
    """A kernel's machine code, and its function in the context that is open now."""

    def __init__(self, driver: CUDADriver, source: KernelSource, code: bytes) -> None:
        self.driver, self.source, self.code = driver, source, code
        self.types = [dt.numpy_dtype(s.dtype) for s in source.scalars]
        self.context = -1  # the number of the context that it was loaded into
        self.module: Any = None
        self.function: Any = None
        self.load()

    def load(self) -> None:
        """Load it into the context, unless it is there."""
        driver, source = self.driver, self.source
        if self.context == driver.opened:
            return
        self.module = driver.call("cuModuleLoadData", self.code)
        self.function = driver.call("cuModuleGetFunction", self.module, source.name.encode())
        if source.dynamic_shared:
            most = driver.lib.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.call("cuFuncSetAttribute", self.function, most, source.dynamic_shared)
        self.context = driver.opened

    def __del__(self) -> None:
        if self.module is not None and self.context == self.driver.opened:
            self.driver.give_back("cuModuleUnload", self.module)


class _Arguments:
    """The arguments of a launch, as the driver takes them: the addresses of the values."""

    def __init__(self, pointers: Sequence[int], scalars: Sequence[np.ndarray]) -> None:
        self.values = [np.array([p], np.uint64) for p in pointers] + list(scalars)
        self.table = (ctypes.c_void_p * max(len(self.values), 1))(
            *(v.ctypes.data for v in self.values))
        self.address = ctypes.addressof(self.table)


class CUDADriver(RealDriver):
    """The first CUDA device. Numbers of memory are addresses, as DLPack wants them."""

    errors = (CUDAError,)

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        self.lost = ""  # why the context does nothing any more
        self.opened = 0  # how many contexts were opened
        self.unused: list[tuple[str, Any]] = []  # to be given back when the device is idle
        self.gone: set[int] = set()  # addresses of tensors in contexts that are lost
        self.recording: list[tuple[Any, ...]] | None = None
        self.kept: list[int] = []  # memory that recorded launches use
        self.device = self._checked("cuDeviceGet", 0)
        name = self._checked("cuDeviceGetName", 256, self.device)
        super().__init__("cuda", name.split(b"\0")[0].decode(errors="replace").strip())
        self._open()

    # -- the driver's functions -------------------------------------------------------------------

    def _checked(self, function: str, *args: object) -> Any:
        """What a function of the driver gives. Raises CUDAError."""
        error, *values = getattr(self.lib, function)(*args)
        if error != self.lib.CUresult.CUDA_SUCCESS:
            known, words = self.lib.cuGetErrorString(error)
            text = words.decode() if known == self.lib.CUresult.CUDA_SUCCESS else "unknown"
            raise CUDAError(f"{error.name}, {text} ({function})", int(error))
        return values[0] if len(values) == 1 else values

    def call(self, function: str, *args: object) -> Any:
        """As `_checked`, in the device's context; notes when that is lost."""
        if self.lost:
            self._renew()
        try:
            self._checked("cuCtxSetCurrent", self.context)
            return self._checked(function, *args)
        except CUDAError as error:
            if error.code not in _LOST:
                raise
            kernels = self.names()
            self.started.clear()
            self.lost = (
                f"a kernel on {self.name} failed: {error}. Kernels that ran since the last wait: "
                f"{kernels}. The device's context is lost, with all tensors on it and those of "
                "other libraries in this process. tvm.find_races(sch) runs the program without "
                "the device, and says where it leaves its buffers"
            )
            raise CUDAError(self.lost, error.code) from None

    def _open(self) -> None:
        self.context = self._checked("cuDevicePrimaryCtxRetain", self.device)
        self._checked("cuCtxSetCurrent", self.context)
        self.opened += 1

    def _renew(self) -> None:
        """Open a fresh context in place of one that is lost. Raises KernelError where the driver
        does not give one: then this process has to be started anew."""
        try:
            self.lib.cuDevicePrimaryCtxReset(self.device)
            self._open()
            self._checked("cuMemFree", self._checked("cuMemAlloc", 4))
        except CUDAError:
            raise KernelError(f"{self.lost}. No new context can be opened in this process: start "
                              "it anew, in a notebook by restarting the kernel") from None
        self.gone.update(self.memories)
        self.memories.clear()
        self.unused.clear()
        self.lost = ""

    # -- waiting ----------------------------------------------------------------------------------

    def look(self) -> Callable[[], bool]:
        def is_done() -> bool:
            if self.lost:
                return True
            self._checked("cuCtxSetCurrent", self.context)
            error = self.lib.cuStreamQuery(0)[0]
            if error == self.lib.CUresult.CUDA_ERROR_NOT_READY:
                return False
            if error != self.lib.CUresult.CUDA_SUCCESS:
                self.call("cuStreamQuery", 0)  # says what is wrong
            return True

        return is_done

    def wait(self) -> None:
        super().wait()
        unused, self.unused = self.unused, []
        for function, what in unused:
            getattr(self.lib, function)(what)

    def give_back(self, function: str, what: Any) -> None:
        """Give something back by a function that would wait for the device: now where it has
        nothing to do, else after the next wait."""
        if self.lost:
            return
        self.lib.cuCtxSetCurrent(self.context)
        if self.lib.cuStreamQuery(0)[0] == self.lib.CUresult.CUDA_ERROR_NOT_READY:
            self.unused.append((function, what))
        else:
            getattr(self.lib, function)(what)

    # -- memory -----------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        self.free_to_work()
        try:
            return self._take(nbytes)
        except MemoryError:
            if not self.unused:
                raise
            self.wait()  # what is not used any more is given back
            return self._take(nbytes)

    def _take(self, nbytes: int) -> int:
        """New memory. Raises MemoryError."""
        clashes = []  # addresses that tensors of a lost context still have
        try:
            while True:
                memory = int(self.call("cuMemAlloc", nbytes))
                if memory not in self.gone:
                    break
                clashes.append(memory)
        except CUDAError as error:
            raise MemoryError(f"{self.name} has no memory of {nbytes:,} bytes: {error}; free "
                              "tensors that are not needed, with del") from None
        finally:
            for clash in clashes:
                self.call("cuMemFree", clash)
        self.memories[memory] = nbytes
        return memory

    def free(self, memory: int) -> None:
        if self.recording is not None:
            self.kept.append(memory)
        elif self.memories.pop(memory, None) is not None:
            self.give_back("cuMemFree", memory)
        else:
            self.gone.discard(memory)

    def _there(self, memory: int) -> None:
        """Raises KernelError for memory of a context that is lost."""
        if self.lost:
            self._renew()
        self.free_to_work()
        if memory in self.gone:
            raise KernelError(f"this tensor was on {self.name} when a kernel failed there, and is "
                              "lost: make it again")

    def write(self, memory: int, source: np.ndarray) -> None:
        self._there(memory)
        self.wait()
        self.done(lambda: self.call("cuMemcpyHtoD", memory, source.ctypes.data, source.nbytes))

    def read(self, memory: int, target: np.ndarray) -> None:
        self._there(memory)
        self.wait()
        self.done(lambda: self.call("cuMemcpyDtoH", target.ctypes.data, memory, target.nbytes))

    def sync(self) -> None:
        self.wait()
        self.done(lambda: self.call("cuCtxSynchronize"))  # streams of other libraries, too

    # -- kernels ----------------------------------------------------------------------------------

    @functools.cached_property
    def architecture(self) -> str:
        """What kernels are compiled for."""
        major, minor = self.attributes()["compute_version"].split(".")
        return architecture_for(int(major) * 10 + int(minor))

    def compile(self, kernel: KernelSource) -> Any:
        try:
            code = compile_cuda(kernel.text, kernel.name, self.architecture)
        except CompileError as error:
            raise compile_error(kernel, self.name, error) from None
        return self.done(lambda: _Kernel(self, kernel, code))

    def launch(self, kernel: Any, pointers: Sequence[int], scalars: Sequence[Any],
               grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        self.free_to_work()
        for memory in pointers:
            self._there(memory)
        self.done(kernel.load)
        name = kernel.source.name
        given = _Arguments(pointers, [np.array([v], t) for v, t in zip(scalars, kernel.types)])
        launch = (kernel.function, *grid, *block, kernel.source.dynamic_shared, 0, given.address, 0)
        try:
            self.call("cuLaunchKernel", *launch)
        except CUDAError as error:
            why = "" if self.lost else (f"the launch of {name} was refused: grid {grid}, block "
                                        f"{block}, {kernel.source.shared_bytes} bytes of shared "
                                        "memory: ")
            raise KernelError(f"{why}{error}") from None
        self.started.append(name)
        if self.recording is not None:
            self.recording.append((given, launch))

    # -- time -------------------------------------------------------------------------------------

    @contextmanager
    def clock(self, run: Callable[[], Any]) -> Iterator[Callable[[int], float]]:
        """Launches are recorded once and then repeated without what the host does between them, so
        that the time between two events is that of the device."""
        self.recording, self.kept = [], []
        try:
            run()
        finally:
            launches, self.recording = self.recording, None
        begin = self.done(lambda: self.call("cuEventCreate", 0))
        end = self.done(lambda: self.call("cuEventCreate", 0))
        launch, good = self.lib.cuLaunchKernel, self.lib.CUresult.CUDA_SUCCESS
        rows = [row for _, row in launches]

        def nanoseconds(number: int) -> float:
            self.call("cuEventRecord", begin, 0)
            for _ in range(number):
                for row in rows:
                    if launch(*row)[0] != good:
                        self.call("cuLaunchKernel", *row)  # says what is wrong
            self.call("cuEventRecord", end, 0)
            self.wait()
            self.call("cuEventSynchronize", end)
            return float(self.call("cuEventElapsedTime", begin, end)) * 1e6

        try:
            self.wait()  # a kernel without end is found before it is started many times
            yield lambda number: self.done(lambda: nanoseconds(number))
        finally:
            for memory in self.kept:
                self.free(memory)
            if not self.lost:
                self.lib.cuEventDestroy(begin)
                self.lib.cuEventDestroy(end)

    def flush_cache(self, nbytes: int) -> None:
        memory = self.allocate(nbytes)
        try:
            self.done(lambda: self.call("cuMemsetD8", memory, 1, nbytes))
            self.sync()
        finally:
            self.free(memory)

    def attributes(self) -> Mapping[str, Any]:
        def of(name: str) -> int:
            kinds = self.lib.CUdevice_attribute
            kind = getattr(kinds, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(self.call("cuDeviceGetAttribute", kind, self.device))

        free, total = self.call("cuMemGetInfo")
        return {
            "compute_version": f"{of('COMPUTE_CAPABILITY_MAJOR')}.{of('COMPUTE_CAPABILITY_MINOR')}",
            "max_threads_per_block": of("MAX_THREADS_PER_BLOCK"), "warp_size": of("WARP_SIZE"),
            "max_shared_memory_per_block": of("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            "max_clock_rate": of("CLOCK_RATE"), "multi_processor_count": of("MULTIPROCESSOR_COUNT"),
            "max_thread_dimensions": [of(f"MAX_BLOCK_DIM_{axis}") for axis in "XYZ"],
            "api_version": int(self.lib.CUDA_VERSION),
            "driver_version": str(self._checked("cuDriverGetVersion")),
            "l2_cache_size_bytes": of("L2_CACHE_SIZE"),
            "total_global_memory": int(total), "available_global_memory": int(free),
        }


def open_device() -> CUDADriver | None:
    """The driver; None where there is no driver, no device, or no NVRTC."""
    try:
        lib = import_module("cuda.bindings.driver")
        if lib.cuInit(0)[0] != lib.CUresult.CUDA_SUCCESS or not lib.cuDeviceGetCount()[1]:
            return None
        return CUDADriver(lib) if available() else None
    except (ImportError, AttributeError, RuntimeError, OSError):  # no driver, or one that is broken
        return None


__all__ = ["CUDADriver", "CUDAError", "open_device"]
