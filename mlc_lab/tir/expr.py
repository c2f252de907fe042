"""The expressions of TensorIR: scalar (and vector) values computed from variables and buffers.

Every expression has a `dtype`. Python's operators build expressions with constants folded and
types matched (`tir/op/`); the classes here build exactly the node they name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Sequence, TypeVar

from ..above import above, name_above
from ..ir.dtype import canonical, element_of, int_range, lanes_of, with_lanes
from ..ir.node import TAKEN_FOR_NODES, Node, defines, ignored, node, plain, uses
from ..reading import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol, SupportsIndex

    from typing_extensions import TypeAlias, TypeVar

    from ..ir.module import GlobalVar
    from .buffer import Buffer

    class Convertible(Protocol):
        """What stands for an expression: an element of a te.Tensor."""

        def asobject(self) -> PrimExpr: ...

    #: what is taken where an expression is wanted
    ExprLike: TypeAlias = "PrimExpr | ThreadAxis | float | SupportsIndex | Convertible"
    #: an iterator that may be a thread axis of an extent that is not said
    ThreadAxis: TypeAlias = "IterVar[Range | None]"
    Dom = TypeVar("Dom", bound="Range | None", default="Range", covariant=True)

    class _Value(Node):
        """What `op/python_operators.py` gives to expressions, and to iterators for their variable.
        """

        def __add__(self, other: ExprLike) -> PrimExpr: ...
        def __radd__(self, other: ExprLike) -> PrimExpr: ...
        def __sub__(self, other: ExprLike) -> PrimExpr: ...
        def __rsub__(self, other: ExprLike) -> PrimExpr: ...
        def __mul__(self, other: ExprLike) -> PrimExpr: ...
        def __rmul__(self, other: ExprLike) -> PrimExpr: ...
        def __truediv__(self, other: ExprLike) -> PrimExpr: ...
        def __rtruediv__(self, other: ExprLike) -> PrimExpr: ...
        def __floordiv__(self, other: ExprLike) -> PrimExpr: ...
        def __rfloordiv__(self, other: ExprLike) -> PrimExpr: ...
        def __mod__(self, other: ExprLike) -> PrimExpr: ...
        def __rmod__(self, other: ExprLike) -> PrimExpr: ...
        def __and__(self, other: ExprLike) -> PrimExpr: ...
        def __rand__(self, other: ExprLike) -> PrimExpr: ...
        def __or__(self, other: ExprLike) -> PrimExpr: ...
        def __ror__(self, other: ExprLike) -> PrimExpr: ...
        def __xor__(self, other: ExprLike) -> PrimExpr: ...
        def __rxor__(self, other: ExprLike) -> PrimExpr: ...
        def __lshift__(self, other: ExprLike) -> PrimExpr: ...
        def __rlshift__(self, other: ExprLike) -> PrimExpr: ...
        def __rshift__(self, other: ExprLike) -> PrimExpr: ...
        def __rrshift__(self, other: ExprLike) -> PrimExpr: ...
        def __lt__(self, other: ExprLike) -> PrimExpr: ...
        def __le__(self, other: ExprLike) -> PrimExpr: ...
        def __gt__(self, other: ExprLike) -> PrimExpr: ...
        def __ge__(self, other: ExprLike) -> PrimExpr: ...
        def __eq__(self, other: object) -> PrimExpr: ...  # pyright: ignore
        def __ne__(self, other: object) -> PrimExpr: ...  # pyright: ignore
        def __hash__(self) -> int: ...
        def __neg__(self, /) -> PrimExpr: ...
        def __invert__(self) -> PrimExpr: ...
        def astype(self, dtype: str, span: object = None) -> PrimExpr: ...
        def equal(self, other: ExprLike, span: object = None) -> PrimExpr: ...

    class _Typed(_Value):
        dtype: str
    #: what an intrinsic takes: an expression, a buffer, a region
    Argument: TypeAlias = Any
else:
    _Value = _Typed = Argument = Node
    Dom = TypeVar("Dom")

_BOOL = {"int32": "bool", "int64": "bool", "float32": "bool", "bool": "bool"}


def bool_like(dtype: str) -> str:
    """bool with the lanes of `dtype`."""
    return _BOOL.get(dtype) or with_lanes("bool", lanes_of(dtype))


@node
class PrimType(Node):
    """The type of a scalar or vector value."""

    dtype: str = plain()


@node
class PointerType(Node):
    """The type of a pointer to elements of `element_type` in memory of `storage_scope`."""

    element_type: Node
    storage_scope: str = plain()

    def __init__(self, element_type: Node | str, storage_scope: str = "") -> None:
        if isinstance(element_type, str):
            element_type = PrimType(element_type)
        self._init(element_type, "" if storage_scope == "global" else storage_scope)


@node
class PrimExpr(_Typed):
    """Base of all expressions. `dtype` is derived from the operands or given."""

    derived = {"dtype": "None"}

    # == builds an expression, so identity decides dict membership
    __hash__ = object.__hash__

    def astype(self, dtype: str, span: object = None) -> "PrimExpr":
        """This value cast to `dtype`; itself when it already has it."""
        return above("cast")(self, dtype)

    def asobject(self) -> "PrimExpr":
        """This expression: in TVM what `==` gives becomes one by this call."""
        return self

    def __bool__(self) -> bool:
        raise ValueError(
            "a symbolic expression has no truth value here: use T.And / T.Or / T.Not or "
            "T.if_then_else (or tvm.tir.all / any) in place of and / or / not / if")

    @classmethod
    def fit_numbers(cls, *values: Any) -> Any:
        """The number as a constant of int32, float32 or bool."""
        return const_index(values[0])

    def __iter__(self) -> Any:
        raise TypeError(f"{type(self).__name__} is a scalar expression and cannot be iterated")

    def __float__(self) -> float:
        raise TypeError("a symbolic expression has no float value")


@node
class Var(PrimExpr):
    """A variable. Two Vars are the same only if they are one object; the name is for people."""

    derived = {}
    name: str = plain()
    dtype: str = plain()
    type_annotation: PointerType | PrimType | None = ignored()

    def __init__(self, name: str, dtype: Any = "int32", span: object = None) -> None:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DataError(f"the name of a variable is a string, not {name!r}")
        if isinstance(dtype, str):
            dtype = canonical(dtype)
            self._init(name, dtype, None)
        elif isinstance(dtype, PointerType):
            self._init(name, "handle", dtype)
        elif isinstance(dtype, PrimType):
            self._init(name, canonical(dtype.dtype), None)
        else:
            self._init(name, canonical(str(dtype)), None)

    @property
    def name_hint(self) -> str:
        """TVM's other name for `name`."""
        return self.name

    def with_name(self, name: str) -> "Var":
        """A new variable of the same type."""
        return type(self).from_fields(name, self.dtype, self.type_annotation)

    @property
    def storage_scope(self) -> str:
        """Memory scope a pointer variable points into ("global" when not said)."""
        annotation = self.type_annotation
        return getattr(annotation, "storage_scope", "") or "global"


@node
class SizeVar(Var):
    """A variable known to be >= 0: a tensor's extent."""

    __init__ = Var.__init__


_RANGES: dict[str, tuple[int, int]] = {"int32": int_range("int32"), "int64": int_range("int64")}


def _must_hold(dtype: str, value: int) -> None:
    """Raise ValueError if a type of integers cannot hold a value."""
    limits = _RANGES.get(dtype)
    if limits is None:
        if not dtype.startswith(("int", "uint")):
            return
        limits = _RANGES[dtype] = int_range(dtype)
    if not limits[0] <= value <= limits[1]:
        text = str(value) if abs(value) < 10**40 else f"a number of {value.bit_length()} bits"
        raise DataError(f"{text} is no {dtype}, which ends at {limits[0]} and {limits[1]}: use "
                        "tir.const, which wraps around, or a larger type")


@node
class IntImm(PrimExpr):
    """An integer or bool constant. Raises ValueError for a value that the type cannot hold."""

    derived = {}
    dtype: str = plain()
    value: int = plain()

    def __init__(self, dtype: str, value: int, span: object = None) -> None:
        value = int(value)
        if not 0 <= value < 128:  # all types hold these
            _must_hold(dtype, value)
        self._init(dtype, value)

    def __int__(self) -> int:
        return self.value

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return self.value != 0


@node
class FloatImm(PrimExpr):
    """A floating point constant."""

    derived = {}
    dtype: str = plain()
    value: float = plain()

    def __init__(self, dtype: str, value: float, span: object = None) -> None:
        if not dtype.startswith(("float", "bfloat")):
            raise DataError(f"a FloatImm is of a floating point type, and {dtype} is none: use "
                            "tir.const")
        self._init(dtype, float(value))

    def __float__(self) -> float:
        return self.value


@node
class StringImm(PrimExpr):
    """A string constant: pragma values, names of extern functions."""

    derived = {"dtype": "'handle'"}
    value: str = plain()

    def __str__(self) -> str:
        return self.value


@node
class Cast(PrimExpr):
    """`value` converted to `dtype`."""

    derived = {}
    numbers = ("value",)
    dtype: str = plain()
    value: PrimExpr


@node
class BinaryOp(PrimExpr):
    """Base of the operations on two operands of one type."""

    derived = {"dtype": "a.dtype"}
    numbers = ("a", "b")
    a: PrimExpr
    b: PrimExpr

    @classmethod
    def fit_numbers(cls, *values: Any) -> Any:
        """A number takes the type of the other operand."""
        return above("match_values")(*values)


@node
class Add(BinaryOp):
    """a + b"""


@node
class Sub(BinaryOp):
    """a - b"""


@node
class Mul(BinaryOp):
    """a * b"""


@node
class Div(BinaryOp):
    """a / b; rounds toward zero on integers"""


@node
class Mod(BinaryOp):
    """The remainder that goes with Div: has the sign of a"""


@node
class FloorDiv(BinaryOp):
    """a // b rounded down"""


@node
class FloorMod(BinaryOp):
    """a % b with the sign of b"""


@node
class Min(BinaryOp):
    """The smaller of a and b"""


@node
class Max(BinaryOp):
    """The larger of a and b"""


@node
class CmpOp(BinaryOp):
    """Base of the comparisons; the result is bool."""

    derived = {"dtype": "bool_like(a.dtype)"}


@node
class EQ(CmpOp):
    """a == b"""

    def __bool__(self) -> bool:
        return self.a is self.b


@node
class NE(CmpOp):
    """a != b"""

    def __bool__(self) -> bool:
        return self.a is not self.b


@node
class LT(CmpOp):
    """a < b"""


@node
class LE(CmpOp):
    """a <= b"""


@node
class GT(CmpOp):
    """a > b"""


@node
class GE(CmpOp):
    """a >= b"""


@node
class And(BinaryOp):
    """a and b"""

    derived = {"dtype": "bool_like(a.dtype)"}


@node
class Or(BinaryOp):
    """a or b"""

    derived = {"dtype": "bool_like(a.dtype)"}


@node
class Not(PrimExpr):
    """not a"""

    derived = {"dtype": "bool_like(a.dtype)"}
    numbers = ("a",)
    a: PrimExpr


@node
class Select(PrimExpr):
    """true_value where condition holds, else false_value; both sides may be evaluated."""

    derived = {"dtype": "true_value.dtype"}
    condition: PrimExpr
    true_value: PrimExpr
    false_value: PrimExpr

    def __init__(self, condition: ExprLike, true_value: ExprLike, false_value: ExprLike,
                 span: object = None) -> None:
        if not (isinstance(true_value, PrimExpr) and isinstance(false_value, PrimExpr)):
            # Python numbers take the type of the other side
            true_value, false_value = above("match_values")(true_value, false_value)
        self._init(const_index(condition), true_value, false_value)


def load_dtype(buffer: Buffer, indices: Sequence[PrimExpr]) -> str:
    """Element type of an access: the buffer's, with the lanes of a vector index."""
    if not indices:
        return buffer.dtype
    last = indices[-1].dtype
    if last == "int32" or last == "int64":
        return buffer.dtype
    lanes = lanes_of(last)
    return buffer.dtype if lanes == 1 else with_lanes(buffer.dtype, lanes * lanes_of(buffer.dtype))


@node
class BufferLoad(PrimExpr):
    """buffer[indices]. A vector index (Ramp) in the last place loads a vector."""

    derived = {"dtype": "load_dtype(buffer, indices)"}
    buffer: Buffer = uses()
    indices: tuple[PrimExpr, ...]
    predicate: PrimExpr | None

    def __init__(self, buffer: Buffer, indices: Sequence[Any], predicate: Any = None,
                 span: object = None) -> None:
        self._init(buffer, tuple(map(const_index, indices)), predicate)


@node
class ProducerLoad(PrimExpr):
    """producer[indices]: a read of a te.Tensor, gone once a PrimFunc is made of it."""

    derived = {"dtype": "producer.dtype"}
    producer: Any = uses()
    indices: tuple[PrimExpr, ...]

    def __init__(self, producer: Any, indices: Sequence[ExprLike], span: object = None) -> None:
        self._init(producer, tuple(map(const_index, indices)))


def lanes_given(lanes: SupportsIndex) -> int:
    """The lanes of a vector as a number. TypeError where they are no constant."""
    if type(lanes) is int:
        return lanes
    if not hasattr(lanes, "__index__"):
        raise TypeError(f"the lanes of a vector are a constant, not {lanes!r}: vectors whose "
                        "length only the machine knows are no part of MLC Lab")
    return lanes.__index__()


@node
class Ramp(PrimExpr):
    """The vector base, base + stride, ... of `lanes` elements."""

    derived = {"dtype": "with_lanes(base.dtype, lanes * lanes_of(base.dtype))"}
    base: PrimExpr
    stride: PrimExpr
    lanes: int = plain()

    def __init__(self, base: ExprLike, stride: ExprLike, lanes: SupportsIndex,
                 span: object = None) -> None:
        if not (isinstance(base, PrimExpr) and isinstance(stride, PrimExpr)):
            base, stride = above("match_values")(base, stride)
        self._init(base, stride, lanes_given(lanes))


@node
class Broadcast(PrimExpr):
    """The vector of `lanes` times `value`."""

    derived = {"dtype": "with_lanes(value.dtype, lanes * lanes_of(value.dtype))"}
    value: PrimExpr
    lanes: int = plain()

    def __init__(self, value: ExprLike, lanes: SupportsIndex, span: object = None) -> None:
        self._init(const_index(value), lanes_given(lanes))


@node
class Shuffle(PrimExpr):
    """Lanes picked by constant `indices` out of the concatenation of `vectors`."""

    derived = {"dtype": "with_lanes(element_of(vectors[0].dtype), len(indices))"}
    vectors: tuple[PrimExpr, ...]
    indices: tuple[IntImm, ...]

    def __init__(self, vectors: Sequence[ExprLike], indices: Sequence[ExprLike],
                 span: object = None) -> None:
        self._init(tuple(map(const_index, vectors)), tuple(map(const_index, indices)))


@node
class Let(PrimExpr):
    """body with var bound to value."""

    derived = {"dtype": "body.dtype"}
    var: Var = defines()
    value: PrimExpr
    body: PrimExpr

    def __init__(self, var: Var, value: ExprLike, body: ExprLike, span: object = None) -> None:
        self._init(var, value_of_type(value, var.dtype), const_index(body))


@node
class Op(Node):
    """A named intrinsic, e.g. `tir.exp`; the table of them is in `tir/op/intrinsic.py`."""

    name: str = plain()

    @staticmethod
    def get(name: str) -> "Op":
        """The one Op of that name. Raises ValueError if there is none."""
        try:
            return OPS[name]
        except KeyError:
            if str(name).startswith("relax."):  # an operator of an earlier version, or not loaded
                above("early operators")
                if name in OPS:
                    return OPS[name]
            raise ValueError(f"there is no operator named {name!r}") from None


#: every Op by name
OPS: dict[str, Op] = {}


@node
class Call(PrimExpr):
    """A call of an intrinsic (Op) or of a function of the module (GlobalVar)."""

    derived = {}
    dtype: str = plain()
    op: Op | GlobalVar = plain()
    args: tuple[Argument, ...]
    annotations: dict[str, Any] | None = plain()

    def __init__(self, dtype: str, op: str | Op | GlobalVar, args: Sequence[Any],
                 annotations: Mapping[str, Any] | None = None, span: object = None) -> None:
        self._init(dtype, Op.get(op) if isinstance(op, str) else op, tuple(
            [const_index(a) if a.__class__ in TAKEN_FOR_NODES else a for a in args]), annotations)


@node
class Range(Node):
    """The integers min .. min + extent - 1."""

    min: PrimExpr
    extent: PrimExpr

    def __init__(self, begin: ExprLike, end: ExprLike | None = None, span: object = None) -> None:
        begin = const_index(begin)
        if end is None:
            self._init(IntImm(begin.dtype, 0), begin)
        else:
            self._init(begin, const_index(end) - begin)

    @staticmethod
    def from_min_extent(min: ExprLike, extent: ExprLike, span: object = None) -> "Range":
        """The range that starts at `min` and has `extent` elements."""
        return Range.from_fields(min if isinstance(min, PrimExpr) else const_index(min),
                                 extent if isinstance(extent, PrimExpr) else const_index(extent))


@node
class IterVar(_Value, Generic[Dom]):
    """A block's iterator (or a TE axis): a variable over a domain, with a kind.

    `iter_type` is one of the class constants; `thread_tag` names a GPU thread axis. `dom` is None
    only for a thread axis whose extent is not said, which to a type checker is a `ThreadAxis`.
    """

    if TYPE_CHECKING:
        dom: Dom
    else:
        dom: Range | None
    var: Var = defines()
    iter_type: int = plain()
    thread_tag: str = plain()

    DataPar = 0
    ThreadIndex = 1
    CommReduce = 2
    Ordered = 3
    Opaque = 4
    Unrolled = 5
    Vectorized = 6
    Parallelized = 7
    Tensorized = 8

    def __init__(self, dom: Dom | ExprLike | tuple[ExprLike, ...] | list[ExprLike], var: Var | str,
                 iter_type: int = 0, thread_tag: str = "", span: object = None) -> None:
        if dom is None or isinstance(dom, Range):
            over: Range | None = dom
        else:
            over = Range(*dom) if isinstance(dom, (tuple, list)) else Range(dom)
        if isinstance(var, str):
            var = Var(var, over.extent.dtype if over is not None else "int32")
        self._init(over, var, int(iter_type), thread_tag)

    @property
    def dtype(self) -> str:
        """The type of its variable."""
        return self.var.dtype


TAKEN_FOR_NODES.add(IterVar)


@node
class CommReducer(Node):
    """A commutative, associative combiner: result of (lhs, rhs), with its identity element."""

    lhs: tuple[Var, ...] = defines()
    rhs: tuple[Var, ...] = defines()
    result: tuple[PrimExpr, ...]
    identity_element: tuple[PrimExpr, ...]

    def __init__(self, lhs: Sequence[Var], rhs: Sequence[Var], result: Sequence[ExprLike],
                 identity_element: Sequence[ExprLike], span: object = None) -> None:
        self._init(tuple(lhs), tuple(rhs), tuple(map(const_index, result)),
                   tuple(map(const_index, identity_element)))


@node
class Reduce(PrimExpr):
    """A reduction in TE: combiner over source for all values of axis."""

    derived = {"dtype": "source[value_index].dtype"}
    combiner: CommReducer
    source: tuple[PrimExpr, ...]
    axis: tuple[IterVar, ...] = defines()
    condition: PrimExpr
    value_index: int = plain()
    init: tuple[PrimExpr, ...]

    def __init__(self, combiner: CommReducer, source: Sequence[Any], axis: Sequence[IterVar],
                 condition: Any, value_index: int, init: Sequence[Any] | None = None,
                 span: object = None) -> None:
        self._init(combiner, tuple(map(const_index, source)), tuple(axis), const_index(condition),
                   value_index, tuple(map(const_index, init or ())))


_SMALL: dict[int, IntImm] = {}


def int32(value: int) -> IntImm:
    """An int32 constant; small ones are shared."""
    found = _SMALL.get(value)
    if found is None:
        found = IntImm("int32", value)
        if -16 <= value <= 1024:
            _SMALL[value] = found
    return found


def index_of_type(value: int, dtype: str) -> IntImm:
    """A constant index of a type; small ones of int32 are shared."""
    return int32(value) if dtype == "int32" else IntImm(dtype, value)


def const_index(value: Any) -> PrimExpr:
    """An index or extent as an expression: ints become int32 (int64 where they do not fit)."""
    if isinstance(value, PrimExpr):
        return value
    if value.__class__ is int and -(2**31) <= value < 2**31:
        return int32(value)
    if isinstance(value, bool):
        return IntImm("bool", value)
    if hasattr(value, "__index__"):
        value = value.__index__()
        if -(2**31) <= value < 2**31:
            return int32(value)
        if -(2**63) <= value < 2**63:
            return IntImm("int64", value)
        raise ValueError("an index or extent fits an int64; this number has "
                         f"{value.bit_length()} bits")
    if isinstance(value, IterVar):
        return value.var
    converter = getattr(value, "asobject", None)  # a te.TensorSlice becomes its load
    if converter is not None:
        found = converter()
        return found if isinstance(found, PrimExpr) else found.data  # a buffer is its pointer
    if isinstance(value, float):
        return FloatImm("float32", value)
    if hasattr(value, "node_key"):
        return value  # Range and the like pass through untouched
    raise TypeError(f"expected an integer or an expression, got {value!r}")


def value_of_type(value: Any, dtype: str) -> PrimExpr:
    """An expression; a Python number becomes a constant of the type."""
    if value.__class__ in TAKEN_FOR_NODES and value.__class__ is not IterVar:
        return above("const")(value, dtype)
    return const_index(value)


def __getattr__(name: str) -> Any:
    """Another name that TVM has for a class of this module."""
    return name_above("tir.expr", name)


__all__ = [
    "Add", "And", "BinaryOp", "Broadcast", "BufferLoad", "Call", "Cast", "CmpOp", "CommReducer",
    "Div", "EQ", "FloatImm", "FloorDiv", "FloorMod", "GE", "GT", "IntImm", "IterVar", "LE", "LT",
    "Let", "Max", "Min", "Mod", "Mul", "NE", "Not", "OPS", "Op", "Or", "PointerType", "PrimExpr",
    "PrimType", "ProducerLoad", "Ramp", "Range", "Reduce", "Select", "Shuffle", "SizeVar",
    "StringImm", "Sub", "Var", "bool_like", "const_index", "element_of", "int32",
]
