"""Values of a model while it is traced: `Tensor`, `Parameter`, and `Object` for anything else.

Each holds the Relax variable that stands for it. Arithmetic on tensors is what `op.py` has of the
same name; a number beside a tensor becomes a constant of the tensor's type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from .... import tir
from ....runtime import NDArray, array
from ...block_builder import BlockBuilder
from ...expr import Constant, Expr, TupleGetItem, Var, const
from ...op.common import info_of
from ...struct_info import ObjectStructInfo, ShapeStructInfo, TensorStructInfo, TupleStructInfo


def default_dtype() -> str:
    """The type of a tensor or parameter that names none; see `set_default_dtype`."""
    return _DEFAULT[-1]


_DEFAULT = ["float32"]


class Tensor:
    """A tensor of the model: `shape` (numbers and symbolic dimensions), `dtype`, `ndim`."""

    def __init__(self, *, _expr: Expr) -> None:
        info = _expr.struct_info
        if not isinstance(info, TensorStructInfo) or info.shape is None:
            raise TypeError(f"an nn.Tensor needs a tensor of known shape, not {info}")
        self._expr = _expr

    if TYPE_CHECKING:  # what `op.py` adds
        def __add__(self, other: object) -> "Tensor": ...
        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
        __lt__ = __le__ = __gt__ = __ge__ = __matmul__ = maximum = minimum = __add__
        def __neg__(self) -> "Tensor": ...
        def astype(self, dtype: str) -> "Tensor": ...
        def permute_dims(self, *axes: int | Sequence[int]) -> "Tensor": ...
        permute = permute_dims
        def reshape(self, *shape: int | tir.PrimExpr | Sequence[Any]) -> "Tensor": ...
        def repeat(self, repeats: int, axis: int | None = None) -> "Tensor": ...
        def unsqueeze(self, dim: int) -> "Tensor": ...
        def squeeze(self, axis: int = -1) -> "Tensor": ...

    @staticmethod
    def from_const(data: Any) -> "Tensor":
        """A constant of these numbers (anything numpy takes, or a tensor)."""
        return Tensor(_expr=const(data if isinstance(data, NDArray) else np.asarray(data)))

    @staticmethod
    def from_scalar(data: int | float, dtype: str) -> "Tensor":
        """A constant without dimensions."""
        return Tensor(_expr=const(data, dtype=dtype))

    @staticmethod
    def from_struct_info(struct_info: TensorStructInfo, name: str = "tensor") -> "Tensor":
        """A tensor that a variable of this name stands for."""
        return Tensor(_expr=Var(name, struct_info))

    @staticmethod
    def placeholder(shape: Sequence[Any], dtype: str, name: str = "tensor") -> "Tensor":
        """A tensor to be given: as an argument, or as the result of an external function.

        `shape` are numbers, symbolic dimensions, or names of such.
        """
        return Tensor.from_struct_info(TensorStructInfo(dimensions(shape), dtype), name)

    @property
    def shape(self) -> list[Any]:
        """Extents: int where known, else an expression."""
        return [int(d) if isinstance(d, tir.IntImm) else d
                for d in self._info.dims or ()]

    @property
    def ndim(self) -> int:
        """How many dimensions."""
        return self._info.ndim

    @property
    def dtype(self) -> str:
        """The type of the elements."""
        return str(self._info.dtype)

    @property
    def _info(self) -> TensorStructInfo:
        return info_of(self._expr)

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        return f'Tensor([{shape}], "{self.dtype}")'


def dimensions(shape: Sequence[Any]) -> list[Any]:
    """The extents of a shape; each name in it is one new symbolic dimension."""
    named: dict[str, tir.Var] = {}
    out = []
    for extent in shape:
        if isinstance(extent, str):
            extent = named.setdefault(extent, tir.Var(extent, "int64"))
        if isinstance(extent, bool) or not isinstance(extent, (int, np.integer, tir.PrimExpr)):
            raise TypeError(f"a dimension is a number, a symbolic one or its name, not {extent!r}")
        if isinstance(extent, (int, np.integer)) and extent < 0:
            raise ValueError(f"a dimension is not negative; the shape is {list(shape)}")
        out.append(extent if isinstance(extent, tir.PrimExpr) else int(extent))
    return out


class Parameter(Tensor):
    """A tensor that belongs to a module; `data` holds its numbers where they are given."""

    def __init__(self, shape: Sequence[Any], dtype: str | None = None) -> None:
        info = TensorStructInfo(dimensions(shape), dtype or default_dtype())
        super().__init__(_expr=Var("param", info))
        self._data: NDArray | None = None
        self.attrs: dict[str, Any] = {}

    @property
    def data(self) -> NDArray | None:
        """The numbers; None where none are given yet."""
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        """Give the numbers: a tensor, or an array of any library. Raises ValueError where shape or
        type differ from the parameter's."""
        if data is None:
            self._data = None
            return
        if not isinstance(data, NDArray):
            if hasattr(data, "detach"):
                data = data.detach().cpu().numpy()
            data = array(np.asarray(data))
        have = list(data.shape)
        if len(have) != self.ndim or any(
                isinstance(want, int) and want != got for want, got in zip(self.shape, have)):
            raise ValueError(f"the parameter has the shape {self.shape}, its numbers have {have}")
        if str(data.dtype) != self.dtype:
            raise ValueError(f"the parameter is of {self.dtype}, its numbers are of {data.dtype}; "
                             f"convert them, or the parameter with `.to({str(data.dtype)!r})`")
        self._data = data

    def to(self, dtype: str | None = None) -> None:
        """Change the type of a parameter without numbers."""
        if dtype is None or dtype == self.dtype:
            return
        if self._data is not None:
            raise ValueError("the parameter has its numbers already, in "
                             f"{self.dtype}: change its type before they are given")
        self._expr = Var("param", TensorStructInfo(self.shape, dtype))


class Object:
    """A value of the model that is no tensor, such as a cache or a state of the outside."""

    def __init__(self, *, _expr: Expr, _name: str = "object") -> None:
        if not isinstance(_expr, Var):
            _expr = emit(_expr, _name)
        if not isinstance(_expr.struct_info, ObjectStructInfo):
            raise TypeError(f"an nn.Object needs an R.Object, not {_expr.struct_info}")
        self._expr = _expr


def builder() -> BlockBuilder:
    """The builder of the function that is being written. Raises RuntimeError where none is."""
    current = BlockBuilder.current()
    if current is None:
        raise RuntimeError("operators of relax.frontend.nn work while a module is exported: call "
                           "them in a method of an nn.Module, and export it with `export_tvm`")
    return current


def emit(expr: Any, name: str) -> Var:
    """Bind a value to a variable of the function that is being written."""
    return builder().emit(expr, name)


def wrap_nested(expr: Expr, name: str) -> Any:
    """Bind a value, and give it as a Tensor, or as a tuple of what it has."""
    if not isinstance(expr, (Var, Constant)):
        expr = emit(expr, name)
    info = expr.struct_info
    if isinstance(info, TensorStructInfo):
        return Tensor(_expr=expr)
    if isinstance(info, TupleStructInfo):
        return tuple(wrap_nested(TupleGetItem(expr, i), f"{name}_{i}")
                     for i in range(len(info.fields)))
    if isinstance(info, ShapeStructInfo):
        return expr
    return Object(_expr=expr, _name=name)


def unwrap(value: Any, like: Tensor | None = None) -> Any:
    """The Relax expression of a value; numbers take the type of `like`."""
    if isinstance(value, (Tensor, Object)):
        return value._expr
    if isinstance(value, (tuple, list)):
        return type(value)(unwrap(v, like) for v in value)
    if like is not None and isinstance(value, (int, float, np.number)):
        return const(value, dtype=like.dtype)
    return value


__all__ = ["Object", "Parameter", "Tensor", "wrap_nested"]
