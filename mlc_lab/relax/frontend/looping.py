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

from typing import Callable, Sequence

from ..block_builder import BlockBuilder
from ..expr import Call, Expr, Function, If, SeqExpr, Tuple, TupleGetItem, Var, VarBinding
from ..op.common import show
from ..struct_info import FuncStructInfo, TupleStructInfo, is_base_of


def while_loop(builder: BlockBuilder, start: Sequence[Expr],
               going: Callable[[list[Expr]], Expr], turn: Callable[[list[Expr]], Sequence[Expr]],
               names: Sequence[str] = ()) -> list[Expr]:
    """What the values of `start` are in the end: while `going(values)` (a condition, a tensor of
    shape []) they become `turn(values)`. Both emit into `builder`, which must not be in a dataflow
    block. `LambdaLift` makes the local function one of the module.

    Raises ValueError, with the name of the value, where a turn changes its shape or dtype.
    """
    params = [Var(builder.get_unique_name("state"), v.struct_info) for v in start]
    infos = [p.struct_info for p in params]
    loop = Var(builder.get_unique_name("loop"), FuncStructInfo(infos, TupleStructInfo(infos)))

    def side(make: Callable[[], Expr]) -> SeqExpr:
        builder.begin_binding_block()
        try:
            value = builder.emit(make())
        finally:
            block = builder.end_block()
        return SeqExpr([block], value)

    def again() -> Expr:
        values = list(turn(list(params)))
        for k, (info, value) in enumerate(zip(infos, values)):
            if not is_base_of(info, value.struct_info):
                name = names[k] if k < len(names) else f"value {k}"
                raise ValueError(
                    f"{name} of a loop is {show(info)} before a turn and {show(value.struct_info)} "
                    "after it. Loops whose turns the run counts carry values of one shape and "
                    "dtype: pad the value to its largest shape, or make the number of turns a "
                    "constant, so that the loop is written out")
        return Call(loop, values)

    whole = side(lambda: If(going(list(params)), side(again), side(lambda: Tuple(params))))
    builder.emit_normalized(VarBinding(loop, Function(params, whole, TupleStructInfo(infos))))
    out = builder.emit(Call(loop, list(start)))
    return [builder.emit(TupleGetItem(out, k)) for k in range(len(infos))]


__all__ = ["while_loop"]
