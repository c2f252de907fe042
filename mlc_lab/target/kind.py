"""The kinds of targets and the options each one knows, as a table."""

from __future__ import annotations

from typing import Any, NamedTuple


class TargetKind(NamedTuple):
    """One kind of target.

    ``options`` maps the name of an option to its type (``str``, ``int``, ``bool``, or a list of one
    of them); ``defaults`` holds those that are set when nothing is said.
    """

    name: str
    device: str
    options: dict[str, Any]
    keys: tuple[str, ...]
    defaults: dict[str, Any] = {}

    @property
    def default_keys(self) -> tuple[str, ...]:
        """The keys of a target of this kind when none are given."""
        return self.keys

    def __str__(self) -> str:
        return self.name


_COMMON: dict[str, Any] = {
    "keys": [str],
    "tag": str,
    "device": str,
    "model": str,
    "libs": [str],
    "system-lib": bool,
    "runtime": str,
    "link-params": bool,
    "unpacked-api": bool,
    "interface-api": str,
    "from_device": int,
}
_LLVM: dict[str, Any] = {
    "mattr": [str],
    "mcpu": str,
    "mtriple": str,
    "mfloat-abi": str,
    "mabi": str,
    "num-cores": int,
    "opt-level": int,
    "fast-math": bool,
    "jit": str,
    "cl-opt": [str],
    "vector-width": int,
}
_GPU: dict[str, Any] = {
    "max_num_threads": int,
    "max_threads_per_block": int,
    "thread_warp_size": int,
    "max_shared_memory_per_block": int,
    "registers_per_block": int,
    "l2_cache_size_bytes": int,
}

KINDS: dict[str, TargetKind] = {
    kind.name: kind
    for kind in (
        TargetKind("llvm", "cpu", {**_COMMON, **_LLVM}, ("cpu",)),
        TargetKind(
            "c",
            "cpu",
            {**_COMMON, "mcpu": str, "march": str, "num-cores": int},
            ("cpu",),
        ),
        TargetKind(
            "cuda",
            "cuda",
            {**_COMMON, **_GPU, "arch": str, "mcpu": str},
            ("cuda", "gpu"),
            {"max_num_threads": 1024, "thread_warp_size": 32},
        ),
        TargetKind(
            "nvptx",
            "cuda",
            {**_COMMON, **_GPU, "mcpu": str, "mtriple": str},
            ("cuda", "gpu"),
            {"max_num_threads": 1024, "thread_warp_size": 32},
        ),
        TargetKind(
            "opencl",
            "opencl",
            {**_COMMON, **_GPU, "supports_subgroups": bool, "texture_spatial_limit": int,
             "path_depth": int},
            ("opencl", "gpu"),
            {"max_num_threads": 256, "thread_warp_size": 1},
        ),
        TargetKind(
            "metal", "metal", {**_COMMON, **_GPU}, ("metal", "gpu"),
            {"max_num_threads": 256, "thread_warp_size": 16},
        ),
        TargetKind(
            "vulkan", "vulkan", {**_COMMON, **_GPU}, ("vulkan", "gpu"),
            {"max_num_threads": 256, "thread_warp_size": 1},
        ),
        TargetKind(
            "rocm", "rocm", {**_COMMON, **_GPU, "mcpu": str, "mtriple": str, "mattr": [str]},
            ("rocm", "gpu"), {"max_num_threads": 256, "thread_warp_size": 64},
        ),
        TargetKind(
            "webgpu", "webgpu", {**_COMMON, **_GPU, "supports_subgroups": bool}, ("webgpu", "gpu"),
            {"max_num_threads": 256},
        ),
        TargetKind("hexagon", "hexagon", {**_COMMON, **_LLVM, "vtcm-capacity": int},
                   ("hexagon", "cpu")),
        TargetKind("ext_dev", "ext_dev", dict(_COMMON), ("ext_dev",)),
        TargetKind("interp", "cpu", dict(_COMMON), ("cpu",)),
        TargetKind("hybrid", "cpu", dict(_COMMON), ("cpu",)),
        TargetKind("composite", "cpu", {**_COMMON, "devices": [str]}, ("composite",)),
    )
}
