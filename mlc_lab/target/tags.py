"""Names that stand for a whole target, as TVM's tags do: which GPU or CPU it is, what it can take.

Compute capabilities are from NVIDIA's list "CUDA GPUs"; registers, threads and warps from the CUDA
C++ Programming Guide, "Technical Specifications per Compute Capability"; sizes of second-level
caches from NVIDIA's white papers on the Turing, Volta, Ampere, Hopper and Ada architectures. Shared
memory is what a block has without opting in to more. Apple's figures are from the Metal Feature Set
Tables (families Apple7 to Apple9). Intel's are from the oneAPI GPU Optimization Guide (Xe-HPG and
Xe-LP), Qualcomm's from the Snapdragon Mobile Platform OpenCL Programming and Optimization guide.
The cores of Amazon's C5 instances are half of the virtual ones that its list of instances has.
"""

from __future__ import annotations

from typing import Any

_MIB = 2 ** 20

#: tag -> (compute capability, second-level cache in MiB)
_NVIDIA: dict[str, tuple[str, float]] = {
    "nvidia/geforce-gtx-1080-ti": ("sm_61", 2.75), "nvidia/geforce-rtx-2060": ("sm_75", 3),
    "nvidia/geforce-rtx-2070": ("sm_75", 4), "nvidia/geforce-rtx-2080": ("sm_75", 4),
    "nvidia/geforce-rtx-2080-ti": ("sm_75", 5.5), "nvidia/geforce-rtx-3060": ("sm_86", 3),
    "nvidia/geforce-rtx-3070": ("sm_86", 4), "nvidia/geforce-rtx-3080": ("sm_86", 5),
    "nvidia/geforce-rtx-3080-ti": ("sm_86", 6), "nvidia/geforce-rtx-3090": ("sm_86", 6),
    "nvidia/geforce-rtx-3090-ti": ("sm_86", 6), "nvidia/geforce-rtx-4080": ("sm_89", 64),
    "nvidia/geforce-rtx-4090": ("sm_89", 72), "nvidia/nvidia-a30": ("sm_80", 24),
    "nvidia/nvidia-a40": ("sm_86", 6), "nvidia/nvidia-l4": ("sm_89", 48),
    "nvidia/nvidia-t4": ("sm_75", 4), "nvidia/nvidia-v100": ("sm_70", 6),
    "nvidia/nvidia-a100": ("sm_80", 40), "nvidia/nvidia-h100": ("sm_90a", 50),
    "nvidia/tesla-v100": ("sm_70", 6), "nvidia/tesla-t4": ("sm_75", 4),
    "nvidia/jetson-agx-xavier": ("sm_72", 0.5),
}

#: tag -> (work-items of a group, local memory in KiB, work-items that run together)
_OPENCL: dict[str, tuple[int, int, int]] = {
    "intel/arc-a770": (1024, 64, 16), "intel/iris-xe": (512, 64, 16), "qcom/adreno": (1024, 32, 64),
}

#: size of an Amazon C5 instance -> (cores, the processor as LLVM names it)
_C5: dict[str, tuple[int, str]] = {
    "large": (1, "skylake-avx512"), "xlarge": (2, "skylake-avx512"),
    "2xlarge": (4, "skylake-avx512"), "4xlarge": (8, "skylake-avx512"),
    "9xlarge": (18, "skylake-avx512"), "12xlarge": (24, "cascadelake"),
    "18xlarge": (36, "skylake-avx512"), "24xlarge": (48, "cascadelake"),
}

TAGS: dict[str, dict[str, Any]] = {
    **{tag: {
        "kind": "cuda", "arch": arch, "registers_per_block": 65536,
        "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024,
        "thread_warp_size": 32, "l2_cache_size_bytes": int(cache * _MIB),
    } for tag, (arch, cache) in _NVIDIA.items()},
    **{f"apple/{chip}-gpu": {
        "kind": "metal", "max_threads_per_block": 1024, "max_num_threads": 1024,
        "max_shared_memory_per_block": 32768, "thread_warp_size": 32,
    } for chip in ("m1", "m2", "m3")},
    **{tag: {
        "kind": "opencl", "max_threads_per_block": threads, "max_num_threads": threads,
        "max_shared_memory_per_block": shared * 1024, "thread_warp_size": warp,
    } for tag, (threads, shared, warp) in _OPENCL.items()},
    # devices on the CPU, on which WebGPU hands out what its specification has as default limits
    **{tag: {
        "kind": "webgpu", "max_threads_per_block": 256, "max_num_threads": 256,
        "max_shared_memory_per_block": 16384,
    } for tag in ("mesa/lavapipe", "google/swiftshader")},
    **{f"aws/cpu/c5.{size}": {
        "kind": "llvm", "keys": ["x86", "cpu"], "mcpu": processor, "num-cores": cores,
    } for size, (cores, processor) in _C5.items()},
}

#: those of this file, whatever names are given or taken later
KNOWN = dict(TAGS)

__all__ = ["KNOWN", "TAGS"]
