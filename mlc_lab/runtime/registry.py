"""The global function registry: functions by name, shared by Python and native code.

It is the registry of apache-tvm-ffi, so what is registered here can be called by
``T.call_packed`` in a kernel, by ``call_dps_packed`` in a graph, and by any other program that
speaks tvm-ffi in this process. Tensor arguments reach a Python function as ``NDArray``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import tvm_ffi
from tvm_ffi import Function as PackedFunc
from tvm_ffi import register_error

from . import ndarray as _ndarray  # noqa: F401  (sets the class in which tensors arrive)

if TYPE_CHECKING:
    from typing import Literal, overload

_PACKAGE = __name__.partition(".")[0]

# Raised by kernels that divide an integer by zero; tvm-ffi knows their other errors.
register_error("ZeroDivisionError", ZeroDivisionError)

__all__ = [
    "PackedFunc",
    "convert",
    "get_global_func",
    "list_global_func_names",
    "register_func",
    "remove_global_func",
]


def register_func(
    func_name: str | Callable[..., Any],
    f: Callable[..., Any] | None = None,
    override: bool = False,
) -> Any:
    """Register ``f`` under a name; usable as ``@register_func("env.relu")`` too.

    Raises ValueError when the name is taken and ``override`` is false.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)
    if f is None:
        return lambda func: register_func(func_name, func, override)
    if not override and tvm_ffi.get_global_func(func_name, allow_missing=True) is not None:
        raise ValueError(
            f"a global function {func_name!r} is already registered; pass override=True to "
            "replace it (running a notebook cell a second time registers again)"
        )
    return tvm_ffi.register_global_func(func_name, f, True)


if TYPE_CHECKING:
    @overload
    def get_global_func(name: str, allow_missing: Literal[False] = False) -> PackedFunc: ...
    @overload
    def get_global_func(name: str, allow_missing: bool) -> PackedFunc | None: ...


def get_global_func(name: str, allow_missing: bool = False) -> PackedFunc | None:
    """The function registered under ``name``.

    Raises ValueError when there is none, or returns None with ``allow_missing``.
    """
    func = tvm_ffi.get_global_func(name, allow_missing=True)
    if func is None and not allow_missing:
        from difflib import get_close_matches

        near = get_close_matches(name, list_global_func_names(), 3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(
            f"no global function {name!r} is registered{hint} "
            f'(register one with @register_func("{name}"))'
        )
    return func


def list_global_func_names() -> list[str]:
    """The names of all registered functions."""
    return list(tvm_ffi.registry.list_global_func_names())


def remove_global_func(name: str) -> None:
    """Remove the function registered under ``name``, if there is one."""
    tvm_ffi.remove_global_func(name)


def convert(value: Any) -> Any:
    """``value`` as a tvm-ffi object: a Python function becomes a callable PackedFunc.

    Parts of programs, such as tensors of te, stay what they are, though some can be called; a list
    or a dict with such parts is one of Python's.
    """
    if _is_part(value):
        return value
    if isinstance(value, (list, tuple)) and _has_part(value):
        return [convert(item) for item in value]
    if isinstance(value, Mapping) and _has_part(value):
        return {key: convert(item) for key, item in value.items()}
    return tvm_ffi.convert(value)


def _is_part(value: Any) -> bool:
    """Whether a value is an object of this package, which has meaning in Python alone."""
    return type(value).__module__.startswith(f"{_PACKAGE}.") and not isinstance(
        value, tvm_ffi.core.Object)


def _has_part(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_part, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_part, value))
    return _is_part(value)
