"""BundleModelParams: the weights of a model as one tuple.

A function with the attribute `num_input` takes that many inputs; all further parameters are its
weights.

before::

    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32"),
             b: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            lv = R.multiply(x, w)
            gv = R.add(lv, b)
            R.output(gv)
        return gv

after `BundleModelParams()`::

    @R.function
    def main(x: R.Tensor((4,), "float32"),
             model_params: R.Tuple(R.Tensor((4,), "float32"),
                                   R.Tensor((4,), "float32"))) -> R.Tensor((4,), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            w = model_params[0]
            lv = R.multiply(x, w)
            b = model_params[1]
            gv = R.add(lv, b)
            R.output(gv)
        return gv
"""

from __future__ import annotations

from ..normal import merge_blocks
from .rewriting import (
    Binding, BindingBlock, DataflowBlock, DataflowVar, Function, Pass, Replacer, SeqExpr,
    TupleGetItem, TupleStructInfo, Var, VarBinding, attr, make_function_pass, map_blocks, used_vars,
)


def BundleModelParams(param_tuple_name: str | None = None) -> Pass:
    """Make one tuple parameter of those after the first `num_input`."""
    name = param_tuple_name or "model_params"
    return make_function_pass("BundleModelParams", lambda func, mod: _bundle(func, name),
                              BundleModelParams.__doc__)


def _bundle(func: Function, name: str) -> Function:
    count = attr(func, "num_input")
    if count is None or type(func.body) is not SeqExpr:
        return func
    inputs, weights = func.params[:count], func.params[count:]
    whole = Var(name, TupleStructInfo([w.struct_info for w in weights]))
    index = {w: i for i, w in enumerate(weights)}

    def take(block: BindingBlock) -> BindingBlock:
        """Items are taken right before their first use in the block."""
        dataflow = type(block) is DataflowBlock
        here: dict[Var, Var] = {}
        out: list[Binding] = []
        for binding in block.bindings:
            for var in used_vars(binding):
                if var in index and var not in here:
                    here[var] = (DataflowVar if dataflow else Var)(var.name_hint, var.struct_info_)
                    out.append(VarBinding(here[var], TupleGetItem(whole, index[var])))
            out.append(Replacer(here)(binding))
        return block if not here else type(block)(out)

    body = map_blocks(func.body, take)
    left = [v for v in dict.fromkeys(used_vars(body.body)) if v in index]
    if left:  # a weight is given back as it is
        items = {v: Var(v.name_hint, v.struct_info_) for v in left}
        last = BindingBlock([VarBinding(items[v], TupleGetItem(whole, index[v])) for v in left])
        body = SeqExpr(merge_blocks((*body.blocks, last)), Replacer(items)(body.body))
    return Function.from_fields((*inputs, whole), body, func.ret_struct_info, func.is_pure,
                                func.attrs)


__all__ = ["BundleModelParams"]
