"""Where to draw the nodes and edges of a directed graph: layers from top to bottom.

`place` asks Graphviz's `dot` where there is one, and else lays the graph out itself, so a drawing
never fails for a missing program. The built-in way is Sugiyama's (K. Sugiyama, S. Tagawa, M. Toda,
"Methods for visual understanding of hierarchical system structures", 1981): a layer for each node
by the longest path, placeholders where an edge crosses a layer, sweeps that order each layer by the
mean position of its neighbours, and then positions that minimise the squared distance to those
means while neighbours keep apart, which is isotonic regression, one layer at a time.

Sizes and positions are in pixels; y grows downwards; a node's position is its centre.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

GAP = 22  # between neighbours in a layer
RISE = 34  # between layers
NARROW = 8  # width that an edge passing a layer is given
SWEEPS = 12
_INCH = 72.0


@dataclass
class Placement:
    """A laid-out graph: `at` gives each node's centre, `routes` the points of each edge from its
    source's border to its target's, `width` and `height` the drawing's extent."""

    at: dict[Hashable, tuple[float, float]]
    routes: list[list[tuple[float, float]]]
    width: float
    height: float


Sizes = Mapping[Hashable, tuple[float, float]]
Edges = Sequence[tuple[Hashable, Hashable]]


def place(sizes: Sizes, edges: Edges, engine: str | None = None) -> Placement:
    """Lay a graph out. `sizes` gives each node's (width, height) in the order of the program,
    `edges` the pairs (source, target); cycles are allowed, their closing edges run upwards.

    `engine` is "dot", "built-in", or None for `dot` where it is installed. A `dot` that fails or
    takes longer than 20 s is replaced by the built-in layout.
    """
    if not sizes:
        return Placement({}, [], 0.0, 0.0)
    if engine == "dot" or (engine is None and shutil.which("dot")):
        found = _by_dot(sizes, edges)
        if found is not None:
            return found
        if engine == "dot":
            raise RuntimeError("dot did not lay the graph out; is Graphviz installed? "
                               "engine=None falls back to the built-in layout")
    return _layered(sizes, edges)


# ------------------------------------------------------------------------------- by dot


def dot_source(sizes: Sizes, edges: Edges, labels: Mapping[Hashable, str] | None = None) -> str:
    """The graph in the DOT language, with nodes of the given sizes."""
    number = {node: f"n{i}" for i, node in enumerate(sizes)}
    lines = ["digraph {", f"  rankdir=TB; nodesep={GAP / _INCH:.3f}; ranksep={RISE / _INCH:.3f};",
             '  node [shape=box, fixedsize=true, margin=0, label=""];']
    for node, (width, height) in sizes.items():
        label = ""
        if labels and labels.get(node):
            label = ", label=" + json.dumps(labels[node], ensure_ascii=False)
        lines.append(f"  {number[node]} [width={width / _INCH:.4f}, height={height / _INCH:.4f}"
                     f"{label}];")
    lines += [f"  {number[a]} -> {number[b]};" for a, b in edges]
    return "\n".join([*lines, "}"])


def _by_dot(sizes: Sizes, edges: Edges) -> Placement | None:
    try:
        done = subprocess.run(["dot", "-Tjson0"], input=dot_source(sizes, edges), text=True,
                              capture_output=True, timeout=20, check=True)
        answer = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    _, _, width, height = (float(x) for x in answer["bb"].split(","))
    nodes = list(sizes)
    at = {}
    for item in answer["objects"]:
        x, y = (float(v) for v in item["pos"].split(","))
        at[nodes[item["_gvid"]]] = (x, height - y)
    routes: list[list[tuple[float, float]]] = [[] for _ in edges]
    waiting: dict[tuple, list[int]] = {}
    for index, pair in enumerate(edges):
        waiting.setdefault(pair, []).append(index)
    for item in answer.get("edges", ()):
        pair = (nodes[item["tail"]], nodes[item["head"]])
        points = []
        for part in item["pos"].split(" "):
            if part.startswith("e,"):
                end = part[2:]
                continue
            points.append(tuple(float(v) for v in part.split(",")))
        points.append(tuple(float(v) for v in end.split(",")))
        kept = points[::3] + [points[-1]]  # the knots of the spline are enough to draw it anew
        routes[waiting[pair].pop(0)] = [(x, height - y) for x, y in kept]
    return Placement(at, routes, width, height)


# ------------------------------------------------------------------------------- built in


def _layered(sizes: Sizes, edges: Edges) -> Placement:
    order = {node: i for i, node in enumerate(sizes)}
    down = _without_cycles(order, edges)
    layer = _layers(order, down)
    chains, rows = _rows(order, layer, down)
    above, below = _neighbours(rows, chains)
    _untangle(rows, above, below)
    width_of = [[sizes[n][0] if n in order else NARROW for n in row] for row in rows]
    xs = _columns(rows, width_of, above, below)
    left = min((xs[n] - w / 2 for row, ws in zip(rows, width_of) for n, w in zip(row, ws)))
    right = max((xs[n] + w / 2 for row, ws in zip(rows, width_of) for n, w in zip(row, ws)))
    y, middle, depth = 0.0, [], []
    for row in rows:
        tall = max((sizes[n][1] for n in row if n in order), default=0.0)
        middle.append(y + tall / 2)
        depth.append(tall)
        y += tall + RISE
    at = {n: (xs[n] - left, middle[layer[n]]) for n in order}
    routes = []
    for (source, target), chain in zip(edges, chains):
        start, end = (source, target) if chain is None or chain[0] is source else (target, source)
        if chain is None:  # a loop from a node to itself
            x, yy = at[source]
            w, h = sizes[source]
            routes.append([(x + w / 2, yy - h / 4), (x + w / 2 + GAP, yy), (x + w / 2, yy + h / 4)])
            continue
        points = [(at[start][0], at[start][1] + sizes[start][1] / 2)]
        for step in chain[1:-1]:
            row = step[2]
            x = xs[step] - left
            points += [(x, middle[row] - depth[row] / 2), (x, middle[row] + depth[row] / 2)]
        points.append((at[end][0], at[end][1] - sizes[end][1] / 2))
        routes.append(points if start is source else points[::-1])
    return Placement(at, routes, right - left, y - RISE)


def _without_cycles(order: Mapping, edges: Edges) -> list[tuple | None]:
    """Each edge as it runs downwards: those that close a cycle reversed, loops None."""
    after: dict[Hashable, list] = {n: [] for n in order}
    for a, b in edges:
        after[a].append(b)
    state: dict[Hashable, int] = {}
    reversed_edges = set()
    for root in order:
        if root in state:
            continue
        stack = [(root, iter(after[root]))]
        state[root] = 1
        while stack:
            node, rest = stack[-1]
            for target in rest:
                if state.get(target) == 1:
                    reversed_edges.add((node, target))
                elif target not in state:
                    state[target] = 1
                    stack.append((target, iter(after[target])))
                    break
            else:
                state[node] = 2
                stack.pop()
    return [None if a == b else (b, a) if (a, b) in reversed_edges else (a, b) for a, b in edges]


def _layers(order: Mapping, down: Sequence) -> dict[Hashable, int]:
    """The longest path from a source; what has no inputs stands just above its first reader."""
    after: dict[Hashable, list] = {n: [] for n in order}
    waits = dict.fromkeys(order, 0)
    for pair in down:
        if pair:
            after[pair[0]].append(pair[1])
            waits[pair[1]] += 1
    sources = [n for n in order if not waits[n]]
    layer = dict.fromkeys(order, 0)
    ready = list(sources)
    for node in ready:
        for target in after[node]:
            layer[target] = max(layer[target], layer[node] + 1)
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
    for node in sources:
        if after[node]:
            layer[node] = min(layer[t] for t in after[node]) - 1
    return layer


def _rows(order: Mapping, layer: Mapping, down: Sequence) -> tuple[list, list[list]]:
    """Each edge as a chain of nodes and placeholders, one a layer; and the layers' members."""
    rows: list[list] = [[] for _ in range(max(layer.values()) + 1)]
    for node in order:
        rows[layer[node]].append(node)
    chains: list[tuple | None] = []
    for index, pair in enumerate(down):
        if pair is None:
            chains.append(None)
            continue
        a, b = pair
        between = [("via", index, row) for row in range(layer[a] + 1, layer[b])]
        for step in between:
            rows[step[2]].append(step)
        chains.append((a, *between, b))
    return chains, rows


def _neighbours(rows: Sequence, chains: Sequence) -> tuple[dict, dict]:
    above: dict = {n: [] for row in rows for n in row}
    below: dict = {n: [] for row in rows for n in row}
    for chain in chains:
        for a, b in zip(chain or (), (chain or ())[1:]):
            below[a].append(b)
            above[b].append(a)
    return above, below


def _untangle(rows: list[list], above: Mapping, below: Mapping) -> None:
    """Order each layer by the mean position of its neighbours, down and up in turns."""
    place_of = {n: i for row in rows for i, n in enumerate(row)}
    best, fewest = [list(row) for row in rows], _crossings(rows, below, place_of)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        near = above if downwards else below
        for row in rows if downwards else reversed(rows):
            wish = {n: _mean([place_of[m] for m in near[n]] or [place_of[n]]) for n in row}
            row.sort(key=wish.__getitem__)
            for i, node in enumerate(row):
                place_of[node] = i
        count = _crossings(rows, below, place_of)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
        if not fewest:
            break
    for row, kept in zip(rows, best):
        row[:] = kept


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _crossings(rows: Sequence, below: Mapping, place_of: Mapping) -> int:
    """Pairs of edges between neighbouring layers that cross, counted with a Fenwick tree."""
    total = 0
    for row, under in zip(rows, rows[1:]):
        tree = [0] * (len(under) + 1)
        seen = 0
        for node in row:
            ends = sorted(place_of[m] for m in below[node])
            for end in ends:
                at, passed = end + 1, 0
                while at:
                    passed += tree[at]
                    at &= at - 1
                total += seen - passed
            for end in ends:
                at = end + 1
                while at < len(tree):
                    tree[at] += 1
                    at += at & -at
            seen += len(ends)
    return total


def _columns(rows: Sequence, widths: Sequence, above: Mapping, below: Mapping) -> dict:
    """x of every member of every layer."""
    xs: dict = {}
    offsets = []
    for row, ws in zip(rows, widths):
        reach, last = [0.0], None
        for w in ws:
            if last is not None:
                reach.append(reach[-1] + last / 2 + w / 2 + GAP)
            last = w
        reach = reach if row else []
        offsets.append(reach)
        middle = (reach[-1] / 2) if reach else 0.0
        for node, offset in zip(row, reach):
            xs[node] = offset - middle
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        last = sweep >= SWEEPS - 2
        for r in range(len(rows)) if downwards else reversed(range(len(rows))):
            row = rows[r]
            wish, weight = [], []
            for node, offset in zip(row, offsets[r]):
                near = (above[node] + below[node]) if last else (
                    above[node] if downwards else below[node]) or [node]
                found = sorted(xs[m] for m in near) if near else [xs[node]]
                half = len(found) // 2
                median = found[half] if len(found) % 2 else (found[half - 1] + found[half]) / 2
                wish.append(median - offset)
                # an edge that passes a layer, or leads on from one that does, is kept straight
                straight = type(node) is tuple and len(node) == 3 and node[0] == "via"
                weight.append(4.0 if straight else 1.0)
            for node, offset, x in zip(row, offsets[r], _isotonic(wish, weight)):
                xs[node] = x + offset
    return xs


def _isotonic(wish: Sequence[float], weight: Sequence[float]) -> list[float]:
    """The nondecreasing values nearest to `wish` in weighted squares: pool adjacent violators."""
    blocks: list[list[float]] = []  # mean, weight, count
    for value, mass in zip(wish, weight):
        blocks.append([value, mass, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, mass, count = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * mass) / (last[1] + mass)
            last[1] += mass
            last[2] += count
    return [mean for mean, _, count in blocks for _ in range(int(count))]


__all__ = ["Placement", "dot_source", "place"]
