"""What the machine does itself: memory, shapes, tuples, closures, conditions.

Each is a Python function under the name by which bytecode calls it. Those that get the machine as
their first argument are called with `%vm`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import numpy as np
from tvm_ffi import Shape

from ...runtime import NDArray, get_global_func, register_func
from ...runtime.ndarray import alias, empty, tensor_at

if TYPE_CHECKING:
    from collections.abc import Sequence
    from .machine import VirtualMachine

ASSERT_IMM, STORE, SKIP, ASSERT_HEAP = range(4)


class Storage:
    """A piece of memory in which tensors are made."""

    __slots__ = ("memory", "size", "scope", "__weakref__")

    def __init__(self, size: int, scope: str = "global", device: Any = None) -> None:
        self.size, self.scope = size, scope
        self.memory: Any
        if device is not None and device.type != "cpu":
            self.memory = empty((max(size, 1),), "uint8", device)
            return
        raw = np.empty(size + 128, np.uint8)
        start = -raw.ctypes.data % 128
        self.memory = raw[start:start + size]

    def __repr__(self) -> str:
        return f"<storage of {self.size} bytes>"


class Closure:
    """A function of the machine with its first arguments fixed. It can be called."""

    def __init__(self, vm: VirtualMachine, name: str, args: tuple) -> None:
        self.vm, self.name, self.args = vm, name, args

    def __call__(self, *args: object) -> Any:
        return self.vm.call(self.name, *self.args, *args)

    def __repr__(self) -> str:
        return f"<closure of {self.name} with {len(self.args)} arguments>"


class MatchError(ValueError):
    """An argument that is not what the function declares."""


def _kind(value: object) -> str:
    if isinstance(value, NDArray):
        shape = ", ".join(map(str, value.shape))
        return f"a tensor of shape ({shape}) and dtype {value.dtype}"
    if isinstance(value, Shape):
        return f"the shape {tuple(value)}"
    if value is None:
        return "nothing"
    if isinstance(value, (tuple, list)):
        return f"a tuple of {len(value)}"
    return f"{value!r} ({type(value).__name__})"


def where(context: str) -> str:
    """The place that an error context names, in words."""
    if not context.startswith("ErrorContext("):
        return context or "a value"
    return context[len("ErrorContext("):].rstrip().removesuffix(")")


# ------------------------------------------------------------------------------ memory


def alloc_storage(vm: VirtualMachine, size: Any, device: int, dtype: str, scope: str = "global"
                  ) -> Storage:
    """Memory of that many bytes; `size` is a shape of one value."""
    return vm.new_storage(int(size[0]) if not isinstance(size, int) else size, scope)


def alloc_tensor(storage: Storage, offset: int, shape: Sequence[int], dtype: str) -> NDArray:
    """A tensor in a storage, `offset` bytes from its start (on a device, at its start)."""
    if isinstance(storage.memory, NDArray):
        return alias(storage.memory, tuple(shape), str(dtype))
    return tensor_at(storage.memory, offset, tuple(shape), str(dtype))


def null_value(*_: object) -> None:
    """Nothing."""


def copy(value: object) -> Any:
    """The same value in another register."""
    return value


def to_device(value: object, *_: object) -> Any:
    """The value: there is one device."""
    return value


def view(tensor: NDArray, shape: Any = None, dtype: Any = None, offset: Any = None
         ) -> NDArray:
    """The memory of a tensor under another shape, dtype, or start."""
    shape = tuple(shape) if shape is not None and not isinstance(shape, list) else tensor.shape
    if tensor.device.type != "cpu" and not offset:
        return alias(tensor, tuple(shape), dtype if isinstance(dtype, str) else str(tensor.dtype))
    data = np.ascontiguousarray(tensor._view()).reshape(-1).view(np.uint8)
    start = int(offset) if isinstance(offset, int) else 0
    return tensor_at(data, start, shape, str(dtype) if isinstance(dtype, str) else str(tensor.dtype)
                     )


def reshape(tensor: NDArray, shape: Sequence[int]) -> NDArray:
    """The elements of a tensor, in order, under another shape. It shares the tensor's memory."""
    shape = tuple(shape)
    count = 1
    for extent in shape:
        count *= extent
    have = 1
    for extent in tensor.shape:
        have *= extent
    if -1 not in shape and count != have:
        raise MatchError(f"cannot reshape a tensor of shape {tuple(tensor.shape)} to {shape}: "
                         f"{have} elements do not fill {count}")
    if tensor.device.type != "cpu":
        known = -count if -1 in shape else 1
        shape = tuple(have // max(known, 1) if n == -1 else n for n in shape)
        return alias(tensor, shape, str(tensor.dtype))
    data = np.ascontiguousarray(tensor._view())
    if data.dtype == np.uint16 and str(tensor.dtype) == "bfloat16":
        return tensor_at(data.reshape(-1).view(np.uint8), 0, shape, "bfloat16")
    return tensor_at(data.reshape(-1).view(np.uint8), 0, data.reshape(shape).shape,
                     str(tensor.dtype))


# ------------------------------------------------------------------------------ shapes


def alloc_shape_heap(vm: VirtualMachine, size: int) -> NDArray:
    """The table for the symbolic dimensions of one call."""
    return tensor_at(np.zeros(max(size, 1), np.int64).view(np.uint8), 0, (size,), "int64")


def _dims(value: object, context: str) -> tuple:
    if isinstance(value, NDArray):
        return tuple(value.shape)
    if isinstance(value, (Shape, tuple)):
        return tuple(value)
    raise MatchError(f"{where(context)}: expected a tensor or a shape, got {_kind(value)}")


def match_shape(value: Any, heap: Any, ndim: int, *rest: object) -> None:
    """Compare the dimensions of a value with what is declared, and store those that are new."""
    context = str(rest[-1]) if len(rest) > 2 * ndim else ""
    dims = _dims(value, context)
    if len(dims) != ndim:
        raise MatchError(f"{where(context)}: expected {ndim} dimensions, got {_kind(value)}")
    table: Any = None if heap is None else heap._view()
    for at in range(ndim):
        code, number = rest[2 * at], rest[2 * at + 1]
        if code == STORE:
            table[number] = dims[at]
        elif code in (ASSERT_IMM, ASSERT_HEAP):
            expected = number if code == ASSERT_IMM else int(table[number])
            if dims[at] != expected:
                said = "is declared as" if code == ASSERT_IMM else "has to be"
                raise MatchError(f"{where(context)}: dimension {at} is {dims[at]} and {said} "
                                 f"{expected} (got {_kind(value)})")


def match_prim_value(value: Any, heap: Any, code: int, number: int, context: str = "") -> None:
    """As match_shape, for a scalar."""
    if code == STORE:
        heap._view()[number] = int(value)
    elif code in (ASSERT_IMM, ASSERT_HEAP):
        expected = number if code == ASSERT_IMM else int(heap._view()[number])
        if int(value) != expected:
            raise MatchError(f"{where(context)}: the value is {value} and has to be {expected}")


def make_shape(heap: NDArray, ndim: int, *codes: int) -> Shape:
    """A shape from numbers and places in the table."""
    table = heap._view()
    return Shape(tuple(int(codes[k + 1]) if codes[k] == 0 else int(table[codes[k + 1]])
                       for k in range(0, 2 * ndim, 2)))


def make_prim_value(heap: NDArray, code: int, number: int) -> int | float:
    """A scalar, given or from the table, where floats stand by their bits."""
    if code == 2:
        return float(heap._view()[number:number + 1].view("float64")[0])
    return number if code == 0 else int(heap._view()[number])


def check_tensor_info(value: object, ndim: int, dtype: Any, context: str = "") -> None:
    """Whether a value is a tensor of that many dimensions (-1: any) and that dtype."""
    if not isinstance(value, NDArray):
        raise MatchTypeError(f"{where(context)}: expected a tensor, got {_kind(value)}")
    if ndim >= 0 and value.ndim != ndim:
        raise MatchError(f"{where(context)}: expected {ndim} dimensions, got {_kind(value)}")
    if dtype is not None and str(value.dtype) != str(dtype):
        raise MatchTypeError(f"{where(context)}: expected dtype {dtype}, got {_kind(value)}")


class MatchTypeError(MatchError, TypeError):
    """An argument of another type than the function declares."""


def check_shape_info(value: object, ndim: int, context: str = "") -> None:
    """Whether a value is a shape of that many dimensions (-1: any)."""
    if not isinstance(value, (Shape, tuple)):
        raise MatchTypeError(f"{where(context)}: expected a shape, got {_kind(value)}")
    if ndim >= 0 and len(value) != ndim:
        raise MatchError(f"{where(context)}: expected a shape of {ndim} dimensions, got "
                         f"{_kind(value)}")


def check_tuple_info(value: Any, size: int, context: str = "") -> None:
    """Whether a value is a tuple of that many items."""
    if not hasattr(value, "__len__") or isinstance(value, (NDArray, str, Shape)):
        raise MatchTypeError(f"{where(context)}: expected a tuple, got {_kind(value)}")
    if len(value) != size:
        raise MatchError(f"{where(context)}: expected a tuple of {size}, got one of {len(value)}")


def check_prim_value_info(value: object, dtype: str, context: str = "") -> None:
    """Whether a value is a number of that type."""
    wanted = (bool, int) if str(dtype) == "bool" else (int, np.integer) if "int" in str(dtype) \
        else (float, int)
    if not isinstance(value, wanted):
        raise MatchTypeError(f"{where(context)}: expected a number of type {dtype}, got "
                             f"{_kind(value)}")


def check_func_info(value: object, context: str = "") -> None:
    """Whether a value can be called."""
    if not callable(value):
        raise MatchTypeError(f"{where(context)}: expected a function, got {_kind(value)}")


def shape_of(tensor: NDArray) -> Shape:
    """The shape of a tensor."""
    return Shape(tuple(tensor.shape))


def tensor_to_shape(tensor: NDArray) -> Shape:
    """The values of a vector as a shape."""
    return Shape(tuple(int(v) for v in tensor.numpy()))


def shape_to_tensor(shape: Sequence[int]) -> NDArray:
    """A shape as an int64 vector."""
    data = np.array(tuple(shape), np.int64)
    return tensor_at(data.view(np.uint8), 0, data.shape, "int64")


# ------------------------------------------------------------------------------ the rest


def make_tuple(*items: object) -> tuple:
    """A tuple."""
    return items


def tuple_getitem(items: Any, index: int) -> Any:
    """One item of a tuple."""
    return items[index]


def read_if_cond(cond: Any) -> int:
    """A condition as 0 or 1: a number, or a tensor of one element."""
    if isinstance(cond, NDArray):
        values = cond.numpy()
        if values.size != 1:
            raise MatchError("the condition of an if must be one value, it is "
                             f"{_kind(cond)}")
        return int(bool(values.reshape(-1)[0]))
    return int(bool(cond))


def make_closure(vm: Any, func: Any, *args: object) -> Closure:
    """A closure of a function of the machine; bytecode that is written by hand leaves out `vm`."""
    if isinstance(getattr(vm, "vm_name", None), str):  # the function
        vm, func, args = vm.vm, vm, (func, *args)
    return Closure(vm, getattr(func, "vm_name", str(func)), args)


def invoke_closure(vm: VirtualMachine, closure: Any, *args: object) -> Any:
    """Call a closure, or any function value."""
    return closure(*args)


def call_tir_dyn(func: Callable, *args: Any) -> Any:
    """Call a kernel with its scalars taken from the shape that is the last argument."""
    return func(*args[:-1], *(int(v) for v in args[-1]))


def run_print(form: str, *values: object) -> None:
    """Print values, through a format as Python's where there is one."""
    shown = [v.numpy() if isinstance(v, NDArray) else v for v in values]
    print(form.format(*shown) if form else " ".join(map(str, shown)))


def run_assert(condition: Any, form: str = "", *values: object) -> None:
    """Raise AssertionError unless the condition holds."""
    if not read_if_cond(condition):
        shown = [v.numpy() if isinstance(v, NDArray) else v for v in values]
        raise AssertionError(form.format(*shown) if form else "Assertion Failed")


def debug_print(line: str, tensor: Any) -> None:
    """Print a tensor, after the place in the program that asks for it."""
    shown = tensor.numpy() if isinstance(tensor, NDArray) else tensor
    shape = f"shape = {tuple(tensor.shape)}, dtype = {tensor.dtype}, " if hasattr(
        tensor, "shape") else ""
    print(f"[{line}]: {shape}data =\n{shown}")


def invoke_debug_func(io: Any, name: str, line: str, *args: Any) -> Any:
    """Call the function registered under a name, `func(line, *args)`; the effect goes on."""
    func = debug_print if name == "vm.builtin.debug_print" else get_global_func(name)
    func(line, *args)
    return io


BUILTINS: dict[str, Callable[..., Any]] = {
    "vm.builtin.alloc_storage": alloc_storage, "vm.builtin.alloc_tensor": alloc_tensor,
    "vm.builtin.null_value": null_value, "vm.builtin.copy": copy,
    "vm.builtin.to_device": to_device, "vm.builtin.ensure_zero_offset": copy,
    "runtime.TVMTensorCreateView": view, "vm.builtin.reshape": reshape,
    "vm.builtin.alloc_shape_heap": alloc_shape_heap, "vm.builtin.match_shape": match_shape,
    "vm.builtin.match_prim_value": match_prim_value, "vm.builtin.make_shape": make_shape,
    "vm.builtin.make_prim_value": make_prim_value,
    "vm.builtin.check_tensor_info": check_tensor_info,
    "vm.builtin.check_shape_info": check_shape_info,
    "vm.builtin.check_tuple_info": check_tuple_info,
    "vm.builtin.check_prim_value_info": check_prim_value_info,
    "vm.builtin.check_func_info": check_func_info, "vm.builtin.shape_of": shape_of,
    "vm.builtin.tensor_to_shape": tensor_to_shape, "relax.run.shape_to_tensor": shape_to_tensor,
    "vm.builtin.make_tuple": make_tuple, "vm.builtin.tuple_getitem": tuple_getitem,
    "vm.builtin.read_if_cond": read_if_cond, "vm.builtin.make_closure": make_closure,
    "vm.builtin.invoke_closure": invoke_closure, "vm.builtin.call_tir_dyn": call_tir_dyn,
    "vm.builtin.invoke_debug_func": invoke_debug_func,
    "vm.builtin.debug_print": debug_print,
    "relax.run.print": run_print, "relax.run.assert_op": run_assert,
}
#: those on values alone, which a program around a model calls too: tvm.get_global_func(name)
for _name in ("copy", "reshape", "shape_of", "tensor_to_shape", "make_tuple", "tuple_getitem",
              "null_value", "read_if_cond"):
    register_func(f"vm.builtin.{_name}", BUILTINS[f"vm.builtin.{_name}"], override=True)

__all__ = ["BUILTINS", "Closure", "MatchError", "Storage"]
