"""Statements written as Python runs: the `ir_builder` of TVM.

    ib = tvm.tir.ir_builder.create()
    A = ib.buffer_ptr(a)
    with ib.for_range(0, n, name="i") as i:
        with ib.if_scope(A[i] < 0):
            A[i] = -A[i]
    body = ib.get()

Used for bodies of `te.extern` that no single expression describes: scans, sorts, scatters.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Sequence

from ..ir import dtype as dt
from . import op as O
from .buffer import Buffer, decl_buffer
from .expr import BufferLoad, PrimExpr, StringImm, Var, const_index
from .stmt import (
    TRUE, Allocate, AssertStmt, AttrStmt, BufferStore, DeclBuffer, Evaluate, For, ForKind,
    IfThenElse, LetStmt, Stmt, While, seq,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from ..ir.node import Node
    from .expr import ExprLike

_KINDS = {"serial": ForKind.SERIAL, "parallel": ForKind.PARALLEL, "unroll": ForKind.UNROLLED,
          "vectorize": ForKind.VECTORIZED}


class BufferVar:
    """A buffer read and written with `[]`; one index of several dimensions counts row by row."""

    __slots__ = ("_builder", "buffer")

    def __init__(self, builder: "IRBuilder", buffer: Buffer) -> None:
        self._builder, self.buffer = builder, buffer

    @property
    def dtype(self) -> str:
        """The type of an element."""
        return self.buffer.dtype

    def asobject(self) -> Buffer:
        """The buffer itself; its pointer is `.data`."""
        return self.buffer

    def _at(self, index: ExprLike | tuple[ExprLike, ...]) -> list[PrimExpr]:
        given = list(index) if isinstance(index, (tuple, list)) else [index]
        indices = [const_index(i) for i in given]
        shape = self.buffer.shape
        if len(indices) == len(shape):
            return indices
        if len(indices) != 1:
            raise ValueError(f"{self.buffer.name} has {len(shape)} dimensions and is read or "
                             f"written with {len(indices)} indices")
        out: list[PrimExpr] = []
        flat = indices[0]
        for d in reversed(shape[1:]):
            out.append(O.floormod(flat, d))
            flat = O.floordiv(flat, d)
        return [flat, *reversed(out)] if shape else []

    def __getitem__(self, index: ExprLike | tuple[ExprLike, ...]) -> PrimExpr:
        return BufferLoad(self.buffer, self._at(index))

    def __setitem__(self, index: ExprLike | tuple[ExprLike, ...], value: Any) -> None:
        value = O.cast(O.convert(value, BufferLoad(self.buffer, self._at(index))),
                       self.buffer.dtype)
        self._builder.emit(BufferStore(self.buffer, value, self._at(index)))


class IRBuilder:
    """Collects statements; scopes are `with` blocks."""

    def __init__(self) -> None:
        self._stack: list[list[Any]] = [[]]

    def emit(self, stmt: Stmt | PrimExpr | Callable[[Stmt], Stmt]) -> None:
        """Add a statement, or a function that makes one of the statements that follow it."""
        if isinstance(stmt, PrimExpr):
            stmt = Evaluate(stmt)
        if not isinstance(stmt, Stmt) and not callable(stmt):
            raise TypeError(f"emit takes a statement or a call, got {type(stmt).__name__}")
        self._stack[-1].append(stmt)

    def _close(self) -> Stmt:
        """The statements of the innermost scope as one."""
        rest: list[Stmt] = []
        for item in reversed(self._stack.pop()):
            rest = [item, *rest] if isinstance(item, Stmt) else [item(seq(*rest))]
        return seq(*rest)

    @contextmanager
    def _scope(self, wrap: Callable[[Stmt], Stmt], value: Var | None = None
               ) -> Generator[Any, None, None]:
        self._stack.append([])
        yield value
        self.emit(wrap(self._close()))

    def for_range(self, begin: ExprLike, end: ExprLike, name: str = "i", dtype: str | None = None,
                  kind: str = "serial") -> Any:
        """A loop over begin .. end; `kind` is serial, parallel, unroll or vectorize."""
        if kind not in _KINDS:
            raise ValueError(f'for_range: kind "{kind}" is none of {", ".join(_KINDS)}')
        begin, end = const_index(begin), const_index(end)
        if not (dt.is_integer(begin.dtype) and dt.is_integer(end.dtype)):
            raise ValueError(f"for_range: loop {name} goes from {begin!r} to {end!r}: both must be "
                             "integers (a // b is the whole part of a / b)")
        begin = O.cast(begin, end.dtype) if O.as_int(begin) is not None else begin
        extent = O.sub(end, begin)
        var = Var(name, dtype or extent.dtype)
        return self._scope(lambda body: For(var, begin, extent, _KINDS[kind], body), var)

    def while_loop(self, condition: PrimExpr) -> Any:
        """A loop that runs while `condition` holds."""
        return self._scope(lambda body: While(condition, body))

    def if_scope(self, cond: PrimExpr) -> Any:
        """What is done where `cond` holds."""
        return self._scope(lambda body: IfThenElse(cond, body))

    def else_scope(self) -> Any:
        """What is done otherwise; directly after an `if_scope`."""
        before = self._stack[-1]
        if not before or type(before[-1]) is not IfThenElse or before[-1].else_case is not None:
            raise ValueError("else_scope must come directly after an if_scope")
        choice = before.pop()
        return self._scope(lambda body: IfThenElse(choice.condition, choice.then_case, body))

    def new_scope(self) -> Any:
        """A scope of its own, for allocations."""
        return self._scope(lambda body: body)

    def scope_attr(self, node: Node, attr_key: str, value: ExprLike | str) -> None:
        """The rest of the scope is under an attribute."""
        value = StringImm(value) if isinstance(value, str) else O.convert(value)
        self.emit(lambda body: AttrStmt(node, attr_key, value, body))

    def let(self, var_name: Var | str, value: ExprLike) -> Var:
        """A variable with a value, for the rest of the scope."""
        value = O.convert(value)
        var = var_name if isinstance(var_name, Var) else Var(var_name, value.dtype)
        self.emit(lambda body: LetStmt(var, value, body))
        return var

    def allocate(self, dtype: str, shape: ExprLike | Sequence[ExprLike], name: str = "buf",
                 axis_separators: Sequence[int] | None = None, scope: str = "") -> BufferVar:
        """Memory for the rest of the scope."""
        sizes: Sequence[Any] = shape if isinstance(shape, (list, tuple)) else [shape]
        buffer = decl_buffer(list(sizes), dt.canonical(dtype), name, scope=scope or "global")
        self.emit(lambda body: Allocate(buffer.data, buffer.dtype, tuple(buffer.shape), TRUE,
                                        DeclBuffer(buffer, body), {}))
        return BufferVar(self, buffer)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "") -> BufferVar:
        """A buffer of unknown size that the function is given, by its pointer `name`."""
        return BufferVar(self, decl_buffer((1,), content_type, name=name, scope=scope))

    def buffer_ptr(self, buffer: Buffer, shape: ExprLike | Sequence[ExprLike] | None = None
                   ) -> BufferVar:
        """A buffer to read and write with `[]`."""
        return BufferVar(self, buffer)

    def likely(self, expr: PrimExpr) -> PrimExpr:
        """A condition that usually holds."""
        return O.likely(expr)

    def assert_(self, condition: PrimExpr, message: str) -> None:
        """The rest of the scope runs only where `condition` holds; else it is an error."""
        self.emit(lambda body: AssertStmt(condition, StringImm(message), body))

    def get(self) -> Stmt:
        """All that was said, as one statement."""
        if len(self._stack) != 1:
            raise ValueError("get: a scope is still open")
        return self._close()


def create() -> IRBuilder:
    """A builder with nothing in it."""
    return IRBuilder()


__all__ = ["BufferVar", "IRBuilder", "create"]
