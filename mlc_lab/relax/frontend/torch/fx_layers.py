"""Layers of torch.nn for from_fx: a row a class, which calls a rule with the layer's parameters.

A class without a row is traced by torch itself, as functions without a rule are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from .calling import ADVICE_EVAL
from .convolutions import CONV, CONV_TRANSPOSE
from .importer import RULES
from .norms import instance_norm, normalised
from .pooling import ADAPTIVE_AVERAGE, ADAPTIVE_MAX, AVERAGE, MAX

if TYPE_CHECKING:
    from ...expr import Expr
    from .importer import Importer

#: a layer of torch.nn; which attributes it has says its class
Module = Any
#: `row(importer, layer, *arguments)`
Row = Callable[..., Any]


def _simple(name: str, *attributes: str) -> Row:
    """A layer that is a rule with some of its attributes as keyword arguments."""
    def row(im: Importer, layer: Module, *args: Any) -> Any:
        return RULES[name](im, *args, **{a: getattr(layer, a) for a in attributes})

    return row


def _linear(im: Any, layer: Module, x: Expr) -> Any:
    return RULES["linear"](im, x, im.param(layer.weight), im.param(layer.bias))


def _conv(im: Any, layer: Module, x: Expr) -> Any:
    rank = len(layer.kernel_size)
    if layer.padding_mode != "zeros":
        widths = list(layer._reversed_padding_repeated_twice)
        x = RULES["pad"](im, x, widths, layer.padding_mode)
        padding: Any = 0
    else:
        padding = layer.padding if isinstance(layer.padding, str) else list(layer.padding)
    return RULES[CONV[rank]](im, x, im.param(layer.weight), im.param(layer.bias),
                             list(layer.stride), padding, list(layer.dilation), layer.groups)


def _conv_transpose(im: Any, layer: Module, x: Expr) -> Any:
    rank = len(layer.kernel_size)
    return RULES[CONV_TRANSPOSE[rank]](
        im, x, im.param(layer.weight), im.param(layer.bias), list(layer.stride),
        list(layer.padding), list(layer.output_padding), layer.groups, list(layer.dilation))


def _statistics(im: Any, layer: Module) -> tuple[Any, Any, Any, Any]:
    return (im.param(layer.weight), im.param(layer.bias), im.param(layer.running_mean),
            im.param(layer.running_var))


def _batch(im: Any, layer: Module, x: Any) -> Any:
    return normalised(im, x, *_statistics(im, layer), layer.training, layer.eps)


def _instance(im: Importer, layer: Module, x: Expr) -> Any:
    by_input = layer.training or not layer.track_running_stats
    if layer.training and layer.track_running_stats:
        raise ValueError("instance_norm in training changes its running statistics, which is not "
                         f"translated: {ADVICE_EVAL}")
    rank = int(type(layer).__name__[-2])
    from ... import op

    alone = im.ndim(x) == rank + 1
    if alone:
        x = im.emit(op.expand_dims(x, 0))
    out = instance_norm(im, x, *_statistics(im, layer), by_input, eps=layer.eps)
    return im.emit(op.squeeze(out, [0])) if alone else out


def _layer(im: Any, layer: Module, x: Expr) -> Any:
    return RULES["layer_norm"](im, x, list(layer.normalized_shape), im.param(layer.weight),
                               im.param(layer.bias), layer.eps)


def _rms(im: Any, layer: Module, x: Expr) -> Any:
    return RULES["rms_norm"](im, x, list(layer.normalized_shape), im.param(layer.weight),
                             layer.eps)


def _group(im: Any, layer: Module, x: Expr) -> Any:
    return RULES["group_norm"](im, x, layer.num_groups, im.param(layer.weight),
                               im.param(layer.bias), layer.eps)


def _embedding(im: Any, layer: Module, x: Expr) -> Any:
    if layer.max_norm is not None:
        raise ValueError("Embedding with max_norm changes its table, which is not translated")
    return RULES["embedding"](im, im.param(layer.weight), x)


def _pad(mode: str) -> Row:
    def row(im: Importer, layer: Module, x: Expr) -> Any:
        return RULES["pad"](im, x, list(layer.padding), mode, getattr(layer, "value", 0.0))

    return row


def _unflatten(im: Importer, layer: Module, x: Expr) -> Any:
    return RULES["unflatten"](im, x, layer.dim, list(layer.unflattened_size))


def _interpolate(im: Importer, layer: Module, x: Expr) -> Any:
    return RULES["interpolate"](im, x, layer.size, layer.scale_factor, layer.mode,
                                layer.align_corners,
                                getattr(layer, "recompute_scale_factor", None))


def _cross_entropy(im: Any, layer: Module, x: Expr, target: Expr) -> Any:
    return RULES["cross_entropy"](im, x, target, im.param(layer.weight), layer.reduction,
                                  layer.ignore_index, layer.label_smoothing)


def _nll(im: Any, layer: Module, x: Expr, target: Expr) -> Any:
    return RULES["nll_loss"](im, x, target, im.param(layer.weight), layer.reduction,
                             layer.ignore_index)


def _softmax_2d(im: Importer, layer: Module, x: Expr) -> Any:
    return RULES["softmax"](im, x, -3)


#: class of torch.nn -> row
MODULES: dict[str, Row] = {
    "Linear": _linear, "NonDynamicallyQuantizableLinear": _linear, "LayerNorm": _layer,
    "RMSNorm": _rms, "GroupNorm": _group, "Embedding": _embedding, "Unflatten": _unflatten,
    "Flatten": _simple("flatten", "start_dim", "end_dim"),
    "Softmax": _simple("softmax", "dim"), "LogSoftmax": _simple("log_softmax", "dim"),
    "Softmin": _simple("softmin", "dim"), "Softmax2d": _softmax_2d,
    "GELU": _simple("gelu", "approximate"), "LeakyReLU": _simple("leaky_relu", "negative_slope"),
    "ELU": _simple("elu", "alpha"), "CELU": _simple("celu", "alpha"),
    "Softplus": _simple("softplus", "beta", "threshold"),
    "Threshold": _simple("threshold", "threshold", "value"),
    "Hardshrink": _simple("hardshrink", "lambd"), "Softshrink": _simple("softshrink", "lambd"),
    "CosineSimilarity": _simple("cosine_similarity", "dim", "eps"),
    "Hardtanh": _simple("hardtanh", "min_val", "max_val"), "GLU": _simple("glu", "dim"),
    "RReLU": _simple("rrelu", "lower", "upper", "training"),
    "PReLU": lambda im, layer, x: RULES["prelu"](im, x, im.param(layer.weight)),
    "Upsample": _interpolate, "UpsamplingNearest2d": _interpolate,
    "UpsamplingBilinear2d": _interpolate,
    "PixelShuffle": _simple("pixel_shuffle", "upscale_factor"),
    "PixelUnshuffle": _simple("pixel_unshuffle", "downscale_factor"),
    "ChannelShuffle": _simple("channel_shuffle", "groups"),
    "LocalResponseNorm": _simple("local_response_norm", "size", "alpha", "beta", "k"),
    "CrossEntropyLoss": _cross_entropy, "NLLLoss": _nll,
    "MSELoss": _simple("mse_loss", "reduction"), "L1Loss": _simple("l1_loss", "reduction"),
    "SmoothL1Loss": _simple("smooth_l1_loss", "reduction", "beta"),
    "HuberLoss": _simple("huber_loss", "reduction", "delta"),
    "KLDivLoss": _simple("kl_div", "reduction", "log_target"),
    "Unfold": _simple("im2col", "kernel_size", "dilation", "padding", "stride"),
    "Fold": _simple("col2im", "output_size", "kernel_size", "dilation", "padding", "stride"),
}
for _class, _name in (("ReLU", "relu"), ("ReLU6", "relu6"), ("SiLU", "silu"), ("SELU", "selu"),
                      ("Sigmoid", "sigmoid"), ("Tanh", "tanh"), ("Hardswish", "hardswish"),
                      ("Hardsigmoid", "hardsigmoid"), ("Mish", "mish"), ("Identity", "identity"),
                      ("LogSigmoid", "logsigmoid"), ("Softsign", "softsign"),
                      ("Tanhshrink", "tanhshrink")):
    MODULES[_class] = _simple(_name)
for _class in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout",
               "FeatureAlphaDropout"):
    MODULES[_class] = _simple("dropout", "p", "training")
MODULES["StochasticDepth"] = _simple("stochastic_depth", "p", "mode", "training")
MODULES.update(dict.fromkeys(("Conv1d", "Conv2d", "Conv3d"), _conv))
MODULES.update(dict.fromkeys(("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
                             _conv_transpose))
MODULES.update(dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), _batch))
MODULES.update(dict.fromkeys(("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"), _instance))
for _rank, _max, _average, _fit, _fit_max in (
        (1, "MaxPool1d", "AvgPool1d", "AdaptiveAvgPool1d", "AdaptiveMaxPool1d"),
        (2, "MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d"),
        (3, "MaxPool3d", "AvgPool3d", "AdaptiveAvgPool3d", "AdaptiveMaxPool3d")):
    MODULES[_max] = _simple(MAX[_rank], "kernel_size", "stride", "padding", "dilation",
                            "ceil_mode", "return_indices")
    MODULES[_average] = _simple(
        AVERAGE[_rank], "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
        *(() if _rank == 1 else ("divisor_override",)))
    MODULES[_fit] = _simple(ADAPTIVE_AVERAGE[_rank], "output_size")
    MODULES[_fit_max] = _simple(ADAPTIVE_MAX[_rank], "output_size", "return_indices")
for _mode, _pads in (
        ("constant", ("ZeroPad1d", "ZeroPad2d", "ZeroPad3d", "ConstantPad1d", "ConstantPad2d",
                      "ConstantPad3d")),
        ("reflect", ("ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d")),
        ("replicate", ("ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d")),
        ("circular", ("CircularPad1d", "CircularPad2d", "CircularPad3d"))):
    MODULES.update(dict.fromkeys(_pads, _pad(_mode)))

__all__ = ["MODULES", "Row"]
