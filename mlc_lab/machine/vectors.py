"""What vector registers the machine of a target has: their width and their number."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from ..target import Target

if TYPE_CHECKING:
    from .target import TargetLike

#: processors (by LLVM's names) whose vectors have 512 bits
AVX512_PROCESSORS = (
    "skylake-avx512", "skx", "cascadelake", "cooperlake", "cannonlake", "icelake-client",
    "icelake-server", "rocketlake", "tigerlake", "sapphirerapids", "emeraldrapids",
    "graniterapids", "graniterapids-d", "diamondrapids", "znver4", "znver5", "knl", "knm",
    "x86-64-v4",
)  # fmt: skip
#: processors whose vectors have 256 bits, with fused multiply-adds
AVX2_PROCESSORS = (
    "haswell", "core-avx2", "broadwell", "skylake", "alderlake", "raptorlake", "meteorlake",
    "gracemont", "sierraforest", "grandridge", "arrowlake", "arrowlake-s", "lunarlake",
    "pantherlake", "clearwaterforest", "znver1", "znver2", "znver3", "bdver4", "x86-64-v3",
)  # fmt: skip

#: bits of the narrowest vectors that processors with vectors have, and of the widest
NARROWEST, WIDEST = 128, 512


class VectorUnit(NamedTuple):
    """The vector registers of one core: their width in bits, and how many there are."""

    bits: int
    registers: int

    def lanes(self, dtype_bits: int) -> int:
        """How many elements of that many bits fit into a register."""
        return max(1, self.bits // max(dtype_bits, 8))


@functools.cache
def _host() -> tuple[str, frozenset[str]]:
    """The architecture of this machine, and the features of its processor."""
    import llvmlite.binding as binding

    features = binding.get_host_cpu_features()
    have = frozenset(name for name, there in features.items() if there)
    return binding.get_process_triple().split("-")[0], have


def vector_unit(target: TargetLike) -> VectorUnit:
    """The vector registers of a target's machine; for a plain ``llvm`` target, of this one."""
    target = Target(target if target is not None else "llvm")
    arch, features = _host()
    if target.attrs.get("mtriple") or target.mcpu:
        arch = str(target.attrs.get("mtriple") or arch).split("-")[0]
        features = frozenset(
            [*(["avx512f", "avx2"] if target.mcpu in AVX512_PROCESSORS else ()),
             *(["avx2"] if target.mcpu in AVX2_PROCESSORS else ())])
    off = {f[1:] for f in target.mattr if f.startswith("-")}
    features = (features | {f[1:] for f in target.mattr if f.startswith("+")}) - off
    if "avx512f" in features:
        return VectorUnit(512, 32)
    if "avx2" in features or "avx" in features:
        return VectorUnit(256, 16)
    return VectorUnit(128, 32 if arch in ("aarch64", "arm64") else 16)


def vector_bits() -> int:
    """The width of this machine's vector registers, in bits."""
    return vector_unit("llvm").bits


__all__ = ["AVX2_PROCESSORS", "AVX512_PROCESSORS", "NARROWEST", "WIDEST", "VectorUnit",
           "vector_bits", "vector_unit"]
