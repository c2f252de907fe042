"""NVRTC, NVIDIA's compiler at run time: from CUDA C to machine code. It needs no GPU.

It comes with the packages `cuda-bindings` and `nvidia-cuda-nvrtc` (versions 12 and 13). Programs
with `float16` or `bfloat16` include headers of the CUDA runtime; `cuda-pathfinder` finds them in
the package `nvidia-cuda-runtime`, in conda, or in an installed toolkit.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Any


class CompileError(RuntimeError):
    """What NVRTC says of a program that it does not take."""


@functools.cache
def _library() -> Any:
    """The module of bindings. Raises ImportError where it or the library is missing."""
    found = import_module("cuda.bindings.nvrtc")
    try:
        found.nvrtcVersion()
    except RuntimeError as error:  # the bindings are there, and the library is not
        raise ImportError(f"NVRTC is not there: {error}; pip install nvidia-cuda-nvrtc-cu12"
                          ) from None
    return found


def available() -> bool:
    """Whether programs can be compiled here."""
    try:
        _library()
    except ImportError:
        return False
    return True


@functools.cache
def architectures() -> tuple[int, ...]:
    """The compute capabilities that NVRTC makes code for, such as 75 or 90."""
    return tuple(sorted(_library().nvrtcGetSupportedArchs()[1]))


def architecture_for(capability: int) -> str:
    """What to compile for, for a device: its own code, or PTX of an older one where the device is
    newer than the compiler, which the driver then translates."""
    known = architectures()
    if capability in known:
        return f"sm_{capability}"
    older = [n for n in known if n <= capability]
    return f"compute_{older[-1] if older else known[0]}"


@functools.cache
def _include() -> list[bytes]:
    """The option that says where the headers of the CUDA runtime are, if they are found."""
    try:
        folder = import_module("cuda.pathfinder").find_nvidia_header_directory("cudart")
    except (ImportError, AttributeError, RuntimeError):
        folder = None
    return [f"--include-path={folder}".encode()] if folder else []


def compile_cuda(text: str, name: str, architecture: str, code: str = "") -> bytes:
    """The machine code of a program for an architecture such as "sm_90"; PTX for "compute_90", or
    with `code="ptx"`.

    Raises CompileError with the compiler's words, ImportError where NVRTC is missing.
    """
    lib = _library()
    good = lib.nvrtcResult.NVRTC_SUCCESS
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
    if "#include" in text:
        options += _include()
    error, program = lib.nvrtcCreateProgram(text.encode(), f"{name}.cu".encode(), 0, [], [])
    if error != good:
        raise CompileError(f"NVRTC does not take the program: {error.name}")
    try:
        (error,) = lib.nvrtcCompileProgram(program, len(options), options)
        if error != good:
            log = b" " * lib.nvrtcGetProgramLogSize(program)[1]
            lib.nvrtcGetProgramLog(program, log)
            words = log.rstrip(b"\0 \n").decode(errors="replace") or error.name
            if "could not open source file" in words:
                words += ("\nThe headers of the CUDA runtime are not found: "
                          "pip install nvidia-cuda-runtime-cu12")
            raise CompileError(words)
        kind = "PTX" if code == "ptx" or architecture.startswith("compute_") else "CUBIN"
        made = b" " * getattr(lib, f"nvrtcGet{kind}Size")(program)[1]
        getattr(lib, f"nvrtcGet{kind}")(program, made)
        return made
    finally:
        lib.nvrtcDestroyProgram(program)


__all__ = ["CompileError", "architecture_for", "architectures", "available", "compile_cuda"]
