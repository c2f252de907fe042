"""How the parts of TensorIR that are no nodes are saved as JSON; loaded by `ir/serialize.py`."""

from __future__ import annotations

from ..ir.serialize import register_enum, register_json
from .function import IndexMap, TensorIntrin
from .stmt import ForKind

register_enum(ForKind)
register_json("IndexMap", IndexMap,
              lambda m: (m.initial_indices, m.final_indices, m.inverse_index_map),
              lambda fields: IndexMap(*fields))
register_json("TensorIntrin", TensorIntrin, lambda t: (t.desc, t.impl),
              lambda fields: TensorIntrin(*fields))
