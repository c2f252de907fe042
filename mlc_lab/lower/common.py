"""What the lowering passes share: a pass over functions, reading annotations, vector arithmetic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Callable, NamedTuple
from weakref import WeakKeyDictionary

from ..arith import Analyzer
from ..arith.expr_util import conjuncts
from ..ir.diagnostics import MLCError
from ..ir.module import IRModule
from ..ir.node import Node
from ..ir.transform import Pass, PassContext, PassInfo
from ..tir.expr import (
    Add, Broadcast, BufferLoad, Call, IntImm, Mul, PrimExpr, Ramp, Range, Sub, Var,
)
from ..tir.function import PrimFunc
from ..tir.functor import all_statements, pre_order
from ..tir.op import add, all as all_of, as_int, effect_of, mul, sub
from ..tir.op.intrinsic import OPAQUE, PURE, UPDATES
from ..tir.stmt import Block, BufferStore, For, LetStmt, SeqStmt, Stmt


class LowerError(MLCError, ValueError):
    """A program that cannot be lowered (for this target); the text says why and what to do."""


def function_pass(name: str, rewrite: Callable[[PrimFunc, PassContext], PrimFunc]) -> Pass:
    """A module pass that rewrites each PrimFunc; the module is the same object if none changed."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        out = mod
        for var, func in list(mod.functions.items()):
            if type(func) is not PrimFunc:
                continue
            new = rewrite(func, ctx)
            if new is not func:
                if out is mod:
                    out = mod.copy()
                out.functions[var] = new
        return out

    run.__doc__ = rewrite.__doc__
    return Pass(run, PassInfo(f"tir.{name}"))


def annotation_int(value: Any, default: int = 0) -> int:
    """The int an annotation holds."""
    found = as_int(value)
    return default if found is None else found


def contains(root: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a node of one of these types is under `root`."""
    stack = [root]
    while stack:
        item = stack.pop()
        if type(item) in kinds:
            return True
        stack.extend(item.children())
    return False


class _Written(NamedTuple):
    """The memory that a node stores to, and whether it may write other memory."""

    memory: frozenset[Var]
    other: bool


_NOTHING = _Written(frozenset(), False)
#: of statements and of choices in expressions: under a thousand nested conditions each is asked for
#: by all around it
_written: WeakKeyDictionary[Node, _Written] = WeakKeyDictionary()


def _written_by(node: Any) -> _Written:
    if not isinstance(node, Stmt):
        return _written_by_expression(node)
    if node not in _written:
        for s in reversed([*all_statements(node)]):  # what is inside first
            if s not in _written:
                _written[s] = _joined(s)
    return _written[node]


def _written_by_expression(e: Any) -> _Written:
    found = _written.get(e)
    if found is None:
        nodes = [*pre_order(e)]
        if any(map(_writes_somewhere, nodes)):
            return _Written(frozenset(), True)
        found = _NOTHING
        for n in nodes:
            if type(n) is Call:
                _written[n] = found
    return found


def _joined(s: Stmt) -> _Written:
    memory = frozenset((s.buffer.data,)) if type(s) is BufferStore else frozenset()
    other = _writes_somewhere(s)
    kids = [*s.children(), *(iv.dom for iv in s.iter_vars)] if type(s) is Block else s.children()
    for part in map(_written_by, kids):
        other = other or part.other
        if not part.memory <= memory:
            memory = part.memory if memory <= part.memory else memory | part.memory
    return _Written(memory, other)


def _writes_somewhere(n: Any) -> bool:
    return type(n) is Call and effect_of(n) in (UPDATES, OPAQUE) or (
        type(n) is LetStmt and n.var.dtype == "handle")


def may_write(node: Any, memory: Collection[Var], names: Collection[Var] = ()) -> bool:
    """Whether `node` may write memory of these pointers. `names` are variables that the program
    gives to pointers: of what is written by such a name nothing is known."""
    written, other = _written_by(node)
    if other or any(m in names for m in memory):
        return other or bool(written)
    return any(m in memory or m in names for m in written)


def may_change(parts: Iterable[PrimExpr], node: Any, names: Collection[Var] = ()) -> bool:
    """Whether expressions read memory that `node` may write, by whatever name: what is known by
    them where `node` begins may be wrong further on in it. `names` as for `may_write`."""
    nodes = [n for part in parts for n in pre_order(part)]
    read = {n.buffer.data for n in nodes if type(n) is BufferLoad}
    if not read and all(effect_of(n) == PURE for n in nodes if type(n) is Call):
        return False
    return may_write(node, read, names)


def steady_parts(condition: PrimExpr, node: Any, names: Collection[Var] = ()) -> list[PrimExpr]:
    """What of a condition that holds where `node` begins holds to its end: of an element that may
    be written in there, nothing is known after that. `names` as for `may_write`."""
    return [part for part in conjuncts(condition) if not may_change((part,), node, names)]


@contextmanager
def steady_scope(analyzer: Analyzer, condition: PrimExpr, node: Any,
                 names: Collection[Var] = ()) -> Iterator[None]:
    """What of a condition holds to the end of `node` is known in the scope."""
    kept = steady_parts(condition, node, names)
    with analyzer.constraint_scope(all_of(*kept)) if kept else nullcontext():
        yield


def bind_loop(analyzer: Analyzer, loop: For, names: Collection[Var] = ()) -> None:
    """Say what values a loop's variable has, as far as what it runs over does not change under it.
    `names` as for `may_write`."""
    if may_change((loop.min, loop.extent), loop.body, names):
        analyzer.unbind(loop.loop_var)
    else:
        analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), True)


def start_of(loop: For) -> tuple[PrimExpr, Callable[[Stmt], Stmt]]:
    """The first value of a loop's variable as copies of its body may name it, and what is put
    around these: a definition where the body writes memory that the value is read from."""
    if not may_change((loop.min,), loop.body):
        return loop.min, lambda body: body
    name = loop.loop_var.with_name(f"{loop.loop_var.name}_start")
    return name, lambda body: LetStmt(name, loop.min, body)


def statements(body: Stmt) -> tuple[Stmt, ...]:
    """A body as the sequence of its statements."""
    return body.seq if type(body) is SeqStmt else (body,)


_DO = {Add: add, Sub: sub, Mul: mul}


def lane_arithmetic(kind: type, a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    """a + b, a - b or a * b where one is a Ramp and the other the same in all lanes, as a Ramp.

    None where the result is no ramp.
    """
    if type(a) is Ramp and type(b) is Ramp and kind is not Mul and a.lanes == b.lanes:
        return Ramp(_DO[kind](a.base, b.base), _DO[kind](a.stride, b.stride), a.lanes)
    if type(b) is Broadcast and type(a) is Ramp and a.lanes == b.lanes:
        b = b.value
    if type(a) is Broadcast and type(b) is Ramp and a.lanes == b.lanes:
        a = a.value
    if type(a) is Broadcast and type(b) is Broadcast and a.lanes == b.lanes:
        return Broadcast(_DO[kind](a.value, b.value), a.lanes)
    scalar_a = not isinstance(a, (Ramp, Broadcast)) and "x" not in a.dtype
    scalar_b = not isinstance(b, (Ramp, Broadcast)) and "x" not in b.dtype
    if type(a) is Ramp and scalar_b:
        if kind is Mul:
            return Ramp(mul(a.base, b), mul(a.stride, b), a.lanes)
        return Ramp(_DO[kind](a.base, b), a.stride, a.lanes)
    if type(b) is Ramp and scalar_a:
        if kind is Mul:
            return Ramp(mul(a, b.base), mul(a, b.stride), b.lanes)
        stride = b.stride if kind is Add else sub(IntImm(b.stride.dtype, 0), b.stride)
        return Ramp(_DO[kind](a, b.base), stride, b.lanes)
    return None


def lane_add(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a + b for indices, ramps kept as ramps."""
    return _lane(Add, a, b)


def lane_mul(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """a * b for indices, ramps kept as ramps."""
    return _lane(Mul, a, b)


def _lane(kind: type, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if type(a) in (Ramp, Broadcast) or type(b) in (Ramp, Broadcast):
        found = lane_arithmetic(kind, a, b)
        if found is not None:
            return found
    return _DO[kind](a, b)
