"""The interpreter's memory: arrays of elements, views of them as buffers, and the arguments.

A pointer is a flat (one-dimensional) numpy array that starts at the place pointed to. A buffer in
use is a `View`: a pointer plus shape, strides and offset, all numbers. Scalars are Python ints,
floats and bools; what makes them int32 or float16 is that every result is *rounded* (floats) or
*wrapped* (integers) to its type before anyone sees it: `fit(dtype)` is that function.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable, Sequence

import numpy as np

from ..ir import dtype as dt
from ..ir.diagnostics import MLCError
from ..runtime.torch_bits import refuse_lazy_views
from ..tir import Buffer, PrimFunc, Var
from ..tir.numbers import bfloat16_bits, bfloat16_values, fit
from ..tir.op import as_int


class InterpError(MLCError, RuntimeError):
    """A program did something that has no meaning, or asks for what the interpreter cannot do."""


class OutOfBounds(InterpError, IndexError):
    """A program touched an element outside of a buffer: `element`, as "A[0, -2]", by the load or
    store `node`, as far as they are known."""

    node: Any = None
    element: str = ""


class DivisionByZero(InterpError, ZeroDivisionError):
    """A program divided an integer by zero."""


class AssertionFailed(InterpError, AssertionError):
    """An assert statement of the program did not hold."""


# ----------------------------------------------------------------------------- vectors


@lru_cache(maxsize=None)
def vector_dtype(dtype: str) -> np.dtype:
    """The numpy type vectors of `dtype` are computed in (bfloat16 and float8 in float32)."""
    code, bits, _ = dt.parse(dtype)
    if code == "bfloat" or code.startswith("float8"):
        return np.dtype("float32")
    return dt.numpy_dtype(dtype)


@lru_cache(maxsize=None)
def vector_fit(dtype: str) -> Callable[[np.ndarray], np.ndarray]:
    """`fit` for a numpy vector of results."""
    code, _, _ = dt.parse(dtype)
    if code == "bfloat":
        return lambda v: bfloat16_values(bfloat16_bits(v))
    kind = dt.numpy_dtype(dtype)
    if code.startswith("float8"):
        return lambda v: np.asarray(v).astype(kind).astype(np.float32)
    if code in ("int", "uint") and kind.itemsize * 8 != dt.bits_of(dtype):
        one = fit(dt.element_of(dtype))
        return lambda v: np.array([one(int(x)) for x in v], dtype=kind)
    return lambda v: np.asarray(v).astype(kind, copy=False)


# ----------------------------------------------------------------------------- memory


class _Converted:
    """Scalar access to an array whose elements Python does not know (float16, bfloat16, ...)."""

    __slots__ = ("array", "load", "store")

    def __init__(self, flat: np.ndarray, load: Callable, store: Callable) -> None:
        self.array, self.load, self.store = flat, load, store

    def __getitem__(self, index: int) -> float:
        return self.load(self.array[index])

    def __setitem__(self, index: int, value: float) -> None:
        self.array[index] = self.store(value)


def scalar_access(flat: np.ndarray, dtype: str) -> Any:
    """An object whose [i] reads and writes Python numbers in `flat` (a memoryview, mostly)."""
    if dt.parse(dtype).code == "bfloat" and flat.dtype.kind == "u":
        return _Converted(flat, lambda b: float(bfloat16_values(b)),
                          lambda v: bfloat16_bits(np.float32(v)))
    if flat.dtype.char in "?bBhHiIlLqQfd":
        return flat.data
    return _Converted(flat, float, flat.dtype.type)


#: bytes from which fresh memory is not filled: filling it would commit all of its pages
LARGE = 1 << 28


def allocate(count: int, dtype: str) -> np.ndarray:
    """Fresh memory. It holds NaN, or a large odd number: reading it before writing shows.

    Memory of `LARGE` bytes and more holds zeros; only pages that are touched take memory.
    """
    kind = dt.numpy_dtype(dtype)
    count *= dt.lanes_of(dtype)
    if count * kind.itemsize >= LARGE:
        return np.zeros(count, kind)
    if kind.kind == "f":
        return np.full(count, np.nan, kind)
    if kind.kind == "b":
        return np.ones(count, kind)
    out = np.empty(count * kind.itemsize, np.uint8)
    out.fill(0x7F)
    return out.view(kind)


class View:
    """A buffer in use: flat elements, and where in them an index tuple lies."""

    __slots__ = ("array", "mem", "offset", "shape", "strides", "lanes", "dtype", "shadow")

    def __init__(self, pointer: np.ndarray, dtype: str, shape: tuple, strides: tuple,
                 offset: int, shadow: Any = None) -> None:
        kind = dt.numpy_dtype(dtype)
        if pointer.dtype != kind:
            pointer = pointer.view(kind)
        self.array = pointer
        self.lanes = dt.lanes_of(dtype)
        self.mem = scalar_access(pointer, dtype)
        self.offset, self.shape, self.dtype = offset, shape, dtype
        self.strides = strides or row_major(shape)
        self.shadow = shadow

    def ndarray(self) -> np.ndarray:
        """The elements as an n-dimensional numpy array that shares the memory."""
        item = self.array.itemsize
        shape, strides = self.shape, tuple(s * item * self.lanes for s in self.strides)
        if self.lanes > 1:
            shape, strides = shape + (self.lanes,), strides + (item,)
        return np.lib.stride_tricks.as_strided(self.array[self.offset * self.lanes:], shape,
                                               strides)

    def vector_load(self, flat: np.ndarray) -> np.ndarray:
        """The elements at flat indices as a vector to compute with."""
        if self.lanes > 1:
            flat = (flat[:, None] * self.lanes + np.arange(self.lanes)).reshape(-1)
        values = self.array[flat]
        kind = vector_dtype(self.dtype)
        if values.dtype == kind:
            return values
        if values.dtype == np.uint16:
            return bfloat16_values(values)
        return values.astype(kind)

    def vector_store(self, flat: np.ndarray, values: np.ndarray) -> None:
        """Write a vector to flat indices (later lanes win)."""
        if self.lanes > 1:
            flat = (flat[:, None] * self.lanes + np.arange(self.lanes)).reshape(-1)
        if dt.parse(self.dtype).code == "bfloat" and self.array.dtype == np.uint16:
            values = bfloat16_bits(values)
        self.array[flat] = values


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a compact array, in elements."""
    out, stride = [], 1
    for extent in reversed(shape):
        out.append(stride)
        stride *= extent
    return tuple(reversed(out))


# ----------------------------------------------------------------------------- arguments


class Argument:
    """An array argument as the interpreter uses it, and how its results get back."""

    def __init__(self, value: Any, what: str) -> None:
        self.write_back: Callable[[], None] | None = None
        self.array = self._as_numpy(value, what)
        self._handed_back = self.write_back
        if self.array.flags.c_contiguous and self.array.flags.writeable:
            self.flat = self.array.reshape(-1)
        else:  # strided or read-only: work on a copy
            self.flat = np.ascontiguousarray(self.array).reshape(-1).copy()
            if self.array.flags.writeable:
                before = self.flat.copy()
                self._then(lambda: self._put_back(before))

    def use_memory(self, span: int) -> np.ndarray:
        """The elements of the array where they lie, with what lies between them: the copy that was
        made of a strided one is dropped. `span`: how many elements from its first to its last."""
        self.write_back = self._handed_back
        self.flat = np.lib.stride_tricks.as_strided(self.array, (span,), (self.array.itemsize,))
        return self.flat

    def _put_back(self, before: np.ndarray) -> None:
        """Write what has changed: another argument may be the same memory."""
        size, shape = self.flat.itemsize, self.array.shape
        new, old = (a.view(np.uint8).reshape(-1, size) for a in (self.flat, before))
        np.copyto(self.array, self.flat.reshape(shape),
                  where=(new != old).any(axis=1).reshape(shape))

    def _then(self, step: Callable[[], None]) -> None:
        before = self.write_back

        def both() -> None:
            step()
            if before is not None:
                before()

        self.write_back = both

    def _as_numpy(self, value: Any, what: str) -> np.ndarray:
        if isinstance(value, np.ndarray):
            return value
        refuse_lazy_views(value, what)
        if hasattr(value, "__dlpack__"):
            try:
                return np.from_dlpack(value)
            except (RuntimeError, BufferError, TypeError, ValueError):
                pass  # bfloat16, or a tensor of another device: exchanged through a copy
        if hasattr(value, "numpy") and hasattr(value, "copyfrom"):
            out = np.array(value.numpy())
            self.write_back = lambda: value.copyfrom(out)
            return out
        if hasattr(value, "view") and hasattr(value, "data_ptr"):  # a torch.bfloat16 tensor
            import torch

            return value.view(torch.uint16).numpy()
        raise InterpError(f"{what} must be an array (numpy, NDArray, torch or anything with "
                          f"DLPack), got {type(value).__name__}")


def check_dtype(found: np.dtype, wanted: str, what: str) -> None:
    """Raise if an array of numpy type `found` cannot stand for elements of `wanted`."""
    expect = dt.numpy_dtype(wanted)
    if found == expect:
        return
    code = dt.parse(wanted).code
    if code == "bfloat" and (found == np.uint16 or found.name == "bfloat16"):
        return
    if code == "bool" and found in (np.dtype("int8"), np.dtype("uint8")):
        return
    raise InterpError(f"{what} must have dtype {wanted}, got {found.name}; convert it first, "
                      f"for example with .astype({str(expect)!r})")


def bind_arguments(func: PrimFunc, args: Sequence[Any], evaluate: Callable,
                   name: str) -> tuple[dict[Var, Any], list[Argument]]:
    """Match `args` with the parameters of `func`.

    Returns the values of variables (parameters, data pointers, symbolic sizes) and the array
    arguments. `evaluate(expr, values)` computes sizes that are expressions. Raises InterpError
    that names the parameter, what it must be and what it was given.
    """
    if len(args) != len(func.params):
        names = ", ".join(_param_name(func, p) for p in func.params)
        raise InterpError(f"{name}({names}) takes {len(func.params)} argument(s), got {len(args)}")
    values: dict[Var, Any] = {}
    arrays: list[tuple[Buffer, Argument, str]] = []
    arguments: list[Argument] = []
    for position, (param, given) in enumerate(zip(func.params, args)):
        what = f"argument {position} of {name} ({_param_name(func, param)})"
        buffer = func.buffer_map.get(param)
        if buffer is None and param.dtype != "handle":
            if hasattr(given, "item"):
                given = given.item()
            if hasattr(given, "value"):
                given = given.value
            if not isinstance(given, (int, float)):
                raise InterpError(f"{what} must be a number of type {param.dtype}, "
                                  f"got {type(given).__name__}")
            values[param] = fit(param.dtype)(
                float(given) if dt.is_float(param.dtype) else int(given))
            continue
        argument = Argument(given, what)
        arguments.append(argument)
        if buffer is None:
            values[param] = argument.flat
        else:
            arrays.append((buffer, argument, what))
    _bind_shapes(arrays, values, evaluate)
    return values, arguments


def _bind_shapes(arrays: list, values: dict[Var, Any], evaluate: Callable) -> None:
    """Bind symbolic sizes at their first plain occurrence, then check all that is left."""
    checks = []
    for buffer, argument, what in arrays:
        array_, shape = argument.array, buffer.shape
        lanes = dt.lanes_of(buffer.dtype)
        found = array_.shape[:-1] if lanes > 1 and array_.ndim == len(shape) + 1 else array_.shape
        if len(found) != len(shape):
            raise InterpError(f"{what} must have {len(shape)} dimension(s), shape "
                              f"{_shape_text(buffer)}, got shape {tuple(array_.shape)}")
        check_dtype(array_.dtype, buffer.dtype, what)
        values[buffer.data] = argument.flat
        strides = row_major(found)
        if buffer.strides and array_.flags.writeable and all(s >= 0 for s in array_.strides):
            strides = tuple(s // array_.itemsize for s in array_.strides)
            span = 1 + sum((n - 1) * s for n, s in zip(found, strides))
            values[buffer.data] = argument.use_memory(span if array_.size else 0)
        for axis, (wanted, have) in enumerate(zip(shape, found)):
            known = as_int(wanted)
            if known is not None:
                if known != have:
                    raise InterpError(f"{what} must have shape {_shape_text(buffer)}, got "
                                      f"{tuple(found)}: dimension {axis} differs")
            elif isinstance(wanted, Var) and wanted not in values:
                values[wanted] = int(have)
            else:
                checks.append((wanted, have, axis, what, buffer))
        _bind_layout(buffer, strides, values, checks, what)
    for wanted, have, axis, what, buffer in checks:
        value = evaluate(wanted, values)
        if value != have:
            raise InterpError(f"{what}: dimension {axis} of shape {_shape_text(buffer)} must be "
                              f"{value} here, got {have}")


def _bind_layout(buffer: Buffer, strides: Sequence[int], values: dict, checks: list,
                 what: str) -> None:
    """Symbolic strides come from the argument; an argument starts at its first element."""
    for axis, (wanted, have) in enumerate(zip(buffer.strides, strides)):
        if isinstance(wanted, Var) and wanted not in values:
            values[wanted] = have
        else:
            checks.append((wanted, have, axis, f"{what}, strides", buffer))
    if isinstance(buffer.elem_offset, Var) and buffer.elem_offset not in values:
        values[buffer.elem_offset] = 0


def _param_name(func: PrimFunc, param: Var) -> str:
    buffer = func.buffer_map.get(param)
    return buffer.name if buffer is not None else param.name


def _shape_text(buffer: Buffer) -> str:
    return "(" + ", ".join(
        str(as_int(d)) if as_int(d) is not None else getattr(d, "name", repr(d))
        for d in buffer.shape) + ("," if len(buffer.shape) == 1 else "") + ")"
