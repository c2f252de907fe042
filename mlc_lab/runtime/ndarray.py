"""Tensors: dense arrays that kernels take, exchanged with numpy and torch through DLPack.

``NDArray`` is the tensor class of apache-tvm-ffi with the methods of TVM's ``tvm.nd``. Importing
this module makes it the class in which tensors arrive in registered Python functions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np
from tvm_ffi import Device as _FFIDevice
from tvm_ffi import Tensor, core
from tvm_ffi import from_dlpack as _ffi_from_dlpack

from .device import Device, cpu, cuda, device
from .driver import Driver, driver_of, has_driver
from .torch_bits import guard, refuse_lazy_views

__all__ = ["NDArray", "array", "cpu", "cuda", "device", "empty", "from_dlpack"]

#: gives an NDArray: the class that tensors have once this module is imported
_from_dlpack: Any = _ffi_from_dlpack

# One cache line pair: covers the widest vector load, and keeps two tensors from sharing a line.
ALIGNMENT = 128

# Offset of the DLTensor inside a tensor object: reference counts, type index, deleter.
_OBJECT_HEADER_BYTES = 24


class _DLTensor(ctypes.Structure):
    """The C layout of a DLPack tensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_BFLOAT_CODE = 4


def _dl_tensor(tensor: Tensor) -> _DLTensor:
    return _DLTensor.from_address(tensor.__chandle__() + _OBJECT_HEADER_BYTES)


def _ml_bfloat16() -> np.dtype | None:
    """numpy's bfloat16 as ml_dtypes defines it, or None where that package is absent."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    return np.dtype(ml_dtypes.bfloat16)


def _bits_to_float32(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _float32_to_bits(values: np.ndarray) -> np.ndarray:
    """Round float32 to bfloat16, to nearest and ties to even, as a uint16 array of bit patterns."""
    raw = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (raw + 0x7FFF + ((raw >> 16) & 1)) >> 16
    # The addition above would carry a NaN's payload into the sign, or round it to infinity.
    return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)


def from_dlpack(value: Any, *, require_alignment: int = 0, require_contiguous: bool = False
                ) -> Any:
    """A tensor over the memory of an array of any library that speaks DLPack.

    Raises ValueError for a torch tensor whose memory holds other numbers than it says.
    """
    if not guard():
        refuse_lazy_views(value)
    return _from_dlpack(value, require_alignment=require_alignment,
                        require_contiguous=require_contiguous)


class NDArray(Tensor):
    """A dense tensor. Make one with :func:`array` or :func:`empty`.

    It exports DLPack, so ``torch.from_dlpack(x)`` and ``numpy.from_dlpack(x)`` share its memory.
    """

    __slots__ = ()

    # -- numpy ------------------------------------------------------------------------------------

    def _view(self) -> np.ndarray:
        """A numpy array over the same memory; bfloat16 appears as uint16 without ml_dtypes."""
        if self.device.type != "cpu":
            driver = self._driver()
            if driver is None or not driver.host_memory:
                raise ValueError(
                    f"this tensor lives on {self.device!r}, and only memory of the CPU can be read "
                    "here; copy it to the CPU with .numpy(), or with the library that made it"
                )
        if not self.__chandle__():
            return self._borrowed_view()
        if self.dtype == "bfloat16":
            dl = _dl_tensor(self)
            was, dl.code = dl.code, 1  # exported as uint16, which numpy can take
            try:
                bits = np.from_dlpack(self)
            finally:
                dl.code = was
            bfloat16 = _ml_bfloat16()
            view = bits if bfloat16 is None else bits.view(bfloat16)
        else:
            view = np.from_dlpack(self)
        if not view.flags.writeable:
            # numpy marks what arrives through the older protocol read-only; the memory is ours.
            view = _writable(view)
        return view

    def _borrowed_view(self) -> np.ndarray:
        """The view of a tensor that lives in its caller's memory: an argument of a packed call.

        Such a tensor has no object that DLPack could keep alive; it is valid during the call.
        """
        storage = "uint16" if self.dtype == "bfloat16" else str(self.dtype)
        dtype = np.dtype(storage)
        if 0 in self.shape:
            view = np.empty(self.shape, dtype)
        else:
            strides = tuple(s * dtype.itemsize for s in self.strides)
            span = sum((n - 1) * s for n, s in zip(self.shape, strides, strict=True))
            memory: Any = (ctypes.c_char * (span + dtype.itemsize)).from_address(self.data_ptr())
            view = np.ndarray(self.shape, dtype, memory, 0, strides)
        bfloat16 = _ml_bfloat16() if self.dtype == "bfloat16" else None
        return view if bfloat16 is None else view.view(bfloat16)

    def __dlpack__(self, **options: Any) -> Any:
        """A DLPack capsule over the same memory; that of a simulated device is the host's."""
        if not self.__chandle__():
            return self._borrowed_view().__dlpack__(**options)
        if self.device.type == "cpu" or not self._in_host_memory():
            return super().__dlpack__(**options)
        dl = _dl_tensor(self)
        was, dl.device_type = dl.device_type, 1
        try:
            return super().__dlpack__(**options)
        finally:
            dl.device_type = was

    def __dlpack_device__(self) -> Any:
        """Where DLPack finds the memory: (1, 0) is the host's."""
        return (1, 0) if self._in_host_memory() else super().__dlpack_device__()

    def _in_host_memory(self) -> bool:
        driver = self._driver()
        return driver is not None and driver.host_memory

    def _driver(self) -> Driver | None:
        """What drives the tensor's device; None for the CPU and for devices of other libraries."""
        dev = self.device
        return driver_of(dev.type) if has_driver(dev.type, dev.index) else None

    def numpy(self) -> np.ndarray:
        """A copy of the tensor as a numpy array.

        A bfloat16 tensor gives ml_dtypes' bfloat16 where that package is installed, and its values
        widened to float32 where not.
        """
        view = self._values()
        if self.dtype == "bfloat16" and view.dtype == np.uint16:
            return _bits_to_float32(view)
        return view.copy()

    def _values(self) -> np.ndarray:
        """The numbers of the tensor: its memory where the host can read it, else a copy."""
        driver = self._driver()
        if driver is None or driver.host_memory:
            return self._view()
        dtype = np.dtype("uint16" if self.dtype == "bfloat16" else self.dtype)
        out = _aligned(self.shape, dtype)
        if not out.nbytes:
            return out
        if self.is_contiguous():
            driver.read(self.data_ptr(), out)
            return out
        # a view that another library made: all from its first element to its last is read
        steps = [s * dtype.itemsize for s in self.strides]
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        flat = _aligned((last + 1,), dtype)
        driver.read(self.data_ptr(), flat)
        return np.lib.stride_tricks.as_strided(flat, self.shape, steps)

    asnumpy = numpy

    def __array__(self, dtype: str | None = None, copy: bool | None = None) -> np.ndarray:
        view = self._values()
        if self.dtype == "bfloat16" and view.dtype == np.uint16:
            view = _bits_to_float32(view)
        if dtype is not None and np.dtype(dtype) != view.dtype:
            return view.astype(dtype)
        return view.copy() if copy else view

    def _create_view(self, shape: Iterable[int], dtype: str | None = None,
                     relative_byte_offset: int = 0) -> NDArray:
        """A tensor over a part of the same memory, that lies `relative_byte_offset` bytes in.

        Raises ValueError for a part that this tensor does not have, and for a tensor that is not
        compact or not in memory of the host.
        """
        sizes = tuple(int(extent) for extent in shape)
        if not self.is_contiguous():
            raise ValueError("a view is made of a tensor whose elements lie next to each other")
        memory = self._view()
        kind = memory.dtype if dtype is None else np.dtype(dtype)
        flat = memory.reshape(-1).view(np.uint8)
        begin = int(relative_byte_offset)
        end = begin + kind.itemsize * int(np.prod(sizes, dtype=np.int64))
        if min(sizes, default=0) < 0 or not 0 <= begin <= end <= flat.nbytes:
            raise ValueError(f"a view of shape {sizes} and type {kind} would occupy bytes {begin} "
                             f"<= i_byte < {end}, and the NDArray being viewed only contains "
                             f"{flat.nbytes} bytes")
        return from_dlpack(flat[begin:end].view(kind).reshape(sizes))

    # -- copying ----------------------------------------------------------------------------------

    def copyfrom(self, source: object) -> NDArray:
        """Copy ``source`` (an array or a tensor of the same shape) into this tensor; return it."""
        values = source._values() if isinstance(source, NDArray) else np.asarray(source)
        if tuple(values.shape) != self.shape:
            raise ValueError(
                f"cannot copy an array of shape {tuple(values.shape)} into a tensor of shape "
                f"{self.shape}: the shapes must be equal"
            )
        driver = self._driver()
        real = driver is not None and not driver.host_memory
        if real and not self.is_contiguous():
            raise ValueError(f"cannot copy into a view on {self.device!r} whose elements do not "
                             f"lie next to each other (strides {tuple(self.strides)}): copy into a "
                             "compact tensor")
        view = _aligned(self.shape, np.dtype("uint16" if self.dtype == "bfloat16" else self.dtype)
                        ) if real else self._view()
        if view.dtype == np.uint16 and self.dtype == "bfloat16" and values.dtype != np.uint16:
            values = _float32_to_bits(np.asarray(values, dtype=np.float32))
        np.copyto(view, values, casting="unsafe")
        if driver is not None and real and view.nbytes:
            driver.write(self.data_ptr(), view)
        return self

    def copyto(self, target: Any, mem_scope: str | None = None) -> NDArray:
        """Copy this tensor into another tensor, or to a fresh tensor on a device; return it."""
        if isinstance(target, _FFIDevice):
            target = empty(self.shape, self.dtype, target)
        if not isinstance(target, NDArray):
            raise TypeError(f"copyto wants a tensor or a device, not {type(target).__name__}")
        return target.copyfrom(self)

    # -- element access ---------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        """Elements as numpy indexes them: a view of the memory (on a device, of a copy)."""
        return self._values()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, NDArray):
            value = value._view()
        self._view()[index] = value

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a tensor with no dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Any:
        return iter(self._view())

    def __repr__(self) -> str:
        return f"<tvm.nd.NDArray shape={self.shape}, {self.device!r}>\n{self.numpy()!r}"

    __str__ = __repr__

    def __reduce__(self) -> Any:
        bits = self._values()
        name = str(self.dtype)
        return _unpickle, (bits.view(np.uint16) if name == "bfloat16" else bits.copy(), name)


core._set_class_tensor(NDArray)


def _unpickle(values: np.ndarray, dtype: str) -> NDArray:
    out = empty(values.shape, dtype)
    out_view = out._view()
    out_view.view(values.dtype)[...] = values
    return out


class _Keep:
    """Holds an exported array and describes its memory as writable, for ``numpy.asarray``."""

    def __init__(self, view: np.ndarray) -> None:
        interface = dict(view.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface
        self.keep = view


def _writable(view: np.ndarray) -> np.ndarray:
    if view.size == 0:
        return view.copy()
    if view.dtype.isbuiltin == 1:
        return np.asarray(_Keep(view))
    return np.asarray(_Keep(view.view(np.uint16))).view(view.dtype)


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An uninitialised numpy array whose data starts at a multiple of ``ALIGNMENT`` bytes."""
    count = 1
    for extent in shape:
        count *= extent
    nbytes = count * dtype.itemsize
    raw = np.empty(nbytes + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes].view(dtype).reshape(shape)


def _driver_for(dev: Any) -> tuple[Device, Driver | None]:
    """A device by any of its names, and its driver; None for the CPU."""
    where = device(dev) if dev is not None else cpu()
    if where.type == "cpu":
        return where, None
    if not has_driver(where.type, where.index):
        raise ValueError(
            f"tensors cannot be made on {where!r} here, only on the CPU and on the devices number "
            "0 of cuda, opencl, metal and webgpu; make the tensor with the library that drives "
            "that device and pass it through DLPack"
        )
    return where, driver_of(where.type)


class _DeviceMemory(np.ndarray):
    """Stands for memory of a device in a tensor's header, and gives it back at the end."""

    driver: Any = None
    memory = 0
    keep: Any = None  # the tensor whose memory it is, where it is not its own

    def __del__(self) -> None:
        if self.driver is not None:
            self.driver.free(self.memory)


def _on_device(driver: Driver, shape: tuple[int, ...], dtype: np.dtype) -> NDArray:
    """A tensor whose data pointer is a driver's number for memory, not an address."""
    count = 1
    for extent in shape:
        count *= extent
    memory = driver.allocate(max(count * dtype.itemsize, 4))
    owner, out = _header(shape, dtype, memory)
    owner.driver, owner.memory = driver, memory
    return out


def _header(shape: tuple[int, ...], dtype: np.dtype, memory: int) -> tuple[Any, NDArray]:
    """A tensor over memory of a device, and the object that lives as long as it does."""
    # an array that says its shape and has no such memory; nothing reads it
    strides = [dtype.itemsize] * len(shape)
    for at in range(len(shape) - 2, -1, -1):
        strides[at] = strides[at + 1] * shape[at + 1]
    owner: Any = np.lib.stride_tricks.as_strided(
        np.zeros(1, dtype).view(_DeviceMemory), shape, strides, subok=True)
    out = _from_dlpack(owner)
    _dl_tensor(out).data = memory
    return owner, out


def alias(tensor: NDArray, shape: tuple[int, ...], dtype: str) -> NDArray:
    """A compact tensor of another shape or dtype on the memory of one that is on a device.

    Raises ValueError where it does not fit.
    """
    storage = np.dtype("uint16" if dtype == "bfloat16" else dtype)
    had = np.dtype("uint16" if tensor.dtype == "bfloat16" else str(tensor.dtype)).itemsize
    wanted, have = storage.itemsize, had
    for extent in shape:
        wanted *= extent
    for extent in tensor.shape:
        have *= extent
    if wanted > have:
        raise ValueError(f"a tensor of shape {shape} and dtype {dtype} does not fit into "
                         f"{have} bytes")
    owner, out = _header(shape, storage, tensor.data_ptr())
    owner.keep = tensor
    dl = _dl_tensor(out)
    if dtype == "bfloat16":
        dl.code = _BFLOAT_CODE
    dl.device_type = _dl_tensor(tensor).device_type
    return out


def empty(
    shape: int | tuple[int, ...],
    dtype: str | None = "float32",
    device: _FFIDevice | str | None = None,
    mem_scope: str | None = None,
) -> NDArray:
    """An uninitialised, compact tensor, aligned to 128 bytes.

    Raises ValueError for a device that is not there, a dtype with no memory format here, and for
    extents that are no whole numbers or below zero.
    """
    where, driver = _driver_for(device)
    shape = tuple(map(_extent, shape if isinstance(shape, Iterable) else (shape,)))
    name = np.dtype(dtype).name if isinstance(dtype, (type, np.dtype)) else str(dtype)
    try:
        storage = np.dtype("uint16" if name == "bfloat16" else name)
    except TypeError:
        raise ValueError(f"no tensor of dtype {name!r} can be made; see numpy's names") from None
    if driver is None or driver.host_memory:
        out = _from_dlpack(_aligned(shape, storage))
    else:
        out = _on_device(driver, shape, storage)
    if name == "bfloat16":
        _dl_tensor(out).code = _BFLOAT_CODE
    if driver is not None:
        _dl_tensor(out).device_type = where.device_type
        if driver.host_memory:
            driver.announce()  # type: ignore[attr-defined]
    return out


def _extent(value: Any) -> int:
    if hasattr(value, "__index__") and value.__index__() >= 0:
        return value.__index__()
    known = getattr(value, "value", value)  # a constant of the compiler, or N / bn
    if isinstance(known, (int, float)) and known >= 0 and int(known) == known:
        return int(known)
    raise ValueError(f"a tensor's shape has the extent {value!r}: it must be a whole number that "
                     "is not negative")


def tensor_at(memory: np.ndarray, offset: int, shape: tuple[int, ...], dtype: str) -> NDArray:
    """A compact tensor over memory (an array of bytes), `offset` bytes from its start.

    The tensor keeps the memory alive. Raises ValueError where it does not fit.
    """
    storage = np.dtype("uint16" if dtype == "bfloat16" else dtype)
    try:
        view = np.ndarray(shape, storage, memory, offset)
    except TypeError:
        raise ValueError(f"a tensor of shape {shape} and dtype {dtype} does not fit into "
                         f"{memory.nbytes} bytes from {offset} on") from None
    out = _from_dlpack(view)
    if dtype == "bfloat16":
        _dl_tensor(out).code = _BFLOAT_CODE
    return out


def array(
    arr: Any, device: Device | str | None = None, mem_scope: str | None = None
) -> NDArray:
    """A new tensor with a copy of ``arr``: a numpy array, a tensor, a list or a number."""
    if not isinstance(arr, (np.ndarray, NDArray)):
        arr = from_dlpack(arr) if hasattr(arr, "__dlpack__") else np.array(arr)
    dtype = arr.dtype if isinstance(arr, NDArray) else arr.dtype.name
    if isinstance(arr, np.ndarray) and arr.dtype == object:
        raise TypeError("an array of Python objects has no tensor form; give numbers")
    return empty(arr.shape, dtype, device).copyfrom(arr)
