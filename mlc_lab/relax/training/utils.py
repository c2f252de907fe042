"""AppendLoss: a model and its loss as one function; and gradients of TensorIR functions."""

from __future__ import annotations

from typing import Any, Callable

from ..expr import DataflowBlock, DataflowVar, Function, SeqExpr, Tuple, Var, VarBinding
from ..struct_info import StructInfo
from ..transform.gradient import TE_GRADIENTS
from ..transform.rewriting import (
    IRModule, Pass, PassContext, Replacer, add_function, bindings_of, make_pass,
)


def AppendLoss(func_name: str, loss_function: Function, num_backbone_outputs: int = 1,
               new_func_name: str | None = None) -> Pass:
    """Add a function that gives the loss of what `func_name` gives.

    Its first `num_backbone_outputs` results are the first arguments of the loss; the other
    parameters of the loss become parameters, the other results are given after the loss. Both
    functions must be one dataflow block. The new one is called `{func_name}_loss` unless said.
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        name = new_func_name or f"{func_name}_loss"
        func = mod[func_name]
        if not isinstance(func, Function):
            raise ValueError(f"AppendLoss: {func_name!r} is no Relax function")
        if name in mod:
            raise ValueError(f"AppendLoss: the module has a function {name!r} already")
        made = _appended(func, loss_function, num_backbone_outputs)
        out = mod.copy()
        add_function(out, made.with_attr("global_symbol", name), name)
        return out

    return make_pass("AppendLoss", run, AppendLoss.__doc__)


def _one_block(func: Function, what: str) -> None:
    blocks = [b for b in func.body.blocks if b.bindings]
    if len(blocks) != 1 or type(blocks[0]) is not DataflowBlock:
        raise ValueError(f"AppendLoss: the body of {what} must be one dataflow block: write it in "
                         "one `with R.dataflow():`, or run relax.transform.ConvertToDataflow() "
                         "before")


def _appended(func: Function, loss: Function, count: int) -> Function:
    _one_block(func, "the model")
    _one_block(loss, "the loss")
    func, loss = Replacer(fresh=True)(func), Replacer(fresh=True)(loss)
    result = func.body.body
    results = list(result.fields_) if isinstance(result, Tuple) else [result]
    if not 1 <= count <= len(results) or count > len(loss.params):
        raise ValueError(f"AppendLoss: the loss takes {count} result(s) of the model, which gives "
                         f"{len(results)}; the loss has {len(loss.params)} parameter(s)")
    known: dict[Any, Any] = {}
    for param, value in zip(loss.params, results[:count]):
        if not isinstance(value, Var):
            raise ValueError(f"AppendLoss: the results of the model are variables, one is {value}")
        have, want = value.struct_info_, param.struct_info_
        assert isinstance(want, StructInfo)
        if have is None or not want.is_base_of(have):
            raise ValueError(f"AppendLoss: the loss takes {want} as {param.name_hint!r}, the model "
                             f"gives {have}")
        known[param] = value
    rest = results[count:]
    # what only the loss uses now is not seen outside of the block
    inner = {b.var: DataflowVar(b.var.name_hint, b.var.struct_info_) for b in bindings_of(func)
             if not isinstance(b.var, DataflowVar) and b.var not in rest}
    of_model = Replacer(inner)
    of_loss = Replacer({p: of_model(v) for p, v in known.items()})
    bindings = []
    for b in bindings_of(func):
        bindings.append(VarBinding(inner[b.var], of_model(b.value)) if b.var in inner
                        else of_model(b))
    bindings += [of_loss(b) for b in bindings_of(loss)]
    out = of_loss(loss.body.body)
    params = [*func.params, *loss.params[count:]]
    body = SeqExpr([DataflowBlock(bindings)], Tuple([out, *rest]) if rest else out)
    return Function(params, body, None, func.is_pure, func.attrs)


def register_te_gradient(te_grad_name: str, te_grad_func: Callable[..., Any] | None = None) -> Any:
    """The gradient of the R.call_tir_with_grad that name it: a function of the gradient of the
    result and of the arguments, as tensors of te, that gives those of the arguments. Without
    `te_grad_func` it is a decorator."""
    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        TE_GRADIENTS[str(te_grad_name)] = func
        return func

    return register if te_grad_func is None else register(te_grad_func)


__all__ = ["AppendLoss", "register_te_gradient"]
