"""A computation graph as a picture: sizes of boxes, groups laid out inside their box, and SVG."""

from __future__ import annotations

from html import escape
from typing import Any

from .graph import VALUES, Graph
from .layout import place

#: width of a character, height of a line and padding of a box, in pixels
_CHAR, _LINE, _PAD = 7.2, 16, 10
#: width of the sign that says whether a group is open
_MARK = 16


def size_text(size: int | None) -> str:
    """A number of bytes as "37 kB"; "" where it is not known."""
    if size is None:
        return ""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} B"


def lines_of(node: dict[str, Any]) -> list[str]:
    """What stands in a node's box: its label, its result, its constants."""
    if node["kind"] in ("item", "tuple"):
        return [node["label"]]
    lines = [node["label"]]
    if node["type"]:
        lines.append(node["type"])
    shown = node["constants"][:4]
    for constant in shown:
        lines.append(" ".join(filter(None, ["const", constant["type"],
                                            size_text(constant["bytes"])])))
    if len(node["constants"]) > len(shown):
        lines.append(f"and {len(node['constants']) - len(shown)} more constants")
    return [line if len(line) <= 44 else line[:43] + "…" for line in lines]


def _box(node: dict[str, Any]) -> tuple[float, float]:
    lines = lines_of(node)
    mark = 2 * _MARK if node["kind"] == "group" else 0
    return max(len(x) for x in lines) * _CHAR + 2 * _PAD + mark, len(lines) * _LINE + _PAD


class Drawing:
    """Lays a graph out with some groups open: an open group is laid out first, as a box of its own,
    and then takes its place among the others."""

    HEAD = 22  # height of an open group's title
    INSET = 10

    def __init__(self, graph: Graph, opened: set[str], engine: str | None) -> None:
        self.graph, self.opened, self.engine = graph, opened, engine
        self.parent = {n["id"]: n["group"] for n in graph.nodes}
        self.inner: dict[str | None, list[dict]] = {}
        for item in graph.nodes:
            self.inner.setdefault(item["group"], []).append(item)

    def place(self) -> dict[str, Any]:
        placed = self._level(None)
        return {"width": round(placed["width"], 1), "height": round(placed["height"], 1),
                "boxes": placed["boxes"], "routes": placed["routes"]}

    def _shown(self, ident: str, level: str | None) -> str | None:
        """The node of a level that stands for `ident`, or None if it is outside of the level."""
        while ident is not None:
            above = self.parent[ident]
            if above == level:
                return ident
            ident = above
        return None

    def _level(self, level: str | None) -> dict[str, Any]:
        sizes, inside = {}, {}
        for item in self.inner.get(level, ()):
            ident = item["id"]
            if ident in self.opened and ident in self.inner:
                found = inside[ident] = self._level(ident)
                title = len(item["label"]) * _CHAR + 2 * _PAD + 2 * _MARK
                sizes[ident] = (max(found["width"] + 2 * self.INSET, title),
                                found["height"] + self.HEAD + 2 * self.INSET)
            else:
                sizes[ident] = _box(item)
        pairs, which, seen = [], [], set()
        for index, edge in enumerate(self.graph.edges):
            a, b = self._shown(edge["from"], level), self._shown(edge["to"], level)
            if a is None or b is None or a == b or (a, b) in seen:
                continue
            seen.add((a, b))
            pairs.append((a, b))
            which.append(index)
        found = place(sizes, pairs, self.engine)
        boxes: list[list] = []
        routes = [[i, [[round(x, 1), round(y, 1)] for x, y in r]]
                  for i, r in zip(which, found.routes)]
        for ident, (x, y) in found.at.items():
            w, h = sizes[ident]
            left, top = x - w / 2, y - h / 2
            boxes.append([ident, round(left, 1), round(top, 1), round(w, 1), round(h, 1)])
            part = inside.get(ident)
            if part is None:
                continue
            dx = left + (w - part["width"]) / 2
            dy = top + self.HEAD + self.INSET
            boxes += [[n, round(px + dx, 1), round(py + dy, 1), pw, ph]
                      for n, px, py, pw, ph in part["boxes"]]
            routes += [[i, [[round(px + dx, 1), round(py + dy, 1)] for px, py in r]]
                       for i, r in part["routes"]]
        return {"width": found.width, "height": found.height, "boxes": boxes, "routes": routes}


def path_of(points: list[list[float]]) -> str:
    """A smooth SVG path through points that run mostly downwards."""
    (x, y), *rest = points
    out = [f"M{x:g},{y:g}"]
    for nx, ny in rest:
        bend = (ny - y) / 2
        out.append(f"C{x:g},{y + bend:g} {nx:g},{ny - bend:g} {nx:g},{ny:g}")
        x, y = nx, ny
    return "".join(out)


#: fill and border of each kind of box, from the palette of Okabe and Ito
FILLS = {"param": ("#e8f1f8", "#0072b2"), "output": ("#e8f1f8", "#0072b2"),
         "constant": ("#f2f2f2", "#777777"), "kernel": ("#fdf3d8", "#b58900"),
         "group": ("#fdf8ea", "#b58900"), "extern": ("#fbe5d8", "#d55e00"),
         "call": ("#f3e6ef", "#aa508c"), "op": ("#e3f3ec", "#009e73"),
         "if": ("#f3e6ef", "#aa508c")}


def svg_of(graph: Graph, placed: dict[str, Any]) -> str:
    """A laid-out graph as a picture of its own: no script, no style sheet."""
    nodes = {n["id"]: n for n in graph.nodes}
    width, height = placed["width"] + 24, placed["height"] + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 -12 {width:g} {height:g}" '
           f'width="{width:g}" height="{height:g}" role="img" font-family="monospace" '
           f'font-size="12"><title>{escape("Graph of " + graph.title)}</title>',
           '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
           'markerHeight="7" orient="auto"><path d="M0,0L8,4L0,8z" fill="#777"/></marker></defs>',
           f'<rect x="-12" y="-12" width="{width:g}" height="{height:g}" fill="#fff"/>']
    boxes, texts = [], []
    shown = {b[0] for b in placed["boxes"]}
    for ident, x, y, w, h in placed["boxes"]:
        item = nodes[ident]
        fill, edge = FILLS.get(item["kind"], ("#f2f2f2", "#777777"))
        dash = "" if item["pure"] else ' stroke-dasharray="5 3"'
        round_ = 12 if item["kind"] in VALUES else 3
        boxes.append(f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{round_}" '
                     f'fill="{fill}" stroke="{edge}"{dash}/>')
        is_open = any(n["group"] == ident and n["id"] in shown for n in graph.nodes)
        lines = [item["label"]] if is_open else lines_of(item)
        for number, line in enumerate(lines):
            weight = ' font-weight="bold"' if number == 0 else ""
            texts.append(f'<text x="{x + w / 2:g}" y="{y + _LINE * (number + 1):g}" '
                         f'text-anchor="middle" fill="#1b1f24"{weight}>{escape(line)}</text>')
    routes = [f'<path d="{path_of(points)}" fill="none" stroke="#777" marker-end="url(#arrow)"/>'
              for _, points in placed["routes"]]
    return "\n".join([*out, *boxes, *routes, *texts, "</svg>"])


__all__ = ["Drawing", "lines_of", "path_of", "size_text", "svg_of"]
