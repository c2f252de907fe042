"""Building expressions: operators with constants folded and types matched, and the intrinsics.

Folding here is only what never changes what a reader wrote beyond the obvious (x + 0, 1 * x,
constants with constants), as in TVM; real simplification is `arith`.
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple

from ..ir import dtype as dt
from .expr import (
    EQ, GE, GT, LE, LT, NE, OPS, Add, And, Broadcast, Call, Cast, Div, FloatImm, FloorDiv,
    FloorMod, IntImm, IterVar, Let, Max, Min, Mod, Mul, Not, Op, Or, PrimExpr, Select, StringImm,
    Sub, Var, const_index, int32,
)

# ------------------------------------------------------------------------------- constants


def const(value: Any, dtype: str | None = None, span: Any = None) -> PrimExpr:
    """A constant of `dtype` (by default bool, int32 or float32 by Python type)."""
    if isinstance(value, PrimExpr):
        return value if dtype is None or value.dtype == dtype else cast(value, dtype)
    if hasattr(value, "dtype") and hasattr(value, "item"):  # a numpy scalar
        dtype = dtype or str(value.dtype)
        value = value.item()
    if dtype is None:
        if isinstance(value, bool):
            dtype = "bool"
        elif isinstance(value, int):
            dtype = "int32" if -(2**31) <= value < 2**31 else "int64"
        elif isinstance(value, float):
            dtype = "float32"
        elif isinstance(value, str):
            return StringImm(value)
        else:
            raise TypeError(f"cannot make a constant of {value!r}")
    dtype = dt.canonical(dtype)
    code, bits, lanes = dt.parse(dtype)
    if lanes > 1:
        return Broadcast(const(value, dt.element_of(dtype)), lanes)
    if code in ("int", "uint", "bool"):
        if dtype == "int32":
            return int32(_wrap(int(value), "int32"))
        return IntImm(dtype, _wrap(int(value), dtype))
    if code == "handle":
        return Call("handle", "tir.reinterpret", (const(int(value), "uint64"),))
    return FloatImm(dtype, float(value))


def _wrap(value: int, dtype: str) -> int:
    """Two's complement wrap-around into `dtype`."""
    if dtype == "bool":
        return int(value != 0)
    low, high = dt.int_range(dtype)
    if low <= value <= high:
        return value
    return (value - low) % (high - low + 1) + low


def make_zero(dtype: str) -> PrimExpr:
    """The zero of a type."""
    return const(0, dtype)


def is_const_int(e: Any, value: int | None = None) -> bool:
    """Whether `e` is an integer constant (of that value)."""
    return type(e) is IntImm and (value is None or e.value == value)


def as_int(e: Any) -> int | None:
    """The Python int of a constant expression or int; None when it is symbolic."""
    if type(e) is IntImm:
        return e.value
    return e if isinstance(e, int) else None


def convert(value: Any, like: PrimExpr | None = None) -> PrimExpr:
    """A Python value as an expression; numbers take the type of `like` where it can hold them."""
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, IterVar):
        return value.var
    if like is not None and isinstance(value, (bool, int, float)) and like.dtype != "handle":
        kind = dt.element_of(like.dtype)
        if dt.is_float(kind) or not isinstance(value, float):
            if not (dt.is_bool(kind) and not isinstance(value, bool)):
                if isinstance(value, float) or not dt.is_integer(kind) or _fits(value, kind):
                    return const(value, kind)
    if isinstance(value, (bool, int, float)) or hasattr(value, "item"):
        return const(value)
    if isinstance(value, str):
        return StringImm(value)
    return const_index(value)


def _fits(value: int, kind: str) -> bool:
    low, high = dt.int_range(kind)
    return low <= value <= high


# ------------------------------------------------------------------------------- casts


def cast(value: PrimExpr, dtype: str) -> PrimExpr:
    """`value` as `dtype`; constants are converted at once."""
    dtype = dt.canonical(dtype)
    value = convert(value)
    if value.dtype == dtype:
        return value
    lanes, have = dt.lanes_of(dtype), dt.lanes_of(value.dtype)
    if lanes != have:
        if have == 1:
            return Broadcast(cast(value, dt.element_of(dtype)), lanes)
        raise TypeError(f"cannot cast {value.dtype} to {dtype}: the numbers of lanes differ")
    if lanes == 1:
        if type(value) is IntImm and dtype != "handle":
            return const(value.value, dtype)
        if type(value) is FloatImm and dt.is_float(dtype):
            return FloatImm(dtype, value.value)
    elif type(value) is Broadcast:
        return Broadcast(cast(value.value, dt.element_of(dtype)), lanes)
    return Cast(dtype, value)


def match_types(a: PrimExpr, b: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """Both operands in one type: the wider one; floats win over integers; scalars broadcast."""
    if a.dtype == b.dtype:
        return a, b
    la, lb = dt.lanes_of(a.dtype), dt.lanes_of(b.dtype)
    if la != lb:
        if la == 1:
            a = Broadcast(a, lb)
        elif lb == 1:
            b = Broadcast(b, la)
        else:
            raise TypeError(f"operands have {la} and {lb} lanes: they must agree")
        if a.dtype == b.dtype:
            return a, b
    ca, ba, lanes = dt.parse(a.dtype)
    cb, bb, _ = dt.parse(b.dtype)
    if "handle" in (ca, cb):
        raise TypeError(f"cannot compute with {a.dtype} and {b.dtype}: a handle is a pointer, "
                        "read an element of its buffer instead")
    fa, fb = dt.is_float(a.dtype), dt.is_float(b.dtype)
    if fa != fb:
        return (a, cast(b, a.dtype)) if fa else (cast(a, b.dtype), b)
    if fa:
        return (a, cast(b, a.dtype)) if ba >= bb else (cast(a, b.dtype), b)
    if ba != bb:
        return (a, cast(b, a.dtype)) if ba > bb else (cast(a, b.dtype), b)
    # same width, signed with unsigned: go to unsigned as TVM does
    return (cast(a, b.dtype), b) if ca == "int" else (a, cast(b, a.dtype))


# ------------------------------------------------------------------------------- operators


def _int_div(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


_FOLD_INT: dict[type, Callable[[int, int], int]] = {
    Add: lambda a, b: a + b, Sub: lambda a, b: a - b, Mul: lambda a, b: a * b,
    Div: _int_div, Mod: lambda a, b: a - _int_div(a, b) * b,
    FloorDiv: lambda a, b: a // b, FloorMod: lambda a, b: a % b, Min: min, Max: max,
}
_FOLD_FLOAT: dict[type, Callable[[float, float], float]] = {
    Add: lambda a, b: a + b, Sub: lambda a, b: a - b, Mul: lambda a, b: a * b,
    Div: lambda a, b: a / b, Min: min, Max: max,
}
_FOLD_CMP: dict[type, Callable[[Any, Any], bool]] = {
    EQ: lambda a, b: a == b, NE: lambda a, b: a != b, LT: lambda a, b: a < b,
    LE: lambda a, b: a <= b, GT: lambda a, b: a > b, GE: lambda a, b: a >= b,
}
_DIVISIONS = (Div, Mod, FloorDiv, FloorMod)


def fold_binary(cls: type, a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    """The value of `cls(a, b)` where constants decide it, else None. Operands have one type."""
    ta, tb = type(a), type(b)
    if ta is IntImm and tb is IntImm:
        if cls in _DIVISIONS and b.value == 0:
            raise ZeroDivisionError(f"division of {a.value} by zero")
        return const(_FOLD_INT[cls](a.value, b.value), a.dtype)
    if ta is FloatImm and tb is FloatImm:
        fold = _FOLD_FLOAT.get(cls)
        if fold is not None and not (cls is Div and b.value == 0):
            value = fold(a.value, b.value)
            if a.dtype == "float32" and math.isfinite(value):
                import struct

                try:
                    value = struct.unpack("f", struct.pack("f", value))[0]
                except OverflowError:
                    return None
            return FloatImm(a.dtype, value)
        return None
    va = a.value if ta is IntImm or ta is FloatImm else None
    vb = b.value if tb is IntImm or tb is FloatImm else None
    if va is None and vb is None:
        return a if a is b and (cls is Min or cls is Max) else None
    if cls is Add:
        if va == 0:
            return b
        if vb == 0:
            return a
    elif cls is Sub:
        if vb == 0:
            return a
    elif cls is Mul:
        if va == 1:
            return b
        if vb == 1:
            return a
        if va == 0:
            return a
        if vb == 0:
            return b
    elif cls in _DIVISIONS:
        if vb == 0 and tb is IntImm:
            raise ZeroDivisionError(f"division by the constant zero in {cls.__name__}")
        if va == 0:
            return a
        if vb == 1:
            if cls in (Div, FloorDiv):
                return a
            if tb is IntImm:
                return const(0, a.dtype)
    return None


def _binary(cls: type) -> Callable[..., PrimExpr]:
    def build(a: Any, b: Any, span: Any = None) -> PrimExpr:
        if not isinstance(a, PrimExpr):
            a = convert(a, b if isinstance(b, PrimExpr) else None)
        if not isinstance(b, PrimExpr):
            b = convert(b, a)
        if a.dtype != b.dtype:
            a, b = match_types(a, b)
        folded = fold_binary(cls, a, b)
        return cls(a, b) if folded is None else folded

    build.__name__ = cls.__name__.lower()
    build.__doc__ = f"{cls.__doc__} (types matched, constants folded)"
    return build


def _compare(cls: type) -> Callable[..., PrimExpr]:
    fold = _FOLD_CMP[cls]

    def build(a: Any, b: Any, span: Any = None) -> PrimExpr:
        if not isinstance(a, PrimExpr):
            a = convert(a, b if isinstance(b, PrimExpr) else None)
        if not isinstance(b, PrimExpr):
            b = convert(b, a)
        if a.dtype != b.dtype:
            a, b = match_types(a, b)
        if type(a) in (IntImm, FloatImm) and type(b) is type(a):
            return IntImm("bool", int(fold(a.value, b.value)))
        return cls(a, b)

    build.__name__ = cls.__name__.lower()
    build.__doc__ = f"{cls.__doc__} (types matched, constants folded)"
    return build


add, sub, mul = _binary(Add), _binary(Sub), _binary(Mul)
truncdiv, truncmod = _binary(Div), _binary(Mod)
floordiv, floormod = _binary(FloorDiv), _binary(FloorMod)
min_value_of, max_value_of = _binary(Min), _binary(Max)
equal, not_equal = _compare(EQ), _compare(NE)
less, less_equal, greater, greater_equal = _compare(LT), _compare(LE), _compare(GT), _compare(GE)
indexdiv, indexmod = floordiv, floormod


def div(a: Any, b: Any, span: Any = None) -> PrimExpr:
    """a / b: true division of floats, rounding toward zero on integers (C's rule)."""
    return truncdiv(a, b)


def ceildiv(a: Any, b: Any, span: Any = None) -> PrimExpr:
    """a / b rounded up."""
    return floordiv(sub(add(a, b), 1), b)


def min(a: Any, b: Any = None, *rest: Any, **kwargs: Any) -> Any:  # noqa: A001
    """The smaller of two values; on an axis (`axis=`) the minimum reduction of TE."""
    if b is None or "axis" in kwargs or isinstance(b, (IterVar, list, tuple)):
        from .reduction import min as reduce_min

        return reduce_min(a, *([b] if b is not None else []), **kwargs)
    return min_value_of(a, b)


def max(a: Any, b: Any = None, *rest: Any, **kwargs: Any) -> Any:  # noqa: A001
    """The larger of two values; on an axis (`axis=`) the maximum reduction of TE."""
    if b is None or "axis" in kwargs or isinstance(b, (IterVar, list, tuple)):
        from .reduction import max as reduce_max

        return reduce_max(a, *([b] if b is not None else []), **kwargs)
    return max_value_of(a, b)


def neg(a: PrimExpr) -> PrimExpr:
    """-a; written a * -1 as TVM does, constants folded."""
    return mul(a, -1) if type(a) not in (IntImm, FloatImm) else const(-a.value, a.dtype)


def logical_and(a: Any, b: Any, span: Any = None) -> PrimExpr:
    """a and b, for conditions."""
    a, b = _condition(a), _condition(b)
    if type(a) is IntImm:
        return b if a.value else a
    if type(b) is IntImm:
        return a if b.value else b
    return And(*match_types(a, b))


def logical_or(a: Any, b: Any, span: Any = None) -> PrimExpr:
    """a or b, for conditions."""
    a, b = _condition(a), _condition(b)
    if type(a) is IntImm:
        return a if a.value else b
    if type(b) is IntImm:
        return b if b.value else a
    return Or(*match_types(a, b))


def logical_not(a: Any, span: Any = None) -> PrimExpr:
    """not a, for conditions."""
    a = _condition(a)
    if type(a) is IntImm:
        return IntImm("bool", int(not a.value))
    return Not(a)


def _condition(a: Any) -> PrimExpr:
    if isinstance(a, bool):
        return IntImm("bool", int(a))
    a = convert(a)
    if not dt.is_bool(a.dtype):
        raise TypeError(f"expected a condition (bool), got a value of type {a.dtype}: compare it, "
                        "for example with != 0")
    return a


def all(*args: Any, span: Any = None) -> PrimExpr:  # noqa: A001
    """The conjunction of conditions."""
    if not args:
        raise ValueError("all() needs at least one condition")
    out = _condition(args[0])
    for arg in args[1:]:
        out = logical_and(out, arg)
    return out


def any(*args: Any, span: Any = None) -> PrimExpr:  # noqa: A001
    """The disjunction of conditions."""
    if not args:
        raise ValueError("any() needs at least one condition")
    out = _condition(args[0])
    for arg in args[1:]:
        out = logical_or(out, arg)
    return out


def select(condition: Any, true_value: Any, false_value: Any, span: Any = None) -> PrimExpr:
    """true_value where condition, else false_value; both may be evaluated."""
    true_value, false_value = match_values(true_value, false_value)
    return Select(_condition(condition), true_value, false_value)


def if_then_else(cond: Any, t: Any, f: Any, span: Any = None) -> PrimExpr:
    """t if cond else f, evaluating only the side that is taken."""
    t, f = match_values(t, f)
    cond = _condition(cond)
    if type(cond) is IntImm:
        return t if cond.value else f
    return Call(t.dtype, "tir.if_then_else", (cond, t, f))


def match_values(a: Any, b: Any) -> tuple[PrimExpr, PrimExpr]:
    """Two values as expressions of one type; Python numbers take that of the other value."""
    if not isinstance(a, PrimExpr):
        a = convert(a, b if isinstance(b, PrimExpr) else None)
    if not isinstance(b, PrimExpr):
        b = convert(b, a)
    return match_types(a, b)


def let(var: Var, value: Any, body: PrimExpr) -> PrimExpr:
    """body with var standing for value."""
    return Let(var, convert(value, var), body)


def min_value(dtype: str, span: Any = None) -> PrimExpr:
    """The smallest finite value of a type."""
    return FloatImm(dtype, -dt.float_max(dtype)) if dt.is_float(dtype) else const(
        dt.int_range(dtype)[0], dtype)


def max_value(dtype: str, span: Any = None) -> PrimExpr:
    """The largest finite value of a type."""
    return FloatImm(dtype, dt.float_max(dtype)) if dt.is_float(dtype) else const(
        dt.int_range(dtype)[1], dtype)


def infinity(dtype: str, span: Any = None) -> PrimExpr:
    """Positive infinity of a floating point type."""
    return FloatImm(dtype, math.inf)


def reinterpret(dtype: str, value: Any, span: Any = None) -> PrimExpr:
    """The bits of value read as another type of the same size."""
    return Call(dtype, "tir.reinterpret", (convert(value),))


# ------------------------------------------------------------------------------- intrinsics

PURE, READS, UPDATES, OPAQUE = "pure", "reads", "updates", "opaque"


class Intrinsic(NamedTuple):
    """One row of the table: `arity` None means any; `result` is same / bool / int32 / given."""

    name: str
    arity: int | None
    effect: str
    result: str
    doc: str


#: every intrinsic: its Op is `tir.<name>`; functions of that name are made from the row
INTRINSICS: tuple[Intrinsic, ...] = (
    Intrinsic("exp", 1, PURE, "same", "e to the power x"),
    Intrinsic("exp2", 1, PURE, "same", "2 to the power x"),
    Intrinsic("exp10", 1, PURE, "same", "10 to the power x"),
    Intrinsic("log", 1, PURE, "same", "natural logarithm"),
    Intrinsic("log2", 1, PURE, "same", "logarithm to base 2"),
    Intrinsic("log10", 1, PURE, "same", "logarithm to base 10"),
    Intrinsic("log1p", 1, PURE, "same", "log(1 + x)"),
    Intrinsic("sqrt", 1, PURE, "same", "square root"),
    Intrinsic("rsqrt", 1, PURE, "same", "1 / sqrt(x)"),
    Intrinsic("sin", 1, PURE, "same", "sine"),
    Intrinsic("cos", 1, PURE, "same", "cosine"),
    Intrinsic("tan", 1, PURE, "same", "tangent"),
    Intrinsic("asin", 1, PURE, "same", "arc sine"),
    Intrinsic("acos", 1, PURE, "same", "arc cosine"),
    Intrinsic("atan", 1, PURE, "same", "arc tangent"),
    Intrinsic("sinh", 1, PURE, "same", "hyperbolic sine"),
    Intrinsic("cosh", 1, PURE, "same", "hyperbolic cosine"),
    Intrinsic("tanh", 1, PURE, "same", "hyperbolic tangent"),
    Intrinsic("asinh", 1, PURE, "same", "inverse hyperbolic sine"),
    Intrinsic("acosh", 1, PURE, "same", "inverse hyperbolic cosine"),
    Intrinsic("atanh", 1, PURE, "same", "inverse hyperbolic tangent"),
    Intrinsic("erf", 1, PURE, "same", "Gauss error function"),
    Intrinsic("sigmoid", 1, PURE, "same", "1 / (1 + exp(-x))"),
    Intrinsic("atan2", 2, PURE, "same", "angle of the point (y, x)"),
    Intrinsic("hypot", 2, PURE, "same", "sqrt(x*x + y*y)"),
    Intrinsic("copysign", 2, PURE, "same", "magnitude of x with the sign of y"),
    Intrinsic("nextafter", 2, PURE, "same", "the next float after x towards y"),
    Intrinsic("ldexp", 2, PURE, "same", "x * 2**y"),
    Intrinsic("fmod", 2, PURE, "same", "remainder with the sign of x"),
    Intrinsic("fma", 3, PURE, "same", "x * y + z rounded once"),
    Intrinsic("floor", 1, PURE, "same", "rounded down"),
    Intrinsic("ceil", 1, PURE, "same", "rounded up"),
    Intrinsic("trunc", 1, PURE, "same", "rounded toward zero"),
    Intrinsic("round", 1, PURE, "same", "rounded to nearest, ties to even"),
    Intrinsic("nearbyint", 1, PURE, "same", "rounded to nearest, ties to even"),
    Intrinsic("fabs", 1, PURE, "same", "absolute value"),
    Intrinsic("isnan", 1, PURE, "bool", "whether x is not a number"),
    Intrinsic("isinf", 1, PURE, "bool", "whether x is infinite"),
    Intrinsic("isfinite", 1, PURE, "bool", "whether x is finite"),
    Intrinsic("isnullptr", 1, PURE, "bool", "whether a pointer is null"),
    Intrinsic("popcount", 1, PURE, "same", "number of bits set"),
    Intrinsic("clz", 1, PURE, "int32", "number of leading zero bits"),
    Intrinsic("bitwise_and", 2, PURE, "same", "x & y"),
    Intrinsic("bitwise_or", 2, PURE, "same", "x | y"),
    Intrinsic("bitwise_xor", 2, PURE, "same", "x ^ y"),
    Intrinsic("bitwise_not", 1, PURE, "same", "~x"),
    Intrinsic("shift_left", 2, PURE, "same", "x << y"),
    Intrinsic("shift_right", 2, PURE, "same", "x >> y, arithmetic on signed types"),
    Intrinsic("likely", 1, PURE, "same", "a hint that the condition usually holds"),
    Intrinsic("if_then_else", 3, PURE, "given", "lazy choice"),
    Intrinsic("reinterpret", 1, PURE, "given", "bits as another type"),
    Intrinsic("large_uint_imm", 2, PURE, "given", "a 64-bit unsigned constant in two halves"),
    Intrinsic("q_multiply_shift", 4, PURE, "int32", "fixed point multiply of quantised kernels"),
    Intrinsic("address_of", 1, READS, "given", "pointer to an element"),
    Intrinsic("type_annotation", 0, PURE, "given", "a dtype as an argument"),
    Intrinsic("tvm_access_ptr", 5, READS, "given", "pointer to a part of a buffer"),
    Intrinsic("call_extern", None, OPAQUE, "given", "call of a C function by symbol"),
    Intrinsic("call_pure_extern", None, PURE, "given", "call of a C function without effects"),
    Intrinsic("call_llvm_intrin", None, OPAQUE, "given", "call of an LLVM intrinsic"),
    Intrinsic("call_llvm_pure_intrin", None, PURE, "given", "call of a pure LLVM intrinsic"),
    Intrinsic("tvm_call_packed", None, OPAQUE, "given", "call of a registered function"),
    Intrinsic("tvm_call_packed_lowered", None, OPAQUE, "given", "packed call, arguments stacked"),
    Intrinsic("tvm_call_cpacked", None, OPAQUE, "given", "call of a packed C function by symbol"),
    Intrinsic("tvm_stack_make_array", None, OPAQUE, "given", "a tensor header on the stack"),
    Intrinsic("tvm_stack_make_shape", None, OPAQUE, "given", "a shape on the stack"),
    Intrinsic("tvm_stack_alloca", None, OPAQUE, "given", "space on the stack"),
    Intrinsic("tvm_struct_get", None, READS, "given", "a field of a tensor header"),
    Intrinsic("tvm_struct_set", None, UPDATES, "int32", "store to a field of a tensor header"),
    Intrinsic("tvm_tuple", None, PURE, "given", "several values as one"),
    Intrinsic("tvm_thread_allreduce", None, OPAQUE, "given", "reduction over GPU threads"),
    Intrinsic("tvm_storage_sync", None, OPAQUE, "int32", "barrier for the threads of a block"),
    Intrinsic("tvm_warp_shuffle", 5, OPAQUE, "given", "read a value of another lane"),
    Intrinsic("tvm_warp_shuffle_up", 5, OPAQUE, "given", "read a value of a lower lane"),
    Intrinsic("tvm_warp_shuffle_down", 5, OPAQUE, "given", "read a value of a higher lane"),
    Intrinsic("tvm_warp_activemask", 0, OPAQUE, "int32", "mask of the active lanes"),
    Intrinsic("tvm_fill_fragment", 6, OPAQUE, "given", "fill a tensor core fragment"),
    Intrinsic("tvm_load_matrix_sync", 8, OPAQUE, "given", "load a tensor core fragment"),
    Intrinsic("tvm_mma_sync", 8, OPAQUE, "given", "multiply tensor core fragments"),
    Intrinsic("tvm_store_matrix_sync", 8, OPAQUE, "given", "store a tensor core fragment"),
    Intrinsic("ptx_mma", None, OPAQUE, "given", "PTX mma instruction"),
    Intrinsic("ptx_ldmatrix", None, OPAQUE, "given", "PTX ldmatrix instruction"),
    Intrinsic("ptx_cp_async", None, OPAQUE, "given", "PTX asynchronous copy"),
    Intrinsic("ptx_commit_group", 0, OPAQUE, "given", "close a group of asynchronous copies"),
    Intrinsic("ptx_wait_group", 1, OPAQUE, "given", "wait for asynchronous copies"),
    Intrinsic("mma_store", None, OPAQUE, "given", "store an mma fragment"),
    Intrinsic("mma_fill", None, OPAQUE, "given", "fill an mma fragment"),
    Intrinsic("vectorlow", 1, PURE, "given", "lower half of a vector"),
    Intrinsic("vectorhigh", 1, PURE, "given", "upper half of a vector"),
    Intrinsic("vectorcombine", 2, PURE, "given", "two vectors as one"),
    Intrinsic("atomic_add", None, OPAQUE, "given", "atomic addition to an element"),
    Intrinsic("prefetch", None, OPAQUE, "given", "hint to load a cache line"),
    Intrinsic("assume", 1, OPAQUE, "bool", "a fact the compiler may rely on"),
    Intrinsic("undef", 0, PURE, "given", "a value nobody reads"),
    Intrinsic("ret", 1, OPAQUE, "given", "return from the function"),
    Intrinsic("break_loop", 0, OPAQUE, "given", "leave the loop"),
    Intrinsic("continue_loop", 0, OPAQUE, "given", "next round of the loop"),
    Intrinsic("start_profile_intrinsic", 1, OPAQUE, "given", "profiling mark"),
    Intrinsic("end_profile_intrinsic", 1, OPAQUE, "given", "profiling mark"),
)

#: the row of each intrinsic by Op name
INTRINSIC_OF: dict[str, Intrinsic] = {}

for _row in INTRINSICS:
    _name = f"tir.{_row.name}"
    INTRINSIC_OF[_name] = _row
    OPS[_name] = Op(_name)


def effect_of(call: Call) -> str:
    """How a call touches the world: pure, reads, updates or opaque (also for GlobalVars)."""
    row = INTRINSIC_OF.get(getattr(call.op, "name", None)) if isinstance(call.op, Op) else None
    return row.effect if row is not None else OPAQUE


def call_intrin(dtype: str, func_name: Any, *args: Any, span: Any = None) -> PrimExpr:
    """A call of an intrinsic by name with the result type given."""
    return Call(dtype, func_name, tuple(convert(a) for a in args))


#: intrinsics that take integers as they are; the others convert them to float32
ACCEPTS_INTEGERS = {"popcount", "clz", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
                    "shift_left", "shift_right", "likely", "if_then_else", "isnullptr",
                    "q_multiply_shift", "assume"}
_UNCHANGED_ON_INT = {"floor", "ceil", "trunc", "round", "nearbyint"}


def _intrinsic_function(row: Intrinsic) -> Callable[..., PrimExpr]:
    op = OPS[f"tir.{row.name}"]

    def build(*args: Any, span: Any = None) -> PrimExpr:
        if len(args) != row.arity:
            raise TypeError(f"{row.name} takes {row.arity} argument(s), got {len(args)}")
        like = next((a for a in args if isinstance(a, PrimExpr)), None)
        values = [convert(a, like) for a in args]
        if row.name not in ACCEPTS_INTEGERS and not dt.is_float(values[0].dtype):
            if row.name in _UNCHANGED_ON_INT:
                return values[0]
            if row.name in ("isnan", "isinf"):
                return IntImm("bool", 0)
            if row.name == "isfinite":
                return IntImm("bool", 1)
            values = [cast(v, dt.with_lanes("float32", dt.lanes_of(v.dtype))) for v in values]
        if row.arity == 2 and row.name != "ldexp":
            values = list(match_types(*values))
            if row.name in _FOLD_BITS and type(values[0]) is type(values[1]) is IntImm:
                return const(_FOLD_BITS[row.name](values[0].value, values[1].value),
                             values[0].dtype)
        result = {"same": values[0].dtype, "bool": dt.with_lanes(
            "bool", dt.lanes_of(values[0].dtype)), "int32": dt.with_lanes(
                "int32", dt.lanes_of(values[0].dtype))}[row.result]
        return Call(result, op, tuple(values))

    build.__name__ = row.name
    build.__doc__ = row.doc
    return build


_FOLD_BITS = {"bitwise_and": lambda a, b: a & b, "bitwise_or": lambda a, b: a | b,
              "bitwise_xor": lambda a, b: a ^ b, "shift_left": lambda a, b: a << b,
              "shift_right": lambda a, b: a >> b}

for _row in INTRINSICS:
    if _row.result != "given" and _row.arity and _row.name not in globals():
        globals()[_row.name] = _intrinsic_function(_row)


def abs(x: Any, span: Any = None) -> PrimExpr:  # noqa: A001
    """The absolute value, of any type."""
    x = convert(x)
    if type(x) in (IntImm, FloatImm):
        return const(x.value if x.value >= 0 else -x.value, x.dtype)
    if dt.is_float(x.dtype):
        return Call(x.dtype, "tir.fabs", (x,))
    if dt.is_uint(x.dtype):
        return x
    return select(greater_equal(x, 0), x, neg(x))


def pow(x: Any, y: Any, span: Any = None) -> PrimExpr:  # noqa: A001
    """x to the power y."""
    x, y = match_values(x, y)
    return Call(x.dtype, "tir.pow", (x, y))


power = pow
OPS["tir.pow"] = Op("tir.pow")
INTRINSIC_OF["tir.pow"] = Intrinsic("pow", 2, PURE, "same", "x to the power y")


def call_extern(dtype: str, func_name: str, *args: Any, span: Any = None) -> PrimExpr:
    """A call of the C function `func_name`."""
    return call_intrin(dtype, "tir.call_extern", StringImm(func_name), *args)


def call_pure_extern(dtype: str, func_name: str, *args: Any, span: Any = None) -> PrimExpr:
    """A call of the C function `func_name`, which has no side effects."""
    return call_intrin(dtype, "tir.call_pure_extern", StringImm(func_name), *args)


def call_packed(*args: Any, span: Any = None) -> PrimExpr:
    """A call of a registered function by name; buffers are passed as tensors."""
    return Call("int32", "tir.tvm_call_packed", tuple(
        _tensor_header(a) if hasattr(a, "elem_offset") else convert(a) for a in args))


def _tensor_header(buffer: Any) -> PrimExpr:
    """A buffer as an argument: its pointer, shape, strides and offset."""
    def shape(dims: Any) -> PrimExpr:
        return Call("handle", "tir.tvm_stack_make_shape", tuple(dims))

    strides = shape(buffer.strides) if buffer.strides else int32(0)
    return Call("handle", "tir.tvm_stack_make_array", (
        buffer.data, shape(buffer.shape), strides, int32(len(buffer.shape)),
        const(0, buffer.dtype), buffer.elem_offset))


def call_llvm_intrin(dtype: str, name: Any, *args: Any, span: Any = None) -> PrimExpr:
    """A call of an LLVM intrinsic by its name, e.g. "llvm.fma.v4f32"."""
    name = StringImm(name) if isinstance(name, str) else convert(name)
    return call_intrin(dtype, "tir.call_llvm_intrin", name, *args)


def call_llvm_pure_intrin(dtype: str, name: Any, *args: Any, span: Any = None) -> PrimExpr:
    """A call of an LLVM intrinsic without side effects."""
    name = StringImm(name) if isinstance(name, str) else convert(name)
    return call_intrin(dtype, "tir.call_llvm_pure_intrin", name, *args)


def ret(value: Any, span: Any = None) -> PrimExpr:
    """Return `value` from the function."""
    value = convert(value)
    return Call(value.dtype, "tir.ret", (value,))


# ------------------------------------------------------------------- Python's own operators


def _install_operators() -> None:
    """Give PrimExpr the operators; done here because they need everything above."""

    def reflected(fn: Callable) -> Callable:
        return lambda self, other: fn(other, self)

    table = {"add": add, "sub": sub, "mul": mul, "truediv": div, "floordiv": floordiv,
             "mod": floormod, "and": _bitand, "or": _bitor, "xor": globals()["bitwise_xor"],
             "lshift": globals()["shift_left"], "rshift": globals()["shift_right"]}
    for name, fn in table.items():
        for cls in (PrimExpr, IterVar):  # an axis computes as its variable does
            setattr(cls, f"__{name}__", lambda self, other, fn=fn: fn(self, other))
            setattr(cls, f"__r{name}__", reflected(fn))
    for name, fn in (("eq", equal), ("ne", not_equal), ("lt", less), ("le", less_equal),
                     ("gt", greater), ("ge", greater_equal)):
        for cls in (PrimExpr, IterVar):
            setattr(cls, f"__{name}__", _comparison(fn))
    for cls in (PrimExpr, EQ, NE, IntImm, Var, IterVar):
        cls.__hash__ = object.__hash__
    PrimExpr.__neg__ = neg
    IterVar.__neg__ = lambda self: neg(self.var)
    IterVar.astype = lambda self, dtype, span=None: cast(self.var, dtype)
    IterVar.dtype = property(lambda self: self.var.dtype)
    PrimExpr.__invert__ = lambda self: (
        logical_not(self) if dt.is_bool(self.dtype) else globals()["bitwise_not"](self))
    PrimExpr.equal = lambda self, other, span=None: equal(self, other)


def _comparison(fn: Callable) -> Callable:
    def compare(self: PrimExpr, other: Any) -> Any:
        if other is None or isinstance(other, (str, tuple, list, dict)):
            return NotImplemented
        return fn(self, other)

    return compare


def _bitand(a: Any, b: Any) -> PrimExpr:
    a, b = match_values(a, b)
    return logical_and(a, b) if dt.is_bool(a.dtype) else globals()["bitwise_and"](a, b)


def _bitor(a: Any, b: Any) -> PrimExpr:
    a, b = match_values(a, b)
    return logical_or(a, b) if dt.is_bool(a.dtype) else globals()["bitwise_or"](a, b)


_install_operators()

__all__ = [name for name, value in globals().items()
           if not name.startswith("_") and callable(value)
           and getattr(value, "__module__", None) == __name__ and name[0].islower()
           and name != "annotations"]
