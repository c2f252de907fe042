"""What is known of GPUs beyond their limits: processors, clocks, memory, caches.

NVIDIA's: multiprocessors, clocks (boost) and memory are from its white papers and product pages on
the Pascal, Turing, Volta, Ampere, Ada and Hopper architectures. Warps, blocks, registers and shared
memory of a multiprocessor are from the CUDA C++ Programming Guide, "Technical Specifications per
Compute Capability"; how registers and shared memory are handed out, from NVIDIA's occupancy
calculator. Throughputs are from the same guide's table "Arithmetic Instructions".

Intel's: hardware threads, work-groups and local memory of an Xe core are from the GPU Occupancy
Calculator of the oneAPI samples; vector engines of 8 lanes with 2 for special functions, 4 KiB of
registers a thread, 192 KiB of cache and local memory and 16 MiB of second level from Intel's
presentations of Xe-LP and Xe-HPG (2020, 2021); clocks and bandwidths from its product pages (Iris
Xe: of the Core i7-1185G7). A warp here is two sub-groups of 16.

Apple's: cores, peaks, threads in flight (24,576 on 8 cores) and bandwidths are from what it
announced of M1 (2020), M2 (2022) and M3 (2023). What a maker does not publish is in `GPU.assumed`,
and those of `USUAL` stand for it. Qualcomm publishes neither processors nor clocks of Adreno;
lavapipe and SwiftShader run on the CPU: `gpu_of` gives `USUAL` for these, by its own name.

Latencies are those that microbenchmarks found: Z. Jia et al., "Dissecting the NVIDIA Volta GPU
Architecture via Microbenchmarking" (2018) and "Dissecting the NVidia Turing T4 GPU via
Microbenchmarking" (2019). They stand for all generations here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
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
_XE = Multiprocessor(64, 128, 128 * _KIB, 192 * _KIB, fp32=128, special=32, integer=128,
                     shared_unit=_KIB, registers=131072)
_XE_LP = replace(_XE, warps=56, blocks=112, shared_bytes=64 * _KIB, l1_bytes=96 * _KIB,
                 registers=114688)
_APPLE = Multiprocessor(96, 16, 64 * _KIB, 96 * _KIB, fp32=128, integer=128)

_UNKNOWN_OF_APPLE = ("registers", "shared memory", "caches", "special functions")
#: tag -> (processor, how many, peak in GFLOP/s, memory bandwidth in GB/s, KiB of the second level,
#: what is not published)
_OTHERS: dict[str, tuple[Multiprocessor, int, int, float, int, tuple[str, ...]]] = {
    "intel/arc-a770": (_XE, 32, 17203, 560, 16384, ()),
    "intel/iris-xe": (_XE_LP, 6, 2074, 68.3, 5632, ("caches",)),
    "apple/m1-gpu": (_APPLE, 8, 2600, 66.7, 5632, _UNKNOWN_OF_APPLE),
    "apple/m2-gpu": (_APPLE, 10, 3600, 100, 5632, _UNKNOWN_OF_APPLE),
    "apple/m3-gpu": (_APPLE, 10, 3600, 100, 5632, ("peak", *_UNKNOWN_OF_APPLE)),
}
#: tags of the same GPU
_SAME = {"apple/m1-gpu-restricted": "apple/m1-gpu"}
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
    #: what its maker does not publish, beside latencies: those of `USUAL`
    assumed: tuple[str, ...] = ()

    @property
    def peak_flops(self) -> float:
        """Operations on float32 in a second: each lane does a multiplication and an addition."""
        return 2.0 * self.processor.fp32 * self.processors * self.clock


def _capability(tag: str) -> int:
    return int(NVIDIA_TAGS[tag]["arch"].removeprefix("sm_").removesuffix("a"))


def _like(tag: str) -> str:
    """The GPU whose figures stand for one: its own; else those of one whose compute capability is
    the nearest, `USUAL` among several; `USUAL` for what no figures are known of."""
    tag = _SAME.get(tag, tag)
    if tag in _FIGURES or tag in _OTHERS:
        return tag
    if tag not in NVIDIA_TAGS:
        return USUAL
    wanted = _capability(tag)
    return min([USUAL, *_FIGURES], key=lambda other: abs(_capability(other) - wanted))


def gpu_of(target: Target) -> GPU:
    """The GPU that a target names, or the one whose figures stand for it, as its name says."""
    tag = _like(target.tag)
    if tag in _OTHERS:
        processor, count, gflops, bandwidth, l2_kib, assumed = _OTHERS[tag]
        clock = gflops * 1e9 / (2 * processor.fp32 * count)
        return GPU(tag, processor, count, clock, bandwidth * 1e9, l2_kib * _KIB, assumed=assumed)
    count, clock, bandwidth = _FIGURES[tag]
    known: dict[str, Any] = NVIDIA_TAGS[tag]
    return GPU(tag, MULTIPROCESSORS[known["arch"].removesuffix("a")], count, clock * 1e6,
               bandwidth * 1e9, known["l2_cache_size_bytes"])


__all__ = ["GPU", "MULTIPROCESSORS", "USUAL", "Multiprocessor", "gpu_of"]
