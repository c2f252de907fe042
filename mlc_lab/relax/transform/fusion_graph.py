"""Which operators of a dataflow graph are computed together: the partition behind FuseOps.

The graph has one node for each binding, in program order, and an edge from what is used to its
user. A node can be fused into its immediate post-dominator (the first node through which all its
results pass) if everything on the paths between them has a pattern that allows it. Three rounds:

1. matmul-like nodes take up the elementwise operators that follow, elementwise and broadcast
   operators go into what follows them;
2. injective operators (transposes, slices) go into injective ones;
3. what feeds a tuple that was itself fused joins it.

The algorithm is TVM's (Chen et al., "TVM: An Automated End-to-End Optimizing Compiler for Deep
Learning", section 3, and its FuseOps pass); post-dominators by the least common ancestor of a
node's users, as in Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from .annotate_tir_op_pattern import OpPatternKind as K


class GraphNode:
    """One binding: its pattern, whether it is seen from outside, and its users.

    `outputs` lists (user, pattern of the use). `index` is its place in program order.
    """

    __slots__ = ("ref", "index", "pattern", "external", "outputs")

    def __init__(self, ref: Any, index: int, pattern: K, external: bool) -> None:
        self.ref, self.index, self.pattern, self.external = ref, index, pattern, external
        self.outputs: list[tuple[GraphNode, K]] = []


class _Dominance:
    """A node of the post-dominator tree; `pattern` is the worst on the way to the parent."""

    __slots__ = ("node", "parent", "depth", "pattern")

    def __init__(self, node: GraphNode, parent: "_Dominance | None", pattern: K) -> None:
        self.node, self.parent, self.pattern = node, parent, pattern
        self.depth = parent.depth + 1 if parent is not None else 1


class Group:
    """A set of nodes that are computed together: a union-find tree."""

    __slots__ = ("parent", "pattern", "anchor", "size")

    def __init__(self, node: GraphNode) -> None:
        self.parent: Group | None = None
        self.pattern = node.pattern
        self.anchor = node if node.pattern is K.OUT_ELEM_WISE_FUSABLE else None
        self.size = 1

    def root(self) -> "Group":
        """The group that stands for all that were merged."""
        top = self
        while top.parent is not None:
            top = top.parent
        while self.parent is not None and self.parent is not top:
            self.parent, self = top, self.parent
        return top


def post_dominators(nodes: Sequence[GraphNode]) -> list[_Dominance]:
    """For each node its place in the post-dominator tree."""
    found: list[Any] = [None] * len(nodes)
    for node in reversed(nodes):
        if node.external:
            found[node.index] = _Dominance(node, None, K.OPAQUE)
            continue
        pattern, parent = K.ELEM_WISE, None
        for at, (user, use) in enumerate(node.outputs):
            other = found[user.index]
            if at == 0:
                parent = other
            else:
                parent, pattern = _common_ancestor(parent, other, pattern)
            pattern = max(pattern, use)
        found[node.index] = _Dominance(node, parent, pattern)
    return found


def _common_ancestor(a: Any, b: Any, pattern: K) -> tuple[Any, K]:
    while a is not b:
        if a is None or b is None:
            return None, pattern
        if a.depth < b.depth:
            pattern, b = max(pattern, b.pattern), b.parent
        elif b.depth < a.depth:
            pattern, a = max(pattern, a.pattern), a.parent
        else:
            pattern = max(pattern, a.pattern, b.pattern)
            a, b = a.parent, b.parent
    return a, pattern


def _at_most(limit: K) -> Callable[[K, bool], bool]:
    return lambda kind, is_sink: kind <= limit


def _into_elementwise(kind: K, is_sink: bool) -> bool:
    """Branches beside the way may be injective; the end may be a matmul that was fused already."""
    return kind <= (K.OUT_ELEM_WISE_FUSABLE if is_sink else K.INJECTIVE)


class Partitioner:
    """Merges nodes into groups. `max_depth` is the largest number of nodes of one group."""

    def __init__(self, nodes: Sequence[GraphNode], max_depth: int) -> None:
        self.nodes, self.max_depth = nodes, max_depth
        self.groups = [Group(node) for node in nodes]
        self.tree = post_dominators(nodes)

    def run(self) -> list[Group]:
        """The group of each node after all rounds."""
        for phase in range(3):
            for node in self.nodes:
                self._try(node, phase)
        return [group.root() for group in self.groups]

    def _try(self, node: GraphNode, phase: int) -> None:
        group, dom = self.groups[node.index], self.tree[node.index]
        if group.pattern is K.OPAQUE or dom.parent is None:
            return
        sink = dom.parent.node
        if self._size_with(node, sink) > self.max_depth:
            return
        target = self.groups[sink.index]
        if phase == 2:
            if group.pattern > K.INJECTIVE or target.root().pattern is K.TUPLE:
                return
            if target.pattern is K.TUPLE and target.root().pattern <= K.INJECTIVE:
                self._fuse_if(node, sink, _at_most(K.INJECTIVE))
            return
        if group.root() is target.root() or target.pattern is K.TUPLE:
            return
        if group.pattern is K.OUT_ELEM_WISE_FUSABLE:
            if phase == 0 and dom.pattern is K.ELEM_WISE:
                self._fuse_if(node, sink, _at_most(K.BROADCAST))
        elif group.pattern <= K.BROADCAST:
            if dom.pattern <= K.INJECTIVE or dom.pattern is K.COMM_REDUCE:
                self._fuse_if(node, sink, _into_elementwise)
        elif group.pattern in (K.INJECTIVE, K.TUPLE) and phase == 1:
            self._fuse_if(node, sink, _at_most(K.INJECTIVE))

    def _between(self, source: GraphNode, sink: GraphNode) -> dict[GraphNode, None]:
        """The nodes on paths from source to sink, source left out."""
        seen: dict[GraphNode, None] = {}
        stack = [user for user, _ in reversed(source.outputs)]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen[node] = None
            if node is not sink:
                stack.extend(user for user, _ in reversed(node.outputs))
        return seen

    def _size_with(self, source: GraphNode, sink: GraphNode) -> int:
        """The size of the sink's group if the source and all between were merged into it."""
        target = self.groups[sink.index].root()
        groups = {target, self.groups[source.index].root()}
        groups.update(self.groups[n.index].root() for n in self._between(source, sink))
        return sum(group.size for group in groups)

    def _fuse_if(self, source: GraphNode, sink: GraphNode,
                 allowed: Callable[[K, bool], bool]) -> None:
        between = self._between(source, sink)
        if not all(allowed(self.groups[n.index].root().pattern, n is sink) for n in between):
            return
        target = self.groups[sink.index]
        for node in (source, *between):
            if node is not sink:
                self._merge(self.groups[node.index], target)

    @staticmethod
    def _merge(child: Group, parent: Group) -> None:
        child, parent = child.root(), parent.root()
        if child is parent:
            return
        parent.size += child.size
        child.parent = parent
        if child.anchor is not None:
            parent.anchor = child.anchor
            parent.pattern = max(child.pattern, parent.pattern)


__all__ = ["GraphNode", "Group", "Partitioner", "post_dominators"]
