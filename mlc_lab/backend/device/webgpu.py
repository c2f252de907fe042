"""WebGPU devices through wgpu: Metal, Direct3D 12 or Vulkan, and with it Mesa's lavapipe."""

from __future__ import annotations

import contextlib
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..source import guarded, most_iterations
from ..source.webgpu import WGSL
from .real import KernelError, RealDriver, buffers_suffice, compile_error

if TYPE_CHECKING:
    from ..source import KernelSource

_PACK = {"i32": "i", "u32": "I", "f32": "f", "bool": "I", "f16": "e"}


#: kernels that are measured before their times are read
_MEASURED = 512
#: launches whose arguments are kept, for each kernel
_KEPT = 8
#: iterations of its loops after which Mesa's processor device ends those of a thread, and says
#: nothing (LP_MAX_TGSI_LOOP_ITERATIONS)
_ENDED_AFTER = 65_535
#: what a source with shuffles begins with
_ENABLE = "".join(f"{line}\n" for line in WGSL.shuffle_lines)
#: invocations that tell the size of their subgroup and their place in it
_PROBED = 128
_PROBE = f"""
@group(0) @binding(0) var<storage, read_write> out : array<u32>;
@compute @workgroup_size({_PROBED})
fn probe(@builtin(local_invocation_index) at : u32, @builtin(subgroup_size) size : u32,
         @builtin(subgroup_invocation_id) lane : u32) {{
  out[at] = (size << 16u) + lane;
}}
"""


class _Compiled:
    """A kernel, the device that it was compiled for, the layout of its arguments, its pipeline, and
    the arguments of launches."""

    def __init__(self, source: KernelSource, device: Any, layout: Any, pipeline: Any) -> None:
        self.source, self.device = source, device
        self.layout, self.pipeline = layout, pipeline
        self.note: Any = None  # memory in which it notes what went wrong
        self.groups: dict[tuple[int, ...], Any] = {}


class _Stamps:
    """When kernels began and ended, by the device's clock."""

    def __init__(self, driver: WebGPUDriver) -> None:
        self.device, use = driver.device, driver.wgpu.BufferUsage
        self.queries = self.device.create_query_set(type="timestamp", count=2 * _MEASURED)
        self.memory = self.device.create_buffer(
            size=16 * _MEASURED, usage=use.QUERY_RESOLVE | use.COPY_SRC)
        self.count, self.took = 0, 0

    def next(self) -> dict[str, Any]:
        """What the pass of one more kernel is to note."""
        if self.count == _MEASURED:
            self._read()
        self.count += 1
        return {"query_set": self.queries, "beginning_of_pass_write_index": 2 * self.count - 2,
                "end_of_pass_write_index": 2 * self.count - 1}

    def ticks(self) -> int:
        """What the kernels took since this was asked last."""
        self._read()
        took, self.took = self.took, 0
        return took

    def _read(self) -> None:
        if self.count:
            encoder = self.device.create_command_encoder()
            encoder.resolve_query_set(self.queries, 0, 2 * self.count, self.memory, 0)
            self.device.queue.submit([encoder.finish()])
            found = np.frombuffer(self.device.queue.read_buffer(self.memory), np.int64)
            pairs = found[:2 * self.count].reshape(-1, 2)
            self.took += int((pairs[:, 1] - pairs[:, 0]).sum())
        self.count = 0


class WebGPUDriver(RealDriver):
    """The adapter that the system prefers."""

    watches = True

    def __init__(self, adapter: Any) -> None:
        import wgpu

        super().__init__("webgpu", str(adapter.info.get("device") or adapter.info.get("vendor")))
        self.wgpu, self.adapter = wgpu, adapter
        self.errors = (wgpu.GPUError, RuntimeError)
        self.ends_loops = self.name.startswith("llvmpipe")
        self.stamps: _Stamps | None = None  # of kernels that are measured
        self._open()

    def _open(self) -> None:
        """Ask the adapter for its device."""
        adapter = self.adapter
        features = [f for f in ("shader-f16", "subgroup", "subgroups", "timestamp-query")
                    if f in adapter.features]
        wanted = ("max-buffer-size", "max-storage-buffer-binding-size")
        limits = {name: adapter.limits[name] for name in wanted if name in adapter.limits}
        self.device = adapter.request_device_sync(required_features=features,
                                                  required_limits=limits)
        self.mark = self.make(4)  # nothing is stored there; it is read to wait
        self.lanes: tuple[int, str] | None = None  # what `_subgroups` has found

    def _subgroups(self) -> tuple[int, str]:
        """How many invocations, one after the other, are a subgroup, 0 where they are not; and the
        line that a source with shuffles begins with: wgpu does not take that of the specification.
        """
        if self.lanes is None:
            self.lanes = 0, ""
            if any(f.startswith("subgroup") for f in self.device.features):
                for line in (_ENABLE, ""):
                    with contextlib.suppress(*self.errors):
                        self.lanes = self._probe(line), line
                        break
        return self.lanes

    def _probe(self, line: str) -> int:
        use, size = self.wgpu.BufferUsage, 4 * _PROBED
        module = self.device.create_shader_module(code=line + _PROBE)
        pipeline = self.device.create_compute_pipeline(
            layout="auto", compute={"module": module, "entry_point": "probe"})
        out = self.device.create_buffer(size=size, usage=use.STORAGE | use.COPY_SRC)
        group = self.device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=[
            {"binding": 0, "resource": {"buffer": out, "offset": 0, "size": size}}])
        self._submit(pipeline, group, (1, 1, 1))
        found = np.frombuffer(self.device.queue.read_buffer(out), np.uint32)
        many = int(found[0] >> 16)
        follow = np.arange(_PROBED, dtype=np.uint32) % max(many, 1) + (many << 16)
        return many if np.array_equal(found, follow) else 0

    def _shuffling(self, kernel: KernelSource) -> str:
        """The source of a kernel with shuffles. Raises KernelError where the device has none, or
        subgroups of another size."""
        lanes, line = self._subgroups()
        if lanes != kernel.warp:
            has = f"has subgroups of {lanes}" if lanes else "does not say how subgroups lie"
            raise KernelError(
                f"{kernel.name} has shuffles among {kernel.warp} lanes, and {self.name} {has}: "
                "build it for a target " + (f"with -thread_warp_size={lanes}, or " if lanes else "")
                + "without -supports_subgroups")
        return kernel.text.replace(_ENABLE, line)

    def done(self, action: Callable[[], Any]) -> Any:
        """As of any device. One that is lost is opened anew for what comes next."""
        try:
            return action()
        except KernelError:
            raise
        except self.errors as error:
            if "device is lost" not in str(error):
                raise KernelError(f"work on {self.name} failed: {error}") from None
        self.memories.clear()
        self.noting.clear()
        self.busy = ""
        try:
            self._open()
        except self.errors as error:
            raise KernelError(f"the device {self.name} was lost, and cannot be opened anew: {error}"
                              ) from None
        raise KernelError(f"the device {self.name} was lost, as by a reset of its driver, with all "
                          "tensors on it. It was opened anew: make them again, and go on")

    def _memory(self, number: int) -> Any:
        """The memory that a number stands for. Raises KernelError for one of a lost device."""
        found = self.memories.get(number)
        if found is None:
            raise KernelError(f"this tensor was on {self.name} when the device was lost: make it "
                              "again")
        return found

    def allocate(self, nbytes: int) -> int:
        try:
            return super().allocate(nbytes)
        except MemoryError as error:
            words = str(error)
        # raises the reason again: for want of memory, or since the device is lost
        if "device is lost" in words:
            self.done(lambda: self.make(nbytes))
        raise MemoryError(words)

    def make(self, nbytes: int) -> Any:
        use = self.wgpu.BufferUsage
        return self.device.create_buffer(
            size=-(-nbytes // 4) * 4, usage=use.STORAGE | use.COPY_SRC | use.COPY_DST)

    def release(self, memory: Any) -> None:
        memory.destroy()

    def write(self, memory: int, source: np.ndarray) -> None:
        data, to = source.tobytes(), self._memory(memory)
        self.free_to_work()
        self.done(lambda: self.device.queue.write_buffer(to, 0, data + bytes(-len(data) % 4)))

    def read(self, memory: int, target: np.ndarray) -> None:
        source = self._memory(memory)
        self.free_to_work()
        self.wait()
        data = self.done(lambda: self.device.queue.read_buffer(source))
        target.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8)[:target.nbytes]

    def look(self) -> Callable[[], bool]:
        # reading memory waits for all that was submitted before
        queue, mark = self.device.queue, self.mark
        failed: list[Exception] = []

        def wait() -> None:
            try:
                queue.read_buffer(mark)
            except self.errors as error:
                failed.append(error)

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()

        def is_done() -> bool:
            if failed:
                raise failed[0]
            return not waiting.is_alive()

        return is_done

    def take_note(self, memory: Any) -> int:
        note = int.from_bytes(self.device.queue.read_buffer(memory), "little")
        if note:
            self.device.queue.write_buffer(memory, 0, bytes(4))
        return note

    def ended(self, name: str) -> str:
        return (f"{super().ended(name)}, so what it wrote is not right: it ends loops when a "
                f"thread has run {_ENDED_AFTER:,} iterations. The loop has no end, or the work is "
                "to be spread over more threads or launches; other devices run it to its end")

    def sync(self) -> None:
        self.wait()

    def compile(self, kernel: KernelSource) -> Any:
        stage = self.wgpu.ShaderStage.COMPUTE
        if self.ends_loops and most_iterations(kernel) > _ENDED_AFTER:
            kernel = guarded(kernel, "webgpu")
        kinds = ["read-only-storage" if p.read_only else "storage" for p in kernel.pointers]
        kinds += ["uniform"] if kernel.scalars else []
        kinds += ["storage"] if kernel.notes else []
        most = self.device.limits["max-storage-buffers-per-shader-stage"]
        buffers_suffice(kernel, most, self.name, own=int(kernel.notes))
        text = self._shuffling(kernel) if kernel.warp else kernel.text
        try:
            layout = self.device.create_bind_group_layout(entries=[
                {"binding": at, "visibility": stage, "buffer": {"type": kind}}
                for at, kind in enumerate(kinds)])
            pipeline = self.device.create_compute_pipeline(
                layout=self.device.create_pipeline_layout(bind_group_layouts=[layout]),
                compute={"module": self.device.create_shader_module(code=text),
                         "entry_point": kernel.name})
        except self.errors as error:
            if "device is lost" in str(error):
                self.done(lambda: self.make(4))
            raise compile_error(kernel, self.name, error) from None
        made = _Compiled(kernel, self.device, layout, pipeline)
        if kernel.notes:
            made.note = self.make(4)
        return made

    def launch(self, kernel: Any, pointers: Sequence[int], scalars: Sequence[Any],
               grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        if kernel.device is not self.device:  # it was compiled for one that was lost
            vars(kernel).update(vars(self.compile(kernel.source)))
        self.free_to_work()
        self.done(lambda: self._start(kernel, pointers, scalars, grid))
        self.started.append(kernel.source.name)
        if kernel.note is not None:
            self.noting[kernel.source.name] = kernel.source, kernel.note

    def _start(self, kernel: Any, pointers: Sequence[int], scalars: Sequence[Any],
               grid: tuple[int, int, int]) -> None:
        self._submit(kernel.pipeline, self._group(kernel, pointers, scalars), grid)

    def _submit(self, pipeline: Any, group: Any, grid: tuple[int, int, int]) -> None:
        encoder = self.device.create_command_encoder()
        stamps = self.stamps.next() if self.stamps is not None else None
        work = encoder.begin_compute_pass(timestamp_writes=stamps)
        work.set_pipeline(pipeline)
        work.set_bind_group(0, group)
        work.dispatch_workgroups(*grid)
        work.end()
        self.device.queue.submit([encoder.finish()])

    @contextmanager
    def clock(self, run: Callable[[], Any]) -> Iterator[Callable[[int], float]]:
        """Where the device has timestamps, it notes when each kernel begins and ends: what the host
        does between them is not counted."""
        tick = self._tick()
        if tick is None:
            with super().clock(run) as by_the_host:
                yield by_the_host
            return
        self.wait()
        stamps = self.stamps = _Stamps(self)

        def nanoseconds(number: int) -> float:
            stamps.ticks()
            for _ in range(number):
                run()
            self.wait()
            return stamps.ticks() * tick

        try:
            yield nanoseconds
        finally:
            self.stamps = None

    def _tick(self) -> float | None:
        """Nanoseconds of a tick of the device's clock; None where it has none."""
        if "timestamp-query" not in self.device.features:
            return None
        from wgpu.backends.wgpu_native import lib

        period = getattr(lib, "wgpuQueueGetTimestampPeriod", None)
        return period(self.device.queue._internal) if period is not None else None

    def _group(self, kernel: _Compiled, pointers: Sequence[int], scalars: Sequence[Any]) -> Any:
        """The arguments as the device takes them. Those of the last launches are kept: a memory has
        a number that no other memory gets."""
        known = kernel.groups.get(tuple(pointers)) if not scalars else None
        if known is not None:
            return known
        source = kernel.source
        for p, row in zip(pointers, source.pointers):
            if not row.read_only and pointers.count(p) > 1:
                raise ValueError(f"{source.name}: an array that is written is passed twice, which "
                                 "WebGPU does not allow; pass a copy")
        buffers = [self._memory(p) for p in pointers]
        if source.scalars:
            words = "".join(_PACK[s.type] for s in source.scalars)
            data = struct.pack(words, *(float(v) if word in "fe" else int(v)
                                        for v, word in zip(scalars, words)))
            buffers.append(self.device.create_buffer_with_data(
                data=data + bytes(-len(data) % 16), usage=self.wgpu.BufferUsage.UNIFORM))
        if kernel.note is not None:
            buffers.append(kernel.note)
        group = self.device.create_bind_group(layout=kernel.layout, entries=[
            {"binding": at, "resource": {"buffer": b, "offset": 0, "size": b.size}}
            for at, b in enumerate(buffers)])
        if not source.scalars:
            while len(kernel.groups) >= _KEPT:
                del kernel.groups[next(iter(kernel.groups))]
            kernel.groups[tuple(pointers)] = group
        return group


def open_device() -> WebGPUDriver | None:
    """The driver; None where the system has no adapter."""
    import wgpu

    try:
        adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    except (wgpu.GPUError, RuntimeError, OSError):
        return None
    return WebGPUDriver(adapter) if adapter is not None else None


__all__ = ["WebGPUDriver", "open_device"]
