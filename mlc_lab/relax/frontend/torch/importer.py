"""What both torch importers are: a builder, the values of nodes so far, and a table of rules."""

from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy as np

from ....ir.dtype import is_float
from ....runtime import array
from ....tir import op as O
from ....tir.expr import PrimExpr
from ...block_builder import BlockBuilder
from ...expr import Constant, Expr, PrimValue, ShapeExpr, const
from ...struct_info import TensorStructInfo
from ... import op as relax_op
from ..common import MissingOperators

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


def dtype_name(dtype: Any, default: str = "float32") -> str:
    """A dtype of torch (or a name) as a name."""
    if dtype is None:
        return default
    text = str(dtype).rpartition(".")[2]
    return DTYPES.get(text, text)


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor in the Relax program."""
    return isinstance(value, Expr) and isinstance(getattr(value, "struct_info_", None),
                                                  TensorStructInfo)


class Importer:
    """One import. `env` has the value of each node: a Relax variable, a number, a size, a tuple."""

    def __init__(self, custom: Mapping[Any, Callable] | None = None) -> None:
        self.builder = BlockBuilder()
        self.env: dict[Any, Any] = {}
        self.custom = dict(custom or {})
        self._made: dict[Any, Any] = {}

    # ------------------------------------------------------------------------- emitting

    def emit(self, expr: Any) -> Any:
        """Bind an expression to a variable; a leaf stays."""
        return self.builder.emit(expr)

    @property
    def block_builder(self) -> BlockBuilder:
        """TVM's name for the builder."""
        return self.builder

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives, made only the first time `key` is asked for."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    # ------------------------------------------------------------------------- values

    def const(self, value: Any, dtype: str | None = None) -> Constant:
        """A constant tensor."""
        return const(value, dtype)

    def shape(self, x: Any) -> list[Any]:
        """The sizes of a tensor: ints, or expressions where they are symbolic."""
        dims = x.struct_info.dims
        if dims is None:
            raise ValueError("the shape of a tensor is not known, not even by symbols")
        return [d if O.as_int(d) is None else O.as_int(d) for d in dims]

    def ndim(self, x: Any) -> int:
        """The number of dimensions."""
        return x.struct_info.ndim

    def dtype(self, x: Any) -> str:
        """The dtype of a tensor, or of a Python number as torch sees it."""
        if is_tensor(x):
            return x.struct_info.dtype
        if isinstance(x, bool):
            return "bool"
        if isinstance(x, float):
            return "float32"
        return x.dtype if isinstance(x, PrimExpr) else "int64"

    def cast(self, x: Any, dtype: str) -> Any:
        """A tensor (or number) as `dtype`."""
        if not is_tensor(x):
            return x
        return x if x.struct_info.dtype == dtype else self.emit(relax_op.astype(x, dtype))

    def operand(self, x: Any, dtype: str) -> Any:
        """An operand of `dtype`: a tensor cast, a number as a constant, a size as a value."""
        if is_tensor(x):
            return self.cast(x, dtype)
        if isinstance(x, PrimValue):
            x = x.value
        if isinstance(x, PrimExpr) and O.as_int(x) is None:
            return PrimValue(O.cast(x, dtype))
        return const(getattr(x, "value", x), dtype)

    def promoted(self, a: Any, b: Any) -> str:
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
        if is_float(kinds[0]) != is_float(kinds[1]):
            return kinds[0] if is_float(kinds[0]) else kinds[1]
        if "bfloat16" in kinds:
            return "bfloat16" if kinds[0] == kinds[1] else "float32"
        return str(np.promote_types(*map(np.dtype, kinds)))

    def pair(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Both operands in the dtype torch computes in."""
        dtype = self.promoted(a, b)
        return self.operand(a, dtype), self.operand(b, dtype)

    def as_shape(self, sizes: Any) -> ShapeExpr:
        """Sizes as a shape."""
        return ShapeExpr([s.value if isinstance(s, PrimValue) else s for s in sizes])

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


def lookup(importer: Importer, names: tuple[str, ...]) -> Callable[..., Any] | None:
    """The rule of the first name that has one; those the user gave go first."""
    for table in (importer.custom, RULES):
        for name in names:
            if name in table:
                return table[name]
    return None


def refuse(frontend: str, missing: list[tuple[str, str]]) -> None:
    """Raise MissingOperators unless the list is empty."""
    if missing:
        raise MissingOperators(frontend, missing, (
            "give rules of your own with custom_convert_map={name: f(node, importer)}, or write "
            "the model with other operators"))


def place_of(node: Any) -> str:
    """Where a node comes from: the module, the node, and the line of the model's source."""
    stack = node.meta.get("nn_module_stack") or {}
    last = list(stack.values())[-1] if stack else None
    module = ""
    if last is not None:
        path, kind = last if isinstance(last, tuple) else (str(last), "")
        kind = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
        module = f"in {path or 'the model itself'} ({kind.rpartition('.')[2]}), "
    trace = (node.meta.get("stack_trace") or "").strip().split("\n")
    source = f": {trace[-1].strip()}" if trace[-1] else ""
    return f"{module}node {node.name}{source}"


__all__ = ["DTYPES", "Importer", "RULES", "dtype_name", "is_tensor", "lookup", "place_of", "refuse",
           "rule"]
