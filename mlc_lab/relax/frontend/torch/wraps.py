"""Higher-order operators of torch that only wrap a piece of the graph, put in its place.

`wrap_with_set_grad_enabled`, checkpoints and the like say how gradients are computed; the piece
they wrap becomes a part of the graph around it, so that what is written to in it is seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator

from .aliasing import written_by_schema

if TYPE_CHECKING:
    from torch.fx import Graph, Node

#: operators whose graph stands for itself
WRAPS = frozenset({"wrap_with_set_grad_enabled", "wrap", "wrap_activation_checkpoint",
                   "tag_activation_checkpoint", "invoke_subgraph", "hints_wrapper"})
#: operators that choose which graph runs, and how often
BRANCHING = frozenset({"cond", "while_loop"})
#: the one whose graph torch has to rewrite where it is enabled: its operators compute in another
#: dtype then. Arguments: device, dtype, enabled, cache, graph, operands
AUTOCAST = "wrap_with_autocast"


def flattened(program: Any) -> tuple[Any, Any, Any]:
    """The program, its graph without wraps, and the module that holds what the graph refers to."""
    module = program.graph_module
    if _writes_in_branches(module) or any(
            _kind(n) == AUTOCAST and n.args[2] for n in _all_nodes(module)):
        program = program.run_decompositions({})
        module = program.graph_module
    if not any(map(_is_wrap, module.graph.nodes)):
        return program, module.graph, module
    import torch

    graph, root = torch.fx.Graph(), torch.nn.Module()
    result = _copied(module, graph, root, None)
    graph.output(result)
    return program, graph, root


def _writes_in_branches(module: Any) -> bool:
    """Whether a graph of `cond` or `while_loop` writes to a tensor: torch rewrites it without."""
    return any(written_by_schema(inner)
               for part in module.modules() if hasattr(part, "graph")
               for node in part.graph.nodes if _kind(node) in BRANCHING
               for arg in node.args if getattr(arg, "op", "") == "get_attr"
               for inner in _all_nodes(getattr(part, arg.target)))


def _kind(node: Node) -> str:
    return getattr(node.target, "__name__", "") if node.op == "call_function" else ""


def _is_wrap(node: Node) -> bool:
    """Whether the graph that a node calls stands for itself."""
    kind = _kind(node)
    return kind in WRAPS or kind == AUTOCAST and not node.args[2]


def _all_nodes(module: Any) -> Iterator[Any]:
    """The nodes of a graph module and of the graphs within it."""
    for part in module.modules():
        if hasattr(part, "graph"):
            yield from part.graph.nodes


def _copied(owner: Any, graph: Graph, root: Any, given: list[Any] | None) -> Any:
    """Copy the nodes of a graph module; what it returns, in the new nodes."""
    from torch.fx.node import map_arg

    new: dict[Any, Any] = {}
    feed = iter(given or [])

    def mapped(value: Any) -> Any:
        return map_arg(value, new.__getitem__)

    for node in owner.graph.nodes:
        if node.op == "placeholder" and given is not None:
            new[node] = next(feed)
        elif node.op == "output":
            return mapped(node.args[0])
        elif node.op == "get_attr":
            held = owner
            for part in node.target.split("."):
                held = getattr(held, part)
            if hasattr(held, "graph"):
                new[node] = held  # a graph that a wrap or a branch takes
                continue
            name = f"held_{len(graph.nodes)}"
            setattr(root, name, held)
            new[node] = graph.get_attr(name)
            new[node].meta = dict(node.meta)
        elif _is_wrap(node):
            inner = next(a for a in node.args if hasattr(new.get(a), "graph")
                         and not hasattr(new[a], "op"))
            count = sum(n.op == "placeholder" for n in new[inner].graph.nodes)
            operands = [mapped(a) for a in node.args[len(node.args) - count:]] if count else []
            new[node] = _copied(new[inner], graph, root, operands)
        elif _is_item_of_results(node, new):
            new[node] = new[node.args[0]][node.args[1]]
        else:
            new[node] = graph.node_copy(node, lambda n: _held(new[n], graph, root))
    return None


def _is_item_of_results(node: Node, new: dict[Any, Any]) -> bool:
    return _kind(node) == "getitem" and isinstance(new.get(node.args[0]), (list, tuple))


def _held(value: Any, graph: Graph, root: Any) -> Any:
    """A node for what another operator takes: a graph that is no wrap's is held by the root."""
    if hasattr(value, "graph") and not hasattr(value, "op"):
        name = f"held_{len(graph.nodes)}"
        setattr(root, name, value)
        return graph.get_attr(name)
    return value


__all__ = ["flattened"]
