"""What is known of NVIDIA's GPUs beyond their limits: processors, clocks, memory, caches.

Multiprocessors, clocks (boost) and memory are from NVIDIA's white papers and product pages on the
Pascal, Turing, Volta, Ampere, Ada and Hopper architectures. Warps, blocks, registers and shared
memory of a multiprocessor are from the CUDA C++ Programming Guide, "Technical Specifications per
Compute Capability"; how registers and shared memory are handed out, from NVIDIA's occupancy
calculator. Throughputs are from the same guide's table "Arithmetic Instructions".

Latencies are those that microbenchmarks found: Z. Jia et al., "Dissecting the NVIDIA Volta GPU
Architecture via Microbenchmarking" (2018) and "Dissecting the NVidia Turing T4 GPU via
Microbenchmarking" (2019). They stand for all generations here.

GPUs of other makers have no figures here: `gpu_of` gives `USUAL` for them, by its own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .nvidia_tags import NVIDIA_TAGS

if TYPE_CHECKING:
    from .target import Target

_KIB = 1024


@dataclass(frozen=True)
class Multiprocessor:
    """One multiprocessor of a compute capability.

    Attributes
    ----------
    warps, blocks : int
        How many it holds at most.
    shared_bytes : int
        Shared memory that blocks can have together.
    l1_bytes : int
        What first-level cache and shared memory have together; on Pascal, the cache alone.
    unified : bool
        Whether shared memory takes from the cache.
    fp32, special, integer, loads : int
        Lanes of a warp that it serves in a cycle: arithmetic on float32, special functions,
        arithmetic on int32, loads and stores.
    schedulers : int
        Warp instructions that it starts in a cycle.
    reserved : int
        Bytes of shared memory that each block takes beyond its own.
    """

    warps: int
    blocks: int
    shared_bytes: int
    l1_bytes: int
    unified: bool = True
    fp32: int = 64
    special: int = 16
    integer: int = 64
    loads: int = 32
    schedulers: int = 4
    reserved: int = 0
    registers: int = 65536
    register_unit: int = 256  # registers are handed out to warps in such units
    shared_unit: int = 256


MULTIPROCESSORS: dict[str, Multiprocessor] = {
    "sm_61": Multiprocessor(64, 32, 96 * _KIB, 48 * _KIB, False, fp32=128, special=32, integer=128),
    "sm_70": Multiprocessor(64, 32, 96 * _KIB, 128 * _KIB),
    "sm_72": Multiprocessor(64, 32, 96 * _KIB, 128 * _KIB),
    "sm_75": Multiprocessor(32, 16, 64 * _KIB, 96 * _KIB),
    "sm_80": Multiprocessor(64, 32, 164 * _KIB, 192 * _KIB, reserved=1024, shared_unit=128),
    "sm_86": Multiprocessor(48, 16, 100 * _KIB, 128 * _KIB, fp32=128, reserved=1024,
                            shared_unit=128),
    "sm_89": Multiprocessor(48, 24, 100 * _KIB, 128 * _KIB, fp32=128, reserved=1024,
                            shared_unit=128),
    "sm_90": Multiprocessor(64, 32, 228 * _KIB, 256 * _KIB, fp32=128, reserved=1024,
                            shared_unit=128),
}

#: tag -> (multiprocessors, boost clock in MHz, memory bandwidth in GB/s)
_FIGURES: dict[str, tuple[int, int, int]] = {
    "nvidia/geforce-gtx-1080-ti": (28, 1582, 484), "nvidia/geforce-rtx-2060": (30, 1680, 336),
    "nvidia/geforce-rtx-2070": (36, 1620, 448), "nvidia/geforce-rtx-2080": (46, 1710, 448),
    "nvidia/geforce-rtx-2080-ti": (68, 1545, 616), "nvidia/geforce-rtx-3060": (28, 1777, 360),
    "nvidia/geforce-rtx-3070": (46, 1725, 448), "nvidia/geforce-rtx-3080": (68, 1710, 760),
    "nvidia/geforce-rtx-3080-ti": (80, 1665, 912), "nvidia/geforce-rtx-3090": (82, 1695, 936),
    "nvidia/geforce-rtx-3090-ti": (84, 1860, 1008), "nvidia/geforce-rtx-4080": (76, 2505, 717),
    "nvidia/geforce-rtx-4090": (128, 2520, 1008), "nvidia/nvidia-a30": (56, 1440, 933),
    "nvidia/nvidia-a40": (84, 1740, 696), "nvidia/nvidia-l4": (58, 2040, 300),
    "nvidia/nvidia-t4": (40, 1590, 320), "nvidia/tesla-t4": (40, 1590, 320),
    "nvidia/nvidia-v100": (80, 1530, 900), "nvidia/tesla-v100": (80, 1530, 900),
    "nvidia/nvidia-a100": (108, 1410, 1555), "nvidia/nvidia-h100": (132, 1980, 3350),
    "nvidia/jetson-agx-xavier": (8, 1377, 137),
}
#: the GPU whose figures are taken where the target names none that is known
USUAL = "nvidia/geforce-rtx-2080-ti"


@dataclass(frozen=True)
class GPU:
    """One GPU: its name, multiprocessors, clock in Hz, bytes a second of memory, bytes of the
    second-level cache."""

    name: str
    processor: Multiprocessor
    processors: int
    clock: float
    bandwidth: float
    l2_bytes: int
    warp: int = 32

    #: cycles that a load takes, from where it is found; cycles of arithmetic, of a launch
    l1_latency: int = 32
    shared_latency: int = 26
    l2_latency: int = 200
    memory_latency: int = 450
    arithmetic_latency: int = 4
    special_latency: int = 18
    #: bytes that a multiprocessor gets from the second-level cache in a cycle
    l2_bytes_a_cycle: int = 64

    @property
    def peak_flops(self) -> float:
        """Operations on float32 in a second: each lane does a multiplication and an addition."""
        return 2.0 * self.processor.fp32 * self.processors * self.clock


def _capability(tag: str) -> int:
    return int(NVIDIA_TAGS[tag]["arch"].removeprefix("sm_").removesuffix("a"))


def _like(tag: str) -> str:
    """The GPU whose figures stand for one: its own; else those of one whose compute capability is
    the nearest, `USUAL` among several; `USUAL` for what is no GPU of NVIDIA's."""
    if tag in _FIGURES or tag not in NVIDIA_TAGS:
        return tag if tag in _FIGURES else USUAL
    wanted = _capability(tag)
    return min([USUAL, *_FIGURES], key=lambda other: abs(_capability(other) - wanted))


def gpu_of(target: Target) -> GPU:
    """The GPU that a target names, or the one whose figures stand for it, as its name says; with
    the target's own warp."""
    tag = _like(target.tag)
    count, clock, bandwidth = _FIGURES[tag]
    known: dict[str, Any] = NVIDIA_TAGS[tag]
    return GPU(tag, MULTIPROCESSORS[known["arch"].removesuffix("a")], count, clock * 1e6,
               bandwidth * 1e9, known["l2_cache_size_bytes"])


__all__ = ["GPU", "MULTIPROCESSORS", "USUAL", "Multiprocessor", "gpu_of"]
