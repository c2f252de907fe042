"""What both torch importers are: a builder, the values of nodes so far, and a table of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence, TypeGuard

import numpy as np

from ....arith import Analyzer
from ....ir.dtype import is_float
from ....runtime import array
from ....tir import op as O
from ....tir.expr import PrimExpr, SizeVar
from ...block_builder import BlockBuilder
from ...expr import Constant, Expr, PrimValue, ShapeExpr, const
from ...op.common import info_of
from ...struct_info import ShapeStructInfo, TensorStructInfo, as_dim, same_dim
from ... import op as relax_op
from ..common import analyzer_of
from .aliasing import Values

if TYPE_CHECKING:
    from torch.fx import Node
    from typing_extensions import TypeAlias

    from .symbols import Sizes as SymbolicSizes

    Size: TypeAlias = "int | PrimExpr"
    #: one size, or several
    Sizes: TypeAlias = "Size | Sequence[Size]"
    #: what an operator takes where a number or a size may stand for a tensor
    Operand: TypeAlias = "Expr | PrimExpr | float"
    #: dimensions of a reduction: one, several, or all
    Dims: TypeAlias = "int | Sequence[int] | None"
    #: strides, dilations, windows: one for all dimensions, or one each
    Steps: TypeAlias = "int | Sequence[int]"

#: rule by name: `rule(importer, *args, **kwargs)`; "add.Tensor" goes before "add"
RULES: dict[str, Callable[..., Any]] = {}

#: dtype of torch -> dtype
DTYPES = {
    "float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32",
    "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool",
}


def rule(*names: str) -> Callable[[Callable], Callable]:
    """A decorator: the function translates these operators."""
    def add(fn: Callable) -> Callable:
        for name in names:
            RULES[name] = fn
        return fn

    return add


def dtype_name(dtype: object, default: str = "float32") -> str:
    """A dtype of torch (or a name) as a name."""
    if dtype is None:
        return default
    text = str(dtype).rpartition(".")[2]
    if text.startswith("complex") or text in ("cfloat", "cdouble", "chalf"):
        raise ValueError("complex numbers are not translated: keep real and imaginary parts as "
                         "two tensors")
    return DTYPES.get(text, text)


def is_tensor(value: object) -> TypeGuard[Expr]:
    """Whether a value is a tensor in the Relax program."""
    return isinstance(value, Expr) and isinstance(getattr(value, "struct_info_", None),
                                                  TensorStructInfo)


class Importer:
    """One import. `env` has the value of each node: a Relax variable, a number, a size, a tuple."""

    if TYPE_CHECKING:
        #: the sizes of torch's tensors
        sizes: SymbolicSizes

    def __init__(self, custom: Mapping[Any, Callable] | None = None) -> None:
        self.builder = BlockBuilder()
        self.env: Values = Values()
        self.custom = dict(custom or {})
        self._made: dict[Any, Any] = {}
        #: the node that is translated
        self.node: Any = None
        #: symbol of a size, by name -> the least and the greatest number it stands for
        self.ranges: dict[str, tuple[int, int]] = {}

    # ------------------------------------------------------------------------- emitting

    def emit(self, expr: Expr) -> Any:
        """Bind an expression to a variable; a leaf stays."""
        return self.builder.emit(expr)

    def kernel(self, compiled: Callable[..., Any], *args: object, name: str = "", **kwargs: Any
               ) -> Any:
        """A call of a function of TOPI that Relax has no operator for."""
        return self.builder.emit_te(compiled, *args, primfunc_name_hint=name or compiled.__name__,
                                    **kwargs)

    @property
    def block_builder(self) -> BlockBuilder:
        """TVM's name for the builder."""
        return self.builder

    def once(self, key: object, make: Callable[[], Any]) -> Any:
        """What `make` gives, made only the first time `key` is asked for."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    # ------------------------------------------------------------------------- values

    def const(self, value: Any, dtype: str | None = None) -> Constant:
        """A constant tensor."""
        return const(value, dtype)

    def shape(self, x: Expr) -> list[Any]:
        """The sizes of a tensor: ints, or expressions where they are symbolic."""
        dims = info_of(x).dims
        if dims is None:
            raise ValueError("the shape of a tensor is not known, not even by symbols")
        return [d if O.as_int(d) is None else O.as_int(d) for d in dims]

    def ndim(self, x: Expr) -> int:
        """The number of dimensions."""
        return info_of(x).ndim

    @staticmethod
    def axis(dim: Any, count: int) -> int:
        """A dimension counted from the front. Raises IndexError where there is none such."""
        if not -max(count, 1) <= dim < max(count, 1):
            raise IndexError(f"dimension {dim} of a tensor of {count} dimension(s)")
        return dim % max(count, 1)

    def simplified(self, size: Size) -> Any:
        """A size in its simplest form, an int where it is known."""
        if not isinstance(size, PrimExpr):
            return size
        out = self.analyzer(size).simplify(size)
        return out if O.as_int(out) is None else O.as_int(out)

    def analyzer(self, *sizes: Size) -> Analyzer:
        """An analyzer that knows between which numbers the symbols of sizes lie."""
        return analyzer_of(sizes, self.ranges)

    def need_size(self, size: Size, least: Size) -> None:
        """Let a run check that a size is not smaller than this, where it may be."""
        if not self.analyzer(size, least).can_prove(O.convert(least) <= size):
            enough = O.max_value_of(*(O.cast(O.convert(v), "int64") for v in (size, least)))
            self.builder.match_cast(ShapeExpr([size]), ShapeStructInfo([enough]), "enough")

    def same_size(self, a: Any, b: Size) -> bool:
        """Whether two sizes are surely equal."""
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        return a is b or same_dim(as_dim(a), as_dim(b))

    def common_shape(self, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """The shape that two shapes broadcast to."""
        count = max(len(a), len(b))
        first, second = ([1] * (count - len(s)) + list(s) for s in (a, b))
        return [q if self.same_size(p, 1) else p for p, q in zip(first, second)]

    def broadcast(self, x: Expr, sizes: Sequence[Any]) -> Any:
        """A tensor repeated to a shape."""
        have = self.shape(x)
        if len(have) == len(sizes) and all(map(self.same_size, have, sizes)):
            return x
        if isinstance(x, Constant) and not have:
            return self.emit(relax_op.full(ShapeExpr(list(sizes)), x, info_of(x).dtype))
        return self.emit(relax_op.broadcast_to(x, ShapeExpr(list(sizes))))

    def full(self, sizes: Sequence[Any], value: Operand, dtype: str) -> Any:
        """A tensor of one number."""
        return self.emit(relax_op.full(ShapeExpr(list(sizes)), self.const(value, dtype), dtype))

    def zeros(self, sizes: Sequence[Any], dtype: str) -> Any:
        """A tensor of zeros."""
        return self.full(sizes, 0, dtype)

    def need_dense(self, x: Expr, name: str) -> None:
        """Refuse a tensor that does not lie in memory in the order of its elements, for operators
        that look at memory."""
        fake = self.fake(self.node.args[0]) if self.node is not None and self.node.args else None
        if fake is None or not fake.is_contiguous() or fake.storage_offset() != 0 or (
                fake.untyped_storage().nbytes() != fake.numel() * fake.element_size()):
            raise ValueError(f"{name} of a tensor that is a part of another, or whose dimensions "
                             "were put in another order, is not translated: clone() it before")

    def tensor(self, value: Any, dtype: str) -> Any:
        """A number, a size or a tensor as a tensor of `dtype`."""
        if is_tensor(value):
            return self.cast(value, dtype)
        if isinstance(value, PrimValue):
            value = value.value
        if isinstance(value, PrimExpr) and O.as_int(value) is None:
            if is_float(value.dtype):
                one = self.emit(relax_op.ones(ShapeExpr([1]), "float64"))
                one = self.emit(relax_op.multiply(one, PrimValue(O.cast(value, "float64"))))
                return self.cast(self.emit(relax_op.reshape(one, ShapeExpr([]))), dtype)
            value = O.cast(value, "int64")
            one = self.emit(relax_op.arange(value, value + 1, 1, "int64"))
            return self.cast(self.emit(relax_op.reshape(one, ShapeExpr([]))), dtype)
        return self.const(getattr(value, "value", value), dtype)

    def filled(self, x: Expr, value: Any) -> Any:
        """A value in the form of x: its shape and its dtype."""
        if is_tensor(value) and info_of(value).dtype == self.dtype(x) and (
                self.ndim(value) == self.ndim(x)) and all(
                map(self.same_size, self.shape(value), self.shape(x))):
            return value
        tensor = self.tensor(value, self.dtype(x))
        while self.ndim(tensor) > self.ndim(x) and self.same_size(self.shape(tensor)[0], 1):
            tensor = self.emit(relax_op.squeeze(tensor, [0]))
        return self.broadcast(tensor, self.shape(x))

    def size_of(self, x: Expr) -> Any:
        """The number of elements."""
        total: Any = 1
        for d in self.shape(x):
            total = total * d
        return total

    @staticmethod
    def vector(size: Size, dtype: str = "int64") -> TensorStructInfo:
        """What is known of a vector."""
        return TensorStructInfo([size], dtype)

    def with_unknown_size(self, x: Expr, sizes: Sequence[Any], dtype: str) -> Any:
        """A tensor of which only the run knows one size, here None, with a symbol for it."""
        unknown = SizeVar(f"count_{self.builder.get_unique_name('count')}", "int64")
        self.ranges[unknown.name] = 0, 2**40
        dims = [unknown if s is None else s for s in sizes]
        return self.builder.match_cast(x, TensorStructInfo(dims, dtype))

    def size_from(self, x: Expr) -> PrimExpr:
        """The whole number in a tensor of one element, as a size that only the run knows."""
        line = self.cast(self.emit(relax_op.reshape(x, ShapeExpr([1]))), "int64")
        shape = self.emit(relax_op.tensor_to_shape(line))
        size = SizeVar(f"size_{self.builder.get_unique_name('size')}", "int64")
        self.ranges[size.name] = 0, 2**40
        self.builder.match_cast(shape, ShapeStructInfo([size]))
        return size

    def fake(self, node: Node) -> Any:
        """The tensor of torch, without data, that a node gives; None where it is not known."""
        return getattr(node, "meta", {}).get("val")

    def dtype(self, x: Any) -> str:
        """The dtype of a tensor, or of a Python number as torch sees it."""
        if is_tensor(x):
            return info_of(x).dtype
        if isinstance(x, bool):
            return "bool"
        if isinstance(x, float):
            return "float32"
        if isinstance(x, PrimValue):
            x = x.value
        return x.dtype if isinstance(x, PrimExpr) else "int64"

    def cast(self, x: Any, dtype: str) -> Any:
        """A tensor (or number) as `dtype`."""
        if not is_tensor(x):
            return x
        return x if info_of(x).dtype == dtype else self.emit(relax_op.astype(x, dtype))

    def operand(self, x: Any, dtype: str) -> Any:
        """An operand of `dtype`: a tensor cast, a number as a constant, a size as a value."""
        if is_tensor(x):
            return self.cast(x, dtype)
        if isinstance(x, PrimValue):
            x = x.value
        if isinstance(x, PrimExpr) and O.as_int(x) is None:
            return PrimValue(O.cast(x, dtype))
        return const(getattr(x, "value", x), dtype)

    def promoted(self, a: Operand, b: Operand) -> str:
        """The dtype torch computes in: tensors decide over numbers, floats over integers."""
        kinds = [self.dtype(v) for v in (a, b)]
        if is_tensor(a) != is_tensor(b):
            tensor, other = (a, b) if is_tensor(a) else (b, a)
            have, number = self.dtype(tensor), self.dtype(other)
            if is_float(have) or not is_float(number):
                return have if have != "bool" or number == "bool" else number
            return "float32"
        ranks = [self.ndim(v) if is_tensor(v) else 0 for v in (a, b)]
        if (ranks[0] == 0) != (ranks[1] == 0):  # a tensor of no dimensions counts as a number
            big, small = (kinds[1], kinds[0]) if ranks[0] == 0 else (kinds[0], kinds[1])
            if is_float(big) or not is_float(small):
                return big if big != "bool" else small
            return small
        return self.promoted_dtypes(*kinds)

    @staticmethod
    def promoted_dtypes(a: str, b: str) -> str:
        """The dtype of two tensors together."""
        if a == b:
            return a
        if is_float(a) != is_float(b):
            return a if is_float(a) else b
        if "bfloat16" in (a, b):
            return "float64" if "float64" in (a, b) else "float32"
        return str(np.promote_types(a, b))

    def tensors(self, a: Operand, b: Operand) -> tuple[Any, Any]:
        """Both operands as tensors of the dtype torch computes in."""
        dtype = self.promoted(a, b)
        return self.tensor(a, dtype), self.tensor(b, dtype)

    def pair(self, a: Operand, b: Operand) -> tuple[Any, Any]:
        """Both operands in the dtype torch computes in."""
        dtype = self.promoted(a, b)
        return self.operand(a, dtype), self.operand(b, dtype)

    # ------------------------------------------------------------------------- parameters

    def parameter(self, tensor: Any) -> Any:
        """A tensor of the model as an NDArray (shares memory where it can)."""
        value = tensor.detach().cpu().contiguous()
        if str(value.dtype) == "torch.bfloat16":
            from ....runtime import cpu, empty

            out = empty(tuple(value.shape), "bfloat16", cpu())
            out.copyfrom(value.float().numpy())
            return out
        return array(value.numpy().copy())


__all__ = ["DTYPES", "Importer", "RULES", "dtype_name", "is_tensor", "rule"]
