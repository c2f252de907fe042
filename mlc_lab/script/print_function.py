"""How a PrimFunc is written: its parameters, the buffers they stand for, its root block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..ir.node import Node
from ..tir import stmt as S
from ..tir.access import contains_block
from ..tir.expr import IntImm, Var
from ..tir.function import PrimFunc
from ..tir.functor import names_in
from .print_parts import annotation, buffer_decl, is_simple_buffer, type_text
from .print_stmt import is_true

if TYPE_CHECKING:
    from .printer import Printer


def prim_func(p: Printer, func: PrimFunc, name: str) -> None:
    """A PrimFunc called `name`."""
    p.used.add("T")
    attrs = func.attrs or {}
    private = "global_symbol" not in attrs
    p.line(f"@{p.T}.prim_func(private=True)" if private else f"@{p.T}.prim_func")
    p.enter(func)
    pointers: dict[Any, int] = {}
    for buffer in func.buffer_map.values():
        pointers[buffer.data] = pointers.get(buffer.data, 0) + 1
    params, inlined = [], set()
    used = _named(func.buffer_map, func.body)
    for var in func.params:
        buffer = func.buffer_map.get(var)
        if (buffer is not None and p.sugar and var not in used and pointers[buffer.data] == 1
                and is_simple_buffer(buffer)):
            text = p.define(buffer, buffer.name or "buffer")
            decl = buffer_decl(p, f"{p.T}.Buffer", buffer, text, [], [], full=True)
            params.append(p.param(buffer, f"{text}: {decl}"))
            inlined.add(var)
        else:
            params.append(f"{p.define(var, var.name)}: {annotation(p, var)}")
    returns = f" -> {type_text(p, func.ret_type)}" if func.ret_type not in (None, "void") else ""
    p.line(f"def {name}({', '.join(params)}){returns}:")
    saved = p.indent
    p.indent += p.step
    if str(attrs.get("global_symbol", "")) == name:
        attrs = {k: v for k, v in attrs.items() if k != "global_symbol"}
    if attrs:
        p.line(f"{p.T}.func_attr({p.attrs(attrs)})")
    for var in func.params:
        buffer = func.buffer_map.get(var)
        if buffer is not None and var not in inlined:
            p.define_buffer("match_buffer", buffer, [p.names[var]], match=True)
    root = implicit_root(func) if p.sugar else None
    if root is not None and isinstance(func.body, S.BlockRealize):
        p.root_comment(root, func.body)
        for buffer in root.alloc_buffers:
            p.define_buffer("alloc_buffer", buffer, [])
        p.body(root.body)
    else:
        p.body(func.body)
    p.leave()
    p.indent = saved


def _named(wanted: Iterable[Var], body: S.Stmt) -> set[Node]:
    """Those of some parameters, which stand for buffers, that a function's body names itself.

    What a block names is remembered: most steps of a schedule leave most blocks as they are.
    """
    names, found = set(wanted), set()
    stack: list[Any] = [body]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind is S.For and type(item.extent) is IntImm is type(item.min) and (
                not item.annotations):
            stack.append(item.body)
        elif kind is S.Block and item.iter_vars:
            inside = names_in(item)
            if not names.isdisjoint(inside):
                found |= names & inside
        elif kind is S.BlockRealize:
            stack += (*item.iter_values, item.predicate, item.block)
        elif kind is Var:
            if item in names:
                found.add(item)
        elif kind is not IntImm:
            stack += item.children()
    return found


def implicit_root(func: PrimFunc) -> S.Block | None:
    """The root block, where the parser would add it by itself."""
    realize = func.body
    if type(realize) is not S.BlockRealize or realize.iter_values:
        return None
    root = realize.block
    if (not is_true(realize.predicate) or root.annotations or root.match_buffers
            or root.reads or root.writes or root.init is not None or root.iter_vars
            or root.name_hint != "root"):
        return None
    inner = root.body
    if root.alloc_buffers:
        return root
    if type(inner) is S.BlockRealize:
        return root if inner.block.iter_vars else None
    return root if contains_block(inner) else None


__all__ = ["implicit_root", "prim_func"]
