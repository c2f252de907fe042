"""Loops whose turns the run counts, as the frontends write them.

Relax has no statement for a loop: one is a local function that calls itself::

    @R.function
    def loop(x: R.Tensor((3,), "float32")) -> R.Tuple(R.Tensor((3,), "float32")):
        more = ...                  # from x
        if more:
            y = ...                 # one turn
            out = loop(y)
        else:
            out = (x,)
        return out

The call is the last thing that the function does, and the virtual machine makes such calls into
jumps: a loop takes any number of turns, and Ctrl-C ends one between two kernels.
"""

from __future__ import annotations

from typing import Callable, Collection, Sequence

from ...tir.expr import SizeVar
from ..block_builder import BlockBuilder
from ..expr import Call, Expr, Function, If, SeqExpr, Tuple, TupleGetItem, Var, VarBinding
from ..op.common import show
from ..struct_info import FuncStructInfo, StructInfo, TensorStructInfo, TupleStructInfo, is_base_of


def with_any_size(builder: BlockBuilder, info: StructInfo, axes: Collection[int]) -> StructInfo:
    """A tensor whose sizes along `axes` are new symbols."""
    if not axes or not isinstance(info, TensorStructInfo) or info.dims is None:
        return info
    dims = [SizeVar(builder.get_unique_name("size"), "int64") if k in axes else d
            for k, d in enumerate(info.dims)]
    return TensorStructInfo(dims, info.dtype, info.vdevice)


def while_loop(builder: BlockBuilder, start: Sequence[Expr],
               going: Callable[[list[Expr]], Expr], turn: Callable[[list[Expr]], Sequence[Expr]],
               names: Sequence[str] = (), growing: Sequence[Collection[int]] = ()) -> list[Expr]:
    """What the values of `start` are in the end: while `going(values)` (a condition, a tensor of
    shape []) they become `turn(values)`. Both emit into `builder`, which must not be in a dataflow
    block. `LambdaLift` makes the local function one of the module.

    `growing` has the axes of each value along which its size may be another after each turn: they
    are symbolic sizes within the loop, and new ones after it.

    Raises ValueError, with the name of the value, where a turn changes its dtype, or its shape
    along other axes.
    """
    axes = [*growing, *[()] * (len(start) - len(growing))]
    infos = [with_any_size(builder, v.struct_info, a) for v, a in zip(start, axes)]
    params = [Var(builder.get_unique_name("state"), info) for info in infos]
    kept = [TensorStructInfo(None, i.dtype, i.vdevice, i.ndim) if a and isinstance(
        i, TensorStructInfo) else i for i, a in zip(infos, axes)]
    result = TupleStructInfo(kept)
    loop = Var(builder.get_unique_name("loop"), FuncStructInfo(infos, result))

    def side(make: Callable[[], Expr]) -> SeqExpr:
        builder.begin_binding_block()
        try:
            value = builder.emit(make())
        finally:
            block = builder.end_block()
        return SeqExpr([block], value)

    def again() -> Expr:
        values = list(turn(list(params)))
        for k, (info, value, free) in enumerate(zip(infos, values, axes)):
            if not _fits(info, value.struct_info, free):
                name = names[k] if k < len(names) else f"value {k}"
                keeps = "number of dimensions:" if growing else (
                    "shape: pad it to its largest shape, or")
                raise ValueError(
                    f"{name} of a loop is {show(info)} before a turn and {show(value.struct_info)} "
                    "after it. What a loop carries whose turns the run counts keeps its dtype and "
                    f"{keeps} make the number of turns a constant, so that the loop is written out")
        return Call(loop, values)

    whole = side(lambda: If(going(list(params)), side(again), side(lambda: Tuple(params))))
    builder.emit_normalized(VarBinding(loop, Function(params, whole, result)))
    out = builder.emit(Call(loop, list(start)))
    ends = [builder.emit(TupleGetItem(out, k)) for k in range(len(infos))]
    return [builder.match_cast(end, with_any_size(builder, info, free)) if free else end
            for end, info, free in zip(ends, infos, axes)]


def _fits(info: StructInfo, after: StructInfo, axes: Collection[int]) -> bool:
    """Whether a value may become one of `after`: their sizes along `axes` may be any."""
    if not axes:
        return is_base_of(info, after)
    if not isinstance(info, TensorStructInfo) or not isinstance(after, TensorStructInfo):
        return False
    if info.dims is None or after.dims is None or info.ndim != after.ndim:
        return False
    dims = [d if k in axes else own for k, (own, d) in enumerate(zip(info.dims, after.dims))]
    return is_base_of(TensorStructInfo(dims, info.dtype, info.vdevice), after)


__all__ = ["while_loop", "with_any_size"]
