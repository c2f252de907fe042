"""from_onnx: the graph of an ONNX model, node by node, by a table of rules.

A value on the way is a Relax variable, a numpy array (initializers and what is computed of them
alone), or `Sizes`, some of them symbolic, which shape computations give.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from ....above import above
from ....ir.dtype import canonical
from ....ir.module import IRModule
from ....runtime import array
from ....tir import op as O
from ....tir.expr import PrimExpr, SizeVar
from ...block_builder import BlockBuilder
from ...expr import Constant, Expr, ShapeExpr, Tuple, Var, const
from ...op.common import info_of
from ...struct_info import ShapeStructInfo, TensorStructInfo
from ...transform.convert_to_dataflow import ConvertToDataflow
from ...transform.dead_code_elimination import remove_all_unused
from ...transform.lambda_lift import LambdaLift
from ...transform.rewriting import map_functions
from ..common import MissingOperators, analyzer_of, identifier, located
from .functions import at_once, body_of, is_defined
from .given import Attributes, Inputs, Items, Sizes

if TYPE_CHECKING:
    #: a value on the way
    Given = Expr | np.ndarray | Sizes

#: rule by operator: `rule(importer, inputs, attrs)`
RULES: dict[str, Callable[..., Any]] = {}

#: numbers of ONNX's TensorProto.DataType
DTYPES = {1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
          9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16"}


def rule(*names: str) -> Callable[[Callable], Callable]:
    """A decorator: the function translates these operators."""
    def add(fn: Callable) -> Callable:
        for name in names:
            RULES[name] = fn
        return fn

    return add


def dtype_of(number: int) -> str:
    """The dtype with a number of ONNX's. Raises ValueError for one that is not there here."""
    if number not in DTYPES:
        raise ValueError(f"the data type {number} of ONNX (strings, complex numbers, float8 and "
                         "numbers of 4 bits are others) is not translated")
    return DTYPES[number]


class Missing(str):
    """Why an output of a node is not there: an error of who uses it."""


def from_onnx(model: Any, shape_dict: Mapping[str, Sequence[Any]] | None = None,
              dtype_dict: Any = None, opset: int | None = None,
              keep_params_in_input: bool = False, sanitize_input_names: bool = True) -> IRModule:
    """The function `main` of an ONNX model (a ModelProto, or the path of a file).

    `shape_dict` and `dtype_dict` (one dtype, or one for each name) take the place of what the model
    says of its inputs; dimensions it names ("batch") become symbolic. Initializers are constants,
    or with `keep_params_in_input` further parameters, whose values are in the attribute "params"
    (see `detach_params`). One output is returned as it is, several as a tuple.

    Raises MissingOperators with all operators that have no rule, and where they stand; ValueError
    for a name in `shape_dict` that no input has, for a value that no node makes, and for an
    attribute or an input of a node that is not translated: none is dropped.
    """
    try:
        import onnx
        import onnx.inliner
        import onnx.reference
    except ImportError as error:
        raise ImportError("importing ONNX models needs the package onnx: pip install onnx"
                          ) from error
    above("rules of ONNX")

    if not hasattr(model, "graph"):
        model = onnx.load(model)
    version = opset
    if version is None:
        version = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")),
                    default=1)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    return Importer(onnx, version, keep_params_in_input, sanitize_input_names).run(
        model.graph, dict(shape_dict or {}), dtype_dict)


class Importer:
    """One import."""

    dtypes = DTYPES

    def __init__(self, onnx: Any, opset: int, keep: bool, sanitize: bool) -> None:
        self.onnx, self.opset, self.keep, self.sanitize = onnx, opset, keep, sanitize
        self.builder = BlockBuilder()
        self.env: dict[str, Any] = {"": None}
        self.untranslated: dict[str, str] = {}
        self.symbols: dict[str, SizeVar] = {}
        #: name and array of each initializer, by the id of the array
        self.initializers: dict[int, tuple[str, np.ndarray]] = {}
        self.params: dict[str, tuple[Var, Any]] = {}
        #: how many outputs the node that is translated has
        self.outputs = 1

    def run(self, graph: Any, shapes: Mapping[str, Any], dtypes: Any) -> IRModule:
        """The module of a graph."""
        self.need_rules(self.all_nodes(graph))
        self.hold(graph)
        holes = [i for i in graph.input if i.name not in self.env]
        for what, given in (("shape_dict", shapes), ("dtype_dict", dtypes)):
            strange = [n for n in given if n not in {i.name for i in holes}] if isinstance(
                given, Mapping) else []
            if strange:
                raise ValueError(f"{what} names {', '.join(map(repr, strange))}, which is no input "
                                 f"of the model; its inputs: "
                                 f"{', '.join(repr(i.name) for i in holes) or 'none'}")
        inputs = [self.input(i, shapes, dtypes) for i in holes]
        pure = not any(n.op_type in ("If", "Loop") for n in self.all_nodes(graph))
        with self.builder.function("main"):
            with self.builder.dataflow() if pure else contextlib.nullcontext():
                for node in graph.node:
                    self.translate(node)
                outs = [self.tensor(self.value(o.name, "the graph's outputs"))
                        for o in graph.output]
                out = outs[0] if len(outs) == 1 else Tuple(outs)
                out = self.builder.emit_output(out) if pure else out
            variables = [v for v, _ in self.params.values()]
            self.builder.emit_func_output(out, params=[*inputs, *variables])
        mod = map_functions(self.builder.get(), remove_all_unused)
        if not pure:
            mod = ConvertToDataflow(min_size=1)(LambdaLift()(mod))
        if self.keep:
            func = mod["main"].with_attr("num_input", len(inputs))
            func = func.with_attr("params", [v for _, v in self.params.values()])
            mod.update_func(mod.get_global_var("main"), func)
        return mod

    def all_nodes(self, graph: Any) -> Iterator[Any]:
        """The nodes of a graph and of the graphs within it."""
        for node in graph.node:
            yield node
            for a in node.attribute:
                for inner in (a.g, *a.graphs):
                    yield from self.all_nodes(inner)

    def need_rules(self, nodes: Iterable[Any]) -> None:
        """Raise MissingOperators with those of the nodes that there is nothing for."""
        missing = [(n.op_type, f"node {n.name or '(unnamed)'} that makes {', '.join(n.output)}")
                   for n in nodes if n.domain not in ("", "ai.onnx", "com.microsoft")
                   or n.op_type not in RULES and not is_defined(self.onnx, n, self.opset)]
        if missing:
            raise MissingOperators("from_onnx", missing, "write the model with other operators, "
                                   "or register a rule in frontend.onnx.importer.RULES")

    def hold(self, graph: Any) -> None:
        """Put the initializers of a graph into the environment."""
        for tensor in graph.initializer:
            value = self.onnx.numpy_helper.to_array(tensor)
            self.env[tensor.name] = value
            self.initializers[id(value)] = tensor.name, value

    def inlined(self, graph: Any, given: Sequence[Any]) -> list[Any]:
        """The values of a graph within a node, which sees the names around it."""
        around = self.env
        self.env = dict(around)
        try:
            self.hold(graph)
            self.env.update(zip((i.name for i in graph.input), given))
            for node in graph.node:
                self.translate(node)
            return [self.value(o.name, "the outputs of a graph within a node")
                    for o in graph.output]
        finally:
            self.env = around

    def taken_apart(self, node: Any, inputs: Sequence[Any]) -> list[Any]:
        """The values of a node that ONNX defines by other operators."""
        body = body_of(self, node, list(inputs))
        around = self.env, self.untranslated, self.opset
        self.env, self.untranslated = {"": None}, {}
        self.opset = max((o.version for o in body.opset_import if not o.domain),
                         default=self.opset)
        try:
            self.need_rules(self.all_nodes(body))
            self.env.update((name, None) for name in body.input)
            self.env.update(zip(body.input, inputs))
            for inner in body.node:
                self.translate(inner)
            return [self.env[name] if name in self.env else Missing("its definition has no such "
                                                                    "result with these inputs")
                    for name in body.output]
        finally:
            self.env, self.untranslated, self.opset = around

    def input(self, info: Any, shapes: Mapping[str, Any], dtypes: Any) -> Var:
        """The variable of an input of the graph."""
        kind = info.type.tensor_type
        dims = []
        for k, d in enumerate(kind.shape.dim):
            if d.HasField("dim_value"):
                dims.append(d.dim_value)
            else:
                name = identifier(d.dim_param or f"{info.name}_{k}")
                dims.append(self.symbols.setdefault(name, SizeVar(name, "int64")))
        if info.name in shapes:
            dims = list(shapes[info.name])
        if isinstance(dtypes, Mapping):
            dtype = dtypes.get(info.name)
        else:
            dtype = dtypes if kind.elem_type == 0 else None
        dtype = dtype or DTYPES.get(kind.elem_type, "float32")
        name = identifier(info.name) if self.sanitize else info.name
        var = Var(name, TensorStructInfo(dims, canonical(dtype)))
        self.env[info.name] = var
        return var

    def translate(self, node: Any) -> None:
        """Put the values of a node's outputs into the environment."""
        attrs = Attributes({a.name: self.attribute(a) for a in node.attribute})
        place = f"{node.op_type} {node.name or 'that makes ' + ', '.join(node.output)}"
        inputs = Inputs(self.value(name, place) for name in node.input)
        self.outputs = len(node.output)
        try:
            out = at_once(self, node, list(inputs))
            if out is None and node.op_type in RULES:
                inputs.seen.clear()
                out = RULES[node.op_type](self, inputs, attrs)
                self.nothing_dropped(node, inputs, attrs)
            elif out is None:
                out = self.taken_apart(node, inputs)
        except (TypeError, ValueError, KeyError, IndexError) as error:
            raise located(error, place) from error
        several = isinstance(out, (list, tuple)) and not isinstance(out, (Sizes, Items))
        values = list(out) if several else [out]
        for name, value in zip(node.output, values):
            if not name:  # nobody uses it, and "" is what is left out
                continue
            if isinstance(value, Missing):
                self.env.pop(name, None)
                self.untranslated[name] = f"output of {place}: {value}"
                continue
            self.env[name] = np.asarray(value) if isinstance(value, np.generic) else value
        for k, name in enumerate(node.output[len(values):], len(values)):
            self.untranslated[name] = f"output {k} of {place} is not translated"

    def nothing_dropped(self, node: Any, inputs: Inputs, attrs: Attributes) -> None:
        """Raise ValueError for what a node says and its rule has not looked at."""
        names = attrs.dropped({})
        if names:  # perhaps it says what holds anyway
            names = attrs.dropped(self.defaults(node))
        if names:
            what = ", ".join(f"{n} = {dict(attrs)[n]!r}" for n in names)
            raise ValueError(f"the attribute {what} is not translated, and the result would be "
                             "another one without it")
        if inputs.dropped():
            k = inputs.dropped()[0]
            raise ValueError(f"input {k}, {node.input[k]!r}, is not translated, and the result "
                             "would be another one without it")

    def defaults(self, node: Any) -> dict[str, Any]:
        """What the attributes of a node are where it does not say it."""
        try:
            schema = self.onnx.defs.get_schema(node.op_type, self.opset, node.domain)
        except self.onnx.defs.SchemaError:
            return {}
        return {name: self.attribute(a.default_value) for name, a in schema.attributes.items()
                if a.default_value.type}

    def value(self, name: str, user: str) -> Any:
        """The value of a name that a node, or the graph's outputs, use."""
        if name in self.env:
            return self.env[name]
        if name in self.untranslated:
            raise ValueError(f"{user}: the value {name!r} is not there: {self.untranslated[name]}")
        raise ValueError(f"{user}: the value {name!r} is made by no node before it, and is no "
                         "input or initializer of the graph")

    def attribute(self, a: Any) -> Any:
        """An attribute as a Python value."""
        value = self.onnx.helper.get_attribute_value(a)
        if isinstance(value, bytes):
            return value.decode()
        if hasattr(value, "raw_data"):
            return self.onnx.numpy_helper.to_array(value)
        if isinstance(value, self.onnx.GraphProto):
            return value
        return list(value) if not isinstance(value, (int, float, str)) else value

    # ------------------------------------------------------------------------- values

    def emit(self, expr: Expr) -> Any:
        """Bind an expression to a variable; a leaf stays."""
        return self.builder.emit(expr)

    def tensor(self, value: Given | np.generic | float) -> Expr:
        """A value as a tensor of the program."""
        if isinstance(value, Expr):
            return value
        if isinstance(value, Sizes):
            return self.sizes_tensor(value)
        if isinstance(value, np.ndarray) or np.isscalar(value):
            name, _ = self.initializers.get(id(value), ("", None))
            value = np.ascontiguousarray(value).reshape(np.shape(value))
            if self.keep and name:
                return self.kept(name, value)
            return const(value, str(value.dtype))
        if isinstance(value, Items):
            raise ValueError("a sequence is used as a tensor, or is a result of the model, which "
                             "is not translated: use its tensors (SequenceAt)")
        raise ValueError("an input that is needed is missing")

    def kept(self, name: str, value: np.ndarray) -> Var:
        """The parameter of an initializer. Graphs within nodes may use a name for several."""
        number, key = 0, name
        while key in self.params and not _identical(self.params[key][1].numpy(), value):
            number += 1
            key = f"{name}_{number}"
        if key not in self.params:
            var = Var(identifier(key), TensorStructInfo(value.shape, str(value.dtype)))
            self.params[key] = var, array(value)
        return self.params[key][0]

    def sizes_tensor(self, sizes: Sizes) -> Expr:
        """Sizes as a tensor."""
        from ... import op

        if all(isinstance(s, int) for s in sizes):
            return const(np.array(sizes[0] if sizes.rank == 0 else sizes, sizes.dtype))
        parts = [self.emit(op.arange(s, s + 1, 1, "int64")) for s in sizes]
        out = parts[0] if len(parts) == 1 else self.emit(op.concat(parts, 0))
        out = self.emit(op.reshape(out, [])) if sizes.rank == 0 else out
        return out if sizes.dtype == "int64" else self.emit(op.astype(out, sizes.dtype))

    def proven(self, relation: Any) -> bool | None:
        """Whether a relation of sizes holds for all of them, or for none; else None."""
        if isinstance(relation, (bool, np.bool_)):
            return bool(relation)
        analyzer = analyzer_of([relation])
        if analyzer.can_prove(relation):
            return True
        return False if analyzer.can_prove(O.logical_not(relation)) else None

    def need_size(self, size: PrimExpr, least: int) -> None:
        """Let a run check that a size is not smaller than this, where it may be."""
        if not analyzer_of([size]).can_prove(size >= least):
            enough = O.max_value_of(size, O.const(least, size.dtype))
            self.builder.match_cast(ShapeExpr([size]), ShapeStructInfo([enough]), "enough")

    def numbers(self, value: Any, what: str = "an input") -> list[Any]:
        """The values of a vector that must be known: a shape, axes, widths of padding."""
        if isinstance(value, Sizes):
            return list(value)
        if isinstance(value, Constant):
            value = value.data.numpy()
        if isinstance(value, np.ndarray):
            return [v.item() for v in value.ravel()]
        if isinstance(value, (list, tuple)):
            return list(value)
        if isinstance(value, (int, float, PrimExpr)):
            return [value]
        raise ValueError(f"{what} must be known when the model is imported, and it is computed")

    def number(self, value: Any, what: str = "an input") -> Any:
        """The one value of such a vector."""
        return self.numbers(value, what)[0]

    def known(self, *values: Any) -> bool:
        """Whether all values are numpy arrays."""
        return all(isinstance(v, np.ndarray) for v in values)

    def shape(self, value: Given) -> list[Any]:
        """The sizes of a tensor."""
        if isinstance(value, np.ndarray):
            return list(value.shape)
        if isinstance(value, Sizes):
            return [len(value)] if value.rank else []
        dims = getattr(value.struct_info, "dims", None)
        if dims is None:
            raise ValueError("the shape of a tensor is not known, not even by symbols")
        return [d if O.as_int(d) is None else O.as_int(d) for d in dims]

    def ndim(self, value: Given) -> int:
        """The number of dimensions."""
        return info_of(value).ndim if isinstance(value, Expr) else len(self.shape(value))

    def dtype(self, value: Given) -> str:
        """The dtype of a value."""
        if isinstance(value, Sizes):
            return value.dtype
        return str(value.dtype) if isinstance(value, np.ndarray) else info_of(value).dtype


def _identical(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


__all__ = ["DTYPES", "Importer", "Missing", "RULES", "Sizes", "dtype_of", "from_onnx", "rule"]
