"""The code generator that reports every load and store of a lowered program.

`CountingGen` writes the same machine code as the LLVM backend, and beside each access of memory a
call that tells its address, bytes and place in the program: to the cache simulator (`cache_code`),
or to a trace. The program computes as well, so what depends on data goes its usual way. `Plan` is
what it works by and what it finds: where each buffer lies, and the sites.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import tir
from ..backend.llvm_emit import CodegenError, quoted
from ..backend.llvm_stmt import StmtGen
from ..backend.llvm_types import iota, lane_bytes, memory_element
from ..ir import dtype as dt
from ..machine.caches import CacheHierarchy
from ..tir.functor import pre_order
from .cache_code import site_words
from .rolled import Run, runs

#: every buffer starts at a multiple of this in the arena: a page, as large arrays do
PAGE = 4096
#: lanes of a masked vector that the simulator takes
_MASK_BITS = 64
#: loops of so few iterations are unrolled by LLVM
FEW = 8
#: words of a trace's row before the values of the loop variables
ROW_HEAD = 4


@dataclass(frozen=True)
class Site:
    """A place in the lowered program that loads or stores.

    `buffer` is the buffer as it stands there; `nbytes` what one access asks for; `loops` the loop
    variables around it, outermost first; `statement` the store or other statement that it is part
    of.
    """

    number: int
    node: Any
    buffer: tir.Buffer
    write: bool
    nbytes: int
    loops: tuple[tir.Var, ...]
    statement: Any


@dataclass
class Place:
    """Where a buffer lies in the arena. `shape` is that of the buffer before it was flattened."""

    name: str
    data: tir.Var
    dtype: str
    shape: tuple[int, ...]
    base: int
    nbytes: int
    kind: str  # "parameter", "allocated" or "constant"
    value: np.ndarray | None = None  # of a constant


@dataclass
class Plan:
    """What the instrumented program reports to, and what is known of it."""

    hierarchy: CacheHierarchy | None  # None: a trace
    threads: int = 1
    registers: bool = True
    sites: list[Site] = field(default_factory=list)
    places: dict[tir.Var, Place] = field(default_factory=dict)
    in_registers: set[tir.Var] = field(default_factory=set)
    unseen: list[str] = field(default_factory=list)
    top: int = 0  # of the arena, so far
    depth: int = 0
    mask: int = 0
    numbers: dict[tuple, int] = field(default_factory=dict)
    runs: dict[int, tuple[tir.SeqStmt, list[Run]]] = field(default_factory=dict)

    def place(self, name: str, data: tir.Var, dtype: str, shape: Sequence[int], kind: str) -> Place:
        """Give a buffer its place in the arena, behind those before it."""
        nbytes = int(np.prod(shape, dtype=np.int64)) * dt.bytes_of(dtype)
        found = self.places[data] = Place(name, data, dtype, tuple(shape), self.top, nbytes, kind)
        self.top += -(-max(nbytes, 1) // PAGE) * PAGE
        return found


class CountingGen(StmtGen):
    """The LLVM backend's generator, which reports accesses. `plan` is set by a subclass."""

    plan: Plan

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.around: list[tir.Var] = []
        self.node: Any = None
        self.statement: Any = None
        self.in_parallel = False
        self.copies: Run | None = None  # the run of copies being written, and
        self.copy = ""  # the number of the copy that runs

    # -- reporting --------------------------------------------------------------------------------

    def site(self, write: bool, nbytes: int) -> Site:
        """The site of the access being written, of copies that of the first: the others have the
        numbers behind it."""
        plan = self.plan
        key = (id(self.node), nbytes, tuple(self.around))
        number = plan.numbers.get(key)
        if number is None:
            number = len(plan.sites)
            copies = self.copies.nodes[id(self.node)] if self.copies else (
                [(self.node, self.statement)])
            # the number last: a deep program may have to begin again in the middle
            plan.sites += [Site(number + k, node, node.buffer, write, nbytes, tuple(self.around),
                                statement) for k, (node, statement) in enumerate(copies)]
            plan.depth = max(plan.depth, len(self.around))
            plan.numbers[key] = number
        return plan.sites[number]

    def number_of(self, site: Site, words: int = 1) -> str:
        """The number of a site, or of its copy that runs, times some words."""
        number = str(site.number * words)
        if self.copies is None:
            return number
        return self.fold("add nsw", self.fold("mul nsw", self.copy, str(words)), number)

    def counted(self) -> bool:
        """Whether the access being written is one of memory."""
        return self.node is not None and self.node.buffer.data not in self.plan.in_registers

    def arena_address(self, pointer: str) -> str:
        return self.op(f"and i64 {self.op(f'ptrtoint ptr {pointer} to i64')}, {self.plan.mask}")

    def report(self, pointer: str, dtype: str, write: bool, predicate: str | None) -> None:
        """Report the access of consecutive lanes at a pointer."""
        if not self.counted():
            return
        lanes, element = dt.lanes_of(dtype), lane_bytes(dtype)
        nbytes = lanes * element
        site, plan = self.site(write, nbytes), self.plan
        address, flag = self.arena_address(pointer), int(write)
        if plan.hierarchy is None:
            if predicate is None or lanes == 1:
                self.trace(site, address, nbytes)
                return
            site = self.site(write, element)
            for at in range(lanes):
                bit = self.lane(predicate, "i1", lanes, at)
                lane = self.fold("add nsw", address, str(at * element))
                self._when(bit, lambda lane=lane: self.trace(site, lane, element))
            return
        word = self.number_of(site, site_words(plan.hierarchy))
        if predicate is not None and lanes > _MASK_BITS:
            raise CodegenError(f"{self.function_name}: a masked vector of {lanes} lanes cannot be "
                               f"counted; split the vectorized loop to {_MASK_BITS} or fewer")
        if predicate is not None and lanes > 1:
            bits = self._bits(predicate, lanes)
            self.tell("sim_masked", f"i64 {address}", f"i64 {element}", f"i64 {bits}",
                      f"i32 {flag}", f"i64 {word}")
        elif lanes == 1 and nbytes <= plan.hierarchy.levels[0].line:
            self.tell("sim_write" if write else "sim_read", f"i64 {address}", f"i64 {word}")
        else:
            self.tell("sim_span", f"i64 {address}", f"i64 {nbytes}", f"i32 {flag}", f"i64 {word}")

    def report_lanes(self, pointers: str, element: int, lanes: int, mask: str, write: bool) -> None:
        """Report the lanes of a vector of pointers for which the mask holds."""
        if not self.counted():
            return
        site = self.site(write, element)
        for at in range(lanes):
            bit = self.lane(mask, "i1", lanes, at)
            address = self.arena_address(self.lane(pointers, "ptr", lanes, at))
            if self.plan.hierarchy is None:
                self._when(bit, lambda a=address: self.trace(site, a, element))
            else:
                name = "sim_write" if write else "sim_read"
                word = self.number_of(site, site_words(self.plan.hierarchy))
                self._when(bit, lambda a=address, n=name, w=word: self.tell(
                    n, f"i64 {a}", f"i64 {w}"))

    def _bits(self, predicate: str, lanes: int) -> str:
        bits = self.op(f"bitcast <{lanes} x i1> {predicate} to i{lanes}")
        return bits if lanes == 64 else self.op(f"zext i{lanes} {bits} to i64")

    def _when(self, cond: str, emit: Any) -> None:
        then, end = self.new_label("lane"), self.new_label("on")
        self.cond_br(cond, then, end)
        with self.scope():
            self.label(then)
            emit()
            self.br(end)
        self.label(end)

    def tell(self, name: str, *args: str) -> None:
        self.unit.text.declare("void", name, [a.split(" ")[0] for a in args])
        self.do(f"call void @{name}({', '.join(args)})")

    def trace(self, site: Site, address: str, nbytes: int) -> None:
        """Append a row to the trace: site, address, bytes, thread, values of the loops."""
        self.unit.text.declare("ptr", "trace_row", ["i64"] * 3)
        number = self.number_of(site)
        row = self.op(f"call ptr @trace_row(i64 {number}, i64 {address}, i64 {nbytes})")
        for at, var in enumerate(site.loops):
            slot = self.op(f"getelementptr i64, ptr {row}, i64 {ROW_HEAD + at}")
            self.store("i64", self.index(var), slot)

    # -- accesses ---------------------------------------------------------------------------------

    def expr_load(self, e: tir.BufferLoad) -> str:
        outer, self.node = self.node, e
        value = super().expr_load(e)
        self.node = outer
        return value

    def stmt_store(self, s: tir.BufferStore) -> None:
        outer, self.node, self.statement = (self.node, self.statement), s, s
        super().stmt_store(s)
        self.node, self.statement = outer

    def stmt_evaluate(self, s: tir.Evaluate) -> None:
        outer, self.statement = self.statement, s
        super().stmt_evaluate(s)
        self.statement = outer

    def stmt_let(self, s: tir.LetStmt) -> None:
        outer, self.statement = self.statement, s
        self.bind(s.var, s.value)
        self.statement = outer
        self.run(s.body)

    def load_from(self, address: str, dtype: str, predicate: str | None = None) -> str:
        self.report(address, dtype, False, predicate)
        return super().load_from(address, dtype, predicate)

    def store_to(
        self, address: str, value: str, dtype: str, predicate: str | None = None
    ) -> None:
        self.report(address, dtype, True, predicate)
        super().store_to(address, value, dtype, predicate)

    def _lane_pointers(self, buffer: tir.Buffer, dtype: str, kind: str, base: str,
                       stride: int) -> str:
        """The vector of pointers that a gather or scatter uses."""
        lanes = dt.lanes_of(dtype)
        if kind == "ramp":
            steps = iota(lanes, "i64")
            if stride != 1:
                steps = self.pure(f"mul <{lanes} x i64> {steps}, splat (i64 {stride})")
            base = self.pure(f"add <{lanes} x i64> {self.splat(base, 'i64', lanes)}, {steps}")
        return self.pure(f"getelementptr {memory_element(dtype)}, ptr {self.pointer(buffer)}, "
                         f"<{lanes} x i64> {base}")

    def _gather_masked(self, buffer: tir.Buffer, dtype: str, kind: str, base: str, stride: int,
                       mask: str) -> str:
        pointers = self._lane_pointers(buffer, dtype, kind, base, stride)
        self.report_lanes(pointers, lane_bytes(dtype), dt.lanes_of(dtype), mask, False)
        return super()._gather_masked(buffer, dtype, kind, base, stride, mask)

    def _scatter_masked(self, buffer: tir.Buffer, value: str, dtype: str, kind: str, base: str,
                        stride: int, mask: str) -> None:
        pointers = self._lane_pointers(buffer, dtype, kind, base, stride)
        self.report_lanes(pointers, lane_bytes(dtype), dt.lanes_of(dtype), mask, True)
        super()._scatter_masked(buffer, value, dtype, kind, base, stride, mask)

    def expr_call(self, e: tir.Call) -> str:
        name = getattr(e.op, "name", "")
        if name in _EXTERNAL:
            called = e.args[0] if e.args else None
            callee = str(getattr(called, "value", name))
            if callee not in self.plan.unseen:
                self.plan.unseen.append(callee)
        return super().expr_call(e)

    # -- statements -------------------------------------------------------------------------------

    def stmt_seq(self, s: tir.SeqStmt) -> None:
        """Copies that an unrolled loop left are run by a loop."""
        if id(s) not in self.plan.runs:
            self.plan.runs[id(s)] = s, runs(s.seq)
        at = 0
        for run in self.plan.runs[id(s)][1]:
            for item in s.seq[at:run.start]:
                self.run(item)
            self._loop_over(run)
            at = run.end
        for item in s.seq[at:]:
            self.run(item)

    def _loop_over(self, run: Run) -> None:
        """Code that runs one copy after the other; what differs comes from tables."""
        number = tir.Var("copy", "int64")

        def body() -> None:
            self.copies, self.copy = run, self.wide[number]
            for var, values in run.values:
                table = "@" + quoted(self.unit.unique("copies"))
                entries = ", ".join(f"i64 {value}" for value in values)
                self.unit.text.globals.append(
                    f"{table} = internal constant [{len(values)} x i64] [{entries}], align 8")
                self.wide[var] = self.load("i64", self.gep("i64", table, self.copy))
                if min(values) >= 0:
                    self.nonneg.add(var)
            for statement in run.statements:
                self.run(statement)
            self.copies = None

        self.count_loop(number, "0", str(run.count), str(run.count), True, body)

    def stmt_for(self, s: tir.For) -> None:
        self.around.append(s.loop_var)
        super().stmt_for(s)
        self.around.pop()

    def parallel(self, s: tir.For) -> None:
        """One iteration after the other; the thread is the one that would have run it."""
        low, extent = self.index(s.min), self.index(s.extent)
        self.work = float("inf")
        # A parallel loop inside another one stays on its thread.
        is_spread = self.plan.threads > 1 and not self.in_parallel
        before, self.in_parallel = self.in_parallel, True

        def body() -> None:
            if is_spread:
                done = self.fold("sub nsw", self.index(s.loop_var), low)
                self.on_thread(self._thread_of(done, extent))
            self.run(s.body)

        if is_spread:
            self.enter_parallel()
        self.count_loop(s.loop_var, low, self.fold("add nsw", low, extent), extent,
                        self.is_nonneg(s.min), body)
        if is_spread:
            self.leave_parallel()
        self.in_parallel = before

    def _thread_of(self, done: str, extent: str) -> str:
        """The thread that has an iteration for its own, as `runtime/native/pool.py` divides them:
        thread t those from t * extent // threads on."""
        self.unit.text.declare("i64", "llvm.smin.i64", ["i64", "i64"])
        threads = self.op(f"call i64 @llvm.smin.i64(i64 {self.plan.threads}, i64 {extent})")
        ends = self.op(f"mul i64 {self.op(f'add i64 {done}, 1')}, {threads}")
        return self.op(f"udiv i64 {self.op(f'sub i64 {ends}, 1')}, {extent}")

    def enter_parallel(self) -> None:
        """A parallel loop that is spread over threads begins."""
        self.unit.text.declarations["sim_core"] = "@sim_core = external global i64"

    def on_thread(self, thread: str) -> None:
        """The next iteration of a parallel loop, and its thread."""
        self.store("i64", thread, "@sim_core")

    def leave_parallel(self) -> None:
        """A parallel loop that is spread over threads ends."""
        self.store("i64", "0", "@sim_core")

    def stmt_allocate(self, s: tir.Allocate) -> None:
        if s.buffer_var in self.plan.in_registers:
            super().stmt_allocate(s)
            return
        place = self.plan.places.get(s.buffer_var)
        if place is None:
            shape = [extent.value for extent in s.extents if type(extent) is tir.IntImm]
            if len(shape) != len(s.extents):
                raise CodegenError(
                    f"{self.function_name}: how large {s.buffer_var.name!r} is cannot be told; "
                    "give the symbolic sizes by name, as in sizes={'n': 128}")
            name = s.buffer_var.name
            place = self.plan.place(name, s.buffer_var, s.dtype, shape, "allocated")
        self._in_arena(s, place)

    def _in_arena(self, s: Any, place: Place) -> None:
        self.unit.text.declarations["arena"] = "@sim_arena = external global ptr"
        start = self.pure("load ptr, ptr @sim_arena")
        self.env[s.buffer_var] = self.pure(f"getelementptr i8, ptr {start}, i64 {place.base}")
        self.objects.add(s.buffer_var)
        self.run(s.body)

    def stmt_allocate_const(self, s: tir.AllocateConst) -> None:
        data = s.data.numpy() if hasattr(s.data, "numpy") else np.asarray(s.data)
        place = self.plan.places.get(s.buffer_var)
        if place is None:
            place = self.plan.place(s.buffer_var.name, s.buffer_var, str(data.dtype), data.shape,
                                    "constant")
            place.value = np.ascontiguousarray(data)
        self._in_arena(s, place)


CountingGen.expr_table = {**StmtGen.expr_table, tir.BufferLoad: CountingGen.expr_load,
                          tir.Call: CountingGen.expr_call}
CountingGen.stmt_table = {
    **StmtGen.stmt_table,
    tir.SeqStmt: CountingGen.stmt_seq,
    tir.For: CountingGen.stmt_for,
    tir.BufferStore: CountingGen.stmt_store,
    tir.Evaluate: CountingGen.stmt_evaluate,
    tir.LetStmt: CountingGen.stmt_let,
    tir.Allocate: CountingGen.stmt_allocate,
    tir.AllocateConst: CountingGen.stmt_allocate_const,
}

#: calls that may read and write memory unseen
_EXTERNAL = {"tir.call_extern", "tir.call_pure_extern", "tir.tvm_call_packed",
             "tir.tvm_call_cpacked"}


def register_arrays(func: tir.PrimFunc) -> set[tir.Var]:
    """Arrays of a lowered function that LLVM keeps in registers: small, and indexed by constants.

    Of 16 KiB at most (what the backend puts on the stack), used by loads and stores only. The
    variable of an innermost loop of at most `FEW` iterations counts as a constant, since LLVM
    unrolls such a loop.
    """
    allocated: set[tir.Var] = set()
    spoiled: set[tir.Var] = set()
    constants = {node.loop_var for node in pre_order(func.body)
                 if type(node) is tir.For and type(node.extent) is tir.IntImm
                 and node.extent.value <= FEW
                 and not any(type(inner) is tir.For for inner in pre_order(node.body))}
    for node in pre_order(func.body):
        kind = type(node)
        if kind is tir.Allocate:
            size = dt.bytes_of(node.dtype)
            for extent in node.extents:
                size *= extent.value if type(extent) is tir.IntImm else 1 << 40
            if size <= 16 * 1024:
                allocated.add(node.buffer_var)
        elif kind is tir.BufferLoad or kind is tir.BufferStore:
            for index in node.indices:
                if any(type(e) in _VARIABLE and e not in constants for e in pre_order(index)):
                    spoiled.add(node.buffer.data)
        elif kind is tir.Call:
            for arg in node.args:
                if isinstance(arg, tir.Var):
                    spoiled.add(arg)
                elif type(arg) is tir.Buffer:
                    spoiled.add(arg.data)
                elif type(arg) is tir.BufferLoad and node.op.name == "tir.address_of":
                    spoiled.add(arg.buffer.data)
    return allocated - spoiled


#: what makes an index no constant
_VARIABLE = {tir.Var, tir.SizeVar, tir.BufferLoad, tir.Call}
