"""Where undefined variables and buffers are used: in which scope the printer declares them."""

from __future__ import annotations

from typing import Any

from ..ir.node import Node
from ..tir import expr as E
from ..tir import stmt as S
from ..tir.buffer import Buffer
from ..tir.function import PrimFunc


def lowest_common(root: Any) -> dict[Any, tuple]:
    """For each variable and buffer the innermost scope node that holds all its uses.

    A scope is a chain (outer chain, node, depth).
    """
    found: dict[Any, tuple] = {}
    seen_buffers: dict[Buffer, tuple] = {}
    scopes = (PrimFunc, S.For, S.Block, S.LetStmt, S.AttrStmt, S.AssertStmt, S.Allocate,
              S.AllocateConst, S.DeclBuffer, S.While, S.IfThenElse)

    def meet(a: tuple, b: tuple) -> tuple:
        while a is not b:
            if a[2] >= b[2]:
                a = a[0]
            else:
                b = b[0]
        return a

    def note(obj: object, chain: tuple) -> None:
        known = found.get(obj)
        found[obj] = chain if known is None else meet(known, chain)

    def note_buffer(buffer: Buffer, chain: tuple) -> None:
        if seen_buffers.get(buffer) is chain:
            return
        seen_buffers[buffer] = chain
        note(buffer, chain)
        note(buffer.data, chain)
        for part in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            if part is not None:
                walk(part, chain)

    def walk(node: Any, chain: tuple) -> None:
        kind = type(node)
        if isinstance(node, E.Var):
            note(node, chain)
            return
        if kind in scopes:
            chain = (chain, node, chain[2] + 1)
        if kind is E.BufferLoad or kind is S.BufferStore or kind is S.BufferRegion:
            note_buffer(node.buffer, chain)
        elif kind is S.Block:
            for iv in node.iter_vars:
                walk(iv.dom, chain)
        elif kind is S.AttrStmt:
            subject = node.node
            if isinstance(subject, E.IterVar):
                note(subject.var, chain)
            elif isinstance(subject, Buffer):
                note_buffer(subject, chain)
            elif isinstance(subject, Node):
                walk(subject, chain)
        elif kind is S.DeclBuffer:
            note_buffer(node.buffer, chain)
        elif kind is Buffer:
            note_buffer(node, chain)
        for item in node.children():
            walk(item, chain)

    if isinstance(root, Node):
        walk(root, (None, None, 0))
    return found


__all__ = ["lowest_common"]
