"""Kernels as source: statements, memory, and the text of a module.

One generator serves all dialects; what differs is in their tables (`dialect.py`). It writes loops
and names as the program has them, and above each loop nest the block that it came from, and keeps
for each line what it was written for. `expressions.py` has the expressions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...ir import dtype as dt
from ...ir.module import IRModule
from ...lower.common import LowerError
from ...lower.split_host_device import axes_of, is_kernel, launch_extents
from ...tir import expr as E
from ...tir import op
from ...tir import stmt as S
from ...tir.function import PrimFunc
from ...tir.functor import all_statements, pre_order, variables_of
from ...tir.op import as_int
from ..outside import may_be_outside, without_lets
from .cuda import CUDA
from .dialect import Dialect
from .expressions import ExprGen
from .metal import METAL
from .opencl import OPENCL
from .webgpu import WGSL

#: a target kind -> its dialect
DIALECTS: dict[str, Dialect] = {"cuda": CUDA, "opencl": OPENCL, "metal": METAL, "webgpu": WGSL}
#: what a kernel notes of a loop that was ended; greater numbers are those of watched accesses
ENDED = 1
_FENCES = {"opencl": ("CLK_LOCAL_MEM_FENCE", "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE"),
           "metal": ("mem_flags::mem_threadgroup",
                     "mem_flags::mem_threadgroup | mem_flags::mem_device")}


@dataclass(frozen=True)
class Pointer:
    """A parameter of a kernel that points to memory of the device."""

    var: E.Var
    name: str
    type: str
    dtype: str
    read_only: bool


@dataclass(frozen=True)
class Scalar:
    """A parameter of a kernel that is a number."""

    var: E.Var
    name: str
    type: str
    dtype: str


@dataclass(frozen=True)
class Axis:
    """An axis of a kernel's threads."""

    tag: str
    name: str
    dtype: str


@dataclass
class KernelSource:
    """The source of one kernel, and what a launch of it needs to know.

    Attributes
    ----------
    name : str
        The function's name in the source.
    text : str
        The whole source of the kernel alone, as a compiler takes it.
    pointers, scalars
        Its parameters, in order: pointers first.
    block : tuple of int
        Threads in a block along x, y and z, where they are constants (else 0).
    extents : dict
        How many threads each axis has: an expression of the kernel's parameters.
    shared_bytes : int
        Bytes of shared memory in a block.
    parts
        Lines of the text: includes, helpers, the function itself.
    origins : list
        What each line of the function was written for: a statement, the variable of a loop, that of
        an allocation, the tag of an axis, or None.
    dynamic_shared : int
        Bytes of it that a launch has to ask for: all, where a language wants that; else 0.
    func : PrimFunc
        What it was written from.
    warp : int
        Lanes that a warp of the device must have for its shuffles; 0 where there are none.
    watch, sites
        Accesses that are looked at when it runs (see `watched`), and what each is in words.
    notes : bool
        Whether it has a last parameter, in which it notes what went wrong.
    """

    name: str
    text: str
    pointers: list[Pointer]
    scalars: list[Scalar]
    block: tuple[int, int, int]
    extents: Mapping[str, E.PrimExpr]
    shared_bytes: int
    parts: tuple[list[str], list[str], list[str]] = field(default_factory=lambda: ([], [], []))
    origins: list[Any] = field(default_factory=list)
    dynamic_shared: int = 0
    func: PrimFunc | None = None
    warp: int = 0
    watch: Mapping[Any, E.PrimExpr] = field(default_factory=dict)
    sites: tuple[str, ...] = ()
    notes: bool = False


class KernelGen(ExprGen):
    """Writes one kernel."""

    def __init__(self, dialect: Dialect, func: PrimFunc, name: str, blocks: Mapping[Any, str],
                 guarded: bool = False, watch: Mapping[Any, E.PrimExpr] | None = None) -> None:
        super().__init__(dialect, name)
        self.asynchronous = False  # whether copies are
        self.note = ""  # the memory that notes what went wrong
        self.guarded = guarded  # whether loops note that they did not end by themselves
        self.watch = watch or {}
        self.sites: list[str] = []
        self.leaving: list[str] = []  # of each loop around, what says that `break` ended it
        self.func, self.blocks = func, blocks
        self.noalias = bool(as_int((func.attrs or {}).get("tir.noalias", 0)))
        self.lines: list[str] = []
        self.origins: list[Any] = []  # of each line
        self.at: Any = None  # what is being written
        self.shared: list[str] = []
        self.shared_vars: list[E.Var] = []
        self.shared_arrays: list[tuple[str, str, int]] = []  # type, name and bytes of each
        self.dynamic_shared = 0
        self.depth = 1
        self.told: str | None = None  # the block whose name stands above
        self.shared_bytes = 0
        self.taken: set[str] = set(dialect.reserved) | {name} | {
            template.partition("(")[0] for template in dialect.functions.values()}
        self._parameters()
        if guarded or self.watch:
            self.note = self.unique("note")

    # -- the function -----------------------------------------------------------------------------

    def _parameters(self) -> None:
        axes, self.body = axes_of(self.func)
        self.extents = launch_extents(self.func)
        used = set()
        self.written: set[E.Var] = set()
        types: dict[E.Var, str] = {}
        for item in pre_order(self.func.body):
            if isinstance(item, E.Var):
                used.add(item)
            elif type(item) in (E.BufferLoad, S.BufferStore):
                types[item.buffer.data] = item.buffer.dtype
                if type(item) is S.BufferStore:
                    self.written.add(item.buffer.data)
            elif type(item) is E.Call:
                self.written.update(a for a in item.args
                                    if isinstance(a, E.Var) and a.dtype == "handle")
        inner: set[Any] = {v for item in pre_order(self.body) if isinstance(item, E.Var)
                           for v in (item,)}
        sizes = variables_of(self.watch.values())
        self.pointers: list[Pointer] = []
        self.scalars: list[Scalar] = []
        for var in self.func.params:
            if var.dtype == "handle":
                name = self.define(var)
                dtype = types.get(var, "float32")
                self.pointers.append(Pointer(var, name, self.memory_type(dtype, var.name), dtype,
                                             var not in self.written))
            elif var in inner or var in sizes:
                name = self.define(var)
                kind = self.d.memory_types.get(var.dtype) or self.type_of(var.dtype)
                self.scalars.append(Scalar(var, name, kind, var.dtype))
        self.axes = [Axis(s.node.thread_tag, self.define(s.node.var), s.node.var.dtype)
                     for s in axes]
        sizes = {tag: as_int(extent) or 0 for tag, extent in self.extents.items()}
        dims = [sizes.get(f"threadIdx.{letter}", 1) for letter in "xyz"]
        self.block_dims = (dims[0], dims[1], dims[2])
        self.block_size = dims[0] * dims[1] * dims[2]
        if not self.block_size and not self.d.c_like:
            raise LowerError(f"{self.name}: {self.d.title} wants the number of threads in a block "
                             "to be a constant: bind a loop of fixed extent to threadIdx, with "
                             "sch.split(loop, [None, threads])")

    def is_read_only(self, buffer: Any) -> bool:
        return any(p.var is buffer.data and p.read_only for p in self.pointers)

    def define(self, var: E.Var, name: str = "") -> str:
        """A name of its own for a variable."""
        found = self.unique(name or var.name)
        self.names[var] = found
        return found

    def unique(self, name: str) -> str:
        """A name that nothing has yet, as the language allows it."""
        base = re.sub(r"\W", "_", name, flags=re.ASCII) or "v"
        base = f"v{base}" if base[0].isdigit() or base.startswith("__") else base
        found, number = base, 0
        while found in self.taken:
            number += 1
            found = f"{base}_{number}"
        self.taken.add(found)
        return found

    def write(self) -> KernelSource:
        """The kernel."""
        self.run(self.body)
        frame = self.d.frame(self, self.shared, self.lines)
        preamble = [*(self.d.shuffle_lines if self.warp else ()),
                    *self.d.preamble(self.used_types)]
        helpers = [self.d.helpers[name].format(T=self.d.types[dtype], note=self.note)
                   for name, dtype in self.used_helpers]
        text = "\n".join([*preamble, *([""] if preamble else []), *helpers,
                          *([""] if helpers else []), *frame]) + "\n"
        return KernelSource(self.name, text, self.pointers, self.scalars, self.block_dims,
                            self.extents, self.shared_bytes, (preamble, helpers, frame),
                            self._origins(frame), self.dynamic_shared, self.func, self.warp,
                            self.watch, tuple(self.sites), bool(self.note))

    def _origins(self, frame: list[str]) -> list[Any]:
        """What each line of the function was written for: the lines of the body know it, those
        before them declare axes and shared memory."""
        start = len(frame) - len(self.lines) - 1
        found: list[Any] = [None] * len(frame)
        found[start:start + len(self.lines)] = self.origins
        for at, text in enumerate(frame[:start]):
            for axis in self.axes:
                if f" {axis.name} = " in text:
                    found[at] = axis.tag
            for var, declared in zip(self.shared_vars, self.shared):
                if text.endswith(declared) or f" {self.names[var]} = " in text:
                    found[at] = var
        return found

    # -- statements -------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)
        self.origins.append(self.at)

    def run(self, s: Any) -> None:
        """Write a statement, under the name of the block that all of it came from."""
        method = _STATEMENTS.get(type(s))
        if method is None:
            raise LowerError(f"{self.name}: {type(s).__name__} cannot be written in "
                             f"{self.d.title}; lower the program first (mlc_lab.lower)")
        before, around = self.told, self.at
        self.at = s.loop_var if type(s) is S.For else (
            s.buffer_var if type(s) is S.Allocate else s)
        if type(s) in (S.For, S.BufferStore, S.IfThenElse, S.While):
            block = self._block_of(s)
            if block is not None and block != self.told:
                self.line(f"// block {block}")
                self.told = block
        method(self, s)
        self.at = around
        if type(s) is not S.BufferStore:
            self.told = before

    def _block_of(self, s: Any) -> str | None:
        """The block that all stores of a statement came from, if it is one."""
        found = {self.blocks.get(x) for x in all_statements(s) if type(x) is S.BufferStore}
        return found.pop() if len(found) == 1 else None

    def nested(self, s: Any) -> None:
        self.depth += 1
        self.run(s)
        self.depth -= 1

    def seq(self, s: S.SeqStmt) -> None:
        for item in s.seq:
            self.run(item)

    def loop(self, s: S.For) -> None:
        low, extent = self.text(s.min), as_int(s.extent)
        start = as_int(s.min)
        high = str(start + extent) if start is not None and extent is not None else self.text(
            s.extent if start == 0 else E.Add(s.min, s.extent), 4)
        name = self.define(s.loop_var)
        if s.kind is S.ForKind.UNROLLED and self.d.unroll:
            self.line(self.d.unroll)
        kind = self.type_of(s.loop_var.dtype)
        if self.d.c_like:
            self.line(f"for ({kind} {name} = {low}; {name} < {high}; ++{name}) {{")
        elif self.guarded:
            self.line("{")
            self.line(f"var {name} : {kind} = {low};")
            self._guarded(f"for (; {name} < {high}; {name}++)", f"{name} < {high}", s.body)
            self.line("}")
            self.taken.discard(name)
            return
        else:
            self.line(f"for (var {name} : {kind} = {low}; {name} < {high}; {name}++) {{")
        self.nested(s.body)
        self.line("}")
        self.taken.discard(name)  # loops one after the other may have the same name

    def repeat(self, s: S.While) -> None:
        condition = self.text(s.condition)
        if self.guarded:
            self._guarded(f"while ({condition})", condition, s.body)
            return
        self.line(f"while ({condition}) {{")
        self.nested(s.body)
        self.line("}")

    def _guarded(self, head: str, condition: str, body: Any) -> None:
        """A loop, and a note where it ends though its condition holds."""
        leaves = any(_is_call(x, "tir.break_loop") for x in all_statements(body))
        flag = self.unique("left") if leaves else ""
        if flag:
            self.line(f"var {flag} = false;")
        self.line(f"{head} {{")
        self.leaving.append(flag)
        self.nested(body)
        self.leaving.pop()
        self.line("}")
        still = f"!{flag} && ({condition})" if flag else condition
        self.line(f"if ({still}) {{ atomicStore(&{self.note}, {ENDED}u); }}")

    def branch(self, s: S.IfThenElse) -> None:
        self.line(f"if ({self.text(s.condition)}) {{")
        self.nested(s.then_case)
        if s.else_case is not None:
            self.line("} else {")
            self.nested(s.else_case)
        self.line("}")

    def store(self, s: S.BufferStore) -> None:
        (index,) = s.indices
        name, value = self.names[s.buffer.data], s.value
        nbytes = self._async_bytes(s)
        if nbytes and type(value) is E.BufferLoad:
            to, source = (self.text(i.base if type(i) is E.Ramp else i, 6)
                          for i in (index, value.indices[0]))
            self.line(self.d.async_copy.format(
                bytes=nbytes, type=self.type_of(s.buffer.dtype), to=f"{name} + ({to})",
                source=f"{self.names[value.buffer.data]} + ({source})"))
            return
        if type(index) is E.Ramp:
            self.line(self.d.vector_store.format(
                type=self.type_of(s.buffer.dtype), lanes=index.lanes, buffer=name,
                index=self.place(s, index.base, 6), value=self.text(value),
                space=self.space_of(s.buffer)))
            return
        self.line(f"{name}[{self.place(s, index)}] = {self.text(value)};")

    def place(self, access: Any, index: Any, outer: int = 0) -> str:
        """The index of an access; one that is watched is looked at, and becomes 0 where it is
        outside."""
        size = self.watch.get(access)
        if size is None:
            return self.text(index, outer)
        self.helper("within", index.dtype)
        verb = "loads" if type(access) is E.BufferLoad else "stores to"
        block = f"block {self.told}" if self.told else self.name
        self.sites.append(f"{block} {verb} {access.buffer.name}[{index!r}], outside of its "
                          f"{access.buffer.shape[0]!r} elements")
        site = f"{ENDED + len(self.sites)}u"
        last = f"{self.note}, {site}" if self.d.c_like else (
            f"{site}, {' && '.join(self.when) or 'true'}")
        kind = self.type_of(index.dtype)
        return f"within_{kind}({self.text(index)}, {self.text(op.cast(size, index.dtype))}, {last})"

    def let(self, s: S.LetStmt) -> None:
        value = self.text(s.value)
        kind = self.type_of(s.var.dtype)
        name = self.define(s.var)
        self.line(f"const {kind} {name} = {value};" if self.d.c_like else
                  f"let {name} : {kind} = {value};")
        self.run(s.body)

    def allocate(self, s: S.Allocate) -> None:
        size = 1
        for extent in s.extents:
            number = as_int(extent)
            if number is None:
                raise LowerError(f"{self.name}: {s.buffer_var.name} has {extent!r} elements of "
                                 f"{s.buffer_var.storage_scope} memory, and a kernel's memory has "
                                 "a constant size: tile the loops with constant factors")
            size *= number
        name = self.define(s.buffer_var)
        kind = self.type_of(s.dtype)
        if s.buffer_var.storage_scope.startswith("shared"):
            align = "__align__(16) " if self.d.name == "cuda" else (
                "alignas(16) " if self.d.name == "metal" else "")
            self.shared_vars.append(s.buffer_var)
            self.shared.append(f"{align}{kind} {name}[{max(size, 1)}];" if self.d.c_like else
                               f"{name} : array<{kind}, {max(size, 1)}>;")
            nbytes = max(size, 1) * dt.bytes_of(s.dtype)
            self.shared_arrays.append((kind, name, nbytes))
            self.shared_bytes += nbytes
        else:
            self.line(f"{kind} {name}[{max(size, 1)}];" if self.d.c_like else
                      f"var {name} : array<{kind}, {max(size, 1)}>;")
        self.run(s.body)

    def constant(self, s: S.AllocateConst) -> None:
        import numpy as np

        data = s.data.numpy() if hasattr(s.data, "numpy") else np.asarray(s.data)
        imm = E.FloatImm if data.dtype.kind == "f" else E.IntImm
        values = ", ".join(self.text(imm(s.dtype, v)) for v in data.reshape(-1).tolist())
        kind, name = self.type_of(s.dtype), self.define(s.buffer_var)
        self.line(f"const {kind} {name}[{data.size}] = {{{values}}};" if self.d.c_like else
                  f"var {name} = array<{kind}, {data.size}>({values});")
        self.run(s.body)

    def evaluate(self, s: S.Evaluate) -> None:
        call = s.value
        if type(call) is not E.Call:
            return
        name = getattr(call.op, "name", "")
        if name == "tir.tvm_storage_sync":
            fences = _FENCES.get(self.d.name, ("", ""))
            everywhere = bool(self.written & {p.var for p in self.pointers} & self._read())
            self.line(self.d.barrier.format(fence=fences[everywhere]))
            if everywhere and not self.d.c_like:
                self.line("storageBarrier();")
        elif name in ("tir.break_loop", "tir.continue_loop"):
            if name == "tir.break_loop" and self.leaving and self.leaving[-1]:
                self.line(f"{self.leaving[-1]} = true;")
            self.line("break;" if name == "tir.break_loop" else "continue;")
        else:
            self.line(f"{self.text(call)};")

    def _read(self) -> set[E.Var]:
        return {x.buffer.data for x in pre_order(self.body) if type(x) is E.BufferLoad}

    def attribute(self, s: Any) -> None:
        key = getattr(s, "attr_key", "")
        if not self.d.async_copy or not key.startswith("async_"):
            self.run(s.body)
            return
        self.helper("copy_async", "int32")
        if key == "async_wait_inflight_count":
            self.line(self.d.async_wait.format(count=self.text(s.value)))
        before = self.asynchronous
        self.asynchronous |= key == "async_scope"
        self.run(s.body)
        self.asynchronous = before
        if key == "async_commit_queue_scope":
            self.line(self.d.async_commit)

    def _async_bytes(self, s: S.BufferStore) -> int:
        """How many bytes a store copies asynchronously; 0 where it is a plain one."""
        (index,), load = s.indices, s.value
        if not self.asynchronous or type(load) is not E.BufferLoad or (
                load.buffer.scope() != "global" or not s.buffer.scope().startswith("shared")):
            return 0
        lanes = as_int(index.lanes) or 0 if type(index) is E.Ramp else 1
        nbytes = lanes * dt.bytes_of(s.buffer.dtype)
        return nbytes if nbytes in (4, 8, 16) else 0

    def checked(self, s: S.AssertStmt) -> None:
        """A device cannot raise: what is asserted is said."""
        self.line(f"// it is assumed that {self.text(s.condition)}")
        self.run(s.body)


def _is_call(s: Any, name: str) -> bool:
    return type(s) is S.Evaluate and getattr(getattr(s.value, "op", None), "name", "") == name


_STATEMENTS = {
    S.SeqStmt: KernelGen.seq, S.For: KernelGen.loop, S.While: KernelGen.repeat,
    S.IfThenElse: KernelGen.branch, S.BufferStore: KernelGen.store, S.LetStmt: KernelGen.let,
    S.Allocate: KernelGen.allocate, S.AllocateConst: KernelGen.constant,
    S.Evaluate: KernelGen.evaluate, S.AttrStmt: KernelGen.attribute,
    S.DeclBuffer: KernelGen.attribute, S.AssertStmt: KernelGen.checked,
}


def dialect_of(kind: str) -> Dialect:
    """The dialect of a target kind. Raises KeyError for one without."""
    return DIALECTS[kind]


def kernel_source(func: PrimFunc, name: str, kind: str, blocks: Mapping[Any, str] | None = None
                  ) -> KernelSource:
    """The source of one kernel of a lowered module (see `lower/split_host_device.py`).

    `blocks` says which block a store came from. Raises LowerError for what the dialect cannot say.
    """
    return KernelGen(DIALECTS[kind], func, name, blocks or {}).write()


def guarded(kernel: KernelSource, kind: str) -> KernelSource:
    """The source of a kernel that also notes, in memory of one number that is its last parameter,
    whether a loop ended though its condition holds: a driver may end one that runs for long."""
    if kernel.func is None:
        raise ValueError(f"{kernel.name}: it is not known what the kernel was written from")
    return KernelGen(DIALECTS[kind], kernel.func, kernel.name, {}, True, kernel.watch).write()


def watched(kernel: KernelSource, kind: str, blocks: Mapping[Any, str] | None = None
            ) -> KernelSource:
    """The source of a kernel in which accesses that may lie outside of its arrays are looked at: an
    index outside becomes 0, and memory of one number, which is the last parameter, notes `ENDED`
    plus the number of the site. The same kernel where all are proved to lie inside."""
    if kernel.func is None:
        raise ValueError(f"{kernel.name}: it is not known what the kernel was written from")
    func = without_lets(kernel.func)
    found = may_be_outside(func)
    return KernelGen(DIALECTS[kind], func, kernel.name, blocks or {}, watch=found).write() if (
        found) else kernel


def most_iterations(kernel: KernelSource) -> float:
    """How many iterations of loops a thread runs at most; infinity where that is not known."""

    def count(s: Any) -> float:
        inner = sum(count(c) for c in s.children() if isinstance(c, S.Stmt))
        if type(s) is S.While:
            return math.inf
        if type(s) is S.For:
            extent = as_int(s.extent)
            return math.inf if extent is None else extent * (1 + inner)
        return inner

    return count(kernel.func.body) if kernel.func is not None else math.inf


def sources(mod: IRModule, kind: str, blocks: Mapping[Any, str] | None = None
            ) -> dict[str, KernelSource]:
    """The source of each kernel of a lowered module, by name."""
    return {var.name_hint: kernel_source(func, var.name_hint, kind, blocks)
            for var, func in mod.functions.items() if is_kernel(func)}


def module_text(kernels: Mapping[str, KernelSource], kind: str) -> str:
    """All kernels in one text. WGSL's kernels are modules of their own, one after the other."""
    return "\n".join(line for line, _, _ in module_lines(kernels, kind)) + "\n"


def module_lines(kernels: Mapping[str, KernelSource], kind: str) -> list[tuple[str, str, Any]]:
    """The lines of `module_text`, each with its kernel and what it was written for there: see
    `KernelSource.origins`; ("" and None for what belongs to no statement)."""
    parts: list[list[tuple[str, str, Any]]] = []
    if DIALECTS[kind].c_like:
        for at in (0, 1):
            once = dict.fromkeys(line for k in kernels.values() for line in k.parts[at])
            parts.append([(line, "", None) for line in once])
        parts += [[(line, k.name, node) for line, node in zip(k.parts[2], k.origins)]
                  for k in kernels.values()]
    else:
        for k in kernels.values():
            lines = k.text.rstrip("\n").split("\n")
            nodes = [None] * (len(lines) - len(k.origins)) + k.origins
            parts.append([(f"// ---- {k.name}", "", None),
                          *((line, k.name, node) for line, node in zip(lines, nodes))])
    out: list[tuple[str, str, Any]] = []
    for part in filter(None, parts):
        out += [("", "", None), *part] if out else part
    return out


__all__ = ["DIALECTS", "ENDED", "KernelSource", "Pointer", "Scalar", "dialect_of", "guarded",
           "kernel_source", "module_lines", "module_text", "most_iterations", "sources", "watched"]
