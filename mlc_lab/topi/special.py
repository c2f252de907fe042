"""Special functions of one and two elements: erfinv, lgamma, hypot, copysign, ...

Where the target has the function it is called; the others are polynomials, evaluated in the type of
the elements, half types in float32. What a formula uses several times is named by `Keep`.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

from .. import te
from ..ir import dtype as dt
from ..te.tensor import Tensor
from ..tir import ir_builder
from ..tir import op as O
from ..tir.expr import PrimExpr, Var
from .broadcast import broadcast_shape, read
from .elementwise import elementwise
from .utils import product, simplify, unravel, zero_of


def _wide(dtype: str) -> str:
    """The type that a function of `dtype` is computed in."""
    return dtype if dtype == "float64" else "float32"


class Keep:
    """Names for values: `keep(e)` is a variable, and `around(out)` binds all of them by lets."""

    def __init__(self) -> None:
        self.named: list[tuple[Var, PrimExpr]] = []

    def __call__(self, value: PrimExpr) -> Var:
        var = Var(f"t{len(self.named)}", value.dtype)
        self.named.append((var, value))
        return var

    def around(self, out: PrimExpr) -> PrimExpr:
        """The result in the lets that bind the variables."""
        for var, value in reversed(self.named):
            out = O.let(var, value, out)
        return out


def _unary(name: str, fn: Callable[[PrimExpr, Keep], PrimExpr], doc: str | None
           ) -> Callable[[Tensor], Tensor]:
    def operator(x: Tensor) -> Tensor:
        def element(e: PrimExpr) -> PrimExpr:
            keep = Keep()
            out = fn(keep(O.cast(e, _wide(e.dtype))), keep)
            return keep.around(out if out.dtype == "bool" else O.cast(out, e.dtype))

        return elementwise(x, element, "compute")

    operator.__name__, operator.__doc__ = name, doc
    return operator


def _plain(name: str, fn: Callable[[PrimExpr], PrimExpr], doc: str) -> Callable[[Tensor], Tensor]:
    return _unary(name, lambda x, keep: fn(x), doc)


def _binary(name: str, fn: Callable[[PrimExpr, PrimExpr, Keep], PrimExpr], doc: str | None
            ) -> Callable:
    def operator(a: Tensor, b: Tensor) -> Tensor:
        shape = broadcast_shape(a.shape, b.shape)

        def element(*i: PrimExpr) -> PrimExpr:
            x, y = read(a, i, shape), read(b, i, shape)
            keep = Keep()
            if not dt.is_float(x.dtype):
                return keep.around(O.cast(fn(keep(x), keep(y), keep), x.dtype))
            wide = _wide(x.dtype)
            out = fn(keep(O.cast(x, wide)), keep(O.cast(y, wide)), keep)
            return keep.around(O.cast(out, x.dtype))

        return te.compute(shape, element, name=f"T_{name}", tag="broadcast")

    operator.__name__, operator.__doc__ = name, doc
    return operator


def _c(value: float, e: PrimExpr) -> PrimExpr:
    return O.const(value, e.dtype)


def _poly(x: PrimExpr, coefficients: Sequence[float]) -> PrimExpr:
    """Horner's rule, the highest power first."""
    out = _c(coefficients[0], x)
    for c in coefficients[1:]:
        out = out * x + _c(c, x)
    return out


# ------------------------------------------------------------------------------- one element


def _expm1(x: PrimExpr, keep: Keep) -> PrimExpr:
    """exp(x) - 1 without cancellation near 0: Kahan's quotient (exp(x) - 1) x / log(exp(x))."""
    u = keep(O.exp(x))
    less = keep(u - _c(1, x))
    near = O.select(O.equal(u, _c(1, x)), x, less * x / O.log(u))
    return O.select(O.less(O.abs(x), _c(0.5, x)), near, less)


def _log1p(x: PrimExpr, keep: Keep) -> PrimExpr:
    """log(1 + x) without cancellation near 0: Kahan's log(u) x / (u - 1) with u = 1 + x."""
    u = keep(x + _c(1, x))
    log = keep(O.log(u))
    near = O.select(O.equal(u, _c(1, x)), x, log * x / (u - _c(1, x)))
    return O.select(O.less(O.abs(x), _c(0.5, x)), near, log)


def _sinc(x: PrimExpr, keep: Keep) -> PrimExpr:
    turned = keep(x * _c(math.pi, x))
    return O.select(O.equal(x, _c(0, x)), _c(1, x), O.sin(turned) / turned)


def _erfc(x: PrimExpr, keep: Keep) -> PrimExpr:
    """1 - erf(x), whose tails keep their digits: a Chebyshev series in 2 / (2 + |x|).

    Press et al., Numerical Recipes, third edition, section 6.2.2 (relative error 1.2e-16).
    """
    z = keep(O.abs(x))
    t = keep(_c(2, x) / (_c(2, x) + z))
    y = keep(_c(4, x) * t - _c(2, x))
    d, previous = _c(0, x), _c(0, x)
    for c in reversed(_ERFC[1:]):
        d, previous = keep(y * d - previous + _c(c, x)), d
    out = t * O.exp(_c(0.5, x) * (_c(_ERFC[0], x) + y * d) - previous - z * z)
    out = keep(O.select(O.equal(z, O.infinity(x.dtype)), _c(0, x), out))
    return O.select(O.isnan(x), x, O.select(O.less(x, _c(0, x)), _c(2, x) - out, out))


_ERFC = (
    -1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3,
    -9.46595344482036e-4, 3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5,
    -1.624290004647e-6, 1.303655835580e-6, 1.5626441722e-8, -8.5238095915e-8, 6.529054439e-9,
    5.059343495e-9, -9.91364156e-10, -2.27365122e-10, 9.6467911e-11, 2.394038e-12, -6.886027e-12,
    8.94487e-13, 3.13092e-13, -1.12708e-13, 3.81e-16, 7.106e-15, -1.523e-15, -9.4e-17, 1.21e-16,
    -2.8e-17)


def _erfinv(x: PrimExpr, keep: Keep) -> PrimExpr:
    """The inverse of erf, and two steps of Halley's method where the type is float64.

    M. Giles, Approximating the erfinv function, 2010.
    """
    one = _c(1, x)
    w = keep(_c(-1, x) * O.log((one - x) * (one + x)))
    near, far = keep(w - _c(2.5, x)), keep(O.sqrt(w) - _c(3, x))
    small = _poly(near, (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06,
                         2.1858087e-04, -1.25372503e-03, -4.17768164e-03, 0.246640727, 1.50140941))
    large = _poly(far, (-2.00214257e-04, 1.00950558e-04, 1.34934322e-03, -3.67342844e-03,
                        5.73950773e-03, -7.6224613e-03, 9.43887047e-03, 1.00167406, 2.83297682))
    y = keep(O.select(O.less(w, _c(5, x)), small, large) * x)
    if x.dtype == "float64":
        for _ in range(2):
            tail = keep(_erfc(keep(O.abs(y)), keep))
            beyond = keep((one - O.abs(x)) - tail)
            error = O.select(O.less(O.abs(x), _c(0.5, x)), O.erf(y) - x,
                             O.select(O.greater(x, _c(0, x)), beyond, O.neg(beyond)))
            step = keep(error / (_c(2 / math.sqrt(math.pi), x) * O.exp(_c(-1, x) * y * y)))
            y = keep(y - step / (one + y * step))
    infinite = O.select(O.greater(x, _c(0, x)), O.infinity(x.dtype),
                        O.neg(O.infinity(x.dtype)))
    y = O.select(O.equal(O.abs(x), one), infinite, y)
    return O.select(O.greater(O.abs(x), one), _c(math.nan, x), y)


#: Lanczos's approximation with g = 7 and 9 terms, P. Godfrey, 2001
_LANCZOS = (0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
            -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
            1.5056327351493116e-7)


def _lgamma(x: PrimExpr, keep: Keep) -> PrimExpr:
    """log |gamma(x)|: Lanczos's sum, reflected below 1/2; in float64, since it cancels near 1, 2.

    gamma(x) gamma(1 - x) = pi / sin(pi x).
    """
    wide = keep(O.cast(x, "float64"))
    reflected = keep(O.less(wide, _c(0.5, wide)))
    z = keep(O.select(reflected, _c(1, wide) - wide, wide) - _c(1, wide))
    total = _c(_LANCZOS[0], wide)
    for k, c in enumerate(_LANCZOS[1:], 1):
        total = total + _c(c, wide) / (z + _c(k, wide))
    t = keep(z + _c(7.5, wide))
    out = keep((z + _c(0.5, wide)) * O.log(t) - t + O.log(total)
               + _c(0.5 * math.log(2 * math.pi), wide))
    sine = O.abs(O.sin((wide - O.floor(wide)) * _c(math.pi, wide)))
    out = O.select(reflected, _c(math.log(math.pi), wide) - O.log(sine) - out, out)
    pole = O.logical_and(O.less_equal(wide, _c(0, wide)), O.equal(wide, O.floor(wide)))
    infinite = O.infinity("float64")
    out = O.select(O.logical_or(pole, O.equal(O.abs(wide), infinite)), infinite, out)
    return O.cast(O.select(O.isnan(wide), wide, out), x.dtype)


def _digamma(x: PrimExpr, keep: Keep) -> PrimExpr:
    """The derivative of log gamma: its asymptotic series after ten steps of the recurrence
    psi(x) = psi(x + 1) - 1 / x, reflected below 0. Abramowitz and Stegun, 6.3.18."""
    wide = keep(O.cast(x, "float64"))
    reflected = keep(O.less(wide, _c(0, wide)))
    z = keep(O.select(reflected, _c(1, wide) - wide, wide))
    out = _c(0, wide)
    for _ in range(10):
        out = keep(out - _c(1, wide) / z)
        z = keep(z + _c(1, wide))
    square = keep(_c(1, wide) / (z * z))
    series = _poly(square, (-1 / 12, 691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12, 0))
    out = keep(out + O.log(z) - _c(0.5, wide) / z + series)
    turn = keep((wide - O.floor(wide)) * _c(math.pi, wide))
    out = O.select(reflected, out - _c(math.pi, wide) * O.cos(turn) / O.sin(turn), out)
    pole = O.logical_and(reflected, O.equal(wide, O.floor(wide)))
    out = O.select(pole, _c(math.nan, wide), out)
    end = O.infinity("float64")
    out = O.select(O.equal(wide, _c(0, wide)), O.neg(_copysign(end, wide, keep)), out)
    return O.cast(O.select(O.equal(wide, end), wide, out), x.dtype)


def _reciprocal(x: PrimExpr) -> PrimExpr:
    return _c(1, x) / x


def _signbit(x: PrimExpr) -> PrimExpr:
    bits = O.reinterpret("int64" if x.dtype == "float64" else "int32", x)
    return O.less(bits, O.const(0, bits.dtype))


log2 = _plain("log2", O.log2, "The logarithm to base 2.")
log10 = _plain("log10", O.log10, "The logarithm to base 10.")
log1p = _unary("log1p", _log1p, _log1p.__doc__)
exp2 = _plain("exp2", O.exp2, "2 to the power x.")
expm1 = _unary("expm1", _expm1, _expm1.__doc__)
sinc = _unary("sinc", _sinc, "sin(pi x) / (pi x), and 1 at 0.")
erfc = _unary("erfc", _erfc, _erfc.__doc__)
erfinv = _unary("erfinv", _erfinv, _erfinv.__doc__)
lgamma = _unary("lgamma", _lgamma, _lgamma.__doc__)
digamma = _unary("digamma", _digamma, _digamma.__doc__)
reciprocal = _plain("reciprocal", _reciprocal, "1 / x.")
signbit = _plain("signbit", _signbit, "Whether the sign is negative, of -0 and -nan too.")
deg2rad = _plain("deg2rad", lambda x: x * _c(math.pi / 180, x), "Degrees as radians.")
rad2deg = _plain("rad2deg", lambda x: x * _c(180 / math.pi, x), "Radians as degrees.")


# ------------------------------------------------------------------------------- two elements


def _copysign(a: PrimExpr, b: PrimExpr, keep: Keep) -> PrimExpr:
    """|a| with the sign of b."""
    size = keep(O.abs(a))
    return O.select(_signbit(b), O.neg(size), size)


def _ordered(a: PrimExpr, b: PrimExpr, keep: Keep) -> tuple[PrimExpr, PrimExpr]:
    """The larger and the smaller of two."""
    less = keep(O.less(a, b))
    return keep(O.select(less, b, a)), keep(O.select(less, a, b))


def _hypot(a: PrimExpr, b: PrimExpr, keep: Keep) -> PrimExpr:
    """sqrt(a a + b b) without overflow: the larger times sqrt(1 + (smaller / larger)^2)."""
    large, small = _ordered(keep(O.abs(a)), keep(O.abs(b)), keep)
    infinite = O.infinity(a.dtype)
    ratio = keep(O.select(O.equal(large, _c(0, a)), _c(0, a), small / large))
    out = large * O.sqrt(_c(1, a) + ratio * ratio)
    out = O.select(O.logical_or(O.isnan(a), O.isnan(b)), a + b, out)
    return O.select(O.logical_or(O.equal(O.abs(a), infinite), O.equal(O.abs(b), infinite)),
                    infinite, out)


def _logaddexp2(a: PrimExpr, b: PrimExpr, keep: Keep) -> PrimExpr:
    """log2(2^a + 2^b)."""
    large, small = _ordered(a, b, keep)
    out = large + O.log2(_c(1, a) + O.exp2(small - large))
    same = O.equal(a, b)  # infinities, of which the difference is not a number
    return O.select(O.logical_and(same, O.equal(O.abs(a), O.infinity(a.dtype))), a, out)


def _nextafter(a: PrimExpr, b: PrimExpr, keep: Keep) -> PrimExpr:
    """The next number from a in the direction of b, by the order of their bits."""
    bits = "int64" if a.dtype == "float64" else "int32"
    here = keep(O.reinterpret(bits, a))
    one = O.const(1, bits)
    away = O.equal(O.greater(b, a), O.greater(a, _c(0, a)))
    moved = O.reinterpret(a.dtype, O.select(away, here + one, here - one))
    first = _copysign(O.reinterpret(a.dtype, one), b, keep)
    out = O.select(O.equal(a, _c(0, a)), first, moved)
    out = O.select(O.equal(a, b), b, out)
    return O.select(O.logical_or(O.isnan(a), O.isnan(b)), a + b, out)


def _xlogy(a: PrimExpr, b: PrimExpr, keep: Keep) -> PrimExpr:
    """a log(b), and 0 where a is 0 and b a number."""
    zero = O.logical_and(O.equal(a, _c(0, a)), O.logical_not(O.isnan(b)))
    return O.select(zero, _c(0, a), a * O.log(b))


copysign = _binary("copysign", _copysign, _copysign.__doc__)
hypot = _binary("hypot", _hypot, _hypot.__doc__)
logaddexp2 = _binary("logaddexp2", _logaddexp2, _logaddexp2.__doc__)
nextafter = _binary("nextafter", _nextafter, _nextafter.__doc__)
xlogy = _binary("xlogy", _xlogy, _xlogy.__doc__)


def integer_power(a: Tensor, b: Tensor) -> Tensor:
    """a to the power b by squaring, for whole numbers; wraps around as the type does.

    A negative power is 0, or of 1 and -1 what it is.
    """
    shape = [simplify(d) for d in broadcast_shape(a.shape, b.shape)]
    one, zero = O.const(1, a.dtype), O.const(0, a.dtype)

    def body(ins: Any, outs: Sequence[Any]) -> Any:
        ib = ir_builder.create()
        out = ib.buffer_ptr(outs[0])
        base, power = map(ib.buffer_ptr, ins)
        with ib.for_range(0, simplify(O.convert(product(shape))), "i", kind="parallel") as flat:
            i = unravel(flat, shape)
            at = [tuple(zero_of(n) if O.is_const_int(d, 1) else n
                        for d, n in zip(t.shape, i[len(shape) - t.ndim:])) for t in (a, b)]
            total, square, left = (ib.allocate(a.dtype, (1,), name, scope="local")
                                   for name in ("total", "square", "left"))
            total[0], square[0], left[0] = one, base[at[0]], power[at[1]]
            with ib.if_scope(left[0] < zero):
                odd = O.not_equal(O.truncmod(left[0], O.const(2, a.dtype)), zero)
                sign = O.select(O.logical_and(odd, square[0] < zero), zero - one, one)
                unit = O.logical_or(O.equal(square[0], one), O.equal(square[0], zero - one))
                total[0] = O.select(unit, sign, zero)
            with ib.while_loop(left[0] > zero):
                with ib.if_scope(O.not_equal(O.truncmod(left[0], O.const(2, a.dtype)), zero)):
                    total[0] = total[0] * square[0]
                square[0] = square[0] * square[0]
                left[0] = O.truncdiv(left[0], O.const(2, a.dtype))
            out[tuple(i)] = total[0]
        return ib.get()

    return te.extern([shape], [a, b], body, dtype=a.dtype, name="integer_power",
                     tag="integer_power")


__all__ = ["copysign", "deg2rad", "digamma", "erfc", "erfinv", "exp2", "expm1", "hypot",
           "integer_power", "lgamma", "log10", "log1p", "log2", "logaddexp2", "nextafter",
           "rad2deg", "reciprocal", "signbit", "sinc", "xlogy"]
