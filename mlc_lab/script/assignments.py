"""The assignments of a script: names are bound as TVM binds them, elements of buffers stored to."""

from __future__ import annotations

import ast
import warnings
from typing import Any, Mapping, Sequence

from ..ir import dtype as dt
from ..reading.python_text import parse_expression, written
from ..tir import expr as E
from ..tir import op as O
from ..tir import stmt as S
from ..tir.buffer import Buffer
from . import tir as T
from .bounded import Budget, is_number
from .evaluator import Evaluator
from .indexing import buffer_indices, load, vector_indices
from .source import Source
from .values import Pending


class AssignmentParser(Evaluator):
    """Assignments, and the bodies that what they make goes into."""

    def __init__(self, source: Source, env: Mapping[str, Any], budget: Budget | None = None
                 ) -> None:
        super().__init__(source, env, budget)
        #: one list a body that is open, innermost last
        self.items_of: list[list[Any]] = []

    def emit(self, stmt: Any) -> None:
        """Add a statement, or a function from the rest of the body to a statement."""
        self.items_of[-1].append(stmt)

    def annotation(self, node: ast.AST) -> Any:
        """A type; a string is parsed."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                inner = parse_expression(node.value)
            except ValueError as error:
                raise self.error(node, str(error)) from None
            for part in ast.walk(inner):
                if hasattr(part, "lineno"):
                    ast.copy_location(part, node)
            node = inner
        return self.eval(node)

    def visit_assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error(node, "a chain of assignments cannot be used in a script")
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            buffer = self.eval(target.value)
            if isinstance(buffer, Buffer):
                self.store(target, buffer, self.eval(node.value), None, node.value)
                return
            raise self.error(target.value, f"{written(target.value)} is no buffer: only "
                                           "buffers can be stored to")
        self.assign(target, self.eval(node.value), node)

    def assign(self, target: ast.AST, value: object, node: ast.AST) -> None:
        """Bind a value to a name or to several."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, node)
        elif isinstance(target, ast.Subscript):
            buffer = self.eval(target.value)
            self.store(target, buffer, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, T.MetaVar) and isinstance(value.value, (tuple, list)):
                value = [T.MetaVar(v) for v in value.value]
            if not isinstance(value, (tuple, list)):
                if isinstance(value, Pending) and len(target.elts) == 1:
                    value = [value]
                else:
                    raise self.error(target, f"one value cannot be bound to {len(target.elts)} "
                                             "names")
            if len(value) != len(target.elts):
                raise self.error(target, f"{len(value)} value(s) for {len(target.elts)} name(s)")
            if not any(isinstance(part, Pending) for part in value):
                self.different(target.elts)
            for item, part in zip(target.elts, value):
                self.assign(item, part, node)
        else:
            raise self.error(target, "cannot assign to this")

    def different(self, targets: Sequence[ast.expr]) -> None:
        """DiagnosticError where one of several names stands twice."""
        seen: set[str] = set()
        for target in targets:
            inner = target.value if isinstance(target, ast.Starred) else target
            if isinstance(inner, ast.Name) and inner.id != "_":
                if inner.id in seen:
                    raise self.error(inner, f"the name {inner.id} stands twice here",
                                     "give each its own name")
                seen.add(inner.id)

    def bind(self, name: str, value: object, node: ast.AST) -> None:
        """Bind one name as TVM does: definitions are named, values become lets."""
        if isinstance(value, Pending):
            known = self.scopes[-1].get(name)
            if isinstance(known, Buffer) or any(known is axis for axis in self.axes()):
                kind = "a buffer" if isinstance(known, Buffer) else "an axis of the block"
                raise self.error(node, f"{name} is {kind} already: a name means one thing in a "
                                       "scope", "take another name")
            self.define(name, self.settle(value, name))
        elif isinstance(value, E.Var) and value.name == "":
            self.define(name, value.with_name(name))
        elif isinstance(value, T.MetaVar):
            self.define(name, value.value)
        elif isinstance(value, S.BufferRegion):
            self.let(name, T.as_expr(value))
        elif isinstance(value, E.Var) and not any(
                known is value for scope in self.scopes for known in scope.values()):
            self.define(name, value)
        elif isinstance(value, (E.PrimExpr, bool, int, float)):
            self.let(name, O.convert(value))
        elif is_number(value):
            self.let(name, O.const(value))
        else:
            self.define(name, value)

    def axes(self) -> list[E.Var]:
        """The iterators of the block that is open; none here."""
        return []

    def let(self, name: str, value: E.PrimExpr, var: E.Var | None = None) -> E.Var:
        """A LetStmt over the rest of the body."""
        if var is None:
            annotation = value.type_annotation if isinstance(value, E.Var) else None
            var = E.Var(name, annotation if annotation is not None else value.dtype)
        self.define(name, var)
        self.emit(lambda body: S.LetStmt(var, value, body))
        return var

    def visit_annassign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, "only a name can be annotated")
        kind = self.annotation(node.annotation)
        name = node.target.id
        if isinstance(kind, Pending) or isinstance(kind, Buffer):
            raise self.error(node.annotation, "a buffer is not bound by an annotation",
                             f"write {name} = T.alloc_buffer(...) or T.decl_buffer(...)")
        if isinstance(kind, T.DtypeName):
            var = E.Var(name, kind.dtype)
        elif isinstance(kind, E.Var):
            var = kind.with_name(name)
        else:
            raise self.error(node.annotation, "expected a type such as T.int32")
        if node.value is None:
            self.define(name, var)
            return
        value = O.convert(self.one_value(self.operand(node.value)), var)
        if value.dtype != var.dtype:
            if not isinstance(value, (E.IntImm, E.FloatImm)):
                raise self.error(node.value, f"{name} is declared {var.dtype} and gets a value of "
                                             f"type {value.dtype}", "convert it with T.cast")
            value = O.cast(value, var.dtype)
        self.let(name, value, var)

    def visit_augassign(self, node: ast.AugAssign) -> None:
        op, target = type(node.op), node.target
        if isinstance(target, ast.Subscript):
            buffer = self.eval(target.value)
            if not isinstance(buffer, Buffer):
                raise self.error(target.value, f"{written(target.value)} is no buffer")
            parts = buffer_indices(self, target, buffer)
            old = T.as_expr(load(self, target, buffer, parts))
            value = self.binary(node, op, old, self.operand(node.value))
            self.store(target, buffer, value, parts)
        elif isinstance(target, ast.Name):
            old = T.as_expr(self.lookup(target))
            value = self.binary(node, op, old, self.operand(node.value))
            self.bind(target.id, value, node)
        else:
            raise self.error(target, "cannot assign to this")

    def store(self, target: ast.Subscript, buffer: Any, value: object,
              parts: list[Any] | None = None, value_node: ast.AST | None = None) -> None:
        """`buffer[indices] = value`; Python numbers take the buffer's type."""
        if not isinstance(buffer, Buffer):
            raise self.error(target.value, f"{written(target.value)} is no buffer")
        if parts is None:
            parts = buffer_indices(self, target, buffer)
        if any(isinstance(p, slice) for p in parts):
            parts = vector_indices(self, target, buffer, parts)
        if len(parts) != len(buffer.shape):
            raise self.error(target, f"{buffer.name} has {len(buffer.shape)} dimensions, it is "
                                     f"stored to with {len(parts)} indices")
        if isinstance(value, Pending):
            value = self.settle(value, "v")
        indices = tuple(map(E.const_index, parts))
        wanted = E.load_dtype(buffer, indices)
        value = self.converted(value_node or target, T.as_expr(value), wanted, buffer)
        self.emit(S.BufferStore(buffer, value, indices))

    def converted(self, node: ast.AST, value: object, wanted: str, buffer: Buffer) -> E.PrimExpr:
        """A stored value in the buffer's type: numbers are converted, pointers are not."""
        if is_number(value):
            kind = dt.element_of(wanted)
            if isinstance(value, float) and not dt.is_float(kind) and value != int(value):
                raise self.error(node, f"{value} does not fit a buffer of type {kind}")
            return O.const(value, wanted)
        if not isinstance(value, E.PrimExpr):
            raise self.error(node, f"cannot store a Python {type(value).__name__}")
        if value.dtype == wanted:
            return value
        lanes = dt.lanes_of(wanted)
        if dt.lanes_of(value.dtype) == 1 and lanes > 1:
            value = E.Broadcast(self.converted(node, value, dt.element_of(wanted), buffer), lanes)
            return value
        if dt.lanes_of(value.dtype) != lanes:
            raise self.error(node, f"{lanes} element(s) are stored to, the value has "
                                   f"{dt.lanes_of(value.dtype)}")
        a, b = dt.element_of(value.dtype), dt.element_of(wanted)
        if "handle" in (a, b):
            raise self.error(node, f"a value of type {value.dtype} is stored to {buffer.name}, "
                                   f"which holds {buffer.dtype}",
                             f'convert it: T.reinterpret("{b}", ...)')
        if dt.is_float(a) and not dt.is_float(b):
            warnings.warn(f"a value of type {value.dtype} is stored to {buffer.name}, which holds "
                          f"{buffer.dtype}: its fraction is lost (write T.cast if that is meant)",
                          stacklevel=2)
        return O.cast(value, wanted)


__all__ = ["AssignmentParser"]
