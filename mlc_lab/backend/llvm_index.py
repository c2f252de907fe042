"""LLVM code for index arithmetic.

``IndexGen.index`` gives an integer expression as an i64, computed in 64 bits throughout: TensorIR's
index arithmetic does not overflow, so widening its leaves is the same, and LLVM need not widen it
again. Constants are folded on the way. Values that are not indices may wrap around: where that
matters (they are divided, or compared), they are computed in their own type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import tir
from ..arith.expr_util import ARITHMETIC, INDEX_DTYPES, is_data
from ..ir import dtype as dt
from .llvm_emit import Emitter
from .llvm_types import register_type

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr

DIVISIONS = (tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod)
_INDEX_OPS = {tir.Add: "add nsw", tir.Sub: "sub nsw", tir.Mul: "mul nsw"}


class IndexGen(Emitter):
    """The part of the code generator that computes indices. ``visit`` is ``llvm_expr``'s."""

    index_table: dict[type, Callable[[Any, Any], str]] = {}

    def visit(self, e: PrimExpr) -> str:
        """The operand of any expression, in the type of its dtype."""
        raise TypeError("an index generator stands below an expression generator")

    def index(self, e: Any) -> str:
        """An integer expression as an i64 operand."""
        method = self.index_table.get(type(e))
        if method is not None and e.dtype in ("int32", "int64"):
            return method(self, e)
        value = self.visit(e)
        code, bits, _ = dt.parse(e.dtype)
        if bits == 64:
            return value
        if value.lstrip("-").isdigit():
            return value
        if value in ("true", "false"):
            return "1" if value == "true" else "0"
        return self.pure(f"{'sext' if code == 'int' else 'zext'} {register_type(e.dtype)} "
                         f"{value} to i64")

    def is_data(self, e: PrimExpr) -> bool:
        """Whether an expression computes with data, which may wrap around."""
        return is_data(e, self.data)

    def may_wrap(self, e: PrimExpr) -> bool:
        """Whether the result of an operation may wrap around: of all but index arithmetic."""
        return dt.element_of(e.dtype) not in INDEX_DTYPES or self.is_data(e)

    def sign_extend(self, value: str, dtype: str) -> str:
        """An int32 or int64 operand as an i64."""
        return self.pure(f"sext i32 {value} to i64") if dtype == "int32" and value[0] == "%" else (
            value)

    def fold(self, op: str, a: str, b: str) -> str:
        """An i64 operation with constants folded."""
        a_const, b_const = a[0] != "%", b[0] != "%"
        if a_const and b_const:
            x, y = int(a), int(b)
            return str(x + y if op[0] == "a" else x - y if op[0] == "s" else x * y)
        if op[0] == "m":
            if a == "0" or b == "0":
                return "0"
            if a == "1":
                return b
            if b == "1":
                return a
        elif b == "0":
            return a
        elif a == "0" and op[0] == "a":
            return b
        return self.pure(f"{op} i64 {a}, {b}")

    def index_int(self, e: tir.IntImm) -> str:
        return str(e.value)

    def index_var(self, e: tir.Var) -> str:
        wide = self.wide.get(e)
        if wide is not None:
            return wide
        value = self.env.get(e)
        if value is None:
            return self.visit(e)
        return self.pure(f"sext i32 {value} to i64") if e.dtype == "int32" else value

    def index_arith(self, e: tir.BinaryOp) -> str:
        return self.fold(_INDEX_OPS[type(e)], self.index(e.a), self.index(e.b))

    def index_divide(self, e: tir.BinaryOp) -> str:
        if self.is_data(e) or not self.is_nonzero(e.b):
            return self.sign_extend(self.visit(e), e.dtype)
        quotient = type(e) in (tir.Div, tir.FloorDiv)
        floor = type(e) in (tir.FloorDiv, tir.FloorMod)
        a, b = self.index(e.a), self.index(e.b)
        nonneg = self.is_nonneg(e.a)
        if b[0] != "%":
            value = int(b)
            if a[0] != "%" and value:
                x = int(a)
                q = x // value if floor else abs(x) // abs(value) * (
                    1 if (x < 0) == (value < 0) else -1)
                return str(q if quotient else x - q * value)
            if value == 1:
                return a if quotient else "0"
            if value > 0 and value & (value - 1) == 0 and (floor or nonneg):
                if quotient:
                    return self.pure(f"{'lshr' if nonneg else 'ashr'} i64 {a}, "
                                     f"{value.bit_length() - 1}")
                return self.pure(f"and i64 {a}, {value - 1}")
            if value > 0 and nonneg:
                return self.pure(f"{'udiv' if quotient else 'urem'} i64 {a}, {b}")
        if nonneg and self.is_nonneg(e.b):
            return self.pure(f"{'udiv' if quotient else 'urem'} i64 {a}, {b}")
        if not floor:
            return self.pure(f"{'sdiv' if quotient else 'srem'} i64 {a}, {b}")
        return self.floor_divide("i64", a, b, quotient)

    def index_min_max(self, e: tir.BinaryOp) -> str:
        if self.is_data(e):
            return self.sign_extend(self.visit(e), e.dtype)
        a, b = self.index(e.a), self.index(e.b)
        if a[0] != "%" and b[0] != "%":
            return str((min if type(e) is tir.Min else max)(int(a), int(b)))
        less = "slt" if type(e) is tir.Min else "sgt"
        cond = self.pure(f"icmp {less} i64 {a}, {b}")
        return self.pure(f"select i1 {cond}, i64 {a}, i64 {b}")

    def index_select(self, e: tir.Select) -> str:
        cond = self.visit(e.condition)
        return self.pure(
            f"select i1 {cond}, i64 {self.index(e.true_value)}, i64 {self.index(e.false_value)}"
        )

    def index_cast(self, e: tir.Cast) -> str:
        if e.value.dtype in ("int32", "int64") and e.dtype == "int64":
            return self.index(e.value)
        return self.sign_extend(self.visit(e), e.dtype)

    def is_nonzero(self, e: PrimExpr) -> bool:
        """Whether an integer expression is known not to be 0, from its form."""
        if type(e) is tir.IntImm:
            return e.value != 0
        if isinstance(e, tir.Var):
            return e in self.nonzero
        if type(e) is tir.Mul:
            return not self.may_wrap(e) and self.is_nonzero(e.a) and self.is_nonzero(e.b)
        if type(e) is tir.Add:
            return not self.may_wrap(e) and self.is_nonneg(e.a) and self.is_nonneg(e.b) and (
                self.is_nonzero(e.a) or self.is_nonzero(e.b))
        if type(e) is tir.Max:
            return any(self.is_nonneg(x) and self.is_nonzero(x) for x in (e.a, e.b))
        if type(e) is tir.Cast:
            source = e.value.dtype
            return (dt.is_integer(source) and dt.bits_of(e.dtype) >= dt.bits_of(source)
                    and self.is_nonzero(e.value))
        return False

    def learn_at_least(self, e: Any, low: int) -> None:
        """Note which variables are not zero where an index expression is at least ``low``."""
        kind = type(e)
        if kind is tir.Var or kind is tir.SizeVar:
            if low >= 1:
                self.nonzero.add(e)
        elif kind is tir.Mul and low >= 1:
            for factor in (e.a, e.b):
                self.learn_not_zero(factor)
        elif kind is tir.Min:
            self.learn_at_least(e.a, low)
            self.learn_at_least(e.b, low)
        elif kind is tir.Cast:
            self.learn_at_least(e.value, low)
        elif kind in (tir.Add, tir.Sub, tir.FloorDiv, tir.Div) and type(e.b) is tir.IntImm:
            c = e.b.value
            if kind is tir.Add or kind is tir.Sub:
                self.learn_at_least(e.a, low - c if kind is tir.Add else low + c)
            elif c > 0 and low >= 1:
                self.learn_at_least(e.a, low * c)

    def learn_not_zero(self, e: PrimExpr) -> None:
        """Note which variables are factors of an index expression that is not zero."""
        if type(e) is tir.Var or type(e) is tir.SizeVar:
            self.nonzero.add(e)
        elif type(e) is tir.Mul:
            self.learn_not_zero(e.a)
            self.learn_not_zero(e.b)
        elif type(e) is tir.Cast:
            self.learn_not_zero(e.value)

    def is_nonneg(self, e: Any) -> bool:
        """Whether an integer expression is known to be >= 0, from its form."""
        kind = type(e)
        if kind is tir.IntImm:
            return e.value >= 0
        if kind is tir.Var:
            return e in self.nonneg
        if kind in (tir.Add, tir.Mul, tir.Div, tir.FloorDiv, tir.Min):
            return self.is_nonneg(e.a) and self.is_nonneg(e.b) and (
                kind not in ARITHMETIC or not self.may_wrap(e))
        if kind is tir.FloorMod:
            return self.is_nonneg(e.b)
        if kind is tir.Mod:
            return self.is_nonneg(e.a)
        if kind is tir.Max:
            return self.is_nonneg(e.a) or self.is_nonneg(e.b)
        if kind is tir.Cast:
            return self.is_nonneg(e.value) and self._keeps_nonneg(e)
        if kind is tir.Broadcast:
            return self.is_nonneg(e.value)
        if kind is tir.Ramp:
            return self.is_nonneg(e.base) and self.is_nonneg(e.stride)
        return kind is tir.SizeVar

    def _keeps_nonneg(self, e: tir.Cast) -> bool:
        """Whether a cast keeps all values >= 0 of the type that it converts from."""
        source, more = e.value.dtype, dt.bits_of(e.dtype) - dt.bits_of(e.value.dtype)
        if dt.is_uint(source):
            return more > 0 or (more == 0 and dt.is_uint(e.dtype))
        return dt.is_int(source) and (more >= 0 or (e.dtype == "int32" and not self.is_data(e)))

    def floor_divide(self, ty: str, a: str, b: str, quotient: bool, lanes: int = 1) -> str:
        """Division that rounds down, from the one that rounds toward zero."""
        flag = "i1" if lanes == 1 else f"<{lanes} x i1>"
        zero = "0" if lanes == 1 else "zeroinitializer"
        r = self.pure(f"srem {ty} {a}, {b}")
        inexact = self.pure(f"icmp ne {ty} {r}, {zero}")
        signs = self.pure(f"xor {ty} {r}, {b}")
        differ = self.pure(f"icmp slt {ty} {signs}, {zero}")
        adjust = self.pure(f"and {flag} {inexact}, {differ}")
        if quotient:
            q = self.pure(f"sdiv {ty} {a}, {b}")
            return self.pure(f"add {ty} {q}, {self.pure(f'sext {flag} {adjust} to {ty}')}")
        moved = self.pure(f"add {ty} {r}, {b}")
        return self.pure(f"select {flag} {adjust}, {ty} {moved}, {ty} {r}")


IndexGen.index_table = {
    tir.IntImm: IndexGen.index_int,
    tir.Var: IndexGen.index_var,
    tir.SizeVar: IndexGen.index_var,
    tir.Add: IndexGen.index_arith,
    tir.Sub: IndexGen.index_arith,
    tir.Mul: IndexGen.index_arith,
    tir.Min: IndexGen.index_min_max,
    tir.Max: IndexGen.index_min_max,
    tir.Select: IndexGen.index_select,
    tir.Cast: IndexGen.index_cast,
    **dict.fromkeys(DIVISIONS, IndexGen.index_divide),
}
