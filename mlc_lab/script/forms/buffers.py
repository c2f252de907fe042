"""Forms about buffers: declared, matched with a parameter or a region, allocated, stored to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ...arith.analyzer import Analyzer
from ...tir import expr as E
from ...tir import op as O
from ...tir import stmt as S
from ...tir.buffer import Buffer, decl_buffer, extent_of
from .. import tir as T
from ..values import Pending
from .blocks import as_region, need_block
from .table import form

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ...tir.expr import BufferLoad, ExprLike, Var
    from ...tir.stmt import BufferRegion
    from ..parser import Parser


def shape_of(shape: Sequence[Any] | ExprLike) -> tuple:
    """Extents given as a sequence, or one extent, as expressions."""
    shape = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(extent_of(T.as_expr(s)) for s in shape)


def _declared(shape: Sequence[Any] | ExprLike, dtype: object, data: Var | Buffer | None,
              strides: Sequence[Any] | None, elem_offset: ExprLike | str | None, scope: str,
              align: int, offset_factor: int, buffer_type: str,
              axis_separators: Sequence[int] | None, first_use: Callable[[Buffer], Any]) -> Pending:
    """A buffer made when its name is known; `first_use` is told of it."""
    shape = shape_of(shape)
    index = shape[0].dtype if shape else "int32"
    kind = T.dtype_of(dtype)

    def finish(name: str) -> Buffer:
        made: dict[str, E.Var] = {}
        steps = [made.setdefault(s, E.Var(s, index)) if isinstance(s, str) else T.as_expr(s)
                 for s in strides or ()]
        steps = [O.cast(E.const_index(s), index) if isinstance(s, int) else s for s in steps]
        offset = elem_offset
        if isinstance(offset, str):
            offset = E.Var(offset, index)
        elif isinstance(offset, int):
            offset = O.const(offset, index)
        elif isinstance(offset, E.Var) and offset.name == "":
            offset = offset.with_name(f"{name}_elem_offset")
        pointer = data.data if isinstance(data, Buffer) else data
        buffer = decl_buffer(
            shape, kind, name, pointer, steps, offset,
            "" if scope == "global" else scope, align, offset_factor,
            buffer_type if buffer_type != "default" else "",
            [int(a) for a in axis_separators or ()])
        first_use(buffer)
        return buffer

    return Pending(finish)


@form("Buffer", "buffer_decl")
def buffer_form(parser: Parser, shape: Sequence[Any] | ExprLike, dtype: object = "float32",
                data: Var | Buffer | None = None, strides: Sequence[Any] | None = None,
                elem_offset: ExprLike | str | None = None, scope: str = "global", align: int = -1,
                offset_factor: int = 0, buffer_type: str = "",
                axis_separators: Sequence[int] | None = None) -> Pending:
    """A buffer: of a parameter, or over a pointer that exists."""
    items = shape if isinstance(shape, (tuple, list)) else (shape,)
    for text in items:
        if isinstance(text, str) and not text.isidentifier():
            raise ValueError(f"{text[:60]!r} is no name of a dimension")
    named = [E.Var(s, "int32") if isinstance(s, str) else s for s in items]
    for text, var in zip(items, named):
        if isinstance(text, str):
            known = next((s[text] for s in reversed(parser.scopes) if text in s), None)
            named = [known if n is var and known is not None else n for n in named]
            if known is None:
                parser.define(text, var)
    return _declared(tuple(named), dtype, data, strides, elem_offset, scope, align, offset_factor,
                     buffer_type, axis_separators,
                     lambda b: parser.buffers.setdefault(b.data, b))


def shows_region(buffer: Buffer, source: BufferRegion) -> None:
    """ValueError where a buffer cannot be another name for a region: it has the region's type, its
    scope and, but for dimensions of one element that come first, its shape."""
    region = source.buffer
    if buffer.dtype != region.dtype:
        raise ValueError(f"the region of {region.name} holds {region.dtype}, the buffer for it is "
                         f"declared {buffer.dtype}: write dtype=\"{region.dtype}\"")
    if buffer.scope != region.scope:
        raise ValueError(f"the region of {region.name} is in memory of scope {region.scope!r}, the "
                         f"buffer for it is declared {buffer.scope!r}: write "
                         f"scope=\"{region.scope}\"")
    analyzer = Analyzer()
    left_out = len(source.region) - len(buffer.shape)
    fits = left_out >= 0 and all(analyzer.can_prove(O.equal(r.extent, 1))
                                 for r in source.region[:left_out])
    for extent, dom in zip(buffer.shape, source.region[max(left_out, 0):]):
        # a variable alone is a name for the extent
        fits = fits and (isinstance(extent, E.Var) or analyzer.can_prove(
            O.equal(*O.match_types(dom.extent, extent))))
    if not fits:
        raise ValueError(f"the region of {region.name} has the extents "
                         f"({', '.join(str(r.extent) for r in source.region)}), the buffer for it "
                         f"the shape ({', '.join(map(str, buffer.shape))}): they must be equal, "
                         "but for leading dimensions of one element, which may be left out")


@form("match_buffer", "preflattened_buffer")
def match_buffer(parser: Parser, param: Var | BufferRegion | BufferLoad | Buffer,
                 shape: Sequence[Any] | ExprLike | None = None, dtype: object = "float32",
                 data: Var | Buffer | None = None, strides: Sequence[Any] | None = None,
                 elem_offset: ExprLike | str | None = None, scope: str = "global", align: int = -1,
                 offset_factor: int = 0, buffer_type: str = "default",
                 axis_separators: Sequence[int] | None = None, type: str = "") -> Pending:
    """The buffer of a handle parameter; inside a block, a name for a region of a buffer."""
    if isinstance(param, E.Var):
        func = parser.func
        if not any(param is p for p in func.params):
            raise ValueError("T.match_buffer takes a parameter of the function or, in a block, a "
                             "region of a buffer")
        if shape is None:
            raise TypeError("T.match_buffer of a parameter needs a shape")

        if param in func.buffer_map:
            raise ValueError(f"parameter {param.name} is the buffer "
                             f"{func.buffer_map[param].name} already: a parameter is one buffer")

        def bind(buffer: Buffer) -> None:
            func.buffer_map[param] = buffer
            parser.buffers[buffer.data] = buffer

        return _declared(shape, dtype, data, strides, elem_offset, scope, align, offset_factor,
                         type or buffer_type, axis_separators, bind)
    source = as_region(param)
    block = need_block(parser, "match_buffer of a region")
    if shape is None:
        shape, dtype = tuple(r.extent for r in source.region), source.buffer.dtype

    def match(buffer: Buffer) -> None:
        shows_region(buffer, source)
        block.matches.append(S.MatchBufferRegion(buffer, source))
        parser.buffers[buffer.data] = buffer

    return _declared(shape, dtype, data, strides, elem_offset, scope, align, offset_factor,
                     type or buffer_type, axis_separators, match)


@form("alloc_buffer")
def alloc_buffer(parser: Parser, shape: Sequence[Any] | ExprLike, dtype: object = "float32",
                 data: Var | Buffer | None = None, strides: Sequence[Any] | None = None,
                 elem_offset: ExprLike | str | None = None, scope: str = "global", align: int = -1,
                 offset_factor: int = 0, buffer_type: str = "default",
                 axis_separators: Sequence[int] | None = None) -> Pending:
    """Memory of the innermost block (of the function, outside of blocks)."""
    home = parser.blocks[-1].allocs if parser.blocks else parser.func.allocs

    def bind(buffer: Buffer) -> None:
        home.append(buffer)
        parser.buffers[buffer.data] = buffer

    return _declared(shape, dtype, data, strides, elem_offset, scope, align, offset_factor,
                     buffer_type, axis_separators, bind)


@form("decl_buffer")
def decl_buffer_form(parser: Parser, shape: Sequence[Any] | ExprLike, dtype: object = "float32",
                     data: Var | Buffer | None = None, strides: Sequence[Any] | None = None,
                     elem_offset: ExprLike | str | None = None, scope: str = "global",
                     align: int = 0, offset_factor: int = 0, buffer_type: str = "default",
                     axis_separators: Sequence[int] | None = None) -> Pending:
    """A buffer over `data`; without data, over memory allocated here."""

    def bind(buffer: Buffer) -> None:
        parser.buffers[buffer.data] = buffer
        if data is None:
            parser.emit(lambda body: S.Allocate(buffer.data, buffer.dtype, buffer.shape, S.TRUE,
                                                S.DeclBuffer(buffer, body), S.EMPTY))
        else:
            parser.emit(lambda body: S.DeclBuffer(buffer, body))

    return _declared(shape, dtype, data, strides, elem_offset, scope, align, offset_factor,
                     buffer_type, axis_separators, bind)


@form("buffer_store", "BufferStore")
def buffer_store(parser: Parser, buffer: Any, value: Any,
                 indices: Any, predicate: Any = None) -> None:
    """A store written as a call."""
    indices = tuple(E.const_index(T.as_expr(i)) for i in (
        indices if isinstance(indices, (tuple, list)) else [indices]))
    value = O.convert(T.as_expr(value))
    if not isinstance(value, E.PrimExpr) or value.dtype != E.load_dtype(buffer, indices):
        value = O.cast(value, E.load_dtype(buffer, indices))
    parser.emit(S.BufferStore(buffer, value, indices, predicate))


__all__ = ["shape_of"]
