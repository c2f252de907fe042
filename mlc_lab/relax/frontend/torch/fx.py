"""from_fx: a graph traced by `torch.fx.symbolic_trace`, as a Relax module.

Functions and methods go through the same rules as ATen operators; a layer of `torch.nn` is its
row in `fx_layers.py`. What has neither is traced by torch itself into ATen operators.
"""

from __future__ import annotations

import contextlib
import inspect
import operator
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ....ir.module import IRModule
from ....tir import op as O
from ....tir.expr import Add, FloorDiv, Mul, PrimExpr, Sub, Var as SizeVariable
from ....tir.functor import free_vars
from ...expr import Constant, Tuple, Var
from ...op.common import info_of
from ...struct_info import TensorStructInfo
from ..common import identifier
from . import exported_program  # noqa: F401  (fills the table of rules)
from .aliasing import NotRun, observed_facts
from .calling import names_of, place_of
from .convolutions import each
from .fx_layers import MODULES, Row
from .graphs import WRITING, GraphImporter, subgraphs_of
from .importer import RULES, Importer, dtype_name, is_tensor
from .scattering import functional_embedding_bag

if TYPE_CHECKING:
    from torch.fx import Node
    from ...expr import Expr
    from .importer import Steps


def _embedding(im: Importer, x: Expr, weight: Expr, padding_idx: int | None = None,
               max_norm: float | None = None, norm_type: float = 2.0,
               scale_grad_by_freq: bool = False, sparse: bool = False) -> Any:
    if max_norm is not None:
        raise ValueError("embedding with max_norm changes the table, which is not translated")
    return RULES["embedding"](im, weight, x)


def _batch_norm(im: Importer, x: Expr, running_mean: Expr | None, running_var: Expr | None,
                weight: Expr | None = None, bias: Expr | None = None, training: bool = False,
                momentum: float = 0.1, eps: float = 1e-5) -> Any:
    return RULES["batch_norm"](im, x, weight, bias, running_mean, running_var, training, momentum,
                               eps)


def _instance_norm(im: Importer, x: Expr, running_mean: Expr | None = None,
                   running_var: Expr | None = None, weight: Expr | None = None,
                   bias: Expr | None = None, use_input_stats: bool = True, momentum: float = 0.1,
                   eps: float = 1e-5) -> Any:
    return RULES["instance_norm"](im, x, weight, bias, running_mean, running_var, use_input_stats,
                                  momentum, eps)


def _unfold(im: Importer, x: Expr, kernel_size: Steps, dilation: Steps = 1, padding: Steps = 0,
            stride: Steps | None = 1) -> Any:
    return RULES["im2col"](im, x, kernel_size, dilation, padding, stride)


def _max_unpool(rank: int) -> Row:
    def row(im: Importer, x: Expr, indices: Expr, kernel_size: Steps, stride: Steps | None = None,
            padding: Steps = 0, output_size: Steps | None = None) -> Any:
        kernel = each(kernel_size, rank)
        steps, around = each(stride or kernel, rank), each(padding, rank)
        size = output_size or [(n - 1) * s + k - 2 * p for n, s, k, p in zip(
            im.shape(x)[-rank:], steps, kernel, around)]
        return RULES["max_unpool2d" if rank == 2 else "max_unpool3d"](im, x, indices, size)

    return row


#: functions of torch.nn.functional whose arguments come in another order than ATen's
FUNCTIONAL: dict[str, Row] = {
    "batch_norm": _batch_norm, "instance_norm": _instance_norm, "embedding": _embedding,
    "embedding_bag": functional_embedding_bag, "unfold": _unfold,
    "max_unpool2d": _max_unpool(2), "max_unpool3d": _max_unpool(3),
}

def from_fx(model: Any, input_info: Sequence[tuple[Sequence[Any], str]], *,
            keep_params_as_input: bool = False, unwrap_unit_return_tuple: bool = False,
            no_bind_return_tuple: bool = False,
            custom_convert_map: Mapping[Any, Callable] | None = None,
            default_image_layout: str = "NCHW") -> IRModule:
    """The function `main` of a `torch.fx.GraphModule`.

    `input_info` gives the shape and dtype of each input: `[((1, 3, 224, 224), "float32")]`; sizes
    may be `tir.Var("n", "int64")`, which stand for 1 or more. Parameters are constants, or with
    `keep_params_as_input` further parameters, whose values are in the attribute "params" (see
    `detach_params`). The result has the form that the model gives; `unwrap_unit_return_tuple`
    gives the one item of a tuple of one, `no_bind_return_tuple` returns a tuple without binding
    it. `custom_convert_map` gives rules `f(node, importer)` for classes of layers and for
    functions, or by their names.

    What the model writes to an input or a buffer, and does not return, comes after its own result,
    as in `from_exported_program`.

    Raises MissingOperators with all layers, functions and methods that have no rule, and their
    places; TypeError for a model that was not traced; ValueError for an argument that is not
    translated.
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


class _FxImporter(GraphImporter):
    """Translates one GraphModule."""

    frontend = "from_fx"

    def run(self, model: Any, input_info: Sequence[Any], keep: bool, unwrap: bool,
            no_bind: bool) -> IRModule:
        self.model, self.layers = model, dict(model.named_modules())
        nodes = list(model.graph.nodes)
        inputs = [Var(f"inp_{k}", TensorStructInfo(list(shape), dtype_name(dtype)))
                  for k, (shape, dtype) in enumerate(input_info)]
        self.check_inputs(nodes, inputs)
        self.inputs, self._fakes = inputs, None
        self.plan(nodes)
        if any(map(self.may_write, nodes)):
            self.watch(self.observed()[1])
        self.params: dict[int, Any] = {}
        variables, values = self.parameters(keep)
        attrs = {"num_input": len(inputs), "params": values} if keep else {}
        pure = not any(subgraphs_of(n) for n in nodes if n.op == "call_function")
        with self.builder.function("main", [*inputs, *variables], attrs=attrs):
            with self.builder.dataflow() if pure else contextlib.nullcontext():
                out = self.walk(nodes, iter(inputs), unwrap)
                given = list(out.fields_) if isinstance(out, Tuple) else [out]
                names, changed = self.changed(given)
                out = Tuple([*given, *changed]) if changed else out
                out = self.results(out, no_bind) if pure else out
            self.builder.emit_func_output(out)
        mod = self.module(pure)
        if names:
            mod.update_func(mod.get_global_var("main"), mod["main"].with_attr("changed", names))
        return mod

    def check_inputs(self, nodes: list[Any], inputs: list[Var]) -> None:
        """Refuse descriptions of inputs that are too few or too many."""
        holes = [n for n in nodes if n.op == "placeholder"]
        if len(inputs) > len(holes) or len(inputs) < len([n for n in holes if not n.args]):
            raise ValueError(f"the model takes {len(holes)} input(s) "
                             f"({', '.join(n.name for n in holes)}), input_info describes "
                             f"{len(inputs)}")

    def walk(self, nodes: list[Any], feed: Any, unwrap: bool) -> Any:
        """Translate all nodes; the result."""
        for node in nodes:
            if node.op == "placeholder":
                value = next(feed, None if not node.args else node.args[0])
                if not is_tensor(value) or self.aliases is None or not self.aliases.hold(
                        node, value, node.name):
                    self.env[node] = value
            elif node.op == "get_attr":
                self.hold_attribute(node)
            elif node.op == "output":
                return self.output(node, unwrap)
            else:
                self.step(node)
        return None

    def hold_attribute(self, node: Node) -> None:
        """Keep what the model holds itself."""
        held: Any = self.model
        name = str(node.target)
        for part in name.split("."):
            held = getattr(held, part)
        if not self.hold_stored(node, held, lambda: self.param(held), name):
            self.env[node] = self.attribute(self.model, name)

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

    def held(self, tensor: Any) -> Any:
        return self.param(tensor)

    # ------------------------------------------------------------------------- nodes

    def find(self, node: Node) -> Callable[..., Any] | None:
        if node.op == "call_module":
            return MODULES.get(type(self.layers[node.target]).__name__)
        if getattr(node.target, "__module__", "") == "torch.nn.functional":
            row = FUNCTIONAL.get(names_of(node.target)[-1])
            if row is not None:
                return row
        return super().find(node)

    def own_rule(self, node: Node) -> Callable[..., Any] | None:
        if node.op != "call_module":
            return super().own_rule(node)
        layer = type(self.layers[node.target])
        return self.custom.get(layer) or self.custom.get(layer.__name__)

    def called(self, node: Node) -> Any:
        row = self.find(node) if node.op == "call_module" else None
        if row is None or self.own_rule(node) is not None:
            return super().called(node)
        args, kwargs = self.arguments(node)
        if kwargs:
            bound = inspect.signature(self.layers[node.target].forward).bind(*args, **kwargs)
            args, kwargs = list(bound.args), bound.kwargs
        return row(self, self.layers[node.target], *args, **kwargs)

    def callable(self, node: Node) -> Callable[..., Any]:
        if node.op == "call_module":
            layer = self.layers[node.target]
            _, _, mode = self.observed()
            held = {name: mode.from_tensor(t) for name, t in (*layer.named_parameters(),
                                                              *layer.named_buffers())}
            import torch

            return lambda *args, **kwargs: torch.func.functional_call(layer, held, args, kwargs)
        if node.op == "call_method":
            return lambda x, *args, **kwargs: getattr(x, str(node.target))(*args, **kwargs)
        return super().callable(node)

    def name_of(self, node: Node) -> str:
        if node.op == "call_module":
            return f"torch.nn layer {type(self.layers[node.target]).__name__}"
        if node.op == "call_method":
            return f"method {node.target}"
        return f"function {getattr(node.target, '__name__', node.target)}"

    def view_names(self, node: Node) -> tuple[str, ...]:
        if node.op == "call_module":
            return (type(self.layers[node.target]).__name__.lower(),)
        return names_of(node.target)

    def output(self, node: Node, unwrap: bool) -> Any:
        """What the model gives."""
        value = self.argument(node.args[0])
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            value = [self.result(v) for v in value]
            return value[0] if unwrap and len(value) == 1 else Tuple(value)
        return self.result(value)

    def result(self, value: Any) -> Any:
        """One result; a size as a tensor of no dimensions, a tuple as one."""
        if isinstance(value, (list, tuple)):
            return Tuple([self.result(v) for v in value])
        if isinstance(value, (int, float, bool, PrimExpr)):
            return self.tensor(value, self.dtype(value))
        return value

    # ------------------------------------------------------------------------- torch's view

    def may_write(self, node: Node) -> bool:
        """Whether a node may write to one of its arguments, by its name and its arguments."""
        if node.op == "call_module":
            return bool(getattr(self.layers[node.target], "inplace", False))
        if node.op not in ("call_function", "call_method"):
            return False
        name = getattr(node.target, "__name__", str(node.target)).partition(".")[0]
        if (name.endswith("_") and not name.endswith("__")) or name.strip("_") in WRITING or (
                node.kwargs.get("inplace") or node.kwargs.get("out") is not None):
            return True
        return any(a is True for a in node.args) and "inplace" in _parameters_of(node.target)

    def observed(self) -> tuple[dict[Any, Any], Any, Any]:
        """Tensors without data for all nodes, what the nodes do to memory, and torch's mode."""
        if self._fakes is None:
            import torch
            from torch._subclasses.fake_tensor import FakeTensorMode

            mode, examples = self.examples(torch, FakeTensorMode)
            examples = iter(examples)
            holes = [n for n in self.model.graph.nodes if n.op == "placeholder"]
            given = [next(examples, n.args[0] if n.args else None) for n in holes]
            values: dict[Any, Any] = {}
            try:
                facts = observed_facts(self.model, given, mode, values)
            except Exception as error:
                at = getattr(error, "at_node", None)
                where = f" at {place_of(at)}" if at is not None else ""
                reason = str(error).strip().partition("\n")[0]
                raise NotRun(f"torch cannot run the model on such inputs{where}: {reason}"
                             ) from error
            self._fakes = (values, facts, mode)
        return self._fakes

    def fake(self, node: Node) -> Any:
        have = node.meta.get("val")
        return self.observed()[0].get(node) if have is None else have

    def examples(self, torch: Any, mode_of: Any) -> tuple[Any, list[Any]]:
        """torch's mode, and inputs without data, whose symbolic sizes are symbols of torch."""
        shapes = [info_of(var).dims or () for var in self.inputs]
        variables = list(dict.fromkeys(v for dims in shapes for d in dims for v in free_vars(d)))
        from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

        env, sizes = ShapeEnv(), {}
        if variables:
            from torch._dynamo.source import ConstantSource

            for k, v in enumerate(variables):
                hint, source = 5040 * (k + 1), ConstantSource(f"size_{k}")
                symbol = env.create_symbol(hint, source, DimDynamic.DYNAMIC, None)
                sizes[v] = env.create_symintnode(symbol, hint=hint, source=source)
                self.sizes.symbols[str(symbol)] = v
        mode = mode_of(allow_non_fake_inputs=True, shape_env=env, static_shapes=True)
        with mode:
            return mode, [torch.empty([_size(d, sizes) for d in dims],
                                      dtype=getattr(torch, info_of(var).dtype))
                          for var, dims in zip(self.inputs, shapes)]


def _size(e: PrimExpr, sizes: Mapping[SizeVariable, Any]) -> Any:
    """A size of an input as torch has it."""
    if isinstance(e, SizeVariable):
        return sizes[e]
    if O.as_int(e) is not None:
        return O.as_int(e)
    fold = {Add: operator.add, Sub: operator.sub, Mul: operator.mul, FloorDiv: operator.floordiv}
    if not isinstance(e, (Add, Sub, Mul, FloorDiv)):
        raise ValueError(f"the size {e} of an input is no sum, product or quotient of sizes")
    return fold[type(e)](_size(e.a, sizes), _size(e.b, sizes))


def _parameters_of(target: Any) -> Sequence[str]:
    try:
        return list(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return ()


__all__ = ["MODULES", "from_fx"]
