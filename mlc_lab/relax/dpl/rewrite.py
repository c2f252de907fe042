"""Rewriting what patterns find: one call at a time, or several bindings of a dataflow block."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from ..analysis import remove_all_unused
from ..expr import Binding, DataflowBlock, Expr, Function, Var, VarBinding
from ..expr_functor import PyExprMutator
from .context import PatternContext
from .pattern import DFPattern


class _CallRewriter(PyExprMutator):
    """Rewrites every value that matches, seeing the values rewritten before it."""

    def __init__(self, pattern: DFPattern,
                 rewriter: Callable[[Expr, Mapping[DFPattern, Expr]], Expr]) -> None:
        super().__init__(None)
        self.pattern, self.rewriter = pattern, rewriter
        self.values: dict[Expr, Expr] = {}
        self.changed = False

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        found = self.pattern.extract_matched_expr(value, self.values)
        if found is not None:
            new = self.rewriter(value, found)
            if new is not value:
                self.changed = True
                value = self.builder_.normalize(new)
        var = self.visit_var_def(binding.var)
        if value is binding.value and var is binding.var:
            self.builder_.emit_normalized(binding)
        else:
            self.reemit_binding(binding, value, var)
        self.values[self.get_var_remap(binding.var)] = value


def rewrite_call(pattern: DFPattern,
                 rewriter: Callable[[Expr, Mapping[DFPattern, Expr]], Expr],
                 func: Function) -> Function:
    """The function with every match of `pattern` replaced by `rewriter(expr, matched)`.

    `matched` maps the parts of the pattern to what they matched. A rewriter that gives back `expr`
    leaves the match alone. Bindings that nothing uses any more are removed.
    """
    work = _CallRewriter(pattern, rewriter)
    new = work.visit_expr(func)
    return remove_all_unused(new) if work.changed else func


class _BlockRewriter(PyExprMutator):
    """Rewrites matches of a context in each dataflow block, until there is none left."""

    def __init__(self, ctx: PatternContext, rewriter: Callable[..., Mapping[Var, Expr]]) -> None:
        super().__init__(None)
        self.ctx, self.rewriter = ctx, rewriter

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        for _ in range(len(block.bindings) + 1):
            found = self.ctx.match_dfb(block)
            if found is None:
                break
            values = {b.var: b.value for b in block.bindings if isinstance(b, VarBinding)}
            changes = {v: e for v, e in self.rewriter(found, values).items()
                       if e is not values.get(v)}
            if not changes:
                break
            block = self.replace(block, changes)
        return super().visit_dataflow_block_(block)

    def replace(self, block: DataflowBlock, changes: Mapping[Var, Expr]) -> DataflowBlock:
        """The block with new values for some variables; what became unused goes."""
        builder = self.builder_
        builder.begin_dataflow_block()
        for b in block.bindings:
            if b.var in changes:
                value = builder.normalize(changes[b.var])
                builder.emit_normalized(VarBinding(b.var, value))
            else:
                builder.emit_normalized(b)
        new = builder.end_block()
        used: set[Var] = set()
        kept = []
        for b in reversed(new.bindings):
            if type(b.var) is not Var and b.var not in used and isinstance(b, VarBinding):
                continue
            kept.append(b)
            used.update(_used(b.value))
        return DataflowBlock(_in_order(kept[::-1]))


def _in_order(bindings: list[Binding]) -> list[Binding]:
    """The bindings, each after what it uses: a new value may use what was bound after the old."""
    by_var = {b.var: b for b in bindings}
    out: dict[Var, Binding] = {}
    open_vars: set[Var] = set()

    def place(binding: Binding) -> None:
        if binding.var in out:
            return
        if binding.var in open_vars:
            raise ValueError(f"the rewriter made {binding.var.name_hint} depend on itself")
        open_vars.add(binding.var)
        for var in _used(binding.value):
            if var in by_var:
                place(by_var[var])
        out[binding.var] = binding

    for binding in bindings:
        place(binding)
    return list(out.values())


def _used(value: Expr) -> list[Var]:
    from ..analysis import free_vars

    return free_vars(value)


def rewrite_bindings(ctx: PatternContext,
                     rewriter: Callable[[Mapping[DFPattern, Var], Mapping[Var, Expr]],
                                        Mapping[Var, Expr]],
                     func: Function) -> Function:
    """The function with matches of the context's patterns rewritten, block by block.

    `rewriter(matched, bindings)` gets the variable of each pattern and what the variables are bound
    to, and gives new values for some of them.
    """
    return remove_all_unused(_BlockRewriter(ctx, rewriter).visit_expr(func))


__all__ = ["rewrite_bindings", "rewrite_call"]
