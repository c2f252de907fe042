"""The graph view as a notebook widget: a computation graph to zoom, search and open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import traitlets

from . import bundle
from .graph_page import STYLES, page, static_html
from .view import View

__all__ = ["GraphView", "page"]


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

    _esm = bundle.module("graph.js")
    _css = bundle.style(*STYLES)

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
        """Call `callback(node)` whenever a node is selected. Returns what ends that."""

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
