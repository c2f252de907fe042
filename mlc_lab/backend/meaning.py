"""What TensorIR means: an interpreter of every tensor program that is made to be read.

A schedule step or a lowering pass is right when the program before and the program after leave the
same numbers here. In short:

- A **buffer** is an n-dimensional array in memory. Reading or writing outside of its shape is an
  error. Memory is bytes: two buffers of one memory may be of different types. New memory holds
  garbage.
- A **loop** runs its body for loop_var = min, min + 1, ..., min + extent - 1. `parallel`,
  `vectorized`, `unrolled` and `thread_binding` say how a machine may run the iterations; a schedule
  may use them only where that gives the same.
- A **block** runs once each time control reaches its BlockRealize, unless the predicate is false:
  its iterators get the values of the bindings (all computed before one is set). Where every
  reduction iterator is at the start of its domain, `init` runs first; then the body.
  `alloc_buffers` are new memory each time, `match_buffers` windows on regions of other buffers.
  `reads` and `writes` do nothing: they promise what the body touches.
- **Integers** wrap around at their width, **floats** are rounded after each operation
  (`tir/numbers.py` has the operations on numbers, docs/numbers.md says them in words).
- A **GPU kernel** (lowered: `attr thread_extent`) runs block by block; within a block every thread
  runs until the next `tvm_storage_sync`, then the next thread does.

How to read it: `value(e, env, lane)` is the number that an expression has. A vector is its lanes,
each computed by itself, and `lane` says which one is asked for: so what a lane does not need is not
computed. `run(s, env)` executes a statement; it is a generator, which yields where a thread waits
for the others. `env` maps variables to numbers (vectors to a function from lane to number, pointers
to the bytes from the place on) and buffers to a `View`.

`interp.py` computes the same some ten times as fast; `tests/fuzz` compares the two. A program of
more than usual depth (thousands of terms) needs that one: this one recurses.

Source: S. Feng et al., TensorIR (2023), for blocks; TVM's header `tir/stmt.h` for the rest.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Callable, Iterator, NamedTuple, Sequence

import numpy as np

from ..ir import dtype as dt
from ..ir.module import IRModule
from ..tir import expr as E
from ..tir import stmt as S
from ..tir.buffer import Buffer
from ..tir.function import PrimFunc
from ..tir.functor import pre_order
from ..tir.numbers import (
    BOOL_OPS, COMPARE, DIVISIONS, FLOAT_OPS, INT_OPS, bfloat16_bits, bfloat16_values, convert, fit,
)
from ..tir.shuffles import shuffles_of, source_of
from .interp_math import MATH, TESTS, c_function, fused, integer_function
from .interp_memory import (
    AssertionFailed, DivisionByZero, InterpError, OutOfBounds, allocate, bind_arguments, row_major,
)

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr

# ------------------------------------------------------------------------------- memory


class View(NamedTuple):
    """A buffer in use: `memory` is its bytes, strides and offset count elements."""

    memory: np.ndarray
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def place(self, indices: Sequence[int], what: Any) -> int:
        """Where an element is in memory, in elements. Raises OutOfBounds."""
        at = self.offset + sum(i * s for i, s in zip(indices, self.strides))
        inside = all(0 <= i < n for i, n in zip(indices, self.shape))
        if not inside or not 0 <= at < len(self.memory) // dt.bytes_of(self.dtype):
            raise OutOfBounds(f"{list(indices)} is outside of shape {self.shape}, in: {what!r}")
        return at


class Env(dict):
    """The values of variables and buffers, and what surrounds the program."""

    module: IRModule | None = None
    packed: Callable  # from the name of a registered function to the function
    kernel: dict | None = None  # in a GPU kernel: what the threads of one block share
    reducer: E.CommReducer | None = None
    number: int = 0  # of a thread in its block
    shuffled: dict | None = None  # what the shuffles of a statement have given its thread


def like(env: Env, values: dict) -> Env:
    """An environment with other variables in the same surroundings."""
    new = Env(values)
    vars(new).update(vars(env))
    return new


def read(memory: np.ndarray, at: int, dtype: str) -> Any:
    """The number that stands at element `at` of some bytes."""
    kind = dt.numpy_dtype(dtype)
    raw = memory[at * kind.itemsize:(at + 1) * kind.itemsize].copy().view(kind)
    if dt.parse(dtype).code == "bfloat" and kind.kind == "u":  # as bits
        return float(bfloat16_values(raw)[0])
    return float(raw[0]) if dt.is_float(dtype) else raw[0].item()


def write(memory: np.ndarray, at: int, dtype: str, number: Any) -> None:
    """Put a number at element `at` of some bytes."""
    kind = dt.numpy_dtype(dtype)
    bits = dt.parse(dtype).code == "bfloat" and kind.kind == "u"
    raw = bfloat16_bits([number]) if bits else np.array([number]).astype(kind)
    memory[at * kind.itemsize:(at + 1) * kind.itemsize] = raw.view(np.uint8)


def fresh(var: E.Var, dtype: str, extents: Sequence[int], env: Env) -> np.ndarray:
    """New memory, full of garbage. What the threads of a block share is made by the first."""
    def make() -> np.ndarray:
        return allocate(int(np.prod([1, *extents], dtype=object)), dtype).view(np.uint8)

    if env.kernel is not None and var.storage_scope.startswith("shared"):
        if var not in env.kernel:
            env.kernel[var] = make()
        return env.kernel[var]
    return make()


def declare(buffer: Buffer, env: Env) -> View:
    """The view of a buffer over the memory that its pointer has."""
    if buffer.data not in env:
        raise InterpError(f"the buffer {buffer.name} is used but defined by nothing")
    shape = tuple(value(n, env) for n in buffer.shape)
    strides = tuple(value(n, env) for n in buffer.strides) or row_major(shape)
    offset = value(buffer.elem_offset, env) if buffer.elem_offset is not None else 0
    return View(env[buffer.data], buffer.dtype, shape, strides, offset)


def view(buffer: Buffer, env: Env) -> View:
    """The view of a buffer in use; a second name of memory needs no declaration."""
    return env[buffer] if buffer in env else declare(buffer, env)


def as_array(where: View) -> np.ndarray:
    """What a function outside is given for a buffer: an array on the same memory."""
    array, width = where.memory.view(dt.numpy_dtype(where.dtype)), dt.lanes_of(where.dtype)
    strides = tuple(s * dt.bytes_of(where.dtype) for s in where.strides)
    shape = (*where.shape, width) if width > 1 else where.shape
    return np.lib.stride_tricks.as_strided(
        array[where.offset * width:], shape, (*strides, array.itemsize)[:len(shape)])


def own_memory(buffer: Buffer, env: Env) -> None:
    """Give a buffer memory of its own."""
    shape = tuple(value(n, env) for n in buffer.shape)
    strides = tuple(value(n, env) for n in buffer.strides)
    reach = [1 + sum((n - 1) * s for n, s in zip(shape, strides))] if strides else shape
    env[buffer.data] = fresh(buffer.data, buffer.dtype, reach, env)
    env[buffer] = declare(buffer, env)


# ------------------------------------------------------------------------------- expressions


def value(e: Any, env: Env, lane: int = 0) -> Any:
    """The number that lane `lane` of an expression has."""
    kind = dt.element_of(e.dtype) if isinstance(e, E.PrimExpr) else ""
    match e:
        case E.Var():
            if e not in env:
                raise InterpError(f"the variable {e.name} is used but bound by nothing")
            return env[e](lane) if dt.lanes_of(e.dtype) > 1 else env[e]
        case E.IntImm() | E.FloatImm():
            return fit(kind)(e.value)
        case E.StringImm():
            return e.value
        case E.And():
            return value(e.a, env, lane) and value(e.b, env, lane)
        case E.Or():
            return value(e.a, env, lane) or value(e.b, env, lane)
        case E.Not():
            return not value(e.a, env, lane)
        case E.CmpOp():
            return COMPARE[type(e)](value(e.a, env, lane), value(e.b, env, lane))
        case E.BinaryOp():
            a, b = value(e.a, env, lane), value(e.b, env, lane)
            if type(e) in DIVISIONS and not dt.is_float(kind) and b == 0:
                raise DivisionByZero(f"division by zero in {e!r}")
            table = FLOAT_OPS if dt.is_float(kind) else INT_OPS
            if dt.is_bool(kind) and type(e) in BOOL_OPS:
                table = BOOL_OPS
            return fit(kind)(table[type(e)](a, b))
        case E.Select():
            sides = value(e.true_value, env, lane), value(e.false_value, env, lane)
            of = lane if dt.lanes_of(e.condition.dtype) > 1 else 0
            return sides[0] if value(e.condition, env, of) else sides[1]
        case E.Cast():
            number = value(e.value, env, lane)
            if dt.is_handle(kind) or dt.is_handle(e.value.dtype):
                return number
            return convert(number, dt.element_of(e.value.dtype), kind)
        case E.Let():
            bind(e.var, e.value, env)
            return value(e.body, env, lane)
        case E.Ramp():
            step, part = divmod(lane, dt.lanes_of(e.base.dtype))
            return fit(kind)(value(e.base, env, part) + step * value(e.stride, env, part))
        case E.Broadcast():
            return value(e.value, env, lane % dt.lanes_of(e.value.dtype))
        case E.Shuffle():
            lanes = [(v, n) for v in e.vectors for n in range(dt.lanes_of(v.dtype))]
            vector, number = lanes[int(e.indices[lane])]
            return value(vector, env, number)
        case E.BufferLoad():
            where = view(e.buffer, env)
            width = dt.lanes_of(where.dtype)  # numbers in one element
            if e.predicate is not None and not value(e.predicate, env, lane // width):
                return fit(kind)(0)
            at = where.place([value(i, env, lane // width) for i in e.indices], e)
            return read(where.memory, at * width + lane % width, kind)
        case Buffer():
            return as_array(view(e, env))
        case E.Call():
            return call(e, env, lane)
    raise InterpError(f"{type(e).__name__} has no meaning in a tensor program: {e!r}")


def bind(var: E.Var, e: PrimExpr, env: Env) -> None:
    """Give a variable the value that an expression has now."""
    if dt.lanes_of(var.dtype) > 1:
        then = like(env, env)
        env[var] = lambda lane: value(e, then, lane)
    else:
        env[var] = value(e, env)


# ------------------------------------------------------------------------------- calls


def call(e: E.Call, env: Env, lane: int) -> Any:
    """The number that lane `lane` of a call has."""
    if not isinstance(e.op, E.Op):
        return other_function(e, e.op.name_hint, env)
    kind, args = dt.element_of(e.dtype), e.args
    match e.op.name.removeprefix("tir."):
        case "if_then_else":  # only the side that is chosen
            of = lane if dt.lanes_of(args[0].dtype) > 1 else 0
            return value(args[1] if value(args[0], env, of) else args[2], env, lane)
        case "likely":
            return value(args[0], env, lane)
        case "tvm_warp_shuffle" | "tvm_warp_shuffle_up" | "tvm_warp_shuffle_down":
            if env.shuffled is None or e not in env.shuffled:
                raise InterpError("a shuffle stands in a kernel, in the value of a store or of a "
                                  "name")
            return env.shuffled[e]
        case "reinterpret" if dt.is_handle(kind) or dt.is_handle(args[0].dtype):
            return value(args[0], env)
        case "reinterpret":  # the bits of all lanes, read as another type
            source, memory = args[0].dtype, np.zeros(dt.bytes_of(args[0].dtype), np.uint8)
            for n in range(dt.lanes_of(source)):
                write(memory, n, dt.element_of(source), value(args[0], env, n))
            return read(memory, lane, kind)
        case "vectorlow":
            return value(args[0], env, lane)
        case "vectorhigh":
            return value(args[0], env, lane + dt.lanes_of(e.dtype))
        case "vectorcombine":
            width = dt.lanes_of(args[0].dtype)
            return value(args[lane >= width], env, lane % width)
        case "address_of" if isinstance(args[0], E.BufferLoad):
            where = view(args[0].buffer, env)
            at = sum(value(i, env) * n for i, n in zip(args[0].indices, where.strides))
            return where.memory[(where.offset + at) * dt.bytes_of(where.dtype):]
        case "address_of":
            return value(args[0], env)
        case "tvm_access_ptr":  # (type, pointer, offset, extent, what for)
            return value(args[1], env)[value(args[2], env) * dt.bytes_of(args[0].dtype):]
        case "tvm_tuple" | "tvm_stack_make_shape":
            return tuple(value(a, env) for a in args)
        case "tvm_stack_make_array":  # (pointer, shape, strides, ndim, of which type, offset)
            array, shape = value(args[0], env).view(dt.numpy_dtype(args[4].dtype)), args[1]
            sizes, start = value(shape, env), value(args[5], env)
            return array[start:start + int(np.prod([1, *sizes]))].reshape(sizes)
        case "tvm_call_packed":
            return env.packed(args[0].value)(*(handed(a, env) for a in args[1:]))
        case "ret":
            raise _Return(value(args[0], env))
        case "break_loop":
            raise _Break
        case "continue_loop":
            raise _Continue
        case "isnullptr":
            return value(args[0], env) is None
        case "vscale":  # registers of 128 bits
            return 1
        case "undef" | "assume" | "prefetch" | "start_profile_intrinsic" | "end_profile_intrinsic":
            return 0
        case "call_extern" | "call_pure_extern":
            fn, args = c_function(args[0].value), args[1:]
        case "call_llvm_pure_intrin" if args[0].value.startswith("llvm.vector.reduce.fadd."):
            total = value(args[1], env)
            for n in range(dt.lanes_of(args[2].dtype)):
                total = fit(kind)(total + value(args[2], env, n))
            return total
        case "call_llvm_intrin" | "call_llvm_pure_intrin":
            fn = MATH.get(args[0].value.split(".")[1])
            args = args[2:] if dt.is_uint(args[1].dtype) else args[1:]  # a count of types is first
        case "fma" if dt.is_float(kind):
            fn = fused(kind)
        case name:
            fn = TESTS.get(name) or dt.is_float(kind) and MATH.get(name) or (
                integer_function(name, e))
    if not fn:
        raise InterpError(f"what this calls has no meaning here: {e!r}")
    number = fn(*(value(a, env, lane) for a in args))
    if dt.is_float(kind) and dt.bits_of(kind) <= 16:
        number = fit("float32")(number)  # they are computed in float32
    return fit(kind)(number)


def handed(e: PrimExpr, env: Env) -> Any:
    """An argument of a function outside: pointers are arrays of what they point to."""
    found = value(e, env)
    kind = getattr(getattr(e, "type_annotation", None), "element_type", None)
    return found.view(dt.numpy_dtype(kind.dtype)) if isinstance(kind, E.PrimType) else found


def other_function(e: E.Call, name: str, env: Env) -> Any:
    """A call of another function of the module: memory is passed on, and written in place."""
    callee = env.module[name] if env.module is not None else None
    if not isinstance(callee, PrimFunc):
        raise InterpError(f"{name!r} is no function of the module")
    inner = like(env, {})
    for param, arg in zip(callee.params, e.args):
        inner[param] = value(arg, env)
        buffer = callee.buffer_map.get(param)
        if buffer is not None:
            array = inner[param]
            inner[buffer.data] = array.reshape(-1).view(np.uint8)
            inner.update({n: v for n, v in zip(buffer.shape, array.shape) if type(n) is E.Var})
    return body_of(callee, inner)


class _Return(Exception):
    """T.ret"""


class _Break(Exception):
    """T.break"""


class _Continue(Exception):
    """T.continue"""


# ------------------------------------------------------------------------------- statements


def run(s: Any, env: Env) -> Iterator[Any]:
    """Execute a statement; yields where a thread waits for the others of its block."""
    match s:
        case S.SeqStmt():
            for item in s.seq:
                yield from run(item, env)
        case S.For():  # of every kind: how a machine may run the iterations means nothing else
            first, extent = value(s.min, env), value(s.extent, env)
            for number in range(first, first + extent):
                env[s.loop_var] = number
                try:
                    yield from run(s.body, env)
                except _Continue:
                    continue
                except _Break:
                    break
        case S.While():
            while value(s.condition, env):
                try:
                    yield from run(s.body, env)
                except _Continue:
                    continue
                except _Break:
                    break
        case S.IfThenElse():
            chosen = s.then_case if value(s.condition, env) else s.else_case
            if chosen is not None:
                yield from run(chosen, env)
        case S.LetStmt():
            yield from shuffle(s, env)
            numbers = [value(s.value, env, n) for n in range(dt.lanes_of(s.var.dtype) or 1)]
            env[s.var] = numbers.__getitem__ if len(numbers) > 1 else numbers[0]
            yield from run(s.body, env)
        case S.AssertStmt():
            if not value(s.condition, env):
                raise AssertionFailed(f"{value(s.message, env)} (assert {s.condition!r})")
            yield from run(s.body, env)
        case S.BufferStore():
            yield from shuffle(s, env)
            store(s, env)
        case S.Evaluate(value=E.Call(op=E.Op(name="tir.tvm_storage_sync")) as wait):
            if env.kernel is None:
                raise InterpError("tvm_storage_sync outside of a kernel: loops cannot wait")
            if wait.args[0].value != "warp":
                yield
        case S.Evaluate(value=E.Call(op=E.Op(name="tir.tvm_thread_allreduce")) as reduction):
            yield from allreduce(reduction, env)
        case S.Evaluate():
            yield from shuffle(s, env)
            value(s.value, env)
        case S.Allocate():
            sizes = [value(n, env) for n in s.extents]
            env[s.buffer_var] = fresh(s.buffer_var, s.dtype, sizes, env)
            yield from run(s.body, env)
        case S.AllocateConst():
            data = s.data.numpy() if hasattr(s.data, "numpy") else s.data
            data = np.array(data, dt.numpy_dtype(s.dtype)).reshape(-1)
            env[s.buffer_var] = data.view(np.uint8)
            yield from run(s.body, env)
        case S.DeclBuffer():
            if s.buffer.data in env:
                env[s.buffer] = declare(s.buffer, env)
            else:
                own_memory(s.buffer, env)
            yield from run(s.body, env)
        case S.BlockRealize():
            if len(s.iter_values) != len(s.block.iter_vars):
                raise InterpError(f"block {s.block.name_hint!r} has {len(s.block.iter_vars)} "
                                  f"iterators and {len(s.iter_values)} bindings")
            if value(s.predicate, env):
                numbers = [value(v, env) for v in s.iter_values]  # all of them before one is set
                env.update({iv.var: n for iv, n in zip(s.block.iter_vars, numbers)})
                yield from run(s.block, env)
        case S.Block():  # what it reads and writes is a promise about the body, and does nothing
            for buffer in s.alloc_buffers:
                own_memory(buffer, env)
            for window in s.match_buffers:
                match_buffer(window, env)
            if s.init is not None and all(
                    env[iv.var] == value(iv.dom.min, env) for iv in s.iter_vars
                    if iv.iter_type == E.IterVar.CommReduce):
                yield from run(s.init, env)
            yield from run(s.body, env)
        case S.AttrStmt(attr_key="thread_extent", node=E.IterVar()) if env.kernel is None:
            launch(s, env)
        case S.AttrStmt(attr_key="virtual_thread", node=E.IterVar()):
            yield from run(S.For(s.node.var, 0, s.value, S.ForKind.SERIAL, s.body), env)
        case S.AttrStmt(attr_key="reduce_scope", node=E.CommReducer()):
            before, env.reducer = env.reducer, s.node
            yield from run(s.body, env)
            env.reducer = before
        case S.AttrStmt():  # a hint to code generators
            yield from run(s.body, env)
        case _:
            raise InterpError(f"{type(s).__name__} is no statement of a tensor program")


def store(s: S.BufferStore, env: Env) -> None:
    """Store the lanes that the predicate selects; all are computed before one is stored."""
    where = view(s.buffer, env)
    width, kind = dt.lanes_of(where.dtype), dt.element_of(where.dtype)
    count = max([dt.lanes_of(s.value.dtype), *(dt.lanes_of(i.dtype) * width for i in s.indices)])
    wanted = [n for n in range(count)
              if s.predicate is None or value(s.predicate, env, n // width)]
    numbers = [value(s.value, env, n) for n in wanted]
    places = [where.place([value(i, env, n // width) for i in s.indices], s) for n in wanted]
    for n, at, number in zip(wanted, places, numbers):
        write(where.memory, at * width + n % width, kind, number)


def match_buffer(window: S.MatchBufferRegion, env: Env) -> None:
    """A window on a region, which binds the sizes, strides and offset that are variables."""
    buffer, outer = window.buffer, view(window.source.buffer, env)
    starts = [value(r.min, env) for r in window.source.region]
    sizes = [value(r.extent, env) for r in window.source.region]
    dropped = len(sizes) - len(buffer.shape)  # leading dimensions of extent 1
    offset = outer.offset + sum(i * s for i, s in zip(starts, outer.strides))
    found = (offset, *outer.strides[dropped:], *sizes[dropped:])
    named = (buffer.elem_offset, *(buffer.strides or outer.strides[dropped:]), *buffer.shape)
    for name, number in zip(named, found):
        if isinstance(name, E.Var) and name not in env:
            env[name] = number
    shape = tuple(value(n, env) for n in buffer.shape)
    if [1] * dropped + list(shape) != sizes:
        raise InterpError(f"match_buffer {buffer.name} of shape {shape} is matched with a region "
                          f"of extents {sizes}")
    env[buffer.data] = outer.memory
    env[buffer] = View(outer.memory, buffer.dtype, shape, outer.strides[dropped:], offset)


# ------------------------------------------------------------------------------- GPU kernels


def launch(s: S.AttrStmt, env: Env) -> None:
    """Run a kernel: block by block, and in a block each thread up to the next barrier."""
    axes = [n for n in pre_order(s) if type(n) is S.AttrStmt and n.attr_key == "thread_extent"]
    extents = {a.node.thread_tag: value(a.value, env) for a in axes}
    blocks = [t for t in extents if t.startswith("blockIdx")]
    threads = sorted((t for t in extents if t not in blocks), reverse=True)  # x varies fastest
    for block in itertools.product(*(range(extents[t]) for t in blocks)):
        shared: dict = {"axes": {a.node.var: a.node.thread_tag for a in axes}}
        running = []
        for thread in itertools.product(*(range(extents[t]) for t in threads)):
            own, at = like(env, env), dict(zip([*blocks, *threads], [*block, *thread]))
            own.kernel = shared
            own.update({var: at[tag] for var, tag in shared["axes"].items()})
            own.number = len(running)
            running.append(run(s.body, own))
        shared["count"] = len(running)
        while running:
            going, waiting = running, []
            while going:  # at a shuffle threads wait for those of their warp only
                at = [(t, next(t, t)) for t in going]
                waiting += [t for t, where in at if where is None]
                going = [t for t, where in at if where == "warp"]
            if waiting and len(waiting) != len(running):
                raise InterpError("some threads of a block wait at a barrier that others never "
                                  "reach: on a GPU they would wait for ever")
            running = waiting


def shuffle(s: Any, env: Env) -> Iterator[str]:
    """The shuffles in the expressions of a statement: each thread tells the value that it has, and
    when the others have done so takes that of one of them."""
    if env.kernel is None:
        return
    found = env.kernel.setdefault("shuffles", {})
    if s not in found:
        found[s] = shuffles_of(s)
    for call in found[s]:
        told, own = env.kernel.setdefault(call, {}), value(call.args[1], env)
        told[env.number] = own
        yield "warp"
        by, width = (value(a, env) for a in call.args[2:4])
        source = source_of(call, env.number, env.kernel["count"], by, width,
                           lambda condition, a, b: a if condition else b)
        env.shuffled = {**(env.shuffled or {}), call: told.get(source, own)}
        yield "warp"


def allreduce(call: E.Call, env: Env) -> Iterator[None]:
    """tvm_thread_allreduce(n, values.., condition, results.., axes..): combine the values of all
    threads that differ in these axes only, and give each of them the result."""
    count = value(call.args[0], env)
    values, condition = call.args[1:1 + count], call.args[1 + count]
    results, axes = call.args[2 + count:2 + 2 * count], call.args[2 + 2 * count:]
    reducer, shared = env.reducer, env.kernel
    if reducer is None or shared is None:
        raise InterpError("tvm_thread_allreduce needs an attr reduce_scope and a kernel around it")
    tags = shared["axes"]
    combined = {tags[v] for v in axes if v in tags}
    group = tuple(sorted({(tag, env[v]) for v, tag in tags.items() if tag not in combined}))
    totals = shared.setdefault(id(call), {})
    if value(condition, env):
        own = [value(v, env) for v in values]
        if group in totals:
            inner = like(env, {**env, **dict(zip(reducer.lhs, totals[group])),
                               **dict(zip(reducer.rhs, own))})
            own = [value(r, inner) for r in reducer.result]
        totals[group] = own
    yield
    for target, number in zip(results, totals.get(group, ())):
        where = view(target.buffer, env)
        at = where.place([value(i, env) for i in target.indices], target)
        write(where.memory, at, where.dtype, number)
    yield
    if shared.get(id(call)) is totals:  # else a faster thread has begun the next reduction
        del shared[id(call)]


# ------------------------------------------------------------------------------- functions


def evaluate(func_or_mod: PrimFunc | IRModule, *args: Any) -> Any:
    """Run a PrimFunc, or `main` of a module, on arrays; outputs are written in place.

    `args` are as for `interp.interpret`. Returns what the function returns. Raises InterpError.
    """
    from ..runtime.registry import get_global_func

    module = func_or_mod if isinstance(func_or_mod, IRModule) else None
    func = module["main"] if module is not None else func_or_mod
    assert isinstance(func, PrimFunc)
    env = Env()
    env.module, env.packed = module, get_global_func
    numbers, arguments = bind_arguments(
        func, args, lambda e, known: value(e, like(env, known)), "main")
    env.update({v: x.view(np.uint8) if isinstance(x, np.ndarray) else x
                for v, x in numbers.items()})
    with np.errstate(all="ignore"):
        result = body_of(func, env)
    for argument in arguments:
        if argument.write_back is not None:
            argument.write_back()
    return result


def body_of(func: PrimFunc, env: Env) -> Any:
    """Run a function whose parameters have their values."""
    for buffer in func.buffer_map.values():
        env[buffer] = declare(buffer, env)
    try:
        for _ in run(func.body, env):
            raise InterpError("a thread waits outside of a kernel")
    except _Return as leave:
        return leave.args[0]
    return None


__all__ = ["Env", "View", "evaluate", "run", "value"]
