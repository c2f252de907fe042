"""LiftTransformParams: what is computed from weights alone moves to a function of its own.

A function with the attribute `num_input` takes that many inputs; further parameters are weights.
`<name>_transform_params` takes the weights as a tuple and gives what the function needs; it is run
once, when the weights are loaded.

before::

    @R.function
    def main(x: R.Tensor((1, 4), "float32"),
             w: R.Tensor((8, 4), "float32")) -> R.Tensor((1, 8), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            wt = R.permute_dims(w)
            gv = R.matmul(x, wt)
            R.output(gv)
        return gv

after `LiftTransformParams()`::

    @R.function
    def main_transform_params(
            model_params: R.Tuple(R.Tensor((8, 4), "float32"))
    ) -> R.Tuple(R.Tensor((4, 8), "float32")):
        R.func_attr({"num_input": 0})
        with R.dataflow():
            w = model_params[0]
            wt = R.permute_dims(w)
            output_tuple = (wt,)
            R.output(output_tuple)
        return output_tuple

    @R.function
    def main(x: R.Tensor((1, 4), "float32"),
             wt: R.Tensor((4, 8), "float32")) -> R.Tensor((1, 8), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            gv = R.matmul(x, wt)
            R.output(gv)
        return gv

A size that only shapes of weights say is handed on too, as a shape before the lifted values: a
lifted value of `n * 2` elements does not say what n is.
"""

from __future__ import annotations

from ...tir.expr import Var as TirVar
from ..analysis import free_symbolic_vars
from ..normal import merge_blocks
from ..struct_info import ShapeStructInfo, tir_vars_in_struct_info
from .rewriting import (
    Binding, DataflowBlock, DataflowVar, Function, IRModule, MatchCast, Pass, PassContext, Replacer,
    SeqExpr, ShapeExpr, Tuple, TupleGetItem, TupleStructInfo, Var, VarBinding, add_function, attr,
    bindings_of, is_exported, make_pass, op_name, replace_functions, same_bindings, used_vars,
    with_own_dims,
)


def LiftTransformParams() -> Pass:
    """Split functions that have `num_input` into a part for weights and a part for inputs.

    `R.builtin.stop_lift_params` marks values that are computed for each input all the same.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        new, changes = mod.copy(), {}
        for var, func in mod.functions.items():
            if isinstance(func, Function) and attr(func, "num_input") is not None and type(
                    func.body) is SeqExpr:
                changes[var], transform = _split(func)
                name = f"{var.name_hint}_transform_params"
                if is_exported(func):
                    transform = transform.with_attr("global_symbol", name)
                add_function(new, transform, name)
        return replace_functions(new, changes) if changes else mod

    return make_pass("LiftTransformParams", run, LiftTransformParams.__doc__)


def _split(func: Function) -> tuple[Function, Function]:
    count = attr(func, "num_input")
    inputs, weights = func.params[:count], func.params[count:]
    dims = {v for p in inputs for v in tir_vars_in_struct_info(p.struct_info_)}
    ready: set[Var] = set(weights)
    lifted: list[Binding] = []
    for block in func.body.blocks:
        if type(block) is not DataflowBlock:
            continue
        for binding in block.bindings:
            if _liftable(binding, ready, dims):
                lifted.append(binding)
                ready.add(binding.var)
    # the lifted values that what stays behind uses, in order of use
    gone = {b.var for b in lifted}
    wanted: dict[Var, None] = {}
    for binding in bindings_of(func):
        if binding.var not in gone:
            wanted.update(dict.fromkeys(v for v in used_vars(binding) if v in ready))
    wanted.update(dict.fromkeys(v for v in used_vars(func.body.body) if v in ready))
    runtime = _runtime(func, inputs, list(wanted), gone)
    sizes = free_symbolic_vars(runtime)
    if sizes:
        handed = Var("vars_from_compile_time_params", ShapeStructInfo(sizes))
        runtime = runtime.replace(params=(*inputs, handed, *runtime.params[count:]))
    return runtime, _transform(weights, lifted, list(wanted), sizes)


def _liftable(binding: Binding, ready: set[Var], dims: set) -> bool:
    uses = list(used_vars(binding))
    if type(binding) is MatchCast or not uses or not all(v in ready for v in uses):
        return False
    if op_name(binding.value) == "relax.builtin.stop_lift_params":
        return False
    return not dims & set(tir_vars_in_struct_info(binding.var.struct_info_))


def _runtime(func: Function, inputs: tuple, wanted: list[Var], gone: set[Var]) -> Function:
    """What is left: it takes the lifted values as parameters."""
    table = {v: Var(v.name_hint, v.struct_info_) for v in wanted if v in gone}
    replace = Replacer(table)
    blocks = []
    for block in func.body.blocks:
        kept = same_bindings(block, [b for b in block.bindings if b.var not in gone])
        if kept.bindings:
            blocks.append(replace(kept))
    body = SeqExpr(merge_blocks(blocks), replace(func.body.body))
    params = (*inputs, *[table.get(v, v) for v in wanted])
    return Function.from_fields(params, body, func.ret_struct_info, func.is_pure, func.attrs)


def _transform(weights: tuple, lifted: list[Binding], wanted: list[Var],
               sizes: list[TirVar]) -> Function:
    """The function that computes the lifted values, and says sizes, from all weights."""
    whole = Var("model_params", TupleStructInfo([w.struct_info_ for w in weights]))
    index = {w: i for i, w in enumerate(weights)}
    table: dict[Var, Var] = {}
    out: list[Binding] = []

    def need(vars_: list[Var]) -> None:
        """Take weights out of the tuple right before they are used first."""
        for v in vars_:
            if v in index and v not in table:
                table[v] = DataflowVar(v.name_hint, v.struct_info_)
                out.append(VarBinding(table[v], TupleGetItem(whole, index[v])))

    for binding in lifted:
        need(list(used_vars(binding)))
        table[binding.var] = DataflowVar(binding.var.name_hint, binding.var.struct_info_)
        out.append(Replacer(table)(binding))
    need(wanted)
    result = Tuple([*([ShapeExpr(sizes)] if sizes else []), *(table[v] for v in wanted)])
    gv = Var("output_tuple", result.struct_info_)
    out.append(VarBinding(gv, result))
    body = SeqExpr([DataflowBlock(out)], gv)
    return with_own_dims(Function((whole,), body, gv.struct_info_, True, {"num_input": 0}))


__all__ = ["LiftTransformParams"]
