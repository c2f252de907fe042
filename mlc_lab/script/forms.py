"""The words of the script language and what each does to the program under construction.

A form is a function `(parser, ...)` with the arguments the script gives. It returns a value, a
`Pending` definition that waits for its name, or what `for` and `with` expect.
"""

from __future__ import annotations

import ast
import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Callable

from ..tir import expr as E
from ..tir import op as O
from ..tir import stmt as S
from ..tir.buffer import Buffer, decl_buffer
from ..ir import dtype as dt
from . import tir as T
from .evaluator import Pending
from .regions import extent_between

if TYPE_CHECKING:
    from .parser import Parser


class Loops:
    """What a `for` iterates over: one (min, extent) a loop, and how they run."""

    def __init__(self, ranges: list[tuple[Any, Any]], kind: int = 0, thread: str | None = None,
                 annotations: Any = None) -> None:
        self.ranges, self.kind, self.thread = ranges, kind, thread
        self.annotations = {k: S.annotation_value(v) for k, v in (annotations or {}).items()}

    def thread_binding(self, dtype: str) -> Any:
        """The thread axis of a bound loop."""
        if self.thread is None:
            return None
        return E.IterVar(None, E.Var(self.thread, "int32"), E.IterVar.ThreadIndex, self.thread)


class BlockScope:
    """What `with T.block(name)` opens."""

    def __init__(self, name: str, realize: bool) -> None:
        self.name, self.realize = name, realize


class InitScope:
    """What `with T.init()` opens."""


@lru_cache(maxsize=None)
def _signature(fn: Callable) -> inspect.Signature:
    return inspect.signature(fn)


class _Forms:
    """All forms by name, and how they are called."""

    def __init__(self) -> None:
        self.table: dict[str, Callable] = {}

    def add(self, *names: str) -> Callable:
        """Decorator: the function is the form of these names."""

        def register(fn: Callable) -> Callable:
            for name in names:
                self.table[name] = fn
            return fn

        return register

    def call(self, parser: Parser, node: ast.Call, form: T.Form) -> Any:
        """Evaluate the arguments and apply a form; wrong arguments are errors at the call."""
        if form.name == "Let":
            return let_expr(parser, node)
        fn = self.table.get(form.name)
        if fn is None:
            raise parser.error(node.func, f"T.{form.name} cannot be used here")
        args, kwargs = parser.arguments(node)
        args = [parser.settle(a, "v") if isinstance(a, Pending) else a for a in args]
        try:
            bound = _signature(fn).bind(parser, *args, **kwargs)
        except TypeError as error:
            names = [str(p) for p in list(_signature(fn).parameters.values())[1:]]
            text = str(error).replace("'parser'", "")
            raise parser.error(node, f"T.{form.name}: {text}",
                               f"it is T.{form.name}({_plain(names)})") from None
        return fn(*bound.args, **bound.kwargs)

    def buffer(self, parser: Parser, *args: Any, **kwargs: Any) -> Pending:
        """T.Buffer(...)"""
        return self.table["Buffer"](parser, *args, **kwargs)


def _plain(names: list[str]) -> str:
    return ", ".join(n.split(":")[0] + (" =" + n.split("=", 1)[1] if "=" in n else "")
                     for n in names)


FORMS = _Forms()
form = FORMS.add


def _need_block(parser: Parser, word: str) -> Any:
    if not parser.blocks:
        raise ValueError(f"T.{word} must be inside a block (with T.block(...):)")
    return parser.blocks[-1]


# ------------------------------------------------------------------------------- functions


@form("func_name")
def func_name(parser: Parser, name: str) -> None:
    """The function's name; the definition already says it."""


@form("func_attr")
def func_attr(parser: Parser, attrs: dict) -> None:
    """Attributes of the function."""
    if not isinstance(attrs, dict):
        raise TypeError('T.func_attr takes a dict, for example {"global_symbol": "main"}')
    parser.func.attrs.update({k: S.annotation_value(v) for k, v in attrs.items()})


@form("func_ret")
def func_ret(parser: Parser, ret_type: Any) -> None:
    """The return type of the function."""
    parser.func.ret_type = T.dtype_of(ret_type)


# ------------------------------------------------------------------------------- buffers


def _shape(shape: Any, dtype: str = "int32") -> tuple:
    shape = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(E.const_index(T.as_expr(s)) for s in shape)


def _declared(shape: Any, dtype: Any, data: Any, strides: Any, elem_offset: Any, scope: str,
              align: int, offset_factor: int, buffer_type: str, axis_separators: Any,
              first_use: Callable[[Buffer], Any] | None = None) -> Pending:
    shape = _shape(shape)
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
        if first_use is not None:
            first_use(buffer)
        return buffer

    return Pending(finish)


@form("Buffer", "buffer_decl")
def buffer_form(parser: Parser, shape: Any, dtype: Any = "float32", data: Any = None,
                strides: Any = None, elem_offset: Any = None, scope: str = "global",
                align: int = -1, offset_factor: int = 0, buffer_type: str = "",
                axis_separators: Any = None) -> Pending:
    """A buffer: of a parameter, or over a pointer that exists."""
    items = shape if isinstance(shape, (tuple, list)) else (shape,)
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


@form("match_buffer", "preflattened_buffer")
def match_buffer(parser: Parser, param: Any, shape: Any = None, dtype: Any = "float32",
                 data: Any = None, strides: Any = None, elem_offset: Any = None,
                 scope: str = "global", align: int = -1, offset_factor: int = 0,
                 buffer_type: str = "default", axis_separators: Any = None,
                 type: str = "") -> Pending:
    """The buffer of a handle parameter; inside a block, a name for a region of a buffer."""
    if isinstance(param, E.Var):
        func = parser.func
        if not any(param is p for p in func.params):
            raise ValueError("T.match_buffer takes a parameter of the function or, in a block, a "
                             "region of a buffer")
        if shape is None:
            raise TypeError("T.match_buffer of a parameter needs a shape")

        def bind(buffer: Buffer) -> None:
            func.buffer_map[param] = buffer
            parser.buffers[buffer.data] = buffer

        return _declared(shape, dtype, data, strides, elem_offset, scope, align, offset_factor,
                         type or buffer_type, axis_separators, bind)
    source = as_region(param)
    block = _need_block(parser, "match_buffer of a region")
    if shape is None:
        shape = tuple(r.extent for r in source.region)

    def match(buffer: Buffer) -> None:
        block.matches.append(S.MatchBufferRegion(buffer, source))
        parser.buffers[buffer.data] = buffer

    return _declared(shape, dtype, data, strides, elem_offset, scope, align, offset_factor,
                     type or buffer_type, axis_separators, match)


@form("alloc_buffer")
def alloc_buffer(parser: Parser, shape: Any, dtype: Any = "float32", data: Any = None,
                 strides: Any = None, elem_offset: Any = None, scope: str = "global",
                 align: int = -1, offset_factor: int = 0, buffer_type: str = "default",
                 axis_separators: Any = None) -> Pending:
    """Memory of the innermost block (of the function, outside of blocks)."""
    home = parser.blocks[-1].allocs if parser.blocks else parser.func.allocs

    def bind(buffer: Buffer) -> None:
        home.append(buffer)
        parser.buffers[buffer.data] = buffer

    return _declared(shape, dtype, data, strides, elem_offset, scope, align, offset_factor,
                     buffer_type, axis_separators, bind)


@form("decl_buffer")
def decl_buffer_form(parser: Parser, shape: Any, dtype: Any = "float32", data: Any = None,
                     strides: Any = None, elem_offset: Any = None, scope: str = "global",
                     align: int = 0, offset_factor: int = 0, buffer_type: str = "default",
                     axis_separators: Any = None) -> Pending:
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


def as_region(value: Any) -> S.BufferRegion:
    """A region given as A, A[i, j] or A[0:4, j]."""
    if isinstance(value, S.BufferRegion):
        return value
    if isinstance(value, Buffer):
        return S.BufferRegion.full_region(value)
    if isinstance(value, E.BufferLoad):
        ranges = []
        for index in value.indices:
            if type(index) is E.Ramp:
                ranges.append(E.Range.from_min_extent(
                    index.base, E.IntImm(index.base.dtype, index.lanes)))
            else:
                ranges.append(E.Range.from_min_extent(index, E.IntImm(index.dtype, 1)))
        return S.BufferRegion(value.buffer, tuple(ranges))
    raise TypeError("expected a region of a buffer such as A[0:16, i]")


# ------------------------------------------------------------------------------- blocks


@form("block")
def block_form(parser: Parser, name: str = "", no_realize: bool = False) -> BlockScope:
    """with T.block("C"): ..."""
    return BlockScope(name, not no_realize)


@form("init")
def init_form(parser: Parser) -> InitScope:
    """with T.init(): ..."""
    return InitScope()


def _domain(dom: Any, value: Any) -> E.Range:
    """The domain of a block iterator: an extent, or (begin, end)."""
    if isinstance(dom, E.Range):
        return dom
    if isinstance(dom, (tuple, list)):
        if len(dom) != 2:
            raise TypeError("the domain of an axis is an extent or (begin, end)")
        low, high = (E.const_index(T.as_expr(d)) for d in dom)
        if low.dtype != high.dtype:
            low, high = O.match_types(low, high)
        return E.Range.from_min_extent(low, extent_between(low, high))
    extent = E.const_index(T.as_expr(dom))
    return E.Range.from_min_extent(E.IntImm(extent.dtype, 0), extent)


def _add_axis(parser: Parser, dom: E.Range, value: Any, kind: int) -> Pending:
    block = _need_block(parser, "axis")
    dtype = dom.extent.dtype
    if isinstance(value, int) and not isinstance(value, bool):
        value = E.IntImm(dtype, value)
    value = E.const_index(T.as_expr(value))
    slot = len(block.iter_vars)
    block.iter_vars.append(None)
    block.iter_values.append(value)

    def finish(name: str) -> E.Var:
        var = E.Var(name, dtype)
        block.iter_vars[slot] = E.IterVar(dom, var, kind)
        return var

    return Pending(finish)


def _axis(word: str, kind: int) -> Callable:
    @form(f"axis.{word}")
    def axis(parser: Parser, dom: Any, value: Any = None, dtype: str = "int32") -> Pending:
        if value is None:
            raise TypeError(f"T.axis.{word} takes the domain and the value it is bound to, for "
                            f"example T.axis.{word}(128, i)")
        return _add_axis(parser, _domain(dom, value), value, kind)

    return axis


for _word, _kind in (("spatial", 0), ("reduce", 2), ("scan", 3), ("opaque", 4)):
    _axis(_word, _kind)


@form("axis.remap")
def remap(parser: Parser, kinds: str, bindings: Any, dtype: str = "int32") -> Any:
    """Several axes at once, each over the domain of its loop."""
    bindings = bindings if isinstance(bindings, (list, tuple)) else [bindings]
    if not isinstance(kinds, str) or len(kinds) != len(bindings):
        raise ValueError(f"T.axis.remap got {len(kinds)} kind(s) and {len(bindings)} loop(s): "
                         "one letter for each loop")
    out = []
    for letter, value in zip(kinds, bindings):
        if letter not in "SR":
            raise ValueError(f"T.axis.remap knows the kinds S and R, not {letter!r}")
        dom = parser.loops.get(value) if isinstance(value, E.Var) else None
        if dom is None:
            raise ValueError(f"T.axis.remap binds axes to loop variables, {value!r} is none",)
        out.append(_add_axis(parser, dom, value, 0 if letter == "S" else 2))
    return out[0] if len(out) == 1 else out


@form("where")
def where(parser: Parser, predicate: Any) -> None:
    """The block only runs where the condition holds."""
    block = _need_block(parser, "where")
    predicate = O.convert(T.as_expr(predicate))
    if not dt.is_bool(predicate.dtype):
        raise TypeError(f"T.where takes a condition, got a value of type {predicate.dtype}")
    block.predicate = predicate if block.predicate is None else O.logical_and(
        block.predicate, predicate)


def _regions(items: tuple) -> list[S.BufferRegion]:
    out: list[S.BufferRegion] = []
    for item in items:
        if isinstance(item, (list, tuple)):
            out += _regions(tuple(item))
        else:
            out.append(as_region(item))
    return out


@form("reads")
def reads(parser: Parser, *regions: Any) -> None:
    """What the block reads."""
    block = _need_block(parser, "reads")
    block.reads = (block.reads or []) + _regions(regions)


@form("writes")
def writes(parser: Parser, *regions: Any) -> None:
    """What the block writes."""
    block = _need_block(parser, "writes")
    block.writes = (block.writes or []) + _regions(regions)


@form("block_attr")
def block_attr(parser: Parser, attrs: dict) -> None:
    """Annotations of the block."""
    _need_block(parser, "block_attr").annotations.update(
        {k: S.annotation_value(v) for k, v in attrs.items()})


# ------------------------------------------------------------------------------- loops


@form("grid")
def grid(parser: Parser, *extents: Any) -> Loops:
    """Nested serial loops from 0."""
    if not extents:
        raise TypeError("T.grid needs at least one extent")
    ranges = []
    for extent in extents:
        extent = E.const_index(T.as_expr(extent))
        ranges.append((E.IntImm(extent.dtype, 0), extent))
    return Loops(ranges)


def _range(start: Any, stop: Any) -> tuple[Any, Any]:
    start = T.as_expr(start)
    if stop is None:
        extent = E.const_index(start)
        return E.IntImm(extent.dtype, 0), extent
    low, high = E.const_index(start), E.const_index(T.as_expr(stop))
    if low.dtype != high.dtype:
        low, high = O.match_types(low, high)
    return low, extent_between(low, high)


def _loop(word: str, kind: int) -> Callable:
    @form(word)
    def loop(parser: Parser, start: Any, stop: Any = None, *, annotations: Any = None) -> Loops:
        return Loops([_range(start, stop)], kind, None, annotations)

    return loop


for _word, _kind in (("serial", 0), ("parallel", 1), ("vectorized", 2), ("unroll", 3)):
    _loop(_word, _kind)


@form("thread_binding")
def thread_binding(parser: Parser, start: Any, stop: Any = None, thread: str | None = None, *,
                   annotations: Any = None) -> Loops:
    """A loop whose iterations are GPU threads."""
    if thread is None:
        if not isinstance(stop, str):
            raise TypeError('T.thread_binding needs thread=, for example "threadIdx.x"')
        stop, thread = None, stop
    return Loops([_range(start, stop)], 4, thread, annotations)


# ------------------------------------------------------------------------------- scopes


@form("Assert")
def assert_form(parser: Parser, condition: Any, message: Any = "") -> Pending:
    """The rest, after making sure of a condition."""
    condition, message = O.convert(T.as_expr(condition)), O.convert(message)
    return Pending(lambda name: parser.emit(
        lambda body: S.AssertStmt(condition, message, body)))


@form("LetStmt")
def let_stmt(parser: Parser, value: Any, type_annotation: Any = None, *, var: Any = None
             ) -> Pending:
    """The rest, with a variable bound to a value."""
    value = O.convert(T.as_expr(value))

    def finish(name: str) -> E.Var:
        bound = var
        if bound is None:
            kind = type_annotation
            if isinstance(kind, T.DtypeName):
                bound = E.Var(name, kind.dtype)
            elif isinstance(kind, E.Var):
                bound = kind.with_name(name)
            else:
                hint = value.type_annotation if isinstance(value, E.Var) else None
                bound = E.Var(name, hint if hint is not None else value.dtype)
        parser.emit(lambda body: S.LetStmt(bound, value, body))
        return bound

    return Pending(finish)


def let_expr(parser: Parser, node: ast.Call) -> Any:
    """T.Let(body, where={x: value}): binds x in body. The values do not see the names."""
    where = next((k.value for k in node.keywords if k.arg == "where"), None)
    if where is None and len(node.args) > 1:
        where = node.args[1]
    if not node.args or not isinstance(where, ast.Dict):
        raise parser.error(node, "it is T.Let(body, where={x: value})")
    pairs = []
    for key, value in zip(where.keys, where.values):
        if not isinstance(key, ast.Name):
            raise parser.error(key or node, "T.Let binds names")
        value = O.convert(parser.operand(value))
        hint = value.type_annotation if isinstance(value, E.Var) else None
        pairs.append((E.Var(key.id, hint if hint is not None else value.dtype), value))
    parser.scopes.append({var.name: var for var, _ in pairs})
    body = O.convert(parser.operand(node.args[0]))
    parser.scopes.pop()
    for var, value in reversed(pairs):
        body = E.Let(var, value, body)
    return body


@form("allocate")
def allocate(parser: Parser, extents: Any, dtype: Any, scope: str = "global",
             condition: Any = None, annotations: Any = None) -> Pending:
    """The rest, with a pointer to fresh memory."""
    dtype = T.dtype_of(dtype)
    extents = _shape(extents)
    condition = S.TRUE if condition is None else O.convert(condition)
    notes = {k: S.annotation_value(v) for k, v in (annotations or {}).items()} or S.EMPTY

    def finish(name: str) -> E.Var:
        element = "int8" if dtype == "bool" else dtype
        var = E.Var(name, E.PointerType(E.PrimType(element), scope))
        parser.emit(lambda body: S.Allocate(var, dtype, extents, condition, body, notes))
        return var

    return Pending(finish)


@form("allocate_const")
def allocate_const(parser: Parser, data: Any, dtype: Any, extents: Any,
                   annotations: Any = None) -> Pending:
    """The rest, with a pointer to constant data."""
    import numpy as np

    dtype = T.dtype_of(dtype)
    extents = _shape(extents)
    shape = [O.as_int(e) for e in extents]
    array = None if data is None else np.array(data, dtype=dt.numpy_dtype(dtype)).reshape(shape)
    notes = {k: S.annotation_value(v) for k, v in (annotations or {}).items()} or S.EMPTY

    def finish(name: str) -> E.Var:
        var = E.Var(name, E.PointerType(E.PrimType(dtype), "global"))
        parser.emit(lambda body: S.AllocateConst(var, dtype, extents, array, body, notes))
        return var

    return Pending(finish)


@form("attr")
def attr(parser: Parser, node: Any, attr_key: str, value: Any) -> Pending:
    """The rest under an attribute."""
    value = O.convert(T.as_expr(value))
    if isinstance(node, (int, float)) and not isinstance(node, bool):
        node = O.const(node)
    return Pending(lambda name: parser.emit(
        lambda body: S.AttrStmt(node, attr_key, value, body)))


@form("realize")
def realize(parser: Parser, *args: Any) -> None:
    """Regions of BufferRealize belong to a stage of TVM that does not exist here."""
    raise ValueError("T.realize belongs to TE's old lowering, which this compiler does not have")


@form("env_thread")
def env_thread(parser: Parser, thread_tag: str, dtype: str = "int32") -> Pending:
    """A GPU thread axis, launched later."""

    def finish(name: str) -> E.IterVar:
        return _EnvThread(None, E.Var(name, dtype), E.IterVar.ThreadIndex, thread_tag)

    return Pending(finish)


_EnvThread = E.IterVar


@form("launch_thread")
def launch_thread(parser: Parser, thread: Any, extent: Any) -> Pending:
    """The rest, run by `extent` threads of an axis."""
    extent = E.const_index(T.as_expr(extent))

    def finish(name: str) -> E.Var:
        if isinstance(thread, E.IterVar):
            axis = E.IterVar(None, thread.var, thread.iter_type, thread.thread_tag)
        elif isinstance(thread, str):
            axis = E.IterVar(None, E.Var(name, extent.dtype), E.IterVar.ThreadIndex, thread)
        else:
            raise TypeError('T.launch_thread takes a thread axis such as "threadIdx.x"')
        key = "virtual_thread" if axis.thread_tag.startswith("vthread") else "thread_extent"
        parser.emit(lambda body: S.AttrStmt(axis, key, extent, body))
        return axis.var

    return Pending(finish)


# ------------------------------------------------------------------------------- statements


@form("evaluate")
def evaluate(parser: Parser, value: Any) -> None:
    """A value computed for its effect."""
    parser.emit(S.Evaluate(O.convert(T.as_expr(value))))


@form("buffer_store", "BufferStore")
def buffer_store(parser: Parser, buffer: Any, value: Any, indices: Any, predicate: Any = None
                 ) -> None:
    """A store written as a call."""
    indices = tuple(E.const_index(T.as_expr(i)) for i in (
        indices if isinstance(indices, (tuple, list)) else [indices]))
    value = O.convert(T.as_expr(value))
    if not isinstance(value, E.PrimExpr) or value.dtype != E.load_dtype(buffer, indices):
        value = O.cast(value, E.load_dtype(buffer, indices))
    parser.emit(S.BufferStore(buffer, value, indices, predicate))


__all__ = ["FORMS", "BlockScope", "InitScope", "Loops", "as_region"]
