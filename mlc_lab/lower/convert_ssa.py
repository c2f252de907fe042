"""ConvertSSA: no variable is bound twice in a module.

Before, where both loops have the same variable `i`::

    for i in range(8):
        A[i] = 0.0
    for i in range(4):
        B[i] = 0.0

After, the second loop has a variable of its own, of the same name. So has a function that shares
its parameters or buffers with another one. The thread axes of a function may be launched several
times.
"""

from __future__ import annotations

from typing import Any

from ..ir.module import IRModule
from ..ir.node import Node
from ..ir.transform import Pass, PassContext, PassInfo
from ..tir.expr import IterVar, Let, Var
from ..tir.function import PrimFunc
from ..tir.functor import pre_order, substitute
from ..tir.renew import renew_defs
from ..tir.stmt import Allocate, AttrStmt, For, LetStmt

_BINDERS = {For: "loop_var", LetStmt: "var", Let: "var", Allocate: "buffer_var"}


def _defined(func: PrimFunc) -> set[Any]:
    """The variables and buffers that are a function's own."""
    found: set[Any] = {*func.params, *func.buffer_map.values()}
    for item in pre_order(func.body):
        name = _BINDERS.get(type(item))
        if name is not None:
            found.add(getattr(item, name))
        for held in ("buffer", "node"):  # undeclared buffers, thread axes
            part = getattr(item, held, None)
            if part is not None:
                found.add(getattr(part, "var", part))
        for buffer in getattr(item, "alloc_buffers", ()):
            found.add(buffer)
        for iv in getattr(item, "iter_vars", ()):
            found.add(iv.var)
    return found


def bound_variables(node: Node) -> set[Var]:
    """The variables that are bound in a node."""
    found = {getattr(item, name) for item in pre_order(node)
             for name in (_BINDERS.get(type(item)),) if name is not None}
    return found | {item.node.var for item in pre_order(node)
                    if isinstance(item, AttrStmt) and isinstance(item.node, IterVar)} | {
        iv.var for item in pre_order(node) for iv in getattr(item, "iter_vars", ())}


def bound_once(node: Any, seen: set[Var]) -> Any:
    """A node where each variable is bound once; `seen` are those bound before."""
    name = _BINDERS.get(type(node))
    if name is not None:
        var = getattr(node, name)
        if var in seen:
            fresh = var.with_name(var.name)
            node = node.replace(**{name: fresh, "body": substitute(node.body, {var: fresh})})
            var = fresh
        seen.add(var)
    return node.map_children(lambda child: bound_once(child, seen))


def _run(mod: IRModule, ctx: PassContext) -> IRModule:
    """The module with each variable bound once."""
    out, known = mod, set()
    for var, func in list(mod.functions.items()):
        if not isinstance(func, PrimFunc):
            continue
        new = func
        if not known.isdisjoint(_defined(func)):
            new = renew_defs(func)
        new = new.with_body(bound_once(new.body, set(new.params)))
        known |= _defined(new)
        if new is not func:
            out = mod.copy() if out is mod else out
            out.functions[var] = new
    return out


def ConvertSSA() -> Pass:
    """Give variables new names until none is bound twice in a module."""
    return Pass(_run, PassInfo("tir.ConvertSSA"))
