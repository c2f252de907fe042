"""What the passes that lower a function for the virtual machine share.

They work on functions in normal form without dataflow blocks, and rewrite lists of bindings: one
binding becomes several. Branches of an If are such lists too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterator

from ...tir import expr as E
from ...tir.op import as_int
from ..expr import (
    Binding, BindingBlock, Call, Expr, Function, If, SeqExpr, Tuple, TupleGetItem, Var, VarBinding,
)
from ..normal import merge_blocks
from ..struct_info import ShapeExpr, TupleStructInfo

if TYPE_CHECKING:
    from ..struct_info import StructInfo

VOID = TupleStructInfo(())


def map_bindings(func: Function, on_value: Callable[[Expr], Expr]) -> Function:
    """The function with the value of each binding replaced, in branches too."""

    def one(binding: Binding) -> list[Binding]:
        if type(binding) is VarBinding:
            new = on_value(binding.value)
            if new is not binding.value:
                return [VarBinding(binding.var, new)]
        return [binding]

    return expand_bindings(func, one)


def expand_bindings(func: Function, on_binding: Callable[[Binding], list[Binding]]) -> Function:
    """The function with each binding replaced by the bindings that `on_binding` gives."""
    body = _expand(func.body, on_binding)
    return func if body is func.body else func.replace(body=body)


def _expand(body: Any, on_binding: Callable[[Binding], list[Binding]]) -> Any:
    if type(body) is not SeqExpr:
        return body
    blocks, changed = [], False
    for block in body.blocks:
        out: list[Binding] = []
        for binding in block.bindings:
            value = binding.value
            if type(value) is If:
                yes, no = (_expand(b, on_binding) for b in (value.true_branch, value.false_branch))
                if yes is not value.true_branch or no is not value.false_branch:
                    binding = VarBinding(binding.var, If.from_fields(
                        value.cond, yes, no, value.struct_info_))
                    changed = True
            new = on_binding(binding)
            changed = changed or len(new) != 1 or new[0] is not binding
            out += new
        blocks.append(BindingBlock(out))
    return SeqExpr.from_fields(tuple(merge_blocks(blocks)), body.body, body.struct_info_) if (
        changed) else body


def all_bindings(body: Any) -> Iterator[Binding]:
    """Every binding of a body in order, those of branches before the If that has them."""
    if type(body) is not SeqExpr:
        return
    for block in body.blocks:
        for binding in block.bindings:
            value = binding.value
            if type(value) is If:
                yield from all_bindings(value.true_branch)
                yield from all_bindings(value.false_branch)
            yield binding


def for_effect(call: Expr) -> VarBinding:
    """`_ = call`: a call for its effect."""
    return VarBinding(Var("_", VOID), call)


def void_call(op: Any, args: Any) -> Call:
    """A call that gives nothing."""
    return Call(op, tuple(args), struct_info=VOID)


def flat_items(args: Expr) -> list[Expr]:
    """The items of a tuple expression, or of a variable that holds a tuple."""
    if type(args) is Tuple:
        return list(args.fields_)
    info = args.struct_info_
    if isinstance(info, TupleStructInfo):
        return [TupleGetItem(args, k) for k in range(len(info.fields_))]
    return [args]


def tensors_of(info: StructInfo | None) -> list[Any]:
    """The outputs that a struct info of a call describes."""
    return list(info.fields_) if isinstance(info, TupleStructInfo) else [info]


def byte_size(shape: ShapeExpr, dtype: str) -> E.PrimExpr | int:
    """How many bytes a tensor takes: an int, or an expression where the shape is symbolic."""
    from ...arith import Analyzer
    from ...ir.dtype import bytes_of

    fixed = bytes_of(dtype)
    rest: Any = None
    for dim in shape.values:
        value = as_int(dim)
        if value is not None:
            fixed *= value
        else:
            rest = dim if rest is None else rest * dim
    if rest is None:
        return fixed
    return Analyzer().simplify(rest * E.IntImm("int64", fixed))
