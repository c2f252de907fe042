"""`T` of the builder: functions, blocks, loops and statements of TensorIR.

Types, intrinsics and other words that make expressions are those of `script/tir.py`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Mapping, Sequence

import numpy as np

from ...tir.access import block_access_regions
from ...tir import expr as E
from ...tir import stmt as S
from ...tir.buffer import Buffer as _Buffer
from ...tir.buffer import decl_buffer as _decl_buffer
from ...tir.expr import PrimExpr, Range, const_index
from ...tir.function import PrimFunc
from ...tir.stmt import TRUE, annotation_value, seq
from .. import tir as T
from ..parser import with_root
from .frames import Frame, Frames, IRBuilder

if TYPE_CHECKING:
    from ...tir.expr import ExprLike

#: says of a block that it was not said what it reads (1) and writes (2)
_DETECT = "tir.script_parsing_detect_access"


class PrimFuncFrame(Frame):
    """A function under construction."""

    word = "T.prim_func()"

    def __init__(self, is_private: bool) -> None:
        super().__init__(lambda body: None)
        self.private, self.name, self.ret_type = is_private, "", None
        self.params: list[E.Var] = []
        self.buffers: dict[E.Var, _Buffer] = {}
        self.allocs: list[_Buffer] = []
        self.attrs: dict[str, Any] = {}

    def made(self) -> PrimFunc:
        """The function."""
        called = IRBuilder.current().called
        attrs = dict(self.attrs)
        if self.name and not self.private and "global_symbol" not in attrs:
            attrs = {"global_symbol": self.name, **attrs}
        return PrimFunc([called(p) for p in self.params],
                        with_root(seq(*self.statements), [called(b) for b in self.allocs]),
                        self.ret_type, {called(p): called(b) for p, b in self.buffers.items()},
                        attrs)


class BlockFrame(Frame):
    """A block under construction."""

    word = "T.block(...)"

    def __init__(self, name: str, no_realize: bool) -> None:
        super().__init__(lambda body: None)
        self.name, self.no_realize = name, no_realize
        self.iters: list[tuple[E.IterVar, PrimExpr]] = []
        self.reads: list[S.BufferRegion] | None = None
        self.writes: list[S.BufferRegion] | None = None
        self.allocs: list[_Buffer] = []
        self.matches: list[tuple[_Buffer, S.BufferRegion]] = []
        self.annotations: dict[str, Any] = {}
        self.predicate: PrimExpr | None = None
        self.init: S.Stmt | None = None

    def made(self) -> S.Stmt:
        """The block, where it is executed unless `no_realize`."""
        builder = IRBuilder.current()
        called = builder.called
        iters = [i.replace(var=called(i.var)) for i, _ in self.iters]
        missing = (self.reads is None) | (self.writes is None) << 1
        annotations = dict(self.annotations)
        function = builder.enclosing(PrimFuncFrame)
        if missing and function is None:
            annotations[_DETECT] = E.IntImm("int64", missing)
        block = S.Block(iters, self.reads or (), self.writes or (), self.name,
                      seq(*self.statements), self.init, [called(b) for b in self.allocs],
                      [S.MatchBufferRegion(called(b), r) for b, r in self.matches], annotations)
        if missing and function is not None:
            reads, writes, _ = block_access_regions(
                block, {b.data: b for b in function.buffers.values()})
            block = block.replace(reads=block.reads if self.reads is not None else tuple(reads),
                                  writes=block.writes if self.writes is not None else tuple(writes))
        if self.no_realize:
            if self.predicate is not None:
                raise ValueError("T.where says when a block is executed, which a block with "
                                 "no_realize=True is not")
            return block
        return S.BlockRealize([value for _, value in self.iters],
                            TRUE if self.predicate is None else self.predicate, block)


class IfFrame(Frame):
    """A choice under construction: it holds T.Then() and T.Else()."""

    word = "T.If(...)"

    def __init__(self, condition: PrimExpr) -> None:
        super().__init__(lambda body: None)
        self.condition = condition
        self.cases: dict[str, S.Stmt] = {}

    def take(self, made: Any) -> None:
        """Statements belong into one of the cases."""
        raise ValueError("statements in T.If(...) stand in T.Then() or T.Else()")

    def made(self) -> S.Stmt:
        """The choice."""
        if "then" not in self.cases:
            raise ValueError("T.If(...) needs a T.Then()")
        return S.IfThenElse(self.condition, self.cases["then"], self.cases.get("else"))


class _Part(Frame):
    """A part of the frame around it, which it is given to when it closes."""

    def __init__(self, keep: Any) -> None:
        super().__init__(lambda body: None)
        self.keep = keep

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        IRBuilder.current().frames.pop()
        if error is None:
            self.keep(seq(*self.statements))


def _function(word: str) -> PrimFuncFrame:
    return IRBuilder.current().innermost(PrimFuncFrame, word)


def _block(word: str) -> BlockFrame:
    return IRBuilder.current().innermost(BlockFrame, word)


# ------------------------------------------------------------------------------- functions


def prim_func(is_private: bool = False) -> PrimFuncFrame:
    """A function."""
    return PrimFuncFrame(is_private)


def func_name(name: str) -> None:
    """The name of the function."""
    _function("T.func_name").name = name


def arg(name: str, obj: Any) -> Any:
    """The next parameter: a variable, or a buffer that it stands for."""
    frame = _function("T.arg")
    obj = _buffer(obj, name)
    if isinstance(obj, _Buffer):
        handle = E.Var(f"{name}_handle", "handle")
        frame.buffers[handle] = obj
        frame.params.append(handle)
        return obj
    var = obj.with_name(name)
    frame.params.append(var)
    return var


def func_attr(attrs: Mapping[str, Any]) -> None:
    """Attributes of the function."""
    _function("T.func_attr").attrs.update(attrs)


def func_ret(ret_type: Any) -> Any:
    """The type of what the function returns."""
    _function("T.func_ret").ret_type = ret_type
    return ret_type


def match_buffer(param: Any, shape: Sequence[ExprLike] | None = None, dtype: str = "float32",
                 *args: Any, **options: Any) -> _Buffer:
    """A buffer that a parameter, or a region of another buffer, is."""
    region = _region(param) if not isinstance(param, E.Var) else None
    if shape is None:
        if region is None:
            raise ValueError("T.match_buffer of a parameter needs a shape")
        shape = [r.extent for r in region.region]
    name = param.name if isinstance(param, E.Var) else "buffer"
    buffer = _decl_buffer(shape, dtype, name, *args, **options)
    builder = IRBuilder.current()
    if region is None:
        _function("T.match_buffer of a parameter").buffers[param] = buffer
    else:
        builder.innermost(BlockFrame, "T.match_buffer of a region").matches.append((buffer, region))
    return buffer


# ------------------------------------------------------------------------------- blocks


def block(name: str = "", no_realize: bool = False) -> BlockFrame:
    """A block."""
    return BlockFrame(name, no_realize)


def init() -> Frame:
    """What a reduction block does first."""
    frame = _block("T.init")
    return _Part(lambda body: setattr(frame, "init", body))


def where(predicate: ExprLike) -> None:
    """When the block is executed."""
    _block("T.where").predicate = const_index(predicate)


def reads(*regions: object) -> None:
    """What the block reads."""
    _block("T.reads").reads = _regions(regions)


def writes(*regions: object) -> None:
    """What the block writes."""
    _block("T.writes").writes = _regions(regions)


def block_attr(attrs: Mapping[str, Any]) -> None:
    """Annotations of the block."""
    _block("T.block_attr").annotations.update(
        {key: annotation_value(value) for key, value in attrs.items()})


def alloc_buffer(shape: Sequence[ExprLike], dtype: str = "float32", *args: Any, **options: Any
                 ) -> _Buffer:
    """A buffer of the block, or of the function."""
    builder = IRBuilder.current()
    frame = builder.frames[-1] if builder.frames else None
    if not isinstance(frame, (BlockFrame, PrimFuncFrame)):
        raise ValueError("T.alloc_buffer stands directly in a T.block(...) or a T.prim_func()")
    buffer = _decl_buffer(shape, dtype, "buffer", *args, **options)
    frame.allocs.append(buffer)
    return buffer


def _axis(kind: int) -> Any:
    def add(dom: ExprLike | Range, binding: ExprLike, dtype: str = "int32") -> E.Var:
        """An iterator of the block over `dom`, with the value `binding`."""
        binding = const_index(binding)
        over = dom if isinstance(dom, Range) else Range(
            *dom) if isinstance(dom, (tuple, list)) else Range(0, dom)
        var = E.Var("v", binding.dtype)
        _block("T.axis").iters.append((E.IterVar(over, var, kind), binding))
        return var

    return add


def _remap(kinds: str, bindings: Sequence[Any], dtype: str = "int32") -> Any:
    """Iterators that are loop variables, over the domains of the loops: "S" or "R" for each."""
    builder = IRBuilder.current()
    domains = {builder.called(f.value): f.domain for f in builder.frames if isinstance(f, _Loop)}
    made = []
    for kind, var in zip(kinds, bindings):
        if var not in domains:
            raise ValueError(f"T.axis.remap takes variables of loops; {var!r} is none")
        made.append((axis.spatial if kind == "S" else axis.reduce)(domains[var], var))
    return made[0] if len(made) == 1 else made


axis = SimpleNamespace(
    spatial=_axis(E.IterVar.DataPar), S=_axis(E.IterVar.DataPar),
    reduce=_axis(E.IterVar.CommReduce), R=_axis(E.IterVar.CommReduce),
    scan=_axis(E.IterVar.Ordered), opaque=_axis(E.IterVar.Opaque), remap=_remap)


# ------------------------------------------------------------------------------- loops


class _Loop(Frame):
    """A loop under construction; `domain` is the range of its variable."""

    word = "loop"

    def __init__(self, start: ExprLike, stop: ExprLike | None, kind: S.ForKind,
                 annotations: Mapping[str, Any] | None,
                 thread: str | None) -> None:
        start, stop = (0, start) if stop is None else (start, stop)
        stop = const_index(stop)
        start = E.value_of_type(start, stop.dtype)
        extent = stop - start
        self.domain = Range.from_min_extent(start, extent)
        bound = None if thread is None else E.IterVar(
            None, E.Var(thread, stop.dtype), E.IterVar.ThreadIndex, thread)
        given = {key: annotation_value(value) for key, value in (annotations or {}).items()}
        var = E.Var("v", stop.dtype)
        super().__init__(lambda body: S.For(IRBuilder.current().called(var), start, extent, kind,
                                          body, bound, given), var)


def serial(start: ExprLike, stop: ExprLike | None = None, *,
           annotations: Mapping[str, Any] | None = None) -> Frame:
    """A loop whose iterations run one after the other."""
    return _Loop(start, stop, S.ForKind.SERIAL, annotations, None)


def parallel(start: ExprLike, stop: ExprLike | None = None, *,
           annotations: Mapping[str, Any] | None = None) -> Frame:
    """A loop whose iterations run on all cores."""
    return _Loop(start, stop, S.ForKind.PARALLEL, annotations, None)


def vectorized(start: ExprLike, stop: ExprLike | None = None, *,
           annotations: Mapping[str, Any] | None = None) -> Frame:
    """A loop whose iterations are the lanes of vectors."""
    return _Loop(start, stop, S.ForKind.VECTORIZED, annotations, None)


def unroll(start: ExprLike, stop: ExprLike | None = None, *,
           annotations: Mapping[str, Any] | None = None) -> Frame:
    """A loop whose body is copied for each iteration."""
    return _Loop(start, stop, S.ForKind.UNROLLED, annotations, None)


def thread_binding(start: ExprLike, stop: ExprLike | None = None, thread: str | None = None, *,
                   annotations: Mapping[str, Any] | None = None) -> Frame:
    """A loop whose iterations are threads of a GPU."""
    if thread is None:
        if not isinstance(stop, str):
            raise ValueError('T.thread_binding needs the axis, as in thread="threadIdx.x"')
        start, stop, thread = start, None, stop
    return _Loop(start, stop, S.ForKind.THREAD_BINDING, annotations, thread)


def grid(*extents: ExprLike) -> Frames:
    """Loops in each other."""
    return Frames([serial(extent) for extent in extents])


# ------------------------------------------------------------------------------- statements


def evaluate(value: ExprLike) -> None:
    """A value that is computed for its effect."""
    IRBuilder.current().add(S.Evaluate(const_index(value)))


def buffer_store(buffer: _Buffer, value: Any, indices: Sequence[Any], predicate: Any = None
                 ) -> None:
    """buffer[indices] = value"""
    IRBuilder.current().add(S.BufferStore(buffer, value, list(indices), predicate))


def Assert(condition: ExprLike, message: str) -> Frame:
    """What follows after a check."""
    return Frame(lambda body: S.AssertStmt(const_index(condition), message, body))


def LetStmt(value: ExprLike, type_annotation: object = None, *, var: E.Var | None = None) -> Frame:
    """A name for a value."""
    value = const_index(value)
    bound = var if var is not None else E.Var(
        "v", value.dtype if type_annotation is None else type_annotation)
    return Frame(lambda body: S.LetStmt(IRBuilder.current().called(bound), value, body), bound)


def attr(node: Any, attr_key: str, value: ExprLike) -> Frame:
    """What follows under an attribute."""
    return Frame(lambda body: S.AttrStmt(node, attr_key, _attr_value(value), body))


def _attr_value(value: ExprLike) -> PrimExpr:
    return E.StringImm(value) if isinstance(value, str) else const_index(value)


def While(condition: ExprLike) -> Frame:
    """What is repeated while a condition holds."""
    return Frame(lambda body: S.While(const_index(condition), body))


def If(condition: ExprLike) -> IfFrame:
    """A choice, with T.Then() and T.Else() inside."""
    return IfFrame(const_index(condition))


def Then() -> Frame:
    """What is done where the condition holds."""
    frame = IRBuilder.current().innermost(IfFrame, "T.Then")
    return _Part(lambda body: frame.cases.__setitem__("then", body))


def Else() -> Frame:
    """What is done where it does not."""
    frame = IRBuilder.current().innermost(IfFrame, "T.Else")
    return _Part(lambda body: frame.cases.__setitem__("else", body))


def allocate(extents: Sequence[ExprLike], dtype: str, scope: str = "global",
             condition: ExprLike | None = None, annotations: Mapping[str, Any] | None = None
             ) -> Frame:
    """Fresh memory; the value is the pointer."""
    var = E.Var("v", E.PointerType(E.PrimType(dtype), scope))
    return Frame(lambda body: S.Allocate(
        IRBuilder.current().called(var), dtype, list(extents),
        TRUE if condition is None else condition, body, annotations), var)


def allocate_const(data: Any, dtype: str, extents: Sequence[int],
                   annotations: Mapping[str, Any] | None = None) -> Frame:
    """Constant memory; the value is the pointer."""
    var = E.Var("v", E.PointerType(E.PrimType(dtype)))
    array = np.asarray(data, dtype).reshape([int(e) for e in extents])
    return Frame(lambda body: S.AllocateConst(
        IRBuilder.current().called(var), dtype, tuple(map(const_index, extents)), array, body,
        dict(annotations or {})), var)


def decl_buffer(shape: Sequence[ExprLike], dtype: str = "float32", data: E.Var | None = None,
                strides: Sequence[ExprLike] | None = None,
                elem_offset: ExprLike | None = None, scope: str = "global", align: int = 0,
                offset_factor: int = 0, buffer_type: str = "", axis_separators: Any = None
                ) -> Frame:
    """A buffer over a pointer, or over fresh memory where none is given."""
    buffer = _decl_buffer(shape, dtype, "buffer", data, strides, elem_offset, scope, align,
                          offset_factor, buffer_type, axis_separators)

    def finish(body: S.Stmt) -> S.Stmt:
        named = IRBuilder.current().called(buffer)
        declared: S.Stmt = S.DeclBuffer(named, body)
        if data is not None:
            return declared
        return S.Allocate(named.data, dtype, named.shape, TRUE, declared)

    return Frame(finish, buffer)


def env_thread(thread_tag: str, dtype: str = "int32") -> E.IterVar[Any]:
    """A thread axis, whose extent `launch_thread` says."""
    return E.IterVar(None, E.Var("v", dtype), E.IterVar.ThreadIndex, thread_tag)


def launch_thread(thread: Any, extent: ExprLike) -> Frame:
    """What threads of an axis do; the value is the variable of the axis."""
    over = env_thread(thread, const_index(extent).dtype) if isinstance(thread, str) else thread
    extent = const_index(extent)
    made = E.IterVar(Range(0, extent), over.var, E.IterVar.ThreadIndex, over.thread_tag)
    return Frame(lambda body: S.AttrStmt(made, "thread_extent", extent, body), made.var)


def _buffer(obj: Any, name: str) -> Any:
    """A buffer that was only described, under its name."""
    return obj.replace(name=name) if isinstance(obj, _Buffer) else obj


def _region(given: Any) -> S.BufferRegion:
    if isinstance(given, E.BufferLoad):
        return S.BufferRegion.from_indices(given.buffer, given.indices)
    if isinstance(given, S.BufferRegion):
        return given
    raise ValueError(f"expected a part of a buffer such as A[0:16], got {given!r}")


def _regions(given: Sequence[Any]) -> list[S.BufferRegion]:
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        given = given[0]
    return [_region(item) for item in given]


def __getattr__(name: str) -> Any:
    """A word that makes expressions."""
    return getattr(T, name)
