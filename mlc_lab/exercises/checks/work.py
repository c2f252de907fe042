"""What an answer may ask of the judge, counted in its program before anything is compiled or run.

    statements    that a run executes: loops by their iterations, each of them at its largest
    code          that is compiled: statements after loops are unrolled and vectorized
    memory        bytes of all buffers

So the same answer is refused on every machine, however quick it is. A loop whose iterations follow
from data, or from a condition, has no such number: its program is interpreted, up to `STEPS`
iterations of such loops, and neither compiled nor counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...arith import Analyzer
from ...ir import dtype as dt
from ...ir.module import IRModule
from ...lower.common import annotation_int
from ...observe.flops import Uncountable, integer
from ...tir import stmt as s
from ...tir.expr import BufferLoad, Call, Range, Var
from ...tir.function import PrimFunc
from ...tir.functor import all_statements, pre_order
from ...tir.op import const

#: statements of all runs of a check
RUN = 2_000_000_000
#: statements that are compiled: some seconds of LLVM's
CODE = 2048
#: bytes that a program may allocate
MEMORY = 1 << 30
#: iterations of loops that nobody can count before they run
STEPS = 200_000
#: what a loop in unrolled code counts: LLVM unrolls and vectorizes each copy of it
_LOOP = 16
#: symbols of shapes that are not known
_SYMBOL = 8
#: by the annotation that asks for it, whether its number is of copies of a loop or of statements
_ASKED = {"unroll_count": "copies", "pragma_auto_unroll_max_step": "statements"}


@dataclass
class Work:
    """What a program asks for; `counted`: whether nothing of it follows from data."""

    statements: int = 0
    code: int = 0
    counted: bool = True


@dataclass(frozen=True)
class _Around:
    """What stands around a statement: how often it runs, how many copies of it are compiled."""

    times: int = 1
    copies: int = 1
    lanes: int = 1
    looped: bool = False  # in a loop that is copied


def work(mod: IRModule, sizes: Mapping[str, int] | None = None) -> Work:
    """What a run of a program asks for. `sizes` are the numbers of symbols."""
    found = Work()
    for func in mod.functions.values():
        if isinstance(func, PrimFunc):
            _count(func.body, sizes or {}, found)
    return found


def _count(body: s.Stmt, sizes: Mapping[str, int], found: Work) -> None:
    bounds = Analyzer()
    stack: list[tuple[Any, _Around]] = [(body, _Around())]
    while stack:
        node, around = stack.pop()
        if isinstance(node, (s.BufferStore, s.Evaluate)):
            found.statements += around.times
            vectors = max(1, around.lanes ** 2 // 16)  # long ones are taken apart
            found.code += around.copies * vectors * (_LOOP if around.looped else 1)
            continue
        if isinstance(node, s.While):
            found.counted = False
        if isinstance(node, s.For):
            around = _inside(node, around, sizes, bounds, found)
        elif isinstance(node, s.Block):
            for iterator in node.iter_vars:
                _bind(bounds, iterator.var, iterator.dom.min, iterator.dom.extent)
        for key, value in _annotations(node):
            if _ASKED.get(key) == "statements":
                found.code = max(found.code, annotation_int(value))
        stack += [(child, around) for child in node.children() if isinstance(child, s.Stmt)
                  and child is not getattr(node, "init", None)]


def _inside(loop: s.For, around: _Around, sizes: Mapping[str, int], bounds: Any, found: Work
            ) -> _Around:
    """What is around the body of a loop."""
    extent = _largest(loop.extent, sizes, bounds)
    if extent is None:
        found.counted, extent = False, _SYMBOL
    _bind(bounds, loop.loop_var, loop.min, const(max(extent, 1), loop.loop_var.dtype))
    copies, lanes, looped = around.copies, around.lanes, around.looped
    if loop.kind is s.ForKind.UNROLLED or loop.thread_tag.startswith("vthread"):
        copies *= max(extent, 1)
    elif loop.kind is s.ForKind.VECTORIZED:
        lanes *= max(extent, 1)
    else:
        asked = [min(annotation_int(value), extent) for key, value in _annotations(loop)
                 if _ASKED.get(key) == "copies"]
        copies *= max([1, *asked])
        looped = copies > 1
    return _Around(around.times * max(extent, 0), copies, lanes, looped)


def _annotations(node: Any) -> Iterator[tuple[str, Any]]:
    """Annotations of a loop or a block."""
    yield from (getattr(node, "annotations", None) or {}).items()


def _largest(expr: Any, sizes: Mapping[str, int], bounds: Any) -> int | None:
    """The largest value of an extent; None where it follows from data."""
    try:
        return integer(expr, sizes)
    except Uncountable:
        pass
    for node in pre_order(expr):
        if isinstance(node, (BufferLoad, Call)):
            return None
        if isinstance(node, Var):
            known = sizes.get(node.name)
            _bind(bounds, node, const(_SYMBOL if known is None else known, node.dtype),
                  const(1, node.dtype))
    return int(bounds.const_int_bound(expr).max_value)


def _bind(bounds: Any, var: Var, low: Any, extent: Any) -> None:
    """What is known of a variable; what was known first stays."""
    if bounds.const_int_bound(var).max_value >= 1 << 30:  # nothing yet
        try:
            bounds.bind(var, Range(low, extent))
        except ValueError:
            pass


def too_large(mod: IRModule, sizes: Mapping[str, int] | None = None, runs: int = 1,
              interpreted: bool = False) -> str:
    """Why a program is not run, or nothing: it would take years, or all of the memory, or all of
    LLVM's time. `sizes` are the numbers of symbols; `runs`: how often it is to be run;
    `interpreted`: loops that nobody can count are run up to a bound, and nothing is compiled."""
    asked = work(mod, sizes)
    if asked.statements * runs > RUN:
        return (f"it would run {asked.statements:,} statements; an answer runs "
                f"{RUN // runs:,} at most")
    if not asked.counted and not interpreted:
        return ("how long it runs is not known before it is run: give each loop a number of "
                "iterations")
    if asked.code > CODE and not interpreted:
        return (f"unrolled and vectorized it has the code of {asked.code:,} statements; an answer "
                f"has {CODE:,} at most")
    held = memory(mod, sizes)
    return "" if held <= MEMORY else (
        f"it takes {held:,} bytes of memory; an answer has {MEMORY:,}")


def memory(mod: IRModule, sizes: Mapping[str, int] | None = None) -> int:
    """Bytes of all buffers of a program, as far as their shapes are known."""
    held = 0
    for func in mod.functions.values():
        if not isinstance(func, PrimFunc):
            continue
        buffers = [b for st in all_statements(func.body) if type(st) is s.Block
                   for b in st.alloc_buffers] + list(func.buffer_map.values())
        for buffer in buffers:
            size = dt.bytes_of(buffer.dtype)
            for dim in buffer.shape:
                try:
                    size *= integer(dim, sizes or {})
                except Uncountable:
                    continue
            held += size
    return held


__all__ = ["CODE", "MEMORY", "RUN", "STEPS", "Work", "memory", "too_large", "work"]
