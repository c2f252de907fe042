"""How types, buffers and the other parts are written: `PARTS` maps each to its function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..ir.module import GlobalVar
from ..ir.node import Node
from ..tir import expr as E
from ..tir import stmt as S
from ..tir.buffer import Buffer
from ..tir.function import IndexMap, TensorIntrin
from .print_expr import iter_var, quote, range_text, reducer

if TYPE_CHECKING:
    from .printer import Frame, Printer


def annotation(p: Printer, var: E.Var) -> str:
    """The annotation of a parameter or let variable."""
    text = type_text(p, var.type_annotation) if var.type_annotation is not None else (
        f"{p.T}.{var.dtype}")
    if type(var) is E.SizeVar:  # TVM leaves this out, and loses it when parsing back
        return f"{text}(is_size_var=True)"
    return text


def type_text(p: Printer, kind: Any) -> str:
    """A type as script."""
    if isinstance(kind, str):
        return f"{p.T}.{kind}" if kind != "void" else "None"
    if type(kind) is E.PrimType:
        return f"{p.T}.{kind.dtype}"
    element = kind.element_type
    inner = quote(element.dtype) if type(element) is E.PrimType else type_text(p, element)
    scope = f", {quote(kind.storage_scope)}" if kind.storage_scope else ""
    return f"{p.T}.handle({inner}{scope})"


def var_creation(p: Printer, var: E.Var) -> str:
    """T.int64() or T.handle("float32", "shared")"""
    p.used.add("T")
    size = "is_size_var=True" if type(var) is E.SizeVar else ""
    if var.type_annotation is not None:
        return type_text(p, var.type_annotation)
    return f"{p.T}.{var.dtype}({size})"


def buffer_decl(p: Printer, head: str, buffer: Buffer, name: str, first: list[str],
                before: list[str], match: bool = False, frame: Frame | None = None,
                full: bool = False) -> str:
    """`head(first..., shape, dtype, data=, strides=, ...)` with default arguments left out.

    New variables in the shape are defined first, by lines added to `before`; the data pointer
    and (for match_buffer) strides and offset are defined by the buffer itself.
    """
    p.used.add("T")
    names = p.names
    new: list[tuple[str, str]] = []

    def out_of_line(var: E.Var) -> None:
        new.append((p.define(var, var.name, frame), var_creation(p, var)))

    for dim in buffer.shape:
        if isinstance(dim, E.Var) and dim not in names:
            out_of_line(dim)
    args = [*first, p.tuple(buffer.shape)]
    if full or buffer.dtype != p.buffer_dtype:
        args.append(quote(buffer.dtype))
    if buffer.data in names:
        args.append(f"data={names[buffer.data]}")
    else:
        p.define_as(buffer.data, f"{name}.data", frame)
    if buffer.strides:
        strides = []
        for number, stride in enumerate(buffer.strides):
            if isinstance(stride, E.Var) and stride not in names:
                once = sum(s is stride for s in (*buffer.strides, buffer.elem_offset)) == 1
                if match and once and type(stride) is E.Var and (
                        stride.dtype == (buffer.shape[0].dtype if buffer.shape else "int32")):
                    p.define_as(stride, f"{name}.strides[{number}]", frame)
                    strides.append(quote(stride.name))
                    continue
                out_of_line(stride)
            strides.append(p.expr(stride))
        tail = "," if len(strides) == 1 else ""
        args.append(f"strides=({', '.join(strides)}{tail})")
    offset, factor = buffer.elem_offset, buffer.offset_factor != 1
    if type(offset) is E.IntImm:
        if offset.value != 0:
            args.append(f"elem_offset={p.expr(offset)}")
    elif isinstance(offset, E.Var) and offset not in names and type(offset) is E.Var and (
            offset.dtype == (buffer.shape[0].dtype if buffer.shape else "int32")):
        p.define_as(offset, f"{name}.elem_offset", frame)
        factor = True
    elif offset is not None:
        if isinstance(offset, E.Var) and offset not in names:
            out_of_line(offset)
        args.append(f"elem_offset={p.expr(offset)}")
    scope = buffer.data.storage_scope
    if scope != "global":
        args.append(f"scope={quote(scope)}")
    if buffer.data_alignment != 64:
        args.append(f"align={buffer.data_alignment}")
    if factor:
        args.append(f"offset_factor={buffer.offset_factor}")
    if buffer.buffer_type == 2:
        args.append('buffer_type="auto"')
    if buffer.axis_separators:
        args.append(f"axis_separators={p.attr(buffer.axis_separators)}")
    if len(new) == 1:
        before.append(f"{new[0][0]} = {new[0][1]}")
    elif new:
        before.append(f"{', '.join(n for n, _ in new)} = {', '.join(c for _, c in new)}")
    return f"{head}({', '.join(args)})"


def is_simple_buffer(buffer: Buffer) -> bool:
    """Whether `A: T.Buffer(shape, dtype)` says everything about the buffer."""
    return (not buffer.strides and not buffer.axis_separators
            and buffer.data_alignment == 64 and buffer.offset_factor == 1
            and buffer.buffer_type == 1 and buffer.data.storage_scope == "global"
            and type(buffer.elem_offset) is E.IntImm and buffer.elem_offset.value == 0
            and all(type(d) is E.IntImm or not _has_var(d) for d in buffer.shape))


def _has_var(node: Node) -> bool:
    return isinstance(node, E.Var) or any(map(_has_var, node.children()))


#: parts that are printed when asked for alone
PARTS: dict[type, Callable[[Printer, Any], str]] = {
    Buffer: lambda p, b: buffer_decl(p, f"{p.T}.Buffer", b, b.name, [], []),
    S.BufferRegion: lambda p, r: p.region(r),
    S.MatchBufferRegion: lambda p, m: buffer_decl(
        p, f"{p.T}.match_buffer", m.buffer, m.buffer.name, [p.region(m.source)], [], match=True),
    E.Range: range_text, E.IterVar: iter_var, E.CommReducer: reducer,
    E.PrimType: type_text, E.PointerType: type_text,
    E.Op: lambda p, o: quote(o.name), IndexMap: lambda p, m: p.index_map(m),
    GlobalVar: lambda p, g: f'{p.I}.GlobalVar({quote(g.name_hint)})',
    TensorIntrin: lambda p, t: object.__repr__(t),
}

__all__ = ["PARTS", "annotation", "buffer_decl", "is_simple_buffer", "type_text", "var_creation"]
