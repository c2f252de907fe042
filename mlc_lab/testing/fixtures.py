"""Parameters and fixtures of tests, and the targets that a test runs for."""

from __future__ import annotations

import copy
import functools
import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import pytest

_groups = count()


def parameter(*values: object, ids: Sequence[str] | None = None,
              by_dict: Mapping[str, Any] | None = None) -> Any:
    """A fixture that takes several values: tests that ask for it run once for each.

    `size = tvm.testing.parameter(1, 10)`; by_dict gives each value a name.
    """
    if by_dict is not None:
        if values or ids:
            raise RuntimeError("parameter: by_dict gives values and their names; give nothing else")
        ids, values = tuple(by_dict), tuple(by_dict.values())

    @pytest.fixture(params=values, ids=ids)
    def as_fixture(*_self: object, request: pytest.FixtureRequest) -> Any:
        return request.param

    return as_fixture


def parameters(*value_sets: Sequence[Any], ids: Sequence[str] | None = None) -> list[Any]:
    """Fixtures whose values change together: `size, dtype = tvm.testing.parameters((1, "int8"))`.

    The plugin parametrizes a test by the fixtures of one call at once.
    """
    if len({len(values) for values in value_sets}) > 1:
        raise ValueError("parameters: the sets of values are not all of the same length")
    group, made = next(_groups), []
    for column in zip(*value_sets):
        def as_fixture(*_self: object, request: pytest.FixtureRequest) -> Any:
            return request.param

        vars(as_fixture).update(parametrize_group=group, parametrize_values=column,
                                parametrize_ids=ids)
        made.append(pytest.fixture(as_fixture))
    return made


def fixture(func: Callable[..., Any] | None = None, *, cache_return_value: bool = False) -> Any:
    """A fixture of pytest. With cache_return_value it is computed once for the same arguments.

    What is kept is copied for each test. TVM_TEST_DISABLE_CACHE=1 turns keeping off.
    """
    def decorate(func: Callable[..., Any]) -> Any:
        off = os.environ.get("TVM_TEST_DISABLE_CACHE", "0").lower() not in ("", "0", "false")
        return pytest.fixture(_kept(func) if cache_return_value and not off else func)

    return decorate if func is None else decorate(func)


def _kept(func: Callable[..., Any]) -> Callable[..., Any]:
    kept: dict[Any, Any] = {}

    @functools.wraps(func)
    def again(*args: object, **kwargs: object) -> Any:
        key: Any = (args, tuple(sorted(kwargs.items())))
        try:
            hash(key)
        except TypeError:  # an array or a dict is known by its bytes
            key = pickle.dumps(key)
        if key not in kept:
            kept[key] = func(*args, **kwargs)
        return copy.deepcopy(kept[key])

    return again


def parametrize_targets(*targets: object) -> Any:
    """The decorator of a test that runs for these targets; bare, for all that are enabled."""
    if len(targets) == 1 and callable(targets[0]):
        return targets[0]  # the plugin does it for whatever asks for `target` or `dev`
    return pytest.mark.parametrize("target", list(targets))


def exclude_targets(*targets: str) -> Callable[[Any], Any]:
    """The decorator of a test that does not run for these kinds of target."""
    return _noted("tvm_excluded_targets", targets)


def known_failing_targets(*targets: str) -> Callable[[Any], Any]:
    """The decorator of a test that is expected to fail for these kinds of target."""
    return _noted("tvm_known_failing_targets", targets)


def _noted(name: str, targets: tuple[str, ...]) -> Callable[[Any], Any]:
    def decorate(func: Any) -> Any:
        setattr(func, name, targets)
        return func

    return decorate


def skip_parameterizations(*names: str, reason: str) -> Callable[[Any], Any]:
    """The decorator of a test that takes `request`: what is in its brackets is not run."""
    return _stopped(names, pytest.skip, reason)


def xfail_parameterizations(*names: str, reason: str) -> Callable[[Any], Any]:
    """The decorator of a test that takes `request`: what is in its brackets is known to fail."""
    return _stopped(names, pytest.xfail, reason)


def _stopped(names: tuple[str, ...], stop: Callable[..., Any], reason: str
             ) -> Callable[[Any], Any]:
    def decorate(func: Any) -> Any:
        @functools.wraps(func)
        def checked(request: pytest.FixtureRequest, *args: object, **kwargs: object) -> Any:
            if request.node.name.partition("[")[2].removesuffix("]") in names:
                stop(reason=reason)
            return func(request, *args, **kwargs)

        return checked

    return decorate


__all__ = ["exclude_targets", "fixture", "known_failing_targets", "parameter", "parameters",
           "parametrize_targets", "skip_parameterizations", "xfail_parameterizations"]
