"""The graph view without a kernel: as a page, and as HTML that needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from .export import write

STYLES = ("stepper.css", "graph.css")


def static_html(graph: Any) -> str:
    """The calls of a graph in order, for untrusted notebooks and static renderers, which let
    neither scripts nor SVG through."""
    name_of = {n["id"]: n["name"] or n["label"] for n in graph.nodes}
    lines = []
    for node in graph.nodes:
        taken = [name_of[e["from"]] for e in graph.edges if e["to"] == node["id"]]
        taken += [f"const {c['type']}" for c in node["constants"]]
        inset = "    " if node["group"] else ""
        bound = f"{node['name']} = " if node["name"] and node["name"] != node["label"] else ""
        call = f"({', '.join(taken)})" if taken else ""
        lines.append(f"{inset}{bound}{node['label']}{call}  # {node['kind']}, {node['type']}")
    text = escape("\n".join(lines))
    return (f"<details><summary><b>{escape(repr(graph)[1:-1])}</b></summary>"
            f'<pre style="font-size:12px;overflow-x:auto">{text}</pre></details>')


def page(graphs: Sequence[Any], title: str) -> str:
    """One HTML page with the view of each graph."""
    views = []
    for graph in graphs:
        data = graph.to_dict()
        views.append(({"graph": data, "drawing": data["layouts"]["closed"], "opened": [],
                       "selected": ""}, static_html(graph)))
    return write(views, title, "graph.js", STYLES)
