"""A lowered kernel, all threads of some blocks in step: statement by statement, for all at once.

Where threads take different ways, each way is gone with the threads that take it, as a warp does
(a `Mask`). Every load and store of global and shared memory is told to a `Watcher`, which counts or
looks for races. Memory of a thread is registers, and no access.

A compiler keeps in a register what a thread has loaded already. So a load is told once as long as
the thread stores nothing to that memory, meets no barrier, and begins no new round of a loop. A
round is one iteration of a loop that is not unrolled (`unrolled.py`).

Numbers are computed only where an index or a condition needs them, or, with `values`, all.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...backend.device.watch import limit_s
from ...backend.interp_memory import OutOfBounds
from ...ir import dtype as dt
from ...lower.split_host_device import axes_of
from ...tir import expr as E
from ...tir import stmt as S
from ...tir.function import PrimFunc
from ...tir.functor import pre_order
from ...tir.op import as_int
from ..measure import Unmeasurable
from .costs import cost_of
from .expressions import Code, Kind, LaneExpressions
from .needed import needed_numbers
from .repeats import Repeats, repeats_of
from .unrolled import UNROLLED, UNROLLED_OWN, copies_of, iterations, picking
from .watching import Mask, Memory, Site, Watcher

class Lockstep(LaneExpressions):
    """Some blocks of a launch.

    Parameters
    ----------
    extents : mapping
        Threads of each axis, by tag.
    given : mapping
        Of each parameter its Memory or number.
    blocks : sequence of int
        The numbers of the blocks that are run, x varying fastest.
    """

    def __init__(self, kernel: PrimFunc, name: str, extents: Mapping[str, int],
                 given: Mapping[E.Var, Any], blocks: Sequence[int], watcher: Watcher,
                 warp: int = 32, values: bool = False) -> None:
        self.name, self.watcher, self.warp, self.values = name, watcher, warp, values
        self.extents = extents
        self.env: dict[E.Var, Any] = {}
        self.kinds: dict[E.Var, Kind] = {}
        self.memory: dict[E.Var, Memory] = {}
        self.sites: list[Site] = []
        #: what is run, with what it costs; and how many warps and threads have run it
        self.steps: list[tuple[Any, Mapping[str, int]]] = []
        self.warps_run: list[int] = []
        self.threads_run: list[int] = []
        self.shared: dict[E.Var, int] = {}  # bytes
        self.own_words = 0  # of registers
        self.blocks = np.asarray(blocks, np.int64)
        self.block_threads = int(np.prod([n for t, n in extents.items()
                                          if t.startswith("threadIdx")], dtype=np.int64))
        self.lanes_each = -(-self.block_threads // warp) * warp
        self.threads = self.lanes_each * len(self.blocks)
        self.lane = np.tile(np.arange(self.lanes_each), len(self.blocks))
        self.block_of = np.repeat(np.arange(len(self.blocks)), self.lanes_each)
        live = None if self.lanes_each == self.block_threads else self.lane < self.block_threads
        self.mask = self.live = Mask(live, self.threads, warp)
        self._masks: dict[tuple[int, int, bool], tuple[Any, Mask, Mask]] = {}
        self._fixed: dict[Any, Code] = {}
        self._held: dict[E.Var, set] = {}
        #: the loops around whose iterations do alike; how many iterations of each are not run
        self._alike: list[tuple[E.Var, Mapping[int, int]]] = []
        self._left: dict[E.Var, int] = {}
        #: counts the stretches of statements within which loads are kept, and need not wait
        self.region = 0
        self.statement: Any = None
        axes, body = axes_of(kernel)
        self._axes(axes)
        for var, value in given.items():
            self.kinds[var] = Kind.CONSTANT
            if isinstance(value, Memory):
                self.memory[var] = value
            else:
                self.env[var] = value
        self.needed = needed_numbers(kernel.body, values)
        self.params = frozenset(kernel.params)
        self.picking = picking(kernel.body)
        self.body = self._compile(body)

    def run(self) -> None:
        """Run the blocks."""
        if self.threads:
            self.body()

    def _axes(self, axes: Sequence[S.AttrStmt]) -> None:
        rest, thread = self.blocks, self.lane
        wide = np.minimum(thread, max(self.block_threads - 1, 0))  # lanes that fill up a warp
        for word, number, many in (("blockIdx", rest, self.block_of), ("threadIdx", wide, None)):
            for letter in "xyz":
                extent = self.extents.get(f"{word}.{letter}", 1)
                own = number % max(extent, 1)
                number = number // max(extent, 1)
                for s in axes:
                    if s.node.thread_tag == f"{word}.{letter}":
                        value = own if many is None else own[many]
                        self.env[s.node.var] = value.astype(np.int64)
                        self.kinds[s.node.var] = Kind.FIXED

    def _forget(self) -> None:
        """What was loaded is in no register any more."""
        self._held.clear()
        self.region += 1

    # -- masks ------------------------------------------------------------------------------------

    def narrowed(self, test: np.ndarray, invert: bool = False, stays: bool = False) -> Mask:
        """The threads of the mask for which a condition holds, or with `invert` does not."""
        key = (id(test), self.mask.number, invert)
        found = self._masks.get(key)
        if found is not None and found[0] is test:
            return found[2]
        lanes = ~test if invert else test
        if self.mask.lanes is not None:
            lanes = lanes & self.mask.lanes
        mask = Mask(lanes, self.threads, self.warp)
        if stays:
            self._masks[key] = test, self.mask, mask
        return mask

    @contextlib.contextmanager
    def under(self, test: Any, invert: bool = False, stays: bool = False) -> Iterator[bool]:
        """With the threads for which a condition holds; gives whether there are any."""
        outer = self.mask
        self.mask = self.narrowed(test, invert, stays)
        try:
            yield self.mask.threads > 0
        finally:
            self.mask = outer

    # -- statements -------------------------------------------------------------------------------

    def _step(self, s: Any, cost: Mapping[str, int]) -> Callable[[], None]:
        number = len(self.steps)
        self.steps.append((s, cost))
        self.warps_run.append(0)
        self.threads_run.append(0)

        def count() -> None:
            mask = self.mask
            self.warps_run[number] += mask.warps
            self.threads_run[number] += mask.threads

        return count

    def _compile(self, s: Any) -> Callable[[], None]:
        method = _STATEMENTS.get(type(s))
        if method is None:
            raise Unmeasurable(f"{self.name}: {type(s).__name__} cannot be followed for a GPU")
        return method(self, s)

    def _seq(self, s: S.SeqStmt) -> Callable[[], None]:
        parts = [self._compile(item) for item in s.seq]

        def run() -> None:
            for part in parts:
                part()

        return run

    def _inner(self, s: Any) -> Callable[[], None]:
        return self._compile(s.body)

    def _for(self, s: S.For) -> Callable[[], None]:
        low, kind_low = self.code(s.min)
        extent, kind = self.code(s.extent)
        env, var = self.env, s.loop_var
        self.kinds[var] = Kind.UNIFORM if kind_low <= Kind.UNIFORM else Kind.VARYING
        unrolled = s.kind is S.ForKind.UNROLLED or iterations(s) <= (
            UNROLLED_OWN if var in self.picking else UNROLLED)
        copies = 0 if unrolled else copies_of(s)
        first_step, first_site = len(self.steps), len(self.sites)
        count = self._step(s, {} if unrolled else {"branch": 1, "integer": 2})
        repeats = None if unrolled or self.values or not self.watcher.multiplies else repeats_of(
            s, self.needed, self.params)
        if repeats is not None:
            self._alike.append((var, repeats.moved))
        body = self._compile(s.body)
        if repeats is not None:
            self._alike.pop()
        steps = slice(first_step, len(self.steps))
        sites = self.sites[first_site:]

        def begin(step: int) -> None:
            if copies and step % copies == 0:
                self._forget()
                count()

        def run_alike(start: Any, many: int, same: Repeats) -> int:
            period = math.lcm(same.period, copies)
            times, before = many // period, self.watcher.mark()
            if times < 2:
                return 0
            counted = self.warps_run[steps], self.threads_run[steps]
            for step in range(period):
                begin(step)
                env[var], self._left[var] = start + step, times * period - 1 - step
                body()
            self._left[var] = 0
            self.watcher.repeat(before, times, {
                site.number: same.moved[id(site.node)] * period for site in sites})
            for row, old in zip((self.warps_run, self.threads_run), counted):
                row[steps] = [a + times * (b - a) for a, b in zip(old, row[steps])]
            return times * period

        def run() -> None:
            start, many = low(), extent()
            uniform = not (isinstance(many, np.ndarray) and many.ndim)
            outer, most = self.mask, int(many) if uniform else self._most(many)
            done = run_alike(start, most, repeats) if repeats is not None and uniform else 0
            for step in range(done, most):
                if not uniform:
                    self.mask = outer
                    self.watcher.branch(self, s, step < many)
                    self.mask = self.narrowed(step < many)
                begin(step)
                env[var] = start + step
                body()
            self.mask = outer
            if not unrolled:
                self._forget()

        return run

    def _most(self, many: np.ndarray) -> int:
        active = many if self.mask.lanes is None else many[self.mask.lanes]
        return int(active.max(initial=0))

    def _while(self, s: S.While) -> Callable[[], None]:
        condition, _ = self.code(s.condition)
        count, body = self._step(s, {"branch": 1, **cost_of(s.condition)}), self._compile(s.body)

        def run() -> None:
            outer = self.mask
            until = time.monotonic() + limit_s()
            while True:
                if time.monotonic() > until:
                    raise Unmeasurable(
                        f"{self.name}: a loop has not ended after {limit_s():g} s: it runs without "
                        "end, or for long (MLC_LAB_DEVICE_LIMIT in the environment is the number "
                        "of seconds that are waited, 0 for no end)")
                self._forget()
                count()
                test = np.broadcast_to(np.asarray(condition(), bool), self.threads)
                self.watcher.branch(self, s, test)
                self.mask = self.narrowed(test)
                if not self.mask.threads:
                    break
                body()
            self.mask = outer

        return run

    def _if(self, s: S.IfThenElse) -> Callable[[], None]:
        condition, kind = self.code(s.condition)
        stays = kind is Kind.FIXED
        count = self._step(s, {"branch": 1, **cost_of(s.condition)})
        then = self._compile(s.then_case)
        other = None if s.else_case is None else self._compile(s.else_case)

        def run() -> None:
            count()
            test = condition()
            if not (isinstance(test, np.ndarray) and test.ndim):
                if test:
                    then()
                elif other is not None:
                    other()
                return
            self.watcher.branch(self, s, test)
            with self.under(test, False, stays) as some:
                if some:
                    then()
            if other is not None:
                with self.under(test, True, stays) as some:
                    if some:
                        other()

        return run

    def _let(self, s: S.LetStmt) -> Callable[[], None]:
        outer, self.statement = self.statement, s
        count = self._step(s, cost_of(s.value))
        if s.var in self.needed:
            value, kind = self.code(s.value)
        else:
            value, kind = self._touch(s.value), None
        self.statement = outer
        if kind is not None:
            self.kinds[s.var] = kind
        body = self._compile(s.body)
        env = self.env

        def run() -> None:
            count()
            env[s.var] = value()
            body()

        return run

    def _allocate(self, s: S.Allocate) -> Callable[[], None]:
        size = 1
        for extent in s.extents:
            number = as_int(extent)
            if number is None:
                raise Unmeasurable(f"{self.name}: how large {s.buffer_var.name} is cannot be told")
            size *= number
        scope = s.buffer_var.storage_scope
        own = "shared" if scope.startswith("shared") else "local"
        self.memory[s.buffer_var] = self._new(s.buffer_var, s.dtype, size, own)
        nbytes = size * dt.bytes_of(s.dtype)
        if own == "shared":
            self.shared[s.buffer_var] = nbytes
        else:
            self.own_words += -(-nbytes // 4)
        return self._compile(s.body)

    def _new(self, var: E.Var, dtype: str, size: int, scope: str) -> Memory:
        data = None
        if var in self.needed:
            copies = len(self.blocks) if scope == "shared" else self.threads
            data = np.zeros(copies * size, dt.numpy_dtype(dtype))
        return Memory(var.name, dtype, size, scope, 0, data)

    def _constant(self, s: S.AllocateConst) -> Callable[[], None]:
        data = s.data.numpy() if hasattr(s.data, "numpy") else np.asarray(s.data)
        self.memory[s.buffer_var] = Memory(s.buffer_var.name, s.dtype, data.size, "constant", 0,
                                           data.reshape(-1))
        return self._compile(s.body)

    def _evaluate(self, s: S.Evaluate) -> Callable[[], None]:
        if type(s.value) is not E.Call:
            return lambda: None
        name = getattr(s.value.op, "name", "")
        if name == "tir.tvm_storage_sync":
            if getattr(s.value.args[0], "value", "") == "warp":
                return lambda: None
            count = self._step(s, {"barrier": 1})

            def wait() -> None:
                count()
                self._forget()
                self.watcher.barrier(self, s)

            return wait
        raise Unmeasurable(f"{self.name}: {name or s.value.op} cannot be followed for a GPU")

    def _store(self, s: S.BufferStore) -> Callable[[], None]:
        outer, self.statement = self.statement, s
        memory = self.memory.get(s.buffer.data)
        if memory is None:
            raise Unmeasurable(f"{self.name}: where {s.buffer.name} lies is not known")
        (index,) = s.indices
        lanes = dt.lanes_of(index.dtype)
        if s.predicate is not None or lanes > 1 and not (
                type(s.value) is E.BufferLoad and type(s.value.indices[0]) is E.Ramp):
            raise Unmeasurable(f"{self.name}: this store of a vector cannot be followed: {s!r}")
        count = self._step(s, cost_of(s.value, index, memory.scope == "local"))
        needed = s.buffer.data in self.needed
        if lanes > 1:
            value = self._load_lanes(s.value, lanes, needed)  # type: ignore[arg-type]
        else:
            value = self.code(s.value)[0] if needed else self._touch(s.value)
        where = self._access(s, lanes)
        write = self._writer(memory, lanes) if needed else None
        self.statement = outer

        def run() -> None:
            count()
            numbers = value()
            own, shift, site = where()
            if write is not None:
                write(own, shift, numbers)
                if site is not None and self.values:
                    self.watcher.store(self, site, numbers)

        return run

    # -- memory -----------------------------------------------------------------------------------

    def _access(self, node: Any, lanes: int = 1) -> Callable[[], tuple[Any, int, Site | None]]:
        """The closure that tells an access; it gives its elements as an array and a number."""
        memory = self.memory.get(node.buffer.data)
        if memory is None:
            raise Unmeasurable(f"{self.name}: where {node.buffer.name} lies is not known")
        (index,) = node.indices
        if type(index) is E.Ramp:
            if as_int(index.stride) != 1:
                raise Unmeasurable(f"{self.name}: lanes that do not lie side by side: {node!r}")
            index = index.base
        own, number, stays = self.index(index)
        write, data = type(node) is S.BufferStore, node.buffer.data
        nothing = memory.scope in ("local", "constant")
        if nothing and data not in self.needed:
            return lambda: (0, 0, None)
        site = None
        if not nothing:
            site = Site(len(self.sites), memory.name, memory.scope, write,
                        lanes * dt.bytes_of(memory.dtype), node, self.statement)
            self.sites.append(site)
        key = self._key(index) if stays else None
        if key is not None and own is not None:
            own = self._fixed.setdefault(key, own)
        bounds: dict[int, tuple[int, int]] = {}
        moves = [(var, moved[id(node)]) for var, moved in self._alike if moved.get(id(node))]

        def tell() -> tuple[Any, int, Site | None]:
            array = 0 if own is None else own()
            shift = number()
            mask = self.mask
            if not mask.threads:
                return array, shift, site
            low_high = bounds.get(mask.number) if stays else None
            if low_high is None:
                low_high = _reach(array, mask)
                if stays:
                    bounds[mask.number] = low_high
            far = [by * self._left.get(var, 0) for var, by in moves]
            for end in (shift + sum(n for n in far if n < 0), shift + sum(n for n in far if n > 0)):
                if low_high[0] + end < 0 or low_high[1] + end + lanes > memory.size:
                    self._outside(node, memory, array, end, lanes)
            if site is None:
                return array, shift, site
            if write:
                self._held.pop(data, None)
            elif key is not None:
                held = self._held.setdefault(data, set())
                place = key, shift, lanes, mask.number
                if place in held:
                    return array, shift, site
                held.add(place)
            self.watcher.access(self, site, array, shift, key)
            return array, shift, site

        return tell

    @staticmethod
    def _key(index: E.PrimExpr) -> Any:
        """What is the same for indices that depend alike on the thread."""
        return repr(index), tuple(id(v) for v in pre_order(index) if isinstance(v, E.Var))

    def _outside(self, node: Any, memory: Memory, own: Any, shift: int, lanes: int) -> None:
        at = np.broadcast_to(np.asarray(own) + shift, self.threads)
        bad = (at < 0) | (at + lanes > memory.size)
        if self.mask.lanes is not None:
            bad = bad & self.mask.lanes
        lane = int(np.argmax(bad))
        verb = "stores to" if type(node) is S.BufferStore else "loads"
        raise OutOfBounds(f"{self.name}: {self.where(lane)} {verb} element {int(at[lane])} of "
                          f"{memory.name}, which has {memory.size}: {node!r}")

    def where(self, lane: int) -> str:
        """A thread in words."""
        thread, block = int(self.lane[lane]), int(self.blocks[self.block_of[lane]])
        parts = []
        for word, number in (("blockIdx", block), ("threadIdx", thread)):
            at = []
            for letter in "xyz":
                extent = self.extents.get(f"{word}.{letter}")
                if extent is not None:
                    at.append(f"{word}.{letter} = {number % extent}")
                    number //= extent
            parts += at
        return f"the thread {', '.join(parts)}"

    def _flat(self, memory: Memory) -> Code:
        """What is added to an index to find a thread's element in `Memory.data`."""
        if memory.scope == "shared":
            start = self.block_of * memory.size
        elif memory.scope == "local":
            start = np.arange(self.threads) * memory.size
        else:
            return lambda: 0
        return lambda: start

    def _places(self, own: Any, shift: int) -> Any:
        at = np.broadcast_to(np.asarray(own + shift), self.threads)
        if self.mask.lanes is not None:
            at = np.where(self.mask.lanes, at, 0)
        return at

    def load(self, e: E.BufferLoad) -> Code:
        """A load by value."""
        memory = self.memory.get(e.buffer.data)
        where = self._access(e)
        if e.predicate is not None or memory is None:
            raise Unmeasurable(f"{self.name}: a masked load cannot be followed: {e!r}")
        start = self._flat(memory)

        def get() -> Any:
            own, shift, _ = where()
            assert memory.data is not None
            return memory.data[self._places(own, shift) + start()]

        return get

    def _load_lanes(self, e: E.BufferLoad, lanes: int, needed: bool) -> Code:
        """A vector that is copied: an array with a row a thread, or nothing."""
        memory, where = self.memory[e.buffer.data], self._access(e, lanes)
        start, steps = self._flat(memory), np.arange(lanes)

        def get() -> Any:
            own, shift, _ = where()
            if not needed or memory.data is None:
                return None
            at = self._places(own, shift) + start()
            return memory.data[at[:, None] + steps]

        return get

    def _writer(self, memory: Memory, lanes: int) -> Callable[[Any, int, Any], None]:
        start, steps = self._flat(memory), np.arange(lanes)

        def put(own: Any, shift: int, numbers: Any) -> None:
            assert memory.data is not None
            at = self._places(own, shift) + start()
            shape = (self.threads, lanes) if lanes > 1 else (self.threads,)
            if lanes > 1:
                at = at[:, None] + steps
            numbers = np.broadcast_to(numbers, shape)
            active = self.mask.lanes
            if active is not None:
                at, numbers = at[active], numbers[active]
            memory.data[at] = numbers

        return put

    # -- expressions whose value nobody needs ----------------------------------------------------

    def _touch(self, e: E.PrimExpr) -> Code:
        """The closure that tells what an expression accesses."""
        parts: list[Callable[[], Any]] = []
        self._touches(e, parts)
        if len(parts) == 1:
            return parts[0]

        def run() -> None:
            for part in parts:
                part()

        return run

    def _touches(self, e: E.PrimExpr, out: list[Callable[[], Any]]) -> None:
        if type(e) is E.BufferLoad:
            if e.buffer.data not in self.memory or self.memory[e.buffer.data].scope not in (
                    "local", "constant"):
                out.append(self._access(e))
        elif type(e) is E.Call and getattr(e.op, "name", "") == "tir.if_then_else":
            condition, kind = self.code(e.args[0])
            then, other = self._touch(e.args[1]), self._touch(e.args[2])
            stays = kind is Kind.FIXED

            def choose() -> None:
                test = condition()
                if not (isinstance(test, np.ndarray) and test.ndim):
                    (then if test else other)()
                    return
                for side, invert in ((then, False), (other, True)):
                    with self.under(test, invert, stays) as some:
                        if some:
                            side()

            out.append(choose)
        else:
            for part in e.children():
                if isinstance(part, E.PrimExpr):
                    self._touches(part, out)


def _reach(own: Any, mask: Mask) -> tuple[int, int]:
    """The lowest and the highest number of the threads that take part."""
    if not isinstance(own, np.ndarray) or not own.ndim:
        return int(own), int(own)
    active = own if mask.lanes is None else own[mask.lanes]
    return int(active.min()), int(active.max())


_STATEMENTS: dict[type, Callable[[Lockstep, Any], Callable[[], None]]] = {
    S.SeqStmt: Lockstep._seq, S.For: Lockstep._for, S.While: Lockstep._while,
    S.IfThenElse: Lockstep._if, S.LetStmt: Lockstep._let, S.Allocate: Lockstep._allocate,
    S.AllocateConst: Lockstep._constant, S.Evaluate: Lockstep._evaluate,
    S.BufferStore: Lockstep._store, S.AttrStmt: Lockstep._inner, S.DeclBuffer: Lockstep._inner,
    S.AssertStmt: Lockstep._inner,
}

__all__ = ["Lockstep"]
