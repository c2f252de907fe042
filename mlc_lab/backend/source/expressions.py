"""Expressions as source: the part of the generator that every dialect shares.

`text(e)` gives an expression with no more parentheses than it needs. What the languages call
differently comes from the dialect's table. Vectors do not occur, but for loads of consecutive
elements that a store copies whole: `lower/scalarize_vectors.py` has made single numbers of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...ir import dtype as dt
from ...lower.common import LowerError
from ...tir import expr as E
from ...tir.functor import substitute
from ...tir.op import as_int
from ...tir.shuffles import NAMES
from .dialect import Dialect

# How tightly operators bind, as in C; WGSL demands parentheses where its own rules differ.
_TERNARY, _OR, _AND, _BIT, _COMPARE, _SHIFT, _SUM, _PRODUCT, _UNARY, _ATOM = range(10)
_BINARY: dict[type, tuple[str, int]] = {
    E.Add: ("+", _SUM), E.Sub: ("-", _SUM), E.Mul: ("*", _PRODUCT), E.Div: ("/", _PRODUCT),
    E.Mod: ("%", _PRODUCT), E.LT: ("<", _COMPARE), E.LE: ("<=", _COMPARE), E.GT: (">", _COMPARE),
    E.GE: (">=", _COMPARE), E.EQ: ("==", _COMPARE), E.NE: ("!=", _COMPARE), E.And: ("&&", _AND),
    E.Or: ("||", _OR),
}
_BITS = {"bitwise_and": ("&", _BIT), "bitwise_or": ("|", _BIT), "bitwise_xor": ("^", _BIT),
         "shift_left": ("<<", _SHIFT), "shift_right": (">>", _SHIFT)}
#: operations on conditions
_BOOL = {E.Add: "||", E.Mul: "&&", E.Max: "||", E.Min: "&&", E.Sub: "!="}


class ExprGen:
    """Writes expressions in one dialect. `name` says whose they are, for errors."""

    def __init__(self, dialect: Dialect, name: str) -> None:
        self.d, self.name = dialect, name
        self.names: dict[Any, str] = {}
        self.used_types: set[str] = set()
        self.warp = 0  # lanes of a warp, where there are shuffles
        self.used_helpers: dict[tuple[str, str], None] = {}
        self.when: list[str] = []  # conditions under which what is written counts

    # -- types ------------------------------------------------------------------------------------

    def type_of(self, dtype: str) -> str:
        """What the dialect calls a dtype. Raises LowerError for one that it does not have."""
        self.used_types.add(dtype)
        found = self.d.types.get(dtype)
        if found is None:
            raise LowerError(f"{self.name}: {self.d.title} has no {dtype}; cast to one of "
                             f"{', '.join(self.d.types)}")
        return found

    def memory_type(self, dtype: str, what: str) -> str:
        """What memory of a dtype holds."""
        found = self.d.memory_types.get(dtype)
        if found == "":
            raise LowerError(f"{self.name}: {what} has the dtype {dtype}, and memory in "
                             f"{self.d.title} cannot hold it: use int32, uint32, float32 or "
                             "float16")
        return found or self.type_of(dtype)

    # -- expressions ------------------------------------------------------------------------------

    def text(self, e: Any, outer: int = _TERNARY) -> str:
        """An expression; in parentheses where `outer` binds more tightly."""
        method = _TABLE.get(type(e))
        if method is None:
            raise LowerError(f"{self.name}: {type(e).__name__} cannot be written in "
                             f"{self.d.title}: {e!r}")
        written, level = method(self, e)
        return f"({written})" if level < outer else written

    def var(self, e: E.Var) -> tuple[str, int]:
        found = self.names.get(e)
        if found is None:
            raise LowerError(f"{self.name}: {e.name} is used in a kernel and nothing defines it")
        return found, _ATOM

    def integer(self, e: E.IntImm) -> tuple[str, int]:
        if e.dtype == "bool":
            return ("true" if e.value else "false"), _ATOM
        kind = e.dtype
        if not self.d.c_like and kind == "uint64":
            kind = "uint32"
        suffix = self.d.suffixes.get(kind, "")
        if e.value == -2 ** 31 and kind in ("int32", "int64") and not suffix:
            return "(-2147483647 - 1)", _ATOM
        return f"{e.value}{suffix}", _ATOM if e.value >= 0 else _UNARY

    def real(self, e: E.FloatImm) -> tuple[str, int]:
        value = float(e.value)
        if not math.isfinite(value):
            if not self.d.c_like:
                self.helper("not_a_number" if math.isnan(value) else "infinity", "float32")
            written = self.d.constants[1 if math.isnan(value) else 0]
            if e.dtype != "float32":
                written = f"{self.type_of(e.dtype)}({written})" if not self.d.c_like else (
                    f"(({self.type_of(e.dtype)}){written})")
            return (f"-{written}", _UNARY) if value < 0 else (written, _ATOM)
        written = repr(value)
        if e.dtype in self.d.suffixes:
            written += self.d.suffixes[e.dtype]
        elif e.dtype not in ("float64",):
            return f"{self.type_of(e.dtype)}({written}f)" if self.d.name != "opencl" else (
                f"(({self.type_of(e.dtype)}){written}f)"), _ATOM
        return written, _ATOM if math.copysign(1, value) > 0 else _UNARY

    def cast(self, e: E.Cast) -> tuple[str, int]:
        source, target = e.value.dtype, e.dtype
        if self.d.types.get(source) == self.type_of(target) and not self.d.c_like:
            return self.text(e.value), _TERNARY
        if self.d.c_like:
            return f"({self.type_of(target)}){self.text(e.value, _UNARY)}", _UNARY
        return f"{self.type_of(target)}({self.text(e.value)})", _ATOM

    def binary(self, e: E.BinaryOp) -> tuple[str, int]:
        kind = type(e)
        if e.a.dtype == "bool" and kind in _BOOL:
            return self._join(_BOOL[kind], _OR if _BOOL[kind] == "||" else _AND, e.a, e.b)
        if kind is E.Mod and dt.is_float(e.dtype):
            return self.function("fmod", e.dtype, [e.a, e.b])
        operator, level = _BINARY[kind]
        if e.a.dtype == "bool" and kind in (E.LT, E.LE, E.GT, E.GE):
            return self.binary(kind(E.Cast("int32", e.a), E.Cast("int32", e.b)))
        return self._join(operator, level, e.a, e.b)

    def _join(self, operator: str, level: int, a: Any, b: Any) -> tuple[str, int]:
        # WGSL does not let && stand in ||, or comparisons and shifts without parentheses
        strict = not self.d.c_like and level < _SUM
        left = _UNARY if strict else level
        right = _UNARY if strict else level + 1
        if level == _COMPARE:
            left = right = _SUM
        if level == _SHIFT or (level == _BIT):
            left = right = _UNARY
        if strict and level in (_AND, _OR):
            left = right = _COMPARE
        return f"{self.text(a, left)} {operator} {self.text(b, right)}", level

    def floor_divide(self, e: Any) -> tuple[str, int]:
        """FloorDiv and FloorMod: of floats by floor, of unsigned numbers as they are."""
        divide = type(e) is E.FloorDiv
        if dt.is_float(e.dtype):
            quotient = E.Call(e.dtype, "tir.floor", (E.Div(e.a, e.b),))
            return self.named(quotient if divide else E.Sub(e.a, E.Mul(quotient, e.b)))
        if dt.is_uint(e.dtype):
            return self.binary((E.Div if divide else E.Mod)(e.a, e.b))
        by = as_int(e.b)
        if by is not None and by > 1 and by & (by - 1) == 0 and dt.bits_of(e.dtype) >= 32:
            # of two's complement the low bits are the remainder, and shifting is flooring
            if divide:
                amount = by.bit_length() - 1
                shift = f"{amount}u" if not self.d.c_like else str(amount)
                return f"{self.text(e.a, _UNARY)} >> {shift}", _SHIFT
            return f"{self.text(e.a, _UNARY)} & {by - 1}", _BIT
        return self.function("floordiv" if divide else "floormod", e.dtype, [e.a, e.b])

    def extreme(self, e: Any) -> tuple[str, int]:
        """Min and Max; of floats they give a number that is not one, if an operand is none."""
        if e.dtype == "bool":
            return self.binary(e)
        larger = type(e) is E.Max
        if dt.is_float(e.dtype):
            return self.function("maximum" if larger else "minimum", e.dtype, [e.a, e.b])
        return f"{'max' if larger else 'min'}({self.text(e.a)}, {self.text(e.b)})", _ATOM

    def negation(self, e: E.Not) -> tuple[str, int]:
        return f"!{self.text(e.a, _UNARY)}", _UNARY

    def choice(self, e: Any) -> tuple[str, int]:
        condition, a, b = e.args if type(e) is E.Call else (e.condition, e.true_value,
                                                            e.false_value)
        if not self.d.c_like:  # both are computed
            test = self.text(condition)
            self.when.append(f"({test})")
            chosen = self.text(a)
            self.when[-1] = f"!({test})"
            other = self.text(b)
            self.when.pop()
            return f"select({other}, {chosen}, {test})", _ATOM
        return (f"{self.text(condition, _OR)} ? {self.text(a, _OR)} : {self.text(b, _TERNARY)}",
                _TERNARY)

    def let(self, e: E.Let) -> tuple[str, int]:
        return self.named(substitute(e.body, {e.var: e.value}))

    def named(self, e: Any) -> tuple[str, int]:
        """An expression and how tightly it binds."""
        return _TABLE[type(e)](self, e)

    def load(self, e: E.BufferLoad) -> tuple[str, int]:
        (index,) = e.indices
        if type(index) is E.Ramp:
            return self.vector_load(e, index), _ATOM
        written = f"{self.names[e.buffer.data]}[{self.place(e, index)}]"
        return (f"{written} != 0", _COMPARE) if self._is_bool_memory(e.buffer) else (written, _ATOM)

    def _is_bool_memory(self, buffer: Any) -> bool:
        return buffer.dtype == "bool" and "bool" in self.d.memory_types and (
            buffer.scope == "global")

    def place(self, access: Any, index: Any, outer: int = _TERNARY) -> str:
        """The index of an access."""
        return self.text(index, outer)

    def vector_load(self, e: E.BufferLoad, index: E.Ramp) -> str:
        """A load of consecutive elements, for a store that copies them."""
        buffer = e.buffer
        const = "const " if self.is_read_only(buffer) else ""
        return self.d.vector_load.format(
            const=const, type=self.type_of(buffer.dtype), lanes=index.lanes,
            buffer=self.names[buffer.data], index=self.place(e, index.base, _SUM),
            space=self.space_of(buffer))

    def is_read_only(self, buffer: Any) -> bool:
        """Whether a kernel does not write to a buffer of the host."""
        raise TypeError("a generator of kernels says this")

    def space_of(self, buffer: Any) -> str:
        """The dialect's word for where a buffer lies."""
        return {"shared": "threadgroup", "local": "thread"}.get(
            str(buffer.scope).split(".")[0], "device")

    # -- calls ------------------------------------------------------------------------------------

    def helper(self, name: str, dtype: str) -> None:
        """Have a function of the dialect's own stand before the kernel."""
        if name in self.d.helpers:
            self.used_helpers[name, dtype] = None

    def function(self, name: str, dtype: str, args: list[Any]) -> tuple[str, int]:
        """A call of a math function; of 16 bits it is computed in float32."""
        template = self.d.functions.get(name)
        if template is None:
            raise LowerError(f"{self.name}: {self.d.title} has no function for {name}; compute it "
                             "from others, or on the host")
        if dtype in ("float16", "bfloat16") and name not in ("maximum", "minimum"):
            inner, _ = self.function(name, "float32", [E.Cast("float32", a) for a in args])
            kind = self.type_of(dtype)
            return (f"({kind}){inner}" if self.d.c_like else f"{kind}({inner})"), _UNARY
        self.helper(name, dtype)
        kind = self.type_of(dtype)
        template = template.replace("{T}", kind.replace(" ", "_")).replace(
            "{f}", "" if dtype == "float64" else "f")
        if "{0}" in template:
            return template.format(*(self.text(a, _UNARY) for a in args)), _ATOM
        return f"{template}({', '.join(map(self.text, args))})", _ATOM

    def call(self, e: E.Call) -> tuple[str, int]:
        name = getattr(e.op, "name", "").removeprefix("tir.")
        if name in _BITS and len(e.args) == 2:
            operator, level = _BITS[name]
            if "shift" in name and not self.d.c_like:
                return f"{self.text(e.args[0], _UNARY)} {operator} u32({self.text(e.args[1])})", \
                    level
            return self._join(operator, level, *e.args)
        special = _CALLS.get(name)
        if special is not None:
            return special(self, e)
        if name in ("call_extern", "call_pure_extern"):
            args = ", ".join(map(self.text, e.args[1:]))
            return f"{e.args[0].value}({args})", _ATOM  # type: ignore[union-attr]
        if name in ("isnan", "isinf", "isfinite"):
            return self.function(name, e.args[0].dtype, list(e.args))
        return self.function(name, e.dtype, list(e.args))

    def absolute(self, e: E.Call) -> tuple[str, int]:
        (x,) = e.args
        if dt.is_float(x.dtype):
            return self.function("fabs", x.dtype, [x])
        return self.choice(E.Select(E.LT(x, E.IntImm(x.dtype, 0)),
                                    E.Sub(E.IntImm(x.dtype, 0), x), x))

    def power(self, e: E.Call) -> tuple[str, int]:
        name = "pow" if dt.is_float(e.dtype) else "int_pow"
        return self.function(name, e.dtype, list(e.args))

    def counted(self, e: E.Call) -> tuple[str, int]:
        name = e.op.name.removeprefix("tir.")  # type: ignore[union-attr]
        wide = "64" if dt.bits_of(e.args[0].dtype) == 64 else ""
        return self.function(name + wide, e.args[0].dtype, list(e.args))

    def inverted(self, e: E.Call) -> tuple[str, int]:
        return f"~{self.text(e.args[0], _UNARY)}", _UNARY

    def reinterpreted(self, e: E.Call) -> tuple[str, int]:
        a, b = e.args[0].dtype, e.dtype
        if a == b:
            return self.named(e.args[0])
        row = {("float32", "int32"): "float_bits", ("int32", "float32"): "bits_float",
               ("float32", "uint32"): "float_ubits", ("uint32", "float32"): "ubits_float"}
        if (a, b) in row:
            return self.function(row[a, b], "float32", list(e.args))
        if dt.is_float(a) or dt.is_float(b) or dt.bits_of(a) != dt.bits_of(b):
            raise LowerError(f"{self.name}: the bits of {a} are not seen as {b} in {self.d.title}")
        return self.cast(E.Cast(b, e.args[0]))

    def shuffled(self, e: E.Call) -> tuple[str, int]:
        """A value that another lane has."""
        mask, value, lane, *sizes = e.args
        width, warp = (as_int(n) or 0 for n in sizes)
        way = e.op.name.removeprefix("tir.tvm_warp_shuffle")  # type: ignore[union-attr]
        template = self.d.shuffles.get(way, "")
        if not template or width != warp and "{group}" not in template:
            raise LowerError(f"{self.name}: {self.d.title} has no shuffle among {width} of {warp} "
                             "lanes; take whole warps, or shared memory")
        if self.warp not in (0, warp):
            raise LowerError(f"{self.name}: its shuffles take warps of {self.warp} and of {warp} "
                             "lanes; a device has one size")
        self.warp = warp
        return template.format(
            mask=self.text(mask), value=self.text(value), lane=self.text(lane),
            group="" if width == warp else f", {width}"), _ATOM

    def large(self, e: E.Call) -> tuple[str, int]:
        low, high = (int(a) & 0xFFFFFFFF for a in e.args)  # type: ignore[arg-type]
        return f"{high << 32 | low}{self.d.suffixes.get(e.dtype, '')}", _ATOM


_Method = Callable[[ExprGen, Any], "tuple[str, int]"]
_CALLS: dict[str, _Method] = {
    "if_then_else": ExprGen.choice, "abs": ExprGen.absolute, "pow": ExprGen.power,
    "likely": lambda g, e: g.named(e.args[0]), "popcount": ExprGen.counted, "clz": ExprGen.counted,
    "bitwise_not": ExprGen.inverted, "reinterpret": ExprGen.reinterpreted,
    "large_uint_imm": ExprGen.large, **dict.fromkeys(NAMES, ExprGen.shuffled),
}
_TABLE: dict[type, _Method] = {
    E.Var: ExprGen.var, E.SizeVar: ExprGen.var, E.IntImm: ExprGen.integer, E.FloatImm: ExprGen.real,
    E.Cast: ExprGen.cast, **dict.fromkeys(_BINARY, ExprGen.binary),
    E.FloorDiv: ExprGen.floor_divide, E.FloorMod: ExprGen.floor_divide,
    E.Min: ExprGen.extreme, E.Max: ExprGen.extreme,
    E.Not: ExprGen.negation, E.Select: ExprGen.choice, E.Let: ExprGen.let,
    E.BufferLoad: ExprGen.load, E.Call: ExprGen.call,
    E.Broadcast: lambda g, e: (f"({g.type_of(dt.element_of(e.dtype))}{e.lanes})"
                               f"({g.text(e.value)})", _UNARY),
}

__all__ = ["ExprGen"]
