"""What the rules of the operators share: arguments, axes, broadcasting, and how misfits read."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Sequence

from ...above import above
from ...arith import Analyzer
from ...tir import expr as E
from ...tir import op as O
from ..expr import Call, Expr, Tuple, as_expr, const
from ..struct_info import (
    PrimStructInfo, ShapeExpr, ShapeStructInfo, TensorStructInfo, TupleStructInfo,
    as_dim, same_dim, surely_different,
)
from .registry import StructInfoError, StructInfoTypeError

UNKNOWN = None


def show(info: Any) -> str:
    """A struct info or shape, short, for messages."""
    if isinstance(info, TensorStructInfo):
        dtype = f', "{info.dtype}"' if info.dtype else ""
        dims = info.dims
        if dims is not None:
            return f"Tensor({show_shape(dims)}{dtype})"
        return f"Tensor(ndim={info.ndim}{dtype})" if info.ndim >= 0 else f"Tensor(?{dtype})"
    if isinstance(info, TupleStructInfo):
        return f"Tuple({', '.join(map(show, info.fields_))})"
    if isinstance(info, ShapeStructInfo):
        return f"Shape({show_shape(info.values)})" if info.values is not None else "Shape"
    if isinstance(info, PrimStructInfo):
        return f"Prim({info.dtype})"
    return type(info).__name__.removesuffix("StructInfo")


def dim_text(dim: Any) -> str:
    """2, n + 1"""
    if type(dim) is E.IntImm:
        return str(dim.value)
    return above("script")(dim, int_dtype="int64") if isinstance(dim, E.PrimExpr) else str(dim)


def show_shape(dims: Sequence[Any]) -> str:
    """(2, n + 1)"""
    parts = list(map(dim_text, dims))
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def misfit(call: Any, message: str) -> StructInfoError:
    """The error of a call whose arguments do not fit."""
    name = call if isinstance(call, str) else call.op.name
    return StructInfoError(f"R.{name.removeprefix('relax.')}", message)


def misfit_kind(call: Any, message: str) -> StructInfoTypeError:
    """The error of a call whose arguments are of different kinds, a TypeError too."""
    name = call if isinstance(call, str) else call.op.name
    return StructInfoTypeError(f"R.{name.removeprefix('relax.')}", message)


def tensor_info(call: Call, index: int, name: str = "") -> TensorStructInfo:
    """The struct info of a tensor argument."""
    info = call.args[index].struct_info_
    if not isinstance(info, TensorStructInfo):
        label = name or f"argument {index + 1}"
        raise misfit_kind(call, f"{label} must be a tensor, it is {show(info)}")
    return info


def tensor_list(call: Call, index: int = 0) -> tuple[TensorStructInfo, ...]:
    """The struct infos of an argument that is a tuple of tensors."""
    info = call.args[index].struct_info_
    if isinstance(info, TupleStructInfo):
        tensors = tuple(f for f in info.fields_ if isinstance(f, TensorStructInfo))
        if len(tensors) == len(info.fields_):
            return tensors
    raise misfit_kind(call, f"argument {index + 1} must be a tuple of tensors, it is {show(info)}")


def info_of(value: Expr) -> TensorStructInfo:
    """The struct info of an argument or call that is known to be a tensor."""
    info = value.struct_info_
    assert isinstance(info, TensorStructInfo)
    return info


def dims_of(infos: Iterable[TensorStructInfo]) -> list[tuple] | None:
    """The dimensions of several tensors; None where those of one are not known."""
    known = []
    for info in infos:
        dims = info.dims
        if dims is None:
            return None
        known.append(dims)
    return known


def need_ndim(call: Call, info: TensorStructInfo, ndim: int, name: str) -> None:
    """Refuse a tensor of another number of dimensions."""
    if info.ndim not in (-1, ndim):
        raise misfit(call, f"{name} must have {ndim} dimension(s), it is {show(info)}")


def axis_of(call: Any, axis: int, ndim: int, what: str = "axis") -> int:
    """An axis counted from 0. Refuses one outside the tensor."""
    if not -ndim <= axis < ndim:
        raise misfit(call, f"{what} {axis} is outside a tensor of {ndim} dimension(s)")
    return axis + ndim if axis < 0 else axis


def axes_of(call: Any, axes: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Axes counted from 0; refuses one that is named twice."""
    found = tuple(axis_of(call, a, ndim) for a in axes)
    if len(set(found)) != len(found):
        raise misfit(call, f"an axis is named twice in {list(axes)}")
    return found


def ints(value: Any) -> tuple | None:
    """An int or a sequence of ints as a tuple; None stays."""
    if value is None:
        return None
    if isinstance(value, (tuple, list)):
        return tuple(map(plain_int, value))
    if isinstance(value, E.PrimExpr) or hasattr(value, "__index__"):
        return (plain_int(value),)
    return tuple(map(plain_int, value if isinstance(value, Iterable) else (value,)))


def plain_int(value: Any) -> Any:
    """A constant as a Python int; a symbolic expression as it is."""
    if type(value) is E.IntImm:
        return value.value
    from ..expr import PrimValue

    if isinstance(value, PrimValue):
        return plain_int(value.value)
    return value if isinstance(value, E.PrimExpr) else whole("a size or an axis", value)


def whole(name: str, value: Any) -> int:
    """A whole number given as the argument `name`, as a Python int."""
    known = getattr(value, "value", value)
    if hasattr(known, "__index__"):
        return known.__index__()
    if isinstance(known, float) and known.is_integer():
        return int(known)
    raise TypeError(f"{name} must be a whole number, it is {value!r}")


def real(name: str, value: Any) -> float:
    """A number given as the attribute `name`, as a Python float."""
    known = getattr(value, "value", value)
    if isinstance(known, (E.IntImm, E.FloatImm)):  # of a PrimValue
        known = known.value
    if not isinstance(known, (int, float)) and hasattr(known, "item"):
        known = known.item()  # of numpy
    if not isinstance(known, (int, float)):
        raise TypeError(f"{name} must be a number that is known, it is {value!r}")
    return float(known)


def whole_numbers(name: str, value: Any) -> tuple:
    """One or several whole numbers, or sizes, given as the attribute `name`."""
    known = ints(value)
    if known is None:
        raise TypeError(f"{name} must be one or several whole numbers, it is None")
    return known


def shape_arg(value: Any) -> Expr:
    """A shape given as a tuple or as an expression."""
    if isinstance(value, Expr) and not isinstance(value, Tuple):
        return value
    if isinstance(value, Tuple):
        value = [getattr(v, "value", v) for v in value.fields_]
    if isinstance(value, (int, E.PrimExpr)):
        value = (value,)
    if not isinstance(value, Iterable):
        raise TypeError(f"a shape is a tuple of sizes, or a size, not {value!r}")
    return ShapeExpr(tuple(value))


def shape_values(call: Call, index: int) -> ShapeStructInfo:
    """The struct info of an argument that is a shape."""
    info = call.args[index].struct_info_
    if not isinstance(info, ShapeStructInfo):
        raise misfit_kind(call, f"argument {index + 1} must be a shape, it is {show(info)}")
    values = info.values or ()
    if any(type(d) is E.IntImm and d.value < 0 for d in values):
        raise misfit(call, f"the shape {show_shape(values)} has a negative extent")
    return info


def operand(value: Any, like: Any = None) -> Expr:
    """An argument of an operator; a Python number becomes a constant of the other's dtype."""
    if isinstance(value, (bool, int, float)) and not isinstance(value, Expr):
        info = getattr(like, "struct_info_", None)
        dtype = getattr(info, "dtype", None) or None
        return const(value, dtype)
    return as_expr(value)


def dtype_attr(value: Any) -> str:
    """A dtype as an attribute: "void" where none is given."""
    return "void" if value in (None, "", "void") else str(value)


def broadcast_dims(call: Call, a: Sequence[Any], b: Sequence[Any], names: tuple[str, str]
                   ) -> tuple | None:
    """The dimensions two shapes broadcast to; None where that cannot be told."""
    out: list[Any] = []
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    lead = len(longer) - len(shorter)
    out.extend(longer[:lead])
    for k, (x, y) in enumerate(zip(longer[lead:], shorter)):
        if type(x) is E.IntImm and x.value == 1:
            out.append(y)
        elif type(y) is E.IntImm and y.value == 1 or same_dim(x, y):
            out.append(x)
        elif type(x) is E.IntImm and type(y) is E.IntImm or surely_different(x, y):
            # n against n + 1 can still fit where one of them is 1, n = 1; refuse only constants
            if type(x) is E.IntImm and type(y) is E.IntImm:
                raise misfit(call, f"{names[0]} has shape {show_shape(a)} and {names[1]} has shape "
                                   f"{show_shape(b)}: they cannot be broadcast, dimension "
                                   f"{k - len(shorter)} is {x.value} against {y.value}")
            return UNKNOWN
        else:
            return UNKNOWN
    return tuple(out)


def join_dtype(call: Call, a: str, b: str, names: tuple[str, str]) -> str:
    """The one dtype of two operands; "" where one is unknown."""
    if not a or not b:
        return ""
    if a != b:
        raise misfit_kind(call, f"{names[0]} has dtype {a} and {names[1]} has dtype {b}; convert "
                                f'one with R.astype(..., "{a}")')
    return a


def on_vdevice(info: Any, call: Call, operands: Sequence[Any], names: Sequence[str]) -> Any:
    """A result on the virtual device of its operands, of which none may be on another."""
    found = [(name, v) for name, x in zip(names, operands)
             if (v := getattr(x, "vdevice", None)) is not None]
    if not found or not isinstance(info, TensorStructInfo):
        return info
    for name, vdevice in found[1:]:
        if vdevice != found[0][1]:
            raise misfit_kind(call, f"{found[0][0]} is on {found[0][1]} and {name} is on {vdevice}"
                                    ": copy one with R.to_vdevice")
    return TensorStructInfo.from_fields(info.shape, info.dtype, info.ndim, found[0][1])


def like(info: TensorStructInfo, dtype: str | None = None) -> TensorStructInfo:
    """A tensor of the same shape, of another dtype if one is given."""
    if dtype is None or dtype == info.dtype:
        return info
    return TensorStructInfo.from_fields(info.shape, dtype, info.ndim, info.vdevice)


def tensor_of(dims: Sequence[Any] | None, dtype: str, ndim: int = -1) -> TensorStructInfo:
    """A tensor of known or unknown dimensions."""
    if dims is None:
        return TensorStructInfo(None, dtype, ndim=ndim)
    return TensorStructInfo(ShapeExpr(dims), dtype)


def need_float(call: Call, info: TensorStructInfo, name: str = "x") -> None:
    """Refuse an integer tensor."""
    from ...ir.dtype import is_float

    if info.dtype and not is_float(info.dtype):
        raise misfit(call, f"{name} must have a float dtype, it is {show(info)}")


def need_number(call: Call, info: TensorStructInfo, name: str = "x") -> None:
    """Refuse a bool tensor."""
    from ...ir.dtype import is_bool

    if info.dtype and is_bool(info.dtype):
        raise misfit(call, f"{name} must hold numbers, it is {show(info)}; convert it with "
                           'R.astype(..., "int32"), or use a logical operator')


def need_bits(call: Call, info: TensorStructInfo, name: str = "x") -> None:
    """Refuse a float tensor."""
    from ...ir.dtype import is_float

    if info.dtype and is_float(info.dtype):
        raise misfit(call, f"{name} must have an integer dtype or bool, it is {show(info)}")


def need_integer(call: Call, info: TensorStructInfo, name: str) -> None:
    """Refuse all but integers."""
    from ...ir.dtype import is_integer

    if info.dtype and not is_integer(info.dtype):
        raise misfit(call, f"{name} must have an integer dtype, it is {show(info)}")


#: what the rule that runs now leaves to run time: two dimensions that are then the same, and
#: whether the second may go by the name of the first; None while nobody asks
_later: list[tuple[Any, Any, bool]] | None = None


def need_same(call: Any, a: Any, b: Any, message: Callable[[], str]) -> None:
    """Refuse two dimensions that differ; those that may differ are compared at run time."""
    if same_dim(a, b):
        return
    if surely_different(a, b):
        raise misfit(call, message())
    if _later is not None:
        _later.append((a, b, True))


def need_same_count(call: Any, a: Sequence[Any], b: Sequence[Any],
                    message: Callable[[], str]) -> None:
    """Refuse two shapes of different numbers of elements, now or at run time."""
    old, new = product(a), product(b)
    if same_dim(old, new):
        return
    if surely_different(old, new):
        raise misfit(call, message())
    if _later is not None:
        _later.append((new, old, False))


def need_at_least(call: Any, dim: Any, least: Any, message: Callable[[], str]) -> None:
    """Refuse a dimension that is less than another, now or at run time."""
    if type(dim) is E.IntImm and type(least) is E.IntImm:
        if dim.value < least.value:
            raise misfit(call, message())
    elif _later is not None and not Analyzer().can_prove(E.GE(dim, least)):
        _later.append((O.max(dim, least), dim, False))


def need_multiple(call: Any, dim: Any, factor: int, message: Callable[[], str]) -> None:
    """Refuse a dimension that a number does not divide, now or at run time."""
    if type(dim) is E.IntImm:
        if dim.value % factor:
            raise misfit(call, message())
    elif _later is not None and factor != 1:
        whole_part = O.mul(O.floordiv(dim, as_dim(factor)), as_dim(factor))
        if not same_dim(whole_part, dim):
            _later.append((whole_part, dim, False))


def need_numbers(call: Call, least: int, *names: str) -> None:
    """Refuse attributes of which a number is less than `least`."""
    for name in names:
        value = call.attrs[name]
        if any(isinstance(v, int) and v < least
               for v in (value if isinstance(value, tuple) else (value,))):
            raise misfit(call, f"{name} is {value}, it cannot be less than {least}")


def need_some(call: Call, info: TensorStructInfo, axis: int, count: Any, name: str) -> None:
    """Refuse a dimension of extent 0 that `count` indices look into."""
    none = type(count) is E.IntImm and count.value == 0
    if info.dims is not None and not none:
        some = as_dim(1) if type(count) is E.IntImm else O.min(count, as_dim(1))
        need_at_least(call, info.dims[axis], some, lambda: (
            f"{name} is {show(info)}: there is nothing to be taken along dimension {axis}"))


def need_at_most(call: Any, a: Any, b: Any, message: Callable[[], str]) -> None:
    """Refuse a dimension that may be larger than another."""
    if not same_dim(a, b) and not Analyzer().can_prove(E.LE(a, b)):
        known = type(a) is E.IntImm and type(b) is E.IntImm
        raise misfit(call, message() + ("" if known else
                     f"; here {dim_text(a)} may be larger than {dim_text(b)}: name the shapes by "
                     "R.match_cast so that it is not"))


def one_of(call: Any, name: str, value: Any, options: Sequence[Any]) -> None:
    """Refuse an attribute that is none of the options."""
    if value not in options:
        raise misfit(call, f"{name} is {value!r}, it must be one of "
                           + ", ".join(map(repr, options)))


def need_same_dims(call: Any, first: TensorStructInfo, second: TensorStructInfo,
                   names: tuple[str, str]) -> None:
    """Refuse two tensors of different shapes."""
    def text() -> str:
        return (f"{names[0]} is {show(first)} and {names[1]} is {show(second)}: they must have "
                "one shape")

    if -1 not in (first.ndim, second.ndim) and first.ndim != second.ndim:
        raise misfit(call, text())
    for a, b in zip(first.dims or (), second.dims or ()):
        need_same(call, a, b, text)


def need_fill(call: Any, info: TensorStructInfo, dims: Sequence[Any], name: str) -> None:
    """Refuse a tensor that cannot be broadcast to a shape."""
    def text() -> str:
        return f"{name} is {show(info)}, it cannot be broadcast to {show_shape(dims)}"

    have = info.dims or ()
    if len(have) > len(dims):
        raise misfit(call, text())
    for a, b in zip(reversed(have), reversed(dims)):
        if not (type(a) is E.IntImm and a.value == 1):
            need_same(call, a, b, text)


def same_at_run_time(call: Call) -> list[tuple[Any, Any, bool]]:
    """The pairs of dimensions, or of what is computed from them, that must agree and may not, and
    whether one may be named for the other."""
    global _later
    before, _later = _later, []
    try:
        above("infer_call")(call)
        return _later
    finally:
        _later = before


def product(dims: Sequence[Any]) -> Any:
    """The number of elements of a shape."""
    total: Any = E.IntImm("int64", 1)
    numbers, dims = 1, [as_dim(d) for d in dims]
    for d in dims:
        total = O.mul(total, d)
        numbers *= d.value if type(d) is E.IntImm else 1
    if numbers >= 2 ** 63:
        raise misfit("shape", f"{show_shape(dims)} has more elements than int64 can count")
    return total


def as_tuple_expr(tensors: Any) -> Expr:
    """A list of tensors as a Tuple; an expression as it is."""
    return Tuple(tensors) if isinstance(tensors, (tuple, list)) else as_expr(tensors)


__all__ = [n for n in dir() if not n.startswith("_")]
