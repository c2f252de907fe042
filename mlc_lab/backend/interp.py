"""The quick interpreter of TensorIR: every tensor program, scheduled or lowered.

What a program means is in `meaning.py`, which is made to be read; this one computes the same some
ten times as fast, watches accesses, and says what is wrong and where. A schedule step or a lowering
pass is right when the program before and the program after leave the same numbers here.

Besides what `meaning.py` says:

- Reading or writing outside of a buffer's shape is an error that names the loops around it.
- **Fresh memory** holds garbage (NaN, or a large number), so that a program that reads what it
  never wrote gives itself away; `check_uninitialized=True` makes that an error.
- `reads` and `writes` of a block promise what its body touches, and do nothing;
  `check_regions=True` holds the block to that promise.

How it works: `Program` walks the tree once and turns every node into a Python closure
over its children's closures (`interp_expr.py` has the expressions, `interp_threads.py` the GPU
kernels, `interp_memory.py` arrays and rounding). Running the program is calling the outermost one
with `env`, the list of all variables' values.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

import numpy as np

from ..ir import dtype as dt
from ..ir.module import IRModule
from ..ir.recursion import USUAL_DEPTH, depth, grows_stack, with_large_stack
from ..lower.split_host_device import is_kernel
from ..tir import stmt as S
from ..tir.buffer import Buffer
from ..tir.expr import BufferLoad, Call, IterVar, Op, StringImm, Var
from ..tir.function import PrimFunc
from ..tir.op import as_int
from .interp_access import Access, AccessLog, ActiveBlock, Options, Steps
from .interp_expr import Code
from .interp_memory import (
    AssertionFailed, InterpError, OutOfBounds, View, allocate, bind_arguments,
)
from .interp_threads import GPU_CALLS, Break, Continue, KernelCompiler

if TYPE_CHECKING:
    from ..tir.expr import PrimExpr

__all__ = ["Access", "AccessLog", "AssertionFailed", "InterpError", "OutOfBounds", "interpret"]


def interpret(func_or_mod: PrimFunc | IRModule, *args: Any, record: Any = None,
              func_name: str | None = None, check_regions: bool = False,
              check_uninitialized: bool = False, packed: Any = None,
              extern: Mapping[str, Callable] | None = None, most_steps: int | None = None) -> Any:
    """Run a PrimFunc, or a function of an IRModule, on arrays; outputs are written in place.

    `args` are, in the order of the parameters: for buffers numpy arrays, NDArrays, torch tensors
    or anything with DLPack, of the declared shape and dtype (symbolic sizes are bound from them);
    for scalars numbers. Returns what the function returns (mostly None).

    `record` is an `AccessLog`, or any function that takes an `Access`, called for each element
    read or written. `check_regions` raises where a block touches what its reads and writes do not
    declare, or an iterator leaves its domain; `check_uninitialized` where memory is read that was
    never written. `packed` (a dict or a function from names to functions) answers
    `T.call_packed`, by default the global registry does; `extern` maps names of C functions.
    `most_steps` bounds the iterations of loops whose number does not stand in the program: of all
    `while` loops, and of `for` loops with an extent that is computed.

    Raises InterpError (OutOfBounds, AssertionFailed) with the place and the loop variables.
    """
    mod, func, name = _pick(func_or_mod, func_name)
    if packed is None:
        from ..runtime.registry import get_global_func as packed
    options = Options(record, check_regions, check_uninitialized, packed, extern or {},
                      None if most_steps is None else Steps(most_steps))
    program = grows_stack(_program)(mod, func, name, options)
    with np.errstate(all="ignore"):
        if program.depth > USUAL_DEPTH:
            return with_large_stack(lambda: program.run(args))
        return program.run(args)


def _pick(target: Any, func_name: str | None) -> tuple[IRModule | None, PrimFunc, str]:
    if isinstance(target, PrimFunc):
        return None, target, str(target.attrs.get("global_symbol", "main"))
    if not isinstance(target, IRModule):
        raise TypeError(f"interpret takes a PrimFunc or an IRModule, got {type(target).__name__}")
    funcs = {v.name_hint: f for v, f in target.functions_items() if isinstance(f, PrimFunc)}
    if func_name is None:
        own = [n for n, f in funcs.items() if not is_kernel(f)] if len(funcs) > 1 else [*funcs]
        func_name = "main" if "main" in funcs or len(own) != 1 else own[0]
    if func_name not in funcs:
        raise ValueError(f"the module has no PrimFunc {func_name!r}; it has: "
                         f"{', '.join(map(repr, funcs)) or 'none'}; choose with func_name=")
    return target, funcs[func_name], str(func_name)


_PLAIN: "weakref.WeakKeyDictionary[PrimFunc, Program]" = weakref.WeakKeyDictionary()


def _program(mod: IRModule | None, func: PrimFunc, name: str, options: Options) -> "Program":
    """The compiled function; cached where nothing is watched and no module is involved."""
    if options.watched or mod is not None or options.extern or options.steps is not None:
        return Program(mod, func, name, options)
    found = _PLAIN.get(func)
    if found is None or found.options.packed is not options.packed:
        found = _PLAIN[func] = Program(None, func, name, options)
    return found


class Return(Exception):
    """T.ret: leaves the function with a value."""


class Program:
    """A compiled function: parameters to bind, and the closure of its body."""

    def __init__(self, mod: IRModule | None, func: PrimFunc, name: str,
                 options: Options) -> None:
        # a weak-keyed cache must not hold its key: keep everything but the function itself, which
        # the caller of `run` holds
        self._func: Callable[[], Any] = weakref.ref(func)
        self.name, self.options = name, options
        compiler = InterpCompiler(mod, options, name)
        self.slots = compiler.slots
        self._compiler = compiler
        self.bind = compiler.bind_parameters(func)
        self.body = compiler.stmt(func.body)
        self.size = compiler.size
        self.depth = depth(func.body)

    def run(self, args: Sequence[Any]) -> Any:
        """Bind the arguments, run the body, hand back what needs copying."""
        values, arguments = bind_arguments(self._func(), args, self._compiler.evaluate, self.name)
        env = [None] * self.size
        for var, value in values.items():
            slot = self.slots.get(var)
            if slot is not None:
                env[slot] = value
        self._compiler.reset(env)
        result = None
        self.bind(env)
        try:
            self.body(env)
        except Return as leave:
            result = leave.args[0]
        for argument in arguments:
            if argument.write_back is not None:
                argument.write_back()
        return result


def _nothing(env: list) -> None:
    """What a loop without iterations does."""


class InterpCompiler(KernelCompiler):
    """Turns statements into closures `run(env)`; the base classes have expressions and kernels."""

    def __init__(self, mod: IRModule | None, options: Options, name: str) -> None:
        super().__init__(mod, options, name)
        self.callees: dict[str, Program] = {}

    # ------------------------------------------------------------------ statements

    def stmt(self, s: S.Stmt) -> Code:
        """The closure that runs `s`."""
        return _STMTS[type(s)](self, s)

    def _seq(self, s: S.SeqStmt) -> Code:
        steps = tuple(self.stmt(x) for x in s.seq)
        if len(steps) == 2:
            first, second = steps

            def two(env: list) -> None:
                first(env)
                second(env)

            return two

        def run(env: list) -> None:
            for step in steps:
                step(env)

        return run

    def _for(self, s: S.For) -> Code:
        start, extent, slot = self.expr(s.min), self.expr(s.extent), self.define(s.loop_var)
        self.loops.append(s.loop_var)
        body = self.stmt(s.body)
        self.loops.pop()
        leaves = _leaves_loop(s.body)
        low, count = as_int(s.min), as_int(s.extent)
        if low is not None and count is not None and (count <= 0 or body is _nothing):
            return _nothing  # an extent of 2**31 around one of 0 takes no time
        if low is not None and count is not None and not leaves:
            values = range(low, low + count)

            def loop_constant(env: list) -> None:
                for i in values:
                    env[slot] = i
                    body(env)

            return loop_constant

        steps = self.options.steps if low is None or count is None else None

        def loop(env: list) -> None:
            begin = start(env)
            for i in range(begin, begin + extent(env)):
                if steps is not None:
                    steps.take()
                env[slot] = i
                body(env)

        def loop_with_exits(env: list) -> None:
            begin = start(env)
            for i in range(begin, begin + extent(env)):
                if steps is not None:
                    steps.take()
                env[slot] = i
                try:
                    body(env)
                except Continue:
                    pass
                except Break:
                    break

        return loop_with_exits if leaves else loop

    def _while(self, s: S.While) -> Code:
        condition, body = self.expr(s.condition), self.stmt(s.body)
        steps = self.options.steps

        def loop(env: list) -> None:
            while condition(env):
                if steps is not None:
                    steps.take()
                try:
                    body(env)
                except Continue:
                    pass
                except Break:
                    break

        return loop

    def _if(self, s: S.IfThenElse) -> Code:
        condition, then = self.expr(s.condition), self.stmt(s.then_case)
        if s.else_case is None:
            def if_then(env: list) -> None:
                if condition(env):
                    then(env)

            return if_then
        otherwise = self.stmt(s.else_case)

        def if_else(env: list) -> None:
            if condition(env):
                then(env)
            else:
                otherwise(env)

        return if_else

    def _let(self, s: S.LetStmt) -> Code:
        value, slot = self.expr(s.value), self.define(s.var)
        body = self.stmt(s.body)

        def let(env: list) -> None:
            env[slot] = value(env)
            body(env)

        return let

    def _assert(self, s: S.AssertStmt) -> Code:
        condition, body = self.expr(s.condition), self.stmt(s.body)
        message = s.message.value if isinstance(s.message, StringImm) else repr(s.message)

        def check(env: list) -> None:
            if not condition(env):
                raise AssertionFailed(f"{self.name}: {message} (assert {s.condition!r})"
                                      f"{self.where(env)}")
            body(env)

        return check

    def _evaluate(self, s: S.Evaluate) -> Code:
        value = self.expr(s.value)

        def run(env: list) -> None:
            value(env)

        return run

    def _attr(self, s: S.AttrStmt) -> Code:
        if s.attr_key == "thread_extent" and isinstance(s.node, IterVar):
            return self.thread_extent(s)
        if s.attr_key == "virtual_thread" and isinstance(s.node, IterVar):
            return self._for(S.For(s.node.var, 0, s.value, S.ForKind.SERIAL, s.body))
        return self.stmt(s.body)  # all others are hints to code generators

    def _allocate(self, s: S.Allocate) -> Code:
        extents, slot = self._numbers(s.extents), self.define(s.buffer_var)
        dtype, body = s.dtype, self.stmt(s.body)
        memory = self.memory_maker(s.buffer_var, dtype, extents)

        def run(env: list) -> None:
            env[slot] = memory(env)
            body(env)

        return run

    def memory_maker(self, var: Var, dtype: str, extents: Callable) -> Callable:
        """Code that gives fresh memory; inside a GPU kernel a shared one is made once a block."""
        if self.inside is not None and var.storage_scope.startswith("shared"):
            return self.shared_memory(var, dtype, extents)

        def make(env: list) -> np.ndarray:
            count = 1
            for extent in extents(env):
                count *= extent
            return allocate(count, dtype)

        return make

    def _allocate_const(self, s: S.AllocateConst) -> Code:
        data = s.data.numpy() if hasattr(s.data, "numpy") else np.asarray(s.data)
        slot, body = self.define(s.buffer_var), self.stmt(s.body)
        flat = np.ascontiguousarray(data, dt.numpy_dtype(s.dtype)).reshape(-1)

        def run(env: list) -> None:
            env[slot] = flat
            body(env)

        return run

    def _decl_buffer(self, s: S.DeclBuffer) -> Code:
        if s.buffer.data not in self.slots:  # declares its own memory
            return self._with_own_memory((s.buffer,), lambda: self.stmt(s.body))
        declare = self.declare(s.buffer)
        body = self.stmt(s.body)

        def run(env: list) -> None:
            declare(env)
            body(env)

        return run

    def _with_own_memory(self, buffers: Sequence[Buffer], compile_body: Callable) -> Code:
        """Fresh memory for `buffers` around a body."""
        steps = []
        for buffer in buffers:
            slot = self.define(buffer.data)
            if buffer.strides:
                top = buffer.offset_of([d - 1 for d in buffer.shape])[0] + 1
                extents = self._numbers((top,))
            else:
                extents = self._numbers(buffer.shape)
            steps.append((slot, self.memory_maker(buffer.data, buffer.dtype, extents),
                          self.declare(buffer)))
        body = compile_body()

        def run(env: list) -> None:
            for slot, memory, declare in steps:
                env[slot] = memory(env)
                declare(env)
            body(env)

        return run

    # ------------------------------------------------------------------ blocks

    def _realize(self, s: S.BlockRealize) -> Code:
        block = s.block
        if len(s.iter_values) != len(block.iter_vars):
            raise InterpError(f"block {block.name_hint!r} has {len(block.iter_vars)} iterator(s) "
                              f"but {len(s.iter_values)} binding(s)")
        values = tuple(self.expr(v) for v in s.iter_values)
        slots = tuple(self.define(iv.var) for iv in block.iter_vars)
        predicate = None if as_int(s.predicate) == 1 else self.expr(s.predicate)
        domains = self._domain_check(block, slots) if self.options.check_regions else None
        run_block = self._block(block)
        pairs = tuple(zip(slots, values))

        def realize(env: list) -> None:
            if predicate is not None and not predicate(env):
                return
            if len(pairs) == 1:
                slot, value = pairs[0]
                env[slot] = value(env)
            else:
                new = [value(env) for value in values]
                for slot, value in zip(slots, new):
                    env[slot] = value
            if domains is not None:
                domains(env)
            run_block(env)

        return realize

    def _block(self, block: S.Block) -> Code:
        own = {*block.alloc_buffers, *(m.buffer for m in block.match_buffers)}
        inner = ActiveBlock(block.name_hint, self.new_slot(), own)
        # the root block of a function declares nothing: it is the whole function
        declares = block.reads or block.writes or block.iter_vars or self.blocks
        regions = (self._region_code(block, inner)
                   if self.options.check_regions and declares else None)

        def compile_body() -> Code:
            matches = [self._match(m) for m in block.match_buffers]
            if declares:
                self.blocks.append(inner)
            starts = self._starts(block)
            init = self.stmt(block.init) if block.init is not None else None
            body = self.stmt(block.body)
            if declares:
                self.blocks.pop()
            if init is None and not matches and regions is None:
                return body

            def run(env: list) -> None:
                if regions is not None:
                    regions(env)
                for match in matches:
                    match(env)
                if init is not None and starts(env):
                    init(env)
                body(env)

            return run

        if block.alloc_buffers:
            return self._with_own_memory(block.alloc_buffers, compile_body)
        return compile_body()

    def _starts(self, block: S.Block) -> Callable:
        """Code for "every reduction iterator is at the start of its domain"."""
        pairs = [(self.slots[iv.var], self.expr(iv.dom.min)) for iv in block.iter_vars
                 if iv.iter_type == IterVar.CommReduce]

        def starts(env: list) -> bool:
            for slot, low in pairs:
                if env[slot] != low(env):
                    return False
            return True

        return starts

    def _match(self, m: S.MatchBufferRegion) -> Code:
        """A window: the buffer's symbolic strides and offset are bound from the source."""
        buffer, source = m.buffer, m.source
        parent = self.view(source.buffer)
        mins = [self.expr(r.min) for r in source.region]
        extents = [self.expr(r.extent) for r in source.region]
        data = self.define(buffer.data)
        bound: set[Var] = set()

        def fresh(e: PrimExpr | None) -> int | None:
            if isinstance(e, Var) and e not in self.slots and e not in bound:
                bound.add(e)
                return self.new_slot()
            return None

        offset_slot = fresh(buffer.elem_offset)
        stride_slots = [fresh(e) for e in buffer.strides]
        shape_slots = [fresh(e) for e in buffer.shape]
        for e, s in zip((buffer.elem_offset, *buffer.strides, *buffer.shape),
                        (offset_slot, *stride_slots, *shape_slots)):
            if s is not None and isinstance(e, Var):
                self.slots[e] = s
        shape = self._numbers(buffer.shape)
        slot = self.views[buffer] = self.new_slot()
        self.new_slot()
        self.windows.add(buffer)

        def match(env: list) -> None:
            outer = parent(env)
            start = outer.offset
            for low, stride in zip(mins, outer.strides):
                start += low(env) * stride
            sizes = [e(env) for e in extents]
            tail = len(sizes) - len(buffer.shape)
            for s, size in zip(shape_slots, sizes[tail:]):
                if s is not None:
                    env[s] = size
            self._check_match(buffer, shape(env), sizes, env)
            strides = outer.strides[tail:]
            for s, stride in zip(stride_slots, strides):
                if s is not None:
                    env[s] = stride
            if offset_slot is not None:
                env[offset_slot] = start
            env[data] = outer.array
            view = env[slot] = View(outer.array, buffer.dtype, shape(env), strides, start,
                                    outer.shadow)
            env[slot + 1] = view.mem

        return match

    def _check_match(self, buffer: Buffer, shape: tuple, sizes: list, env: list) -> None:
        tail = len(sizes) - len(shape)
        if tail < 0 or tuple(sizes[tail:]) != shape or any(n != 1 for n in sizes[:tail]):
            raise InterpError(f"{self.name}: match_buffer {buffer.name} of shape {shape} is "
                              f"matched with a region of extents {tuple(sizes)}{self.where(env)}")

    # checking what a block declares

    def _region_code(self, block: S.Block, inner: ActiveBlock) -> Code:
        rows = []
        for write, regions in ((False, block.reads), (True, block.writes)):
            for region in regions:
                box = [(self.expr(r.min), self.expr(r.extent)) for r in region.region]
                rows.append(((region.buffer, write), box))
                if write and block.init is not None:
                    rows.append(((region.buffer, False), box))  # a reduction reads what it updates
        slot = inner.slot

        def compute(env: list) -> None:
            table: dict[Any, list] = {}
            for key, box in rows:
                table.setdefault(key, []).append([(low(env), size(env)) for low, size in box])
            env[slot] = table

        return compute

    def _domain_check(self, block: S.Block, slots: Sequence[int]) -> Code:
        rows = [(iv.var, s, self.expr(iv.dom.min), self.expr(iv.dom.extent))
                for iv, s in zip(block.iter_vars, slots)]

        def check(env: list) -> None:
            for var, slot, low, extent in rows:
                begin = low(env)
                if not begin <= env[slot] < begin + extent(env):
                    raise InterpError(
                        f"{self.name}: in block {block.name_hint!r} the iterator {var.name} gets "
                        f"{env[slot]}, outside of its domain [{begin}, {begin + extent(env)})"
                        f"{self.where(env)}")

        return check

    # ------------------------------------------------------------------ calls of functions

    def call_function(self, e: Call) -> Code:
        """A call of another PrimFunc of the module: arrays and pointers are passed on."""
        name = getattr(e.op, "name_hint", "")
        callee = self.mod[name] if self.mod is not None and name in self.mod else None
        if not isinstance(callee, PrimFunc):
            raise InterpError(f"{self.name} calls {name!r}, which is no function of the module")
        args = [self._function_argument(a) for a in e.args]

        def call(env: list) -> Any:
            program = self.callees.get(name)
            if program is None:
                program = self.callees[name] = Program(self.mod, callee, name, self.options)
            values = [a(env) for a in args]
            for i, (param, value) in enumerate(zip(callee.params, values)):
                buffer = callee.buffer_map.get(param)
                if buffer is not None and isinstance(value, np.ndarray) and value.ndim == 1:
                    values[i] = _shaped(value, buffer)
            return program.run(values)

        return call

    def _function_argument(self, e: PrimExpr) -> Code:
        if isinstance(e, (Buffer, BufferLoad)):
            return self.argument(e)
        return self.expr(e)

    def _return(self, e: Call) -> Code:
        value = self.expr(e.args[0])

        def leave(env: list) -> None:
            raise Return(value(env))

        return leave


def _raiser(error: type[Exception]) -> Callable:
    def compile_call(self: InterpCompiler, e: Call) -> Code:
        def leave(env: list) -> None:
            raise error

        return leave

    return compile_call


def _shaped(pointer: np.ndarray, buffer: Buffer) -> np.ndarray:
    """A pointer as the array a callee's parameter expects, where its shape is constant."""
    shape = [n for d in buffer.shape if (n := as_int(d)) is not None]
    return pointer[:math.prod(shape)].reshape(shape) if len(shape) == len(buffer.shape) else pointer


def _leaves_loop(body: S.Stmt) -> bool:
    """Whether break_loop or continue_loop occurs in a loop's body."""
    if type(body) is S.Evaluate:
        value = body.value
        return type(value) is Call and isinstance(value.op, Op) and value.op.name in (
            "tir.break_loop", "tir.continue_loop")
    return any(_leaves_loop(s) for s in body.children() if isinstance(s, S.Stmt))


def _bare_block(self: InterpCompiler, s: S.Block) -> Code:
    if s.iter_vars:
        raise InterpError(f"block {s.name_hint!r} has iterators but stands alone: nothing binds "
                          "them; it needs a BlockRealize around it")
    return self._block(s)


_STMTS: dict[type, Callable] = {
    S.SeqStmt: InterpCompiler._seq, S.For: InterpCompiler._for, S.While: InterpCompiler._while,
    S.IfThenElse: InterpCompiler._if, S.LetStmt: InterpCompiler._let,
    S.AssertStmt: InterpCompiler._assert, S.Evaluate: InterpCompiler._evaluate,
    S.AttrStmt: InterpCompiler._attr, S.Allocate: InterpCompiler._allocate,
    S.AllocateConst: InterpCompiler._allocate_const, S.DeclBuffer: InterpCompiler._decl_buffer,
    S.BufferStore: InterpCompiler._store, S.BlockRealize: InterpCompiler._realize,
    S.Block: _bare_block,
}


def _install_calls() -> None:
    from .interp_expr import _CALLS

    _CALLS.update({"ret": InterpCompiler._return, "break_loop": _raiser(Break),
                   "continue_loop": _raiser(Continue), **GPU_CALLS})


_install_calls()
