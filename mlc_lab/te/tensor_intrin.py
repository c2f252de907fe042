"""decl_tensor_intrin: an instruction of the machine, said in tensor expressions.

What it computes is a `te.compute`; how the machine does it is a function of buffers that gives
statements. `stage.tensorize(axis, intrin)` takes the result. It is a pair of functions like any
`tir.TensorIntrin`, and is registered as one, under a name of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from ..tir.buffer import decl_buffer
from ..tir.expr import PrimExpr, Var
from ..tir.function import PrimFunc, TensorIntrin
from ..tir.functor import all_statements, substitute
from ..tir.op import as_int
from ..tir.stmt import Block, BlockRealize, BufferRegion, Evaluate, Stmt
from .create_prim_func import create_prim_func
from .tensor import ComputeOp
from .tensor_compute import IntrinCall

_numbers = count()


class DeclaredIntrin:
    """What decl_tensor_intrin gives: the computation, and the name it is registered under.

    Attributes
    ----------
    op : ComputeOp
        What one call computes.
    updates : bool
        Whether the implementation adds to a result that is there already. If not, a call computes a
        whole sum, and loops of the reduction may not be split outside of it.
    inputs, buffers : list
        The tensors that it reads, and the buffers for these and for its results.
    body, reduce_init, reduce_update : Stmt or None
        The statements of a call, of the start of a sum, and of adding to it.
    """

    scalar_params: tuple[Any, ...] = ()

    def __init__(self, op: ComputeOp, name: str, updates: bool, buffers: Sequence[Any],
                 made: Sequence[Any]) -> None:
        self.op, self.name, self.updates = op, name, updates
        self.inputs, self.buffers = list(op.input_tensors), list(buffers)
        self.body, self.reduce_init, self.reduce_update = made

    def __call__(self, *parts: Any, reduce_axis: Any = None) -> IntrinCall:
        """In the function of a `te.compute`: compute the element by this intrinsic, of parts of
        tensors such as `A[i, 0:16]`. `reduce_axis` are axes outside of a call to sum over."""
        return IntrinCall(self, parts, reduce_axis)

    def __repr__(self) -> str:
        return f"TensorIntrin({self.name})"

    def check(self, stage: Any) -> None:
        """ValueError where a stage's sum is longer than what one call sums up, and it cannot."""
        if self.updates or not self.op.reduce_axis:
            return
        mine, whole = ([as_int(axis.dom.extent) for axis in op.reduce_axis]
                       for op in (self.op, stage.op))
        if mine != whole:
            raise ValueError(
                f"tensorize: one call of {self.name} sums up {mine}, and {stage.op.name} {whole}: "
                "give the way to add to a sum as well, by returning (body, reset, update) from the "
                "function of the intrinsic")


def decl_tensor_intrin(op: ComputeOp, fcompute: Callable[..., Any], name: str = "tensor_intrin",
                       binds: Mapping[Any, Any] | None = None,
                       scalar_params: Sequence[Any] | None = None,
                       default_buffer_params: Mapping[str, Any] | None = None) -> DeclaredIntrin:
    """An intrinsic that computes `op`: `fcompute(ins, outs)` gives its statements.

    It gets the buffers of the inputs and of the results, those of `binds` or new ones, and gives a
    statement, or for a reduction (body, reset, update), of which update is used: the first value is
    stored by the loops that TE makes for it, before the calls.
    """
    if not isinstance(op, ComputeOp):
        raise ValueError("decl_tensor_intrin takes the operation of a te.compute (`c.op`), not "
                         f"{type(op).__name__}")
    if scalar_params:
        raise ValueError("decl_tensor_intrin: scalar_params is not supported; make an intrinsic "
                         "for each value")
    inputs, outputs = list(op.input_tensors), list(op.outputs)
    buffers = [(binds or {}).get(t) or decl_buffer(t.shape, t.dtype, t.op.name,
                                                   **(default_buffer_params or {}))
               for t in (*inputs, *outputs)]
    made = fcompute(buffers[:len(inputs)], buffers[len(inputs):])
    updates = isinstance(made, (tuple, list))
    if updates and (len(made) != 3 or made[2] is None):
        raise ValueError("the function of an intrinsic gives a statement, or (body, reset, update) "
                         "with an update")
    body = made[2] if updates else made
    if isinstance(body, PrimExpr):  # a call
        body = Evaluate(body)
    if not isinstance(body, Stmt):
        raise ValueError("the function of an intrinsic gives a statement, such as ib.get(); it "
                         f"gave {type(body).__name__}")
    known = f"te.{name}.{next(_numbers)}"
    scopes = [str(b.scope) for b in buffers]
    TensorIntrin.register(known, _description([*inputs, *outputs], scopes),
                          _implementation(buffers, len(inputs), body, bool(op.reduce_axis)))
    return DeclaredIntrin(op, known, updates, buffers, made if updates else (body, None, None))


def _description(tensors: Sequence[Any], scopes: Sequence[str]) -> PrimFunc:
    """What a call does to a result that has its first value: the computation without its init, with
    the tensors in memory of these scopes."""
    func = _in_memory(create_prim_func(tensors), scopes)
    root = func.root
    loops = root.body
    inner = next(s for s in all_statements(loops) if isinstance(s, BlockRealize))
    done = _replaced(loops, inner, inner.replace(block=_without_init(inner.block)))
    regions = [BufferRegion.full_region(func.buffer_map[p]) for p in func.params]
    reads, writes = regions[:len(tensors) - 1], regions[len(tensors) - 1:]
    if inner.block.init is not None:
        reads = [*writes, *reads]
    return PrimFunc(func.params, func.body.replace(block=root.replace(
        reads=tuple(reads), writes=tuple(writes), body=done)), None, func.buffer_map)


def _in_memory(func: PrimFunc, scopes: Sequence[str]) -> PrimFunc:
    """A function whose parameters are in other kinds of memory."""
    held: dict[Any, Any] = {}
    for param, scope in zip(func.params, scopes):
        old = func.buffer_map[param]
        if old.scope != scope:
            held[old] = decl_buffer(old.shape, old.dtype, old.name, scope=scope)
    if not held:
        return func
    body = substitute(func.body, {old.data: new.data for old, new in held.items()}, held)
    return PrimFunc(func.params, body, func.ret_type,
                    {p: held.get(b, b) for p, b in func.buffer_map.items()}, func.attrs)


def _without_init(block: Block) -> Block:
    if block.init is None:
        return block
    return block.replace(init=None, reads=(*block.writes, *block.reads))


def _replaced(stmt: Any, old: Any, new: Any) -> Any:
    """A nest of loops with another block at its end."""
    return new if stmt is old else stmt.replace(body=_replaced(stmt.body, old, new))


def _implementation(buffers: Sequence[Any], inputs: int, body: Stmt, sums: bool) -> PrimFunc:
    regions = [BufferRegion.full_region(b) for b in buffers]
    reads, writes = regions[:inputs], regions[inputs:]
    block = Block((), (*(writes if sums else ()), *reads), tuple(writes), "root", body)
    params = [Var(f"var_{b.name}", "handle") for b in buffers]
    return PrimFunc(params, BlockRealize((), True, block), None, dict(zip(params, buffers)))


__all__ = ["DeclaredIntrin", "decl_tensor_intrin"]
