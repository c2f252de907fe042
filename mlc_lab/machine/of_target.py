"""From a Target to the machine LLVM generates code for, and whether this computer can run it."""

from __future__ import annotations

import functools

from ..runtime import jit
from ..target import Target
from .vectors import AVX2_PROCESSORS, AVX512_PROCESSORS

# Features that code for a processor may use.
_NEEDS = {
    **dict.fromkeys(AVX512_PROCESSORS, ("avx512f", "avx2", "fma")),
    **dict.fromkeys(AVX2_PROCESSORS, ("avx2", "fma")),
}

# Processor, features and ABI of a bare triple, such as the hard-float RISC-V that Linux runs on.
_TRIPLE_DEFAULTS = {
    "riscv64": ("generic-rv64", "+m,+a,+f,+d,+c", "lp64d"),
    "riscv32": ("generic-rv32", "+m,+a,+f,+d,+c", "ilp32d"),
    "nvptx64": ("sm_80", "", ""),
    "nvptx": ("sm_80", "", ""),
    "amdgcn": ("gfx90a", "", ""),
    "wasm32": ("", "+simd128", ""),
    "wasm64": ("", "+simd128", ""),
}


def machine_of(target: Target) -> jit.Machine:
    """The machine of an ``llvm`` target; without options it is this computer.

    Raises ValueError for a triple or processor that LLVM does not know.
    """
    host_triple, host_cpu, host_features = jit.host_cpu()
    attrs = target.attrs
    triple = str(attrs.get("mtriple") or host_triple)
    cpu = str(attrs.get("mcpu") or "")
    features = ",".join(attrs.get("mattr", ()))
    abi = str(attrs.get("mabi") or "")
    arch = triple.split("-")[0]
    if not attrs.get("mtriple") and not cpu:
        cpu = host_cpu
        features = f"{host_features},{features}" if features else host_features
    elif arch in _TRIPLE_DEFAULTS:
        default_cpu, default_features, default_abi = _TRIPLE_DEFAULTS[arch]
        cpu = cpu or default_cpu
        features = features or default_features
        abi = abi or default_abi
    level = int(attrs.get("opt-level", 3))
    return jit.machine(triple, cpu, features, max(0, min(level, 3)), abi)


def has_avx512(where: jit.Machine) -> bool:
    """Whether code for ``where`` may use vectors of 512 bits."""
    features = where.features.split(",")
    return "-avx512f" not in features and ("+avx512f" in features or where.cpu in AVX512_PROCESSORS)


def has_scalable_vectors(where: jit.Machine) -> bool:
    """Whether code for ``where`` may use vectors whose length it learns as it runs."""
    wanted = {"aarch64": "+sve", "riscv64": "+v", "riscv32": "+v"}.get(where.triple.split("-")[0])
    return wanted in where.features.split(",")


@functools.cache
def missing_features(where: jit.Machine) -> tuple[str, ...]:
    """Features that code for ``where`` may use and this computer's processor lacks."""
    here = jit.host_cpu()[2].split(",")
    have = {f[1:] for f in here if f.startswith("+")}
    known = have | {f[1:] for f in here if f.startswith("-")}
    wanted = [f[1:] for f in where.features.split(",") if f.startswith("+")]
    off = {f[1:] for f in where.features.split(",") if f.startswith("-")}
    wanted += [f for f in _NEEDS.get(where.cpu, ()) if f not in off]
    return tuple(sorted({f for f in wanted if f in known and f not in have}))
