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

from ...arith import Analyzer
from ...tir import expr as E
from ...tir.function import PrimFunc
from ...tir.functor import pre_order
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
    analyzer = Analyzer()
    loops = {n.loop_var: n for n in pre_order(func.body) if type(n) is For}
    for iv, value in zip(block.iter_vars, blocks[0].iter_values):
        if iv.iter_type != E.IterVar.DataPar or value not in loops:
            return False
        analyzer.bind(iv.var, iv.dom)
    whole = analyzer.can_prove_equal(_count(source.shape), _count(target.shape))
    return whole and analyzer.can_prove_equal(source.offset_of(store.value.indices)[0],
                                              target.offset_of(store.indices)[0])


def _count(shape: tuple) -> E.PrimExpr:
    total: E.PrimExpr = E.IntImm("int64", 1)
    for dim in shape:
        total = total * dim
    return total


__all__ = ["RewriteDataflowReshape", "has_reshape_pattern"]
