"""DecomposeOpsForInference: operators that only matter in training become plain arithmetic.

`R.nn.batch_norm` becomes (x - mean) / sqrt(variance + epsilon) * gamma + beta, its running
statistics are given back as they are; `R.nn.dropout` gives its input back. The arithmetic can then
be folded into constants and fused with the convolution before it.

before::

    @R.function
    def main(x: R.Tensor((1, 4), "float32")) -> R.Tensor((1, 4), "float32"):
        with R.dataflow():
            lv = R.nn.dropout(x, rate=0.5)
            lv1 = lv[0]
            gv = R.exp(lv1)
            R.output(gv)
        return gv

after `DecomposeOpsForInference()`::

    @R.function
    def main(x: R.Tensor((1, 4), "float32")) -> R.Tensor((1, 4), "float32"):
        with R.dataflow():
            gv = R.exp(x)
            R.output(gv)
        return gv
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from ...topi.utils import sum_type
from .. import op as R
from ..expr import const
from ..expr_functor import PyExprMutator
from .canonicalize_bindings import canonicalize
from .dead_code_elimination import remove_all_unused
from .rewriting import (
    Call, Expr, Function, IRModule, Pass, PassContext, Tuple, make_pass, map_functions, op_name,
    replace_functions, walk,
)

if TYPE_CHECKING:
    from ..block_builder import BlockBuilder


def DecomposeOpsForInference(func_name: str | None = None) -> Pass:
    """Decompose batch_norm and dropout, in function `func_name` or in all."""
    return _decompose("DecomposeOpsForInference", func_name, {
        "relax.nn.batch_norm": _batch_norm_inference, "relax.nn.dropout": _dropout})


def DecomposeOpsForTraining(func_name: str | None = None) -> Pass:
    """Decompose batch_norm (statistics of the batch, running ones updated) and layer_norm."""
    return _decompose("DecomposeOpsForTraining", func_name, {
        "relax.nn.batch_norm": _batch_norm_training, "relax.nn.layer_norm": _layer_norm})


def _decompose(name: str, func_name: str | None, rules: dict[str, Callable]) -> Pass:
    def rewrite(func: Function) -> Function:
        if not any(op_name(n) in rules for n in walk(func)):
            return func
        return remove_all_unused(canonicalize(_Decompose(rules).visit_expr(func)))

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        if func_name is None:
            return map_functions(mod, rewrite)
        var = mod.get_global_var(func_name)
        new = rewrite(mod[var])
        return mod if new is mod[var] else replace_functions(mod, {var: new})

    doc = DecomposeOpsForInference.__doc__ if "Inference" in name else (
        DecomposeOpsForTraining.__doc__)
    return make_pass(name, run, doc)


class _Decompose(PyExprMutator):
    def __init__(self, rules: dict[str, Callable]) -> None:
        super().__init__()
        self.rules = rules

    def visit_call_(self, call: Call) -> Expr:
        new = self.visit_expr_post_order(call)
        rule = self.rules.get(op_name(new))
        return new if rule is None else rule(self.builder_, self.builder_.normalize(new))


def _dropout(bb: BlockBuilder, call: Call) -> Expr:
    data = call.args[0]
    return Tuple([data, R.ones_like(data)])


def _others(call: Call) -> list[int]:
    """All axes but the one that is normalized."""
    ndim = call.args[0].struct_info.ndim
    axis = call.attrs.axis % ndim
    return [i for i in range(ndim) if i != axis]


def _normalized(bb: BlockBuilder, call: Call, mean: Expr, variance: Expr, axes: list[int]) -> Expr:
    data, gamma, beta = call.args[:3]
    own = data.struct_info.dtype
    dtype = sum_type(own)
    if dtype != own:  # rounded once, at the end
        data, gamma, beta, mean, variance = (bb.emit(R.astype(x, dtype)) for x in (
            data, gamma, beta, mean, variance))
    centered = bb.emit(R.subtract(data, bb.emit(R.expand_dims(mean, axes))))
    spread = bb.emit(R.expand_dims(variance, axes))
    scale = bb.emit(R.sqrt(bb.emit(R.add(spread, const(call.attrs.epsilon, dtype)))))
    out = bb.emit(R.divide(centered, scale))
    if call.attrs.scale:
        out = bb.emit(R.multiply(out, bb.emit(R.expand_dims(gamma, axes))))
    if call.attrs.center:
        out = bb.emit(R.add(out, bb.emit(R.expand_dims(beta, axes))))
    return out if dtype == own else bb.emit(R.astype(out, own))


def _batch_norm_inference(bb: BlockBuilder, call: Call) -> Expr:
    mean, variance = call.args[3:5]
    return Tuple([_normalized(bb, call, mean, variance, _others(call)), mean, variance])


def _batch_norm_training(bb: BlockBuilder, call: Call) -> Expr:
    data, axes = call.args[0], _others(call)
    dtype, momentum = data.struct_info.dtype, call.attrs.momentum
    mean = bb.emit(R.mean(data, axes))
    variance = bb.emit(R.variance(data, axes))
    out = _normalized(bb, call, mean, variance, axes)

    def moved(old: Expr, new: Expr) -> Expr:
        kept = bb.emit(R.multiply(const(1.0 - momentum, dtype), old))
        return bb.emit(R.add(kept, bb.emit(R.multiply(const(momentum, dtype), new))))

    return Tuple([out, moved(call.args[3], mean), moved(call.args[4], variance)])


def _layer_norm(bb: BlockBuilder, call: Call) -> Expr:
    own = call.args[0].struct_info.dtype
    axes, dtype = list(call.attrs.axes), sum_type(own)
    data, gamma, beta = call.args if dtype == own else (
        bb.emit(R.astype(x, dtype)) for x in call.args)
    mean = bb.emit(R.mean(data, axes, keepdims=True))
    variance = bb.emit(R.variance(data, axes, keepdims=True))
    scale = bb.emit(R.sqrt(bb.emit(R.add(variance, const(call.attrs.epsilon, dtype)))))
    out = bb.emit(R.divide(bb.emit(R.subtract(data, mean)), scale))
    if call.attrs.scale:
        out = bb.emit(R.multiply(out, gamma))
    if call.attrs.center:
        out = bb.emit(R.add(out, beta))
    return out if dtype == own else bb.emit(R.astype(out, own))


__all__ = ["DecomposeOpsForInference", "DecomposeOpsForTraining"]
