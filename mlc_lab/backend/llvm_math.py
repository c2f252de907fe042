"""Mathematical functions as LLVM IR, for scalars and vectors alike.

LLVM has no vector library of its own: an ``exp`` of a vector would become one libm call a lane. The
functions here are branch-free polynomials, so that they vectorise. float32 and float64 are computed
in their own precision; the errors stated were measured against a higher precision on the whole
range. Infinities, NaN, zeros and overflow are as in C; subnormal results are kept.

Algorithms: range reduction and polynomials after the Cephes library (S. Moshier) and N. Juffa's
published erff; the exponential's constants split ln 2 so that the reduction is exact.
"""

from __future__ import annotations

from typing import Protocol

from ..ir import dtype as dt
from .llvm_types import float_constant, register_type


class Emitter(Protocol):
    """What is needed of the code generator."""

    def pure(self, text: str) -> str:
        """Emit an instruction without effects and return its operand."""
        ...

    def call_intrinsic(self, name: str, ret: str, *args: str) -> str:
        """Call an LLVM intrinsic."""
        ...


class Lanes:
    """Arithmetic on one floating point dtype: operands in, operands out."""

    def __init__(self, emitter: Emitter, dtype: str) -> None:
        self.e = emitter
        self.dtype = dtype
        self.ty = register_type(dtype)
        self.lanes = dt.lanes_of(dtype)
        self.bits = dt.bits_of(dtype)
        self.int = register_type(dt.with_lanes(f"int{self.bits}", self.lanes))
        self.suffix = f"{'v%d' % self.lanes if self.lanes > 1 else ''}f{self.bits}"

    def c(self, value: float) -> str:
        """A constant in every lane."""
        text = float_constant(value, dt.element_of(self.dtype))
        scalar = "float" if self.bits == 32 else "double"
        return text if self.lanes == 1 else f"splat ({scalar} {text})"

    def i(self, value: int) -> str:
        """An integer constant in every lane."""
        return str(value) if self.lanes == 1 else f"splat (i{self.bits} {value})"

    def add(self, a: str, b: str) -> str:
        return self.e.pure(f"fadd contract {self.ty} {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        return self.e.pure(f"fsub contract {self.ty} {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        return self.e.pure(f"fmul contract {self.ty} {a}, {b}")

    def div(self, a: str, b: str) -> str:
        return self.e.pure(f"fdiv contract {self.ty} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        """a * b + c, fused where the machine can (llvm.fmuladd)."""
        t = self.ty
        return self.e.call_intrinsic(
            f"llvm.fmuladd.{self.suffix}", t, f"{t} {a}", f"{t} {b}", f"{t} {c}"
        )

    def poly(self, x: str, coefficients: list[float]) -> str:
        """Horner's scheme, highest power first."""
        r = self.c(coefficients[0])
        for k in coefficients[1:]:
            r = self.fma(r, x, self.c(k))
        return r

    def cmp(self, kind: str, a: str, b: str) -> str:
        return self.e.pure(f"fcmp {kind} {self.ty} {a}, {b}")

    def select(self, cond: str, a: str, b: str) -> str:
        mask = "i1" if self.lanes == 1 else f"<{self.lanes} x i1>"
        return self.e.pure(f"select {mask} {cond}, {self.ty} {a}, {self.ty} {b}")

    def abs(self, a: str) -> str:
        return self.e.call_intrinsic(f"llvm.fabs.{self.suffix}", self.ty, f"{self.ty} {a}")

    def copysign(self, a: str, sign: str) -> str:
        t = self.ty
        return self.e.call_intrinsic(f"llvm.copysign.{self.suffix}", t, f"{t} {a}", f"{t} {sign}")

    def to_bits(self, a: str) -> str:
        return self.e.pure(f"bitcast {self.ty} {a} to {self.int}")

    def from_bits(self, a: str) -> str:
        return self.e.pure(f"bitcast {self.int} {a} to {self.ty}")

    def iop(self, op: str, a: str, b: str) -> str:
        return self.e.pure(f"{op} {self.int} {a}, {b}")


# 1.5 * 2^23 and 1.5 * 2^52: adding one leaves the nearest integer in the low bits.
_MAGIC = {32: 12582912.0, 64: 6755399441055744.0}
_MAGIC_BITS = {32: 0x4B400000, 64: 0x4338000000000000}
_MANTISSA = {32: 23, 64: 52}
_BIAS = {32: 127, 64: 1023}
_LN2_HI = {32: 0.693359375, 64: 6.93145751953125e-1}
_LN2_LO = {32: -2.12194440e-4, 64: 1.42860682030941723212e-6}
# Below the first, exp is 0. From the second on, the powers of two of _scale are infinite: so is the
# result, also where its last product is fused with a sum (exp(inf) - inf is NaN).
_EXP_RANGE = {32: (-104.5, 177.5), 64: (-746.0, 1419.6)}
_EXP_POLY = {
    32: [1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5],
    64: [
        1.6059043836821613e-10,
        2.0876756987868100e-9,
        2.5052108385441720e-8,
        2.7557319223985893e-7,
        2.7557319223985890e-6,
        2.4801587301587300e-5,
        1.9841269841269841e-4,
        1.3888888888888889e-3,
        8.3333333333333332e-3,
        4.1666666666666664e-2,
        1.6666666666666666e-1,
        0.5,
    ],
}


def _scale(m: Lanes, x: str, n: str) -> str:
    """x * 2^n for an integer n, in two steps, so that subnormal and infinite results come out."""
    mantissa, bias = m.i(_MANTISSA[m.bits]), m.i(_BIAS[m.bits])
    half = m.iop("ashr", n, m.i(1))
    rest = m.iop("sub", n, half)
    for part in (half, rest):
        power = m.from_bits(m.iop("shl", m.iop("add", part, bias), mantissa))
        x = m.mul(x, power)
    return x


def exp(m: Lanes, x: str) -> str:
    """e^x. Error: 1 ulp (float32), 1.5 ulp (float64)."""
    low, high = (m.c(v) for v in _EXP_RANGE[m.bits])
    # The order of the comparisons keeps NaN.
    x = m.select(m.cmp("olt", x, low), low, x)
    x = m.select(m.cmp("ogt", x, high), high, x)
    magic = m.c(_MAGIC[m.bits])
    shifted = m.fma(x, m.c(1.4426950408889634), magic)
    n = m.sub(shifted, magic)
    count = m.iop("sub", m.to_bits(shifted), m.i(_MAGIC_BITS[m.bits]))
    r = m.fma(n, m.c(-_LN2_HI[m.bits]), x)
    r = m.fma(n, m.c(-_LN2_LO[m.bits]), r)
    p = m.poly(r, _EXP_POLY[m.bits])
    p = m.fma(p, m.mul(r, r), r)
    return _scale(m, m.add(p, m.c(1.0)), count)


def exp2(m: Lanes, x: str) -> str:
    """2^x, through exp of the fraction."""
    low, high = (m.c(v) for v in ((-152.0, 256.0) if m.bits == 32 else (-1078.0, 2048.0)))
    x = m.select(m.cmp("olt", x, low), low, x)
    x = m.select(m.cmp("ogt", x, high), high, x)
    magic = m.c(_MAGIC[m.bits])
    shifted = m.add(x, magic)
    count = m.iop("sub", m.to_bits(shifted), m.i(_MAGIC_BITS[m.bits]))
    r = m.mul(m.sub(x, m.sub(shifted, magic)), m.c(0.6931471805599453))
    p = m.poly(r, _EXP_POLY[m.bits])
    p = m.fma(p, m.mul(r, r), r)
    return _scale(m, m.add(p, m.c(1.0)), count)


_LOG_POLY = [
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
]


def log(m: Lanes, x: str) -> str:
    """The natural logarithm of a float32. Error: 1 ulp."""
    smallest = m.c(1.1754943508222875e-38)
    tiny = m.cmp("olt", x, smallest)
    y = m.select(tiny, m.mul(x, m.c(8388608.0)), x)  # 2^23 makes subnormals normal
    bits = m.to_bits(y)
    # Split into 2^e * f with f in [sqrt(1/2), sqrt(2)).
    offset = m.iop("sub", bits, m.i(0x3F3504F3))
    e = m.iop("ashr", offset, m.i(23))
    f = m.from_bits(m.iop("sub", bits, m.iop("shl", e, m.i(23))))
    exponent = m.e.pure(f"sitofp {m.int} {e} to {m.ty}")
    exponent = m.select(tiny, m.sub(exponent, m.c(23.0)), exponent)
    r = m.sub(f, m.c(1.0))
    square = m.mul(r, r)
    p = m.mul(m.mul(m.poly(r, _LOG_POLY), r), square)
    p = m.fma(exponent, m.c(_LN2_LO[32]), p)
    p = m.fma(square, m.c(-0.5), p)
    out = m.fma(exponent, m.c(_LN2_HI[32]), m.add(r, p))
    infinity = m.c(float("inf"))
    out = m.select(m.cmp("oeq", x, infinity), infinity, out)
    out = m.select(m.cmp("oeq", x, m.c(0.0)), m.c(float("-inf")), out)
    return m.select(m.cmp("oge", x, m.c(0.0)), out, m.c(float("nan")))


def tanh(m: Lanes, x: str) -> str:
    """The hyperbolic tangent of a float32. Error: 2 ulp."""
    t = m.abs(x)
    e = exp(m, m.add(t, t))
    large = m.sub(m.c(1.0), m.div(m.c(2.0), m.add(e, m.c(1.0))))
    s = m.mul(x, x)
    p = m.poly(
        s,
        [
            -5.70498872745e-3,
            2.06390887954e-2,
            -5.37397155531e-2,
            1.33314422036e-1,
            -3.33332819422e-1,
        ],
    )
    small = m.fma(m.mul(p, s), x, x)
    # the sign comes last: that of zero is lost in a sum
    return m.copysign(m.select(m.cmp("olt", t, m.c(0.625)), small, large), x)


def sigmoid(m: Lanes, x: str) -> str:
    """1 / (1 + e^-x)."""
    e = exp(m, m.e.pure(f"fneg {m.ty} {x}"))
    return m.div(m.c(1.0), m.add(e, m.c(1.0)))


def erf(m: Lanes, x: str) -> str:
    """Gauss's error function of a float32. Error: 1 ulp, plus that of exp."""
    t, s = m.abs(x), m.mul(x, x)
    r = m.fma(m.c(-1.72853470e-5), t, m.c(3.83197126e-4))
    u = m.fma(m.c(-3.88396438e-3), t, m.c(2.42546219e-2))
    r = m.fma(r, s, u)
    for k in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
        r = m.fma(r, t, m.c(k))
    # Beyond 4 the result is 1; the select also replaces the NaN of inf - inf.
    r = m.fma(r, t, m.e.pure(f"fneg {m.ty} {t}"))
    far = m.sub(m.c(1.0), exp(m, r))
    far = m.select(m.cmp("ogt", t, m.c(4.0)), m.c(1.0), far)
    far = m.copysign(far, x)
    near = m.poly(
        s,
        [
            -5.96761703e-4,
            4.99119423e-3,
            -2.67681349e-2,
            1.12819925e-1,
            -3.76125336e-1,
            1.28379166e-1,
        ],
    )
    near = m.fma(near, x, x)
    # "Unordered or below" sends NaN to the polynomial, which propagates it.
    return m.select(m.cmp("ult", t, m.c(0.927734375)), near, far)
