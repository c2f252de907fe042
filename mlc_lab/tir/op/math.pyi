# Written by `python dev.py types`, as tests/checker/make_stubs.py says.
from mlc_lab.tir.expr import ExprLike as _ExprLike
from mlc_lab.tir.expr import PrimExpr as _PrimExpr
from ..expr import ExprLike
from ..expr import PrimExpr
from typing import Any
def abs(x: Any, span: object=None) -> PrimExpr:
    """The absolute value, of any type."""
def pow(x: ExprLike, y: ExprLike, span: object=None) -> PrimExpr:
    """x to the power y, in the type of both: integers stay integers."""
power = pow
def likely(cond: ExprLike, span: object=None) -> PrimExpr:
    """a hint that the condition usually holds"""
def assume(cond: ExprLike, span: object=None) -> PrimExpr:
    """a fact the compiler may rely on"""
ACCEPTS_INTEGERS: set[str]
def acos(x: _ExprLike, **options: object) -> _PrimExpr:
    """arc cosine"""
def acosh(x: _ExprLike, **options: object) -> _PrimExpr:
    """inverse hyperbolic cosine"""
def asin(x: _ExprLike, **options: object) -> _PrimExpr:
    """arc sine"""
def asinh(x: _ExprLike, **options: object) -> _PrimExpr:
    """inverse hyperbolic sine"""
def atan(x: _ExprLike, **options: object) -> _PrimExpr:
    """arc tangent"""
def atan2(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """angle of the point (y, x)"""
def atanh(x: _ExprLike, **options: object) -> _PrimExpr:
    """inverse hyperbolic tangent"""
def bitwise_and(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """x & y"""
def bitwise_not(x: _ExprLike, **options: object) -> _PrimExpr:
    """~x"""
def bitwise_or(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """x | y"""
def bitwise_xor(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """x ^ y"""
def ceil(x: _ExprLike, **options: object) -> _PrimExpr:
    """rounded up"""
def clz(x: _ExprLike, **options: object) -> _PrimExpr:
    """number of leading zero bits"""
def copysign(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """magnitude of x with the sign of y"""
def cos(x: _ExprLike, **options: object) -> _PrimExpr:
    """cosine"""
def cosh(x: _ExprLike, **options: object) -> _PrimExpr:
    """hyperbolic cosine"""
def erf(x: _ExprLike, **options: object) -> _PrimExpr:
    """Gauss error function"""
def exp(x: _ExprLike, **options: object) -> _PrimExpr:
    """e to the power x"""
def exp10(x: _ExprLike, **options: object) -> _PrimExpr:
    """10 to the power x"""
def exp2(x: _ExprLike, **options: object) -> _PrimExpr:
    """2 to the power x"""
def fabs(x: _ExprLike, **options: object) -> _PrimExpr:
    """absolute value"""
def floor(x: _ExprLike, **options: object) -> _PrimExpr:
    """rounded down"""
def fma(x: _ExprLike, y: _ExprLike, z: _ExprLike, **options: object) -> _PrimExpr:
    """x * y + z rounded once"""
def fmod(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """remainder with the sign of x"""
def hypot(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """sqrt(x*x + y*y)"""
def isfinite(x: _ExprLike, **options: object) -> _PrimExpr:
    """whether x is finite"""
def isinf(x: _ExprLike, **options: object) -> _PrimExpr:
    """whether x is infinite"""
def isnan(x: _ExprLike, **options: object) -> _PrimExpr:
    """whether x is not a number"""
def isnullptr(x: _ExprLike, **options: object) -> _PrimExpr:
    """whether a pointer is null"""
def ldexp(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """x * 2**y"""
def log(x: _ExprLike, **options: object) -> _PrimExpr:
    """natural logarithm"""
def log10(x: _ExprLike, **options: object) -> _PrimExpr:
    """logarithm to base 10"""
def log1p(x: _ExprLike, **options: object) -> _PrimExpr:
    """log(1 + x)"""
def log2(x: _ExprLike, **options: object) -> _PrimExpr:
    """logarithm to base 2"""
def nearbyint(x: _ExprLike, **options: object) -> _PrimExpr:
    """rounded to nearest, ties to even"""
def nextafter(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """the next float after x towards y"""
def popcount(x: _ExprLike, **options: object) -> _PrimExpr:
    """number of bits set"""
def q_multiply_shift(x: _ExprLike, y: _ExprLike, z: _ExprLike, **options: object) -> _PrimExpr:
    """fixed point multiply of quantised kernels"""
def q_multiply_shift_per_axis(x: _ExprLike, y: _ExprLike, z: _ExprLike, **options: object) -> _PrimExpr:
    """fixed point multiply with a factor and shifts for each channel"""
def round(x: _ExprLike, **options: object) -> _PrimExpr:
    """rounded to nearest, ties to even"""
def rsqrt(x: _ExprLike, **options: object) -> _PrimExpr:
    """1 / sqrt(x)"""
def shift_left(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """x << y"""
def shift_right(x: _ExprLike, y: _ExprLike, **options: object) -> _PrimExpr:
    """x >> y, arithmetic on signed types"""
def sigmoid(x: _ExprLike, **options: object) -> _PrimExpr:
    """1 / (1 + exp(-x))"""
def sin(x: _ExprLike, **options: object) -> _PrimExpr:
    """sine"""
def sinh(x: _ExprLike, **options: object) -> _PrimExpr:
    """hyperbolic sine"""
def sqrt(x: _ExprLike, **options: object) -> _PrimExpr:
    """square root"""
def tan(x: _ExprLike, **options: object) -> _PrimExpr:
    """tangent"""
def tanh(x: _ExprLike, **options: object) -> _PrimExpr:
    """hyperbolic tangent"""
def trunc(x: _ExprLike, **options: object) -> _PrimExpr:
    """rounded toward zero"""
__all__ = ['ACCEPTS_INTEGERS', 'abs', 'acos', 'acosh', 'asin', 'asinh', 'assume', 'atan', 'atan2', 'atanh', 'bitwise_and', 'bitwise_not', 'bitwise_or', 'bitwise_xor', 'ceil', 'clz', 'copysign', 'cos', 'cosh', 'erf', 'exp', 'exp10', 'exp2', 'fabs', 'floor', 'fma', 'fmod', 'hypot', 'isfinite', 'isinf', 'isnan', 'isnullptr', 'ldexp', 'likely', 'log', 'log10', 'log1p', 'log2', 'nearbyint', 'nextafter', 'popcount', 'pow', 'power', 'q_multiply_shift', 'q_multiply_shift_per_axis', 'round', 'rsqrt', 'shift_left', 'shift_right', 'sigmoid', 'sin', 'sinh', 'sqrt', 'tan', 'tanh', 'trunc']
