"""The interpreter's GPU kernels: blocks one after the other, threads in step with barriers.

A kernel is the outermost `attr thread_extent` statement with everything in it. Each thread is a
Python generator over its own copy of `env`; it yields at every `tvm_storage_sync` in memory shared
by the block, and the scheduler resumes all threads of the block up to their next barrier. At a
shuffle (`tir/shuffles.py`) a thread yields as well, when it has told its value: threads that wait
there go on before those at a barrier. Only statements that contain a barrier or a shuffle become
generators; the rest are plain closures.

Memory of scope `shared` exists once a block, all other memory once a thread.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Callable, Iterator

import numpy as np

from ..tir import stmt as S
from ..tir.expr import BufferLoad, Call, CommReducer, IterVar, Op, Var
from ..tir.functor import pre_order
from ..tir.shuffles import NAMES, shuffles_of, source_of
from .interp_access import AccessCompiler
from .interp_expr import Code
from .interp_memory import InterpError, allocate, fit

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr

_BARRIERS = {"tir.tvm_storage_sync", "tir.tvm_thread_allreduce"}
#: what a thread yields that waits for its warp only
_WARP = "warp"


class Break(Exception):
    """break_loop"""


class Continue(Exception):
    """continue_loop"""


def _is_barrier(e: Any) -> bool:
    return type(e) is Call and isinstance(e.op, Op) and e.op.name in _BARRIERS


class Kernel:
    """A kernel being compiled: its thread axes by tag, with the code of their extents."""

    def __init__(self) -> None:
        self.slots: dict[str, int] = {}
        self.extents: dict[str, Callable] = {}
        self.shared = -1  # slot of the dict of shared memories
        self.reducers: list[CommReducer] = []
        self.barriers: set[int] = set()
        self.threads: list[str] = []  # tags of the axes of a block's threads, x last
        self.shuffled: dict[int, int] = {}  # the slot of what each shuffle has given
        self.shuffles: list[Call] = []  # all of them: their ids are keys


class KernelCompiler(AccessCompiler):
    """The statements of a kernel. `InterpCompiler` adds the others."""

    stmt: Callable[[S.Stmt], Code]
    memory_maker: Callable[[Var, str, Callable], Callable]
    #: the kernel being compiled, inside of one
    inside: Kernel | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel being compiled. Raises InterpError outside of one."""
        if self.inside is None:
            raise InterpError(f"{self.name}: threads are used outside of a kernel")
        return self.inside

    def thread_extent(self, s: S.AttrStmt) -> Callable:
        """The outermost one launches the kernel; inner ones name an axis of it."""
        if self.inside is not None:
            return self.stmt(s.body) if not self._waits(s) else _drive(self.thread_body(s))
        kernel = self.inside = Kernel()
        for item in pre_order(s):
            if _is_barrier(getattr(item, "value", None)) or (
                    isinstance(item, S.Stmt) and shuffles_of(item)):
                kernel.barriers.add(id(item))
        self._axes(s)
        kernel.shared = self.new_slot()
        kernel.threads = sorted((t for t in kernel.slots if not t.startswith("blockIdx")),
                                reverse=True)  # threadIdx.x varies fastest, as on the machine
        body = self.thread_body(s.body)
        self.inside = None
        blocks = [t for t in kernel.slots if t.startswith("blockIdx")]

        def launch(env: list) -> None:
            extents = {tag: code(env) for tag, code in kernel.extents.items()}
            for block in itertools.product(*(range(extents[t]) for t in blocks)):
                for tag, value in zip(blocks, block):
                    env[kernel.slots[tag]] = value
                env[kernel.shared] = {}
                self._run_block(env, kernel, extents, body)

        return launch

    def _run_block(self, env: list, kernel: Kernel, extents: dict, body: Callable) -> None:
        running = []
        for point in itertools.product(*(range(extents[t]) for t in kernel.threads)):
            own = list(env)
            for tag, value in zip(kernel.threads, point):
                own[kernel.slots[tag]] = value
            running.append(body(own))
        at_barrier: dict[Any, None] = {}
        going = running
        while running:
            in_warp = []
            for thread in going:
                try:
                    if next(thread) == _WARP:
                        in_warp.append(thread)
                    else:
                        at_barrier[thread] = None
                except StopIteration:
                    pass
            going = in_warp
            if in_warp:
                continue
            waiting = [t for t in running if t in at_barrier]
            if waiting and len(waiting) != len(running):
                raise InterpError(f"{self.name}: {len(waiting)} of {len(running)} threads of a "
                                  "block reached a barrier and the others ended: on a GPU they "
                                  "would wait for ever; move tvm_storage_sync out of the branch")
            running = going = waiting
            at_barrier = {}

    def _axes(self, root: S.AttrStmt) -> None:
        """All thread axes of the kernel. One tag is one axis, however often it is named."""
        kernel = self.kernel
        for item in pre_order(root):
            if type(item) is not S.AttrStmt or item.attr_key != "thread_extent":
                continue
            tag = item.node.thread_tag
            if tag not in kernel.slots:
                kernel.slots[tag] = self.define(item.node.var)
                kernel.extents[tag] = self.expr(item.value)
            elif item.node.var not in self.slots:
                self.slots[item.node.var] = kernel.slots[tag]

    def shared_memory(self, var: Var, dtype: str, extents: Callable) -> Callable:
        """Memory made by the first thread that gets there, found by the others."""
        slot = self.kernel.shared

        def make(env: list) -> np.ndarray:
            table = env[slot]
            if var not in table:
                count = 1
                for extent in extents(env):
                    count *= extent
                table[var] = allocate(count, dtype)
            return table[var]

        return make

    # ------------------------------------------------------- statements that may wait

    def _waits(self, s: S.Stmt) -> bool:
        return any(id(item) in self.kernel.barriers for item in pre_order(s))

    def thread_body(self, s: S.Stmt) -> Callable[[list], Iterator]:
        """`s` as a generator function that yields at barriers."""
        if not self._waits(s):
            return _no_wait(self.stmt(s))
        method = _WAITING.get(type(s))
        if method is None:
            raise InterpError(f"a barrier inside of {type(s).__name__} is not supported by the "
                              "interpreter: lower the program first (mlc_lab.lower)")
        return method(self, s)

    def _seq_waiting(self, s: S.SeqStmt) -> Callable:
        steps = [self.thread_body(x) for x in s.seq]

        def run(env: list) -> Iterator:
            for step in steps:
                yield from step(env)

        return run

    def _for_waiting(self, s: S.For) -> Callable:
        start, extent, slot = self.expr(s.min), self.expr(s.extent), self.define(s.loop_var)
        self.loops.append(s.loop_var)
        body = self.thread_body(s.body)
        self.loops.pop()

        def run(env: list) -> Iterator:
            begin = start(env)
            for i in range(begin, begin + extent(env)):
                env[slot] = i
                try:
                    yield from body(env)
                except Continue:
                    continue
                except Break:
                    break

        return run

    def _while_waiting(self, s: S.While) -> Callable:
        condition, body = self.expr(s.condition), self.thread_body(s.body)

        def run(env: list) -> Iterator:
            while condition(env):
                try:
                    yield from body(env)
                except Continue:
                    continue
                except Break:
                    break

        return run

    def _if_waiting(self, s: S.IfThenElse) -> Callable:
        condition, then = self.expr(s.condition), self.thread_body(s.then_case)
        otherwise = self.thread_body(s.else_case) if s.else_case is not None else None

        def run(env: list) -> Iterator:
            if condition(env):
                yield from then(env)
            elif otherwise is not None:
                yield from otherwise(env)

        return run

    def _let_waiting(self, s: S.LetStmt) -> Callable:
        return self._shuffling(s, lambda: self._let_body(s)) if shuffles_of(s) else (
            self._let_body(s))

    def _let_body(self, s: S.LetStmt) -> Callable:
        value, slot = self.expr(s.value), self.define(s.var)
        body = self.thread_body(s.body)

        def run(env: list) -> Iterator:
            env[slot] = value(env)
            yield from body(env)

        return run

    def _attr_waiting(self, s: S.AttrStmt) -> Callable:
        if s.attr_key == "reduce_scope" and isinstance(s.node, CommReducer):
            self.kernel.reducers.append(s.node)
            body = self.thread_body(s.body)
            self.kernel.reducers.pop()
            return body
        if s.attr_key == "virtual_thread" and isinstance(s.node, IterVar):
            return self._for_waiting(S.For(s.node.var, 0, s.value, S.ForKind.SERIAL, s.body))
        return self.thread_body(s.body)

    def _allocate_waiting(self, s: S.Allocate) -> Callable:
        extents, slot = self._numbers(s.extents), self.define(s.buffer_var)
        memory = self.memory_maker(s.buffer_var, s.dtype, extents)
        body = self.thread_body(s.body)

        def run(env: list) -> Iterator:
            env[slot] = memory(env)
            yield from body(env)

        return run

    def _decl_waiting(self, s: S.DeclBuffer) -> Callable:
        declare = self.declare(s.buffer)
        body = self.thread_body(s.body)

        def run(env: list) -> Iterator:
            declare(env)
            yield from body(env)

        return run

    def _shuffling(self, s: Any, then: Callable[[], Callable]) -> Callable:
        """A statement after the shuffles in its expressions: each thread tells its value, and when
        the others have told theirs takes one."""
        kernel = self.kernel
        steps = []
        for call in shuffles_of(s):
            _, value, by, width, _ = (self.expr(a) for a in call.args)
            kernel.shuffled[id(call)] = got = self.new_slot()
            kernel.shuffles.append(call)
            steps.append((call, value, by, width, got))
        rest, shared = then(), kernel.shared
        place = self._numbers_of_threads()

        def run(env: list) -> Iterator:
            for call, value, by, width, got in steps:
                told = env[shared].setdefault(id(call), {})
                number, count = place(env)
                told[number] = own = value(env)
                yield _WARP
                source = source_of(call, number, count, by(env), width(env), _choose)
                env[got] = told.get(source, own)
                yield _WARP
            yield from rest(env)

        return run

    def _numbers_of_threads(self) -> Callable[[list], tuple[int, int]]:
        """A thread's number in its block, and how many there are."""
        kernel = self.kernel
        axes = [(kernel.slots[t], kernel.extents[t]) for t in kernel.threads]

        def place(env: list) -> tuple[int, int]:
            number, count = 0, 1
            for slot, extent in axes:
                many = extent(env)
                number, count = number * many + env[slot], count * many
            return number, count

        return place

    def _store_waiting(self, s: S.BufferStore) -> Callable:
        return self._shuffling(s, lambda: _no_wait(self.stmt(s)))

    def _evaluate_waiting(self, s: S.Evaluate) -> Callable:
        if not _is_barrier(s.value):
            return self._shuffling(s, lambda: _no_wait(self.stmt(s)))
        call: Any = s.value
        if call.op.name == "tir.tvm_thread_allreduce":
            return self._allreduce(call)
        scope = getattr(call.args[0], "value", "") if call.args else ""

        def barrier(env: list) -> Iterator:
            if scope != "warp":
                yield

        return barrier

    def _allreduce(self, call: Call) -> Callable:
        """tvm_thread_allreduce(n, values.., condition, results.., threads..): over all threads
        that agree on the axes that are not reduced."""
        if not self.kernel.reducers:
            raise InterpError("tvm_thread_allreduce needs an attr reduce_scope around it")
        reducer = self.kernel.reducers[-1]
        count = int(call.args[0])
        values = [self.expr(a) for a in call.args[1:1 + count]]
        condition = self.expr(call.args[1 + count])
        results = [self._reference(a) for a in call.args[2 + count:2 + 2 * count]]
        reduced = {self.slots[v] for v in call.args[2 + 2 * count:] if isinstance(v, Var)}
        grouping = [s for t, s in self.kernel.slots.items()
                    if s not in reduced and not t.startswith("blockIdx")]
        combine = self._combiner(reducer)
        slot, key = self.kernel.shared, id(call)

        def run(env: list) -> Iterator:
            table = env[slot].setdefault(key, {})
            group = tuple(env[s] for s in grouping)
            if condition(env):
                own = [v(env) for v in values]
                found = table.get(group)
                table[group] = own if found is None else combine(env, found, own)
            yield
            for store, value in zip(results, table.get(group, ())):
                store(env, value)
            yield
            if env[slot].get(key) is table:  # else a faster thread has begun the next reduction
                del env[slot][key]

        return run

    def _combiner(self, reducer: CommReducer) -> Callable:
        lhs = [self.define(v) for v in reducer.lhs]
        rhs = [self.define(v) for v in reducer.rhs]
        codes = [self.expr(e) for e in reducer.result]
        kinds = [fit(e.dtype) for e in reducer.result]

        def combine(env: list, a: list, b: list) -> list:
            for slot, value in zip(lhs + rhs, [*a, *b]):
                env[slot] = value
            return [k(c(env)) for k, c in zip(kinds, codes)]

        return combine

    def _reference(self, target: PrimExpr) -> Callable:
        """Where a result goes: an element, or the first element of a pointer."""
        if isinstance(target, BufferLoad):
            view, codes = self.view(target.buffer), [self.expr(i) for i in target.indices]

            def store(env: list, value: Any) -> None:
                v = view(env)
                v.mem[v.offset + sum(c(env) * s for c, s in zip(codes, v.strides))] = value

            return store
        pointer = self.expr(target)

        def store_first(env: list, value: Any) -> None:
            pointer(env)[0] = value

        return store_first


def _no_wait(plain: Callable[[list], Any]) -> Callable[[list], Iterator]:
    """A statement without barriers as a generator function."""
    def run(env: list) -> Iterator:
        plain(env)
        return
        yield

    return run


def _choose(condition: bool, a: Any, b: Any) -> Any:
    return a if condition else b


def _drive(generator: Callable[[list], Iterator]) -> Callable:
    def run(env: list) -> None:
        for _ in generator(env):
            raise InterpError("a barrier outside of the statements a kernel is made of")

    return run


def _sync_outside(self: KernelCompiler, e: Call) -> Callable:
    """A barrier in a program whose threads are still loops: they run one after the other."""
    if self.inside is None:
        raise InterpError(
            "tvm_storage_sync in a program whose thread loops are not lowered to a kernel: as "
            "serial loops the threads cannot wait for each other. Lower it for a GPU target first")
    return lambda env: None


def _lane(self: KernelCompiler, e: Call) -> Callable:
    """What a shuffle has given, before the statement that it stands in."""
    got = self.inside.shuffled.get(id(e)) if self.inside is not None else None
    if got is None:
        raise InterpError(
            f"{e!r}: a shuffle stands in a kernel that is lowered, in the value of a store or of "
            "a name; lower the program for a GPU, and give the value a name before a condition "
            "or a loop that needs it")
    return lambda env: env[got]


GPU_CALLS = {"tvm_storage_sync": _sync_outside, **dict.fromkeys(NAMES, _lane)}

_WAITING: dict[type, Callable] = {
    S.SeqStmt: KernelCompiler._seq_waiting, S.For: KernelCompiler._for_waiting,
    S.While: KernelCompiler._while_waiting, S.IfThenElse: KernelCompiler._if_waiting,
    S.LetStmt: KernelCompiler._let_waiting, S.AttrStmt: KernelCompiler._attr_waiting,
    S.Allocate: KernelCompiler._allocate_waiting, S.DeclBuffer: KernelCompiler._decl_waiting,
    S.Evaluate: KernelCompiler._evaluate_waiting, S.BufferStore: KernelCompiler._store_waiting,
}
