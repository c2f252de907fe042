"""LLVM code for the bits of integers: logic, shifts, counts, fixed point; and for powers."""

from __future__ import annotations

from .. import tir
from ..ir import dtype as dt
from .llvm_emit import CodegenError, const_int, intrinsic_suffix
from .llvm_packed import PackedGen
from .llvm_types import element_type, register_type


class BitsGen(PackedGen):
    """The part of the code generator that handles integers as bits."""

    def call_bitwise(self, e: tir.Call, op: str) -> str:
        """and, or, xor."""
        a, b = (self.visit(x) for x in e.args)
        return self.pure(f"{op} {register_type(e.dtype)} {a}, {b}")

    # -- shifts -----------------------------------------------------------------------------------

    def call_shift_left(self, e: tir.Call) -> str:
        """x << n; 0 where n is negative or as large as the type. (LLVM leaves that open.)"""
        a, n, fits = self._shift(e)
        if fits == "true":
            return self.pure(f"shl {register_type(e.dtype)} {a}, {n}")
        ty, lanes = register_type(e.dtype), dt.lanes_of(e.dtype)
        zero = self.splat_constant("0", element_type(e.dtype), lanes)
        if fits == "false":
            return zero
        return self.choose(fits, ty, self.pure(f"shl {ty} {a}, {n}"), zero, lanes)

    def call_shift_right(self, e: tir.Call) -> str:
        """x >> n; the sign in every bit where n is negative or as large as the type."""
        a, n, fits = self._shift(e)
        ty, lanes, signed = register_type(e.dtype), dt.lanes_of(e.dtype), dt.is_int(e.dtype)
        op = "ashr" if signed else "lshr"
        most = self.splat_constant(str(dt.bits_of(e.dtype) - 1), element_type(e.dtype), lanes)
        zero = self.splat_constant("0", element_type(e.dtype), lanes)
        if fits == "false":
            return self.pure(f"ashr {ty} {a}, {most}") if signed else zero
        if fits != "true" and signed:
            n = self.choose(fits, ty, n, most, lanes)
        shifted = self.pure(f"{op} {ty} {a}, {n}")
        return shifted if signed or fits == "true" else self.choose(fits, ty, shifted, zero, lanes)

    def _shift(self, e: tir.Call) -> tuple[str, str, str]:
        """Value, count, and whether 0 <= count < bits ("true", "false", or an i1 operand)."""
        count = e.args[1].value if type(e.args[1]) is tir.Broadcast else e.args[1]
        known, bits = const_int(count), dt.bits_of(e.dtype)
        a, n = (self.visit(x) for x in e.args)
        if known is not None:
            return a, n, "true" if 0 <= known < bits else "false"
        limit = self.splat_constant(str(bits), element_type(e.dtype), dt.lanes_of(e.dtype))
        return a, n, self.pure(f"icmp ult {register_type(e.dtype)} {n}, {limit}")

    # -- powers -----------------------------------------------------------------------------------

    def int_power(self, e: tir.Call) -> str:
        """x ** n of integers; small constant n are written out."""
        ty, lanes = register_type(e.dtype), dt.lanes_of(e.dtype)
        x = self.visit(e.args[0])
        exponent = const_int(e.args[1].value if type(e.args[1]) is tir.Broadcast else e.args[1])
        if exponent is not None and 0 <= exponent <= 16:
            result = None
            for _ in range(int(exponent)):
                result = x if result is None else self.pure(f"mul {ty} {result}, {x}")
            return result or self.visit(tir.op.const(1, e.dtype))
        n, element = self.visit(e.args[1]), element_type(e.dtype)
        name = self._power_function(dt.element_of(e.dtype))
        if lanes == 1:
            return self.pure(f"call {element} @{name}({element} {x}, {element} {n})")
        return self.gather_lanes([self.pure(
            f"call {element} @{name}({element} {self.lane(x, element, lanes, at)}, {element} "
            f"{self.lane(n, element, lanes, at)})") for at in range(lanes)], element)

    def _power_function(self, dtype: str) -> str:
        """The name of a function of the module that raises to a power, by squaring."""
        name, ty = f"mlc_lab_power_{dtype}", element_type(dtype)
        if name in self.unit.helpers:
            return name
        self.unit.helpers.add(name)
        with self.unit.text.function(ty, name, [(ty, "x"), (ty, "n")], "internal", "#0") as f:
            total, square, left = f.var(ty, "1"), f.var(ty, "%x"), f.var(ty, "%n")
            if dt.is_int(dtype):
                with f.if_(f.op(f"icmp slt {ty} %n, 0")):
                    odd = f.op(f"trunc {ty} %n to i1")
                    sign = f.op(f"select i1 {odd}, {ty} %x, {ty} 1")
                    near_zero = f.op(f"icmp ult {ty} {f.op(f'add {ty} %x, 1')}, 3")
                    is_unit = f.op(f"and i1 {near_zero}, {f.op(f'icmp ne {ty} %x, 0')}")
                    f.ret(f"{ty} {f.op(f'select i1 {is_unit}, {ty} {sign}, {ty} 0')}")
            head, body, end = (f.new_label(h) for h in ("head", "body", "end"))
            f.label(head)
            n = f.load(ty, left)
            f.cond_br(f.op(f"icmp ne {ty} {n}, 0"), body, end)
            f.label(body)
            x = f.load(ty, square)
            by = f.op(f"select i1 {f.op(f'trunc {ty} {n} to i1')}, {ty} {x}, {ty} 1")
            f.store(ty, f.op(f"mul {ty} {f.load(ty, total)}, {by}"), total)
            f.store(ty, f.op(f"mul {ty} {x}, {x}"), square)
            f.store(ty, f.op(f"lshr {ty} {n}, 1"), left)
            f.br(head)
            f.label(end)
            f.ret(f"{ty} {f.load(ty, total)}")
        return name

    # -- counts and fixed point -------------------------------------------------------------------

    def call_not(self, e: tir.Call) -> str:
        ones = "-1" if dt.lanes_of(e.dtype) == 1 else f"splat ({element_type(e.dtype)} -1)"
        if dt.is_bool(e.dtype):
            ones = ones.replace("-1", "true")
        return self.pure(f"xor {register_type(e.dtype)} {self.visit(e.args[0])}, {ones}")

    def call_popcount(self, e: tir.Call) -> str:
        source = e.args[0].dtype
        ty = register_type(source)
        name = f"llvm.ctpop.{intrinsic_suffix(source)}"
        count = self.call_intrinsic(name, ty, f"{ty} {self.visit(e.args[0])}")
        return self.convert(count, _unsigned(source), e.dtype)

    def call_clz(self, e: tir.Call) -> str:
        source = e.args[0].dtype
        ty, name = register_type(source), f"llvm.ctlz.{intrinsic_suffix(source)}"
        self.unit.text.declare(ty, name, [ty, "i1 immarg"])
        count = self.pure(f"call {ty} @{name}({ty} {self.visit(e.args[0])}, i1 false)")
        return self.convert(count, _unsigned(source), e.dtype)

    def call_q_multiply_shift(self, e: tir.Call) -> str:
        """round(x * y * 2^-(q + s)), in 64 bits."""
        x, y = (self.visit(a) for a in e.args[:2])
        q, s = (const_int(a) for a in e.args[2:])
        if q is None or s is None:
            raise CodegenError(f"{self.function_name}: q_multiply_shift needs a constant q and s")
        lanes = dt.lanes_of(e.dtype)
        narrow, wide = register_type(e.dtype), register_type(dt.with_lanes("int64", lanes))

        def c(value: int) -> str:
            return str(value) if lanes == 1 else f"splat (i64 {value})"

        a, b = (self.pure(f"sext {narrow} {v} to {wide}") for v in (x, y))
        product = self.pure(f"mul {wide} {a}, {b}")
        shift = q + s
        if shift > 0:
            product = self.pure(f"add {wide} {product}, {c(1 << (shift - 1))}")
            product = self.pure(f"ashr {wide} {product}, {c(shift)}")
        return self.pure(f"trunc {wide} {product} to {narrow}")


def _unsigned(dtype: str) -> str:
    return dt.with_lanes(f"uint{dt.bits_of(dtype)}", dt.lanes_of(dtype))
