"""What a GPU can take: threads and shared memory of a block, and where the figures are from.

A target that says a limit as an option has that one; else the limits of its kind hold, which every
device of the kind keeps.

- CUDA: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": 1024 threads
  a block, 48 KiB of shared memory a block without opting in, grids of 2^31 - 1, 65535, 65535.
- WebGPU: the default limits of the specification, section 3.6.2: 256 invocations a workgroup, 16384
  bytes of workgroup memory, 65535 workgroups a dimension, 8 storage buffers for a shader.
- OpenCL: OpenCL 3.0, table of device queries: 32 KiB of local memory at least. 256 work-items is
  what TVM takes, and what nearly every device has; GPUs take as many along one axis as in all.
- Metal: Metal Feature Set Tables: 1024 threads a threadgroup and 32 KiB of threadgroup memory from
  family Apple4 on. TVM takes 256 for a target without a tag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .target import Target


class Limits(NamedTuple):
    """The limits of one target.

    Attributes
    ----------
    threads : int
        Threads of a block, all axes together.
    shared_bytes : int
        Bytes of shared memory a block.
    block : tuple of int
        Threads of a block along x, y, z.
    grid : tuple of int
        Blocks along x, y, z.
    buffers : int, optional
        Arrays that a kernel can be given; a device may say more.
    """

    threads: int
    shared_bytes: int
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    buffers: int | None = None


_MOST = 2 ** 31 - 1
_CUDA = Limits(1024, 49152, (1024, 1024, 64), (_MOST, 65535, 65535))
_KINDS: dict[str, Limits] = {
    "cuda": _CUDA, "nvptx": _CUDA,
    "rocm": Limits(1024, 65536, (1024, 1024, 1024), (_MOST, 65535, 65535)),
    "opencl": Limits(256, 32768, (_MOST, _MOST, _MOST), (_MOST, _MOST, _MOST)),
    "metal": Limits(256, 32768, (1024, 1024, 1024), (_MOST, _MOST, _MOST)),
    "vulkan": Limits(256, 16384, (256, 256, 64), (65535, 65535, 65535)),
    "webgpu": Limits(256, 16384, (256, 256, 64), (65535, 65535, 65535), 8),
}


def limits_of(target: Target) -> Limits | None:
    """The limits of a target; None for one that is no GPU."""
    found = _KINDS.get(target.kind.name)
    if found is None:
        return None
    attrs: dict[str, Any] = target.attrs
    threads = attrs.get("max_threads_per_block") or attrs.get("max_num_threads") or found.threads
    shared = attrs.get("max_shared_memory_per_block") or found.shared_bytes
    axes = tuple(min(int(threads), n) if target.kind.name != "cuda" else n for n in found.block)
    return Limits(int(threads), int(shared), (axes[0], axes[1], axes[2]), found.grid, found.buffers)


__all__ = ["Limits", "limits_of"]
