"""FoldBatchnormToConv2D: the scale of a batch_norm goes into the weight of the conv2d before it.

    (conv(x, w) + c - mean) * s + beta = conv(x, w * s) + (c - mean) * s + beta,
    s = gamma / sqrt(variance + epsilon)

where mean, variance, gamma, beta and w are constants; what is left of the norm is one addition.
The norm is taken in its inference form, as by DecomposeOpsForInference; its running statistics must
not be used.

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

from ..expr import const
from ..op.elementwise import add
from .rewriting import (
    Binding, BindingBlock, Call, Constant, DataflowBlock, Pass, TupleGetItem, Var, VarBinding,
    make_function_pass, map_blocks, op_name, same_bindings, used_vars,
)


def FoldBatchnormToConv2D(training: bool = True) -> Pass:
    """Fold batch_norm into the conv2d that feeds it, where both have constant weights.

    Calls of batch_norm in training form are folded too unless `training` is false.
    """
    def fold(block: BindingBlock) -> BindingBlock:
        return _fold(block, training) if type(block) is DataflowBlock else block

    return make_function_pass("FoldBatchnormToConv2D", lambda func, mod: map_blocks(func, fold),
                              FoldBatchnormToConv2D.__doc__)


def _fold(block: DataflowBlock, training: bool) -> BindingBlock:
    values = {b.var: b.value for b in block.bindings if type(b) is VarBinding}
    uses = Counter(v for b in block.bindings for v in used_vars(b))
    changed: dict[Var, list[Binding]] = {}
    for b in block.bindings:
        if type(b.value) is not TupleGetItem or b.value.index != 0:
            continue
        norm = b.value.tuple_value
        call = values.get(norm)
        if op_name(call) != "relax.nn.batch_norm" or uses[norm] != 1:
            continue
        if call.attrs.training and not training:
            continue
        chain = _conv_before(call, values, uses)
        if chain is not None:
            conv, bias_add, bias = chain
            new_conv, shift = _folded(values[conv], call, bias)
            changed[conv] = [VarBinding(conv, new_conv)]
            if bias_add is not None:
                changed[bias_add] = []
            changed[norm] = []
            changed[b.var] = [VarBinding(b.var, add(conv, shift))]
    if not changed:
        return block
    return same_bindings(block, [n for b in block.bindings for n in changed.get(b.var, [b])])


def _conv_before(norm: Call, values: dict, uses: Counter) -> tuple | None:
    """(conv variable, variable of an addition or None, its constant) that only the norm uses."""
    if not all(type(a) is Constant for a in norm.args[1:]):
        return None
    data, bias_add, bias = norm.args[0], None, None
    value = values.get(data)
    if op_name(value) == "relax.add" and type(value.args[1]) is Constant:
        bias_add, bias = data, value.args[1]
        if uses[data] != 1:
            return None
        data = value.args[0]
        value = values.get(data)
    if op_name(value) != "relax.nn.conv2d" or uses[data] != 1 or type(
            value.args[1]) is not Constant or value.args[1].struct_info.dtype != "float32":
        return None
    channel = value.attrs.out_layout.index("C")
    if channel != norm.attrs.axis % 4 or (bias is not None and not _per_channel(bias, channel)):
        return None
    return data, bias_add, bias


def _per_channel(bias: Constant, channel: int) -> bool:
    """Whether a constant varies along the channel only."""
    shape = [1] * (4 - len(bias.data.shape)) + list(bias.data.shape)
    return len(shape) == 4 and all(d == 1 for k, d in enumerate(shape) if k != channel)


def _folded(conv: Call, norm: Call, bias: Constant | None) -> tuple[Call, Constant]:
    """The conv2d with the scale in its weight, and what is added to its result."""
    gamma, beta, mean, variance = (a.data.numpy().astype("float64") for a in norm.args[1:])
    scale = 1.0 / np.sqrt(variance + norm.attrs.epsilon)
    if norm.attrs.scale:
        scale = scale * gamma
    offset = 0.0 if bias is None else bias.data.numpy().astype("float64").reshape(-1)
    shift = (offset - mean) * scale + (beta if norm.attrs.center else 0.0)
    weight = conv.args[1].data.numpy()
    along = [1] * 4
    along[conv.attrs.kernel_layout.index("O")] = -1
    new = const((weight * scale.reshape(along)).astype("float32"))
    out = [1] * 4
    out[conv.attrs.out_layout.index("C")] = -1
    call = Call.from_fields(conv.op, (conv.args[0], new), conv.attrs, conv.sinfo_args,
                            conv.struct_info_)
    return call, const(shift.reshape(out).astype("float32"))


__all__ = ["FoldBatchnormToConv2D"]
