"""Walking and rewriting trees of expressions and statements.

`Visitor` and `Mutator` dispatch on the node's type through a table built once per class from its
methods `visit_For`, `visit_BufferLoad`, ...; a node without a method gets the default: visit the
children, or rebuild from rewritten children. A rewrite that changes nothing returns the same
object, so identity tells what a step left alone.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping
from weakref import WeakKeyDictionary

from ..ir import dtype as dt
from ..ir.node import NODE_TYPES, Node, map_tuple
from ..ir.recursion import grows_stack, with_room_for
from .buffer import Buffer
from .expr import (
    BufferLoad, Cast, IntImm, IterVar, Let, PrimExpr, Reduce, Var, const_index,
)
from .function import PrimFunc
from .stmt import (
    AllocateConst, Allocate, AssertStmt, AttrStmt, Block, BlockRealize, BufferRegion, BufferStore,
    DeclBuffer, Evaluate, For, IfThenElse, LetStmt, MatchBufferRegion, SeqStmt, Stmt, While,
    map_annotations,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

_LEAVES = {"Var", "SizeVar", "IntImm", "FloatImm", "StringImm"}


class Dispatch:
    """Builds `_table`: node type -> method, for classes with `visit_<TypeName>` methods."""

    _table: dict[type[Node], Callable[..., Any]] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        table: dict[type[Node], Callable[..., Any]] = {}
        for node_type in NODE_TYPES.values():
            for base in node_type.__mro__:
                method = getattr(cls, f"visit_{base.__name__}", None)
                if method is not None:
                    table[node_type] = method
                    break
        cls._table = table


class Visitor(Dispatch):
    """Visits every node under a root, in program order."""

    def visit(self, node: Node) -> None:
        """Visit one node; the default goes on to its children."""
        method = self._table.get(type(node))
        if method is not None:
            method(self, node)
        else:
            for item in node.children():
                self.visit(item)

    def visit_children(self, node: Node) -> None:
        """What the default does: visit the children."""
        for item in node.children():
            self.visit(item)

    def visit_Block(self, node: Block) -> None:
        """Domains of the iterators come first."""
        for iv in node.iter_vars:
            self.visit(iv.dom)
        self.visit_children(node)


class Mutator(Dispatch):
    """Rewrites a tree bottom-up, sharing what stays the same.

    `visit_buffer` maps buffers where they are used and `visit_buffer_def` where they are defined;
    both default to the remembered replacement in `self.buffers`. `visit_var_def` maps variables
    where they are bound.
    """

    def __init__(self) -> None:
        self.buffers: dict[Buffer, Buffer] = {}

    def visit(self, node: Any) -> Any:
        """The rewritten node (the same object when nothing changed)."""
        method = self._table.get(node.__class__)
        if method is not None:
            return method(self, node)
        return node.map_children(self.visit)

    def default(self, node: Any) -> Any:
        """Rebuild from rewritten children: what a method calls for the rest of its node."""
        return node.map_children(self.visit)

    def visit_Var(self, node: Var) -> PrimExpr:
        return node

    def visit_var_def(self, var: Var) -> Var:
        """The variable to bind in place of `var`."""
        return var

    def visit_buffer(self, buffer: Buffer) -> Buffer:
        """The buffer to use in place of `buffer`."""
        return self.buffers.get(buffer, buffer)

    def visit_buffer_def(self, buffer: Buffer) -> Buffer:
        """The buffer to define in place of `buffer`: its shape and data are rewritten."""
        new = buffer.map_children(self._in_buffer)
        if new is not buffer:
            self.buffers[buffer] = new
        return self.buffers.get(buffer, buffer)

    def _in_buffer(self, item: Node) -> Node:
        return self.visit_Var(item) if isinstance(item, Var) else self.visit(item)

    def visit_BufferLoad(self, node: BufferLoad) -> Any:
        new = node.map_children(self.visit)
        buffer = self.visit_buffer(node.buffer)
        return new if buffer is node.buffer else BufferLoad.from_fields(
            buffer, new.indices, new.predicate)

    def visit_BufferStore(self, node: BufferStore) -> Any:
        new = node.map_children(self.visit)
        buffer = self.visit_buffer(node.buffer)
        return new if buffer is node.buffer else BufferStore.from_fields(
            buffer, new.value, new.indices, new.predicate)

    def visit_BufferRegion(self, node: BufferRegion) -> BufferRegion:
        new = node.map_children(self.visit)
        buffer = self.visit_buffer(node.buffer)
        return new if buffer is node.buffer else BufferRegion.from_fields(buffer, new.region)

    def visit_MatchBufferRegion(self, node: MatchBufferRegion) -> MatchBufferRegion:
        source = self.visit(node.source)
        buffer = self.visit_buffer_def(node.buffer)
        if source is node.source and buffer is node.buffer:
            return node
        return MatchBufferRegion.from_fields(buffer, source)

    def visit_DeclBuffer(self, node: DeclBuffer) -> Stmt:
        buffer = self.visit_buffer_def(node.buffer)
        body = self.visit(node.body)
        if buffer is node.buffer and body is node.body:
            return node
        return DeclBuffer.from_fields(buffer, body)

    def visit_IterVar(self, node: IterVar[Any]) -> IterVar[Any]:
        dom = self.visit(node.dom) if node.dom is not None else None
        var = self.visit_var_def(node.var)
        if dom is node.dom and var is node.var:
            return node
        return IterVar.from_fields(dom, var, node.iter_type, node.thread_tag)

    def visit_Reduce(self, node: Reduce) -> PrimExpr:
        axis = map_tuple(node.axis, self.visit_IterVar)
        new = node.map_children(self.visit)
        return new if axis is node.axis else new.replace(axis=axis)

    def visit_For(self, node: For) -> Stmt:
        var = self.visit_var_def(node.loop_var)
        notes = self._annotations(node.annotations)
        new = node.map_children(self.visit)
        if var is node.loop_var and notes is node.annotations:
            return new
        return new.replace(loop_var=var, annotations=notes)

    def _annotations(self, notes: Mapping[str, Any]) -> Any:
        """Annotations with the expressions in them rewritten."""
        return map_annotations(notes, self.visit) if notes else notes

    def visit_Let(self, node: Let) -> PrimExpr:
        var = self.visit_var_def(node.var)
        new = node.map_children(self.visit)
        return new if var is node.var else new.replace(var=var)

    def visit_LetStmt(self, node: LetStmt) -> Stmt:
        var = self.visit_var_def(node.var)
        new = node.map_children(self.visit)
        return new if var is node.var else new.replace(var=var)

    def visit_Allocate(self, node: Allocate) -> Stmt:
        var = self.visit_var_def(node.buffer_var)
        new = node.map_children(self.visit)
        return new if var is node.buffer_var else new.replace(buffer_var=var)

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        new = node.map_children(self.visit)
        given = subject = node.node
        if isinstance(given, Var):
            subject = self.visit_Var(given)
        elif isinstance(given, Buffer):
            subject = self.visit_buffer(given)
        elif isinstance(given, IterVar):
            subject = self.visit_IterVar(subject)
        return new if subject is given else new.replace(node=subject)

    def visit_SeqStmt(self, node: SeqStmt) -> Stmt:
        return node.map_children(self.visit)

    def visit_Block(self, node: Block) -> Any:
        iter_vars = map_tuple(node.iter_vars, self.visit_IterVar)
        allocs = map_tuple(node.alloc_buffers, self.visit_buffer_def)
        # match_buffers define buffers that reads, init and body use: visit them first
        matches = map_tuple(node.match_buffers, self.visit)
        reads = map_tuple(node.reads, self.visit)
        writes = map_tuple(node.writes, self.visit)
        notes = self._annotations(node.annotations)
        init = self.visit(node.init) if node.init is not None else None
        body = self.visit(node.body)
        if (iter_vars is node.iter_vars and allocs is node.alloc_buffers and init is node.init
                and matches is node.match_buffers and reads is node.reads
                and writes is node.writes and notes is node.annotations and body is node.body):
            return node
        return Block.from_fields(iter_vars, reads, writes, node.name_hint, allocs, matches,
                                 notes, init, body)


# ------------------------------------------------------------------------------- walks


def pre_order(root: Node) -> Iterator[Any]:
    """Every node under `root`, parents first, in program order (iterator domains included)."""
    stack: list[Any] = [root]
    while stack:
        item = stack.pop()
        yield item
        kids = item.children()
        if type(item) is Block:
            kids = [iv.dom for iv in item.iter_vars] + kids
        kids.reverse()
        stack += kids


#: the statements in a statement, last first
_PARTS: dict[type, tuple[str, ...]] = {
    For: ("body",), Block: ("body", "init"), BlockRealize: ("block",), SeqStmt: (),
    IfThenElse: ("else_case", "then_case"), LetStmt: ("body",), AttrStmt: ("body",),
    Allocate: ("body",), AllocateConst: ("body",), DeclBuffer: ("body",), While: ("body",),
    AssertStmt: ("body",), BufferStore: (), Evaluate: (),
}


def all_statements(root: Stmt) -> Iterator[Stmt]:
    """Every statement under (and with) `root`, parents first, in program order: `pre_order`
    without the expressions."""
    stack = [root]
    while stack:
        item = stack.pop()
        yield item
        if type(item) is SeqStmt:
            stack += item.seq[::-1]
            continue
        for name in _PARTS[type(item)]:
            part = getattr(item, name)
            if part is not None:
                stack.append(part)


def post_order_visit(root: Node, fvisit: Callable[[Any], None]) -> None:
    """Call `fvisit` on every node, children first."""
    stack = [(root.body if isinstance(root, PrimFunc) else root, False)]
    while stack:
        item, seen = stack.pop()
        if seen:
            fvisit(item)
        else:
            stack.append((item, True))
            stack.extend((sub, False) for sub in reversed(item.children()))


def pre_order_visit(root: Node, fvisit: Callable[[Any], Any]) -> None:
    """Call `fvisit` on every node, parents first; a False result skips the node's children."""
    stack: list[Any] = [root]
    while stack:
        item = stack.pop()
        if fvisit(item) is not False:
            stack.extend(reversed(item.children()))


@grows_stack
def free_vars(root: Node) -> list[Var]:
    """The Vars that are used but not bound under `root`, in order of first use."""
    found: dict[Var, None] = {}
    bound: set[Var] = set()
    _find_free(root, found, bound)
    return list(found)


def _find_free(item: Node, found: dict[Var, None], bound: set[Var]) -> None:
    if isinstance(item, Var):
        if item not in bound:
            found.setdefault(item)
        return
    if type(item) is For:
        _find_free(item.min, found, bound)
        _find_free(item.extent, found, bound)
        bound.add(item.loop_var)
        _find_free(item.body, found, bound)
        return
    if type(item) is LetStmt or type(item) is Let:
        _find_free(item.value, found, bound)
        bound.add(item.var)
        _find_free(item.body, found, bound)
        return
    if type(item) is Block:
        for iv in item.iter_vars:
            _find_free(iv.dom, found, bound)
            bound.add(iv.var)
        for buffer in item.alloc_buffers:
            bound.add(buffer.data)
        for match in item.match_buffers:
            _find_free(match.source, found, bound)
            bound.add(match.buffer.data)
            bound.update(v for v in (*match.buffer.strides, match.buffer.elem_offset)
                         if isinstance(v, Var))
    elif type(item) is Allocate or type(item) is AllocateConst:
        bound.add(item.buffer_var)
    elif type(item) is BufferLoad or type(item) is BufferStore:
        if item.buffer.data not in bound:
            found.setdefault(item.buffer.data)
    for sub in item.children():
        _find_free(sub, found, bound)


def uses_var(root: Node, var: Any) -> bool:
    """Whether a variable (or one of a set, or one that a predicate accepts) occurs in `root`."""
    if isinstance(var, Var):
        test: Callable[[Any], object] = lambda v: v is var
    elif callable(var):
        test = var
    else:
        test = var.__contains__
    stack: list[Any] = [root]
    while stack:
        item = stack.pop()
        if type(item) is Var or isinstance(item, Var):
            if test(item):
                return True
        elif type(item) is not IntImm:
            if type(item) is Block:
                stack += [iv.dom for iv in item.iter_vars]
            stack += item.children()
    return False


def variables_of(expressions: Iterable[PrimExpr]) -> set[Var]:
    """All variables that occur in some expressions."""
    found: set[Var] = set()
    stack: list[Any] = list(expressions)
    while stack:
        item = stack.pop()
        if isinstance(item, Var):
            found.add(item)
        elif type(item) is not IntImm:
            stack += item.children()
    return found


def leaves_loop(body: Stmt, by: tuple[str, ...] = ("tir.break_loop", "tir.continue_loop")) -> bool:
    """Whether a statement leaves the loop that it is the body of, or its round, by one of these
    calls; what leaves loops further in does not count."""
    stack: list[Any] = [body]
    while stack:
        item = stack.pop()
        kind = item.__class__
        if kind is Evaluate:
            if getattr(getattr(item.value, "op", None), "name", "") in by:
                return True
        elif kind is SeqStmt:
            stack += item.seq
        elif kind is not For and kind is not While:
            stack += [part for name in _PARTS[kind] if (part := getattr(item, name)) is not None]
    return False


# ------------------------------------------------------------------------------- substitution


#: what `names_in` found: most substitutions replace loops around a block, which its body does not
#: mention
_named: WeakKeyDictionary[Block, frozenset[Node]] = WeakKeyDictionary()


def names_in(block: Block) -> frozenset[Node]:
    """The variables and buffers that a block names in any place, its own among them."""
    found = _named.get(block)
    if found is None:
        names: set[Node] = set()
        stack: list[Any] = [block]
        while stack:
            item = stack.pop()
            if type(item) is tuple:
                stack += item
            elif type(item) is IntImm or type(item) is str or item is None:
                continue
            elif isinstance(item, Node):
                if isinstance(item, (Var, Buffer)):
                    if item in names:
                        continue
                    names.add(item)
                stack += [getattr(item, name) for name, _ in type(item).fields]
            elif isinstance(item, tuple):
                stack += item
            elif isinstance(item, dict):
                stack += item.values()
        found = _named[block] = frozenset(names)
    return found


class _Substitute(Mutator):
    def __init__(self, table: Mapping[Var, PrimExpr], buffers: Mapping[Buffer, Buffer]) -> None:
        self.table = table
        self.buffers = dict(buffers)
        self._pointers = any(v.dtype == "handle" for v in table)
        self._seen: dict[Buffer, Buffer] = {}

    def visit_Var(self, node: Var) -> PrimExpr:
        return self.table.get(node, node)

    def visit_var_def(self, var: Var) -> Var:
        new = self.table.get(var, var)
        return new if isinstance(new, Var) else var

    def visit_Block(self, node: Block) -> Stmt:
        names = names_in(node)
        if names.isdisjoint(self.table) and names.isdisjoint(self.buffers):
            return node
        return super().visit_Block(node)

    def visit_buffer(self, buffer: Buffer) -> Buffer:
        found = self.buffers.get(buffer)
        if found is not None:
            return found
        if buffer in self._seen:
            return self._seen[buffer]
        new = buffer.map_children(self._in_buffer)
        self._seen[buffer] = new
        return new

    def visit_buffer_def(self, buffer: Buffer) -> Buffer:
        return self.visit_buffer(buffer)

    def visit_BinaryOp(self, node: Any) -> PrimExpr:
        # rebuild through the folding operator, so that x * 1 and 0 + x do not pile up
        a, b = self.visit(node.a), self.visit(node.b)
        if a is node.a and b is node.b:
            return node
        kind = node.__class__
        build = _BUILDERS.get(kind) or kind
        try:
            return build(a, b)
        except ZeroDivisionError:  # an error of the program when it runs, not of who moves it
            return kind(a, b)

    def visit_Cast(self, node: Cast) -> PrimExpr:
        value = self.visit(node.value)
        if value is node.value:
            return node
        # a vector in place of a scalar is cast to a vector
        lanes = dt.lanes_of(value.dtype)
        dtype = node.dtype if lanes == dt.lanes_of(node.value.dtype) else (
            dt.with_lanes(node.dtype, lanes))
        return Cast(dtype, value)


@contextmanager
def following(note: Callable[[Any, Any], None]) -> Generator[None, None, None]:
    """Hear of every node that a Mutator rewrites inside the block: `note(old, new)`, inner first.

    For views that follow a statement through passes. Costs nothing while nobody follows.
    """

    def visit(self: Mutator, node: Any) -> Any:
        new = plain(self, node)
        if new is not node:
            note(node, new)
        return new

    plain = Mutator.visit
    Mutator.visit = visit
    try:
        yield
    finally:
        Mutator.visit = plain


def substitute(node: Any, table: Mapping[Var, Any] | Callable[[Var], Any],
               buffers: Mapping[Buffer, Buffer] | None = None) -> Any:
    """`node` with variables replaced by expressions (and buffers by buffers).

    Buffers whose data pointer or shape mentions a replaced variable are rewritten too.
    """
    if type(node) is IntImm:
        return node
    if callable(table):
        table = _told(table, node)
    if type(node) is Var:
        return const_index(table[node]) if node in table else node
    table = {var: const_index(value) for var, value in table.items()}
    if not table and not buffers:
        return node
    return _substitute(node, table, buffers or {})


def _told(replacement: Callable[[Var], Any], node: Node) -> dict[Var, Any]:
    return {v: r for v in free_vars(node) if (r := replacement(v)) is not None}


@grows_stack
def _substitute(node: Any, table: Mapping[Var, PrimExpr], buffers: Mapping[Buffer, Buffer]) -> Any:
    return _Substitute(table, buffers).visit(node)


def _builders() -> dict[type[Node], Callable[..., PrimExpr]]:
    from . import op

    names = {"Add": op.add, "Sub": op.sub, "Mul": op.mul, "Div": op.truncdiv, "Mod": op.truncmod,
             "FloorDiv": op.floordiv, "FloorMod": op.floormod, "Min": op.min_value_of,
             "Max": op.max_value_of, "EQ": op.equal, "NE": op.not_equal, "LT": op.less,
             "LE": op.less_equal, "GT": op.greater, "GE": op.greater_equal,
             "And": op.logical_and, "Or": op.logical_or}
    return {NODE_TYPES[name]: fn for name, fn in names.items()}


_BUILDERS = _builders()


def ir_transform(root: Any, preorder: Callable[[Any], Any] | None,
                 postorder: Callable[[Any], Any] | None, only: Sequence[str] | None = None) -> Any:
    """TVM's generic rewrite: `preorder(node)` may replace a node before its children are seen,
    `postorder(node)` after; None keeps it. `only` lists type names such as "tir.For"."""
    names = {n.rsplit(".", 1)[-1] for n in only} if only else None

    def visit(item: Node) -> Node:
        applies = names is None or type(item).__name__ in names
        if applies and preorder is not None:
            new = preorder(item)
            if new is not None:
                return new
        new = item.map_children(visit)
        if applies and postorder is not None:
            out = postorder(new)
            if out is not None:
                return out
        return new

    return with_room_for(root, lambda: visit(root))


@grows_stack
def specialize(func: PrimFunc, param_map: Mapping[Var, Any]) -> PrimFunc:
    """See `PrimFunc.specialize`."""
    if not param_map:
        return func
    table: dict[Var, Any] = {}
    dropped: set[Var] = set()
    for param, value in param_map.items():
        if isinstance(value, Buffer):
            buffer = func.buffer_map[param]
            if len(buffer.shape) != len(value.shape):
                raise ValueError(f"{buffer.name} has {len(buffer.shape)} dimensions, the given "
                                 f"buffer {len(value.shape)}")
            if value.strides and buffer.elem_offset is not None and value.elem_offset is not None:
                offsets = ((buffer.elem_offset,), (value.elem_offset,))
            else:
                offsets = ((), ())
            for old, new in zip((*buffer.shape, *buffer.strides, *offsets[0]),
                                (*value.shape, *value.strides, *offsets[1])):
                if isinstance(old, Var):
                    table[old] = new
                    dropped.add(old)  # it may be a parameter, whose value is known now
        else:
            table[param] = value
            dropped.add(param)
    body = func.body
    mutator = _Substitute({v: const_index(e) for v, e in table.items()}, {})
    buffer_map = {p: mutator.visit_buffer(b) for p, b in func.buffer_map.items()}
    return PrimFunc.from_fields(tuple(p for p in func.params if p not in dropped), buffer_map,
                                func.attrs, func.ret_type, mutator.visit(body))


__all__ = ["Dispatch", "Mutator", "Visitor", "all_statements", "free_vars",
           "ir_transform", "leaves_loop", "post_order_visit", "pre_order",
           "pre_order_visit", "specialize", "substitute", "uses_var", "variables_of"]
