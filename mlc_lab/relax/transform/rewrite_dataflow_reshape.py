"""RewriteDataflowReshape: a call of a TensorIR function that only reshapes becomes `R.reshape`.

The VM makes a reshape without copying. The last value of a dataflow block that is given out stays,
since a result must not share the memory of an argument.

before::

    @T.prim_func(private=True)
    def reshape(x: T.Buffer((T.int64(4), T.int64(2)), "float32"),
                y: T.Buffer((T.int64(8),), "float32")):
        for i in range(T.int64(8)):
            with T.block("reshape"):
                vi = T.axis.spatial(T.int64(8), i)
                y[vi] = x[vi // T.int64(2), vi % T.int64(2)]

    @R.function
    def main(x: R.Tensor((4, 2), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.reshape, (x,), out_sinfo=R.Tensor((8,), "float32"))
            gv = R.exp(lv)
            R.output(gv)
        return gv

after `RewriteDataflowReshape()`::

    @T.prim_func(private=True)
    def reshape(x: T.Buffer((T.int64(4), T.int64(2)), "float32"),
                y: T.Buffer((T.int64(8),), "float32")):
        for i in range(T.int64(8)):
            with T.block("reshape"):
                vi = T.axis.spatial(T.int64(8), i)
                y[vi] = x[vi // T.int64(2), vi % T.int64(2)]

    @R.function
    def main(x: R.Tensor((4, 2), "float32")) -> R.Tensor((8,), "float32"):
        with R.dataflow():
            lv = R.reshape(x, R.shape([8]))
            gv = R.exp(lv)
            R.output(gv)
        return gv
"""

from __future__ import annotations

from ...arith import Analyzer, detect_iter_map
from ...tir import expr as E
from ...tir.expr import Range
from ...tir.function import PrimFunc
from ...tir.functor import free_vars, ir_transform, pre_order
from ...tir.op import as_int, is_const_int
from ...tir.stmt import BlockRealize, BufferStore, For
from ..op.reshaping import reshape
from .rewriting import (
    CALL_TIR, Binding, BindingBlock, DataflowBlock, DataflowVar, Function, IRModule, Pass,
    TensorStructInfo, VarBinding, is_call_of, make_function_pass, map_blocks, same_bindings,
)


def RewriteDataflowReshape() -> Pass:
    """Turn call_tir of reshaping functions into R.reshape."""
    def rewrite(func: Function, mod: IRModule) -> Function:
        known: dict[PrimFunc, bool] = {}

        def binding(b: Binding) -> Binding:
            value = b.value
            if type(b.var) is not DataflowVar or not is_call_of(value, CALL_TIR):
                return b
            callee, given, *rest = value.args
            if rest or len(given.fields_) != 1:
                return b
            callee = mod.functions.get(callee)
            info = value.sinfo_args[0]
            if not isinstance(callee, PrimFunc) or not isinstance(info, TensorStructInfo):
                return b
            if callee not in known:
                known[callee] = has_reshape_pattern(callee)
            if not known[callee] or info.dims is None:
                return b
            return VarBinding(b.var, reshape(given.fields_[0], info.shape))

        def block(b: BindingBlock) -> BindingBlock:
            return same_bindings(b, [binding(x) for x in b.bindings]) if type(
                b) is DataflowBlock else b

        return map_blocks(func, block)

    return make_function_pass("RewriteDataflowReshape", rewrite, RewriteDataflowReshape.__doc__)


def has_reshape_pattern(func: PrimFunc) -> bool:
    """Whether a function copies its one input to its one output in the order of memory."""
    if len(func.params) != 2 or len(func.buffers) != 2:
        return False
    source, target = func.buffers
    blocks = [n for n in pre_order(func.body)
              if type(n) is BlockRealize and n.block.name_hint != "root"]
    if source.dtype != target.dtype or len(blocks) != 1:
        return False
    block = blocks[0].block
    store = block.body
    if type(store) is not BufferStore or store.buffer is not target or type(
            store.value) is not E.BufferLoad or store.value.buffer is not source:
        return False
    if not _visits_all(blocks[0], {n.loop_var: Range.from_min_extent(n.min, n.extent)
                                   for n in pre_order(func.body) if type(n) is For}):
        return False
    analyzer = Analyzer()
    # a loop that runs has an extent of one at least, and if none runs nothing is copied
    for size in dict.fromkeys(v for buffer in func.buffers for d in buffer.shape
                              for v in free_vars(d)):
        analyzer.enter_constraint(E.GE(size, E.IntImm(size.dtype, 1)))
    for iv in block.iter_vars:
        analyzer.bind(iv.var, iv.dom)
    whole = analyzer.can_prove_equal(_count(source.shape), _count(target.shape))
    return whole and analyzer.can_prove_equal(
        _within(source.offset_of(store.value.indices)[0], analyzer),
        _within(target.offset_of(store.indices)[0], analyzer))


def _within(offset: E.PrimExpr, analyzer: Analyzer) -> E.PrimExpr:
    """An offset without quotients and remainders by a symbolic size of what is below that size."""
    def plain(node: E.PrimExpr) -> E.PrimExpr | None:
        if not isinstance(node, (E.FloorDiv, E.FloorMod)) or type(node.b) is E.IntImm:
            return None
        value = analyzer.simplify(node.a)
        if not (analyzer.can_prove_greater_equal(value, 0) and analyzer.can_prove(
                E.LT(value, node.b))):
            return None
        return value if type(node) is E.FloorMod else E.IntImm(node.dtype, 0)

    return ir_transform(offset, None, plain, ["tir.FloorMod", "tir.FloorDiv"])


def _visits_all(block: BlockRealize, loops: dict[E.Var, Range]) -> bool:
    """Whether a block, as its loops call it, takes all the values of its iterators."""
    iters = block.block.iter_vars
    if not is_const_int(block.predicate, 1) or any(
            iv.iter_type != E.IterVar.DataPar for iv in iters):
        return False
    found = detect_iter_map(block.iter_values, loops, check_level="surjective")
    analyzer = Analyzer()
    for iv, index in zip(iters, found.indices or [None] * len(iters)):
        if index is None or len(index.args) > 1 or not analyzer.can_prove_equal(
                index.base, iv.dom.min):
            return False
        if index.args and as_int(index.args[0].scale) != 1:
            return False
        extent = index.args[0].extent if index.args else 1
        if not analyzer.can_prove_equal(extent, iv.dom.extent):
            return False
    return True


def _count(shape: tuple) -> E.PrimExpr:
    total: E.PrimExpr = E.IntImm("int64", 1)
    for dim in shape:
        total = total * dim
    return total


__all__ = ["RewriteDataflowReshape", "has_reshape_pattern"]
