"""SumLanes: a loop that adds a few consecutive elements to a number becomes a vector reduction.

Before::

    for k in range(8):
        C[0] = C[0] + R[k]

After::

    C[0] = T.call_llvm_pure_intrin("float32", "llvm.vector.reduce.fadd.v8f32", C[0], R[0:8])

Such loops add up the lanes of partial sums. LLVM may not turn the loop into a vector reduction by
itself, or only after long work; the intrinsic adds in the order of the loop, so the result is the
same to the last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir import dtype as dt
from ..ir.structural import structural_equal
from ..ir.transform import Pass
from ..tir.expr import Add, BufferLoad, IntImm, PrimExpr, Ramp, Var
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, all_statements, uses_var
from ..tir.op import add, as_int, call_llvm_pure_intrin
from ..tir.stmt import Allocate, BufferStore, For, ForKind, Stmt
from .common import annotation_int, function_pass

if TYPE_CHECKING:
    from ..ir.node import Node
    from ..ir.transform import PassContext

#: numbers of lanes that are added up at once
_LANES = (4, 8, 16)


def _own_memory(func: PrimFunc) -> set[Var]:
    """The pointers of a function to memory that nothing else points to: what it allocates, and
    under `tir.noalias` its arguments."""
    own = {s.buffer_var for s in all_statements(func.body) if type(s) is Allocate}
    if annotation_int((func.attrs or {}).get("tir.noalias")):
        own.update(buffer.data for buffer in func.buffer_map.values())
    return own


def _sum(loop: For, own: set[Var]) -> Stmt | None:
    """The loop as one store, or None where it is not such a loop.

    The loads must not see the stores: one of the two buffers must share its memory with none.
    """
    store, lanes = loop.body, as_int(loop.extent)
    if loop.kind is not ForKind.SERIAL or lanes not in _LANES or type(store) is not BufferStore:
        return None
    value = store.value
    if type(value) is not Add or value.dtype not in ("float32", "float64"):
        return None
    old, term = value.a, value.b
    if type(old) is not BufferLoad or type(term) is not BufferLoad or not term.indices:
        return None
    into, source = store.buffer.data, term.buffer.data
    if old.buffer is not store.buffer or into is source or not (into in own or source in own):
        return None
    if store.predicate is not None or term.predicate is not None or term.buffer.strides:
        return None
    if any(uses_var(index, loop.loop_var) for index in (*store.indices, *term.indices[:-1])):
        return None
    if any(structural_equal(a, b) is not True for a, b in zip(old.indices, store.indices)):
        return None
    first = _first(term.indices[-1], loop.loop_var, loop.min)
    if first is None:
        return None
    row = Ramp(first, IntImm(first.dtype, 1), lanes)
    vector = BufferLoad(term.buffer, [*term.indices[:-1], row])
    name = f"llvm.vector.reduce.fadd.v{lanes}f{dt.bits_of(value.dtype)}"
    return BufferStore(store.buffer, call_llvm_pure_intrin(value.dtype, name, old, vector),
                       store.indices)


def _first(index: Any, var: Var, low: PrimExpr) -> PrimExpr | None:
    """An index at the start of a loop: `low` for its variable. None unless the index is a sum with
    the variable as one term, which no other term uses."""
    if type(index) is not Add:
        return low if index is var else None
    counts, rest = (index.a, index.b) if uses_var(index.a, var) else (index.b, index.a)
    start = None if uses_var(rest, var) else _first(counts, var, low)
    if start is None:
        return None
    return add(start, rest) if counts is index.a else add(rest, start)


class _SumLanes(Mutator):
    def __init__(self, own: set[Var]) -> None:
        super().__init__()
        self.own = own

    def visit(self, node: Node) -> Any:
        """Only statements hold loops."""
        return super().visit(node) if isinstance(node, Stmt) else node

    def visit_For(self, node: For) -> Stmt:
        return _sum(node, self.own) or self.default(node)


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Loops over lanes as sums of vectors."""
    own = _own_memory(func)
    if not any(type(s) is For and _sum(s, own) for s in all_statements(func.body)):
        return func
    return func.with_body(_SumLanes(own).visit(func.body))


def SumLanes() -> Pass:
    """Make a vector reduction of a loop that adds a few consecutive elements to a number."""
    return function_pass("SumLanes", _rewrite)
