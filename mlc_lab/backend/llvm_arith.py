"""LLVM code for arithmetic, comparisons and conversions of scalars and vectors.

docs/numbers.md defines the result for all values. Where one LLVM instruction leaves some of them
undefined, several are emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import tir
from ..ir import dtype as dt
from ..tir.numbers import cast_word
from .llvm_emit import const_int, intrinsic_suffix
from .llvm_index import DIVISIONS, IndexGen
from .llvm_types import element_type, float_constant, register_type

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr

# The instruction of each operation on (floats, signed, unsigned).
_ARITH = {
    tir.Add: ("fadd contract", "add", "add"),
    tir.Sub: ("fsub contract", "sub", "sub"),
    tir.Mul: ("fmul contract", "mul", "mul"),
    tir.Div: ("fdiv contract", "sdiv", "udiv"),
    tir.Mod: ("frem", "srem", "urem"),
}
_COMPARE = {
    tir.EQ: ("oeq", "eq", "eq"),
    tir.NE: ("une", "ne", "ne"),
    tir.LT: ("olt", "slt", "ult"),
    tir.LE: ("ole", "sle", "ule"),
    tir.GT: ("ogt", "sgt", "ugt"),
    tir.GE: ("oge", "sge", "uge"),
}
_BOOL = {tir.Add: "or", tir.Sub: "xor", tir.Mul: "and"}


class ArithGen(IndexGen):
    """The part of the code generator that computes with numbers. ``visit`` is ``llvm_expr``'s."""

    expr_table: dict[type, Callable[[Any, Any], str]] = {}

    def splat_constant(self, text: str, element: str, lanes: int) -> str:
        """A constant of LLVM type ``element`` in every lane."""
        return text if lanes == 1 else f"splat ({element} {text})"

    def choose(self, flag: str, ty: str, a: str, b: str, lanes: int) -> str:
        """a where the flag (of each lane) is set, else b."""
        flags = "i1" if lanes == 1 else f"<{lanes} x i1>"
        return self.pure(f"select {flags} {flag}, {ty} {a}, {ty} {b}")

    # -- arithmetic -------------------------------------------------------------------------------

    def expr_arith(self, e: tir.BinaryOp) -> str:
        dtype, kind = e.dtype, type(e)
        code, bits, _ = dt.parse(dtype)
        if code in ("int", "uint", "bool") and kind in DIVISIONS:
            return self.divide(e)
        a, b = self.visit(e.a), self.visit(e.b)
        ty = register_type(dtype)
        if code == "bool":
            return self.pure(f"{_BOOL[kind]} {ty} {a}, {b}")
        ops = _ARITH[kind]
        if code == "float":
            return self.pure(f"{ops[0]} {ty} {a}, {b}")
        if code == "int":
            flags = "" if self.may_wrap(e) else " nsw"
            return self.pure(f"{ops[1]}{flags} {ty} {a}, {b}")
        if code == "bfloat":
            wide = dt.with_lanes("float32", dt.lanes_of(dtype))
            a, b = self.widen(a, dtype), self.widen(b, dtype)
            return self.narrow(self.pure(f"{ops[0]} {register_type(wide)} {a}, {b}"), dtype)
        return self.pure(f"{ops[2]} {ty} {a}, {b}")

    # -- division ---------------------------------------------------------------------------------

    def divide(self, e: tir.BinaryOp) -> str:
        """Quotient and remainder, rounding toward zero or down; of floats those that round down.

        The processor traps where an integer is divided by zero, and where the smallest is divided
        by -1: here the first raises an error, and the second wraps around.
        """
        dtype, kind = e.dtype, type(e)
        if dt.is_float(dtype):
            return self.float_floor_divide(e)
        ty = register_type(dtype)
        code, bits, lanes = dt.parse(dtype)
        element = element_type(dtype)
        quotient = kind in (tir.Div, tir.FloorDiv)
        floor = kind in (tir.FloorDiv, tir.FloorMod)
        divisor = e.b.value if type(e.b) is tir.Broadcast else e.b
        value = const_int(divisor)
        a = self.visit(e.a)
        if floor and value is not None and value > 0 and value & (value - 1) == 0 and (
                code == "int"):
            number = value.bit_length() - 1 if quotient else value - 1
            operand = self.splat_constant(str(number), element, lanes)
            return self.pure(f"{'ashr' if quotient else 'and'} {ty} {a}, {operand}")
        b = self.visit(e.b)
        b = self.nonzero_divisor(e, divisor, b)
        if code == "bool":
            return a if quotient else self.splat_constant("false", "i1", lanes)
        positive = code == "uint" or (value is not None and value > 0 and self.is_nonneg(e.a)) or (
            self.is_nonneg(e.a) and self.is_nonneg(e.b))
        if positive:
            return self.pure(f"{'udiv' if quotient else 'urem'} {ty} {a}, {b}")
        if value == -1:
            zero = self.splat_constant("0", element, lanes)
            return self.pure(f"sub {ty} {zero}, {a}") if quotient else zero
        if value is not None or self.is_nonneg(e.a) or self.is_nonneg(e.b):
            return self.signed_divide(ty, a, b, quotient, floor, lanes)
        if bits < 32:  # the quotient of the smallest by -1 fits into more bits
            wide = register_type(dt.with_lanes("int32", lanes))
            a, b = (self.pure(f"sext {ty} {x} to {wide}") for x in (a, b))
            result = self.signed_divide(wide, a, b, quotient, floor, lanes)
            return self.pure(f"trunc {wide} {result} to {ty}")
        ones, one = (self.splat_constant(n, element, lanes) for n in ("-1", "1"))
        flips = self.pure(f"icmp eq {ty} {b}, {ones}")
        safe = self.choose(flips, ty, one, b, lanes)
        result = self.signed_divide(ty, a, safe, quotient, floor, lanes)
        if not quotient:
            return result  # a % -1 is a % 1
        zero = self.splat_constant("0", element, lanes)
        return self.choose(flips, ty, self.pure(f"sub {ty} {zero}, {a}"), result, lanes)

    def signed_divide(self, ty: str, a: str, b: str, quotient: bool, floor: bool, lanes: int
                      ) -> str:
        """Signed division whose divisor is not zero and whose quotient does not overflow."""
        if floor:
            return self.floor_divide(ty, a, b, quotient, lanes)
        return self.pure(f"{'sdiv' if quotient else 'srem'} {ty} {a}, {b}")

    def nonzero_divisor(self, e: PrimExpr, divisor: Any, b: str) -> str:
        """The operand ``b`` where it is not zero; elsewhere the function returns with an error.

        In inactive lanes (those not chosen, not stored) zero becomes one.
        """
        if self.is_nonzero(divisor):
            return b
        lanes = dt.lanes_of(e.dtype)
        masked = self.mask is not None and self.mask_width == lanes > 1
        ty, zero = register_type(e.dtype), self.splat_constant("0", element_type(e.dtype), lanes)
        if dt.is_bool(e.dtype):
            zero = self.splat_constant("false", "i1", lanes)
        is_zero = bad = self.pure(f"icmp eq {ty} {b}, {zero}")
        if lanes > 1:
            flags = f"<{lanes} x i1>"
            if masked:
                bad = self.pure(f"and {flags} {bad}, {self.mask}")
            name = f"llvm.vector.reduce.or.v{lanes}i1"
            bad = self.call_intrinsic(name, "i1", f"{flags} {bad}")
        failed, good = self.new_label("zero"), self.new_label("divides")
        self.cond_br(bad, failed, good)
        self.label(failed)
        text = repr(e).replace("\n", " ")
        self.fail("ZeroDivisionError", f"{self.function_name}: division by zero in {text[:200]}")
        self.label(good)
        if not masked:
            return b
        one = self.splat_constant("1", element_type(e.dtype), lanes)
        return self.choose(is_zero, ty, one, b, lanes)

    def float_floor_divide(self, e: tir.BinaryOp) -> str:
        """Quotient and remainder of floats, rounding down: see ``numbers.float_floordiv``."""
        dtype, lanes = e.dtype, dt.lanes_of(e.dtype)
        quotient = type(e) is tir.FloorDiv
        narrow = dt.bits_of(dtype) == 16
        wide = dt.with_lanes("float64" if quotient else "float32" if narrow else
                             dt.element_of(dtype), lanes)
        a, b = (self.convert(self.visit(x), dtype, wide) for x in (e.a, e.b))
        ty, zero = register_type(wide), float_constant(0.0, wide)
        zero = self.splat_constant(zero, element_type(wide), lanes)

        def number(value: float) -> str:
            return self.splat_constant(float_constant(value, wide), element_type(wide), lanes)

        flags = "i1" if lanes == 1 else f"<{lanes} x i1>"
        rest = self.pure(f"frem {ty} {a}, {b}")
        left = self.pure(f"fcmp une {ty} {rest}, {zero}")
        below = [self.pure(f"fcmp olt {ty} {x}, {zero}") for x in (rest, b)]
        differ = self.pure(f"xor {flags} {below[0]}, {below[1]}")
        adjust = self.pure(f"and {flags} {left}, {differ}")
        if not quotient:
            result = self.choose(adjust, ty, self.pure(f"fadd {ty} {rest}, {b}"), rest, lanes)
            return self.convert(result, wide, dtype)
        plain = self.pure(f"fdiv {ty} {a}, {b}")
        q = self.pure(f"fdiv {ty} {self.pure(f'fsub {ty} {a}, {rest}')}, {b}")
        q = self.choose(adjust, ty, self.pure(f"fsub {ty} {q}, {number(1.0)}"), q, lanes)
        suffix = intrinsic_suffix(wide)
        whole = self.call_intrinsic(f"llvm.floor.{suffix}", ty, f"{ty} {q}")
        short = self.pure(f"fcmp ogt {ty} {self.pure(f'fsub {ty} {q}, {whole}')}, {number(0.5)}")
        next_ = self.pure(f"fadd {ty} {whole}, {number(1.0)}")
        result = self.choose(short, ty, next_, whole, lanes)
        signed = self.call_intrinsic(f"llvm.copysign.{suffix}", ty, f"{ty} {zero}", f"{ty} {plain}")
        none = self.pure(f"fcmp oeq {ty} {q}, {zero}")
        result = self.choose(none, ty, signed, result, lanes)
        by_zero = self.pure(f"fcmp oeq {ty} {b}, {zero}")
        return self.convert(self.choose(by_zero, ty, plain, result, lanes), wide, dtype)

    # -- minimum and maximum ----------------------------------------------------------------------

    def expr_min_max(self, e: tir.BinaryOp) -> str:
        dtype = e.dtype
        code, _, lanes = dt.parse(dtype)
        less, ty = type(e) is tir.Min, register_type(dtype)
        a, b = self.visit(e.a), self.visit(e.b)
        if code not in ("float", "bfloat"):
            sign = "s" if code == "int" else "u"
            flag = self.pure(f"icmp {sign}{'lt' if less else 'gt'} {ty} {a}, {b}")
            return self.choose(flag, ty, a, b, lanes)
        wide = dtype
        if code == "bfloat":
            wide = dt.with_lanes("float32", lanes)
            a, b, ty = self.widen(a, dtype), self.widen(b, dtype), register_type(wide)
        result = self._float_extremum(e, a, b, wide, less)
        return result if code == "float" else self._truncated(result, dtype)

    def _float_extremum(self, e: tir.BinaryOp, a: str, b: str, dtype: str, less: bool) -> str:
        """NaN where either operand is; the first where they are equal.

        x86's maxps(b, a) is ``b > a ? b : a``: one instruction, wrong only where b is NaN. Unless
        b is a constant, two more instructions select NaN there. (``freeze`` keeps LLVM from merging
        the two selects. Its own ``llvm.maximum`` orders 0.0 and -0.0, which takes three
        instructions more.)
        """
        ty, lanes = register_type(dtype), dt.lanes_of(dtype)
        first, second = (x.value if type(x) is tir.Broadcast else x for x in (e.a, e.b))
        order = "lt" if less else "gt"
        if lanes == 1 and dt.bits_of(dtype) > 16 and (
                type(e.a) is tir.BufferLoad and e.a.buffer is self.stored):
            return self._reduction_extremum(a, b, dtype, less)
        if type(first) is tir.FloatImm and first.value == first.value:
            return self.choose(self.pure(f"fcmp u{order} {ty} {b}, {a}"), ty, b, a, lanes)
        one = self.choose(self.pure(f"fcmp o{order} {ty} {b}, {a}"), ty, b, a, lanes)
        if type(second) is tir.FloatImm and second.value == second.value:
            return one
        nan = self.pure(f"fcmp uno {ty} {b}, {b}")
        return self.choose(nan, ty, b, self.pure(f"freeze {ty} {one}"), lanes)

    def _reduction_extremum(self, a: str, b: str, dtype: str, less: bool) -> str:
        """One step of a reduction by min or max, in a form that LLVM vectorizes: ``nsz`` lets it
        give either of 0.0 and -0.0."""
        ty = register_type(dtype)
        name = f"llvm.{'minimum' if less else 'maximum'}.{intrinsic_suffix(dtype)}"
        self.unit.text.declare(ty, name, [ty, ty])
        return self.pure(f"call nsz {ty} @{name}({ty} {a}, {ty} {b})")

    def _truncated(self, value: str, dtype: str) -> str:
        """A float32 operand that holds a bfloat16, as one: the upper half of its bits."""
        lanes = dt.lanes_of(dtype)
        words, wide = (register_type(dt.with_lanes(t, lanes)) for t in ("int32", "float32"))
        raw = self.pure(f"bitcast {wide} {value} to {words}")
        high = self.pure(f"lshr {words} {raw}, {self.splat_constant('16', 'i32', lanes)}")
        return self.pure(f"trunc {words} {high} to {register_type(dtype)}")

    # -- conditions -------------------------------------------------------------------------------

    def expr_compare(self, e: tir.CmpOp) -> str:
        floats, signed, unsigned = _COMPARE[type(e)]
        dtype = e.a.dtype
        code, _, lanes = dt.parse(dtype)
        if code == "int" and lanes == 1 and self.is_wide(e.a, e.b):
            return self.pure(f"icmp {signed} i64 {self.index(e.a)}, {self.index(e.b)}")
        a, b = self.visit(e.a), self.visit(e.b)
        if code == "bfloat":
            a, b = self.widen(a, dtype), self.widen(b, dtype)
            dtype = dt.with_lanes("float32", lanes)
        if code in ("float", "bfloat"):
            return self.pure(f"fcmp {floats} {register_type(dtype)} {a}, {b}")
        kind = signed if code == "int" else unsigned
        return self.pure(f"icmp {kind} {register_type(dtype)} {a}, {b}")

    def is_wide(self, a: Any, b: Any) -> bool:
        """Whether a comparison is of index arithmetic, whose operands exist in 64 bits."""
        return (type(a) in self.index_table and type(b) in self.index_table
                and not self.is_data(a) and not self.is_data(b))

    def expr_logic(self, e: tir.And | tir.Or) -> str:
        lanes, ty = dt.lanes_of(e.dtype), register_type(e.dtype)
        lazy = self.may_fail(e.b)
        if lazy and lanes == 1:
            return self.lazy_logic(e)
        op = "and" if type(e) is tir.And else "or"
        a, mask = self.visit(e.a), None
        if lazy:
            mask = a if op == "and" else self.pure(f"xor {ty} {a}, splat (i1 true)")
        with self.active_lanes(mask, lanes):
            b = self.visit(e.b)
        return self.pure(f"{op} {ty} {a}, {b}")

    @contextmanager
    def active_lanes(self, mask: str | None, lanes: int) -> Iterator[None]:
        """While code is written, only the lanes set in ``mask`` are active (None: no change)."""
        saved = self.mask, self.mask_width
        if mask is not None:
            if self.mask is not None and self.mask_width == lanes:
                mask = self.pure(f"and <{lanes} x i1> {mask}, {self.mask}")
            self.mask, self.mask_width = mask, lanes
        yield
        self.mask, self.mask_width = saved

    def condition(self, e: PrimExpr) -> str:
        """A condition to branch on; a right operand that loads memory is evaluated lazily."""
        if isinstance(e, (tir.And, tir.Or)) and dt.lanes_of(e.dtype) == 1 and _loads(e.b):
            return self.lazy_logic(e)
        return self.visit(e)

    def lazy_logic(self, e: tir.And | tir.Or) -> str:
        """a and b, a or b, where b is computed only if a does not decide."""
        first = self.condition(e.a)
        before, more, end = self.block, self.new_label("then"), self.new_label("both")
        decided = "false" if type(e) is tir.And else "true"
        self.cond_br(first, *((more, end) if type(e) is tir.And else (end, more)))
        with self.scope():
            self.label(more)
            second = self.condition(e.b)
            after = self.block
            self.br(end)
        self.label(end)
        return self.op(f"phi i1 [{decided}, %{before}], [{second}, %{after}]")

    def may_fail(self, e: PrimExpr) -> bool:
        """Whether an expression divides by what may be zero."""
        if isinstance(e, tir.BinaryOp) and type(e) in DIVISIONS and not dt.is_float(e.dtype):
            divisor = e.b.value if type(e.b) is tir.Broadcast else e.b
            if not self.is_nonzero(divisor):
                return True
        return any(self.may_fail(c) for c in e.children() if isinstance(c, tir.PrimExpr))

    def expr_not(self, e: tir.Not) -> str:
        lanes = dt.lanes_of(e.dtype)
        ones = "true" if lanes == 1 else "splat (i1 true)"
        return self.pure(f"xor {register_type(e.dtype)} {self.visit(e.a)}, {ones}")

    # -- conversions ------------------------------------------------------------------------------

    def widen(self, value: str, dtype: str) -> str:
        """A float16 or bfloat16 operand as float32; others stay."""
        code, bits, lanes = dt.parse(dtype)
        wide = register_type(dt.with_lanes("float32", lanes))
        if code == "float" and bits == 16:
            return self.pure(f"fpext {register_type(dtype)} {value} to {wide}")
        if code != "bfloat":
            return value
        words = register_type(dt.with_lanes("int32", lanes))
        up = self.pure(f"zext {register_type(dtype)} {value} to {words}")
        by = "16" if lanes == 1 else "splat (i32 16)"
        return self.pure(f"bitcast {words} {self.pure(f'shl {words} {up}, {by}')} to {wide}")

    def narrow(self, value: str, dtype: str) -> str:
        """A float32 operand as float16 or bfloat16, rounded to nearest, ties to even."""
        code, bits, lanes = dt.parse(dtype)
        wide = register_type(dt.with_lanes("float32", lanes))
        if code == "float" and bits == 16:
            return self.pure(f"fptrunc {wide} {value} to {register_type(dtype)}")
        if code != "bfloat":
            return value
        words = register_type(dt.with_lanes("int32", lanes))

        def c(number: int) -> str:
            return str(number) if lanes == 1 else f"splat (i32 {number})"

        raw = self.pure(f"bitcast {wide} {value} to {words}")
        odd = self.pure(f"and {words} {self.pure(f'lshr {words} {raw}, {c(16)}')}, {c(1)}")
        bias = self.pure(f"add {words} {odd}, {c(0x7FFF)}")
        rounded = self.pure(f"lshr {words} {self.pure(f'add {words} {raw}, {bias}')}, {c(16)}")
        nan = self.pure(f"fcmp uno {wide} {value}, {value}")
        flag = "i1" if lanes == 1 else f"<{lanes} x i1>"
        kept = self.pure(f"select {flag} {nan}, {words} {c(0x7FC0)}, {words} {rounded}")
        return self.pure(f"trunc {words} {kept} to {register_type(dtype)}")

    def expr_cast(self, e: tir.Cast) -> str:
        return self.convert(self.visit(e.value), e.value.dtype, e.dtype)

    def convert(self, value: str, source: str, target: str) -> str:
        """An operand of dtype ``source`` as ``target``, with the same number of lanes."""
        if source == target:
            return value
        code, bits, lanes = dt.parse(source)
        to_code, to_bits, to_lanes = dt.parse(target)
        if lanes == 1 and to_lanes > 1:
            scalar = self.convert(value, source, dt.element_of(target))
            return self.splat(scalar, element_type(target), to_lanes)
        if "handle" in (code, to_code):
            return self._convert_handle(value, source, target)
        if code == "bfloat" or (code == "float" and bits == 16 and to_code != "float"):
            value, source = self.widen(value, source), dt.with_lanes("float32", lanes)
            return self.convert(value, source, target)
        if to_code == "bfloat":
            wide = dt.with_lanes("float32", lanes)
            return self.narrow(self.convert(value, source, wide), target)
        from_ty, to_ty = register_type(source), register_type(target)
        zero = "0" if lanes == 1 else "zeroinitializer"
        if to_code == "bool":
            if code == "float":
                zero = "0.0" if lanes == 1 else zero
                return self.pure(f"fcmp une {from_ty} {value}, {zero}")
            return self.pure(f"icmp ne {from_ty} {value}, {zero}")
        if code == "float" and to_code == "float":
            op = "fpext" if to_bits > bits else "fptrunc"
        elif code == "float":
            return self._float_to_int(value, source, target)
        elif to_code == "float":
            op = "sitofp" if code == "int" else "uitofp"
        elif to_bits == bits:
            return value
        elif to_bits < bits:
            op = "trunc"
        else:
            op = "sext" if code == "int" else "zext"
        return self.pure(f"{op} {from_ty} {value} to {to_ty}")

    def _float_to_int(self, value: str, source: str, target: str) -> str:
        """A float32 or float64 as an integer: see ``numbers.float_to_int``."""
        lanes, word, bits = dt.lanes_of(target), cast_word(target), dt.bits_of(target)
        ty, to_ty = register_type(source), register_type(target)
        wide = register_type(dt.with_lanes(f"int{word}", lanes))
        limit = float(1 << (word - 1))

        def number(x: float) -> str:
            return self.splat_constant(float_constant(x, dt.element_of(source)),
                                       element_type(source), lanes)

        if dt.bits_of(source) == 64 and word == 32:  # -2^31 - 0.5 truncates to -2^31
            low = self.pure(f"fcmp ogt {ty} {value}, {number(-limit - 1)}")
            high = self.pure(f"fcmp olt {ty} {value}, {number(limit)}")
            fits = self.pure(f"and {'i1' if lanes == 1 else f'<{lanes} x i1>'} {low}, {high}")
        else:
            size = self.call_intrinsic(f"llvm.fabs.{intrinsic_suffix(source)}", ty, f"{ty} {value}")
            fits = self.pure(f"fcmp olt {ty} {size}, {number(limit)}")
        least = self.splat_constant(str(-(1 << (word - 1))), f"i{word}", lanes)
        whole = self.pure(f"fptosi {ty} {value} to {wide}")
        result = self.choose(fits, wide, whole, least, lanes)
        if dt.element_of(target) == "uint64":
            low = self.pure(f"fcmp oge {ty} {value}, {number(limit)}")
            high = self.pure(f"fcmp olt {ty} {value}, {number(2 * limit)}")
            above = self.pure(f"and {'i1' if lanes == 1 else f'<{lanes} x i1>'} {low}, {high}")
            large = self.pure(f"fptoui {ty} {value} to {wide}")
            result = self.choose(above, wide, large, result, lanes)
        return result if bits == word else self.pure(f"trunc {wide} {result} to {to_ty}")

    def _convert_handle(self, value: str, source: str, target: str) -> str:
        if dt.is_handle(source) and dt.is_handle(target):
            return value
        if dt.is_handle(target):
            return self.pure(f"inttoptr {register_type(source)} {value} to ptr")
        return self.pure(f"ptrtoint ptr {value} to {register_type(target)}")


def _loads(e: PrimExpr) -> bool:
    """Whether an expression reads memory."""
    if type(e) is tir.BufferLoad:
        return True
    return any(_loads(c) for c in e.children() if isinstance(c, tir.PrimExpr))


ArithGen.expr_table = {
    tir.FloorDiv: ArithGen.divide,
    tir.FloorMod: ArithGen.divide,
    tir.Min: ArithGen.expr_min_max,
    tir.Max: ArithGen.expr_min_max,
    tir.And: ArithGen.expr_logic,
    tir.Or: ArithGen.expr_logic,
    tir.Not: ArithGen.expr_not,
    tir.Cast: ArithGen.expr_cast,
    **dict.fromkeys(_ARITH, ArithGen.expr_arith),
    **dict.fromkeys(_COMPARE, ArithGen.expr_compare),
}
