"""Buffers: n-dimensional arrays that tensor programs read and write."""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING, Any, Sequence

from ..above import above
from ..ir import dtype as dt
from ..ir.containers import is_sequence, is_tuple
from ..ir.node import Node, node, plain
from .expr import (
    BufferLoad, FloatImm, IntImm, PointerType, PrimExpr, PrimType, Ramp, Var, const_index,
)

if TYPE_CHECKING:
    from .expr import ExprLike


@node
class Buffer(Node):
    """A multi-dimensional array.

    `data` is the pointer variable, whose type holds the storage scope. `strides` is empty for a
    compact row-major layout. `elem_offset` counts elements from `data` to element [0, ..., 0].
    """

    data: Var
    dtype: str = plain()
    shape: tuple[PrimExpr, ...]
    strides: tuple[PrimExpr, ...]
    elem_offset: PrimExpr | None
    name: str = plain()
    data_alignment: int = plain()
    offset_factor: int = plain()
    buffer_type: int = plain()
    axis_separators: tuple[int, ...] = plain()

    #: bits of the mask of `access_ptr`
    READ, WRITE = 1, 2

    __hash__ = object.__hash__
    __iter__ = None  # `for x in buffer` would read elements without end

    @property
    def scope(self) -> Any:
        """The storage scope. Callable as TVM's `buffer.scope()`, printable as a string."""
        return _CallableStr(self.data.storage_scope)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def vload(self, begin: Sequence[Any], dtype: str | None = None) -> BufferLoad:
        """Load at `begin`; a vector `dtype` loads that many consecutive elements."""
        begin = tuple(map(const_index, begin if isinstance(begin, (tuple, list)) else [begin]))
        lanes = dt.lanes_of(dtype) if dtype else 1
        if lanes > 1:
            begin = begin[:-1] + (Ramp(begin[-1], IntImm(begin[-1].dtype, 1), lanes),)
        return BufferLoad(self, begin)

    def vstore(self, begin: Sequence[Any], value: PrimExpr) -> Any:
        """Store `value` at `begin`."""
        BufferStore = above("BufferStore")
        begin = tuple(map(const_index, begin if isinstance(begin, (tuple, list)) else [begin]))
        lanes = dt.lanes_of(value.dtype)
        if lanes > 1:
            begin = begin[:-1] + (Ramp(begin[-1], IntImm(begin[-1].dtype, 1), lanes),)
        return BufferStore(self, value, begin)

    def access_ptr(self, access_mask: int | str, ptr_type: str = "handle", content_lanes: int = 1,
                   offset: ExprLike = 0, extent: ExprLike | None = None) -> PrimExpr:
        """A pointer into the buffer for intrinsics; `access_mask` is "r", "w" or "rw"."""
        from .op import call_intrin

        if isinstance(access_mask, str):
            access_mask = sum({"r": 1, "w": 2}[c] for c in access_mask)
        if extent is None:
            rows = self.strides[0] * self.shape[0] if self.strides else elements(self.shape)
            extent = rows - offset
        start = self.elem_offset + offset if self.elem_offset is not None else const_index(offset)
        return call_intrin(ptr_type, "tir.tvm_access_ptr", call_intrin(
            self.dtype, "tir.type_annotation"), self.data, start, extent, access_mask)

    def offset_of(self, indices: Sequence[Any]) -> list[PrimExpr]:
        """The flat element offset of `indices` (a list of one, as in TVM)."""
        total = self.elem_offset if self.elem_offset is not None else const_index(0)
        for index, stride in zip(indices, strides_of(self)):
            total = total + const_index(index) * stride
        return [above("Analyzer")().simplify(total)]

    def get_flattened_buffer(self) -> "Buffer":
        """The view of the whole storage with one dimension, or one more for each of its axis
        separators; this buffer itself, if it is such a view."""
        if len(self.shape) == len(self.axis_separators) + 1 and not self.strides:
            return self
        bounds = [0, *map(int, self.axis_separators), len(self.shape)]
        extents: list[PrimExpr] = []
        for begin, end in zip(bounds, bounds[1:]):
            if self.strides and begin < end:
                extents.append(self.strides[begin] * self.shape[begin] if end == len(self.shape)
                               else elements(self.shape[begin:end]))
            else:
                extents.append(elements(self.shape[begin:end]))
        return self.replace(shape=tuple(extents), strides=(),
                            axis_separators=tuple(range(1, len(extents))))

    def __getitem__(self, indices: Any) -> Any:
        """A load; with slices the region (`T.reads(A[0:4, i])`)."""
        BufferRegion = above("BufferRegion")
        if not is_tuple(indices):
            indices = (indices,)
        given: tuple[ExprLike | slice[Any, Any, Any], ...] = indices
        if any(isinstance(i, slice) for i in given):
            if any(isinstance(i, slice) and i.step is not None for i in given):
                *front, last = given
                if not isinstance(last, slice) or any(isinstance(i, slice) for i in front):
                    raise ValueError(f"a load of {self.name} by slices with steps: only the last "
                                     "index may be one, whose elements become a vector")
                return BufferLoad(self, (*front, _vector(last, self.shape[-1])))
            return BufferRegion.from_indices(self, given)
        return BufferLoad(self, given)


def _vector(index: slice[Any, Any, Any], dim: PrimExpr) -> Ramp:
    """The indices of a slice, as one index that is a vector."""
    start = const_index(0 if index.start is None else index.start)
    step = const_index(1 if index.step is None else index.step)
    lanes: Any = ((dim if index.stop is None else index.stop) - start + step - 1) // step
    return Ramp(start, step, int(lanes))


class _CallableStr(str):
    """A string that may be called: `buffer.scope()` and `buffer.scope` both work."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


_INT32_MAX = 2**31 - 1


def elements(shape: Sequence[PrimExpr]) -> PrimExpr:
    """The product of dimensions: an int64 constant where they are constants and int32 is too
    narrow for it."""
    sizes = [dim.value for dim in shape if type(dim) is IntImm]
    if len(sizes) == len(shape):
        total = prod(sizes)
        dtype = "int64" if total > _INT32_MAX else shape[0].dtype if shape else "int32"
        return IntImm(dtype, total)
    total = const_index(1)
    for dim in shape:
        total = total * dim
    return total


def compact_strides(shape: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
    """Row-major strides of a compact array of `shape`, in elements.

    They are int64 where the array has more elements than int32 can count, so that offsets made of
    them are int64 too.
    """
    out: list[PrimExpr] = []
    total = elements(shape)
    dtype = total.dtype if type(total) is IntImm else shape[-1].dtype if shape else "int32"
    stride: PrimExpr = IntImm(dtype, 1)
    for dim in reversed(shape):
        out.append(stride)
        stride = stride * dim
    return tuple(reversed(out))


def may_overlap(buffer: Buffer) -> bool:
    """Whether different indices of a buffer may be one place: its strides are numbers that leave
    too little room, such as (1, 1). Strides that are symbols are taken to leave enough."""
    steps = [(abs(s.value), d.value if type(d) is IntImm else inf)
             for s, d in zip(buffer.strides, buffer.shape) if type(s) is IntImm]
    reach: float = 0  # of the dimensions with smaller strides
    for stride, extent in sorted(steps):
        if extent > 1:
            if stride <= reach:
                return True
            reach += stride * (extent - 1)
    return False


def strides_of(buffer: Buffer) -> tuple[PrimExpr, ...]:
    """The strides of a buffer, in elements: as declared, or of a compact array.

    Constant ones are int64 where int32 cannot hold an offset of the last element.
    """
    if not buffer.strides:
        return compact_strides(buffer.shape)
    last = [int(s.value) * int(d.value) for s, d in zip(buffer.strides, buffer.shape)
            if type(s) is IntImm and type(d) is IntImm]
    if sum(last) <= _INT32_MAX:
        return buffer.strides
    return tuple(IntImm("int64", s.value) if type(s) is IntImm else s for s in buffer.strides)


def extent_of(value: Any, where: str = "a shape") -> PrimExpr:
    """A size as an expression. A whole float, such as N / bn, is that number; other floats and
    sizes below zero are refused."""
    if isinstance(value, (float, FloatImm)) or hasattr(value, "is_integer") and not hasattr(
            value, "__index__"):
        number = float(getattr(value, "value", value))
        if not number.is_integer():
            raise ValueError(f"{where} has the extent {number}: it must be a whole number (a // b "
                             "is the whole part of a / b)")
        value = int(number)
    value = _integer(value, where, "extent")
    if type(value) is IntImm and value.value < 0:
        raise ValueError(f"{where} has a negative extent: {value.value}")
    return value


def _integer(value: ExprLike, where: str, what: str) -> PrimExpr:
    value = const_index(value)
    if not dt.is_integer(getattr(value, "dtype", "void")):
        kind = getattr(value, "dtype", type(value).__name__)  # other nodes are no numbers at all
        raise ValueError(f"{where} has the {what} {value!r} of type {kind}: it must be an integer")
    return value


def decl_buffer(shape: Any, dtype: str | None = None,
                name: str = "buffer", data: Var | None = None,
                strides: Sequence[ExprLike] | None = None, elem_offset: ExprLike | None = None,
                scope: str = "", data_alignment: int = -1, offset_factor: int = 0,
                buffer_type: str = "", axis_separators: Sequence[int] | None = None,
                span: object = None) -> Buffer:
    """Declare a buffer of `shape` elements of `dtype`.

    Without `data` a new pointer variable in `scope` is made. `data_alignment` is in bytes (64 by
    default), `offset_factor` says that elem_offset is a multiple of it. Raises ValueError for
    extents, strides and offsets that are no integers, and for strides of other dimensions.
    """
    where = f"buffer {name}"
    shape = tuple(extent_of(d, where) for d in (shape if is_sequence(shape) else [shape]))
    dtype = dt.canonical(dtype or "float32")
    strides = tuple(_integer(s, where, "stride") for s in strides or ())
    if strides and len(strides) != len(shape):
        raise ValueError(f"{where} has {len(shape)} dimension(s) and {len(strides)} strides: each "
                         "dimension has one")
    index_dtype = shape[0].dtype if shape else "int32"
    if offset_factor != 0 and elem_offset is None:
        elem_offset = Var(f"{name}_elem_offset", index_dtype)
    if elem_offset is None:
        elem_offset = IntImm(index_dtype, 0)
    separators = [int(a) for a in axis_separators or ()]
    if separators != sorted(separators) or any(not 0 <= a <= len(shape) for a in separators):
        raise ValueError(f"{where} has the axis separators {separators}: they are places between "
                         f"its {len(shape)} dimensions, in order")
    if data is None:
        data = Var(name, PointerType(PrimType("int8" if dtype == "bool" else dtype), str(scope)))
    return Buffer(data, dtype, shape, strides, _integer(elem_offset, where, "elem_offset"), name,
                  64 if data_alignment <= 0 else data_alignment, offset_factor or 1,
                  {"": 1, "default": 1, "auto_broadcast": 2, "auto": 2}[buffer_type],
                  tuple(axis_separators or ()))
