"""LLVM code for kernels of NVIDIA's GPUs: what differs there from code for a CPU.

The axes of threads are read from special registers, shared memory is a variable of address space 3,
barriers and shuffles are NVVM's intrinsics, and nothing can fail: a kernel raises no error, and
what a program asserts is taken for granted. Functions of the C library do not exist, so of
mathematics there is what the generator writes out (`llvm_math.py`) and what LLVM has instructions
for. Anything else is refused by name: LLVM would end the process.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from .. import tir
from ..ir import dtype as dt
from ..runtime.abi import quoted
from . import llvm_math
from .llvm_calls import HANDLERS
from .llvm_emit import CodegenError, Unit, const_int
from .llvm_math import Lanes
from .llvm_stmt import StmtGen
from .llvm_types import lane_bytes, memory_element, register_type

#: bytes at which the memory of a block and of a thread begins
_ALIGN = 16
#: math that the target has instructions for
_NATIVE = {"sqrt", "floor", "ceil", "trunc", "rint", "fabs", "copysign", "fma"}
#: logarithms to other bases than e, by what their natural one is multiplied with
_LOGARITHMS = {"log2": 1 / math.log(2), "log10": 1 / math.log(10)}
#: intrinsics that mean the same in a kernel as on a CPU
_SAME = {f"tir.{name}" for name in """
exp exp2 exp10 log log2 log10 log1p sqrt rsqrt sin cos tan tanh erf sigmoid floor ceil trunc round
nearbyint fabs copysign fma asin acos atan sinh cosh asinh acosh atanh atan2 hypot nextafter fmod
pow isnan isinf isfinite isnullptr popcount clz bitwise_and bitwise_or bitwise_xor shift_left
shift_right bitwise_not likely if_then_else reinterpret large_uint_imm q_multiply_shift address_of
tvm_access_ptr break_loop continue_loop atomic_add undef start_profile_intrinsic
end_profile_intrinsic""".split()}


class PTXGen(StmtGen):
    """Writes one kernel. `dynamic` is the number of bytes of dynamic shared memory so far."""

    dynamic = 0
    calling = ""  # the intrinsic being written, for errors

    def refuse(self, what: str, advice: str) -> CodegenError:
        """The error for what PTX by LLVM does not have."""
        return CodegenError(f"{self.function_name}: {what}; {advice}")

    # -- threads ----------------------------------------------------------------------------------

    def stmt_attr(self, s: tir.AttrStmt) -> None:
        if s.attr_key != "thread_extent":
            super().stmt_attr(s)
            return
        self.read_axis(s)
        self.run(s.body)

    def read_axis(self, s: tir.AttrStmt) -> None:
        """Read where the thread is on an axis."""
        word, _, letter = str(s.node.thread_tag).partition(".")
        register = {"blockIdx": "ctaid", "threadIdx": "tid"}.get(word)
        if register is None or letter not in ("x", "y", "z"):
            raise self.refuse(f"a loop is bound to {s.node.thread_tag!r}",
                              "kernels have blockIdx.x, .y, .z and threadIdx.x, .y, .z")
        number = self.call_intrinsic(f"llvm.nvvm.read.ptx.sreg.{register}.{letter}", "i32")
        self.wide[s.node.var] = self.pure(f"zext i32 {number} to i64")
        self.nonneg.add(s.node.var)

    def parallel(self, s: tir.For) -> None:
        """In a thread of a GPU it is a loop as any other."""
        self.run(s.replace(kind=tir.ForKind.SERIAL))

    def call_sync(self, e: tir.Call) -> str:
        """A barrier for the threads of a block, or of a warp."""
        scope = str(getattr(e.args[0], "value", e.args[0]))
        if scope == "warp":
            self._effect("void", "llvm.nvvm.bar.warp.sync", "i32 -1")
        elif scope.startswith("shared"):
            self._effect("void", "llvm.nvvm.barrier0")
        else:
            raise self.refuse(f"a barrier for {scope!r} memory", 'there are "shared" and "warp"')
        return "0"

    def call_shuffle(self, e: tir.Call) -> str:
        """(mask, value, lane, width, size of a warp): the value of another lane."""
        mask, value, lane, width, _ = e.args
        many = const_int(width)
        if dt.lanes_of(value.dtype) > 1 or dt.is_handle(value.dtype):
            raise self.refuse(f"a shuffle of {value.dtype}", "shuffle numbers one by one")
        if many is None or many not in (1, 2, 4, 8, 16, 32):
            raise self.refuse(f"a shuffle among {width!r} lanes", "take a power of two up to 32")
        way = e.op.name.removeprefix("tir.tvm_warp_shuffle").strip("_") or "idx"
        bounds = (32 - many) << 8 | (0 if way == "up" else 31)
        lanes, ty = f"i32 {self.visit(mask)}", register_type(value.dtype)
        own, by = self.visit(value), f"i32 {self.visit(lane)}"

        def of_word(kind: str, word: str, name: str) -> str:
            return self._effect(kind, f"llvm.nvvm.shfl.sync.{way}.{name}", lanes, f"{kind} {word}",
                                by, f"i32 {bounds}")

        if ty in ("float", "i32"):
            return of_word(ty, own, "f32" if ty == "float" else "i32")
        bits = {"half": "i16", "double": "i64"}.get(ty, ty)
        number = own if bits == ty else self.pure(f"bitcast {ty} {own} to {bits}")
        if bits == "i64":  # the hardware shuffles words
            high = self.pure(f"lshr i64 {number}, 32")
            low, high = (of_word("i32", self.pure(f"trunc i64 {x} to i32"), "i32")
                         for x in (number, high))
            low, high = (self.pure(f"zext i32 {x} to i64") for x in (low, high))
            found = self.pure(f"or i64 {self.pure(f'shl i64 {high}, 32')}, {low}")
        else:
            word = of_word("i32", self.pure(f"zext {bits} {number} to i32"), "i32")
            found = self.pure(f"trunc i32 {word} to {bits}")
        return found if bits == ty else self.pure(f"bitcast {bits} {found} to {ty}")

    def call_activemask(self, e: tir.Call) -> str:
        return self._effect("i32", "llvm.nvvm.activemask")

    def _effect(self, ret: str, name: str, *args: str) -> str:
        """A call that must stay where it is."""
        self.unit.text.declare(ret, name, [a.split(" ")[0] for a in args])
        return self.emit_call(ret, name, ", ".join(args))

    # -- memory -----------------------------------------------------------------------------------

    def stmt_allocate(self, s: tir.Allocate) -> None:
        scope, name = s.buffer_var.storage_scope or "global", s.buffer_var.name
        count = 1
        for extent in s.extents:
            number = const_int(extent)
            if number is None:
                raise self.refuse(
                    f"{name} has {extent!r} elements of {scope} memory",
                    "a kernel's memory has a constant size: tile the loops with constant factors")
            count *= number
        count = max(count * dt.lanes_of(s.dtype), 1)
        self.objects.add(s.buffer_var)
        kind = f"[{count} x {memory_element(s.dtype)}]"
        if scope == "shared.dyn":
            self.env[s.buffer_var] = self._dynamic(count * lane_bytes(s.dtype))
        elif scope.startswith("shared"):
            text = f"@{self.global_name(s.buffer_var)} = internal addrspace(3) global {kind} undef"
            self.unit.text.globals.append(f"{text}, align {_ALIGN}")
            self.env[s.buffer_var] = _generic(text.split(" ")[0])
        elif scope == "warp":
            raise self.refuse(f"{name} lies in memory of a warp",
                              'take the scope "shared", or "local" with T.tvm_warp_shuffle')
        else:
            place = self.env[s.buffer_var] = self.fresh()
            self.entry.append(f"  {place} = alloca {kind}, align {_ALIGN}")
        self.run(s.body)

    def global_name(self, memory: tir.Var) -> str:
        """A name for memory of a block that has a size."""
        return quoted(self.unit.unique(f"{self.function_name}_{plain_name(memory.name)}"))

    def _dynamic(self, nbytes: int) -> str:
        """The next bytes of the memory whose size a launch gives."""
        name = f"@{self.function_name}_dynamic"
        if not self.dynamic:
            self.unit.text.globals.append(
                f"{name} = external addrspace(3) global [0 x i8], align {_ALIGN}")
        start = self.dynamic
        self.dynamic += -(-nbytes // _ALIGN) * _ALIGN
        if not start:
            return _generic(name)
        return _generic(f"getelementptr inbounds (i8, ptr addrspace(3) {name}, i64 {start})")

    def load_from(self, address: str, dtype: str, predicate: str | None = None) -> str:
        """As on a CPU; vectors are aligned (`lower/scalarize_vectors.py` has left no others)."""
        value = super().load_from(address, dtype, predicate)
        self._align(dtype)
        return value

    def store_to(self, address: str, value: str, dtype: str, predicate: str | None = None
                 ) -> None:
        super().store_to(address, value, dtype, predicate)
        self._align(dtype)

    def _align(self, dtype: str) -> None:
        """Have the load or store just written say that the whole vector is aligned."""
        lanes, each = dt.lanes_of(dtype), lane_bytes(dtype)
        for at in range(len(self.lines) - 1, -1, -1) if lanes > 1 else ():
            if self.lines[at].endswith(f", align {each}"):
                self.lines[at] = f"{self.lines[at].rpartition(' ')[0]} {each * lanes}"
                return

    # -- nothing fails ----------------------------------------------------------------------------

    def stmt_assert(self, s: tir.AssertStmt) -> None:
        """A device cannot raise: what is asserted holds."""
        self.run(s.body)

    def nonzero_divisor(self, e: Any, divisor: Any, b: str) -> str:
        return b

    def may_fail(self, e: Any) -> bool:
        return False

    def leave(self, code: str) -> None:
        self.ret()

    # -- calls ------------------------------------------------------------------------------------

    def expr_call(self, e: tir.Call) -> str:
        name = getattr(e.op, "name", None) or getattr(e.op, "name_hint", str(e.op))
        own = OWN.get(name)
        if own is None and name not in _SAME:
            raise self.refuse(f"{name} cannot be called in a kernel that becomes PTX",
                              'do it on the host, or build for "cuda"')
        outer, self.calling = self.calling, name
        try:
            return own(self, e) if own is not None else HANDLERS[name](self, e)
        finally:
            self.calling = outer

    def call_llvm(self, e: tir.Call) -> str:
        """NVVM's own intrinsics."""
        name = str(getattr(e.args[0], "value", ""))
        if not name.startswith("llvm.nvvm."):
            raise self.refuse(f"LLVM's intrinsic {name!r} may have no instruction in PTX",
                              "take one whose name begins with llvm.nvvm.")
        return super().call_llvm(e)

    def llvm_math_call(self, name: str, dtype: str, args: list[str]) -> str:
        if name in _NATIVE:
            return super().llvm_math_call(name, dtype, args)
        if name in _LOGARITHMS and dt.bits_of(dtype) == 32:
            m = Lanes(self, dtype)
            return m.mul(llvm_math.log(m, args[0]), m.c(_LOGARITHMS[name]))
        raise self._no_math(dtype)

    def libm(self, name: str, dtype: str, args: list[str]) -> str:
        raise self._no_math(dtype)

    def _no_math(self, dtype: str) -> CodegenError:
        return self.refuse(
            f"{self.calling.removeprefix('tir.')} of {dtype} has no instruction in PTX, and is not "
            "written out here (CUDA has it in its library libdevice)",
            'build for "cuda", or compute it from exp, log, sqrt, tanh, erf of float32')


def plain_name(name: str) -> str:
    """A name that PTX takes."""
    return re.sub(r"\W", "_", name, flags=re.ASCII) or "v"


def _generic(pointer: str) -> str:
    """A pointer to shared memory as one to any memory; LLVM finds out again which it is."""
    return f"addrspacecast (ptr addrspace(3) {pointer} to ptr)"


def write_kernel(unit: Unit, name: str, func: tir.PrimFunc, block: tuple[int, int, int],
                 emitter: type[PTXGen] = PTXGen) -> PTXGen:
    """Write a kernel (`lower/split_host_device.py`) into a module, by `emitter`. `block` has the
    threads of a block along x, y, z, or zeros where they are not constant."""
    noalias = bool(int((func.attrs or {}).get("tir.noalias", 0) or 0))
    params = []
    for at, var in enumerate(func.params):
        fact = " noalias" if noalias and dt.is_handle(var.dtype) else ""
        params.append(f"{register_type(var.dtype)}{fact} %a{at}")
    most = ' "nvvm.maxntid"="{},{},{}"'.format(*block) if all(block) else ""
    gen = emitter(unit, name, f"define ptx_kernel void @{name}({', '.join(params)}) convergent #0"
                 + most)
    for at, var in enumerate(func.params):
        if var.dtype in ("int32", "int64"):
            gen.wide[var] = gen.sign_extend(f"%a{at}", var.dtype)
        else:
            gen.env[var] = f"%a{at}"
        if noalias and dt.is_handle(var.dtype):
            gen.objects.add(var)
    gen.run(func.body)
    if not gen.terminated:
        gen.ret()
    unit.text.functions.append(gen)
    return gen


#: intrinsics that are written otherwise than on a CPU
OWN: dict[str, Callable[[PTXGen, tir.Call], str]] = {
    "tir.tvm_storage_sync": PTXGen.call_sync,
    "tir.tvm_warp_activemask": PTXGen.call_activemask,
    "tir.call_llvm_intrin": PTXGen.call_llvm, "tir.call_llvm_pure_intrin": PTXGen.call_llvm,
    **{f"tir.tvm_warp_shuffle{way}": PTXGen.call_shuffle for way in ("", "_up", "_down")},
}
PTXGen.stmt_table = {
    **StmtGen.stmt_table, tir.AttrStmt: PTXGen.stmt_attr, tir.Allocate: PTXGen.stmt_allocate,
    tir.AssertStmt: PTXGen.stmt_assert,
}
PTXGen.expr_table = {**StmtGen.expr_table, tir.Call: PTXGen.expr_call}

__all__ = ["PTXGen", "plain_name", "write_kernel"]
