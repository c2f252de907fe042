"""Operators without a rule that ONNX itself, or the model, defines by others; and what is computed
of known values alone."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

import numpy as np

from ...expr import Expr
from ...struct_info import TensorStructInfo
from .given import Items

if TYPE_CHECKING:
    from .importer import Importer

#: the most elements that are computed when a model is imported
MOST_KNOWN = 256

#: their values differ from run to run, they are no tensors, or their rules do it
_NOT_AT_ONCE = ("Constant", "Identity", "Bernoulli", "Multinomial", "Dropout", "Optional")


def is_defined(onnx: Any, node: Any, opset: int) -> bool:
    """Whether ONNX says of which operators one without a rule consists."""
    schema = _schema(onnx, node, opset)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def _schema(onnx: Any, node: Any, opset: int) -> Any:
    try:
        return onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None


def body_of(im: Importer, node: Any, inputs: Sequence[Any]) -> Any:
    """What a node consists of, as a FunctionProto without references to attributes."""
    onnx = im.onnx
    schema = _schema(onnx, node, im.opset)
    if schema.has_function:
        fitting = [v for v in schema.function_opset_versions if v <= im.opset]
        text = schema.get_function_with_opset_version(max(fitting)) if fitting else None
    else:
        types = [_type_of(im, v).SerializeToString() for v in inputs]
        fitting = [v for v in schema.context_dependent_function_opset_versions if v <= im.opset]
        text = schema.get_context_dependent_function_with_opset_version(
            max(fitting), node.SerializeToString(), types) if fitting else None
    if not text:
        raise ValueError(f"ONNX does not say what {node.op_type} consists of with these inputs and "
                         "attributes: write the model with other operators, or register a rule in "
                         "frontend.onnx.importer.RULES")
    body = onnx.FunctionProto()
    body.ParseFromString(text)
    given = {name: a.default_value for name, a in schema.attributes.items()
             if a.default_value.type}
    given.update((a.name, a) for a in node.attribute)
    for inner in body.node:
        _settle(onnx, inner, given)
    return body


def _type_of(im: Importer, value: Any) -> Any:
    """The type of a value; nothing for an input that is left out."""
    onnx = im.onnx
    if value is None or isinstance(value, Items):
        return onnx.TypeProto()
    number = next((n for n, name in im.dtypes.items() if name == im.dtype(value)), 1)
    known = not isinstance(value, Expr) or (isinstance(value.struct_info, TensorStructInfo)
                                            and value.struct_info.dims is not None)
    sizes = [s if isinstance(s, int) else str(s) for s in im.shape(value)] if known else None
    return onnx.helper.make_tensor_type_proto(number, sizes)


def _settle(onnx: Any, node: Any, given: Mapping[str, Any]) -> None:
    """Put values in the place of references to attributes, in graphs within a node too."""
    kept = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            value = given.get(attribute.ref_attr_name)
            if value is None:
                continue
            name = attribute.name
            attribute = onnx.AttributeProto()
            attribute.CopyFrom(value)
            attribute.name = name
        for graph in _graphs(attribute):
            for inner in graph.node:
                _settle(onnx, inner, given)
        kept.append(attribute)
    del node.attribute[:]
    node.attribute.extend(kept)


def _graphs(attribute: Any) -> Iterator[Any]:
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def at_once(im: Importer, node: Any, inputs: Sequence[Any]) -> list[Any] | None:
    """The values of a node that is given few and known numbers, as ONNX's reference computes them;
    None where it is given others, or where there is no such reference."""
    if not inputs or node.op_type in _NOT_AT_ONCE or node.op_type.startswith(
            ("Random", "Sequence")) or node.domain not in ("", "ai.onnx"):
        return None
    given = [v for v in inputs if v is not None]
    if not given or not im.known(*given) or sum(v.size for v in given) > MOST_KNOWN:
        return None
    if im.keep and any(id(v) in im.initializers for v in given):
        return None
    if any(True for a in node.attribute for _ in _graphs(a)):
        return None
    helper = im.onnx.helper
    feeds = {n: v for n, v in zip(node.input, inputs) if v is not None}
    try:
        graph = helper.make_graph(
            [node], "known", [helper.make_tensor_value_info(
                n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in feeds.items()],
            [helper.make_tensor_value_info(n, 0, None) for n in node.output if n])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", im.opset)])
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            made = iter(im.onnx.reference.ReferenceEvaluator(model).run(None, feeds))
    except Exception:
        return None
    out = [next(made) if n else None for n in node.output]
    fit = all(v is None or isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind in "biuf"
              for v in out)
    return [v if v is None else np.asarray(v) for v in out] if fit else None


__all__ = ["at_once", "body_of", "is_defined"]
