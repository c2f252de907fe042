"""FoldBatchnormToConv2D: the scale of a batch_norm goes into the weight of a convolution before it.

    (conv(x, w) + c - mean) * s + beta = conv(x, w * s) + (c - mean) * s + beta,
    s = gamma / sqrt(variance + epsilon)

where mean, variance, gamma, beta and w are constants; what is left of the norm is one addition. The
bias c may be a constant that is reshaped first. Convolutions of one and of three dimensions are
treated alike. The norm is taken in its inference form, as by DecomposeOpsForInference; its running
statistics must not be used.

before::

    @R.function
    def main(x: R.Tensor((1, 1, 4, 4), "float32")) -> R.Tensor((1, 1, 4, 4), "float32"):
        with R.dataflow():
            lv = R.nn.conv2d(x, R.const([[[[2.0]]]], "float32"))
            lv1 = R.nn.batch_norm(lv, R.const([3.0], "float32"), R.const([1.0], "float32"),
                                  R.const([5.0], "float32"), R.const([4.0], "float32"),
                                  axis=1, epsilon=0.0, training=False)
            gv = lv1[0]
            R.output(gv)
        return gv

after `FoldBatchnormToConv2D()`::

    @R.function
    def main(x: R.Tensor((1, 1, 4, 4), "float32")) -> R.Tensor((1, 1, 4, 4), "float32"):
        with R.dataflow():
            lv = R.nn.conv2d(x, R.const([[[[3.0]]]], "float32"))
            gv = R.add(lv, R.const([[[[-6.5]]]], "float32"))
            R.output(gv)
        return gv

Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
Inference" (2018), section 3.2.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ...tir.op import as_int
from ..expr import const
from ..op.elementwise import add
from .rewriting import (
    Binding, BindingBlock, Call, Constant, DataflowBlock, Expr, Pass, TensorStructInfo,
    TupleGetItem, VarBinding, is_call_of, make_function_pass, map_blocks, op_name, same_bindings,
    used_vars,
)


def FoldBatchnormToConv2D(training: bool = True) -> Pass:
    """Fold batch_norm into the convolution that feeds it, where both have constant weights.

    Calls of batch_norm in training form are folded too unless `training` is false.
    """
    def fold(block: BindingBlock) -> BindingBlock:
        return _fold(block, training) if type(block) is DataflowBlock else block

    return make_function_pass("FoldBatchnormToConv2D", lambda func, mod: map_blocks(func, fold),
                              FoldBatchnormToConv2D.__doc__)


def _fold(block: DataflowBlock, training: bool) -> BindingBlock:
    values: dict[Expr, Expr] = {b.var: b.value for b in block.bindings if type(b) is VarBinding}
    uses: Counter[Expr] = Counter(v for b in block.bindings for v in used_vars(b))
    changed: dict[Expr, list[Binding]] = {}
    for b in block.bindings:
        if type(b.value) is not TupleGetItem or b.value.index != 0:
            continue
        norm = b.value.tuple_value
        call = values.get(norm)
        if not is_call_of(call, "relax.nn.batch_norm") or uses[norm] != 1:
            continue
        if call.attrs.training and not training:
            continue
        chain = _conv_before(call, values, uses)
        if chain is not None:
            var, conv, bias_add, bias = chain
            folded = _folded(conv, call, bias)
            if folded is None:
                continue
            new_conv, shift = folded
            changed[var] = [VarBinding(var, new_conv)]
            if bias_add is not None:
                changed[bias_add] = []
            changed[norm] = []
            changed[b.var] = [VarBinding(b.var, add(var, shift))]
    if not changed:
        return block
    return same_bindings(block, [n for b in block.bindings for n in changed.get(b.var, [b])])


#: operator -> the number of its dimensions
_CONVOLUTIONS = {"relax.nn.conv1d": 3, "relax.nn.conv2d": 4, "relax.nn.conv3d": 5}
_FLOATS = ("float32", "float64", "float16")


def _conv_before(norm: Call, values: dict[Expr, Expr], uses: Counter[Expr]
                 ) -> tuple | None:
    """(conv variable, its call, variable of an addition or None, its constant) that only the norm
    uses."""
    if not all(type(a) is Constant for a in norm.args[1:]):
        return None
    data, bias_add, bias = norm.args[0], None, None
    value = values.get(data)
    if is_call_of(value, "relax.add"):
        bias_add, bias = data, _constant(value.args[1], values)
        if uses[data] != 1 or bias is None:
            return None
        data = value.args[0]
        value = values.get(data)
    if not is_call_of(value, *_CONVOLUTIONS) or uses[data] != 1:
        return None
    rank = _CONVOLUTIONS[op_name(value)]
    if type(value.args[1]) is not Constant or any(
            _tensor(v).dtype not in _FLOATS for v in (value.args[1], value)):
        return None
    if not (value.attrs.out_layout + value.attrs.kernel_layout).isupper():
        return None  # channels that are split
    channel = value.attrs.out_layout.index("C")
    if channel != norm.attrs.axis % rank or (
            bias is not None and not _per_channel(bias, channel, rank)):
        return None
    return data, value, bias_add, bias


def _tensor(value: Expr) -> TensorStructInfo:
    assert isinstance(value.struct_info_, TensorStructInfo)
    return value.struct_info_


def _constant(value: Expr, values: dict[Expr, Expr]) -> np.ndarray | None:
    """The numbers of a constant, or of one that is only put in another shape; None for others."""
    if type(value) is Constant:
        return value.data.numpy()
    call = values.get(value)
    if is_call_of(call, "relax.reshape", "relax.expand_dims") and (
            type(call.args[0]) is Constant):
        dims = _tensor(call).dims
        shape = [None] if dims is None else [as_int(d) for d in dims]
        return None if None in shape else call.args[0].data.numpy().reshape(shape)
    return None


def _per_channel(bias: np.ndarray, channel: int, rank: int) -> bool:
    """Whether a constant varies along the channel only."""
    shape = [1] * (rank - bias.ndim) + list(bias.shape)
    return len(shape) == rank and all(d == 1 for k, d in enumerate(shape) if k != channel)


def _folded(conv: Call, norm: Call, bias: np.ndarray | None) -> tuple[Call, Constant] | None:
    """The convolution with the scale in its weight, and what is added to its result, in the type
    of each; None where that type cannot hold them."""
    gamma, beta, mean, variance = (a.data.numpy().astype("float64") for a in norm.args[1:])
    scale = 1.0 / np.sqrt(variance + norm.attrs.epsilon)
    if norm.attrs.scale:
        scale = scale * gamma
    offset = 0.0 if bias is None else bias.astype("float64").reshape(-1)
    shift = (offset - mean) * scale + (beta if norm.attrs.center else 0.0)
    weight = conv.args[1].data.numpy()
    along = [1] * weight.ndim
    along[conv.attrs.kernel_layout.index("O")] = -1
    out = [1] * weight.ndim
    out[conv.attrs.out_layout.index("C")] = -1
    with np.errstate(over="ignore"):
        new = (weight * scale.reshape(along)).astype(weight.dtype)
        shift = shift.reshape(out).astype(_tensor(conv).dtype)
    if not (np.isfinite(new).all() and np.isfinite(shift).all()):
        return None
    call = Call.from_fields(conv.op, (conv.args[0], const(new)), conv.attrs, conv.sinfo_args,
                            conv.struct_info_)
    return call, const(shift)


__all__ = ["FoldBatchnormToConv2D"]
