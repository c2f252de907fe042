"""Drawings of schedules of tensor expressions, in the DOT language.

`viz_dataflow_graph` shows which stage reads which, `viz_schedule_tree` the loops of each stage and
where it is computed, `viz_itervar_relationship_graph` which loop was made of which. Each writes the
text to a file, gives it, or gives an SVG for a notebook. The package graphviz writes the text;
without `dot` on the path there is no SVG.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...te.tensor import PlaceholderOp
from ...tir.expr import IterVar

if TYPE_CHECKING:
    from ...te.schedule import Schedule, Stage

_KINDS = {IterVar.DataPar: "spatial", IterVar.CommReduce: "reduction"}
#: what a loop becomes by a step, in words
_BECOMES = {"parallel": "parallel", "vectorize": "vectorized", "unroll": "unrolled",
            "tensorize": "tensorized"}


def viz_dataflow_graph(sch: Schedule, show_svg: bool = False, dot_file_path: str = "",
                       output_dot_string: bool = False) -> Any:
    """Stages as boxes, an edge for each tensor that one stage reads of another."""
    drawing = _digraph("Dataflow")
    number = {stage: f"s{at}" for at, stage in enumerate(sch.stages)}
    for stage in sch.stages:
        drawing.node(number[stage], _text(_title(sch, stage)), shape="ellipse" if isinstance(
            stage.op, PlaceholderOp) else "box")
    for source, reader, name in _reads(sch):
        drawing.edge(number[source], number[reader], label=_text(name))
    return _given(drawing, show_svg, dot_file_path, output_dot_string)


def viz_schedule_tree(sch: Schedule, show_svg: bool = False, dot_file_path: str = "",
                      output_dot_string: bool = False) -> Any:
    """Stages with their loops, outermost first; an edge leads to where a stage is computed."""
    drawing = _digraph("Schedule tree", rankdir="BT")
    drawing.node("root", "ROOT")
    inlined = {change[1] for change in sch.changes if change[0] == "inline"}
    number = {stage: f"s{at}" for at, stage in enumerate(sch.stages)}
    for stage in sch.stages:
        rows = [] if isinstance(stage.op, PlaceholderOp) else [
            f"{at} {_loop(stage, axis)}" for at, axis in enumerate(stage.leaf_iter_vars)]
        title = _title(sch, stage) + (" (inlined)" if stage in inlined else "")
        drawing.node(number[stage], _text("\n".join([title, *rows])))
        if stage.attached is None:
            drawing.edge(number[stage], "root")
        else:
            parent, axis = stage.attached
            drawing.edge(number[stage], number[parent], label=_text(f"at {axis.var.name}"))
    return _given(drawing, show_svg, dot_file_path, output_dot_string)


def viz_itervar_relationship_graph(sch: Schedule, show_svg: bool = False, dot_file_path: str = "",
                                   output_dot_string: bool = False) -> Any:
    """The loops of each stage, and the steps by which they were made of its axes."""
    drawing = _digraph("Loops")
    for at, stage in enumerate(sch.stages):
        if isinstance(stage.op, PlaceholderOp):
            continue
        with drawing.subgraph(name=f"cluster_{at}") as part:
            part.attr(label=_text(stage.op.name))
            number: dict[Any, str] = {}

            def known(axis: Any, at: int = at, part: Any = part, number: Any = number,
                      stage: Any = stage) -> str:
                if axis not in number:
                    number[axis] = f"a{at}_{len(number)}"
                    part.node(number[axis], _text(_loop(stage, axis)))
                return number[axis]

            for axis in stage.root_axes:
                known(axis)
            for step, (method, args, results) in enumerate(stage.steps):
                if method not in ("split", "fuse"):
                    continue
                part.node(f"a{at}_step{step}", method, shape="ellipse")
                for axis in args:
                    if isinstance(axis, IterVar):
                        part.edge(known(axis), f"a{at}_step{step}")
                for axis in results:
                    part.edge(f"a{at}_step{step}", known(axis))
    return _given(drawing, show_svg, dot_file_path, output_dot_string)


def _reads(sch: Schedule) -> Iterator[tuple[Stage, Stage, str]]:
    """(source, reader, what it reads); what goes through a cache is read of the cache."""
    copied: dict[tuple[Any, Any], Any] = {}
    for change in sch.changes:
        if change[0] == "cache_read":
            _, copy, tensor, _, readers = change
            source = sch.stage_map.get(tensor.op)
            if source is not None:
                yield source, copy, tensor.name
            copied.update(((reader, tensor), copy) for reader in readers)
    for stage in sch.stages:
        for tensor in getattr(stage.op, "input_tensors", ()):
            source = copied.get((stage, tensor), sch.stage_map.get(tensor.op))
            if source is not None and source is not stage:
                yield source, stage, tensor.name


def _title(sch: Schedule, stage: Stage) -> str:
    scopes = [c[2] for c in sch.changes if c[0] == "set_scope" and c[1] is stage]
    scopes += [c[3] for c in sch.changes if c[0] == "cache_read" and c[1] is stage]
    scope = [*scopes, getattr(stage, "scope", "")][0]
    return f"{stage.op.name} [{scope}]" if scope else stage.op.name


def _loop(stage: Stage, axis: Any) -> str:
    words = [axis.var.name, f"{axis.dom.min} + [0, {axis.dom.extent})", _KINDS.get(
        axis.iter_type, "")]
    for method, args, _ in stage.steps:
        if args and args[0] is axis:
            words.append(str(args[1]) if method == "bind" else _BECOMES.get(method, ""))
    return "  ".join(word for word in words if word)


def _text(text: str) -> str:
    import graphviz

    return graphviz.escape(text).replace("\n", "\\l") + ("\\l" if "\n" in text else "")


def _digraph(title: str, **graph: str) -> Any:
    try:
        import graphviz
    except ImportError:
        raise ImportError("tedd writes its drawings with the package graphviz: "
                          "pip install graphviz", name="graphviz") from None
    return graphviz.Digraph(title, graph_attr=graph, node_attr={
        "shape": "box", "fontname": "monospace", "fontsize": "10"})


def _given(drawing: Any, svg: bool, path: str, text: bool) -> Any:
    if path:
        Path(path).write_text(drawing.source, encoding="utf-8")
    if svg:
        from IPython.display import SVG

        return SVG(drawing.pipe(format="svg"))
    return drawing.source if text else None


__all__ = ["viz_dataflow_graph", "viz_itervar_relationship_graph", "viz_schedule_tree"]
