"""What is known of a Relax value before it is computed: its struct info.

A tensor's struct info holds its shape and dtype, as far as they are known; a shape may name
symbolic dimensions. `struct_info_check.py` says when one is at least as general as another and what
two have in common, `struct_info_functor.py` rewrites the dimensions in one. `ShapeExpr` stands here
because a tensor's struct info holds one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, ClassVar, Sequence

from ..above import above
from ..ir.dtype import canonical
from ..ir.node import Node, ignored, node, plain
from ..ir.structural import structural_equal
from ..reading import limits
from ..tir import expr as E
from ..tir import op as O


@node(namespace="relax")
class Expr(Node):
    """Base of Relax expressions. `struct_info_` is None as long as nothing inferred it."""

    __hash__ = object.__hash__

    if TYPE_CHECKING:
        @property
        def struct_info_(self) -> "StructInfo | None": ...

        # written below, one like the other
        def __add__(self, other: object) -> "Expr": ...
        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
        __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = __mod__ = __rmod__ = __add__
        __lt__ = __gt__ = __le__ = __ge__ = __add__

    @property
    def struct_info(self) -> "StructInfo":
        """What is known of the value. Raises ValueError where nothing inferred it yet."""
        info = self.struct_info_
        if info is None:
            raise ValueError(
                f"the struct info of this {type(self).__name__} is not known yet: emit it through "
                "a BlockBuilder, or call bb.normalize(expr)")
        return info

    @property
    def ty(self) -> "StructInfo":
        """Later TVM's name for `struct_info`."""
        return self.struct_info

    @property
    def shape_(self) -> Any:
        """The name of 2022 for the shape of a tensor; None where it is not known."""
        return getattr(self.struct_info, "shape", None)

    @property
    def checked_type(self) -> "StructInfo":
        """TVM's name for what is known without dimensions."""
        return above("get_static_type")(self.struct_info)

    def __call__(self, *args: object, attrs: Any = None) -> "Expr":
        return _maker("call_expr")(self, args, attrs)

    def __getitem__(self, index: int) -> "Expr":
        return _maker("tuple_item")(self, index)

    def __iter__(self) -> Any:
        info = self.struct_info_
        if not isinstance(info, TupleStructInfo):
            raise TypeError("only a value known to be a tuple can be unpacked; this one is "
                            f"{info if info is not None else 'of unknown struct info'}")
        return iter([self[i] for i in range(len(info.fields))])

    def __neg__(self) -> "Expr":
        return _maker("negative")(self)

    def __bool__(self) -> bool:
        return True

    def astype(self, dtype: str) -> "Expr":
        """The value converted to `dtype`."""
        return _maker("astype")(self, dtype)


def _ndim(value: Any) -> int:
    """A number of dimensions. Raises ValueError for what is none."""
    if not isinstance(value, int) or not -1 <= value <= limits.RANK:
        raise ValueError("ndim is a number of dimensions, or -1 where it is not known; got "
                         f"{value!r}")
    return value


#: constructors that stand above this file, by name: filled by `relax/expr.py` and `relax/op`
MAKERS: dict[str, Callable[..., Any]] = {}


def _maker(name: str) -> Callable[..., Any]:
    if name not in MAKERS:
        above("operators of Relax")
    return MAKERS[name]


def _operator(name: str, swap: bool = False) -> Callable[[Any, Any], Any]:
    def apply(self: Expr, other: object) -> Any:
        return _maker(name)(other, self) if swap else _maker(name)(self, other)

    return apply


for _python, _name in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"),
                       ("truediv", "divide"), ("floordiv", "floor_divide"), ("pow", "power"),
                       ("mod", "mod")):
    setattr(Expr, f"__{_python}__", _operator(_name))
    setattr(Expr, f"__r{_python}__", _operator(_name, True))
for _python, _name in (("lt", "less"), ("gt", "greater"), ("le", "less_equal"),
                       ("ge", "greater_equal")):
    setattr(Expr, f"__{_python}__", _operator(_name))


def as_dim(value: Any) -> E.PrimExpr:
    """A dimension or other shape value as an int64 expression."""
    if type(value) is E.IntImm:
        return value if value.dtype == "int64" else E.IntImm("int64", value.value)
    if isinstance(value, E.PrimExpr):
        if value.dtype == "int64":
            return value
        if value.dtype.startswith(("int", "uint")):
            return O.cast(value, "int64")
        raise TypeError(f"a dimension is an int64 expression, {value} has dtype {value.dtype}")
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"a dimension is an integer or a symbolic expression, got {value!r}")
    return E.IntImm("int64", value.__index__())


# ------------------------------------------------------------------------------- the kinds


@node(namespace="relax")
class StructInfo(Node):
    """Base of the kinds of struct info. `==` compares structurally."""

    # type tests are frequent: the kind of a struct info is its class
    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, StructInfo)
                                 and structural_equal(self, other) is True)

    def __hash__(self) -> int:
        from ..ir.structural import structural_hash

        return structural_hash(self)

    def is_base_of(self, derived: "StructInfo") -> bool:
        """Whether every value of struct info `derived` also has this one."""
        return above("is_base_of")(self, derived)


@node(namespace="relax")
class ObjectStructInfo(StructInfo):
    """Any value at all."""

    def __init__(self, span: object = None) -> None:
        self._init()


@node(namespace="relax")
class PrimStructInfo(StructInfo):
    """A scalar of the host program; `value` where it is known."""

    dtype: str = plain()
    value: E.PrimExpr | None = plain()

    def __init__(self, dtype: Any = None, value: Any = None, span: object = None) -> None:
        if isinstance(dtype, E.PrimExpr):
            dtype, value = dtype.dtype, dtype
        if value is not None and not isinstance(value, E.PrimExpr):
            value = E.IntImm("bool", value) if isinstance(value, bool) else (
                E.IntImm(dtype or "int64", value) if isinstance(value, int)
                else O.const(value, dtype))
        if dtype is None:
            if value is None:
                raise TypeError("PrimStructInfo needs a dtype or a value")
            dtype = value.dtype
        self._init(canonical(dtype), value)


@node(namespace="relax")
class ShapeStructInfo(StructInfo):
    """A shape: its values where they are known, else its number of dimensions (-1: unknown)."""

    values: tuple[E.PrimExpr, ...] | None = plain()
    ndim: int = plain()

    def __init__(self, values: Any = None, ndim: int = -1, span: object = None) -> None:
        if values is not None:
            values = tuple(map(as_dim, values))
            ndim = len(values)
        else:
            _ndim(ndim)
        self._init(values, ndim)


@node(namespace="relax")
class ShapeExpr(Expr):
    """A shape as a value."""

    values: tuple[E.PrimExpr, ...] = plain()

    def __init__(self, values: Sequence[Any], span: object = None) -> None:
        self._init(tuple(map(as_dim, values)))

    @property
    def struct_info_(self) -> ShapeStructInfo:
        """Its own values."""
        return ShapeStructInfo.from_fields(self.values, len(self.values))

    def __getitem__(self, index: Any) -> E.PrimExpr:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Any:
        return iter(self.values)


@node(namespace="relax")
class TensorStructInfo(StructInfo):
    """A tensor. `shape` is a ShapeExpr, a variable that holds a shape, or None (unknown).

    `dtype` is "" where it is unknown, `ndim` -1 where that is. `vdevice` is carried along.
    """

    shape: Expr | None = plain()
    dtype: str = plain()
    ndim: int = plain()
    vdevice: Any = ignored()

    def __init__(self, shape: Any = None, dtype: Any = "float32", vdevice: Any = None,
                 ndim: int = -1, span: object = None) -> None:
        if shape is not None and not isinstance(shape, Expr):
            if isinstance(shape, (int, E.PrimExpr)):
                raise TypeError("the shape of a tensor is a tuple of dimensions, write "
                                f"({shape},)")
            shape = ShapeExpr(shape)
        if type(shape) is ShapeExpr:
            if ndim not in (-1, len(shape.values)):
                raise ValueError(f"ndim={ndim} does not agree with a shape of "
                                 f"{len(shape.values)} dimensions")
            ndim = len(shape.values)
        elif shape is not None:
            info = shape.struct_info_
            if info is not None and not isinstance(info, ShapeStructInfo):
                raise TypeError("the variable that holds the shape of a tensor must have "
                                f"ShapeStructInfo, this one has {info}")
            if ndim == -1 and info is not None:
                ndim = info.ndim
        _ndim(ndim)
        dtype = "" if dtype in (None, "", "void") else canonical(str(dtype))
        self._init(shape, dtype, ndim, vdevice)

    @property
    def dims(self) -> tuple | None:
        """The dimensions, where they are known: those of the shape, or of the shape's variable."""
        shape = self.shape
        if shape is None:
            return None
        if type(shape) is ShapeExpr:
            return shape.values
        info = shape.struct_info_
        return info.values if isinstance(info, ShapeStructInfo) else None

    def is_unknown_ndim(self) -> bool:
        """Whether not even the number of dimensions is known."""
        return self.ndim == -1

    def is_unknown_dtype(self) -> bool:
        """Whether the dtype is unknown."""
        return self.dtype == ""

    def get_shape(self) -> tuple | None:
        """TVM's name for `dims`."""
        return self.dims


@node(namespace="relax")
class TupleStructInfo(StructInfo):
    """A tuple of values."""

    fields_: tuple[StructInfo, ...] = plain()
    if TYPE_CHECKING:
        fields: ClassVar[Any]  # of an object its items, see ItemsAsFields

    def __init__(self, fields: Sequence[StructInfo], span: object = None) -> None:
        self._init(tuple(fields))


class ItemsAsFields:
    """`fields` of a tuple node: of an object its items, as in TVM; of the class its declaration."""

    def __init__(self, declared: tuple) -> None:
        self.declared = declared

    def __get__(self, obj: Any, cls: Any = None) -> tuple:
        return self.declared if obj is None else obj.fields_


TupleStructInfo.fields = ItemsAsFields(TupleStructInfo.fields)


@node(namespace="relax")
class FuncStructInfo(StructInfo):
    """A function: what it takes and gives. `params` is None for a function of any parameters.

    `derive` then computes the struct info of a call (`derive(call) -> StructInfo`).
    """

    params: tuple[StructInfo, ...] | None = plain()
    ret: StructInfo = plain()
    purity: bool = plain()
    derive: Any = ignored()

    def __init__(self, params: Any, ret: StructInfo, purity: bool = True, derive: Any = None,
                 span: object = None) -> None:
        self._init(None if params is None else tuple(params), ret, bool(purity), derive)

    @staticmethod
    def opaque_func(*, ret: StructInfo | None = None, derive_func: Any = None,
                    purity: bool = False, span: object = None) -> "FuncStructInfo":
        """A function of which only the result is known."""
        return FuncStructInfo(None, ret if ret is not None else ObjectStructInfo(), purity,
                              derive_func)


OBJECT = ObjectStructInfo()

__all__ = ["Expr", "FuncStructInfo", "ItemsAsFields", "MAKERS", "OBJECT", "ObjectStructInfo",
           "PrimStructInfo", "ShapeExpr", "ShapeStructInfo", "StructInfo", "TensorStructInfo",
           "TupleStructInfo", "as_dim"]
