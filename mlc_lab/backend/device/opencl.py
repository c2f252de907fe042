"""OpenCL devices through pyopencl: a GPU, or with PoCL the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir import dtype as dt
from ...lower.thread_sync import is_barrier
from ...tir.expr import IterVar
from ...tir.function import PrimFunc
from ...tir.functor import all_statements, uses_var
from ...tir.stmt import AttrStmt, For, While
from .real import KernelError, RealDriver, compile_error

if TYPE_CHECKING:
    from ..source import KernelSource

#: kernels that are measured before their events are looked at and forgotten
_NOTED = 1000


class OpenCLDriver(RealDriver):
    """The first GPU that OpenCL finds, else its first device."""

    watches = True

    def __init__(self, device: Any) -> None:
        import pyopencl as cl

        super().__init__("opencl", device.name.strip())
        self.cl = cl
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.errors = (cl.Error,)
        self.noted: list[Any] | None = None  # events of kernels, while they are measured
        self.pocl = "Portable Computing Language" in device.platform.name

    def make(self, nbytes: int) -> Any:
        return self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, nbytes)

    def release(self, memory: Any) -> None:
        memory.release()

    def write(self, memory: int, source: np.ndarray) -> None:
        self.free_to_work()
        self.wait()
        self.cl.enqueue_copy(self.queue, self.memories[memory], source)

    def read(self, memory: int, target: np.ndarray) -> None:
        self.free_to_work()
        self.wait()
        self.done(lambda: self.cl.enqueue_copy(self.queue, target, self.memories[memory]))

    def look(self) -> Callable[[], bool]:
        marker = self.cl.enqueue_marker(self.queue)
        self.queue.flush()

        def is_done() -> bool:
            status = marker.command_execution_status
            if status < 0:
                self.queue.finish()  # says what is wrong
            return status <= self.cl.command_execution_status.COMPLETE

        return is_done

    def sync(self) -> None:
        self.wait()

    def compile(self, kernel: KernelSource) -> Any:
        self._check_shuffles(kernel)
        options = ["-cl-opt-disable"] if self.pocl and _misread(kernel.func) else []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what compilers say of programs that they accept
            try:
                program = self.cl.Program(self.context, kernel.text).build(options=options)
            except self.cl.Error as error:
                raise compile_error(kernel, self.name, error) from None
        function = getattr(program, kernel.name)
        if kernel.warp:
            lanes = function.get_sub_group_info(
                self.context.devices[0],
                self.cl.kernel_sub_group_info.MAX_SUB_GROUP_SIZE_FOR_NDRANGE, kernel.block)
            if lanes != kernel.warp:
                raise KernelError(
                    f"{kernel.name} has shuffles among {kernel.warp} lanes, and {self.name} has "
                    f"subgroups of {lanes}: build it for a target with -thread_warp_size={lanes}, "
                    "or without -supports_subgroups")
        note = self.make(4) if kernel.notes else None
        if note is not None:
            self.take_note(note)
        return kernel, function, note

    def take_note(self, memory: Any) -> int:
        note = np.zeros(1, np.uint32)
        self.cl.enqueue_copy(self.queue, note, memory)
        self.cl.enqueue_fill_buffer(self.queue, memory, np.zeros(1, np.uint32), 0, 4)
        return int(note[0])

    def _check_shuffles(self, kernel: KernelSource) -> None:
        """Raises KernelError where a kernel has shuffles, and the device none."""
        missing = [name for name in ("cl_khr_subgroup_shuffle", "cl_khr_subgroup_shuffle_relative")
                   if kernel.warp and name not in self.context.devices[0].extensions.split()]
        if missing:
            raise KernelError(f"{kernel.name} has shuffles, and {self.name} does not have the "
                              f"extension {missing[0]}: build it for a target without "
                              "-supports_subgroups")

    def launch(self, kernel: Any, pointers: Sequence[int], scalars: Sequence[Any],
               grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        self.free_to_work()
        source, function, note = kernel
        values = [dt.numpy_dtype(s.dtype).type(v) for s, v in zip(source.scalars, scalars)]
        function.set_args(*(self.memories[p] for p in pointers), *values,
                          *([] if note is None else [note]))
        size = tuple(g * b for g, b in zip(grid, block))
        event = self.done(
            lambda: self.cl.enqueue_nd_range_kernel(self.queue, function, size, block))
        self.started.append(source.name)
        if note is not None:
            self.noting[source.name] = source, note
        if self.noted is not None:
            self.noted.append(event)

    @contextmanager
    def clock(self, run: Callable[[], Any]) -> Iterator[Callable[[int], float]]:
        """The device notes when each kernel begins and ends (OpenCL 3.0, section 5.14): what the
        host does between them is not counted."""
        self.wait()
        profiling = self.cl.command_queue_properties.PROFILING_ENABLE
        plain, self.queue = self.queue, self.cl.CommandQueue(self.context, properties=profiling)
        noted = self.noted = []

        def noted_nanoseconds() -> int:
            self.wait()
            took = sum(event.profile.end - event.profile.start for event in noted)
            noted.clear()
            return took

        def nanoseconds(number: int) -> float:
            noted_nanoseconds()
            took = 0
            for _ in range(number):
                run()
                if len(noted) > _NOTED:
                    took += noted_nanoseconds()
            return float(took + noted_nanoseconds())

        try:
            yield nanoseconds
        finally:
            self.noted = None
            self.wait()
            self.queue = plain


def _misread(func: PrimFunc | None) -> bool:
    """Whether PoCL 3 may get a kernel wrong, or end the process, unless its optimizations are off:
    one with a barrier, and a loop that runs differently often in threads or blocks."""
    if func is None:
        return False
    axes = {s.node.var for s in all_statements(func.body)
            if type(s) is AttrStmt and isinstance(s.node, IterVar)}
    statements = list(all_statements(func.body))
    return any(map(is_barrier, statements)) and any(
        type(s) is While or type(s) is For and (uses_var(s.extent, axes) or uses_var(s.min, axes))
        for s in statements)


def open_device() -> OpenCLDriver | None:
    """The driver; None where OpenCL finds no device that compiles."""
    import pyopencl as cl

    try:
        devices = [d for p in cl.get_platforms() for d in p.get_devices()]
    except cl.Error:
        return None
    devices.sort(key=lambda d: not d.type & cl.device_type.GPU)
    return next((OpenCLDriver(d) for d in devices if _compiles(d)), None)


def _compiles(device: Any) -> bool:
    """Whether a device takes any program: PoCL 3 takes none on a processor newer than it is."""
    import pyopencl as cl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            text = "__kernel void f(__global int* a) { a[0] = 1; }"
            cl.Program(cl.Context([device]), text).build()
        except cl.Error as error:
            warnings.simplefilter("default")
            first = next((x for x in str(error).splitlines() if x.startswith("error:")), error)
            warnings.warn(f"OpenCL's device {device.name.strip()!r} compiles no program ({first}), "
                          "so it is not used", stacklevel=2)
            return False
    return True


__all__ = ["OpenCLDriver", "open_device"]
