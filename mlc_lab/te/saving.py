"""How tensors and operations of te are saved as JSON; loaded by `ir/serialize.py`.

A tensor is saved as its operation and the number of the output, an operation as what it is made of.
"""

from __future__ import annotations

from typing import Any

from ..ir.serialize import SerializeError, register_json
from ..tir.expr import IterVar, PrimExpr
from .tensor import ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp, Tensor


def _tensor(fields: Any) -> Tensor:
    op, index = fields
    if not isinstance(op, Operation) or type(index) is not int or not 0 <= index < op.num_outputs:
        raise SerializeError("a tensor is an output of an operation")
    return op.output(index)


def _all(values: Any, cls: type) -> bool:
    return isinstance(values, tuple) and all(isinstance(v, cls) for v in values)


def _placeholder(fields: Any) -> PlaceholderOp:
    name, shape, dtype = fields
    if not _all(shape, PrimExpr) or not isinstance(name, str) or not isinstance(dtype, str):
        raise SerializeError("a placeholder has a name, a shape and a type")
    return PlaceholderOp(name, shape, dtype)


def _compute(fields: Any) -> ComputeOp:
    name, tag, attrs, axis, body = fields
    if not _all(axis, IterVar) or not _all(body, PrimExpr) or not body:
        raise SerializeError("a computation has axes and the expressions of its elements")
    return ComputeOp(name, tag, attrs, axis, body)


def _scan(fields: Any) -> ScanOp:
    name, tag, attrs, axis, init, update, states, inputs = fields
    if not isinstance(axis, IterVar) or not all(
            _all(part, Tensor) for part in (init, update, states, inputs)):
        raise SerializeError("a scan has an axis and tensors")
    return ScanOp(name, tag, attrs, axis, init, update, states, inputs)


def _extern(fields: Any) -> ExternOp:
    name, tag, attrs, inputs, ins, outs, body = fields
    if not _all(inputs, Tensor):
        raise SerializeError("foreign code has tensors as inputs")
    return ExternOp(name, tag, attrs, inputs, ins, outs, body)


register_json("te.Tensor", Tensor, lambda t: (t.op, t.value_index), _tensor)
register_json("te.PlaceholderOp", PlaceholderOp, lambda o: (o.name, o.shape, o.dtype),
              _placeholder)
register_json("te.ComputeOp", ComputeOp, lambda o: (o.name, o.tag, o.attrs, o.axis, o.body),
              _compute)
register_json("te.ScanOp", ScanOp, lambda o: (
    o.name, o.tag, o.attrs, o.scan_axis, o.init, o.update, o.states, o.inputs), _scan)
register_json("te.ExternOp", ExternOp, lambda o: (
    o.name, o.tag, o.attrs, o.inputs, o.input_placeholders, o.output_placeholders, o.body),
    _extern)
