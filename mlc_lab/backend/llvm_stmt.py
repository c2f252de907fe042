"""LLVM code for statements: loops, stores, branches, allocations, parallel regions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import tir
from ..ir import dtype as dt
from ..lower.common import annotation_int
from ..lower.limit_unroll import UNROLL_COUNT
from ..lower.place_allocations import is_on_stack
from ..runtime.abi import declare_native, quoted
from ..tir import ForKind
from ..tir.functor import leaves_loop
from .llvm_calls import CallGen
from .llvm_emit import CodegenError, const_int
from .llvm_types import element_type, iota, memory_element, register_type

_ALIGN = 64


class StmtGen(CallGen):
    """The part of the code generator that runs statements."""

    stmt_table: dict[type, Callable[[Any, Any], None]] = {}

    def run(self, s: Any) -> None:
        """Emit a statement."""
        method = self.stmt_table.get(type(s))
        if method is None:
            raise CodegenError(
                f"{self.function_name}: {type(s).__name__} has no machine code; it is expected to "
                "be lowered away before code generation (see mlc_lab.lower)"
            )
        method(self, s)

    def stmt_seq(self, s: tir.SeqStmt) -> None:
        for item in s.seq:
            self.run(item)

    def stmt_evaluate(self, s: tir.Evaluate) -> None:
        if type(s.value) is not tir.IntImm:
            self.visit(s.value)

    # -- loops ------------------------------------------------------------------------------------

    def stmt_for(self, s: tir.For) -> None:
        if s.kind is ForKind.PARALLEL:
            self.parallel(s)
            return
        if s.kind is ForKind.THREAD_BINDING:
            tag = s.thread_tag or "a thread axis"
            raise CodegenError(
                f"{self.function_name}: loop {s.loop_var.name!r} is bound to {tag}, and machine "
                "code is made for one thread here; use parallel and vectorize instead, or run "
                "it with mlc_lab.backend.interp.interpret"
            )
        low = self.index(s.min)
        extent = self.index(s.extent)
        before = self.nonzero
        if extent[0] == "%":  # where the body runs, there is at least one iteration
            self.nonzero = set(before)
            self.learn_at_least(s.extent, 1)
        self.count_loop(s.loop_var, low, self.fold("add nsw", low, extent), extent,
                        self.is_nonneg(s.min), lambda: self.run(s.body), _copies_of(s),
                        leaves_loop(s.body))
        self.nonzero = before

    def count_loop(
        self, var: tir.Var, low: str, high: str, extent: str, nonneg: bool, body: Callable,
        copies: int = 0, leaves: bool = False,
    ) -> None:
        """A loop of ``var`` from ``low`` up to, not including, ``high`` (i64 operands).

        LLVM makes ``copies`` of its body, with 0 as many as it likes; ``leaves`` says that T.break
        or T.continue is in it.
        """
        known = extent[0] != "%"
        if nonneg:
            self.nonneg.add(var)
        if known and int(extent) <= 1:
            if int(extent) == 1:
                self.wide[var] = low
                if leaves:
                    end = self.new_label("next")
                    with self.scope():
                        self.leaving(end, end, body)
                    self.label(end)
                else:
                    body()
            return
        head, end = self.new_label("loop"), self.new_label("next")
        if not known:
            self.cond_br(self.op(f"icmp slt i64 {low}, {high}"), head, end)
        before = self.block
        with self.scope():
            self.label(head)
            outside = self.repeats
            self.repeats *= int(extent) if known else float("inf")
            i = self.wide[var] = self.fresh()
            place = len(self.lines)
            self.lines.append("")
            if leaves:
                again = self.new_label("again")
                self.leaving(again, end, body)
                self.label(again)
            else:
                body()
            self.repeats = outside
            step = self.op(f"add {'nuw ' if nonneg else ''}nsw i64 {i}, 1")
            more = self.op(f"icmp slt i64 {step}, {high}")
            self.lines[place] = (
                f"  {i} = phi i64 [{low}, %{before}], [{step}, %{self.block}]"
            )
            note = f", !llvm.loop {self.unit.loop_note(copies)}" if copies > 0 else ""
            self.cond_br(more, head, end, note)
        self.label(end)

    def leaving(self, again: str, end: str, body: Callable) -> None:
        """The body of a loop, in which T.continue jumps to ``again`` and T.break to ``end``."""
        self.exits.append((again, end, len(self.workspaces)))
        with self.scope():
            body()
        self.exits.pop()

    def stmt_while(self, s: tir.While) -> None:
        self.work = float("inf")
        head, body, end = (self.new_label(h) for h in ("while", "body", "done"))
        with self.scope():
            self.label(head)
            self.cond_br(self.condition(s.condition), body, end)
            self.label(body)
            # LLVM may remove an endless loop without side effects and all code after it, and then
            # control would run into the next function. This counts as one and emits no code.
            self.module.declare("void", "llvm.sideeffect", ())
            self.do("call void @llvm.sideeffect()")
            self.leaving(head, end, lambda: self.run(s.body))
            self.br(head)
        self.label(end)

    # -- parallel regions -------------------------------------------------------------------------

    def parallel(self, s: tir.For) -> None:
        """Outline the loop into a function of (captured values, low, high) and launch it.

        A closure on the stack carries the captured values; its first word receives the address of
        the error (kind and text) if the body fails.
        """
        self.work = float("inf")
        low, extent = self.index(s.min), self.index(s.extent)
        captured = [v for v in free_variables(s) if v in self.env or v in self.wide]
        types = ["i64" if v in self.wide else register_type(v.dtype) for v in captured]
        closure = self.var("i64", count=len(captured) + 2, align=8)
        self.store("ptr", "null", closure)
        self.store("i64", low, self.gep("i64", closure, 1))
        for at, (v, ty) in enumerate(zip(captured, types, strict=True)):
            operand = self.wide[v] if v in self.wide else self.env[v]
            self.store(ty, operand, self.gep("i64", closure, at + 2))
        name = self.unit.unique(f"{self.function_name}_parallel")
        self._outline(s, name, captured, types)
        declare_native(self.unit.text, "mlc_lab_parallel_launch")
        code = self.op(
            f"call i32 @mlc_lab_parallel_launch(ptr @{quoted(name)}, ptr {closure}, i64 {extent})"
        )
        bad, good = self.new_label("failed"), self.new_label("ok")
        self.cond_br(self.op(f"icmp eq i32 {code}, 0"), good, bad)
        self.label(bad)
        error = self.load("ptr", closure)
        if self.error_slot is not None:
            self.store("ptr", error, self.error_slot)
            self.leave(code)
        else:
            declare_native(self.unit.text, "mlc_lab_fail")
            kind, message = self.load("ptr", error), self.load("ptr", self.gep("ptr", error, 1))
            self.leave(self.op(f"call i32 @mlc_lab_fail(ptr {kind}, ptr {message})"))
        self.label(good)

    def _outline(
        self, s: tir.For, name: str, captured: list[tir.Var], types: list[str]
    ) -> None:
        # The loop itself is a function with the pointers as parameters: these can be noalias.
        inner = f"{name}_body"
        params = []
        for at, (v, ty) in enumerate(zip(captured, types, strict=True)):
            facts = " noalias" if ty == "ptr" and v in self.objects else ""
            params.append(f"{ty}{facts} %p{at}")
        params += ["ptr %error", "i64 %low", "i64 %high"]
        header = f"define internal i32 @{quoted(inner)}({', '.join(params)}) #0"
        gen = type(self)(self.unit, self.function_name, header)
        for at, v in enumerate(captured):
            (gen.wide if v in self.wide else gen.env)[v] = f"%p{at}"
        gen.nonneg = set(self.nonneg)
        gen.objects = set(self.objects)
        gen.data = dict(self.data)
        gen.nonzero = set(self.nonzero)
        gen.learn_at_least(s.extent, 1)
        gen.error_slot = "%error"
        gen.count_loop(s.loop_var, "%low", "%high", "%low", self.is_nonneg(s.min),
                       lambda: gen.run(s.body), _copies_of(s))
        gen.ret("i32 0")
        self.unit.text.functions.append(gen)

        params = [("ptr", "closure"), ("i64", "lo"), ("i64", "hi")]
        with self.unit.text.function("i32", quoted(name), params, "internal", "#0") as f:
            base = f.load("i64", f.gep("i64", "%closure", 1))
            operands = []
            for at, ty in enumerate(types):
                operands.append(f"{ty} {f.load(ty, f.gep('i64', '%closure', at + 2))}")
            operands.append("ptr %closure")
            operands += [f"i64 {f.op(f'add i64 {base}, {end}')}" for end in ("%lo", "%hi")]
            f.ret(f"i32 {f.call('i32', quoted(inner), operands)}")

    # -- stores -----------------------------------------------------------------------------------

    def stmt_store(self, s: tir.BufferStore) -> None:
        self.work += self.repeats
        self.stored = s.buffer
        buffer, dtype = s.buffer, s.value.dtype
        lanes = dt.lanes_of(s.indices[-1].dtype) if s.indices else 1
        predicate = self.visit(s.predicate) if s.predicate is not None and lanes > 1 else None
        with self.active_lanes(predicate, lanes):
            value = self.visit(s.value)
        if lanes == 1:
            if dtype != buffer.dtype and dt.lanes_of(dtype) == dt.lanes_of(buffer.dtype):
                value, dtype = self.convert(value, dtype, buffer.dtype), buffer.dtype
            flat = self.flat_index(buffer, s.indices) if s.indices else "0"
            self.store_to(self.slot_address(buffer, flat), value, dtype)
            return
        element = dt.element_of(dtype)
        if dt.lanes_of(dtype) == 1:
            value = self.splat(value, element_type(dtype), lanes)
            dtype = dt.with_lanes(dtype, lanes)
        kind, base, stride = self.lane_indices(buffer, s.indices)
        if kind == "ramp" and stride == 1:
            self.store_to(self.slot_address(buffer, base), value, dtype, predicate)
            return
        if predicate is not None:
            self._scatter_masked(buffer, value, dtype, kind, base, stride, predicate)
            return
        for at in range(lanes):
            flat = self._lane_flat(kind, base, stride, lanes, at)
            one = self.lane(value, element_type(dtype), lanes, at)
            self.store_to(self.slot_address(buffer, flat), one, element)

    def _scatter_masked(
        self, buffer: tir.Buffer, value: str, dtype: str, kind: str, base: str, stride: int,
        mask: str,
    ) -> None:
        lanes, element = dt.lanes_of(dtype), memory_element(dtype)
        if kind == "ramp":
            steps = iota(lanes, "i64")
            if stride != 1:
                steps = self.pure(f"mul <{lanes} x i64> {steps}, splat (i64 {stride})")
            base = self.pure(f"add <{lanes} x i64> {self.splat(base, 'i64', lanes)}, {steps}")
        pointers = self.pure(
            f"getelementptr {element}, ptr {self.pointer(buffer)}, <{lanes} x i64> {base}"
        )
        ty, flags = f"<{lanes} x {element}>", f"<{lanes} x i1>"
        if dt.is_bool(dtype):
            value = self.op(f"zext {register_type(dtype)} {value} to {ty}")
        short = {"half": "f16", "float": "f32", "double": "f64"}.get(element, element)
        name = f"llvm.masked.scatter.v{lanes}{short}.v{lanes}p0"
        self.unit.text.declare("void", name, [ty, f"<{lanes} x ptr>", "i32 immarg", flags])
        self.do(
            f"call void @{name}({ty} {value}, <{lanes} x ptr> {pointers}, "
            f"i32 {dt.bytes_of(dt.element_of(dtype))}, {flags} {mask})"
        )

    # -- branches ---------------------------------------------------------------------------------

    def stmt_if(self, s: tir.IfThenElse) -> None:
        cond = self.condition(s.condition)
        if cond in ("true", "false"):
            taken = s.then_case if cond == "true" else s.else_case
            if taken is not None:
                self.run(taken)
            return
        then, end = self.new_label("then"), self.new_label("end")
        other = end if s.else_case is None else self.new_label("else")
        self.cond_br(cond, then, other)
        for label, case in ((then, s.then_case), (other, s.else_case)):
            if case is None:
                continue
            with self.scope():
                self.label(label)
                self.run(case)
                self.br(end)
        self.label(end)

    def stmt_assert(self, s: tir.AssertStmt) -> None:
        cond = self.condition(s.condition)
        if cond != "true":
            good, bad = self.new_label("holds"), self.new_label("broken")
            self.cond_br(cond, good, bad)
            self.label(bad)
            text = getattr(s.message, "value", None) or repr(s.message)
            self.fail("AssertionError", f"{self.function_name}: assertion failed: {text}")
            self.label(good)
        if s.body is not None:
            self.run(s.body)

    # -- scopes -----------------------------------------------------------------------------------

    def stmt_let(self, s: tir.LetStmt) -> None:
        self.bind(s.var, s.value)
        self.run(s.body)

    def stmt_attr(self, s: tir.AttrStmt) -> None:
        key = s.attr_key
        if key == "thread_extent" or (key == "virtual_thread" and const_int(s.value) != 1):
            raise CodegenError(
                f"{self.function_name}: it runs on GPU threads (attribute {key!r}), and machine "
                "code is made for one thread here; use parallel and vectorize instead, or run "
                "it with mlc_lab.backend.interp.interpret"
            )
        if key == "pragma_import_llvm":
            self.unit.imports.append(str(getattr(s.value, "value", s.value)))
        self.run(s.body)

    def stmt_decl(self, s: tir.DeclBuffer) -> None:
        self.run(s.body)

    def stmt_allocate(self, s: tir.Allocate) -> None:
        lanes = dt.lanes_of(s.dtype)
        element = memory_element(s.dtype)
        size = dt.bytes_of(s.dtype)
        self.objects.add(s.buffer_var)
        if is_on_stack(s):
            name, count = self.fresh(), math.prod(const_int(extent) or 0 for extent in s.extents)
            self.entry.append(
                f"  {name} = alloca [{max(count * lanes, 1)} x {element}], align {_ALIGN}"
            )
            self.env[s.buffer_var] = name
            self.run(s.body)
            return
        total = str(size)
        for extent in s.extents:
            total = self.fold("mul nsw", total, self.index(extent))
        declare_native(self.unit.text, "mlc_lab_alloc")
        block = self.op(f"call noalias align 128 ptr @mlc_lab_alloc(i64 {total})")
        good, bad = self.new_label("ok"), self.new_label("full")
        self.cond_br(self.op(f"icmp eq ptr {block}, null"), bad, good)
        self.label(bad)
        self.fail("MemoryError", f"{self.function_name}: no memory for {s.buffer_var.name!r}")
        self.label(good)
        self.env[s.buffer_var] = block
        self.workspaces.append(block)
        self.run(s.body)
        self.release()

    def stmt_allocate_const(self, s: tir.AllocateConst) -> None:
        """Constant data, as a global of the module."""
        import numpy as np

        data = s.data.numpy() if hasattr(s.data, "numpy") else np.asarray(s.data)
        raw = np.ascontiguousarray(data).tobytes()
        text = "".join(f"\\{b:02X}" for b in raw)
        name = quoted(self.unit.unique(f"{self.function_name}_const"))
        self.unit.text.globals.append(
            f'@{name} = internal constant [{len(raw)} x i8] c"{text}", align {_ALIGN}'
        )
        self.env[s.buffer_var] = f"@{name}"
        self.run(s.body)


def _copies_of(s: tir.For) -> int:
    """How often LLVM is to copy the body of a loop; 0 without an annotation."""
    return annotation_int(s.annotations.get(UNROLL_COUNT))


def free_variables(s: Any) -> list[tir.Var]:
    """Variables, pointers of buffers included, that a statement uses and does not define."""
    used: dict[tir.Var, None] = {}
    collect = _Uses(used)
    collect.visit(s)
    return list(used)


class _Uses(tir.Visitor):
    """Collects every variable that occurs."""

    def __init__(self, used: dict[tir.Var, None]) -> None:
        self.used = used

    def visit_Var(self, node: tir.Var) -> None:
        self.used[node] = None

    def _buffer(self, buffer: tir.Buffer) -> None:
        self.used[buffer.data] = None
        for e in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            if e is not None and type(e) is not tir.IntImm:
                self.visit(e)

    def visit_BufferLoad(self, node: tir.BufferLoad) -> None:
        self._buffer(node.buffer)
        self.visit_children(node)

    def visit_BufferStore(self, node: tir.BufferStore) -> None:
        self._buffer(node.buffer)
        self.visit_children(node)

    def visit_Call(self, node: tir.Call) -> None:
        for arg in node.args:
            if type(arg) is tir.Buffer:
                self._buffer(arg)
            else:
                self.visit(arg)



StmtGen.stmt_table = {
    tir.SeqStmt: StmtGen.stmt_seq,
    tir.Evaluate: StmtGen.stmt_evaluate,
    tir.For: StmtGen.stmt_for,
    tir.While: StmtGen.stmt_while,
    tir.BufferStore: StmtGen.stmt_store,
    tir.IfThenElse: StmtGen.stmt_if,
    tir.AssertStmt: StmtGen.stmt_assert,
    tir.LetStmt: StmtGen.stmt_let,
    tir.AttrStmt: StmtGen.stmt_attr,
    tir.DeclBuffer: StmtGen.stmt_decl,
    tir.Allocate: StmtGen.stmt_allocate,
    tir.AllocateConst: StmtGen.stmt_allocate_const,
}
