"""The graph view as a widget and as a page: a computation graph to zoom, search and open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from . import export
from .static import pre
from .view import View, traitlets

STYLES = ("stepper.css", "graph.css")


class GraphView(View):
    """Shows a computation graph.

    >>> view = GraphView(mod.graph())          # doctest: +SKIP
    >>> view.selected = view.find("conv2d")    # the first node of that name; the view goes there
    >>> view.on_select(lambda node: print(node["label"]))
    >>> view.opened = []                       # all fused groups shut

    Traits
    ------
    selected  id of the node that is selected, "" if none is.
    opened    ids of the fused groups that are open.
    graph     the graph as plain data (`mlc_lab.observe.graph`); to show another, `show_graph`.
    drawing   where the boxes and edges are drawn; follows `graph` and `opened`.
    """

    _entry, _styles = "graph.js", STYLES

    graph = traitlets.Dict().tag(sync=True)
    drawing = traitlets.Dict().tag(sync=True)
    opened = traitlets.List(traitlets.Unicode()).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)

    def __init__(self, graph: Any, opened: Sequence[str] = (), **traits: Any) -> None:
        """`graph` is an `mlc_lab.observe.graph.Graph`; `opened` the groups open at first."""
        self.source = graph
        super().__init__(graph=graph.to_dict(), opened=list(opened),
                         drawing=graph.layout(opened), **traits)
        self.observe(self._place, names="opened")

    def _place(self, change: Any) -> None:
        self.drawing = self.source.layout(self.opened)

    def show_graph(self, graph: Any) -> None:
        """Show another graph, its groups shut."""
        self.source = graph
        self.selected = ""
        with self.hold_sync():
            self.opened = []
            self.drawing = graph.layout(())
            self.graph = graph.to_dict()

    def find(self, text: str) -> str:
        """Id of the first node whose operator or variable is or contains `text`, "" if none."""
        for exact in (True, False):
            for node in self.source.nodes:
                for name in (node["label"], node["name"]):
                    if name == text or (not exact and text in name):
                        return node["id"]
        return ""

    def on_select(self, callback: Callable[[dict], None]) -> Callable[[], None]:
        """Call `callback(node)` whenever a node is selected. Calling the result stops it."""

        def notify(change: Any) -> None:
            for node in self.source.nodes:
                if node["id"] == change["new"]:
                    callback(node)

        self.observe(notify, names="selected")
        return lambda: self.unobserve(notify, names="selected")

    def html(self, path: Any = None) -> str:
        """The same view as one HTML page with no kernel; written to `path` if given."""
        return self.source.html(path)

    def _static(self) -> tuple[str, str]:
        return repr(self.source), static_html(self.source)

    def _pictures(self) -> list[str]:
        return [self.source.svg(opened=self.opened)]


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
    return (f"<details><summary><b>{escape(repr(graph)[1:-1])}</b></summary>"
            f"{pre(chr(10).join(lines))}</details>")


def page(graphs: Sequence[Any], title: str) -> str:
    """One HTML page with the view of each graph."""
    views = []
    for graph in graphs:
        data = graph.to_dict()
        views.append(({"graph": data, "drawing": data["layouts"]["closed"], "opened": [],
                       "selected": ""}, static_html(graph)))
    return export.write(views, title, "graph.js", STYLES)
