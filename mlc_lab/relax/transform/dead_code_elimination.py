"""DeadCodeElimination: leave out what nobody uses.

First functions that no entry reaches: entries are those named, or all with a global symbol. Then,
in each Relax function, bindings whose variable is not used and whose value has no effects. A
match_cast stays: it is a check. Calls in `If` branches are looked at too.

before::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            lv = R.exp(x)
            lv1 = R.add(x, x)
            gv = R.multiply(lv1, x)
            R.output(gv)
        return gv

after `DeadCodeElimination()`::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            lv1 = R.add(x, x)
            gv = R.multiply(lv1, x)
            R.output(gv)
        return gv

Liveness is one walk backwards, since bindings are in normal form (each variable is bound once and
used after).
"""

from __future__ import annotations

from typing import Any, Sequence

from .rewriting import (
    Binding, BindingBlock, Expr, Function, GlobalVar, If, IRModule, MatchCast, Pass, PassContext,
    SeqExpr, Var, VarBinding, contains_impure_call, is_exported, join_blocks, make_pass,
    map_functions,
    replace_functions, same_bindings, used_globals, used_vars, with_body,
)


def DeadCodeElimination(entry_functions: Sequence[str] | None = None) -> Pass:
    """Remove unused functions and bindings.

    `entry_functions` names the functions to keep with all that they need; without it they are those
    that have a global symbol (in a module without any, every function is kept).
    """
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        mod = remove_unused_functions(mod, entry_functions)
        mod = map_functions(mod, remove_all_unused)
        return remove_unused_functions(mod, entry_functions)

    return make_pass("DeadCodeElimination", run, DeadCodeElimination.__doc__, 1)


def remove_unused_functions(mod: IRModule, entries: Sequence[str] | None = None) -> IRModule:
    """The module without the functions that no entry reaches. Raises ValueError for no entry."""
    if entries:
        stack = [mod.get_global_var(str(name)) for name in entries]
    else:
        stack = [v for v, f in mod.functions.items() if is_exported(f)]
    if not stack:
        return mod
    kept: set[GlobalVar] = set()
    while stack:
        var = stack.pop()
        if var not in kept and var in mod.functions:
            kept.add(var)
            stack.extend(used_globals(mod.functions[var]))
    return replace_functions(mod, {}, removed=[v for v in mod.functions if v not in kept])


def remove_all_unused(func: Any) -> Any:
    """A function, or its body, without bindings that nothing uses
    (`relax.analysis.remove_all_unused`)."""
    if type(func) is SeqExpr:
        return _clean(func, set())
    if not isinstance(func, Function) or func.body is None:
        return func
    return with_body(func, _clean(func.body, set()))


def _clean(expr: Expr, used: set[Var]) -> Expr:
    """An expression without what is unused in it; `used` learns the variables it needs."""
    if type(expr) is Function:
        return with_body(expr, _clean(expr.body, used))
    if type(expr) is If:
        yes, no = _clean(expr.true_branch, used), _clean(expr.false_branch, used)
        used.update(used_vars(expr.cond))
        if yes is expr.true_branch and no is expr.false_branch:
            return expr
        return If.from_fields(expr.cond, yes, no, expr.struct_info_)
    if type(expr) is not SeqExpr:
        used.update(used_vars(expr))
        return expr
    used.update(used_vars(expr.body))
    blocks: list[BindingBlock] = []
    for block in reversed(expr.blocks):
        kept: list[Binding] = []
        for binding in reversed(block.bindings):
            if (type(binding) is not MatchCast and binding.var not in used
                    and not contains_impure_call(binding.value)):
                continue
            value = _clean(binding.value, used)
            if type(binding) is MatchCast:
                used.update(used_vars(binding))
            kept.append(binding if value is binding.value else VarBinding(binding.var, value))
        if kept:
            blocks.append(same_bindings(block, kept[::-1]))
    blocks.reverse()
    if len(blocks) == len(expr.blocks) and all(a is b for a, b in zip(blocks, expr.blocks)):
        return expr
    return SeqExpr.from_fields(tuple(join_blocks(blocks)), expr.body, expr.struct_info_)


__all__ = ["DeadCodeElimination", "remove_all_unused", "remove_unused_functions"]
