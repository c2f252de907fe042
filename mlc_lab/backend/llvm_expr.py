"""LLVM code for expressions: names, choices, vectors, loads. Arithmetic is in `llvm_arith`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..ir import dtype as dt
from .. import tir
from .llvm_arith import ArithGen
from .llvm_emit import CodegenError, const_int
from .llvm_types import (
    element_type,
    float_constant,
    int_constant,
    iota,
    lane_bytes,
    memory_element,
    register_type,
)

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr

class ExprGen(ArithGen):
    """The part of the code generator that evaluates expressions."""

    expr_table: dict[type, Callable[[Any, Any], str]] = {}

    def visit(self, e: PrimExpr) -> str:
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

    # -- choice and names --------------------------------------------------------------------------

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
            if self.is_data(value):
                self.data[var] = True
                self.wide[var] = self.sign_extend(self.visit(value), value.dtype)
            else:
                self.wide[var] = self.index(value)
            if self.is_nonneg(value):
                self.nonneg.add(var)
        else:
            self.env[var] = self.visit(value)

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
            total = "0"
            for i, stride in zip(indices, tir.buffer.strides_of(buffer), strict=True):
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
    **ArithGen.expr_table,
    tir.Var: ExprGen.expr_var,
    tir.SizeVar: ExprGen.expr_var,
    tir.IntImm: ExprGen.expr_int,
    tir.FloatImm: ExprGen.expr_float,
    tir.StringImm: ExprGen.expr_string,
    tir.Select: ExprGen.expr_select,
    tir.Let: ExprGen.expr_let,
    tir.Broadcast: ExprGen.expr_broadcast,
    tir.Ramp: ExprGen.expr_ramp,
    tir.Shuffle: ExprGen.expr_shuffle,
    tir.BufferLoad: ExprGen.expr_load,
}
