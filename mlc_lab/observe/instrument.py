"""A lowered program compiled so that it reports every load and store while it computes.

`instrument` lowers a program, has `report_code.py` write it with a report of each access, puts the
cache simulator, a trace or a watch on shared lines beside it, and links it, ready to run.

Addresses are simulated. All buffers lie in one arena whose start is a multiple of its size, so the
low bits of a pointer are its place in the arena: the same in every run and on every machine.
Parallel loops run one iteration after the other; each access is recorded with the thread that would
have made it. Arrays that are indexed by constants only are kept in registers by LLVM, and do not
count as memory, as long as there is `Plan.registers`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import tir
from ..backend import llvm
from ..ir import dtype as dt
from ..ir.module import IRModule
from ..lower import lower
from ..machine.caches import CacheHierarchy
from ..runtime import jit, linking, native_library
from ..runtime.llir import ModuleText
from ..runtime.module import SYMBOL_PREFIX
from ..runtime.native import SYMBOLS
from ..tir.functor import pre_order
from .cache_code import INLINED, simulator_object, write_counts, write_inlined
from .inner_loop import statements_run
from .measure import Unmeasurable, is_parallel, only_function, random_arrays, under_its_key
from .report_code import PAGE, ROW_HEAD, CountingGen, Place, Plan, Site, register_arrays
from .sharing_code import SharingGen, write_watch

if TYPE_CHECKING:
    from ..target.target import TargetLike

#: a run of so many statements takes less time than LLVM's optimisation would save
BRIEF = 3_000_000

__all__ = ["CountingGen", "Element", "Place", "Plan", "Program", "ROW_HEAD", "Site", "call",
           "concrete", "instrument"]


def concrete(mod: IRModule, sizes: Mapping[str, int] | None) -> tuple[str, IRModule]:
    """The name of the function that is measured, and the module with its sizes fixed."""
    mod = under_its_key(mod)
    name, func = only_function(mod)
    if sizes:
        table = {}
        for buffer in func.buffers:
            for e in (*buffer.shape, *buffer.strides):
                if isinstance(e, tir.Var) and e.name in sizes:
                    table[e] = int(sizes[e.name])
        if table:
            functions = {gv.name_hint: f for gv, f in mod.functions.items()}
            functions[name] = func.specialize(table)
            mod = IRModule(functions)
    return name, mod


@dataclass(frozen=True)
class Element:
    """An element of a buffer that is looked for, where it is written or where it is read.

    Its indices may be outside of the shape, where a program goes wrong."""

    buffer: str
    indices: tuple[int, ...]
    write: bool = True

    def address(self, plan: Plan) -> int:
        """Where it is in the arena. Raises Unmeasurable where there is no such buffer."""
        place = next((p for p in plan.places.values() if p.name == self.buffer), None)
        if place is None or len(place.shape) != len(self.indices):
            raise Unmeasurable(f"there is no {self.buffer} with {len(self.indices)} dimensions in "
                               "the memory of this program")
        flat = 0
        for index, size in zip(self.indices, place.shape):
            flat = flat * size + index
        return (place.base + flat * dt.bytes_of(place.dtype)) & plan.mask


@dataclass
class Program:
    """An instrumented program, compiled and linked, with its arguments in its arena."""

    name: str
    lowered: IRModule
    plan: Plan
    library: Any
    arena: np.ndarray
    arguments: list[np.ndarray]
    run: Any

    def array_at(self, symbol: str, shape: Sequence[int]) -> np.ndarray:
        """The words that a function of the program points at."""
        address = ctypes.CFUNCTYPE(ctypes.c_void_p)(self.library.address(symbol))()
        count = int(np.prod(shape))
        words: Any = (ctypes.c_int64 * count).from_address(address)
        return np.frombuffer(words, np.int64, count).reshape(shape)


def instrument(mod: IRModule, hierarchy: CacheHierarchy | None, *,
               sizes: Mapping[str, int] | None = None, target: TargetLike = "llvm",
               threads: int | None = None, registers: bool = True, capacity: int = 0,
               arrays: Sequence[np.ndarray] | None = None, sharing: int = 0, first: int = 0,
               last_of: Element | None = None) -> Program:
    """Lower, instrument, compile and link a program, ready to run.

    With a hierarchy it counts in caches of that form; with `sharing` it watches which threads use
    which lines of so many bytes; else it traces at most `capacity` accesses from the number `first`
    on, and notes the number of the last access that is `last_of` an element. Parallel loops are
    spread over `threads` threads, by default as many as the machine has cores. `arrays` are the
    arguments (random data if None). Raises Unmeasurable where it cannot be run, CodegenError and
    LowerError where it cannot be compiled.
    """
    from ..target import Target

    if Target(target).kind.name != "llvm":
        raise Unmeasurable("accesses are counted for programs of this machine's processor only")
    name, mod = concrete(mod, sizes)
    func = only_function(mod)[1]
    lowered = lower(mod, target=Target(target))
    plan = Plan(hierarchy, (threads or native_library.num_threads()) if is_parallel(lowered) else 1,
                registers)
    given = random_arrays(func, sizes) if arrays is None else [np.asarray(a) for a in arrays]
    buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    if not len(given) == len(buffers) == len(func.params):
        raise Unmeasurable(f"{name} takes {len(func.params)} arguments, all of them buffers; "
                           f"{len(given)} arrays were given")
    for buffer, data in zip(buffers, given, strict=True):
        plan.place(buffer.name, buffer.data, buffer.dtype, data.shape, "parameter")
    if registers:
        for one in lowered.functions.values():
            if isinstance(one, tir.PrimFunc):
                plan.in_registers |= register_arrays(one)
    text, meta, imports, spare = _generate(lowered, plan, name,
                                           SharingGen if sharing else CountingGen)
    runtime = ModuleText(jit.host_machine().triple, jit.host_machine().data_layout)
    runtime.globals.append("@sim_arena = global ptr null")
    exports, more = [SYMBOL_PREFIX + name], []
    brief = statements_run(mod) <= BRIEF
    if sharing:
        write_watch(runtime, sharing)
        exports += ["share_words", "share_merge"]
    elif hierarchy is not None:
        _check_reach(hierarchy, plan.top)
        write_counts(runtime, hierarchy, len(plan.sites))
        if plan.threads > 1:
            runtime.globals.append("@sim_core = global i64 0")
        if not brief and len(plan.sites) <= INLINED:
            write_inlined(runtime, hierarchy, plan.threads)
        more.append(simulator_object(hierarchy, plan.threads))
        exports += ["sim_state", "sim_written"]
    else:
        _write_trace(runtime, plan.depth, capacity, first)
        _write_last(runtime, plan, last_of)
        exports += ["trace_rows", "trace_count", "trace_last"]
    with runtime.function("ptr", "sim_arena_slot", []) as f:
        f.ret("ptr @sim_arena")
    exports.append("sim_arena_slot")
    # The simulator is most of the work, and LLVM's own loop transformations gain nothing here.
    compiled = jit.compile_ir(text, imports=[*llvm._link_imports(imports), str(runtime)],
                              vectorize=False, unroll=False, level=0 if brief else 3)
    symbols = native_library.native_symbols([n for n in meta["needs"] if n in SYMBOLS])
    ffi = native_library.ffi_symbols()
    symbols.update({n: ffi[n] for n in meta["needs"] if n in ffi})
    library = linking.link([compiled.obj, *more], exports, symbols)
    arena = _arena(spare)
    slot = ctypes.CFUNCTYPE(ctypes.c_void_p)(library.address("sim_arena_slot"))()
    ctypes.c_void_p.from_address(slot).value = arena.ctypes.data
    views = []
    for buffer, data in zip(buffers, given, strict=True):
        place = plan.places[buffer.data]
        raw = arena[place.base : place.base + place.nbytes]
        view = raw.view(data.dtype).reshape(data.shape)
        view[...] = data
        views.append(view)
    for place in plan.places.values():
        if place.value is not None:
            raw = place.value.reshape(-1).view(np.uint8)
            arena[place.base : place.base + place.nbytes] = raw
    packed = native_library.packed(library.address(SYMBOL_PREFIX + name), library, name)
    return Program(name, lowered, plan, library, arena, views, packed)


def _generate(lowered: IRModule, plan: Plan, name: str, generator: type[CountingGen]
              ) -> tuple[str, dict, list[str], int]:
    """The LLVM IR of the instrumented program. The size of the arena, which addresses depend on, is
    known once all allocations are, so that is found first."""
    top = plan.top
    for func in lowered.functions.values():
        if isinstance(func, tir.PrimFunc):
            for node in pre_order(func.body):
                if type(node) is tir.Allocate and node.buffer_var not in plan.in_registers:
                    size = dt.bytes_of(node.dtype)
                    for extent in node.extents:
                        size *= extent.value if type(extent) is tir.IntImm else 1
                    top += -(-max(size, 1) // PAGE) * PAGE
                elif type(node) is tir.AllocateConst:
                    data = node.data.numpy() if hasattr(node.data, "numpy") else node.data
                    top += -(-max(np.asarray(data).nbytes, 1) // PAGE) * PAGE
    spare = 1 << max(top - 1, PAGE).bit_length()
    plan.mask = spare - 1
    emitter = type("Counting", (generator,), {"plan": plan})
    text, meta, imports = llvm.generate(lowered, jit.host_machine(), name, emitter)
    return text, meta, imports, spare


def _arena(size: int) -> np.ndarray:
    """Memory that starts at a multiple of its size; pages never touched take no memory."""
    raw = np.zeros(2 * size, np.uint8)
    start = -raw.ctypes.data % size
    return raw[start : start + size]


def _check_reach(hierarchy: CacheHierarchy, top: int) -> None:
    if top // hierarchy.levels[0].line >= 1 << 31:
        raise Unmeasurable("the program's buffers are too large for the simulator: 2^31 lines of "
                           "the first cache is what it can tell apart")


def _write_trace(m: ModuleText, depth: int, capacity: int, first: int) -> None:
    """Define `ptr trace_row(site, address, bytes)`: a row to write the loops' values to."""
    width = ROW_HEAD + depth
    m.globals.append(f"@trace_data = internal global [{(capacity + 1) * width} x i64] "
                     "zeroinitializer, align 64")
    m.globals.append("@trace_n = internal global i64 0")
    m.globals.append("@sim_core = global i64 0")
    params = [("i64", "site"), ("i64", "address"), ("i64", "bytes")]
    with m.function("ptr", "trace_row", params, "", "noinline nounwind") as f:
        n = f.load("i64", "@trace_n")
        f.store("i64", f.op(f"add i64 {n}, 1"), "@trace_n")
        f.op(f"call i64 @trace_seen(i64 {n}, i64 %site, i64 %address, i64 %bytes)")
        # What comes before the first row and after the last is counted, and written over the spare
        # one: as an unsigned number, what is before is far behind.
        row = f.op(f"sub i64 {n}, {first}")
        fits = f.op(f"icmp ult i64 {row}, {capacity}")
        at = f.op(f"select i1 {fits}, i64 {row}, i64 {capacity}")
        row = f.gep("i64", "@trace_data", f.op(f"mul i64 {at}, {width}"))
        thread = f.load("i64", "@sim_core")
        for offset, value in enumerate(("%site", "%address", "%bytes", thread)):
            f.store("i64", value, f.gep("i64", row, offset))
        f.ret(f"ptr {row}")
    for name, what in (("trace_rows", "trace_data"), ("trace_count", "trace_n"),
                       ("trace_last", "trace_at")):
        with m.function("ptr", name, []) as f:
            f.ret(f"ptr @{what}")


def _write_last(m: ModuleText, plan: Plan, wanted: Element | None) -> None:
    """Define `trace_seen`, which keeps the number of the last access of an element."""
    m.globals.append("@trace_at = internal global i64 -1")
    params = [("i64", "n"), ("i64", "site"), ("i64", "address"), ("i64", "bytes")]
    with m.function("i64", "trace_seen", params, "", "alwaysinline nounwind") as f:
        if wanted is not None and plan.sites:
            address, write = wanted.address(plan), wanted.write
            kinds = ", ".join(f"i8 {int(site.write == write)}" for site in plan.sites)
            m.globals.append(f"@trace_kind = internal constant [{len(plan.sites)} x i8] [{kinds}]")
            kind = f.op(f"icmp ne i8 {f.load('i8', f.gep('i8', '@trace_kind', '%site'))}, 0")
            # its bytes reach the element: an unsigned number again
            reach = f.op(f"icmp ult i64 {f.op(f'sub i64 {address}, %address')}, %bytes")
            old = f.load("i64", "@trace_at")
            new = f.op(f"select i1 {f.op(f'and i1 {kind}, {reach}')}, i64 %n, i64 {old}")
            f.store("i64", new, "@trace_at")
        f.ret("i64 0")


def call(program: Program) -> None:
    """Run an instrumented program once."""
    program.run(*program.arguments)
