"""LLVM code for expressions: arithmetic, conversions, vectors, loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import dtype as dt
from .. import tir
from .llvm_emit import CodegenError, const_int
from .llvm_index import DIVISIONS, IndexGen
from .llvm_types import (
    element_type,
    float_constant,
    int_constant,
    iota,
    lane_bytes,
    memory_element,
    register_type,
)

# The instruction of each operation on (floats, signed, unsigned).
_ARITH = {
    tir.Add: ("fadd contract", "add", "add"),
    tir.Sub: ("fsub contract", "sub", "sub"),
    tir.Mul: ("fmul contract", "mul", "mul"),
    tir.Div: ("fdiv contract", "sdiv", "udiv"),
    tir.Mod: ("frem contract", "srem", "urem"),
}
_COMPARE = {
    tir.EQ: ("oeq", "eq", "eq"),
    tir.NE: ("une", "ne", "ne"),
    tir.LT: ("olt", "slt", "ult"),
    tir.LE: ("ole", "sle", "ule"),
    tir.GT: ("ogt", "sgt", "ugt"),
    tir.GE: ("oge", "sge", "uge"),
}


class ExprGen(IndexGen):
    """The part of the code generator that evaluates expressions."""

    expr_table: dict[type, Callable[[Any, Any], str]] = {}

    def visit(self, e: Any) -> str:
        """The operand of ``e``."""
        method = self.expr_table.get(type(e))
        if method is None:
            raise CodegenError(
                f"{self.function_name}: {type(e).__name__} has no machine code; it is expected to "
                f"be lowered away before code generation: {e!r}"
            )
        return method(self, e)

    # -- leaves -----------------------------------------------------------------------------------

    def expr_var(self, e: tir.Var) -> str:
        value = self.env.get(e)
        if value is None:
            wide = self.wide.get(e)
            if wide is None:
                raise CodegenError(
                    f"{self.function_name}: variable {e.name!r} is used where it has no value"
                )
            bits = dt.bits_of(e.dtype)
            if bits == 64 or wide[0] != "%":
                return wide
            flags = "nuw nsw" if e in self.nonneg else "nsw"
            return self.pure(f"trunc {flags} i64 {wide} to i{bits}")
        return value

    def expr_int(self, e: tir.IntImm) -> str:
        if dt.is_handle(e.dtype):
            return "null" if not e.value else self.pure(f"inttoptr i64 {e.value} to ptr")
        return int_constant(e.value, e.dtype)

    def expr_float(self, e: tir.FloatImm) -> str:
        return float_constant(e.value, e.dtype)

    def expr_string(self, e: tir.StringImm) -> str:
        return self.unit.text.string(e.value)

    # -- arithmetic -------------------------------------------------------------------------------

    def expr_arith(self, e: Any) -> str:
        dtype = e.dtype
        code, bits, _ = dt.parse(dtype)
        if code in ("int", "uint") and type(e) in DIVISIONS:
            return self.divide(e)
        ops = _ARITH[type(e)]
        a, b = self.visit(e.a), self.visit(e.b)
        ty = register_type(dtype)
        if code == "float":
            return self.pure(f"{ops[0]} {ty} {a}, {b}")
        if code == "int":
            flags = " nsw" if bits >= 32 else ""
            return self.pure(f"{ops[1]}{flags} {ty} {a}, {b}")
        if code == "bfloat":
            wide = dt.with_lanes("float32", dt.lanes_of(dtype))
            a, b = self.widen(a, dtype), self.widen(b, dtype)
            return self.narrow(self.pure(f"{ops[0]} {register_type(wide)} {a}, {b}"), dtype)
        return self.pure(f"{ops[2]} {ty} {a}, {b}")

    def divide(self, e: Any) -> str:
        """Integer division and remainder, rounding toward zero or down."""
        dtype, kind = e.dtype, type(e)
        ty = register_type(dtype)
        quotient = kind in (tir.Div, tir.FloorDiv)
        if dt.is_uint(dtype):
            a, b = self.visit(e.a), self.visit(e.b)
            return self.pure(f"{'udiv' if quotient else 'urem'} {ty} {a}, {b}")
        divisor = e.b.value if type(e.b) is tir.Broadcast else e.b
        value = const_int(divisor)
        floor = kind in (tir.FloorDiv, tir.FloorMod)
        a = self.visit(e.a)
        if floor and value is not None and value > 0 and value & (value - 1) == 0:
            number = value.bit_length() - 1 if quotient else value - 1
            operand = str(number)
            if dt.lanes_of(dtype) > 1:
                operand = f"splat ({element_type(dtype)} {number})"
            return self.pure(f"{'ashr' if quotient else 'and'} {ty} {a}, {operand}")
        b = self.visit(e.b)
        positive = value is not None and value > 0 and self.is_nonneg(e.a)
        if positive:
            return self.pure(f"{'udiv' if quotient else 'urem'} {ty} {a}, {b}")
        if not floor:
            return self.pure(f"{'sdiv' if quotient else 'srem'} {ty} {a}, {b}")
        return self.floor_divide(ty, a, b, quotient, dt.lanes_of(dtype))

    def expr_min_max(self, e: Any) -> str:
        dtype = e.dtype
        code, _, lanes = dt.parse(dtype)
        a, b = self.visit(e.a), self.visit(e.b)
        less = type(e) is tir.Min
        ty = register_type(dtype)
        flag = "i1" if lanes == 1 else f"<{lanes} x i1>"
        if code in ("float", "bfloat"):
            # As the machine's minimum and maximum: the second operand where either is NaN.
            x, y, wide = a, b, ty
            if code == "bfloat":
                x, y = self.widen(a, dtype), self.widen(b, dtype)
                wide = register_type(dt.with_lanes("float32", lanes))
            cond = self.pure(f"fcmp {'olt' if less else 'ogt'} {wide} {x}, {y}")
        else:
            sign = "s" if code == "int" else "u"
            cond = self.pure(f"icmp {sign}{'lt' if less else 'gt'} {ty} {a}, {b}")
        return self.pure(f"select {flag} {cond}, {ty} {a}, {ty} {b}")

    def expr_compare(self, e: Any) -> str:
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
        return type(a) in self.index_table and type(b) in self.index_table

    def expr_logic(self, e: Any) -> str:
        op = "and" if type(e) is tir.And else "or"
        return self.pure(f"{op} {register_type(e.dtype)} {self.visit(e.a)}, {self.visit(e.b)}")

    def expr_not(self, e: tir.Not) -> str:
        lanes = dt.lanes_of(e.dtype)
        ones = "true" if lanes == 1 else "splat (i1 true)"
        return self.pure(f"xor {register_type(e.dtype)} {self.visit(e.a)}, {ones}")

    def expr_select(self, e: tir.Select) -> str:
        cond = self.visit(e.condition)
        a, b = self.visit(e.true_value), self.visit(e.false_value)
        ty = register_type(e.dtype)
        return self.pure(f"select {register_type(e.condition.dtype)} {cond}, {ty} {a}, {ty} {b}")

    def expr_let(self, e: tir.Let) -> str:
        self.bind(e.var, e.value)
        return self.visit(e.body)

    def bind(self, var: tir.Var, value: Any) -> None:
        """Give a variable the value of an expression."""
        if var.dtype in ("int32", "int64"):
            self.wide[var] = self.index(value)
            if self.is_nonneg(value):
                self.nonneg.add(var)
        else:
            self.env[var] = self.visit(value)

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
        if code == "bfloat" or (code == "float" and bits == 16 and to_code == "bfloat"):
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
            op = "fptosi" if to_code == "int" else "fptoui"
        elif to_code == "float":
            op = "sitofp" if code == "int" else "uitofp"
        elif to_bits == bits:
            return value
        elif to_bits < bits:
            op = "trunc"
        else:
            op = "sext" if code == "int" else "zext"
        return self.pure(f"{op} {from_ty} {value} to {to_ty}")

    def _convert_handle(self, value: str, source: str, target: str) -> str:
        if dt.is_handle(source) and dt.is_handle(target):
            return value
        if dt.is_handle(target):
            return self.pure(f"inttoptr {register_type(source)} {value} to ptr")
        return self.pure(f"ptrtoint ptr {value} to {register_type(target)}")

    # -- vectors ----------------------------------------------------------------------------------

    def expr_broadcast(self, e: tir.Broadcast) -> str:
        lanes = dt.lanes_of(e.value.dtype)
        value = self.visit(e.value)
        if lanes == 1:
            return self.splat(value, element_type(e.value.dtype), e.lanes)
        order = ", ".join(f"i32 {i}" for _ in range(e.lanes) for i in range(lanes))
        ty = register_type(e.value.dtype)
        return self.pure(
            f"shufflevector {ty} {value}, {ty} poison, <{e.lanes * lanes} x i32> <{order}>"
        )

    def expr_ramp(self, e: tir.Ramp) -> str:
        if dt.lanes_of(e.base.dtype) > 1:
            return self._ramp_of_vectors(e)
        element, ty = element_type(e.base.dtype), register_type(e.dtype)
        base = self.splat(self.visit(e.base), element, e.lanes)
        steps = iota(e.lanes, element)
        stride = const_int(e.stride)
        if stride != 1:
            by = self.splat(self.visit(e.stride), element, e.lanes)
            steps = self.pure(f"mul nsw {ty} {steps}, {by}")
        return self.pure(f"add nsw {ty} {base}, {steps}")

    def _ramp_of_vectors(self, e: tir.Ramp) -> str:
        """base, base + stride, ... where base is a vector itself, one after the other."""
        inner, element = dt.lanes_of(e.base.dtype), element_type(e.dtype)
        base, stride = self.visit(e.base), self.visit(e.stride)
        parts = []
        for step in range(e.lanes):
            for at in range(inner):
                a = self.lane(base, element, inner, at)
                s = stride
                if dt.lanes_of(e.stride.dtype) > 1:
                    s = self.lane(stride, element, inner, at)
                by = self.pure(f"mul nsw {element} {s}, {step}")
                parts.append(self.pure(f"add nsw {element} {a}, {by}"))
        return self.gather_lanes(parts, element)

    def expr_shuffle(self, e: tir.Shuffle) -> str:
        element = element_type(e.dtype)
        picks = [int(i) for i in e.indices]
        pool: list[str] = []
        for vector in e.vectors:
            lanes, value = dt.lanes_of(vector.dtype), self.visit(vector)
            if lanes == 1:
                pool.append(value)
            else:
                pool += [self.lane(value, element, lanes, i) for i in range(lanes)]
        if len(picks) == 1:
            return pool[picks[0]]
        return self.gather_lanes([pool[i] for i in picks], element)

    # -- loads ------------------------------------------------------------------------------------

    def flat_index(self, buffer: tir.Buffer, indices: tuple) -> str:
        """The flat element index (an i64) of scalar indices."""
        if len(indices) == 1 and not buffer.strides:
            total = self.index(indices[0])
        else:
            strides = buffer.strides or tir.buffer.compact_strides(buffer.shape)
            total = "0"
            for i, stride in zip(indices, strides, strict=True):
                term = self.fold("mul nsw", self.index(i), self.index(stride))
                total = self.fold("add nsw", total, term)
        offset = buffer.elem_offset
        if offset is not None and type(offset) is not tir.IntImm:
            total = self.fold("add nsw", total, self.index(offset))
        return total

    def lane_indices(self, buffer: tir.Buffer, indices: tuple) -> tuple[str, str, int]:
        """How a vector access lies in memory: ("ramp", base, stride) or ("any", vector, 0).

        Base and vector are i64 operands; a broadcast index is a ramp of stride 0.
        """
        last = indices[-1]
        inner = buffer.strides[-1] if buffer.strides else None
        step = const_int(inner) if inner is not None else 1
        if type(last) is tir.Broadcast and dt.lanes_of(last.value.dtype) == 1:
            return "ramp", self.flat_index(buffer, (*indices[:-1], last.value)), 0
        if type(last) is tir.Ramp and dt.lanes_of(last.base.dtype) == 1 and step is not None:
            stride = const_int(last.stride)
            if stride is not None:
                base = self.flat_index(buffer, (*indices[:-1], last.base))
                return "ramp", base, stride * step
        lanes = dt.lanes_of(last.dtype)
        wide = f"<{lanes} x i64>"
        value = self.visit(last)
        ty = register_type(last.dtype)
        if ty != wide:
            op = "zext" if dt.is_uint(last.dtype) else "sext"
            value = self.pure(f"{op} {ty} {value} to {wide}")
        if step != 1:
            by = self.splat(self.index(inner), "i64", lanes)
            value = self.pure(f"mul nsw {wide} {value}, {by}")
        zero = tir.IntImm("int32", 0)
        base = self.flat_index(buffer, (*indices[:-1], zero))
        if base != "0":
            value = self.pure(f"add nsw {wide} {value}, {self.splat(base, 'i64', lanes)}")
        return "any", value, 0

    def expr_load(self, e: tir.BufferLoad) -> str:
        buffer, dtype = e.buffer, e.dtype
        self.sums += buffer is self.stored
        predicate = self.visit(e.predicate) if e.predicate is not None else self.mask
        last = e.indices[-1] if e.indices else None
        lanes = dt.lanes_of(last.dtype) if last is not None else 1
        if lanes == 1:
            flat = self.flat_index(buffer, e.indices) if e.indices else "0"
            return self.load_from(self.slot_address(buffer, flat), dtype)
        if predicate is not None and self.mask_lanes(e, predicate) != lanes:
            predicate = None
        kind, base, stride = self.lane_indices(buffer, e.indices)
        element = dt.element_of(dtype)
        if dt.lanes_of(buffer.dtype) > 1:
            raise CodegenError(
                f"{self.function_name}: buffer {buffer.name!r} holds vectors; its index cannot be "
                "a vector too"
            )
        if kind == "ramp" and stride == 1:
            return self.load_from(self.slot_address(buffer, base), dtype, predicate)
        if kind == "ramp" and stride == 0:
            value = self.load_from(self.slot_address(buffer, base), element)
            return self.splat(value, element_type(dtype), lanes)
        if kind == "ramp" and stride == -1 and predicate is None:
            start = self.fold("add nsw", base, str(1 - lanes))
            value = self.load_from(self.slot_address(buffer, start), dtype)
            order = ", ".join(f"i32 {lanes - 1 - i}" for i in range(lanes))
            ty = register_type(dtype)
            return self.op(f"shufflevector {ty} {value}, {ty} poison, <{lanes} x i32> <{order}>")
        if kind == "ramp" and stride == 2 and predicate is None and lanes >= 4:
            return self._every_other(buffer, dtype, base, lanes)
        if predicate is not None:
            return self._gather_masked(buffer, dtype, kind, base, stride, predicate)
        values = []
        for at in range(lanes):
            flat = self._lane_flat(kind, base, stride, lanes, at)
            values.append(self.load_from(self.slot_address(buffer, flat), element))
        return self.gather_lanes(values, element_type(dtype))

    def _every_other(self, buffer: tir.Buffer, dtype: str, base: str, lanes: int) -> str:
        """Elements base, base + 2, ...: two vectors, of which every other lane is taken.

        The second ends with the last element that is asked for: what lies behind it may be the end
        of memory.
        """
        ty = register_type(dtype)
        low, high = (
            self.load_from(self.slot_address(buffer, self.fold("add nsw", base, str(at))), dtype)
            for at in (0, lanes - 1)
        )
        order = [2 * i if 2 * i < lanes else 2 * i + 1 for i in range(lanes)]
        mask = ", ".join(f"i32 {at}" for at in order)
        return self.op(f"shufflevector {ty} {low}, {ty} {high}, <{lanes} x i32> <{mask}>")

    def mask_lanes(self, e: tir.BufferLoad, predicate: str) -> int:
        """How many lanes the predicate in force has."""
        return dt.lanes_of(e.predicate.dtype) if e.predicate is not None else self.mask_width

    mask_width = 0

    def _lane_flat(self, kind: str, base: str, stride: int, lanes: int, at: int) -> str:
        if kind == "ramp":
            return self.fold("add nsw", base, str(at * stride))
        return self.lane(base, "i64", lanes, at)

    def _gather_masked(
        self, buffer: tir.Buffer, dtype: str, kind: str, base: str, stride: int, mask: str
    ) -> str:
        lanes, element = dt.lanes_of(dtype), memory_element(dtype)
        if kind == "ramp":
            steps = iota(lanes, "i64")
            if stride != 1:
                steps = self.pure(f"mul <{lanes} x i64> {steps}, splat (i64 {stride})")
            base = self.pure(f"add <{lanes} x i64> {self.splat(base, 'i64', lanes)}, {steps}")
        pointers = self.pure(
            f"getelementptr {element}, ptr {self.pointer(buffer)}, <{lanes} x i64> {base}"
        )
        short = {"half": "f16", "float": "f32", "double": "f64"}.get(element, element)
        name = f"llvm.masked.gather.v{lanes}{short}.v{lanes}p0"
        ty, flags = f"<{lanes} x {element}>", f"<{lanes} x i1>"
        self.unit.text.declare(ty, name, [f"<{lanes} x ptr>", "i32 immarg", flags, ty])
        value = self.op(
            f"call {ty} @{name}(<{lanes} x ptr> {pointers}, i32 {lane_bytes(dtype)}, "
            f"{flags} {mask}, {ty} zeroinitializer)"
        )
        if dt.is_bool(dtype):
            return self.op(f"icmp ne {ty} {value}, zeroinitializer")
        return value


ExprGen.expr_table = {
    tir.Var: ExprGen.expr_var,
    tir.SizeVar: ExprGen.expr_var,
    tir.IntImm: ExprGen.expr_int,
    tir.FloatImm: ExprGen.expr_float,
    tir.StringImm: ExprGen.expr_string,
    tir.FloorDiv: ExprGen.divide,
    tir.FloorMod: ExprGen.divide,
    tir.Min: ExprGen.expr_min_max,
    tir.Max: ExprGen.expr_min_max,
    tir.And: ExprGen.expr_logic,
    tir.Or: ExprGen.expr_logic,
    tir.Not: ExprGen.expr_not,
    tir.Select: ExprGen.expr_select,
    tir.Let: ExprGen.expr_let,
    tir.Cast: ExprGen.expr_cast,
    tir.Broadcast: ExprGen.expr_broadcast,
    tir.Ramp: ExprGen.expr_ramp,
    tir.Shuffle: ExprGen.expr_shuffle,
    tir.BufferLoad: ExprGen.expr_load,
    **dict.fromkeys(_ARITH, ExprGen.expr_arith),
    **dict.fromkeys(_COMPARE, ExprGen.expr_compare),
}
