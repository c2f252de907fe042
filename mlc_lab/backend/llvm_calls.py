"""LLVM code for calls of intrinsics, of libm and of C functions.

One row of ``HANDLERS`` per intrinsic of TensorIR that LLVM code exists for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .. import tir
from ..ir import dtype as dt
from ..ir.module import GlobalVar
from ..runtime.abi import quoted
from . import llvm_math
from .llvm_bits import BitsGen
from .llvm_emit import CodegenError, checked_symbol, const_int, intrinsic_suffix
from .llvm_math import Lanes
from .llvm_types import element_type, float_constant, register_type


class CallGen(BitsGen):
    """The part of the code generator that emits calls."""

    def expr_call(self, e: tir.Call) -> str:
        op = e.op
        if isinstance(op, GlobalVar):
            return self.call_function(e, op.name_hint)
        handler = HANDLERS.get(op.name)
        if handler is None:
            raise CodegenError(
                f"{self.function_name}: the intrinsic {op.name!r} has no machine code for the CPU"
                + _advice(op.name)
            )
        return handler(self, e)

    # -- choice -----------------------------------------------------------------------------------

    def call_if_then_else(self, e: tir.Call) -> str:
        cond, a, b = e.args
        lanes = dt.lanes_of(cond.dtype)
        ty = register_type(e.dtype)
        if lanes > 1:
            return self._choose_lanes(cond, a, b, ty, lanes)
        test = self.condition(cond)
        if test in ("true", "false"):
            return self.visit(a if test == "true" else b)
        then, other, end = (self.new_label(h) for h in ("take", "skip", "chosen"))
        self.cond_br(test, then, other)
        sides = []
        for label, value in ((then, a), (other, b)):
            with self.scope():
                self.label(label)
                operand = self.visit(value)
                sides.append(f"[{operand}, %{self.block}]")
                self.br(end)
        self.label(end)
        return self.op(f"phi {ty} {', '.join(sides)}")

    def _choose_lanes(self, cond: Any, a: Any, b: Any, ty: str, lanes: int) -> str:
        """A choice lane by lane; the sides load only where their lane is chosen."""
        test = self.visit(cond)
        flags = f"<{lanes} x i1>"
        with self.active_lanes(test, lanes):
            first = self.visit(a)
        with self.active_lanes(self.pure(f"xor {flags} {test}, splat (i1 true)"), lanes):
            second = self.visit(b)
        return self.pure(f"select {flags} {test}, {ty} {first}, {ty} {second}")

    # -- mathematics ------------------------------------------------------------------------------

    def in_float(self, e: tir.Call, compute: Callable[[str, list[str]], str]) -> str:
        """Compute in float32 where the type is narrower; ``compute`` gets dtype and operands."""
        dtype = e.dtype
        code, bits, lanes = dt.parse(dtype)
        args = [self.visit(a) for a in e.args]
        if code == "bfloat" or bits == 16:
            wide = dt.with_lanes("float32", lanes)
            return self.narrow(compute(wide, [self.widen(a, dtype) for a in args]), dtype)
        return compute(dtype, args)

    def llvm_math_call(self, name: str, dtype: str, args: list[str]) -> str:
        """A call of the intrinsic ``llvm.<name>`` on floats."""
        ty = register_type(dtype)
        full = f"llvm.{name}.{intrinsic_suffix(dtype)}"
        return self.call_intrinsic(full, ty, *(f"{ty} {a}" for a in args))

    def libm(self, name: str, dtype: str, args: list[str]) -> str:
        """A call of the C library's function, once a lane."""
        lanes, scalar = dt.lanes_of(dtype), element_type(dtype)
        symbol = name + ("f" if scalar == "float" else "")
        self.unit.text.declare(scalar, symbol, [scalar] * len(args))
        if lanes == 1:
            operands = ", ".join(f"{scalar} {a}" for a in args)
            return self.pure(f"call {scalar} @{symbol}({operands})")
        results = []
        for at in range(lanes):
            operands = ", ".join(f"{scalar} {self.lane(a, scalar, lanes, at)}" for a in args)
            results.append(self.op(f"call {scalar} @{symbol}({operands})"))
        return self.gather_lanes(results, scalar)

    def call_pow(self, e: tir.Call) -> str:
        if not dt.is_float(e.dtype):
            return self.int_power(e)
        return self.in_float(e, lambda dtype, args: self.llvm_math_call("pow", dtype, args))

    def call_classify(self, e: tir.Call, kind: str) -> str:
        source = e.args[0].dtype
        x = self.widen(self.visit(e.args[0]), source)
        code, bits, lanes = dt.parse(source)
        dtype = dt.with_lanes("float32", lanes) if bits == 16 else source
        m = Lanes(self, dtype)
        if kind == "nan":
            return m.cmp("uno", x, x)
        return m.cmp("oeq" if kind == "inf" else "olt", m.abs(x), m.c(float("inf")))

    def call_reinterpret(self, e: tir.Call) -> str:
        value, source = self.visit(e.args[0]), e.args[0].dtype
        a, b = register_type(source), register_type(e.dtype)
        if a == b:
            return value
        if "ptr" in (a, b):
            return self.convert(value, source, e.dtype)
        return self.pure(f"bitcast {a} {value} to {b}")

    def call_large_uint(self, e: tir.Call) -> str:
        low, high = (int(a) & 0xFFFFFFFF for a in e.args)
        return str((high << 32) | low)

    # -- pointers ---------------------------------------------------------------------------------

    def call_address_of(self, e: tir.Call) -> str:
        target = e.args[0]
        if type(target) is tir.Buffer:
            return self.pointer(target)
        if type(target) is not tir.BufferLoad:
            return self.visit(target)
        last = target.indices[-1]
        indices = target.indices
        if type(last) is tir.Ramp:
            indices = (*indices[:-1], last.base)
        return self.slot_address(target.buffer, self.flat_index(target.buffer, indices))

    def call_access_ptr(self, e: tir.Call) -> str:
        kind, data, offset = e.args[:3]
        pointer, at = self.visit(data), self.index(offset)
        if at == "0":
            return pointer
        ty = register_type(kind.dtype)
        if dt.is_bool(kind.dtype):
            ty = "i8"
        return self.pure(f"getelementptr {ty}, ptr {pointer}, i64 {at}")

    # -- C functions ------------------------------------------------------------------------------

    def call_extern(self, e: tir.Call) -> str:
        name, args = e.args[0], e.args[1:]
        if type(name) is not tir.StringImm or not name.value:
            raise CodegenError(f"{self.function_name}: call_extern needs the function's name "
                               f"first, got {name!r}")
        name = checked_symbol(name.value)
        types = [register_type(a.dtype) for a in args]
        operands = ", ".join(f"{t} {self.operand(a)}" for t, a in zip(types, args, strict=True))
        ret = register_type(e.dtype)
        symbol = quoted(name)
        self.unit.text.declare(ret, symbol, types)
        if name not in self.unit.externs:
            self.unit.externs.append(name)
        return self.emit_call(ret, symbol, operands)

    def call_llvm(self, e: tir.Call) -> str:
        name, args = e.args[0], list(e.args[1:])
        if type(name) is not tir.StringImm:
            raise CodegenError(
                f"{self.function_name}: LLVM intrinsics are called by name here, for example "
                f'"llvm.fma.v4f32", not by number ({name!r})'
            )
        if not _INTRINSIC.fullmatch(name.value):
            raise CodegenError(
                f"{self.function_name}: {name.value[:60]!r} is no LLVM intrinsic: their names "
                'begin with "llvm."; C functions are called by T.call_extern'
            )
        if args and type(args[0]) is tir.IntImm and args[0].dtype == "uint32":
            # The number of types in the signature, which older programs give first.
            if args[0].value == len(args) - 1 or len(args) > 1:
                args = args[1:]
        text = _with_suffix(name.value, e.dtype)
        types = [register_type(a.dtype) for a in args]
        operands = ", ".join(f"{t} {self.visit(a)}" for t, a in zip(types, args, strict=True))
        ret = register_type(e.dtype)
        self.unit.text.declare(ret, text, types)
        if e.op.name == "tir.call_llvm_pure_intrin" and ret != "void":
            return self.op(f"call {ret} @{text}({operands})")
        return self.emit_call(ret, text, operands)

    def emit_call(self, ret: str, symbol: str, operands: str) -> str:
        """A call that may have effects, and take any time."""
        self.work = float("inf")
        if ret == "void":
            self.do(f"call void @{symbol}({operands})")
            return "0"
        return self.op(f"call {ret} @{symbol}({operands})")

    def operand(self, a: Any) -> str:
        """An argument of a C function: a buffer stands for its pointer."""
        return self.pointer(a) if type(a) is tir.Buffer else self.visit(a)

    def call_ret(self, e: tir.Call) -> str:
        """Return a value: store it as an Any where the caller wants it."""
        value = e.args[0]
        slot = self.env.get(RETURN_SLOT)
        if slot is None:
            raise CodegenError(f"{self.function_name}: T.ret cannot stand inside a parallel loop")
        if type(value) is not tir.IntImm or dt.parse(value.dtype).code != "handle":
            self._pack(value, slot)
        self.leave("0")
        self.label(self.new_label("after"))
        return "0"

    def call_leave(self, e: tir.Call) -> str:
        """Jump to the next iteration of the loop around, or to its end."""
        if not self.exits:
            raise CodegenError(f"{self.function_name}: T.break and T.continue leave a serial loop "
                               "or a while, not one that is parallel or vectorized")
        again, end, kept = self.exits[-1]
        for block in self.workspaces[kept:]:
            self.do(f"call void @mlc_lab_free(ptr {block})")
        self.br(again if e.op.name == "tir.continue_loop" else end)
        self.label(self.new_label("after"))
        return "0"

    def call_tuple_like(self, e: tir.Call) -> str:
        raise CodegenError(
            f"{self.function_name}: {e.op.name} may stand only as an argument of a packed call"
        )

    def call_prefetch(self, e: tir.Call) -> str:
        """(address, 1 to write, how long to keep it: 0 to 3, 1 for data): LLVM's own numbers."""
        kinds = [const_int(arg) for arg in e.args[1:]] + [0, 3, 1][len(e.args) - 1:]
        if len(kinds) != 3 or not all(
                k is not None and 0 <= k <= most for k, most in zip(kinds, (1, 3, 1))):
            raise CodegenError(f"{self.function_name}: T.prefetch takes an address and, as numbers "
                               "that are written out, 0 to read or 1 to write, a locality of 0 to "
                               "3, and 1 for data or 0 for instructions")
        self.unit.text.declare("void", "llvm.prefetch.p0", ["ptr"] + ["i32 immarg"] * 3)
        numbers = ", ".join(f"i32 {k}" for k in kinds)
        self.do(f"call void @llvm.prefetch.p0(ptr {self.visit(e.args[0])}, {numbers})")
        return "0"

    def call_assume(self, e: tir.Call) -> str:
        self.unit.text.declare("void", "llvm.assume", ["i1"])
        self.do(f"call void @llvm.assume(i1 {self.visit(e.args[0])})")
        return "true"

    def call_vscale(self, e: tir.Call) -> str:
        if not self.unit.scalable:
            raise CodegenError(
                f"{self.function_name}: T.vscale() is the length of scalable vectors, and the "
                "target has none; AArch64 has with -mattr=+sve, RISC-V with -mattr=+v. For other "
                "machines write the number of lanes, such as 4")
        self.unit.text.declare("i32", "llvm.vscale.i32", [])
        return self.op("call i32 @llvm.vscale.i32()")

    def call_atomic_add(self, e: tir.Call) -> str:
        target, value = e.args[0], e.args[-1]
        address = self.call_address_of(tir.Call("handle", "tir.address_of", (target,)))
        ty = register_type(value.dtype)
        op = "fadd" if dt.is_float(value.dtype) else "add"
        return self.op(f"atomicrmw {op} ptr {address}, {ty} {self.visit(value)} monotonic")

    def call_half(self, e: tir.Call, high: bool) -> str:
        value, source = self.visit(e.args[0]), register_type(e.args[0].dtype)
        lanes = dt.lanes_of(e.dtype)
        order = ", ".join(f"i32 {i + (lanes if high else 0)}" for i in range(lanes))
        return self.pure(
            f"shufflevector {source} {value}, {source} poison, <{lanes} x i32> <{order}>"
        )

    def call_combine(self, e: tir.Call) -> str:
        a, b = (self.visit(x) for x in e.args)
        ty, lanes = register_type(e.args[0].dtype), dt.lanes_of(e.dtype)
        order = ", ".join(f"i32 {i}" for i in range(lanes))
        return self.pure(f"shufflevector {ty} {a}, {ty} {b}, <{lanes} x i32> <{order}>")


#: stands in the environment for where a returned value goes
RETURN_SLOT = tir.Var("return_slot", "handle")

def _with_suffix(name: str, dtype: str) -> str:
    """The name of an LLVM intrinsic with its type, when the program gave it without."""
    overloaded = {
        "fma", "fmuladd", "sqrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "pow",
        "fabs", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "ctpop", "minnum",
        "maxnum", "bswap", "bitreverse",
    }
    if name.startswith("llvm.") and name[5:] in overloaded:
        return f"{name}.{intrinsic_suffix(dtype)}"
    return name


#: the operators that call an LLVM intrinsic by its name
CALL_LLVM = ("tir.call_llvm_intrin", "tir.call_llvm_pure_intrin")
_INTRINSIC = re.compile(r"llvm\.[A-Za-z0-9_.]+")
_GPU = ("tvm_thread_allreduce", "tvm_storage_sync", "tvm_warp", "ptx_", "mma_", "fragment",
        "matrix_sync", "mma_sync")


def _advice(name: str) -> str:
    if any(word in name for word in _GPU):
        return ": it is an instruction of GPUs"
    return ""


def _poly(function: Callable[[Lanes, str], str], fallback: str, only32: bool) -> Callable:
    """A handler that uses a polynomial, or ``llvm.<fallback>`` / libm for float64."""

    def handler(gen: CallGen, e: tir.Call) -> str:
        def compute(dtype: str, args: list[str]) -> str:
            if only32 and dt.bits_of(dtype) != 32:
                if fallback.startswith("libm:"):
                    return gen.libm(fallback[5:], dtype, args)
                return gen.llvm_math_call(fallback, dtype, args)
            return function(Lanes(gen, dtype), args[0])

        return gen.in_float(e, compute)

    return handler


def _intrinsic(name: str) -> Callable:
    def handler(gen: CallGen, e: tir.Call) -> str:
        return gen.in_float(e, lambda dtype, args: gen.llvm_math_call(name, dtype, args))

    return handler


def _libm(name: str) -> Callable:
    def handler(gen: CallGen, e: tir.Call) -> str:
        return gen.in_float(e, lambda dtype, args: gen.libm(name, dtype, args))

    return handler


def _rsqrt(gen: CallGen, e: tir.Call) -> str:
    def compute(dtype: str, args: list[str]) -> str:
        m = Lanes(gen, dtype)
        return m.div(m.c(1.0), gen.llvm_math_call("sqrt", dtype, args))

    return gen.in_float(e, compute)


def _ldexp(gen: CallGen, e: tir.Call) -> str:
    """By the C library, which rounds once; the power of two is brought into int32 before."""
    dtype, power = e.dtype, e.args[1].dtype
    lanes = dt.lanes_of(dtype)
    wide = dt.with_lanes("float32", lanes) if dt.bits_of(dtype) == 16 else dtype
    scalar, x, n = element_type(wide), gen.widen(gen.visit(e.args[0]), dtype), gen.visit(e.args[1])
    if dt.bits_of(power) == 64 and not dt.is_float(power):
        ty = register_type(power)
        for name, bound in (("smax", -(1 << 20)), ("smin", 1 << 20)):
            bound = gen.splat_constant(str(bound), "i64", lanes)
            n = gen.call_intrinsic(f"llvm.{name}.{intrinsic_suffix(power)}", ty, f"{ty} {n}",
                                   f"{ty} {bound}")
    n = gen.convert(n, power, dt.with_lanes("int32", lanes))
    symbol = "ldexpf" if scalar == "float" else "ldexp"
    gen.unit.text.declare(scalar, symbol, [scalar, "i32"])
    parts = [(x, n)] if lanes == 1 else [
        (gen.lane(x, scalar, lanes, at), gen.lane(n, "i32", lanes, at)) for at in range(lanes)]
    results = [gen.pure(f"call {scalar} @{symbol}({scalar} {a}, i32 {b})") for a, b in parts]
    return gen.narrow(results[0] if lanes == 1 else gen.gather_lanes(results, scalar), dtype)


def _exp10(gen: CallGen, e: tir.Call) -> str:
    """Through pow: not every C library has exp10."""

    def compute(dtype: str, args: list[str]) -> str:
        return gen.llvm_math_call("pow", dtype, [Lanes(gen, dtype).c(10.0), args[0]])

    return gen.in_float(e, compute)


def _undef(gen: CallGen, e: tir.Call) -> str:
    if dt.lanes_of(e.dtype) > 1:
        return "zeroinitializer"
    if dt.is_handle(e.dtype):
        return "null"
    return float_constant(0.0, e.dtype) if dt.is_float(e.dtype) else int_constant_zero(e.dtype)


def int_constant_zero(dtype: str) -> str:
    """Zero, or false."""
    return "false" if dt.is_bool(dtype) else "0"


HANDLERS: dict[str, Callable[[CallGen, tir.Call], str]] = {
    "tir.exp": _poly(llvm_math.exp, "exp", False),
    "tir.exp2": _poly(llvm_math.exp2, "exp2", False),
    "tir.exp10": _exp10,
    "tir.log": _poly(llvm_math.log, "log", True),
    "tir.log2": _intrinsic("log2"),
    "tir.log10": _intrinsic("log10"),
    "tir.log1p": _libm("log1p"),
    "tir.sqrt": _intrinsic("sqrt"),
    "tir.rsqrt": _rsqrt,
    "tir.sin": _intrinsic("sin"),
    "tir.cos": _intrinsic("cos"),
    "tir.tanh": _poly(llvm_math.tanh, "libm:tanh", True),
    "tir.erf": _poly(llvm_math.erf, "libm:erf", True),
    "tir.sigmoid": _poly(llvm_math.sigmoid, "sigmoid", False),
    "tir.floor": _intrinsic("floor"),
    "tir.ceil": _intrinsic("ceil"),
    "tir.trunc": _intrinsic("trunc"),
    "tir.round": _intrinsic("rint"),
    "tir.nearbyint": _intrinsic("rint"),
    "tir.fabs": _intrinsic("fabs"),
    "tir.copysign": _intrinsic("copysign"),
    "tir.fma": _intrinsic("fma"),
    **{
        f"tir.{name}": _libm(name)
        for name in ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
                     "atan2", "hypot", "nextafter", "fmod")
    },
    "tir.ldexp": _ldexp,
    "tir.pow": CallGen.call_pow,
    "tir.isnan": lambda g, e: g.call_classify(e, "nan"),
    "tir.isinf": lambda g, e: g.call_classify(e, "inf"),
    "tir.isfinite": lambda g, e: g.call_classify(e, "finite"),
    "tir.isnullptr": lambda g, e: g.pure(f"icmp eq ptr {g.visit(e.args[0])}, null"),
    "tir.popcount": CallGen.call_popcount,
    "tir.clz": CallGen.call_clz,
    "tir.bitwise_and": lambda g, e: g.call_bitwise(e, "and"),
    "tir.bitwise_or": lambda g, e: g.call_bitwise(e, "or"),
    "tir.bitwise_xor": lambda g, e: g.call_bitwise(e, "xor"),
    "tir.shift_left": CallGen.call_shift_left,
    "tir.shift_right": CallGen.call_shift_right,
    "tir.bitwise_not": CallGen.call_not,
    "tir.likely": lambda g, e: g.visit(e.args[0]),
    "tir.if_then_else": CallGen.call_if_then_else,
    "tir.reinterpret": CallGen.call_reinterpret,
    "tir.large_uint_imm": CallGen.call_large_uint,
    "tir.q_multiply_shift": CallGen.call_q_multiply_shift,
    "tir.address_of": CallGen.call_address_of,
    "tir.tvm_access_ptr": CallGen.call_access_ptr,
    "tir.call_extern": CallGen.call_extern,
    "tir.call_pure_extern": CallGen.call_extern,
    **dict.fromkeys(CALL_LLVM, CallGen.call_llvm),
    "tir.tvm_call_packed": CallGen.call_packed,
    "tir.tvm_call_packed_lowered": CallGen.call_packed,
    "tir.tvm_call_cpacked": CallGen.call_packed,
    "tir.tvm_stack_make_array": CallGen.call_make_array,
    "tir.tvm_stack_make_shape": CallGen.call_tuple_like,
    "tir.tvm_tuple": CallGen.call_tuple_like,
    "tir.ret": CallGen.call_ret, "tir.break_loop": CallGen.call_leave,
    "tir.continue_loop": CallGen.call_leave,
    "tir.prefetch": CallGen.call_prefetch,
    "tir.assume": CallGen.call_assume,
    "tir.atomic_add": CallGen.call_atomic_add,
    "tir.undef": _undef, "tir.vscale": CallGen.call_vscale,
    "tir.vectorlow": lambda g, e: g.call_half(e, False),
    "tir.vectorhigh": lambda g, e: g.call_half(e, True),
    "tir.vectorcombine": CallGen.call_combine,
    "tir.start_profile_intrinsic": lambda g, e: "0",
    "tir.end_profile_intrinsic": lambda g, e: "0",
}

CallGen.expr_table = {**BitsGen.expr_table, tir.Call: CallGen.expr_call}
