"""LLVM code for calls of other kernels and of registered functions.

Kernels of the same module are called by pointers and numbers. Functions of the global registry are
called by tvm-ffi's convention: an array of tagged values, tensors as DLPack headers on the stack.
"""

from __future__ import annotations

from typing import Any

from .. import tir
from ..ir import dtype as dt
from .llvm_emit import CodegenError
from .llvm_expr import ExprGen

_DL_CODES = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bfloat": 4, "bool": 6}


def dl_dtype(dtype: str) -> tuple[int, int, int]:
    """DLPack's (code, bits, lanes) of a dtype."""
    code, bits, lanes = dt.parse(dtype)
    return _DL_CODES[code], 8 if code == "bool" else bits, max(lanes, 1)


class PackedGen(ExprGen):
    """The part of the code generator that calls functions of tensors."""

    # -- functions of the module ------------------------------------------------------------------

    def call_function(self, e: tir.Call, name: str) -> str:
        """A call of another function of the module, by pointers and numbers."""
        self.work = float("inf")
        signature = self.unit.signatures.get(name)
        if signature is None:
            raise CodegenError(
                f"{self.function_name}: it calls {name!r}, which the module does not have"
            )
        if len(signature.args) != len(e.args):
            raise CodegenError(
                f"{self.function_name}: {name!r} takes {len(signature.args)} arguments, "
                f"and is called with {len(e.args)}"
            )
        if signature.symbols:
            raise CodegenError(
                f"{self.function_name}: {name!r} has symbolic shapes "
                f"({', '.join(signature.symbols)}), which a call inside a module cannot bind; "
                "call it with T.call_packed, or fix its shapes"
            )
        types = signature.types
        operands = [f"{ty} {self.data_of(a)}" for ty, a in zip(types, e.args, strict=True)]
        if signature.returns:
            operands.append(f"ptr {self.var('i64', count=2)}")
        code = self.op(f"call i32 @{signature.kernel}({', '.join(operands)})")
        self.check_code(code)
        if not signature.returns:
            return "0"
        slot = operands[-1].split()[-1]
        return self._from_any(slot, e.dtype)

    def data_of(self, a: Any) -> str:
        """A tensor argument as a pointer, or a number."""
        if type(a) is tir.Buffer:
            return self.pointer(a)
        if type(a) is tir.Call and getattr(a.op, "name", "") == "tir.tvm_stack_make_array":
            return self.visit(a.args[0])
        if type(a) is tir.BufferLoad and dt.is_handle(a.dtype):
            return self.visit(a)
        return self.visit(a)

    def check_code(self, code: str) -> None:
        """Return from this function if a callee failed."""
        bad, good = self.new_label("failed"), self.new_label("ok")
        self.cond_br(self.op(f"icmp eq i32 {code}, 0"), good, bad)
        self.label(bad)
        self.fail_through(code)
        self.label(good)

    # -- registered functions ---------------------------------------------------------------------

    def call_packed(self, e: tir.Call) -> str:
        """A call of a function of the global registry, found by name at each call."""
        self.work = float("inf")
        name, args = e.args[0], e.args[1:]
        if type(name) is not tir.StringImm:
            raise CodegenError(
                f"{self.function_name}: call_packed needs the function's name first, got {name!r}"
            )
        text = self.unit.text
        text.declare("i32", "TVMFFIFunctionGetGlobal", ["ptr", "ptr"])
        text.declare("i32", "TVMFFIFunctionCall", ["ptr", "ptr", "i32", "ptr"])
        text.declare("i32", "TVMFFIObjectDecRef", ["ptr"])
        key = self.var("i64", count=2)
        self.store("ptr", text.string(name.value), key)
        self.store("i64", str(len(name.value.encode())), self.gep("i64", key, 1))
        slot = self.var("ptr")
        self.store("ptr", "null", slot)
        self.check_code(self.op(f"call i32 @TVMFFIFunctionGetGlobal(ptr {key}, ptr {slot})"))
        func = self.load("ptr", slot)
        missing, found = self.new_label("missing"), self.new_label("found")
        self.cond_br(self.op(f"icmp eq ptr {func}, null"), missing, found)
        self.label(missing)
        self.fail(
            "ValueError",
            f"{self.function_name}: it calls the global function {name.value!r}, which is not "
            f'registered (register one with @register_func("{name.value}"))',
        )
        self.label(found)
        packed = self.var("i64", count=2 * max(len(args), 1), align=8)
        for position, arg in enumerate(args):
            self._pack(arg, self.gep("i64", packed, 2 * position))
        result = self.var("i64", count=2, align=8)
        for word in range(2):
            self.store("i64", "0", self.gep("i64", result, word))
        code = self.op(
            f"call i32 @TVMFFIFunctionCall(ptr {func}, ptr {packed}, i32 {len(args)}, ptr {result})"
        )
        self.do(f"call i32 @TVMFFIObjectDecRef(ptr {func})")
        self.check_code(code)
        return self._from_any(result, e.dtype)

    def _pack(self, arg: Any, slot: str) -> None:
        """Store one argument as tvm-ffi's Any: a type index and eight bytes."""
        at = self.gep("i64", slot, 1)
        if type(arg) is tir.StringImm:
            self.store("i64", "8", slot)
            self.store("ptr", self.unit.text.string(arg.value), at)
            return
        if type(arg) is tir.Buffer:
            self.store("i64", "7", slot)
            shape = [self.index(s) for s in arg.shape]
            strides = [self.index(s) for s in arg.strides]
            self.store("ptr", self._header(self.pointer(arg), arg.dtype, shape, strides), at)
            return
        if type(arg) is tir.Call and getattr(arg.op, "name", "") == "tir.tvm_stack_make_array":
            self.store("i64", "7", slot)
            self.store("ptr", self.call_make_array(arg), at)
            return
        code = dt.parse(arg.dtype).code
        value = self.visit(arg)
        if code == "handle":
            kind = self.var("i64")
            self.store("i64", "4", kind)
            null = self.op(f"icmp eq ptr {value}, null")
            self.store("i64", self.op(f"select i1 {null}, i64 0, i64 4"), slot)
            self.store("ptr", value, at)
        elif code in ("float", "bfloat"):
            self.store("i64", "3", slot)
            self.store("double", self.convert(value, arg.dtype, "float64"), at)
        else:
            self.store("i64", "2" if code == "bool" else "1", slot)
            self.store("i64", self.convert(value, arg.dtype, "int64"), at)

    def _header(self, data: str, dtype: str, shape: list[str], strides: list[str]) -> str:
        """A DLTensor on the stack."""
        extents = self.var("i64", count=max(len(shape), 1), align=8)
        for d, extent in enumerate(shape):
            self.store("i64", extent, self.gep("i64", extents, d))
        steps = self.var("i64", count=max(len(shape), 1), align=8)
        if not strides:
            product = "1"
            for extent in reversed(shape):
                strides.insert(0, product)
                product = self.fold("mul nsw", product, extent)
        for d, stride in enumerate(strides):
            self.store("i64", stride, self.gep("i64", steps, d))
        header = self.var("i64", count=6, align=8)
        code, bits, lanes = dl_dtype(dtype)
        packed = code | bits << 8 | lanes << 16
        self.store("ptr", data, header)
        self.store("i64", "1", self.gep("i64", header, 1))  # the CPU, device 0
        self.store("i64", str(len(shape) | packed << 32), self.gep("i64", header, 2))
        self.store("ptr", extents, self.gep("i64", header, 3))
        self.store("ptr", steps, self.gep("i64", header, 4))
        self.store("i64", "0", self.gep("i64", header, 5))
        return header

    def call_make_array(self, e: tir.Call) -> str:
        """tvm_stack_make_array(data, shape, strides, ndim, dtype's zero, elem_offset)."""
        data, shape, strides, _, zero, offset = e.args
        pointer = self.visit(data)
        at = self.index(offset)
        if at != "0":
            pointer = self.op(
                f"getelementptr i8, ptr {pointer}, i64 "
                f"{self.fold('mul nsw', at, str(dt.bytes_of(zero.dtype)))}"
            )
        extents = [self.index(s) for s in shape.args]
        steps = [self.index(s) for s in strides.args] if type(strides) is tir.Call else []
        return self._header(pointer, zero.dtype, extents, steps)

    def _from_any(self, slot: str, dtype: str) -> str:
        """The value of an Any as ``dtype``; a float where an integer came, and the reverse."""
        code = dt.parse(dtype).code
        if code == "void":
            return "0"
        payload = self.gep("i64", slot, 1)
        if code == "handle":
            return self.load("ptr", payload)
        number = self.load("i64", payload)
        tag = self.load("i32", slot)
        is_float = self.op(f"icmp eq i32 {tag}, 3")
        real = self.load("double", payload)
        if code in ("float", "bfloat"):
            from_int = self.op(f"sitofp i64 {number} to double")
            value = self.op(f"select i1 {is_float}, double {real}, double {from_int}")
            return self.convert(value, "float64", dtype)
        return self.convert(number, "int64", dtype)
