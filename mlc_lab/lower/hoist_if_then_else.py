"""HoistIfThenElse: a condition that a loop does not change is decided once, before the loop.

Before::

    for i, j in T.grid(8, 16):
        if i < 4:
            A[i, j] = 0.0
        else:
            A[i, j] = 1.0

After::

    for i in range(8):
        if i < 4:
            for j in range(16):
                A[i, j] = 0.0
        else:
            for j in range(16):
                A[i, j] = 1.0

A condition that reads memory which the loop may write stays, and so does one that might fail to be
evaluated (a division, a load) around a loop that may not run at all. This pass is not among those
of a build: it is for programs whose conditions stand in the way of a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.transform import Pass
from ..tir.expr import BufferLoad, Call, Div, FloorDiv, FloorMod, Mod, PrimExpr
from ..tir.function import PrimFunc
from ..tir.functor import Mutator, leaves_loop, pre_order, substitute, uses_var
from ..tir.op import as_int, effect_of
from ..tir.op.intrinsic import PURE
from ..tir.stmt import For, ForKind, IfThenElse, Stmt
from .common import function_pass, may_write

if TYPE_CHECKING:
    from ..ir.transform import PassContext


class _Hoist(Mutator):
    def visit_For(self, node: For) -> Stmt:
        new = super().visit_For(node)
        if not (isinstance(new, For) and new.kind is not ForKind.THREAD_BINDING
                and isinstance(new.body, IfThenElse) and _may_leave(new.body.condition, new)):
            return new
        choice = new.body
        other = None if choice.else_case is None else _again(new, choice.else_case)
        return IfThenElse(choice.condition, new.replace(body=choice.then_case), other)


def _may_leave(condition: PrimExpr, loop: For) -> bool:
    """Whether a condition is the same in all iterations, and may be asked where there are none."""
    if uses_var(condition, loop.loop_var) or leaves_loop(loop.body):
        return False
    parts = list(pre_order(condition))
    if any(isinstance(n, Call) and effect_of(n) != PURE for n in parts):
        return False
    read = {n.buffer.data for n in parts if isinstance(n, BufferLoad)}
    careful = read or any(isinstance(n, (Div, Mod, FloorDiv, FloorMod)) and not as_int(n.b)
                          for n in parts)
    return not (careful and not (as_int(loop.extent) or 0) > 0) and not (
        read and may_write(loop.body, read))


def _again(loop: For, body: Stmt) -> Stmt:
    """A second loop like `loop`, with a variable of its own."""
    var = loop.loop_var.with_name(loop.loop_var.name)
    return loop.replace(loop_var=var, body=substitute(body, {loop.loop_var: var}))


def _rewrite(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """Conditions before the loops that they do not depend on."""
    return func.with_body(_Hoist().visit(func.body))


def HoistIfThenElse() -> Pass:
    """Decide a condition that a loop does not change once, before the loop."""
    return function_pass("HoistIfThenElse", _rewrite)
