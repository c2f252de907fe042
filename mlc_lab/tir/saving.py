"""How the parts of TensorIR that are no nodes are saved as JSON; loaded by `ir/serialize.py`."""

from __future__ import annotations

from typing import Any

from ..ir.serialize import SerializeError, register_enum, register_json
from .expr import PrimExpr, Var
from .function import IndexMap, PrimFunc, TensorIntrin
from .stmt import ForKind


def _index_map(fields: Any) -> IndexMap:
    initial, final, inverse = fields
    if not all(isinstance(v, Var) for v in initial) or not all(
            isinstance(e, PrimExpr) for e in final) or not isinstance(
            inverse, (IndexMap, type(None))):
        raise SerializeError("an index map has variables and expressions over them")
    return IndexMap(initial, final, inverse)


def _intrinsic(fields: Any) -> TensorIntrin:
    desc, impl = fields
    if not isinstance(desc, PrimFunc) or not isinstance(impl, PrimFunc):
        raise SerializeError("an intrinsic has two functions")
    return TensorIntrin(desc, impl)


register_enum(ForKind)
register_json("IndexMap", IndexMap,
              lambda m: (m.initial_indices, m.final_indices, m.inverse_index_map), _index_map)
register_json("TensorIntrin", TensorIntrin, lambda t: (t.desc, t.impl), _intrinsic)
