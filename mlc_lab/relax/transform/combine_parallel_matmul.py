"""CombineParallelMatmul: products of one matrix with several others become one product.

x @ a, x @ b, x @ c (the projections of attention) are one x @ concat(a, b, c), split afterwards:
one large product runs nearer to the machine's peak than three small ones. With constant weights the
concatenation is done by FoldConstant.

before::

    @R.function
    def main(x: R.Tensor((4, 8), "float32"), a: R.Tensor((8, 2), "float32"),
             b: R.Tensor((8, 6), "float32")) -> R.Tuple(R.Tensor((4, 2), "float32"),
                                                        R.Tensor((4, 6), "float32")):
        with R.dataflow():
            lv = R.matmul(x, a)
            lv1 = R.matmul(x, b)
            gv = (lv, lv1)
            R.output(gv)
        return gv

after `CombineParallelMatmul()`::

    @R.function
    def main(x: R.Tensor((4, 8), "float32"), a: R.Tensor((8, 2), "float32"),
             b: R.Tensor((8, 6), "float32")) -> R.Tuple(R.Tensor((4, 2), "float32"),
                                                        R.Tensor((4, 6), "float32")):
        with R.dataflow():
            w = R.concat((a, b), axis=1)
            y = R.matmul(x, w)
            parts = R.split(y, [2], axis=1)
            lv = parts[0]
            lv1 = parts[1]
            gv = (lv, lv1)
            R.output(gv)
        return gv
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Callable

from ...tir import expr as E
from ..op.common import info_of
from ..op.linear_algebra import matmul
from ..op.manipulate import concat, split
from .rewriting import (
    BindingBlock, Call, DataflowBlock, Emitter, Pass, TupleGetItem, Var, VarBinding,
    is_call_of, make_function_pass, map_blocks, used_vars,
)


def CombineParallelMatmul(check: Callable[[Var, list[Any]], bool] | None = None) -> Pass:
    """Combine products whose left operand is the same and whose right ones are matrices of known
    sizes. `check(left, rights)` may refuse a group."""
    def combine(block: BindingBlock) -> BindingBlock:
        return _combine(block, check) if type(block) is DataflowBlock else block

    return make_function_pass("CombineParallelMatmul",
                              lambda func, mod: map_blocks(func, combine),
                              CombineParallelMatmul.__doc__)


def _combine(block: DataflowBlock, check: Callable | None) -> BindingBlock:
    groups = [g for g in _groups(block) if check is None or check(
        g[0][1].args[0], [call.args[1] for _, call in g])]
    if not groups:
        return block
    first = {g[0][0]: g for g in groups}
    member = {var for g in groups for var, _ in g}
    out = Emitter()
    for binding in block.bindings:
        group = first.get(binding.var)
        if group is not None:
            _emit(group, out)
        elif binding.var not in member:
            out.bindings.append(binding)
    return DataflowBlock(out.bindings)


def _groups(block: DataflowBlock) -> list[list[tuple[Var, Call]]]:
    """Products that may be computed together where the first of them stands."""
    order = {b.var: k for k, b in enumerate(block.bindings)}
    found: dict[Any, list[tuple[Var, Call]]] = {}
    for b in block.bindings:
        call = b.value
        if type(b) is not VarBinding or not is_call_of(call, "relax.matmul"):
            continue
        left, right = call.args
        dims = getattr(right.struct_info, "dims", None)
        if not isinstance(left, Var) or dims is None or len(dims) != 2 or any(
                type(d) is not E.IntImm for d in dims) or info_of(left).ndim < 2:
            continue
        key = (left, right.struct_info.dtype, call.attrs.out_dtype)
        group = found.setdefault(key, [])
        # the weight must be there where the first product stands
        at = order[group[0][0] if group else b.var]
        if all(order.get(v, -1) < at for v in used_vars(right)):
            group.append((b.var, call))
    return [g for g in found.values() if len(g) > 1]


def _emit(group: list[tuple[Var, Call]], out: Emitter) -> None:
    call = group[0][1]
    left = call.args[0]
    weights = [c.args[1] for _, c in group]
    sizes = [int(w.struct_info.dims[1]) for w in weights]
    weight = out.emit(concat(weights, axis=1), "w")
    made = out.emit(matmul(left, weight, call.attrs.out_dtype), "y")
    axis = left.struct_info.ndim - 1
    parts = out.emit(split(made, list(accumulate(sizes[:-1])), axis=axis), "parts")
    for index, (var, _) in enumerate(group):
        out.bindings.append(VarBinding(var, TupleGetItem(parts, index)))


__all__ = ["CombineParallelMatmul"]
