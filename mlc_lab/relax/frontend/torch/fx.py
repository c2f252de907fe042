"""from_fx: a graph traced by `torch.fx.symbolic_trace`, as a Relax module.

Functions and methods go through the same rules as ATen operators; a layer of `torch.nn` is its
row in `MODULES`, which calls a rule with the layer's parameters.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from ....ir.module import IRModule
from ...expr import Constant, Tuple, Var
from ...struct_info import TensorStructInfo
from ..common import identifier, located
from .exported_program import changes_its_argument, names_of
from .importer import RULES, Importer, dtype_name, lookup, place_of, refuse, rule
from .layers import _batch_norm, _instance_norm

Row = Callable[..., Any]


@rule("normalize")
def _normalize(im: Importer, x: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12,
               **kwargs: Any) -> Any:
    size = RULES["clamp_min"](im, RULES["norm"](im, x, p, dim, True), eps)
    return RULES["div"](im, x, size)


def _functional_batch_norm(im: Importer, x: Any, running_mean: Any, running_var: Any,
                           weight: Any = None, bias: Any = None, training: bool = False,
                           momentum: float = 0.1, eps: float = 1e-5) -> Any:
    return _batch_norm(im, x, weight, bias, running_mean, running_var, eps=eps)


def _functional_instance_norm(im: Importer, x: Any, running_mean: Any = None,
                              running_var: Any = None, weight: Any = None, bias: Any = None,
                              use_input_stats: bool = True, momentum: float = 0.1,
                              eps: float = 1e-5) -> Any:
    return _instance_norm(im, x, weight, bias, running_mean, running_var, use_input_stats,
                          momentum, eps)


#: functions of torch.nn.functional whose arguments come in another order than ATen's
FUNCTIONAL: dict[str, Row] = {
    "batch_norm": _functional_batch_norm, "instance_norm": _functional_instance_norm,
}


def _simple(name: str, *attributes: str) -> Row:
    """A layer that is a rule with some of its attributes as keyword arguments."""
    def row(im: "_FxImporter", layer: Any, *args: Any) -> Any:
        return RULES[name](im, *args, **{a: getattr(layer, a) for a in attributes})

    return row


def _linear(im: "_FxImporter", layer: Any, x: Any) -> Any:
    return RULES["linear"](im, x, im.param(layer.weight), im.param(layer.bias))


def _conv(im: "_FxImporter", layer: Any, x: Any) -> Any:
    rank = len(layer.kernel_size)
    if layer.padding_mode != "zeros":
        widths = list(layer._reversed_padding_repeated_twice)
        x = RULES["pad"](im, x, widths, layer.padding_mode)
        padding: Any = 0
    else:
        padding = layer.padding if isinstance(layer.padding, str) else list(layer.padding)
    return RULES[f"conv{rank}d"](im, x, im.param(layer.weight), im.param(layer.bias),
                                 list(layer.stride), padding, list(layer.dilation), layer.groups)


def _conv_transpose(im: "_FxImporter", layer: Any, x: Any) -> Any:
    rank = len(layer.kernel_size)
    return RULES[f"conv_transpose{rank}d"](
        im, x, im.param(layer.weight), im.param(layer.bias), list(layer.stride),
        list(layer.padding), list(layer.output_padding), layer.groups, list(layer.dilation))


def _batch(im: "_FxImporter", layer: Any, x: Any) -> Any:
    return _batch_norm(im, x, *(im.param(p) for p in (
        layer.weight, layer.bias, layer.running_mean, layer.running_var)), eps=layer.eps)


def _instance(im: "_FxImporter", layer: Any, x: Any) -> Any:
    return _instance_norm(im, x, *(im.param(p) for p in (
        layer.weight, layer.bias, layer.running_mean, layer.running_var)),
        not layer.track_running_stats, 0.1, layer.eps)


def _layer(im: "_FxImporter", layer: Any, x: Any) -> Any:
    return RULES["layer_norm"](im, x, list(layer.normalized_shape), im.param(layer.weight),
                               im.param(layer.bias), layer.eps)


def _rms(im: "_FxImporter", layer: Any, x: Any) -> Any:
    return RULES["rms_norm"](im, x, list(layer.normalized_shape), im.param(layer.weight),
                             layer.eps)


def _group(im: "_FxImporter", layer: Any, x: Any) -> Any:
    return RULES["group_norm"](im, x, layer.num_groups, im.param(layer.weight),
                               im.param(layer.bias), layer.eps)


def _embedding(im: "_FxImporter", layer: Any, x: Any) -> Any:
    return RULES["embedding"](im, im.param(layer.weight), x)


def _pad(mode: str) -> Row:
    def row(im: "_FxImporter", layer: Any, x: Any) -> Any:
        return RULES["pad"](im, x, list(layer.padding), mode, getattr(layer, "value", 0.0))

    return row


def _unflatten(im: "_FxImporter", layer: Any, x: Any) -> Any:
    return RULES["unflatten"](im, x, layer.dim, list(layer.unflattened_size))


#: class of torch.nn -> row
MODULES: dict[str, Row] = {
    "Linear": _linear, "LayerNorm": _layer, "RMSNorm": _rms, "GroupNorm": _group,
    "Embedding": _embedding, "Unflatten": _unflatten,
    "Flatten": _simple("flatten", "start_dim", "end_dim"),
    "Softmax": _simple("softmax", "dim"), "LogSoftmax": _simple("log_softmax", "dim"),
    "GELU": _simple("gelu", "approximate"), "LeakyReLU": _simple("leaky_relu", "negative_slope"),
    "ELU": _simple("elu", "alpha"), "CELU": _simple("celu", "alpha"),
    "Softplus": _simple("softplus", "beta", "threshold"),
    "Threshold": _simple("threshold", "threshold", "value"),
    "CosineSimilarity": _simple("cosine_similarity", "dim", "eps"),
    "Hardtanh": _simple("hardtanh", "min_val", "max_val"), "GLU": _simple("glu", "dim"),
    "PReLU": lambda im, layer, x: RULES["prelu"](im, x, im.param(layer.weight)),
    "Upsample": _simple("interpolate", "size", "scale_factor", "mode", "align_corners"),
    "UpsamplingNearest2d": _simple("interpolate", "size", "scale_factor"),
    "UpsamplingBilinear2d": lambda im, layer, x: RULES["interpolate"](
        im, x, layer.size, layer.scale_factor, "bilinear", True),
    "PixelShuffle": _simple("pixel_shuffle", "upscale_factor"),
    "CrossEntropyLoss": lambda im, layer, x, y: RULES["cross_entropy"](
        im, x, y, im.param(layer.weight), reduction=layer.reduction,
        ignore_index=layer.ignore_index),
}
for _class, _name in (("ReLU", "relu"), ("ReLU6", "relu6"), ("SiLU", "silu"), ("SELU", "selu"),
                      ("Sigmoid", "sigmoid"), ("Tanh", "tanh"), ("Hardswish", "hardswish"),
                      ("Hardsigmoid", "hardsigmoid"), ("Mish", "mish"), ("Identity", "identity"),
                      ("LogSigmoid", "logsigmoid"), ("Softsign", "softsign"),
                      ("Dropout", "dropout"), ("Dropout1d", "dropout"), ("Dropout2d", "dropout"),
                      ("Dropout3d", "dropout"), ("AlphaDropout", "dropout")):
    MODULES[_class] = _simple(_name)
for _rank in (1, 2, 3):
    MODULES[f"Conv{_rank}d"] = _conv
    MODULES[f"ConvTranspose{_rank}d"] = _conv_transpose
    MODULES[f"BatchNorm{_rank}d"] = _batch
    MODULES[f"InstanceNorm{_rank}d"] = _instance
    MODULES[f"MaxPool{_rank}d"] = _simple(f"max_pool{_rank}d", "kernel_size", "stride", "padding",
                                          "dilation", "ceil_mode", "return_indices")
    MODULES[f"AvgPool{_rank}d"] = _simple(f"avg_pool{_rank}d", "kernel_size", "stride", "padding",
                                          "ceil_mode", "count_include_pad")
    MODULES[f"AdaptiveAvgPool{_rank}d"] = _simple(f"adaptive_avg_pool{_rank}d", "output_size")
    MODULES[f"AdaptiveMaxPool{_rank}d"] = _simple(f"adaptive_max_pool{_rank}d", "output_size",
                                                  "return_indices")
    for _class, _mode in (("ZeroPad", "constant"), ("ConstantPad", "constant"),
                          ("ReflectionPad", "reflect"), ("ReplicationPad", "replicate"),
                          ("CircularPad", "circular")):
        MODULES[f"{_class}{_rank}d"] = _pad(_mode)


def from_fx(model: Any, input_info: Sequence[tuple[Sequence[Any], str]], *,
            keep_params_as_input: bool = False, unwrap_unit_return_tuple: bool = False,
            no_bind_return_tuple: bool = False,
            custom_convert_map: Mapping[Any, Callable] | None = None,
            default_image_layout: str = "NCHW") -> IRModule:
    """The function `main` of a `torch.fx.GraphModule`.

    `input_info` gives the shape and dtype of each input: `[((1, 3, 224, 224), "float32")]`; sizes
    may be `tir.Var("n", "int64")`. Parameters are constants, or with `keep_params_as_input` further
    parameters, whose values are in the attribute "params" (see `detach_params`). The result has the
    form that the model gives; `unwrap_unit_return_tuple` gives the one item of a tuple of one,
    `no_bind_return_tuple` returns a tuple without binding it. `custom_convert_map` gives rules
    `f(node, importer)` for classes of layers and for functions, or by their names.

    Raises MissingOperators with all layers, functions and methods that have no rule, and their
    places; TypeError for a model that was not traced.
    """
    if not (hasattr(model, "graph") and hasattr(model, "named_modules")):
        advice = ("it is an exported program: use from_exported_program"
                  if hasattr(model, "graph_signature") else
                  "trace the model first: from_fx(torch.fx.symbolic_trace(model), input_info)")
        raise TypeError(f"from_fx takes a torch.fx.GraphModule, not {type(model).__name__}; "
                        f"{advice}")
    if default_image_layout != "NCHW":
        raise ValueError(f"default_image_layout {default_image_layout}: models of torch are NCHW; "
                         "use relax.transform.ConvertLayout on the result")
    return _FxImporter(custom_convert_map).run(
        model, input_info, keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple)


class _FxImporter(Importer):
    """Translates one GraphModule."""

    def run(self, model: Any, input_info: Sequence[Any], keep: bool, unwrap: bool,
            no_bind: bool) -> IRModule:
        self.model, self.layers = model, dict(model.named_modules())
        nodes = list(model.graph.nodes)
        refuse("from_fx", [m for n in nodes for m in self.missing(n)])
        inputs = [Var(f"inp_{k}", TensorStructInfo(list(shape), dtype_name(dtype)))
                  for k, (shape, dtype) in enumerate(input_info)]
        holes = [n for n in nodes if n.op == "placeholder"]
        given = [n for n in holes if not n.args or n.users]
        if len(inputs) > len(holes) or len(inputs) < len([n for n in given if not n.args]):
            raise ValueError(f"the model takes {len(holes)} input(s) "
                             f"({', '.join(n.name for n in holes)}), input_info describes "
                             f"{len(inputs)}")
        self.params: dict[int, Any] = {}
        variables, values = self.parameters(keep)
        attrs = {"num_input": len(inputs), "params": values} if keep else {}
        feed = iter(inputs)
        with self.builder.function("main", [*inputs, *variables], attrs=attrs):
            out: Any = None
            with self.builder.dataflow():
                for node in nodes:
                    if node.op == "placeholder":
                        self.env[node] = next(feed, None if not node.args else node.args[0])
                    elif node.op == "output":
                        out = self.output(node, unwrap)
                    else:
                        self.env[node] = self.value(node)
                if no_bind and isinstance(out, Tuple):
                    out = Tuple([self.builder.emit_output(f) for f in out.fields_])
                else:
                    out = self.builder.emit_output(out)
            self.builder.emit_func_output(out)
        return self.builder.get()

    def parameters(self, keep: bool) -> tuple[list[Var], list[Any]]:
        """With `keep`, a variable for each parameter and buffer, and their values."""
        variables: list[Var] = []
        values: list[Any] = []
        if keep:
            for name, tensor in (*self.model.named_parameters(), *self.model.named_buffers()):
                if name.endswith("num_batches_tracked"):
                    continue
                value = self.parameter(tensor)
                var = Var(identifier(name), TensorStructInfo(tuple(value.shape), str(value.dtype)))
                variables.append(var)
                values.append(value)
                self.params[id(tensor)] = var
        return variables, values

    def param(self, tensor: Any) -> Any:
        """A parameter of a layer; None stays."""
        if tensor is None:
            return None
        made = self.params.get(id(tensor))
        if made is None:
            made = self.params[id(tensor)] = Constant(self.parameter(tensor))
        return made

    # ------------------------------------------------------------------------- nodes

    def missing(self, node: Any) -> list[tuple[str, str]]:
        """What a node needs and has no rule."""
        if node.op == "call_module":
            layer = self.layers[node.target]
            if self.layer_rule(layer) is None:
                return [(f"torch.nn layer {type(layer).__name__}", f"layer {node.target}")]
        elif node.op in ("call_function", "call_method"):
            if self.custom.get(node.target) is None and lookup(
                    self, names_of(node.target)) is None:
                kind = "method" if node.op == "call_method" else "function"
                name = names_of(node.target)[0 if node.op == "call_method" else 1]
                return [(f"{kind} {name}", place_of(node))]
        return []

    def layer_rule(self, layer: Any) -> Row | None:
        """The row of a layer: the user's, or the one of its class."""
        for kind in (type(layer), type(layer).__name__):
            if kind in self.custom:
                return self.custom[kind]
        return MODULES.get(type(layer).__name__)

    def argument(self, value: Any) -> Any:
        """An argument of a node: values of other nodes put in."""
        kind = type(value)
        if kind.__name__ == "Node" and hasattr(value, "op"):
            return self.env[value]
        if isinstance(value, (list, tuple)):
            made = [self.argument(v) for v in value]
            return made if not isinstance(value, tuple) else tuple(made)
        if kind is slice:
            return slice(*(self.argument(v) for v in (value.start, value.stop, value.step)))
        if isinstance(value, dict):
            return {k: self.argument(v) for k, v in value.items()}
        return value

    def value(self, node: Any) -> Any:
        """What a node gives."""
        if node.op == "get_attr":
            held = self.model
            for part in node.target.split("."):
                held = getattr(held, part)
            return self.param(held)
        args = [self.argument(a) for a in node.args]
        kwargs = {k: self.argument(v) for k, v in node.kwargs.items()
                  if k not in ("device", "inplace", "training", "_stacklevel", "memory_format")}
        try:
            if node.op == "call_module":
                layer = self.layers[node.target]
                row = self.layer_rule(layer)
                if row in self.custom.values():
                    return row(node, self)
                return row(self, layer, *args, **kwargs)
            out = self.called(node, args, kwargs)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise located(error, f"{node.target} at {place_of(node)}") from error
        if changes_its_argument(node.target) and node.args:
            self.env[node.args[0]] = out
        return out

    def called(self, node: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The value of a call of a function or method."""
        names = names_of(node.target)
        for key in (node.target, *names):
            if key in self.custom:
                return self.custom[key](node, self)
        if getattr(node.target, "__module__", "") == "torch.nn.functional" and (
                names[-1] in FUNCTIONAL):
            return FUNCTIONAL[names[-1]](self, *args, **kwargs)
        fn = lookup(self, names)
        if names[-1] in ("dropout", "dropout2d"):
            args = args[:1]
        return fn(self, *args, **kwargs)

    def output(self, node: Any, unwrap: bool) -> Any:
        """What the model gives."""
        value = self.argument(node.args[0])
        if isinstance(value, (list, tuple)):
            return value[0] if unwrap and len(value) == 1 else Tuple(list(value))
        if isinstance(value, dict):
            return Tuple(list(value.values()))
        return value


__all__ = ["MODULES", "from_fx"]
