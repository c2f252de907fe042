"""Random expressions over numbers of every type, and the values at which they may go wrong."""

from __future__ import annotations

import math

import numpy as np

from mlc_lab import tir
from mlc_lab.ir import dtype as dt
from mlc_lab.tir import op

from .harness import Draw

INTS = ("int32", "int8", "uint8", "int64", "uint32", "int16", "uint16", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16")
DTYPES = (*INTS[:2], *FLOATS[:1], "bool", *INTS[2:], *FLOATS[1:])

_ARITHMETIC = (tir.Add, tir.Sub, tir.Mul, tir.Min, tir.Max)
_DIVISIONS = (tir.Div, tir.FloorDiv, tir.FloorMod, tir.Mod)
_COMPARISONS = (tir.LT, tir.LE, tir.EQ, tir.NE, tir.GT, tir.GE)
_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "pow")
#: functions that are exact, or rounded once
_EXACT = ("floor", "ceil", "trunc", "round", "fabs", "sqrt", "copysign", "fma", "ldexp")
BUILDERS = {
    tir.Add: op.add, tir.Sub: op.sub, tir.Mul: op.mul, tir.Min: op.min_value_of,
    tir.Max: op.max_value_of, tir.Div: op.truncdiv, tir.Mod: op.truncmod,
    tir.FloorDiv: op.floordiv, tir.FloorMod: op.floormod, tir.LT: op.less, tir.LE: op.less_equal,
    tir.EQ: op.equal, tir.NE: op.not_equal, tir.GT: op.greater, tir.GE: op.greater_equal,
    tir.And: op.logical_and, tir.Or: op.logical_or,
}


def special(dtype: str) -> list:
    """The values of a type at which operations change what they do."""
    if dtype == "bool":
        return [False, True]
    if dt.is_integer(dtype):
        low, high = dt.int_range(dtype)
        few = [0, 1, 2, 3, 7, high, high - 1, high // 2 + 1, 31, 8, 64]
        few += [-1, -2, -5, low, low + 1] if low else []
        return [v for v in few if low <= v <= high]
    largest = dt.float_max(dtype)
    tiny = {"float16": 2.0 ** -24, "float64": 5e-324, "bfloat16": 2.0 ** -133}.get(
        dtype, 2.0 ** -149)
    few = [0.0, 1.0, -1.0, -0.0, math.nan, math.inf, -math.inf, 0.5, 1.5, 2.5, -2.5, 3.0, 0.1,
           -0.1, 300.0, -200.0, largest, -largest, tiny, -tiny, 65504.0, 127.5, 255.0, 256.0]
    if dtype != "float16":
        few += [2147483648.0, -2147483648.0, 2147483647.0, 4294967295.0, 4294967296.0, -3e9, 1e10,
                9223372036854775808.0, -9223372036854775808.0, 1.8446744073709552e19, 1e20, -1e20,
                1e-40]
    return few


def random_value(draw: Draw, dtype: str):
    """A special value, or any."""
    if draw.chance(60) or dtype == "bool":
        return draw.choice(special(dtype))
    if dt.is_integer(dtype):
        low, high = dt.int_range(dtype)
        return draw.integer(max(low, -20), 20) if draw.chance(50) else draw.integer(low, high)
    return draw.integer(-4096, 4096) * 2.0 ** draw.integer(-20, 20)


def as_array(values: list, dtype: str) -> np.ndarray:
    """Numbers as an array of a type, rounded as the interpreter rounds them."""
    fit = tir.numbers.fit(dtype)
    kind = dt.numpy_dtype(dtype)
    if dtype == "bfloat16" and kind == np.uint16:
        return tir.numbers.bfloat16_bits(np.array(values, "float32"))
    with np.errstate(all="ignore"):
        return np.array([fit(v) for v in values]).astype(kind)


class Expressions:
    """Random expressions of loads from `leaves`, by dtype, and constants.

    Nodes are made without folding. Products do not stand right under sums: machine code may fuse
    them, and rounds once where the interpreter rounds twice.
    """

    def __init__(self, draw: Draw, leaves: dict[str, list[tir.PrimExpr]]):
        self.draw, self.leaves = draw, leaves

    def make(self, dtype: str, depth: int) -> tir.PrimExpr:
        draw = self.draw
        if depth == 0 or draw.chance(8):
            return self.leaf(dtype)
        if draw.chance(15):
            return self.conversion(dtype, depth)
        if draw.chance(12):
            kind = draw.choice((tir.Select, None))
            args = (self.make("bool", depth - 1), self.make(dtype, depth - 1),
                    self.make(dtype, depth - 1))
            return tir.Select(*args) if kind else tir.Call(dtype, "tir.if_then_else", args)
        if dtype == "bool":
            return self.condition(depth)
        if dt.is_float(dtype):
            return self.number(dtype, depth)
        if draw.chance(25):
            name = draw.choice(_BITS)
            b = self.make(dtype, depth - 1)
            if name == "pow":
                b = tir.IntImm(dtype, draw.integer(0, 5)) if draw.chance(50) else b
            return tir.Call(dtype, f"tir.{name}", (self.make(dtype, depth - 1), b))
        if draw.chance(8):
            return tir.Call(dtype, f"tir.{draw.choice(('bitwise_not', 'popcount'))}",
                            (self.make(dtype, depth - 1),))
        cls = draw.choice(_ARITHMETIC + _DIVISIONS)
        return cls(self.make(dtype, depth - 1), self.make(dtype, depth - 1))

    def leaf(self, dtype: str) -> tir.PrimExpr:
        draw, own = self.draw, self.leaves.get(dtype, ())
        if own and not draw.chance(30):
            return draw.choice(own)
        if dt.is_float(dtype):
            return tir.FloatImm(dtype, random_value(draw, dtype))
        return tir.IntImm(dtype, int(random_value(draw, dtype)))

    def conversion(self, dtype: str, depth: int) -> tir.PrimExpr:
        draw = self.draw
        source = draw.choice([t for t in DTYPES if t != dtype])
        if draw.chance(15) and dtype != "bool" and source != "bool" and (
                dt.bits_of(source) == dt.bits_of(dtype)) and not dt.is_float(source):
            return tir.Call(dtype, "tir.reinterpret", (self.make(source, depth - 1),))
        return tir.Cast(dtype, self.make(source, depth - 1))

    def condition(self, depth: int) -> tir.PrimExpr:
        draw = self.draw
        which = draw.integer(0, 9)
        if which < 5:
            kind = draw.choice([t for t in DTYPES if t != "bool"])
            return draw.choice(_COMPARISONS)(self.make(kind, depth - 1),
                                             self.make(kind, depth - 1))
        if which < 7:
            return draw.choice((tir.And, tir.Or))(self.make("bool", depth - 1),
                                                  self.make("bool", depth - 1))
        if which == 7:
            return tir.Not(self.make("bool", depth - 1))
        if which == 8:
            kind = draw.choice(FLOATS)
            return tir.Call("bool", f"tir.{draw.choice(('isnan', 'isinf', 'isfinite'))}",
                            (self.make(kind, depth - 1),))
        return draw.choice(_ARITHMETIC)(self.make("bool", depth - 1), self.make("bool", depth - 1))

    def number(self, dtype: str, depth: int) -> tir.PrimExpr:
        draw = self.draw
        if draw.chance(30):
            name = draw.choice(_EXACT)
            args = [self.make(dtype, depth - 1) for _ in range(
                {"copysign": 2, "fma": 3}.get(name, 1))]
            if name == "copysign":  # a NaN may have either sign
                args[1] = tir.Select(tir.Call("bool", "tir.isnan", (args[1],)),
                                     tir.FloatImm(dtype, 1.0), args[1])
            if name == "ldexp":
                args.append(self.make("int32", 0))
            return tir.Call(dtype, f"tir.{name}", tuple(args))
        cls = draw.choice(_ARITHMETIC + _DIVISIONS)
        a, b = self.make(dtype, depth - 1), self.make(dtype, depth - 1)
        if cls in (tir.Add, tir.Sub):
            a, b = (self.leaf(dtype) if _product(x) else x for x in (a, b))
        return cls(a, b)


def _product(e: tir.PrimExpr) -> bool:
    """Whether a product may become part of a fused sum."""
    if type(e) is tir.Mul or type(e) is tir.Call and e.op.name == "tir.pow":
        return True
    if type(e) is tir.Select:
        return _product(e.true_value) or _product(e.false_value)
    return type(e) is tir.Call and e.op.name == "tir.if_then_else" and any(map(_product, e.args))


def folded(e: tir.PrimExpr, table: dict) -> tir.PrimExpr:
    """The expression built again by the functions that fold constants; `table` gives leaves."""
    if type(e) in (tir.IntImm, tir.FloatImm):
        return e
    if type(e) is tir.BufferLoad:
        return table[e.buffer] if table else e
    if type(e) in BUILDERS:
        return BUILDERS[type(e)](folded(e.a, table), folded(e.b, table))
    if type(e) is tir.Cast:
        return op.cast(folded(e.value, table), e.dtype)
    if type(e) is tir.Not:
        return op.logical_not(folded(e.a, table))
    if type(e) is tir.Select:
        return op.select(*(folded(c, table) for c in e.children()))
    name = e.op.name[4:]
    args = [folded(a, table) for a in e.args]
    if name == "reinterpret":
        return op.reinterpret(e.dtype, *args)
    return getattr(op, {"fabs": "abs"}.get(name, name))(*args)
