"""The statements of TensorIR: loops, blocks, stores and what lowering adds to them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence

from ..ir.containers import is_dict, is_mapping, is_sequence, is_tuple
from ..ir.node import Node, defines, node, plain, uses
from .buffer import Buffer
from .expr import (
    IntImm, IterVar, PrimExpr, Range, StringImm, Var, const_index, index_of_type, value_of_type,
)

if TYPE_CHECKING:
    from .expr import ExprLike, ThreadAxis


@node
class Stmt(Node):
    """Base of all statements."""

    __hash__ = object.__hash__

    @classmethod
    def fit_numbers(cls, *values: Any) -> Any:
        """The number as a constant."""
        return const_index(values[0])


class ForKind(IntEnum):
    """How the iterations of a loop run; the numbers are TVM's."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


@node
class LetStmt(Stmt):
    """body with var bound to value."""

    var: Var = defines()
    value: PrimExpr
    body: Stmt

    def __init__(self, var: Var, value: Any, body: Stmt, span: object = None) -> None:
        self._init(var, value_of_type(value, var.dtype), body)


@node
class AttrStmt(Stmt):
    """body under the attribute attr_key = value of `node` (pragmas, thread extents)."""

    node: Any = plain()
    attr_key: str = plain()
    value: PrimExpr
    body: Stmt

    def __init__(self, node: Any, attr_key: str, value: ExprLike | str, body: Stmt,
                 span: object = None) -> None:
        self._init(node, attr_key, StringImm(value) if isinstance(value, str) else
                   const_index(value), body)


@node
class AssertStmt(Stmt):
    """body, after making sure that condition holds."""

    condition: PrimExpr
    message: PrimExpr
    body: Stmt

    def __init__(self, condition: ExprLike, message: PrimExpr | str, body: Stmt,
                 span: object = None) -> None:
        self._init(const_index(condition),
                   StringImm(message) if isinstance(message, str) else message, body)


@node
class BufferStore(Stmt):
    """buffer[indices] = value"""

    buffer: Buffer = uses()
    value: PrimExpr
    indices: tuple[PrimExpr, ...]
    predicate: PrimExpr | None

    def __init__(self, buffer: Buffer, value: Any, indices: Sequence[Any],
                 predicate: Any = None, span: object = None) -> None:
        self._init(buffer, value_of_type(value, buffer.dtype), tuple(map(const_index, indices)),
                   predicate)


@node
class Allocate(Stmt):
    """body with buffer_var pointing to fresh memory of product(extents) elements."""

    buffer_var: Var = defines()
    dtype: str = plain()
    extents: tuple[PrimExpr, ...]
    condition: PrimExpr
    body: Stmt
    annotations: Mapping[str, Any] = plain()

    def __init__(self, buffer_var: Var, dtype: str, extents: Sequence[ExprLike],
                 condition: ExprLike, body: Stmt, annotations: Mapping[str, Any] | None = None,
                 span: object = None) -> None:
        self._init(buffer_var, dtype, tuple(map(const_index, extents)), const_index(condition),
                   body, dict(annotations) if annotations else EMPTY)


@node
class AllocateConst(Stmt):
    """body with buffer_var pointing to constant `data` (a numpy array)."""

    buffer_var: Var = defines()
    dtype: str = plain()
    extents: tuple[PrimExpr, ...]
    data: Any = plain()
    body: Stmt
    annotations: Mapping[str, Any] = plain()

    def __init__(self, buffer_var: Var, dtype: str, extents: Sequence[ExprLike], data: Any,
                 body: Stmt, annotations: Mapping[str, Any] | None = None,
                 span: object = None) -> None:
        self._init(buffer_var, dtype, tuple(map(const_index, extents)), data, body,
                   dict(annotations) if annotations else EMPTY)


@node
class DeclBuffer(Stmt):
    """body in which `buffer` is declared over its existing data pointer."""

    buffer: Buffer = defines()
    body: Stmt


@node
class SeqStmt(Stmt):
    """Statements one after the other. Never nested and never of fewer than two: see `seq`."""

    seq: tuple[Stmt, ...]

    def __init__(self, seq: Sequence[Stmt], span: object = None) -> None:
        self._init(tuple(seq))

    def map_children(self, fn: Callable[[Any], Any]) -> Any:
        """The statements with `fn` applied to each, flattened: what it gives may be a sequence."""
        items = [fn(item) for item in self.seq]
        return self if all(a is b for a, b in zip(items, self.seq)) else seq(*items)

    def __getitem__(self, i: int) -> Stmt:
        return self.seq[i]

    def __len__(self) -> int:
        return len(self.seq)


@node
class IfThenElse(Stmt):
    """then_case where condition holds, else else_case (or nothing)."""

    condition: PrimExpr
    then_case: Stmt
    else_case: Stmt | None

    def __init__(self, condition: ExprLike, then_case: Stmt, else_case: Stmt | None = None,
                 span: object = None) -> None:
        self._init(const_index(condition), then_case, else_case)


@node
class Evaluate(Stmt):
    """A call evaluated for its effect."""

    numbers = ("value",)
    value: PrimExpr


@node
class For(Stmt):
    """for loop_var in min .. min + extent: body

    `kind` says how iterations run. `thread_binding` is the GPU thread axis (an IterVar without
    domain) of a THREAD_BINDING loop.
    """

    loop_var: Var = defines()
    min: PrimExpr
    extent: PrimExpr
    kind: ForKind = plain()
    body: Stmt
    thread_binding: IterVar[Range | None] | None = plain()
    annotations: Mapping[str, Any] = plain()

    def __init__(self, loop_var: Var, min: ExprLike, extent: Any, kind: int, body: Stmt,
                 thread_binding: ThreadAxis | None = None,
                 annotations: Mapping[str, Any] | None = None, span: object = None) -> None:
        self._init(loop_var, value_of_type(min, loop_var.dtype),
                   value_of_type(extent, loop_var.dtype), ForKind(kind), body, thread_binding,
                   dict(annotations) if annotations else EMPTY)

    @property
    def thread_tag(self) -> str:
        """The name of the thread axis that it is bound to; "" where there is none."""
        return self.thread_binding.thread_tag if self.thread_binding is not None else ""


@node
class While(Stmt):
    """body repeated while condition holds."""

    numbers = ("condition",)
    condition: PrimExpr
    body: Stmt


@node
class BufferRegion(Node):
    """The box buffer[min : min + extent, ...]; one Range per dimension."""

    buffer: Buffer = uses()
    region: tuple[Range, ...]

    def __init__(self, buffer: Buffer, region: Sequence[Range], span: object = None) -> None:
        self._init(buffer, tuple(region))

    @staticmethod
    def from_indices(buffer: Buffer, indices: Sequence[ExprLike | Range | slice[Any, Any, Any]]
                     ) -> "BufferRegion":
        """A region from indices and slices; a plain index is a range of extent 1."""
        ranges: list[Range] = []
        for axis, index in enumerate(indices):
            if isinstance(index, slice):
                start = const_index(0 if index.start is None else index.start)
                stop = const_index(buffer.shape[axis] if index.stop is None else index.stop)
                ranges.append(Range.from_min_extent(start, stop - start))
            elif isinstance(index, Range):
                ranges.append(index)
            else:
                index = const_index(index)
                ranges.append(Range.from_fields(index, index_of_type(1, index.dtype)))
        for dim in buffer.shape[len(indices):]:
            ranges.append(Range.from_fields(index_of_type(0, dim.dtype), dim))
        return BufferRegion(buffer, tuple(ranges))

    @staticmethod
    def full_region(buffer: Buffer) -> "BufferRegion":
        """The whole buffer."""
        return BufferRegion(buffer, tuple(
            Range.from_fields(index_of_type(0, d.dtype), d) for d in buffer.shape))

    @staticmethod
    def from_point(buffer: Buffer, indices: Sequence[PrimExpr]) -> "BufferRegion":
        """One element."""
        return BufferRegion(buffer, tuple(
            Range.from_min_extent(i, index_of_type(1, i.dtype)) for i in indices))


@node
class MatchBufferRegion(Node):
    """buffer is another name (with its own shape and strides) for the region `source`."""

    buffer: Buffer = defines()
    source: BufferRegion


@node
class Block(Stmt):
    """The unit of scheduling: iterators, what is read and written, an init, a body.

    For every value of `iter_vars` the block reads `reads`, writes `writes`, and runs `init` (when
    all reduction iterators are at their start) and then `body`.
    """

    iter_vars: tuple[IterVar, ...] = defines()
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    name_hint: str = plain()
    alloc_buffers: tuple[Buffer, ...] = defines()
    match_buffers: tuple[MatchBufferRegion, ...]
    annotations: Mapping[str, Any] = plain()
    init: Stmt | None
    body: Stmt

    def __init__(self, iter_vars: Sequence[IterVar], reads: Sequence[BufferRegion],
                 writes: Sequence[BufferRegion], name_hint: str, body: Stmt,
                 init: Stmt | None = None, alloc_buffers: Sequence[Buffer] | None = (),
                 match_buffers: Sequence[MatchBufferRegion] | None = (),
                 annotations: Mapping[str, Any] | None = None, span: object = None) -> None:
        self._init(tuple(iter_vars), tuple(reads), tuple(writes), name_hint,
                   tuple(alloc_buffers or ()), tuple(match_buffers or ()),
                   dict(annotations) if annotations else EMPTY, init, body)


@node
class BlockRealize(Stmt):
    """One execution site of a block: iter_values bind its iterators where predicate holds."""

    iter_values: tuple[PrimExpr, ...]
    predicate: PrimExpr
    block: Block

    def __init__(self, iter_values: Sequence[Any], predicate: Any, block: Block,
                 span: object = None) -> None:
        if isinstance(predicate, (bool, int)):
            predicate = IntImm("bool", int(bool(predicate)))
        self._init(tuple(map(const_index, iter_values)), predicate, block)


#: the empty annotation dict, shared; annotations are never changed in place
EMPTY: Mapping[str, Any] = {}
TRUE = IntImm("bool", 1)


def _flatten(items: Iterable[Any], flat: list[Stmt]) -> None:
    for item in items:
        if type(item) is SeqStmt:
            flat.extend(item.seq)
        elif is_sequence(item):
            _flatten(item, flat)
        elif item is not None:
            flat.append(item)


def seq(*stmts: Any) -> Stmt:
    """Statements in order: nested sequences are flattened, one statement stays itself."""
    flat: list[Stmt] = []
    _flatten(stmts, flat)
    if not flat:
        return Evaluate(IntImm("int32", 0))
    return flat[0] if len(flat) == 1 else SeqStmt(tuple(flat))


def annotation_value(value: Any) -> Any:
    """An annotation as it is stored: Python scalars become constants, strings StringImm-free str.

    ints -> IntImm int32, bools -> IntImm bool, floats -> FloatImm float32, lists -> tuples. Raises
    TypeError for a function or a class, which no program can hold.
    """
    from .op import const

    if isinstance(value, (bool, int, float)):
        return const(value)
    if is_sequence(value):
        return tuple([annotation_value(v) for v in value])
    if isinstance(value, StringImm):
        return value.value
    if is_dict(value):
        return {k: annotation_value(v) for k, v in value.items()}
    if callable(value) and not isinstance(value, (str, Node)):
        raise TypeError("an annotation is a number, a string, an expression, or a list or dict of "
                        "such values, not a function")
    return value


def map_annotations(value: Any, fn: Callable[[PrimExpr], Any]) -> Any:
    """Annotations, or one of them, with the expressions in them mapped; the same object when none
    changed."""
    if isinstance(value, PrimExpr):
        return fn(value)
    if is_tuple(value):
        new = tuple(map_annotations(v, fn) for v in value)
        return value if all(a is b for a, b in zip(new, value)) else new
    if is_mapping(value):
        made = {k: map_annotations(v, fn) for k, v in value.items()}
        return value if all(made[k] is v for k, v in value.items()) else made
    return value


def nodes_in_annotations(value: Any) -> list[PrimExpr]:
    """The expressions in annotations, or in one of them."""
    found: list[PrimExpr] = []
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, PrimExpr):
            found.append(item)
        elif is_tuple(item):
            rest.extend(reversed(item))
        elif is_mapping(item):
            rest.extend([*item.values()][::-1])
    return found


__all__ = [
    "Allocate", "AllocateConst", "AssertStmt", "AttrStmt", "Block", "BlockRealize", "BufferRegion",
    "BufferStore", "DeclBuffer", "EMPTY", "Evaluate", "For", "ForKind", "IfThenElse", "LetStmt",
    "MatchBufferRegion", "SeqStmt", "Stmt", "TRUE", "While", "annotation_value",
    "map_annotations", "nodes_in_annotations", "seq",
]
