"""`requires_cuda`, `requires_x86`, ...: tests that are skipped where something is not there."""

from __future__ import annotations

import importlib.util
import os
import platform
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mlc_lab as tvm

from .targets import device_enabled

_SUPPORT = ("compile-and-run", "compile-only", "optional")


class Feature:
    """What a test may need: a decorator, bare or with `support_required=`.

    `lacking(run)` says why it is not here, or "". With "compile-only" it is asked with run=False;
    with "optional" it is not asked at all, and the test only bears the mark of the feature.
    """

    def __init__(self, name: str, lacking: Callable[[bool], str]) -> None:
        self.name, self.lacking = name, lacking

    def marks(self, support_required: str = "compile-and-run") -> list[Any]:
        """The marks of pytest that the decorator sets."""
        if support_required not in _SUPPORT:
            raise ValueError(f"support_required is one of {', '.join(_SUPPORT)}, not "
                             f"{support_required!r}")
        found = [getattr(pytest.mark, self.name)]
        if support_required != "optional":
            reason = self.lacking(support_required == "compile-and-run")
            if reason:
                found.append(pytest.mark.skip(reason=reason))
        return found

    def __call__(self, func: Any = None, *, support_required: str = "compile-and-run") -> Any:
        marks = self.marks(support_required)
        return with_marks(marks) if func is None else with_marks(marks)(func)


def with_marks(marks: list[Any]) -> Callable[[Any], Any]:
    """The decorator that sets several marks."""

    def decorate(func: Any) -> Any:
        for mark in marks:
            func = mark(func)
        return func

    return decorate


def _device(kind: str) -> Callable[[bool], str]:
    def lacking(run: bool) -> str:
        if run and not device_enabled(kind):
            return f"tests do not run for {kind}: TVM_TEST_TARGETS does not name it, or there is " \
                   "no such device"
        return ""

    return lacking


def _machine(*names: str) -> Callable[[bool], str]:
    here = platform.machine().lower()
    return lambda run: "" if not run or here in names else f"this machine is {here}"


def _processor(*features: str) -> Callable[[bool], str]:
    def lacking(run: bool) -> str:
        import llvmlite.binding as llvm

        try:
            known = llvm.get_host_cpu_features()
        except RuntimeError:
            known = {}
        absent = [f for f in features if not known.get(f)]
        return f"this processor has no {', '.join(absent)}" if run and absent else ""

    return lacking


def _any_gpu(run: bool) -> str:
    found = any(device_enabled(k) for k in ("cuda", "opencl", "metal", "webgpu", "rocm", "vulkan"))
    return "" if found or not run else "tests run for no GPU: TVM_TEST_TARGETS names none"


def _table() -> Iterator[tuple[str, Callable[[bool], str]]]:
    for kind in ("llvm", "cuda", "opencl", "metal", "rocm", "vulkan", "webgpu", "nvptx"):
        yield kind, _device(kind)
    yield "gpu", _any_gpu
    yield "multi_gpu", lambda run: "one device of a kind is used" if run else ""
    yield "x86", _machine("x86_64", "amd64")
    yield "aarch64", _machine("aarch64", "arm64")
    yield "x86_vnni", _processor("avx512vnni")
    yield "x86_avx512", _processor("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
    yield "x86_amx", _processor("amx-int8", "amx-tile")
    yield "arm_dot", _processor("dotprod")
    yield "arm_fp16", _processor("fullfp16")
    yield "aarch64_sve", _processor("sve")
    yield "aarch64_sme", _processor("sme")
    for name in ("aprofile_aem_fvp", "cmsisnn", "corstone300", "cublas", "cudagraph", "cudnn",
                 "cutlass", "ethosn", "ethosu", "hexagon", "hipblas", "matrixcore", "micro", "mrvl",
                 "nccl", "nnapi", "openclml", "rpc", "tensorcore", "vitis_ai"):
        yield name, lambda run, name=name: f"MLC Lab has no {name}"


#: name -> feature; `tvm.testing.requires_<name>` is the same
FEATURES = {name: Feature(name, lacking) for name, lacking in _table()}


def uses_gpu(func: Any) -> Any:
    """The decorator of a test that runs on a GPU where there is one: it bears a mark."""
    return FEATURES["gpu"](func, support_required="optional")


def uses_multi_gpu(func: Any) -> Any:
    """The decorator of a test that runs on several GPUs where they are: it bears a mark."""
    return FEATURES["multi_gpu"](func, support_required="optional")


slow = pytest.mark.skipif(os.environ.get("SKIP_SLOW_TESTS", "").lower() in ("true", "1", "yes"),
                          reason="SKIP_SLOW_TESTS is set")


def requires_package(*packages: str) -> Callable[[Any], Any]:
    """The decorator of a test that needs packages of Python."""
    absent = [p for p in packages if importlib.util.find_spec(p.partition(".")[0]) is None]
    return with_marks([pytest.mark.skip(reason=f"needs {p}: pip install {p}") for p in absent])


def requires_cuda_compute_version(major_version: int, minor_version: int = 0
                                  ) -> Callable[[Any], Any]:
    """The decorator of a test that needs a GPU of NVIDIA of at least some compute capability."""
    marks = FEATURES["cuda"].marks()
    if all(mark.name != "skip" for mark in marks):
        version = str(getattr(tvm.cuda(), "compute_version", "") or "0.0")
        if tuple(int(part) for part in version.split(".")) < (major_version, minor_version):
            marks.append(pytest.mark.skip(reason="needs compute capability "
                                          f"{major_version}.{minor_version}; here it is {version}"))
    return with_marks(marks)


def requires_nvcc_version(*version: int) -> Callable[[Any], Any]:
    """The decorator of a test that needs nvcc, which is not used here."""
    return with_marks([pytest.mark.skip(reason="CUDA is compiled with NVRTC here, not with nvcc")])


def is_ampere_or_newer() -> bool:
    """Whether there is a GPU of NVIDIA of compute capability 8.0 or more."""
    if not device_enabled("cuda"):
        return False
    return int(str(getattr(tvm.cuda(), "compute_version", "") or "0").split(".")[0]) >= 8


def skip_if_32bit(reason: str) -> Callable[[Any], Any]:
    """The decorator of a test that does not run where addresses have 32 bits."""
    small = platform.architecture()[0] == "32bit"
    return with_marks([pytest.mark.skip(reason=reason)] if small else [])


def skip_if_wheel_test(test: Any) -> Any:
    """The mark of a test that does not run where TVM comes as a wheel (WHEEL_TEST=1)."""
    return pytest.mark.skipif(
        os.environ.get("WHEEL_TEST", "").lower() in ("true", "1", "yes"),
        reason="does not run from a wheel")(test)


def skip_if_no_reference_system(test: Any) -> Any:
    """The mark of a test that does not run where addresses have 32 bits."""
    return skip_if_32bit("there is no reference system")(test)


__all__ = ["FEATURES", "Feature", "is_ampere_or_newer", "requires_cuda_compute_version",
           "requires_nvcc_version", "requires_package", "skip_if_32bit",
           "skip_if_no_reference_system", "skip_if_wheel_test", "slow", "uses_gpu",
           "uses_multi_gpu", "with_marks"]
