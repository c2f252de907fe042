"""Which values a function writes into: they keep memory of their own."""

from __future__ import annotations

from typing import Any

from ..expr import Call, Function, Tuple, TupleGetItem, Var, VarBinding
from ..expr_functor import PyExprVisitor
from .rewriting import op_name

_IN_PLACE = {"relax.call_tir_inplace": 1, "relax.call_inplace_packed": 0}
#: operators whose result may be the memory of their first argument
_VIEWS = {
    "relax.reshape", "relax.flatten", "relax.expand_dims", "relax.squeeze", "relax.memory.view",
    "relax.memory.ensure_zero_offset", "relax.nn.dropout", "relax.split",
    "relax.builtin.stop_lift_params", "relax.astype", "relax.permute_dims", "relax.broadcast_to",
    "relax.concat"}


class _Writes(PyExprVisitor):
    """The variables that calls write into, and what each variable may be another name of."""

    def __init__(self) -> None:
        self.written: set[Var] = set()
        self.sources: dict[Var, list[Var]] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        """A binding."""
        value: Any = binding.value
        parts: Any = ()
        if isinstance(value, Var):
            parts = [value]
        elif isinstance(value, Tuple):
            parts = value.fields_
        elif isinstance(value, TupleGetItem):
            parts = [value.tuple_value]
        elif op_name(value) in _VIEWS:
            parts = value.args[:1]
        self.sources[binding.var] = [p for p in parts if isinstance(p, Var)]
        super().visit_var_binding_(binding)

    def visit_call_(self, call: Call) -> None:
        """A call."""
        name = op_name(call)
        if name in _IN_PLACE:
            given: Any = call.args[1:]
            if _IN_PLACE[name]:
                table = call.args[1]
                given = table.fields_ if isinstance(table, Tuple) else [table]
            for k in call.attrs.inplace_indices:
                if 0 <= k < len(given) and isinstance(given[k], Var):
                    self.written.add(given[k])
                elif k >= 0 and len(given) == 1 and isinstance(given[0], Var):
                    self.written.add(given[0])  # a tuple by name
        super().visit_call_(call)


def written_in_place(func: Function) -> set[Var]:
    """The variables of a function whose memory a call in place writes."""
    found = _Writes()
    found.visit_expr(func)
    todo = list(found.written)
    while todo:
        for source in found.sources.get(todo.pop(), ()):
            if source not in found.written:
                found.written.add(source)
                todo.append(source)
    return found.written


__all__ = ["written_in_place"]
