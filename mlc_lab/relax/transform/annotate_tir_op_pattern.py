"""AnnotateTIROpPattern: say of each TensorIR function how its outputs depend on its inputs.

The attribute `op_pattern` of the function gets one of TVM's numbers, which FuseOps reads:

    0 kElemWise           out[i, j] from in[i, j]
    1 kBroadcast          out[i, j] from in[j]: the indices are some of the output's, in order
    2 kInjective          out[i, j] from in[j, i]: the indices are computed from the output's
    3 kCommReduce         out[i] from in[i, 0], in[i, 1], ...: reduction over whole axes
    4 kOutEWiseFusable    a sum of products (matmul, convolution), pooling: what follows
                          element by element can be computed with it
    8 kOpaque             anything else

before::

    @T.prim_func(private=True)
    def relu(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.max(x[vi, vj], T.float32(0.0))

after `AnnotateTIROpPattern()`::

    @T.prim_func(private=True)
    def relu(x: T.Buffer((4, 8), "float32"), y: T.Buffer((4, 8), "float32")):
        T.func_attr({"op_pattern": 0})
        for i, j in T.grid(4, 8):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.max(x[vi, vj], T.float32(0.0))

The classification by index patterns is that of TVM's Relax (Lai et al., "Relax: Composable
Abstractions for End-to-End Dynamic Machine Learning", section 4.2: analysis feedback).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Sequence

from ...arith import Analyzer
from ...ir.module import IRModule
from ...tir import expr as E
from ...tir.function import PrimFunc
from ...tir.functor import all_statements, free_vars, pre_order
from ...tir.stmt import Block, BlockRealize, BufferStore, Stmt
from .rewriting import Pass, PassContext, attr, make_pass


class OpPatternKind(IntEnum):
    """How an operator's output depends on its inputs; the numbers are TVM's."""

    ELEM_WISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEM_WISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


K = OpPatternKind


def AnnotateTIROpPattern() -> Pass:
    """Set `op_pattern` of every TensorIR function that has none."""
    return make_pass("AnnotateTIROpPattern", _annotate, AnnotateTIROpPattern.__doc__)


def _annotate(mod: IRModule, ctx: PassContext) -> IRModule:
    new = None
    for var, func in mod.functions.items():
        if isinstance(func, PrimFunc) and attr(func, "op_pattern") is None:
            new = mod.copy() if new is None else new
            new.functions[var] = func.with_attr("op_pattern", int(pattern_of(func)))
    return mod if new is None else new


def pattern_of(func: PrimFunc) -> OpPatternKind:
    """The pattern of a TensorIR function, from what its blocks read and write."""
    analyzer = Analyzer()
    result: OpPatternKind | None = None
    for block in _leaf_blocks(func.body):
        kind = _block_pattern(block, analyzer, result)
        if kind is K.OPAQUE:
            return K.OPAQUE
        result = kind if result is None else max(result, kind)
    return K.OPAQUE if result is None else result


def _leaf_blocks(stmt: Stmt) -> list[Block]:
    """The blocks of a function, the root left out."""
    found: list[Block] = []
    for item in all_statements(stmt):
        if type(item) is BlockRealize and item.block.name_hint != "root":
            found.append(item.block)
    return found


def _block_pattern(block: Block, analyzer: Analyzer,
                   so_far: OpPatternKind | None) -> OpPatternKind:
    nodes = list(pre_order(block.body))
    stores = [s for s in nodes if type(s) is BufferStore]
    if not stores or any(type(s) is BlockRealize for s in nodes):
        return K.OPAQUE
    store = stores[0]
    if not all(_same_indices(store, s, analyzer) for s in stores[1:]):
        return K.OPAQUE
    written = {s.buffer for s in stores}
    loads = [e for e in nodes if type(e) is E.BufferLoad]
    index = _index_pattern(store, loads, analyzer)
    if index is not K.OPAQUE:
        # softmax, mean: what a reduction gave is used element by element
        return K.OUT_ELEM_WISE_FUSABLE if so_far is K.COMM_REDUCE else index
    reduced = [iv.var for iv in block.iter_vars if iv.iter_type == E.IterVar.CommReduce]
    if not reduced:
        return K.OPAQUE
    if len(stores) == 1 and _is_sum_of_products(store):
        return K.OUT_ELEM_WISE_FUSABLE
    own = [load for load in loads if load.buffer not in written]
    if all(_reduces_whole_axes(set(reduced), load, analyzer) for load in own):
        return K.COMM_REDUCE
    return K.OUT_ELEM_WISE_FUSABLE


def _index_pattern(store: BufferStore, loads: Sequence[E.BufferLoad],
                   analyzer: Analyzer) -> OpPatternKind:
    worst, elementwise = K.ELEM_WISE, False
    for load in loads:
        if _same_indices(store, load, analyzer):
            elementwise = True
        elif _is_broadcast(store, load):
            worst = max(worst, K.BROADCAST)
        elif _is_injective(store, load):
            worst = max(worst, K.INJECTIVE)
        else:
            return K.OPAQUE
    # out[i, j] = a[i, j] + b[j]: the broadcast operand does not change the shape of the loop
    return K.ELEM_WISE if worst is K.BROADCAST and elementwise else worst


def _same_indices(store: BufferStore, load: BufferStore | E.BufferLoad, analyzer: Analyzer) -> bool:
    return len(store.indices) == len(load.indices) and all(
        a is b or analyzer.can_prove_equal(a, b)
        for a, b in zip(store.indices, load.indices))


def _is_broadcast(store: BufferStore, load: E.BufferLoad) -> bool:
    """Each index is constant or one of the output's variables, these in the output's order."""
    at = 0
    for index in load.indices:
        if type(index) is E.IntImm:
            continue
        if not isinstance(index, E.Var):
            return False
        while at < len(store.indices) and store.indices[at] is not index:
            at += 1
        if at == len(store.indices):
            return False
        at += 1
    return True


def _is_injective(store: BufferStore, load: E.BufferLoad) -> bool:
    """The indices use no other variables than the output's indices do."""
    known = {v for index in store.indices for v in free_vars(index)}
    return not any(type(item) is E.BufferLoad or isinstance(item, E.Var) and item not in known
                   for index in load.indices for item in pre_order(index))


def _is_sum_of_products(store: BufferStore) -> bool:
    """out[...] = out[...] + a[...] * b[...], factors perhaps cast."""
    value = store.value
    if type(value) is not E.Add:
        return False
    for own, other in ((value.a, value.b), (value.b, value.a)):
        own, other = _uncast(own), _uncast(other)
        if type(own) is E.BufferLoad and own.buffer is store.buffer and type(other) is E.Mul:
            a, b = _uncast(other.a), _uncast(other.b)
            if type(a) is E.BufferLoad and type(b) is E.BufferLoad:
                return True
    return False


def _uncast(e: E.PrimExpr) -> E.PrimExpr:
    while type(e) is E.Cast:
        e = e.value
    return e


def _reduces_whole_axes(reduced: set, load: E.BufferLoad, analyzer: Analyzer) -> bool:
    """Whether the reduction variables stand as indices of their own (not so in pooling)."""
    for index in load.indices:
        if isinstance(index, E.Var):
            continue
        if any(v in reduced for v in free_vars(index)):
            return False
    return True


__all__ = ["AnnotateTIROpPattern", "OpPatternKind", "pattern_of"]
