"""What tests of tensor programs use: `tvm.testing` of the course.

Comparing arrays needs numpy only. Parameters, fixtures and marks are pytest's: they are loaded when
one of their names is asked for, and a file that uses `parameters` or a `target` has the plugin in
its conftest.py: `pytest_plugins = ["mlc_lab.testing.plugin"]` (`main()` brings it by itself).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .arrays import assert_allclose, assert_prim_expr_equal, check_numerical_grads, main

#: names that need pytest or the runtime, and where they are
_LATER = {
    "passing": ("device_test", "echo"),
    "targets": ("device_enabled", "enabled_targets"),
    "features": ("Feature", "is_ampere_or_newer", "requires_cuda_compute_version",
                 "requires_nvcc_version", "requires_package", "skip_if_32bit",
                 "skip_if_no_reference_system", "skip_if_wheel_test", "slow", "uses_gpu",
                 "uses_multi_gpu"),
    "fixtures": ("exclude_targets", "fixture", "known_failing_targets", "parameter", "parameters",
                   "parametrize_targets", "skip_parameterizations", "xfail_parameterizations"),
    "before_after": ("CompareBeforeAfter",),
}
_WHERE = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    if name.startswith("requires_") and name not in _WHERE:
        from .features import FEATURES

        if name.removeprefix("requires_") in FEATURES:
            return FEATURES[name.removeprefix("requires_")]
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "pytest":
            raise
        raise ModuleNotFoundError(f"tvm.testing.{name} needs pytest: pip install pytest",
                                  name="pytest") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})


__all__ = ["assert_allclose", "assert_prim_expr_equal", "check_numerical_grads", "main"]
