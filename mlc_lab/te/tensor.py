"""Tensors of tensor expressions and the operations that make them.

A Tensor is one output of an Operation. Reading an element, `A[i, k]`, gives the expression
`ProducerLoad(A, [i, k])`; `create_prim_func` turns those reads into buffer loads.
"""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from ..above import above
from ..ir.containers import is_tuple
from ..tir import functor
from ..tir.expr import (
    IntImm, IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var, const_index,
)
from .error import TensorExprError


class Tensor:
    """A multi-dimensional array that an operation computes: output `value_index` of `op`.

    `shape` is a tuple of expressions, `dtype` the type of one element.
    """

    __slots__ = ("op", "value_index", "shape", "dtype", "__weakref__")

    #: operators of expressions leave a tensor on the right to its own operators
    takes_operators = True

    def __init__(self, shape: Sequence[PrimExpr], dtype: str, op: "Operation",
                 value_index: int = 0) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self.op = op
        self.value_index = value_index

    @property
    def name(self) -> str:
        """The operation's name; with `.v0`, `.v1`, ... where it has several outputs."""
        op = self.op
        return op.name if op.num_outputs == 1 else f"{op.name}.v{self.value_index}"

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def axis(self) -> tuple:
        """The axes of the operation."""
        return self.op.axis

    def __getitem__(self, indices: Any) -> Any:
        """The element at `indices`; with too few of them a TensorSlice that takes the rest, with
        ranges among them a Part for an intrinsic."""
        if any(isinstance(i, slice) for i in (indices if is_tuple(indices) else (indices,))):
            return Part(self, indices if isinstance(indices, tuple) else (indices,))
        return TensorSlice(self, indices if isinstance(indices, tuple) else (indices,)).resolved()

    def __call__(self, *indices: Any) -> Any:
        return TensorSlice(self, indices).resolved()

    def __len__(self) -> int:
        raise TypeError(f"tensor {self.name} has a shape, no length: ask for {self.name}.shape")

    def __iter__(self) -> Any:
        raise TypeError(f"tensor {self.name} cannot be iterated: index it with axes, "
                        f"as in te.compute({self.name}.shape, lambda *i: {self.name}(*i))")

    def __repr__(self) -> str:
        shape = ", ".join(str(getattr(d, "value", d)) for d in self.shape)
        return f"Tensor(shape=[{shape}], op.name={self.op.name})"

    def __neg__(self) -> "Tensor":
        return _whole("negative", self)

    def astype(self, dtype: str) -> "Tensor":
        """Every element cast to `dtype`."""
        return _whole("cast", self, dtype)


class Part:
    """A part of a tensor, `A[i, 0:16]`: a range for each dimension. Intrinsics take these."""

    __slots__ = ("tensor", "region")

    def __init__(self, tensor: Tensor, indices: Sequence[Any]) -> None:
        if len(indices) > tensor.ndim:
            raise TensorExprError(f"{tensor.name} has {tensor.ndim} dimensions and is read with "
                                  f"{len(indices)} indices")
        self.tensor = tensor
        given = [*indices, *(slice(None),) * (tensor.ndim - len(indices))]
        self.region = tuple(_range(i, dim) for i, dim in zip(given, tensor.shape))


def _range(index: Any, dim: PrimExpr) -> Range:
    if not isinstance(index, slice):
        return Range.from_min_extent(const_index(index), IntImm("int32", 1))
    if index.step not in (None, 1):
        raise TensorExprError("a part of a tensor takes all elements of a range: it has no step")
    begin = const_index(0 if index.start is None else index.start)
    return Range(begin, dim if index.stop is None else index.stop)


class TensorSlice:
    """A tensor with its first indices given: `A[i]` of a matrix, which `[j]` completes."""

    __slots__ = ("tensor", "indices")

    def __init__(self, tensor: Tensor, indices: Sequence[Any]) -> None:
        self.tensor = tensor
        self.indices = tuple(const_index(_index(tensor, i)) for i in indices)

    def resolved(self) -> Any:
        """The element, once there is an index for each dimension; this slice before that."""
        tensor = self.tensor
        if len(self.indices) == tensor.ndim:
            return ProducerLoad(tensor, self.indices)
        if len(self.indices) > tensor.ndim:
            shape = ", ".join(str(getattr(d, "value", d)) for d in tensor.shape)
            raise ValueError(f"{tensor.name} has {tensor.ndim} dimensions ({shape}) and is read "
                             f"with {len(self.indices)} indices")
        return self

    def __getitem__(self, indices: Any) -> Any:
        more = indices if isinstance(indices, tuple) else (indices,)
        return TensorSlice(self.tensor, (*self.indices, *more)).resolved()

    def asobject(self) -> PrimExpr:
        """The element as an expression. Raises ValueError while indices are missing."""
        value = self.resolved()
        if value is self:
            raise ValueError(f"{self.tensor.name} has {self.tensor.ndim} dimensions and is read "
                             f"with {len(self.indices)} indices; give the others too")
        return value

    @property
    def dtype(self) -> str:
        """The type of the element."""
        return self.tensor.dtype


def _index(tensor: Tensor, index: Any) -> Any:
    if isinstance(index, slice):
        raise TypeError(f"{tensor.name} is read element by element, with axes for indices; for a "
                        "part of it use topi.strided_slice")
    if isinstance(index, Tensor):
        if index.ndim:
            raise TypeError(f"an index of {tensor.name} is the whole tensor {index.name}: "
                            "read an element of it")
        return index()
    return index


def _whole(name: str, *args: Any) -> Any:
    """An operator on whole tensors, which `mlc_lab.topi` has."""
    return getattr(above("operators of tensors"), name)(*args)


def _install() -> None:
    table = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
             "floordiv": "floor_divide", "mod": "floor_mod"}
    for python, name in table.items():
        setattr(Tensor, f"__{python}__", lambda a, b, name=name: _whole(name, a, b))
        setattr(Tensor, f"__r{python}__", lambda a, b, name=name: _whole(name, b, a))


_install()


class Operation:
    """What makes tensors: a placeholder, a compute, or foreign code. Kept by identity."""

    axis: tuple[IterVar, ...] = ()
    reduce_axis: tuple[IterVar, ...] = ()
    #: the kind of memory its results are kept in
    scope: str = "global"

    def __init__(self, name: str, tag: str = "", attrs: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self.tag = tag
        self.attrs = dict(attrs or {})
        self.outputs: tuple[Tensor, ...] = ()

    @property
    def num_outputs(self) -> int:
        """How many tensors the operation makes."""
        return len(self.outputs)

    def output(self, index: int) -> Tensor:
        """Output number `index`."""
        return self.outputs[index]

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors it reads, each once, in order of first use."""
        return []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class PlaceholderOp(Operation):
    """An input of the program."""

    def __init__(self, name: str, shape: Sequence[PrimExpr], dtype: str) -> None:
        super().__init__(name)
        self.shape, self.dtype = tuple(shape), dtype
        self.outputs = (Tensor(shape, dtype, self),)


class ComputeOp(Operation):
    """Each element from an expression over `axis`: one expression of `body` for each output."""

    def __init__(self, name: str, tag: str, attrs: Mapping[str, Any] | None,
                 axis: Sequence[IterVar], body: Sequence[PrimExpr]) -> None:
        super().__init__(name, tag, attrs)
        self.axis, self.body = tuple(axis), tuple(body)
        if isinstance(self.body[0], Reduce):
            self.reduce_axis = tuple(self.body[0].axis)
        _reductions_on_top(name, self.body)
        shape = [iv.dom.extent for iv in self.axis]
        self.outputs = tuple(Tensor(shape, e.dtype, self, i) for i, e in enumerate(self.body))

    @property
    def reduction(self) -> Reduce:
        """Its body, where that is a reduction."""
        first = self.body[0]
        assert isinstance(first, Reduce), f"{self.name} reduces nothing"
        return first

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors it reads, each once, in order of first use."""
        seen: dict[Tensor, None] = {}

        def note(item: Any) -> None:
            if type(item) is ProducerLoad:
                seen.setdefault(item.producer)

        for value in self.body:
            functor.post_order_visit(value, note)
        return list(seen)


class ExternOp(Operation):
    """Foreign code: a statement over buffers that stand for the inputs and outputs."""

    def __init__(self, name: str, tag: str, attrs: Mapping[str, Any] | None,
                 inputs: Sequence[Tensor], in_buffers: Sequence[Any], out_buffers: Sequence[Any],
                 body: Any) -> None:
        super().__init__(name, tag, attrs)
        self.inputs = tuple(inputs)
        self.input_placeholders = tuple(in_buffers)
        self.output_placeholders = tuple(out_buffers)
        self.body = body
        self.outputs = tuple(Tensor(b.shape, b.dtype, self, i) for i, b in enumerate(out_buffers))

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors it reads."""
        return list(dict.fromkeys(self.inputs))


class ScanOp(Operation):
    """A recurrence along the first axis: the first rows from `init`, the others from `update`.

    `update` reads earlier rows through the placeholders `states`, which stand for the outputs.
    """

    def __init__(self, name: str, tag: str, attrs: Mapping[str, Any] | None, axis: IterVar,
                 init: Sequence[Tensor], update: Sequence[Tensor], states: Sequence[Tensor],
                 inputs: Sequence[Tensor]) -> None:
        super().__init__(name, tag, attrs)
        self.scan_axis = axis
        self.axis = (axis,)
        self.init, self.update, self.states = tuple(init), tuple(update), tuple(states)
        self.inputs = tuple(inputs)
        self.outputs = tuple(Tensor(s.shape, s.dtype, self, i) for i, s in enumerate(states))
        #: an axis for each dimension of each state but the first
        self.spatial_axis_ = tuple(
            IterVar(Range(0, extent), Var(f"{name}.out{i}.i{k + 1}", extent.dtype), IterVar.Opaque)
            for i, state in enumerate(states) for k, extent in enumerate(state.shape[1:]))

    def steps(self) -> list[ComputeOp]:
        """What is computed anew in each step, producers first: all that depends on a state.

        Raises ValueError where that is more than te.compute can say.
        """
        found: dict[Operation, bool] = {s.op: True for s in self.states}

        def depends(op: Operation) -> bool:
            if op not in found:
                found[op] = False
                each = [depends(t.op) for t in op.input_tensors]  # all of them: they are ordered
                found[op] = any(each)
                order[op] = found[op]
            return found[op]

        order: dict[Operation, bool] = {}
        for tensor in self.update:
            depends(tensor.op)
            order[tensor.op] = True
        steps: list[ComputeOp] = []
        for op, own in order.items():
            if not own:
                continue
            if not isinstance(op, ComputeOp):
                raise ValueError(f"scan {self.name}: {op.name} depends on a state and is no "
                                 "te.compute, of which the steps of a scan are made")
            steps.append(op)
        return steps

    @property
    def input_tensors(self) -> list[Tensor]:
        """What is computed before the first step: what init and the steps read."""
        own = {*self.steps(), *(s.op for s in self.states)}
        read: dict[Tensor, None] = dict.fromkeys(self.inputs)
        for op in (*(t.op for t in self.init if t.op.input_tensors), *own):
            read.update((t, None) for t in op.input_tensors if t.op not in own)
        read.update((t, None) for t in self.init if isinstance(t.op, PlaceholderOp))
        return list(read)


def _reductions_on_top(name: str, body: Sequence[PrimExpr]) -> None:
    """A reduction must be the whole value, and with several outputs the same for all of them."""
    first = body[0]
    if isinstance(first, Reduce):
        for other in body[1:]:
            if not isinstance(other, Reduce) or other.combiner is not first.combiner:
                raise TensorExprError(f"the outputs of {name} must be those of one reduction over "
                                 "tuples (te.comm_reducer)")
        inner: Sequence[PrimExpr] = first.source
    else:
        inner = body
    for value in inner:
        for item in functor.pre_order(value):
            if isinstance(item, Reduce):
                raise TensorExprError(
                    f"in {name} a reduction is part of a larger expression; it must be the whole "
                    "value: make it a te.compute of its own and read that here")


__all__ = ["ComputeOp", "ExternOp", "Operation", "Part", "PlaceholderOp", "ScanOp", "Tensor",
           "TensorSlice"]
