"""Which targets tests run for.

`llvm`, and those that the environment variable TVM_TEST_TARGETS names, separated by semicolons:
`TVM_TEST_TARGETS="llvm;opencl"`. GPUs are not tried unless they are named: where none is present,
the simulated device answers, which is slow.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import mlc_lab as tvm

if TYPE_CHECKING:
    from mlc_lab.target.target import TargetLike


def named() -> list[str]:
    """The targets that tests are to run for, each once, in the order given."""
    given = os.environ.get("TVM_TEST_TARGETS", "")
    return list(dict.fromkeys(t.strip() for t in given.split(";") if t.strip())) or ["llvm"]


def kind_of(target: TargetLike) -> str:
    """The kind of a target: "cuda" of "cuda -arch=sm_80"."""
    return target.split()[0] if isinstance(target, str) else tvm.target.Target(target).kind.name


def present(kind: str) -> bool:
    """Whether programs for a kind of target can be run here."""
    try:
        return bool(tvm.device(kind).exist)
    except (ValueError, RuntimeError):  # no device of that name
        return False


def device_enabled(target: str) -> bool:
    """Whether tests are to run for a target, and can."""
    kind = kind_of(target)
    return present(kind) and any(kind == kind_of(t) for t in named())


def enabled_targets() -> list[tuple[str, object]]:
    """The targets that tests run for, each with its device."""
    return [(t, tvm.device(kind_of(t))) for t in named() if present(kind_of(t))]


__all__ = ["device_enabled", "enabled_targets", "kind_of", "named", "present"]
