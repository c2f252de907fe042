"""The interpreter's loads and stores: views of buffers, bounds, vectors, recording, checks.

A load or store compiles to the fastest closure its buffer allows: constant shape and compact
layout index a memoryview directly; other layouts go through a `View` made when the buffer is
declared. When a run is watched (recorded or checked) every access passes through `_watch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, Sequence

import numpy as np

from ..ir import dtype as dt
from ..tir import stmt as S
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, PrimExpr, Ramp, Var
from ..tir.function import PrimFunc
from ..tir.op import as_int
from .interp_expr import Code, ExprCompiler
from .interp_memory import InterpError, OutOfBounds, View, row_major, vector_dtype

if TYPE_CHECKING:
    from ..ir.module import IRModule
    from ..ir.node import Node


class Access(NamedTuple):
    """One element read or written: where, and in which iteration of the loops around it.

    `index` counts elements from the start of the buffer's memory; `iteration` holds the values of
    the loop variables around the access, outermost first (their names: `AccessLog.loops[site]`).
    """

    buffer: Buffer
    index: int
    write: bool
    iteration: tuple[int, ...]
    site: int


class AccessLog:
    """Collects every access of a run in time order: `interpret(f, *args, record=log)`.

    `accesses` is the list; `loops[access.site]` are the loop variables around that place in the
    program, `nodes[access.site]` the load or store itself.
    """

    def __init__(self) -> None:
        self.accesses: list[Access] = []
        self.loops: list[tuple[Var, ...]] = []
        self.nodes: list[Any] = []

    def add_site(self, node: Node, loops: tuple[Var, ...]) -> int:
        """A number for the place in the program where `node` stands."""
        self.nodes.append(node)
        self.loops.append(loops)
        return len(self.nodes) - 1

    def __call__(self, access: Access) -> None:
        self.accesses.append(access)

    def __len__(self) -> int:
        return len(self.accesses)

    def of(self, name: str) -> list[Access]:
        """The accesses of the buffers called `name`."""
        return [a for a in self.accesses if a.buffer.name == name]



class Steps:
    """Iterations that a program may still make in loops whose number does not stand in it."""

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def take(self) -> None:
        """Make one. Raises InterpError where none is left."""
        self.left -= 1
        if self.left < 0:
            raise InterpError(f"stopped: its loops make more than {self.most:,} iterations")


class Options(NamedTuple):
    """What the interpreter was asked to watch and where it finds functions by name."""

    record: Any = None
    check_regions: bool = False
    check_uninitialized: bool = False
    packed: Any = None
    extern: Mapping[str, Callable] = {}
    steps: Steps | None = None

    @property
    def watched(self) -> bool:
        """Whether each access must be looked at, not only done."""
        return self.record is not None or self.check_regions or self.check_uninitialized


def _line(node: Node) -> str:
    """A load or a store as it stands in the program, without the declarations of what it uses."""
    return repr(node).rstrip().split("\n")[-1]


class ActiveBlock:
    """A block being compiled: which slot holds its regions, which buffers it allocates."""

    __slots__ = ("name", "slot", "own")

    def __init__(self, name: str, slot: int, own: set[Buffer]) -> None:
        self.name, self.slot, self.own = name, slot, own


class AccessCompiler(ExprCompiler):
    """Variables, buffers and accesses. Mixed into the interpreter's compiler."""

    def __init__(self, mod: IRModule | None, options: Options, name: str) -> None:
        self.mod, self.options, self.name = mod, options, name
        self.slots: dict[Var, int] = {}
        self.views: dict[Buffer, int] = {}
        #: buffers that are windows on regions of others
        self.windows: set[Buffer] = set()
        self.size = 0
        self.loops: list[Var] = []
        self.blocks: list[ActiveBlock] = []
        self.memories: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    # ------------------------------------------------------------------ variables and buffers

    def new_slot(self) -> int:
        """A fresh place in `env`."""
        self.size += 1
        return self.size - 1

    def define(self, var: Var) -> int:
        """A slot for a variable that is bound here."""
        found = self.slots.get(var)
        if found is None:
            found = self.slots[var] = self.new_slot()
        return found

    def slot(self, var: Var) -> int:
        found = self.slots.get(var)
        if found is None:
            raise InterpError(f"{self.name}: the variable {var.name} ({var.dtype}) is used but "
                              "bound by nothing: no loop, block, let or parameter defines it")
        return found

    def evaluate(self, e: PrimExpr, values: Mapping[Var, Any]) -> Any:
        """The value of an expression over known variables (shapes of arguments)."""
        compiler = type(self)(None, Options(), self.name)
        for var in values:
            compiler.define(var)
        env = list(values.values())
        code = compiler.expr(e)
        return code(env + [None] * (compiler.size - len(env)))

    def reset(self, env: list) -> None:
        """Clear the state of an earlier run."""
        self.memories.clear()

    def where(self, env: list) -> str:
        """The loop variables around the place of an error, as text."""
        known = [f"{v.name}={env[s]}" for v, s in self.slots.items()
                 if v.dtype != "handle" and isinstance(env[s], (int, float))]
        return f" (at {', '.join(known)})" if known else ""

    def bind_parameters(self, func: PrimFunc) -> Code:
        """Slots for the parameters and their buffers' sizes; the code that makes the views."""
        for param in func.params:
            self.define(param)
        for buffer in func.buffer_map.values():
            self.define(buffer.data)
            for size in (*buffer.shape, *buffer.strides, buffer.elem_offset):
                if isinstance(size, Var):
                    self.define(size)
        steps = [self.declare(b, initialized=True) for b in func.buffer_map.values()]

        def bind(env: list) -> None:
            for step in steps:
                step(env)

        return bind

    def declare(self, buffer: Buffer, initialized: bool = False) -> Code:
        """Code that makes the view of `buffer` over its data pointer, in slots s and s + 1."""
        data = self.slot(buffer.data)
        make = self._view_maker(buffer, data, initialized)
        slot = self.views.get(buffer)
        if slot is None:
            slot = self.views[buffer] = self.new_slot()
            self.new_slot()

        def declare(env: list) -> None:
            view = env[slot] = make(env)
            env[slot + 1] = view.mem

        return declare

    def _view_maker(self, buffer: Buffer, data: int, initialized: bool) -> Callable:
        shape, strides = self._numbers(buffer.shape), self._numbers(buffer.strides)
        offset = self._numbers((buffer.elem_offset,) if buffer.elem_offset is not None else ())
        dtype, shadows = buffer.dtype, self.options.check_uninitialized

        def make(env: list) -> View:
            start = offset(env)
            shadow = self._shadow(env[data], initialized) if shadows else None
            return View(env[data], dtype, shape(env), strides(env), start[0] if start else 0,
                        shadow)

        return make

    def _shadow(self, memory: np.ndarray, initialized: bool) -> Any:
        """Which bytes of a memory were written; shared by all views of it."""
        found = self.memories.get(id(memory))
        if found is None:
            flags = np.full(max(1, memory.nbytes), initialized)
            found = self.memories[id(memory)] = (memory, flags)
        return found[1]

    def _numbers(self, exprs: Sequence[PrimExpr]) -> Callable:
        constants = tuple(as_int(e) for e in exprs)
        if None not in constants:
            return lambda env: constants
        codes = [self.expr(e) for e in exprs]
        return lambda env: tuple(c(env) for c in codes)

    def view(self, buffer: Buffer) -> Callable:
        """Code that gives the view of a buffer; one never declared is made over its pointer."""
        slot = self.views.get(buffer)
        if slot is not None:
            return lambda env: env[slot]
        if buffer.data not in self.slots:
            raise InterpError(f"{self.name}: the buffer {buffer.name} is used but defined by "
                              "nothing: no parameter, allocation, match_buffer or DeclBuffer")
        return self._view_maker(buffer, self.slot(buffer.data), False)

    # ------------------------------------------------------------------ loads and stores

    def load(self, e: BufferLoad) -> Code:
        """A read of an element (or of a vector of them)."""
        if self._is_vector(e.buffer, e.indices):
            return self._vector_load(e)
        codes = [self.expr(i) for i in e.indices]
        if self.options.watched:
            return self._watched_load(e, codes)
        slot, shape = self._constant_layout(e.buffer)
        fail = self._fail(e.buffer, e, codes)
        if shape is not None and len(shape) == len(codes) and len(shape) in (1, 2):
            mem = slot + 1
            if len(shape) == 1:
                i0, (n0,) = codes[0], shape

                def load1(env: list) -> Any:
                    i = i0(env)
                    return env[mem][i] if 0 <= i < n0 else fail(env)

                return load1
            (i0, i1), (n0, n1) = codes, shape

            def load2(env: list) -> Any:
                i, j = i0(env), i1(env)
                return env[mem][i * n1 + j] if 0 <= i < n0 and 0 <= j < n1 else fail(env)

            return load2
        place = self._place(e.buffer, e, codes)
        view = self.view(e.buffer)

        def load(env: list) -> Any:
            v = view(env)
            return v.mem[place(env, v)]

        return load

    def _store(self, s: S.BufferStore) -> Code:
        if self._is_vector(s.buffer, s.indices):
            return self._vector_store(s)
        value = self.expr(s.value)
        codes = [self.expr(i) for i in s.indices]
        if self.options.watched:
            return self._watched_store(s, codes, value)
        slot, shape = self._constant_layout(s.buffer)
        fail = self._fail(s.buffer, s, codes)
        if shape is not None and len(shape) == len(codes) and len(shape) in (1, 2):
            mem = slot + 1
            if len(shape) == 1:
                i0, (n0,) = codes[0], shape

                def store1(env: list) -> None:
                    x, i = value(env), i0(env)
                    if not 0 <= i < n0:
                        fail(env)
                    env[mem][i] = x

                return store1
            (i0, i1), (n0, n1) = codes, shape

            def store2(env: list) -> None:
                x, i, j = value(env), i0(env), i1(env)
                if not (0 <= i < n0 and 0 <= j < n1):
                    fail(env)
                env[mem][i * n1 + j] = x

            return store2
        place = self._place(s.buffer, s, codes)
        view = self.view(s.buffer)

        def store(env: list) -> None:
            x, v = value(env), view(env)
            v.mem[place(env, v)] = x

        return store

    @staticmethod
    def _is_vector(buffer: Buffer, indices: Sequence[PrimExpr]) -> bool:
        return dt.lanes_of(buffer.dtype) > 1 or any(dt.lanes_of(i.dtype) > 1 for i in indices)

    def _constant_layout(self, buffer: Buffer) -> tuple[int, tuple | None]:
        """The slot and shape of a declared, compact buffer of constant shape at offset 0; a window
        lies where its region does, whatever offset it is declared with."""
        slot = self.views.get(buffer)
        shape = tuple(n for d in buffer.shape if (n := as_int(d)) is not None)
        strides = tuple(as_int(d) for d in buffer.strides)
        known = len(shape) == len(buffer.shape)
        compact = not strides or known and strides == row_major(shape)
        if slot is None or not known or not compact or as_int(buffer.elem_offset) != 0 or (
                buffer in self.windows):
            return -1, None
        return slot, shape

    def _place(self, buffer: Buffer, node: Node, codes: list[Code]) -> Callable:
        """Code for the checked flat index of an access in any view."""
        fail = self._fail(buffer, node, codes)
        if len(codes) != len(buffer.shape):
            raise InterpError(f"{buffer.name} has {len(buffer.shape)} dimension(s) but is accessed "
                              f"with {len(codes)} index(es): {node!r}")

        def place(env: list, view: View) -> int:
            flat = view.offset
            for code, extent, stride in zip(codes, view.shape, view.strides):
                i = code(env)
                if not 0 <= i < extent:
                    fail(env)
                flat += i * stride
            if not 0 <= flat < len(view.array):
                fail(env)
            return flat

        return place

    def _fail(self, buffer: Buffer, node: Node, codes: list[Code]) -> Callable:
        view = self.view(buffer)

        def fail(env: list) -> None:
            indices = ", ".join(str(c(env)) for c in codes)
            verb = "write" if isinstance(node, S.BufferStore) else "read"
            error = OutOfBounds(f"{self.name}: {verb} of {buffer.name}[{indices}] outside of its "
                                f"shape {view(env).shape}{self.where(env)}, in: {_line(node)}")
            error.node, error.element = node, f"{buffer.name}[{indices}]"
            raise error

        return fail

    # vectors

    def _flat_indices(self, buffer: Buffer, node: BufferLoad | S.BufferStore) -> Callable:
        """Code for the flat indices of a vector access; lanes masked out are set to -1."""
        codes = [self.expr(i) for i in node.indices]
        mask = self._access_mask(node)
        fail = self._fail(buffer, node, codes)

        def indices(env: list, view: View) -> np.ndarray:
            inside: Any = True
            flat: Any = view.offset
            for code, extent, stride in zip(codes, view.shape, view.strides):
                i = np.asarray(code(env), np.int64)
                inside = inside & (i >= 0) & (i < extent)
                flat = flat + i * stride
            flat = np.atleast_1d(flat)
            inside = inside & (flat >= 0) & (flat * view.lanes < len(view.array))
            if mask is not None:
                wanted = np.broadcast_to(mask(env), flat.shape)
                if not np.all(inside | ~wanted):
                    fail(env)
                return np.where(wanted, flat, -1)
            if not np.all(inside):
                fail(env)
            return flat

        return indices

    def _access_mask(self, node: BufferLoad | S.BufferStore) -> Code | None:
        """The active lanes of a vector access: those of its predicate, or of the choice around."""
        if node.predicate is not None:
            return self.expr(node.predicate)
        lanes = dt.lanes_of(node.indices[-1].dtype) if node.indices else 1
        return self.active_lanes(lanes)

    def _vector_load(self, e: BufferLoad) -> Code:
        indices, view = self._flat_indices(e.buffer, e), self.view(e.buffer)
        masked, kind = self._access_mask(e) is not None, vector_dtype(e.dtype)
        watch = self._watch(e.buffer, e, False) if self.options.watched else None
        ramp = e.indices[-1] if len(e.indices) == 1 and not masked and watch is None else None
        if (type(ramp) is Ramp and as_int(ramp.stride) == 1 and dt.lanes_of(e.buffer.dtype) == 1
                and dt.lanes_of(ramp.base.dtype) == 1 and kind == dt.numpy_dtype(e.buffer.dtype)):
            return self._contiguous_load(e, ramp, view)

        def load(env: list) -> np.ndarray:
            v = view(env)
            flat = indices(env, v)
            if watch is not None:
                for i in flat[flat >= 0].tolist():
                    watch(env, v, i)
            values = v.vector_load(flat)
            return np.where(flat < 0, 0, values).astype(kind) if masked else values

        return load

    def _contiguous_load(self, e: BufferLoad, ramp: Ramp, view: Callable) -> Code:
        base, lanes = self.expr(ramp.base), ramp.lanes
        fail = self._fail(e.buffer, e, [self.expr(ramp)])

        def load(env: list) -> np.ndarray:
            v, i = view(env), base(env)
            if i < 0 or i + lanes > v.shape[0]:
                fail(env)
            i = v.offset + i * v.strides[0]
            if v.strides[0] != 1:
                return v.vector_load(i + np.arange(lanes) * v.strides[0])
            return v.array[i:i + lanes].copy()

        return load

    def _vector_store(self, s: S.BufferStore) -> Code:
        indices, view = self._flat_indices(s.buffer, s), self.view(s.buffer)
        watch = self._watch(s.buffer, s, True) if self.options.watched else None
        masked = s.predicate is not None
        if s.predicate is not None:  # the lanes that are not stored are not computed
            lanes = dt.lanes_of(s.predicate.dtype)
            slot, predicate = self.new_slot(), self.expr(s.predicate)
            value = self.masked(s.value, slot, lanes)
        else:
            value = self.expr(s.value)

        def store(env: list) -> None:
            v = view(env)
            if masked:
                env[slot] = predicate(env)
            x, flat = value(env), indices(env, v)
            if masked:
                x, flat = np.broadcast_to(x, flat.shape)[flat >= 0], flat[flat >= 0]
            if watch is not None:
                for i in flat.tolist():
                    watch(env, v, i)
            v.vector_store(flat, x)

        return store

    # watched accesses

    def _watched_load(self, e: BufferLoad, codes: list[Code]) -> Code:
        place, view = self._place(e.buffer, e, codes), self.view(e.buffer)
        watch = self._watch(e.buffer, e, False)

        def load(env: list) -> Any:
            v = view(env)
            flat = place(env, v)
            watch(env, v, flat)
            return v.mem[flat]

        return load

    def _watched_store(self, s: S.BufferStore, codes: list[Code], value: Code) -> Code:
        place, view = self._place(s.buffer, s, codes), self.view(s.buffer)
        watch = self._watch(s.buffer, s, True)

        def store(env: list) -> None:
            x, v = value(env), view(env)
            flat = place(env, v)
            watch(env, v, flat)
            v.mem[flat] = x

        return store

    def _watch(self, buffer: Buffer, node: Node, write: bool) -> Callable:
        """Code that records and checks the access of one flat element."""
        record, loops = self.options.record, tuple(self.loops)
        loop_slots = [self.slots[v] for v in loops]
        site = record.add_site(node, loops) if isinstance(record, AccessLog) else 0
        regions = [b for b in self.blocks if not any(
            buffer in inner.own for inner in self.blocks[self.blocks.index(b):])]
        regions = regions if self.options.check_regions else []

        def watch(env: list, view: View, flat: int) -> None:
            for block in regions:
                self._check_region(env, block, buffer, view, flat, node, write)
            if view.shadow is not None:
                size = view.array.itemsize * view.lanes
                at = slice(flat * size, (flat + 1) * size)
                if write:
                    view.shadow[at] = True
                elif not view.shadow[at].all():
                    raise InterpError(f"{self.name}: read of element {flat} of {buffer.name}, "
                                      f"which was never written{self.where(env)}, in: "
                                      f"{_line(node)}")
            if record is not None:
                record(Access(buffer, flat, write, tuple(env[s] for s in loop_slots), site))

        return watch

    def _check_region(self, env: list, block: ActiveBlock, buffer: Buffer, view: View, flat: int,
                      node: Node, write: bool) -> None:
        boxes = env[block.slot].get((buffer, write), ())
        rest, point = flat - view.offset, []
        for stride in view.strides:
            point.append(rest // stride if stride else 0)
            rest -= point[-1] * stride
        for box in boxes:
            if all(low <= p < low + extent for p, (low, extent) in zip(point, box)):
                return
        verb, field = ("writes", "writes") if write else ("reads", "reads")
        text = ", ".join(map(str, point))
        raise InterpError(
            f"{self.name}: block {block.name!r} {verb} {buffer.name}[{text}], which its "
            f"T.{field}(...) does not declare{self.where(env)}, in: {_line(node)}")
