"""Which targets there are: name -> the module of this package that has its `case(draw)`."""

from importlib import import_module
from typing import Any

#: name -> (module, cases that CI runs)
TARGETS: dict[str, tuple[str, int]] = {
    "graphs": ("graphs", 25),
    "schedules": ("schedules", 60),
    "imports": ("imports", 25),
    "numbers": ("numbers", 60),
    "operators": ("operators", 180),
    "torch_writes": ("torch_writes", 15),
    "te_programs": ("te_programs", 25),
    "statements": ("statements", 60),
    "branches": ("branches", 150),
    "texts": ("texts", 60),
    "gpu": ("kernels", 12),
}


def load(name: str) -> Any:
    """The module of a target."""
    return import_module(f"{__package__}.{TARGETS[name][0]}")
