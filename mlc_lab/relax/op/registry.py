"""The table of Relax operators: one row an operator.

A row says the operator's name, how the struct info of a call follows from its arguments, whether
calls have effects, how a call becomes TensorIR, and what passes ask: how layouts and mixed
precision treat it. `declare.py` makes a row of one declaration; the parts can be given by hand too:

    register_op("relax.add", infer=infer_broadcast)            # infer(call) -> StructInfo
    register_legalize("relax.add", lambda bb, call: bb.call_te(topi.add, *call.args))
    infer_call(call)                                           # by the row of call.op
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ...ir.diagnostics import MLCError
from ...ir.module import GlobalVar
from ...tir.expr import OPS, Op
from ..expr import Attrs, Call, Expr
from ..struct_info import OBJECT, StructInfo


class StructInfoError(MLCError, ValueError):
    """Arguments that do not fit an operator: which, and how they differ. `op` names it."""

    def __init__(self, op: str, message: str) -> None:
        self.op, self.reason = op, message
        super().__init__(f"{op}: {message}")


class StructInfoTypeError(StructInfoError, TypeError):
    """Arguments that are of different kinds: their dtypes, or the devices they are on."""


class OpRow:
    """What is known of one operator."""

    __slots__ = ("name", "op", "infer", "pure", "legalize", "layout", "precision", "any_shape",
                 "gradient", "default_attrs")

    def __init__(self, name: str, infer: Callable[[Call], StructInfo], pure: bool) -> None:
        self.name, self.infer, self.pure = name, infer, pure
        self.op = OPS.setdefault(name, Op(name))
        #: `legalize(builder, call) -> Expr`: the call as calls of TensorIR functions
        self.legalize: Callable[[Any, Call], Any] | None = None
        #: how it takes tensors in other layouts (transform/convert_layout.py); None: not at all
        self.layout: str | None = None
        #: "always" or "follow" (transform/to_mixed_precision.py); None: in the dtype it was given
        self.precision: str | None = None
        #: whether it can be legalised where the shape of its result is not known
        self.any_shape = False
        #: `gradient(var, call, grad, builder) -> list`: the gradients of the arguments
        self.gradient: Callable[..., Any] | None = None
        #: `default_attrs(args)`: the attributes of a call that says none; None: it has none
        self.default_attrs: Callable[[Any], dict[str, Any] | None] | None = None


#: every operator by name
OPERATORS: dict[str, OpRow] = {}


def register_op(name: str, infer: Callable[[Call], StructInfo], pure: bool = True) -> Op:
    """Add a row; a row of that name keeps what else is known of it."""
    row = OPERATORS.get(name)
    if row is None:
        row = OPERATORS[name] = OpRow(name, infer, pure)
    else:
        row.infer, row.pure = infer, pure
    return row.op


def register_legalize(name: str, fn: Callable[[Any, Call], Any] | None = None) -> Any:
    """Say how calls of an operator become TensorIR: `fn(builder, call) -> Expr`.

    Without `fn` it is a decorator. A later registration takes the place of an earlier one.
    """
    if fn is None:
        return lambda function: register_legalize(name, function)
    lookup(name).legalize = fn
    return fn


def register_gradient(op_name: str, fgradient: Callable[..., Any] | None = None,
                      level: int = 10) -> Any:
    """Say how gradients go through an operator: `fgradient(var, call, grad, builder) -> list`.

    `var` is what the call was bound to, `grad` the gradient of it; the list has the gradient of
    each argument, None (or `R.grad.no_grad(arg)`) for one that has none. Without `fgradient` it is
    a decorator. A later registration takes the place of an earlier one; TVM's `level` says nothing.
    """
    if fgradient is None:
        return lambda function: register_gradient(op_name, function)
    lookup(op_name).gradient = fgradient
    return fgradient


def lookup(op: Any) -> OpRow:
    """The row of an operator or its name. Raises ValueError for one that is unknown."""
    name = op if isinstance(op, str) else op.name
    row = OPERATORS.get(name)
    if row is None:
        raise ValueError(f"there is no Relax operator {name!r}")
    return row


def infer_call(call: Call) -> StructInfo:
    """The struct info of a call of an operator. Raises StructInfoError where arguments misfit."""
    return lookup(call.op).infer(call)


def default_attrs(op: Op, args: Sequence[Expr]) -> dict[str, Any] | None:
    """The attributes of a call of which only the arguments are said, as the constructor has them;
    None where there are none, or where one has no default."""
    row = OPERATORS.get(op.name)
    return None if row is None or row.default_attrs is None else row.default_attrs(args)


#: sets what a call gives; the call is nobody else's yet
_complete = vars(Call)["struct_info_"].__set__


def make_call(name: str, args: tuple, attrs: Any = None, sinfo_args: tuple = ()) -> Call:
    """A call of an operator, its struct info inferred where that of the arguments is known."""
    row = OPERATORS[name]
    attrs = None if attrs is None else Attrs(attrs)
    call = Call.from_fields(row.op, args, attrs, sinfo_args, None)
    for arg in args:
        if getattr(arg, "struct_info_", OBJECT) is None and type(arg) is not GlobalVar:
            return call
    _complete(call, row.infer(call))
    return call


__all__ = ["OPERATORS", "OpRow", "StructInfoError", "StructInfoTypeError", "default_attrs",
           "infer_call", "lookup",
           "make_call", "register_gradient", "register_legalize", "register_op"]
