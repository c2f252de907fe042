"""Operators without a rule, taken apart by torch: a call is traced once more, on tensors without
data, with torch's own table of decompositions, and the smaller graph is translated in its place.

Functions that torch itself composes of others (`aten.diff`) come apart by being traced; for others
the table has a decomposition. What comes out has no writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

#: how often what came out may be taken apart further
ROUNDS = 6


@dataclass
class Parts:
    """A call taken apart: a graph of ATen operators, and the nodes whose values go into it."""

    graph: Any
    module: Any
    inputs: list[Any]


class NotDecomposed(Exception):
    """torch cannot take a call apart, or not into operators that have rules; `without` names
    those that have none."""

    def __init__(self, without: list[str]) -> None:
        self.without = without
        super().__init__(", ".join(without))


def taken_apart(call: Callable[..., Any], args: Any, kwargs: Any, fake_of: Callable[[Any], Any],
                has_rule: Callable[[Any], bool]) -> Parts:
    """The parts of `call(*args, **kwargs)`, whose arguments are nodes and numbers.

    Raises NotDecomposed.
    """
    import torch
    from torch._decomp import decomposition_table
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.node import map_arg

    nodes: list[Any] = []
    map_arg((args, kwargs), lambda n: nodes.append(n) if n not in nodes else None)
    fakes = [fake_of(n) for n in nodes]
    tensors = [f for f in fakes if isinstance(f, torch.Tensor)]
    modes = [mode for f in tensors if (mode := getattr(f, "fake_mode", None)) is not None]
    if not modes or any(f is None for f in fakes):
        raise NotDecomposed([])

    def run(*given: Any) -> Any:
        values = dict(zip(nodes, given))
        inner, named = map_arg((args, kwargs), values.__getitem__)
        return call(*inner, **named)

    table: dict[Any, Any] = {}
    missing: list[str] = []
    for _ in range(ROUNDS):
        try:
            with modes[0], torch.no_grad():
                module = make_fx(torch.func.functionalize(run), decomposition_table=table,
                                 tracing_mode="real")(*fakes)
                if _writes(module):  # torch's own code for `call` writes to what it has made
                    module = make_fx(torch.func.functionalize(module), tracing_mode="real")(*fakes)
        except Exception as error:  # whatever torch raises, the call has no parts
            raise NotDecomposed(missing) from error
        if _writes(module):  # they would be dropped with the dead code
            raise NotDecomposed(missing)
        module.graph.eliminate_dead_code()
        without = [n.target for n in module.graph.nodes if n.op == "call_function"
                   and not has_rule(n)]
        if not without:
            return Parts(module.graph, module, nodes)
        missing = list(dict.fromkeys(map(str, without)))
        new = {t: decomposition_table[t] for t in without
               if t in decomposition_table and t not in table}
        if not new:
            raise NotDecomposed(missing)
        table.update(new)
    raise NotDecomposed(missing)


def _writes(module: Any) -> bool:
    """Whether an operator of a graph writes to its arguments."""
    return any(node.target._schema.is_mutable for node in module.graph.nodes
               if hasattr(node.target, "_schema"))


__all__ = ["NotDecomposed", "Parts", "taken_apart"]
