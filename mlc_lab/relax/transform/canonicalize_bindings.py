"""CanonicalizeBindings: no variable that only renames another.

`y = x` disappears and `x` is used in its place; so do `t[0]` where `t` was bound to a tuple, a
tuple put together from all items of another, a match_cast that says nothing new. Constants go to
where they are used. What a dataflow block gives out although nothing outside uses it becomes
internal to the block; a symbolic dimension that a match_cast defines from a known one is replaced.

before::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = x
            t = (y, x)
            lv = R.add(t[0], y)
            gv = lv
            R.output(gv)
        return gv

after `CanonicalizeBindings()`::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            t = (x, x)
            gv = R.add(x, x)
            R.output(gv)
        return gv
"""

from __future__ import annotations

from typing import Any, Iterator

from ...tir import expr as E
from ..expr_functor import PyExprMutator
from ..op.registry import OPERATORS, infer_call
from ..struct_info import is_base_of, tir_vars_in_struct_info
from .in_order import InOrder
from .rewriting import (
    Binding, BindingBlock, Call, Constant, DataflowBlock, DataflowVar, Expr, Function, MatchCast,
    Pass, Replacer, SeqExpr, Tuple, TupleGetItem, TupleStructInfo, Var, VarBinding,
    forget_inner, join_blocks, make_function_pass, op_name, same_bindings, same_parts, used_vars,
    with_body,
)


def CanonicalizeBindings() -> Pass:
    """Remove bindings that only give another name to a value."""
    return make_function_pass("CanonicalizeBindings", lambda func, mod: canonicalize(func),
                              CanonicalizeBindings.__doc__, 1)


def canonicalize(func: Function) -> Function:
    """One function in canonical form."""
    if type(func.body) is not SeqExpr:
        return func
    dims = _known_dims(func)
    if dims:
        func = Replacer(dims=dims)(func)
        body = _Infer().visit_with_new_scope(func.body, func.params)
        func = Function(func.params, body, None, func.is_pure, func.attrs)
    func = with_body(func, _Canonical(True).expr(func.body))
    while any(_renames(block) for block in func.body.blocks):  # an item that was found in a tuple
        new = with_body(func, _Canonical(False).expr(func.body))
        if new is func:
            break
        func = new
    return func


def _renames(block: BindingBlock) -> bool:
    """Whether a block gives one of its own variables out under another name."""
    return type(block) is DataflowBlock and any(
        type(b.var) is Var and type(b) is VarBinding and type(b.value) is DataflowVar
        for b in block.bindings)


def _known_dims(func: Function) -> dict[E.Var, E.PrimExpr]:
    """Symbolic dimensions that a match_cast defines from a known shape.

    A match_cast that mentions a dimension which is defined before is a check: it stays. Raises
    ValueError where the checks cannot all hold.
    """
    found: dict[E.Var, E.PrimExpr] = {}
    defined = {v for p in func.params for v in tir_vars_in_struct_info(p.struct_info_)}
    for block in func.body.blocks:
        for binding in block.bindings:
            if type(binding) is not MatchCast:
                continue
            for new, old in _dims_matched(binding.struct_info, binding.value.struct_info_):
                if not isinstance(new, E.Var) or new is old:
                    continue
                if new not in defined:
                    found.setdefault(new, old)
                first = found.get(new)
                if type(first) is E.IntImm and type(old) is E.IntImm and first.value != old.value:
                    raise ValueError(f"the MatchCast statements must be consistent: {new.name} is "
                                     f"{first.value} by one of them and {old.value} by another")
            defined.update(tir_vars_in_struct_info(binding.struct_info))
    for var, value in found.items():  # n -> m -> 4
        while isinstance(value, E.Var) and value in found and found[value] is not var:
            value = found[value]
        found[var] = value
    return found


def _dims_matched(want: Any, have: Any) -> Iterator[tuple[E.PrimExpr, E.PrimExpr]]:
    """The dimensions that a match_cast sets against each other."""
    if isinstance(want, TupleStructInfo) and isinstance(have, TupleStructInfo):
        for a, b in zip(want.fields_, have.fields_):
            yield from _dims_matched(a, b)
        return
    for name in ("dims", "values"):
        yield from zip(getattr(want, name, None) or (), getattr(have, name, None) or ())


class _Infer(PyExprMutator):
    """Infers anew what calls give, now that more dimensions are known."""

    def visit_call_(self, call: Call) -> Expr:
        new = super().visit_call_(call)
        if type(new) is not Call or op_name(new) not in OPERATORS:
            return new
        info, known = infer_call(new), new.struct_info_
        if info == known or known is None or not is_base_of(known, info):
            return new
        return Call(new.op, new.args, new.attrs, new.sinfo_args, struct_info=info)


class _Canonical(InOrder):
    """Rewrites blocks in program order, remembering what each variable stands for."""

    def __init__(self, hide: bool) -> None:
        #: whether results of dataflow blocks that nothing outside uses stay inside
        self.hide = hide
        super().__init__()
        #: what variables were bound to, as far as it helps: tuples and their items
        self.values: dict[Expr, Expr] = {}

    def seq(self, expr: SeqExpr) -> Expr:
        outside = self.uses_by_block(expr)
        blocks: list[BindingBlock] = []
        for block, used in zip(expr.blocks, outside):
            new = self.block(block, used)
            if new.bindings:
                blocks.append(new)
        body = self.expr(expr.body)
        if body is expr.body and same_parts(blocks, expr.blocks):
            return expr
        return SeqExpr.from_fields(tuple(join_blocks(blocks)), body, body.struct_info_)

    @staticmethod
    def uses_by_block(expr: SeqExpr) -> list[set[Var]]:
        """For each block the variables that are used after it."""
        used = set(used_vars(expr.body))
        out = []
        for block in reversed(expr.blocks):
            out.append(set(used))
            used.update(used_vars(block))
        return out[::-1]

    def block(self, block: BindingBlock, used_after: set[Var]) -> BindingBlock:
        dataflow = type(block) is DataflowBlock
        if dataflow:
            self.rename_outputs(block, used_after)
        kept: list[Binding] = []
        for binding in block.bindings:
            value = self.replace(binding.value) if type(binding) is MatchCast else (
                self.simplify(self.expr(binding.value)))
            if type(binding) is MatchCast and not self.says_nothing(binding, value):
                var = self.replace.define(binding.var)
                same = value is binding.value and var is binding.var
                kept.append(binding if same else MatchCast(var, value, binding.struct_info))
                continue
            var = self.replace.vars.get(binding.var, binding.var)
            assert isinstance(var, Var)
            if value is var:  # gv = lv, where lv was renamed to gv
                continue
            if isinstance(value, Var) and self.stands_for(var, value) and not (
                    dataflow and type(var) is Var and type(value) is DataflowVar):
                self.replace.vars[binding.var] = value
                continue
            if type(value) is Constant and type(var) is DataflowVar:
                self.replace.vars[binding.var] = value
            elif type(value) in (Tuple, TupleGetItem):
                self.values[var] = value
            same = value is binding.value and var is binding.var and type(binding) is VarBinding
            kept.append(binding if same else VarBinding(var, value))
        forget_inner(self.values, block)
        return same_bindings(block, kept)

    def rename_outputs(self, block: DataflowBlock, used_after: set[Var]) -> None:
        """Give inner variables the name under which they go out; keep the others in."""
        here = {b.var: b for b in block.bindings}
        taken: set[Var] = set()
        for binding in block.bindings:
            var = binding.var
            if type(var) is not Var:
                continue
            if var not in used_after and self.hide:
                self.replace.vars[var] = DataflowVar.from_fields(var.name_hint, var.struct_info_)
                continue
            source = binding.value
            while (type(source) is DataflowVar and source in here
                   and type(here[source]) is VarBinding
                   and isinstance(here[source].value, DataflowVar)):
                source = here[source].value  # through a chain of renamings
            if (type(binding) is VarBinding and type(source) is DataflowVar and source in here
                    and source not in taken and self.stands_for(var, source)):
                taken.add(source)
                self.replace.vars[source] = var

    @staticmethod
    def says_nothing(cast: MatchCast, value: Expr) -> bool:
        """Whether a match_cast claims only what is known of the value."""
        have = value.struct_info_
        return have is not None and is_base_of(cast.struct_info, have)

    @staticmethod
    def stands_for(var: Var, value: Expr) -> bool:
        """Whether a value may be used where the variable was."""
        if not isinstance(value, Var):
            return False
        have, want = value.struct_info_, var.struct_info_
        return want is None or have is want or (have is not None and is_base_of(want, have))

    def simplify(self, value: Expr) -> Expr:
        """An item of a known tuple, or a tuple of all items of another."""
        if type(value) is TupleGetItem:
            source = self.values.get(value.tuple_value, value.tuple_value)
            if type(source) is Tuple and isinstance(source.fields_[value.index], (Var, Constant)):
                return source.fields_[value.index]
        if type(value) is Tuple and value.fields_:
            items = [i for k, f in enumerate(value.fields_)
                     if type(i := self.values.get(f)) is TupleGetItem and i.index == k]
            if len(items) == len(value.fields_):
                whole = items[0].tuple_value
                info = whole.struct_info_
                if all(i.tuple_value is whole for i in items) and isinstance(
                        info, TupleStructInfo) and len(info.fields_) == len(items):
                    return whole
        return value


__all__ = ["CanonicalizeBindings", "canonicalize"]
