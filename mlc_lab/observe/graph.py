"""The computation graph of a Relax function, as plain data that a view can draw.

`mod.graph()` or `graph_of(mod, "main")` gives a `Graph`. Its JSON, version 1:

    format   "mlc-lab/graph"
    version  1
    title    the function's name
    nodes    [node, ...] in the order of the program
    edges    [{"from": node id, "to": node id, "label": "1x64 float32", "bytes": number or null}]
    regions  how many dataflow blocks there are; a node's `region` counts from 0
    texts    [TVMScript of a kernel, ...], each once
    layouts  {"closed": layout, "open": layout}: with the fused groups shut, and with all open

A **node** is {"id", "kind", "label" (the operator or function), "name" (the variable it binds),
"type" ("1x64 float32"), "bytes" of its result or null, "constants": [{"type", "bytes"}] that it
takes, "attrs": {name: text}, "pure": whether it has no effect, "region": dataflow block or null,
"group": id of the group it is in or null, "moved": bytes read and written by the call or null,
"flops" or null, "text": index of its kernel's TVMScript or null, "script": its line in TVMScript}.
Kinds: "param", "constant", "op" (an operator), "kernel" (call_tir), "extern" (a packed function),
"call" (another Relax function), "group" (a call of a fused function, whose nodes name it as their
group), "tuple", "item", "cast", "if", "output". A constant stands in the nodes that take it, also
one that has a name or is handed to a fused function; a node of its own is one that is a result.

A **layout** is {"width", "height", "boxes": [[id, x, y, width, height], ...] (x, y: the upper left
corner), "routes": [[edge index, [[x, y], ...]], ...]}, in pixels; groups come before what is inside
them. Where a group is shut, edges from and to its inside end at its box.

`bytes moved` counts what a call reads and writes in memory: its tensor arguments, constants and its
result, each once. A fused group is one call, so what it keeps inside is not moved: the difference
between a module before and after fusion is what fusion saves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..above import above
from ..ir.dtype import bytes_of
from ..ir.module import GlobalVar, IRModule
from ..language import text
from ..tir import PrimFunc

if TYPE_CHECKING:
    from ..ir.module import BaseFunc
    from ..relax.expr import Binding, Function

FORMAT = "mlc-lab/graph"
VERSION = 1
#: kinds of nodes that compute nothing
VALUES = ("param", "constant", "output", "tuple", "item")


class GraphError(ValueError):
    """There is no graph to draw: the message says why."""


@dataclass
class Graph:
    """A computation graph. The head of this file says what the entries mean."""

    title: str = "main"
    nodes: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    regions: int = 0
    texts: list[str] = field(default_factory=list)

    def bytes_moved(self) -> int | None:
        """Bytes that all calls read and write; None if a size is not known."""
        sizes = [n["moved"] for n in self.nodes
                 if n["group"] is None and n["kind"] not in VALUES]
        return None if None in sizes else sum(sizes)

    def groups(self) -> list[str]:
        """Ids of the fused groups."""
        return [n["id"] for n in self.nodes if n["kind"] == "group"]

    def layout(self, opened: Iterable[str] | None = None, engine: str | None = None) -> dict:
        """Where to draw what, with the named groups open (None: all of them)."""
        opened = set(self.groups() if opened is None else opened)
        return above("drawing of a graph").Drawing(self, opened, engine).place()

    def to_dict(self) -> dict[str, Any]:
        """The graph as plain data, laid out with its groups shut and open."""
        layouts = {"closed": self.layout(())}
        layouts["open"] = self.layout() if self.groups() else layouts["closed"]
        return {"format": FORMAT, "version": VERSION, "title": self.title, "nodes": self.nodes,
                "edges": self.edges, "regions": self.regions, "texts": self.texts,
                "layouts": layouts}

    @classmethod
    def from_dict(cls, data: object) -> Graph:
        """A graph that `to_dict` wrote. Raises GraphError for anything else."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise GraphError(f"this is not a graph: its format is not {FORMAT!r}")
        if data.get("version") != VERSION:
            raise GraphError(f"this graph is of version {data.get('version')!r}; this release "
                             f"reads version {VERSION}")
        return cls(data["title"], data["nodes"], data["edges"], data["regions"], data["texts"])

    def to_json(self) -> str:
        """The JSON text of `to_dict`."""
        return json.dumps(self.to_dict(), separators=(",", ":"), ensure_ascii=False)

    def dot(self) -> str:
        """The graph in the DOT language, groups as clusters, to be drawn by Graphviz."""
        import graphviz

        lines_of = above("drawing of a graph").lines_of
        drawing = graphviz.Digraph(self.title, node_attr={"shape": "box", "fontname": "monospace",
                                                          "fontsize": "10"})
        inside: dict[Any, list[dict]] = {}
        for item in self.nodes:
            inside.setdefault(item["group"], []).append(item)

        def add(into: Any, items: list[dict]) -> None:
            for item in items:
                if item["id"] in inside:
                    with into.subgraph(name="cluster_" + item["id"]) as part:
                        part.attr(label=item["label"], style="rounded")
                        add(part, inside[item["id"]])
                else:
                    into.node(item["id"], "\n".join(lines_of(item)), shape=(
                        "ellipse" if item["kind"] in VALUES else "box"))

        add(drawing, inside.get(None, []))
        for edge in self.edges:
            if edge["from"] not in inside and edge["to"] not in inside:
                drawing.edge(edge["from"], edge["to"])
        return drawing.source

    def svg(self, path: str | Path | None = None, opened: Iterable[str] | None = None) -> str:
        """The drawing as SVG, with all groups open; written to `path` if given."""
        text = above("drawing of a graph").svg_of(self, self.layout(opened))
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def html(self, path: str | Path | None = None, title: str | None = None) -> str:
        """The graph view as one HTML page without a kernel; written to `path` if given."""
        page = above("view of a graph").page
        made = page([self], title or text("Graph of {title}", "views").format(title=self.title))
        if path is not None:
            Path(path).write_text(made, encoding="utf-8")
        return made

    def show(self) -> Any:
        """The graph as a notebook widget."""
        GraphView = above("view of a graph").GraphView
        return GraphView(self)

    def _repr_mimebundle_(self, **kwargs: object) -> Any:
        try:
            return self.show()._repr_mimebundle_(**kwargs)
        except ImportError:
            return {"text/plain": repr(self), "image/svg+xml": self.svg()}

    def __repr__(self) -> str:
        calls = sum(n["kind"] not in VALUES for n in self.nodes)
        return f"<graph of {self.title}: {calls} calls, {len(self.edges)} edges>"


def graph_of(mod: Any, name: str | None = None) -> Graph:
    """The computation graph of a Relax function, or of a module's function `name`.

    Without a name: "main", or the only Relax function there is. Raises GraphError where that does
    not say which.
    """
    from ..relax import Function

    if isinstance(mod, IRModule):
        functions = {gv.name_hint: f for gv, f in mod.functions_items()
                     if isinstance(f, Function)}
        if name is None:
            name = "main" if "main" in functions else None
            public = [n for n, f in functions.items() if not _is_fused(f)]
            if name is None and len(public) == 1:
                name = public[0]
        if name is None or name not in functions:
            have = ", ".join(functions) or "none"
            raise GraphError(f"say which function's graph is meant; the module's Relax functions "
                             f"are: {have}" if name is None else
                             f"the module has no Relax function {name!r}; it has: {have}")
        return _Builder(mod, name).build(functions[name])
    if isinstance(mod, Function):
        return _Builder(None, name or mod.attrs.get("global_symbol") or "main").build(mod)
    raise GraphError(f"a graph is drawn of an IRModule or a relax.Function, not of a "
                     f"{type(mod).__name__}")


def _is_fused(func: BaseFunc) -> bool:
    attrs = func.attrs or {}
    return any(key in attrs for key in ("Primitive", "Composite", "Codegen"))


# ------------------------------------------------------------------------------- reading Relax


def _type_of(info: Any) -> tuple[str, int | None]:
    """A struct info in words, and its size in bytes where that is known."""
    from .. import relax

    kind = type(info)
    if kind is relax.TensorStructInfo:
        dims = info.dims
        text = "?" * max(info.ndim, 1) if dims is None else "x".join(map(_dim, dims))
        text = text or "scalar"
        if not info.dtype:
            return text, None
        size = None
        if dims is not None and all(hasattr(d, "value") for d in dims):
            size = bytes_of(info.dtype)
            for d in dims:
                size *= int(d.value)
        return f"{text} {info.dtype}", size
    if kind is relax.TupleStructInfo:
        parts = [_type_of(f) for f in info.fields]
        sizes = [s for _, s in parts if s is not None]
        return f"({', '.join(t for t, _ in parts)})", (
            sum(sizes) if len(sizes) == len(parts) else None)
    if kind is relax.ShapeStructInfo:
        return "shape" if info.values is None else f"shape({', '.join(map(_dim, info.values))})", 0
    if kind is relax.PrimStructInfo:
        return info.dtype, 0
    return "object", None


def _dim(dim: Any) -> str:
    return str(getattr(dim, "value", dim))


class _Builder:
    """Walks a function and writes down nodes and edges."""

    def __init__(self, mod: IRModule | None, title: str) -> None:
        self.mod = mod
        self.graph = Graph(title)
        self.text_of: dict[Any, int] = {}

    def build(self, func: Function) -> Graph:
        env: dict[Any, Any] = {}  # ids of nodes, and the constants that variables are names of
        for param in func.params:
            env[param] = self.node("param", param.name_hint, param.name_hint, param.struct_info_)
        out = self.body(func.body, env, None, None)
        end = self.node("output", "output", "", func.ret_struct_info)
        for source in out:
            self.edge(source, end, None)
        return self.graph

    # -- nodes

    def node(self, kind: str, label: str, name: str, info: Any, group: str | None = None,
             region: int | None = None, **more: Any) -> str:
        text, size = _type_of(info) if info is not None else ("", None)
        ident = f"n{len(self.graph.nodes)}"
        self.graph.nodes.append({
            "id": ident, "kind": kind, "label": label, "name": name, "type": text, "bytes": size,
            "constants": [], "attrs": {}, "pure": True, "region": region, "group": group,
            "moved": None, "flops": None, "text": None, "script": "", **more})
        return ident

    def edge(self, source: str, target: str, info: Any) -> None:
        text, size = _type_of(info) if info is not None else ("", None)
        if not text:
            found = self.find(source)
            text, size = found["type"], found["bytes"]
        self.graph.edges.append({"from": source, "to": target, "label": text, "bytes": size})

    def find(self, ident: str) -> dict:
        return self.graph.nodes[int(ident[1:])]

    # -- expressions

    def body(self, body: Any, env: dict, group: str | None, region: int | None) -> list[str]:
        """The nodes of a function's body; ids of those that its value consists of."""
        from .. import relax

        if type(body) is relax.SeqExpr:
            for block in body.blocks:
                inside = region
                if type(block) is relax.DataflowBlock and group is None:
                    inside = self.graph.regions
                    self.graph.regions += 1
                for binding in block.bindings:
                    self.binding(binding, env, group, inside)
            body = body.body
        if type(body) is relax.Tuple:
            return [s for f in body.fields for s in self.sources(f, env, group, region)]
        return self.sources(body, env, group, region)

    def binding(self, binding: Binding, env: dict, group: str | None, region: int | None) -> None:
        from .. import relax

        var, value = binding.var, binding.value
        if type(binding) is relax.MatchCast:
            ident = self.node("cast", "match_cast", var.name_hint, var.struct_info_, group, region,
                              script=_line(binding), moved=0)
            self.inputs(ident, [value], env)
            env[var] = ident
        elif isinstance(value, relax.Var):
            env[var] = env.get(value, env.get(var))
        elif type(value) is relax.Constant:
            env[var] = value  # stands in the nodes that take it
        else:
            ident = env[var] = self.value(value, var.name_hint, env, group, region, _line(binding))
            node = self.find(ident)
            if not node["type"] and var.struct_info_ is not None:
                node["type"], node["bytes"] = _type_of(var.struct_info_)
                self.cost(ident)

    def held(self, expr: Any, env: dict) -> Any:
        """An expression, or the constant that it is a name of."""
        from .. import relax

        found = env.get(expr) if isinstance(expr, relax.Var) else None
        return found if type(found) is relax.Constant else expr

    def sources(self, expr: Any, env: dict, group: str | None, region: int | None) -> list[str]:
        from .. import relax

        expr = self.held(expr, env)
        if isinstance(expr, relax.Var):
            found = env.get(expr)
            if found is None:  # captured from an enclosing function
                found = env[expr] = self.node("param", expr.name_hint, expr.name_hint,
                                              expr.struct_info_, group)
            return [found]
        if type(expr) in (relax.Constant, relax.Call, relax.Tuple, relax.TupleGetItem, relax.If,
                          relax.SeqExpr):
            return [self.value(expr, "", env, group, region, "")]
        return []

    def value(self, value: Any, name: str, env: dict, group: str | None, region: int | None,
              script: str) -> str:
        from .. import relax

        kind = type(value)
        info = value.struct_info_
        place = {"group": group, "region": region, "script": script}
        if kind is relax.Call:
            return self.call(value, name, env, place)
        if kind is relax.Constant:
            return self.node("constant", "constant", name, info, **place)
        if kind is relax.TupleGetItem:
            ident = self.node("item", f"[{value.index}]", name, info, moved=0, **place)
            self.inputs(ident, [value.tuple_value], env)
            return ident
        if kind is relax.Tuple:
            ident = self.node("tuple", "tuple", name, info, moved=0, **place)
            self.inputs(ident, value.fields, env)
            return ident
        if kind is relax.If:
            ident = self.node("if", "if", name, info, **place)
            self.inputs(ident, [value.cond], env)
            for branch in (value.true_branch, value.false_branch):
                for source in self.body(branch, env, group, region):
                    self.edge(source, ident, None)
            return ident
        if kind is relax.Function:
            return self.node("call", "function", name, info, **place)
        return self.node("op", kind.__name__, name, info, moved=0, **place)

    def call(self, call: Any, name: str, env: dict, place: dict) -> str:
        from .. import relax

        op, args = call.op, list(call.args)
        info = call.struct_info_
        if isinstance(op, GlobalVar):
            callee = self.mod.functions.get(op) if self.mod is not None else None
            if callee is not None and isinstance(callee, relax.Function) and _is_fused(callee):
                return self.fused(op, callee, call, name, env, place)
            ident = self.node("call", op.name_hint, name, info, **place)
            self.inputs(ident, args, env)
            return self.cost(ident)
        op_name = getattr(op, "name", None)
        short = (op_name or "").removeprefix("relax.")
        if short in ("call_tir", "call_tir_inplace", "call_tir_with_grad"):
            callee = args[0]
            func = self.mod.functions.get(callee) if self.mod is not None else None
            text = self.text(func) if isinstance(func, PrimFunc) else None
            ident = self.node("kernel", callee.name_hint, name, info, text=text, **place)
            self.inputs(ident, _flat(args[1]), env)
            return self.cost(ident)
        if short in ("call_dps_packed", "call_pure_packed", "call_packed", "call_builtin_with_ctx"):
            target = args[0]
            label = getattr(target, "global_symbol", None) or str(target)
            ident = self.node("extern", label, name, info, **place)
            rest = _flat(args[1]) if short == "call_dps_packed" else args[1:]
            self.inputs(ident, rest, env)
            return self.cost(ident)
        if op_name is None:
            symbol = getattr(op, "global_symbol", None)
            label = symbol or getattr(op, "name_hint", "function")
            ident = self.node("extern" if symbol else "call", label, name, info, **place)
            self.find(ident)["pure"] = not symbol
            self.inputs(ident, args if symbol else [op, *args], env)
            return self.cost(ident)
        ident = self.node("op", short, name, info, **place)
        node = self.find(ident)
        node["attrs"] = {k: str(v) for k, v in (call.attrs or {}).items() if v is not None}
        node["pure"] = _is_pure(op)
        self.inputs(ident, args, env)
        return self.cost(ident)

    def fused(self, gv: Any, callee: Any, call: Any, name: str, env: dict, place: dict) -> str:
        from .. import relax

        ident = self.node("group", gv.name_hint, name, call.struct_info_, **place)
        self.inputs(ident, call.args, env)
        self.cost(ident)
        inner: dict[Any, Any] = {}
        for param, arg in zip(callee.params, call.args):
            arg = self.held(arg, env)
            if type(arg) is relax.Constant:
                inner[param] = arg
                continue
            found = self.sources(arg, env, place["group"], place["region"])
            inner[param] = found[0] if found else ident
        for source in self.body(callee.body, inner, ident, place["region"]):
            self.edge(source, ident, None)
        return ident

    def inputs(self, ident: str, args: Iterable[Any], env: dict) -> None:
        """Edges from what a node takes; constants are written into the node."""
        from .. import relax

        node = self.find(ident)
        for arg in args:
            arg = self.held(arg, env)
            if type(arg) is relax.Constant:
                text, size = _type_of(arg.struct_info_)
                node["constants"].append({"type": text, "bytes": size})
            elif type(arg) is relax.Tuple:
                self.inputs(ident, arg.fields, env)
            else:
                for source in self.sources(arg, env, node["group"], node["region"]):
                    self.edge(source, ident, arg.struct_info_)

    def cost(self, ident: str) -> str:
        """Bytes moved by a call: what it takes and what it gives."""
        node = self.find(ident)
        sizes = [e["bytes"] for e in self.graph.edges
                 if e["to"] == ident and self.find(e["from"])["group"] != ident]
        sizes += [c["bytes"] for c in node["constants"]]
        sizes.append(node["bytes"])
        node["moved"] = None if None in sizes else sum(sizes)
        return ident

    def text(self, func: PrimFunc) -> int:
        index = self.text_of.get(func)
        if index is None:
            index = self.text_of[func] = len(self.graph.texts)
            self.graph.texts.append(func.script())
        return index


def _flat(args: Any) -> list:
    return list(args.fields) if hasattr(args, "fields") else [args]


def _is_pure(op: Any) -> bool:
    attr = getattr(op, "attrs", None) or {}
    found = attr.get("FPurity") if hasattr(attr, "get") else None
    if found is None:
        found = getattr(op, "pure", True)
    return bool(found)


def _line(binding: Binding) -> str:
    """A binding as one line of TVMScript, without its metadata."""
    try:
        script = getattr(binding, "script", None)
        text = repr(binding) if script is None else script()
    except Exception:  # a drawing does not fail because a line cannot be printed
        return ""
    kept = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    return "\n".join(kept)[:2000]


__all__ = ["Graph", "GraphError", "graph_of"]
