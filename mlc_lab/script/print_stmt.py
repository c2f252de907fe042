"""How each statement is written. `STMT` maps a node type to its function (printer, node)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..ir.node import Node
from ..tir import expr as E
from ..tir import op as O
from ..tir import stmt as S
from .print_expr import Rows, iter_var, quote
from .print_parts import annotation, buffer_decl
from .regions import same_expr

if TYPE_CHECKING:
    from .printer import Printer


def is_true(value: object) -> bool:
    """Whether a condition is the constant True."""
    return type(value) is E.IntImm and value.value == 1


def _store(p: Printer, s: S.BufferStore) -> None:
    name = p.names.get(s.buffer) or p.buffer_name(s.buffer)
    if s.predicate is not None:
        indices = p.indices(s.indices)
        p.line(f"{name}.vstore([{indices}], {p.expr(s.value)}, "
               f"predicate={p.expr(s.predicate)})")
        return
    indices = p.indices(s.indices)
    p.line(f"{name}[{indices}] = {p.expr(s.value)}")


def _evaluate(p: Printer, s: S.Evaluate) -> None:
    value = s.value
    if type(value) is E.Call and getattr(value.op, "name", "") == "tir.ret" and (
            len(value.args) == 1):
        p.line(f"return {p.expr(value.args[0])}")
        return
    text = p.expr(value)
    p.used.add("T")
    p.line(text if type(s.value) is E.Call else f"{p.T}.evaluate({text})")


def _seq(p: Printer, s: S.SeqStmt) -> None:
    concise = p.concise
    for item in s.seq:
        p.concise = concise and item is s.seq[-1]
        p.stmt(item)


#: the word of a loop, by its kind; "serial" for all others
LOOP_WORDS = {S.ForKind.PARALLEL: "parallel", S.ForKind.VECTORIZED: "vectorized",
               S.ForKind.UNROLLED: "unroll", S.ForKind.THREAD_BINDING: "thread_binding"}


def grid_of(loop: S.For) -> list[S.For]:
    """The loops that are written as one T.grid, outermost first."""
    group: list[S.For] = []
    inner: Any = loop
    while (type(inner) is S.For and inner.kind == 0 and not inner.annotations
           and type(inner.min) is E.IntImm and inner.min.value == 0):
        extent = inner.extent
        if group and type(extent) is not E.IntImm:
            mine = {g.loop_var for g in group}
            if isinstance(extent, E.Var):
                if extent in mine:
                    break
            elif _uses_any(extent, mine):
                break
        if inner.extent.dtype != inner.loop_var.dtype:
            break
        group.append(inner)
        inner = inner.body
    return group


def _uses_any(node: Node, variables: set) -> bool:
    return node in variables or any(_uses_any(k, variables) for k in node.children())


def _for(p: Printer, s: S.For) -> None:
    group = grid_of(s) if p.sugar else []
    start = len(p.out)
    p.enter(s, start)
    if len(group) > 1:
        extents = [p.loop_extent(g) for g in group]
        names = [p.loop_name(g) for g in group]
        p.used.add("T")
        p.line(f"for {', '.join(names)} in {p.T}.grid({', '.join(extents)}):", group)
        p.loop_body(s, group[-1].body)
        p.leave()
        return
    args = []
    zero = type(s.min) is E.IntImm and s.min.value == 0 and s.min.dtype == s.loop_var.dtype
    if not zero:
        args.append(p.expr(s.min))
        args.append(p.expr(O.add(s.min, s.extent)))
    else:
        args.append(p.loop_extent(s))
    if s.thread_binding is not None:
        args.append(f"thread={quote(s.thread_binding.thread_tag)}")
    if s.annotations:
        args.append(f"annotations={p.attrs(s.annotations)}")
    if s.kind == 0 and not s.annotations:
        head = "range"
    else:
        p.used.add("T")
        head = f"{p.T}.{LOOP_WORDS.get(s.kind, 'serial')}"
    name = p.loop_name(s)
    p.line(f"for {name} in {head}({', '.join(args)}):", (s,))
    p.loop_body(s, s.body)
    p.leave()


#: how an iterator is written, by its type: its word, its letter in T.axis.remap
AXIS_WORDS = {0: ("spatial", "S"), 2: ("reduce", "R"), 3: ("scan", ""), 4: ("opaque", "")}


def _block_axes(p: Printer, block: S.Block, values: tuple) -> None:
    loops: dict[Any, S.For] = {}
    if values and p.sugar:
        for frame in p.frames:
            loop = frame.node
            while type(loop) is S.For and loop.loop_var not in loops:
                loops[loop.loop_var] = loop
                loop = loop.body
    pending: list[int] = []

    def flush() -> None:
        if len(pending) == 1:
            single(pending[0])
        elif pending:
            letters = "".join(AXIS_WORDS[block.iter_vars[i].iter_type][1] for i in pending)
            sources = p.exprs(values[i] for i in pending)
            names = ", ".join([p.define(block.iter_vars[i].var, block.iter_vars[i].var.name)
                               for i in pending])
            p.line(f'{names} = {p.T}.axis.remap("{letters}", [{sources}])',
                   [block.iter_vars[i] for i in pending])
        pending.clear()

    def single(index: int) -> None:
        iv = block.iter_vars[index]
        low, extent = iv.dom.min, iv.dom.extent
        if type(low) is E.IntImm and low.value == 0 and low.dtype == extent.dtype:
            dom = p.expr(extent)
        else:
            dom = f"({p.expr(low)}, {p.expr(O.add(low, extent))})"
        value = f", {p.expr(values[index])}" if index < len(values) else ""
        name = p.define(iv.var, iv.var.name)
        p.line(f"{name} = {p.T}.axis.{AXIS_WORDS[iv.iter_type][0]}({dom}{value})", (iv,))

    for index, iv in enumerate(block.iter_vars):
        bound = bool(loops) and index < len(values) and iv.iter_type in (0, 2)
        loop = loops.get(values[index]) if bound else None
        if loop is not None and iv.var.dtype == loop.loop_var.dtype and (
                same_expr(loop.min, iv.dom.min) and same_expr(loop.extent, iv.dom.extent)):
            pending.append(index)
        else:
            flush()
            single(index)
    flush()


def _block(p: Printer, block: S.Block, realize: S.BlockRealize | None = None) -> None:
    p.used.add("T")
    T = p.T
    extra = "" if realize is not None else ", no_realize=True"
    p.enter(block)
    p.line(f"with {T}.block({quote(block.name_hint)}{extra}):")
    saved = p.indent
    p.indent = saved + p.step
    _block_axes(p, block, realize.iter_values if realize is not None else ())
    if realize is not None and not is_true(realize.predicate):
        p.line(f"{T}.where({p.expr(realize.predicate)})")
    for word, regions in (("reads", block.reads), ("writes", block.writes)):
        p.line(f"{T}.{word}({', '.join([p.region(r) for r in regions])})")
    if block.annotations:
        p.line(f"{T}.block_attr({p.attrs(block.annotations)})")
    for buffer in block.alloc_buffers:
        p.define_buffer("alloc_buffer", buffer, [])
    for match in block.match_buffers:
        p.define_buffer("match_buffer", match.buffer, [p.region(match.source)], match=True)
    if block.init is not None:
        p.enter(block.init)
        p.line(f"with {T}.init():")
        p.indented(block.init)
        p.leave()
    p.body(block.body)
    p.leave()
    p.indent = saved


def _let(p: Printer, s: S.LetStmt) -> None:
    concise = p.concise
    value = p.expr(s.value)
    p.enter(s)
    kind = annotation(p, s.var)
    p.used.add("T")
    known = s.var in p.names
    name = p.names[s.var] if known else p.define(s.var, s.var.name)
    if concise and not known:
        p.line(f"{name}: {kind} = {value}")
        p.body(s.body)
        p.leave()
    elif known:
        p.scoped(s, None, f"{p.T}.LetStmt({value}, var={name})", s.body, concise)
    else:
        p.scoped(s, name, f"{p.T}.LetStmt({value})", s.body, False)


def _attr_stmt(p: Printer, s: S.AttrStmt) -> None:
    concise = p.concise
    p.used.add("T")
    subject, name = s.node, None
    if s.attr_key in ("thread_extent", "virtual_thread") and type(subject) is E.IterVar:
        value = p.expr(s.value)
        var = subject.var
        known = p.names.get(var)
        frame = None if known else p.lowest_frame(var)
        p.enter(s)
        if known is None and (frame is None or frame.node is None or frame.node is s
                              or p.holds_all_of(s, var)):
            name = p.define(var, var.name)
            text = f"{p.T}.launch_thread({quote(subject.thread_tag)}, {value})"
        else:
            if known is None and frame is not None:
                known = p.define(var, var.name, frame)
                p.insert(frame, f"{known} = {p.T}.env_thread({quote(subject.thread_tag)})")
            text = f"{p.T}.launch_thread({known}, {value})"
        p.scoped(s, name, text, s.body, concise)
        return
    first = iter_var(p, subject) if type(subject) is E.IterVar else p.attr(subject)
    text = f"{p.T}.attr({first}, {quote(s.attr_key)}, {p.expr(s.value)})"
    p.enter(s)
    p.scoped(s, None, text, s.body, concise)


def _assert(p: Printer, s: S.AssertStmt) -> None:
    concise = p.concise
    condition, message = p.expr(s.condition), p.expr(s.message)
    p.enter(s)
    if concise:
        p.line(f"assert {condition}, {message}")
        p.body(s.body)
    else:
        p.line(f"with {p.T}.Assert({condition}, {message}):")
        p.indented(s.body)
    p.leave()


def _allocate(p: Printer, s: S.Allocate) -> None:
    concise = p.concise
    p.used.add("T")
    args = [f"[{p.exprs(s.extents)}]", quote(s.dtype), quote(s.buffer_var.storage_scope)]
    if not is_true(s.condition):
        args.append(f"condition={p.expr(s.condition)}")
    if s.annotations:
        args.append(f"annotations={p.attrs(s.annotations)}")
    p.enter(s)
    name = p.define(s.buffer_var, s.buffer_var.name)
    p.scoped(s, name, f"{p.T}.allocate({', '.join(args)})", s.body, concise)


def _allocate_const(p: Printer, s: S.AllocateConst) -> None:
    concise = p.concise
    p.used.add("T")
    data = "None"
    if s.data is not None:
        import numpy as np

        values = np.asarray(s.data).reshape(-1).tolist()
        data = f"[{', '.join(repr(v) for v in values)}]"
    args = [data, quote(s.dtype), f"[{p.exprs(s.extents)}]"]
    if s.annotations:
        args.append(f"annotations={p.attrs(s.annotations)}")
    p.enter(s)
    name = p.define(s.buffer_var, s.buffer_var.name)
    p.scoped(s, name, f"{p.T}.allocate_const({', '.join(args)})", s.body, concise)


def _decl_buffer(p: Printer, s: S.DeclBuffer) -> None:
    concise = p.concise
    before: list[str] = []
    if s.buffer.data not in p.names:
        p.var_name(s.buffer.data)
    p.enter(s)
    name = p.define(s.buffer, s.buffer.name or "buffer")
    text = buffer_decl(p, f"{p.T}.decl_buffer", s.buffer, name, [], before)
    for item in before:
        p.line(item)
    p.scoped(s, name, text, s.body, concise)


#: conditions of which each stands in the `else` of the one before: of more than so many they are
#: written as `elif`. TVM writes each one level further in; a text of thousands of levels would be
#: too long to be read again.
_NESTED = 16


def _if(p: Printer, s: S.IfThenElse) -> None:
    chain = [s]
    while type(chain[-1].else_case) is S.IfThenElse:
        chain.append(chain[-1].else_case)
    for word, item in zip(["if", *["elif"] * len(chain)], chain if len(chain) > _NESTED else [s]):
        s = item
        head = f"{word} {p.expr(s.condition)}:"
        p.enter(s)
        p.line(head)
        p.indented(s.then_case)
        p.leave()
    if s.else_case is not None:
        p.enter(s)
        p.line("else:")
        p.indented(s.else_case)
        p.leave()


def _while(p: Printer, s: S.While) -> None:
    head = f"while {p.expr(s.condition)}:"
    p.enter(s)
    p.line(head)
    p.indented(s.body)
    p.leave()


STMT: dict[type, Callable[[Printer, Any], None]] = Rows({
    S.For: _for, S.BufferStore: _store, S.Evaluate: _evaluate, S.SeqStmt: _seq,
    S.BlockRealize: lambda p, s: _block(p, s.block, s), S.Block: _block, S.LetStmt: _let,
    S.AttrStmt: _attr_stmt, S.AssertStmt: _assert, S.Allocate: _allocate,
    S.AllocateConst: _allocate_const, S.DeclBuffer: _decl_buffer, S.IfThenElse: _if,
    S.While: _while,
})

__all__ = ["AXIS_WORDS", "LOOP_WORDS", "STMT", "grid_of", "is_true"]
