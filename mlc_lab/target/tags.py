"""Names that stand for a whole target, as TVM's tags do: which GPU or CPU it is, what it can take.

Shared memory is what a block has without opting in to more. NVIDIA's GPUs are in `nvidia_tags.py`.
Apple's figures are from the Metal Feature Set
Tables (families Apple7 to Apple9). Intel's are from the oneAPI GPU Optimization Guide (Xe-HPG and
Xe-LP), Qualcomm's from the Snapdragon Mobile Platform OpenCL Programming and Optimization guide.
The cores of Amazon's C5 instances are half of the virtual ones that its list of instances has.
"""

from __future__ import annotations

from typing import Any

from .nvidia_tags import NVIDIA_TAGS

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

#: boards with an Arm processor: (triple, features, model, processor as LLVM names it)
_ARM: dict[str, tuple[str, list[str], str, str]] = {
    "beagleai": ("armv7a-linux-gnueabihf", ["+neon", "+vfp4", "+thumb2"], "beagleai", "cortex-a15"),
    "mate10": ("arm64-linux-android", ["+neon"], "kirin970", ""),
    "pixel2": ("arm64-linux-android", ["+neon"], "snapdragon835", ""),
    "pynq": ("armv7a-linux-eabi", ["+neon"], "pynq", ""),
    "rasp3b": ("armv7l-linux-gnueabihf", ["+neon"], "bcm2837", ""),
    "rasp4b": ("armv8l-linux-gnueabihf", ["+neon"], "bcm2711", "cortex-a72"),
    "rasp4b64": ("aarch64-linux-gnu", ["+neon"], "bcm2711", "cortex-a72"),
    "rk3399": ("aarch64-linux-gnu", ["+neon"], "rk3399", ""),
    "stm32mp1": ("armv7a-linux-gnueabihf", ["+neon", "+vfp4", "+thumb2"], "stm32mp1", "cortex-a7"),
    "thunderx": ("aarch64-linux-gnu", ["+neon", "+crc", "+lse"], "thunderx", "thunderxt88"),
    "ultra96": ("aarch64-linux-gnu", ["+neon"], "ultra96", ""),
}

#: processors of RISC-V: (width, interface, cores or 0, processor as LLVM names it)
_RISCV: dict[str, tuple[int, str, int, str]] = {
    "licheepi3a": (64, "lp64d", 8, "spacemit-x60"), "sifive-e31": (32, "ilp32", 0, "sifive-e31"),
    "sifive-e76": (32, "ilp32", 0, "sifive-e76"), "sifive-u54": (64, "lp64d", 0, "sifive-u54"),
    "sifive-u74": (64, "lp64d", 0, "sifive-u74"), "spacemit-k3": (64, "lp64d", 8, "spacemit-x100"),
}

#: generation of Qualcomm's Hexagon -> memory close to its vector unit, in KiB
_HEXAGON = {65: 256, 66: 256, 68: 4096, 69: 8192, 73: 8192, 75: 8192}

#: Adreno GPUs as TVM names them: (interface, what else its keys say)
_ADRENO: dict[str, tuple[str, list[str]]] = {
    "opencl": ("opencl", []), "opencl-clml": ("opencl", ["clml"]),
    "opencl-texture": ("opencl", ["texture"]), "vulkan": ("vulkan", []),
    "vulkan-texture": ("vulkan", ["texture"]),
}


def _hexagon(generation: int, kib: int) -> dict[str, Any]:
    features = [f"+hvxv{generation}", "+hvx-length128b"]
    made = {"kind": "hexagon", "mcpu": f"hexagonv{generation}", "mtriple": "hexagon",
            "num-cores": 4, "vtcm-capacity": kib * 1024, "mattr": features}
    if generation >= 68:
        features += ["+hvx-qfloat", "-hvx-ieee-fp"]
    return made


def _adreno(interface: str, more: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "kind": interface, "keys": ["adreno", interface, "gpu", *more], "device": "adreno",
        "max_num_threads": 256, "max_threads_per_block": 256, "thread_warp_size": 1}
    if interface == "opencl":
        made |= {"max_shared_memory_per_block": 16384, "texture_spatial_limit": 16384}
    return made


TAGS: dict[str, dict[str, Any]] = {
    **NVIDIA_TAGS,
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
    "apple/m1-gpu-restricted": {
        "kind": "metal", "max_threads_per_block": 256, "max_num_threads": 256,
        "max_shared_memory_per_block": 32768, "thread_warp_size": 32,
    },
    **{f"qcom/adreno-{name}": _adreno(*row) for name, row in _ADRENO.items()},
    **{f"qcom/hexagon-v{generation}": _hexagon(generation, kib)
       for generation, kib in _HEXAGON.items()},
    **{f"arm/{board}": {
        "kind": "llvm", "keys": ["arm_cpu", "cpu"], "device": "arm_cpu", "mtriple": triple,
        "mattr": features, "model": model, **({"mcpu": processor} if processor else {}),
    } for board, (triple, features, model, processor) in _ARM.items()},
    "raspberry-pi/4b-aarch64": {
        "kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "aarch64-linux-gnu",
        "mcpu": "cortex-a72", "mattr": ["+neon"], "num-cores": 4,
    },
    **{f"riscv/{name}": {
        "kind": "llvm", "keys": ["riscv_cpu", "cpu"], "device": "riscv_cpu",
        "mtriple": f"riscv{width}-unknown-linux-gnu", "mabi": interface, "mcpu": processor,
        **({"num-cores": cores, "mfloat-abi": "hard"} if cores else {"model": processor}),
    } for name, (width, interface, cores, processor) in _RISCV.items()},
    **{f"aws/cpu/c5.{size}": {
        "kind": "llvm", "keys": ["x86", "cpu"], "mcpu": processor, "num-cores": cores,
    } for size, (cores, processor) in _C5.items()},
}

__all__ = ["TAGS"]
