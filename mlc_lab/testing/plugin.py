"""The plugin of pytest that `parameters`, `target` and `dev` need.

In a conftest.py: `pytest_plugins = ["mlc_lab.testing.plugin"]`.
"""

from __future__ import annotations

from typing import Any

import pytest

import mlc_lab as tvm

from .features import FEATURES
from .targets import kind_of, named


def pytest_configure(config: Any) -> None:
    """Features are marks."""
    for name in FEATURES:
        config.addinivalue_line("markers", f"{name}: the test uses {name}")


def pytest_generate_tests(metafunc: Any) -> None:
    """Parameters that change together; the targets of a test that names none."""
    groups: dict[int, list[tuple[str, Any]]] = {}
    for name, defs in metafunc.definition._fixtureinfo.name2fixturedefs.items():
        func = defs[-1].func
        if hasattr(func, "parametrize_group"):
            groups.setdefault(func.parametrize_group, []).append((name, func))
    for members in groups.values():
        names = [name for name, _ in members]
        rows = list(zip(*(func.parametrize_values for _, func in members)))
        metafunc.parametrize(names, rows, indirect=True, ids=members[0][1].parametrize_ids)
    if "target" not in metafunc.fixturenames or "target" in getattr(
            metafunc, "_arg2fixturedefs", {}):
        return
    for mark in metafunc.definition.iter_markers("parametrize"):
        said = mark.args[0] if mark.args else mark.kwargs["argnames"]
        if "target" in (said.replace(",", " ").split() if isinstance(said, str) else said):
            return
    excluded = getattr(metafunc.function, "tvm_excluded_targets", ())
    metafunc.parametrize("target", [t for t in named() if kind_of(t) not in excluded])


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """A test for a target that is not here is skipped, one that is known to fail may fail."""
    for item in items:
        target = getattr(item, "callspec", None) and item.callspec.params.get("target")
        if not target:
            continue
        kind = kind_of(target)
        if kind in FEATURES:
            for mark in FEATURES[kind].marks():
                item.add_marker(mark)
        if kind in getattr(item.function, "tvm_known_failing_targets", ()):
            item.add_marker(pytest.mark.xfail(reason=f"known to fail for {kind}"))


@pytest.fixture
def dev(target: Any) -> Any:
    """The device of the target."""
    return tvm.device(kind_of(target))
