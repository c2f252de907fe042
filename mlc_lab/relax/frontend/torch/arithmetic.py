"""Rules of elementwise operators: arithmetic with torch's type promotion, comparisons."""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from ....ir.dtype import is_float, numpy_dtype
from ....tir import op as O
from ....tir.expr import Cast, Div, PrimExpr
from ....topi.utils import sum_type
from .... import topi
from ... import op
from .importer import Importer, is_tensor, rule

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Operand

_FLOAT = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "log",
          "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh")
_ANY = ("abs", "sign", "square", "isfinite", "isinf", "isnan")
_ROUNDED = ("ceil", "floor", "trunc")
_ALIASES = {
    "abs": ("absolute",), "acos": ("arccos",), "asin": ("arcsin",), "atan": ("arctan",),
    "acosh": ("arccosh",), "asinh": ("arcsinh",), "atanh": ("arctanh",), "trunc": ("fix",),
    "sign": ("sgn",), "erf": ("special_erf",), "sigmoid": ("special_expit", "expit"),
}


def as_float(im: Importer, x: Operand) -> Any:
    """An integer tensor as torch's default float; a float tensor as it is."""
    return x if is_float(im.dtype(x)) else im.cast(x, "float32")


def _unary(name: str, floating: bool) -> None:
    build = getattr(op, name)

    @rule(name, *_ALIASES.get(name, ()))
    def translate(im: Importer, x: Operand) -> Any:
        if not is_tensor(x):
            return _of_number(name, x)
        return im.emit(build(as_float(im, x) if floating else x))


def _of_number(name: str, x: Operand) -> Any:
    """A function of a number or of a size."""
    if isinstance(x, PrimExpr):
        if name in _ROUNDED:
            return whole(x, name)
        return getattr(O, name)(O.cast(x, "float64") if name in _FLOAT else x)
    return getattr(operator if name == "abs" else math, name)(x)


for _name in _FLOAT:
    _unary(_name, True)
for _name in _ANY:
    _unary(_name, False)


def whole(x: Operand, how: str = "trunc") -> Any:
    """A number or a quotient of sizes as a whole number."""
    if not isinstance(x, PrimExpr):
        return getattr(math, how)(x)
    if x.dtype.startswith("int"):
        return x
    parts = [e.value for e in (x.a, x.b) if isinstance(e, Cast)] if isinstance(x, Div) else []
    if len(parts) == 2 and all(e.dtype.startswith("int") for e in parts):
        a, b = parts
        return O.floordiv(a + b - 1, b) if how == "ceil" else O.floordiv(a, b)
    return O.cast(getattr(O, how)(x), "int64")


def _rounding(name: str) -> None:
    build = getattr(op, name)

    @rule(name, *_ALIASES.get(name, ()))
    def translate(im: Importer, x: Operand) -> Any:
        if not is_tensor(x):
            return _of_number(name, x)
        return im.emit(build(x)) if is_float(im.dtype(x)) else x


for _name in _ROUNDED:
    _rounding(_name)


@rule("round")
def _round(im: Importer, x: Any, *, decimals: int = 0) -> Any:
    if not is_tensor(x):
        return round(x, decimals) if decimals else round(x)
    if not is_float(im.dtype(x)):
        if decimals < 0:
            raise ValueError("round of integers to tens is not translated: cast to float before")
        return x
    if decimals == 0:
        return im.emit(op.round(x))
    by = im.const(10.0 ** abs(decimals), im.dtype(x))
    there, back = (op.multiply, op.divide) if decimals > 0 else (op.divide, op.multiply)
    return im.emit(back(im.emit(op.round(im.emit(there(x, by)))), by))


@rule("frac")
def _frac(im: Importer, x: Operand) -> Any:
    return im.emit(op.subtract(x, im.emit(op.trunc(x))))


@rule("neg", "negative")
def _neg(im: Importer, x: Operand) -> Any:
    return im.emit(op.negative(x)) if is_tensor(x) else -x


@rule("positive", "pos")
def _pos(im: Importer, x: Operand) -> Any:
    return x


@rule("bitwise_not", "invert", "inv")
def _bitwise_not(im: Importer, x: Any) -> Any:
    if not is_tensor(x):
        return ~x
    return im.emit((op.logical_not if im.dtype(x) == "bool" else op.bitwise_not)(x))


@rule("logical_not", "not", "not_", "sym_not")
def _logical_not(im: Importer, x: Operand) -> Any:
    if not is_tensor(x):
        return O.logical_not(x) if isinstance(x, PrimExpr) else not x
    return im.emit(op.logical_not(im.cast(x, "bool")))


@rule("signbit")
def _signbit(im: Importer, x: Expr) -> Any:
    if not is_float(im.dtype(x)):
        if im.dtype(x) == "bool" or im.dtype(x).startswith("uint"):
            return im.zeros(im.shape(x), "bool")
        return im.emit(op.less(x, im.const(0, im.dtype(x))))
    return im.kernel(topi.special.signbit, x)


def _special(name: str, *aliases: str) -> None:
    """A function of one float that Relax has no operator for."""
    compiled = getattr(topi.special, name)

    @rule(name, *aliases)
    def translate(im: Importer, x: Operand) -> Any:
        if not is_tensor(x):
            return getattr(math, name)(x)
        return im.kernel(compiled, as_float(im, x), name=name)


for _names in (("log2",), ("log10",), ("log1p", "special_log1p"), ("exp2", "special_exp2"),
               ("expm1", "special_expm1"), ("reciprocal",), ("erfc", "special_erfc"),
               ("erfinv", "special_erfinv"), ("lgamma", "special_gammaln"),
               ("digamma", "special_digamma", "special_psi"), ("deg2rad",), ("rad2deg",),
               ("sinc", "special_sinc")):
    _special(*_names)


# ------------------------------------------------------------------------------- two operands


def numbers(*values: Operand) -> bool:
    """Whether no operand is a tensor: the operation is on sizes or numbers."""
    return not any(map(is_tensor, values))


def _binary(names: tuple[str, ...], build: Callable[..., Expr], plain: Callable[..., Any]) -> None:
    @rule(*names)
    def translate(im: Importer, a: Operand, b: Operand, *, alpha: Operand = 1) -> Any:
        if numbers(a, b):
            return plain(a, b if alpha == 1 else b * alpha)
        if alpha == 1:
            return im.emit(build(*im.pair(a, b)))
        return _in_wide(im, lambda x, y: im.emit(build(*im.pair(x, _times_number(
            im, y, alpha)))), a, b)


def _in_wide(im: Importer, compute: Callable[..., Any], *values: Operand) -> Any:
    """Something of several steps. That of 16-bit floats is computed in float32, as torch does it:
    300 * 300 is none of float16's numbers, also where the next step makes it small."""
    own = functools.reduce(im.promoted_dtypes, map(im.dtype, filter(is_tensor, values)))
    if sum_type(own) == own:
        return compute(*values)
    return im.cast(compute(*(im.cast(v, sum_type(own)) for v in values)), own)


for _names, _build, _plain in (
        (("add", "iadd"), op.add, operator.add),
        (("sub", "subtract", "isub"), op.subtract, operator.sub)):
    _binary(_names, _build, _plain)


def _scaled(im: Importer, build: Callable[..., Expr], a: Operand, b: Operand) -> Any:
    """A product or a quotient. A number that a 16-bit float does not hold (0.1, 1e5) stays what it
    is: torch computes with it in float32."""
    dtype = im.promoted(a, b)
    wide = sum_type(dtype)
    with np.errstate(over="ignore"):
        held = wide == dtype or all(
            float(np.asarray(v, numpy_dtype(dtype))) == v for v in (a, b)
            if isinstance(v, (int, float)))
    if held:
        return im.emit(build(*im.pair(a, b)))
    return im.cast(im.emit(build(im.operand(a, wide), im.operand(b, wide))), dtype)


@rule("mul", "multiply", "imul")
def _product(im: Importer, a: Operand, b: Operand) -> Any:
    return a * b if numbers(a, b) else _scaled(im, op.multiply, a, b)


def _times_number(im: Importer, x: Operand, value: Operand) -> Any:
    return x if value == 1 else _product(im, x, value)


def _plain_binary(names: tuple[str, ...], build: Callable[..., Expr], plain: Callable[..., Any]
                  ) -> None:
    @rule(*names)
    def translate(im: Importer, a: Operand, b: Operand) -> Any:
        if numbers(a, b):
            return plain(a, b)
        return im.emit(build(*im.pair(a, b)))


def _shift(build: Callable) -> Callable:
    return lambda a, b: build(a, b)


for _names, _build, _plain in (
        (("maximum",), op.maximum, O.max_value_of), (("minimum",), op.minimum, O.min_value_of),
        (("eq",), op.equal, operator.eq), (("ne", "not_equal"), op.not_equal, operator.ne),
        (("lt", "less"), op.less, operator.lt), (("le", "less_equal"), op.less_equal, operator.le),
        (("gt", "greater"), op.greater, operator.gt),
        (("ge", "greater_equal"), op.greater_equal, operator.ge),
        (("remainder", "mod", "imod"), op.floor_mod, operator.mod), (("fmod",), op.mod, math.fmod),
        (("bitwise_and", "and", "iand"), op.bitwise_and, operator.and_),
        (("bitwise_or", "or", "ior"), op.bitwise_or, operator.or_),
        (("bitwise_xor", "xor", "ixor"), op.bitwise_xor, operator.xor),
        (("lshift", "bitwise_left_shift", "ilshift"), op.left_shift, operator.lshift),
        (("rshift", "bitwise_right_shift", "irshift"), op.right_shift, operator.rshift)):
    _plain_binary(_names, _build, _plain)


def _floating(name: str, build: Callable[[Importer, Any, Any], Any], *aliases: str) -> None:
    """An operator of two floats; integers become float32."""
    @rule(name, *aliases)
    def translate(im: Importer, a: Operand, b: Operand) -> Any:
        dtype = im.promoted(a, b)
        dtype = dtype if is_float(dtype) else "float32"
        return build(im, im.operand(a, dtype), im.operand(b, dtype))


def _kernel_of_two(name: str) -> Callable[[Importer, Any, Any], Any]:
    compiled = getattr(topi.special, name)
    return lambda im, a, b: im.kernel(compiled, *im.tensors(a, b), name=name)


_floating("atan2", lambda im, a, b: im.emit(op.atan2(a, b)), "arctan2")
_floating("logaddexp", lambda im, a, b: im.emit(op.log_add_exp(a, b)))
for _name in ("logaddexp2", "hypot", "copysign", "nextafter", "xlogy"):
    _floating(_name, _kernel_of_two(_name), f"special_{_name}")


@rule("ldexp")
def _ldexp(im: Importer, a: Operand, b: Operand) -> Any:
    dtype = im.promoted(a, b)
    dtype = dtype if is_float(dtype) else "float32"
    power = im.kernel(topi.special.exp2, im.tensor(b, dtype), name="exp2")
    return im.emit(op.multiply(im.tensor(a, dtype), power))


@rule("heaviside")
def _heaviside(im: Importer, x: Operand, values: Operand) -> Any:
    x, values = im.pair(x, values)
    dtype = im.dtype(x)
    zero = im.const(0, dtype)
    step = im.cast(im.emit(op.greater(x, zero)), dtype)
    return im.emit(op.where(im.emit(op.equal(x, zero)), values, step))


def _of_two(name: str, ours: Callable) -> None:
    """fmax and fmin: what is not a number gives way to the other."""
    @rule(name)
    def translate(im: Importer, a: Operand, b: Operand) -> Any:
        a, b = im.pair(a, b)
        out = im.emit(ours(a, b))
        if not is_float(im.dtype(out)):
            return out
        out = im.emit(op.where(im.emit(op.isnan(a)), b, out))
        return im.emit(op.where(im.emit(op.isnan(b)), a, out))


_of_two("fmax", op.maximum)
_of_two("fmin", op.minimum)


@rule("angle")
def _angle(im: Importer, x: Operand) -> Any:
    """Pi below 0, 0 elsewhere."""
    x = as_float(im, x)
    zero = im.const(0, im.dtype(x))
    out = im.emit(op.where(im.emit(op.less(x, zero)), im.const(math.pi, im.dtype(x)), zero))
    return im.emit(op.where(im.emit(op.isnan(x)), x, out))


@rule("isneginf")
def _isneginf(im: Importer, x: Expr) -> Any:
    if not is_float(im.dtype(x)):
        return im.zeros(im.shape(x), "bool")
    return im.emit(op.equal(x, im.const(-math.inf, im.dtype(x))))


@rule("isposinf")
def _isposinf(im: Importer, x: Expr) -> Any:
    if not is_float(im.dtype(x)):
        return im.zeros(im.shape(x), "bool")
    return im.emit(op.equal(x, im.const(math.inf, im.dtype(x))))


@rule("nan_to_num")
def _nan_to_num(im: Importer, x: Operand, nan: float | None = None, posinf: float | None = None,
                neginf: float | None = None) -> Any:
    dtype = im.dtype(x)
    if not is_float(dtype):
        return x
    largest = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38,
               "float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308}[dtype]
    for at, value in ((im.emit(op.isnan(x)), 0.0 if nan is None else nan),
                      (_isposinf(im, x), largest if posinf is None else posinf),
                      (_isneginf(im, x), -largest if neginf is None else neginf)):
        x = im.emit(op.where(at, im.const(value, dtype), x))
    return x


@rule("isclose")
def _isclose(im: Importer, a: Operand, b: Operand, rtol: float = 1e-5, atol: float = 1e-8,
             equal_nan: bool = False) -> Any:
    a, b = im.pair(a, b)
    same = im.emit(op.equal(a, b))
    if equal_nan and is_float(im.dtype(a)):
        both = im.emit(op.logical_and(im.emit(op.isnan(a)), im.emit(op.isnan(b))))
        same = im.emit(op.logical_or(same, both))
    dtype = im.dtype(a) if is_float(im.dtype(a)) else "float64"
    a, b = im.cast(a, dtype), im.cast(b, dtype)
    away = im.emit(op.abs(im.emit(op.subtract(a, b))))
    most = im.emit(op.multiply(im.emit(op.abs(b)), im.const(rtol, dtype)))
    most = im.emit(op.add(most, im.const(atol, dtype)))
    near = im.emit(op.less_equal(away, most))
    near = im.emit(op.logical_and(near, im.emit(op.isfinite(away))))
    return im.emit(op.logical_or(same, near))


@rule("rsub")
def _rsub(im: Importer, a: Operand, b: Operand, alpha: Operand = 1) -> Any:
    return _in_wide(im, lambda x, y: im.emit(op.subtract(*im.pair(y, _times_number(
        im, x, alpha)))), a, b)


@rule("div", "divide", "truediv", "true_divide", "itruediv")
def divided(im: Importer, a: Operand, b: Operand, *, rounding_mode: str | None = None) -> Any:
    """A quotient: true, or rounded ("floor", "trunc")."""
    if numbers(a, b):
        return _quotient(a, b, rounding_mode)
    x, y = im.pair(a, b)
    if rounding_mode == "floor":
        return im.emit(op.floor_divide(x, y))
    integers = not is_float(im.dtype(x))
    if integers and rounding_mode == "trunc":
        return im.emit(op.divide(x, y))
    if integers:
        out = im.emit(op.divide(im.operand(a, "float32"), im.operand(b, "float32")))
    else:
        out = _scaled(im, op.divide, a, b)
    return im.emit(op.trunc(out)) if rounding_mode == "trunc" else out


def _quotient(a: Operand, b: Operand, rounding_mode: str | None) -> Any:
    if rounding_mode is not None:
        return a // b
    if all(isinstance(v, (int, float)) for v in (a, b)):
        return a / b
    x, y = (O.cast(O.convert(v), "float64") for v in (a, b))
    return Div(x, y)


@rule("floor_divide", "floordiv", "ifloordiv")
def _floor_divide(im: Importer, a: Operand, b: Operand) -> Any:
    return a // b if numbers(a, b) else im.emit(op.floor_divide(*im.pair(a, b)))


@rule("pow", "power", "float_power", "ipow", "special_pow")
def _pow(im: Importer, a: Operand, b: Operand) -> Any:
    if numbers(a, b):
        return _power_of_sizes(a, b)
    if im.node is not None and "float_power" in str(im.node.target):
        a, b = (float(v) if isinstance(v, (int, float)) else im.cast(v, "float64")
                for v in (a, b))
    if is_tensor(a) and isinstance(b, (int, float)) and not isinstance(b, bool) and (
            is_float(im.dtype(a)) or isinstance(b, int)):
        if b == 2:
            return _times(im, a, a)
        if b == 3:
            return _times(im, _times(im, a, a), a)
        if b == 0.5:
            return im.emit(op.sqrt(a))
        if b == 1:
            return a
    a, b = im.pair(a, b)
    if im.dtype(a if is_tensor(a) else b) == "bool":
        a, b = im.tensors(a, b)
        return im.emit(op.logical_or(a, im.emit(op.logical_not(b))))
    if not is_float(im.dtype(a)):
        return im.kernel(topi.special.integer_power, *im.tensors(a, b), name="power")
    return im.emit(op.power(a, b))


def _power_of_sizes(a: Operand, b: Any) -> Any:
    if not (isinstance(a, PrimExpr) or isinstance(b, PrimExpr)):
        return a ** b
    if isinstance(b, int) and 0 <= b <= 64:
        return math.prod([a] * b)
    if isinstance(a, int) and isinstance(b, PrimExpr) and not is_float(b.dtype):
        if a == 2:
            return O.shift_left(O.const(1, "int64"), O.cast(b, "int64"))
        raise ValueError(f"{a} to the power of a size is not translated, only 2 is: compute it "
                         "with tensors")
    return O.pow(*(O.cast(O.convert(v), "float64") for v in (a, b)))


def _times(im: Importer, a: Operand, b: Operand) -> Any:
    if im.dtype(a) == "bool":
        return im.emit(op.logical_and(a, b))
    return im.emit(op.multiply(a, b))


@rule("rpow")
def _rpow(im: Importer, a: Operand, b: Operand) -> Any:
    return _pow(im, b, a)


def _logical(name: str) -> None:
    build = getattr(op, name)

    @rule(name)
    def translate(im: Importer, a: Operand, b: Operand) -> Any:
        return im.emit(build(*(im.operand(v, "bool") for v in (a, b))))


for _name in ("logical_and", "logical_or", "logical_xor"):
    _logical(_name)


@rule("where")
def _where(im: Importer, condition: Expr, a: Operand | None = None, b: Operand | None = None
           ) -> Any:
    if a is None or b is None:
        from .indexing import true_places
        from .views import _select

        places = true_places(im, condition)
        return tuple(_select(im, places, 0, k) for k in range(im.ndim(condition)))
    return im.emit(op.where(im.cast(condition, "bool"), *im.tensors(a, b)))


def added(im: Importer, a: Operand, b: Operand) -> Any:
    """a + b with torch's promotion."""
    return im.emit(op.add(*im.pair(a, b)))


@rule("addcmul")
def _addcmul(im: Importer, x: Expr, a: Expr, b: Expr, *, value: float = 1) -> Any:
    return _in_wide(im, lambda x, a, b: added(im, x, _times_number(
        im, _product(im, a, b), value)), x, a, b)


@rule("addcdiv")
def _addcdiv(im: Importer, x: Expr, a: Expr, b: Expr, *, value: float = 1) -> Any:
    return _in_wide(im, lambda x, a, b: added(im, x, _times_number(
        im, divided(im, a, b), value)), x, a, b)


@rule("lerp")
def _lerp(im: Importer, a: Operand, b: Operand, weight: Operand) -> Any:
    return _in_wide(im, lambda a, b, weight: added(im, a, _product(
        im, im.emit(op.subtract(*im.pair(b, a))), weight)), a, b, weight)


__all__ = ["added", "as_float", "divided", "numbers", "whole"]
