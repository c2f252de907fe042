"""DataflowBlockRewrite: a dataflow block changed binding by binding, with its function kept whole.

    rewrite = relax.DataflowBlockRewrite(func.body.blocks[0], func)
    rewrite.add("y", relax.op.exp(x))
    rewrite.replace_all_uses(old, new)
    rewrite.remove_unused(old)
    func = rewrite.mutated_root_fn()
"""

from __future__ import annotations

from typing import Any

from ..ir.module import IRModule
from .analysis import free_vars, get_var2val
from .block_builder import BlockBuilder
from .expr import (
    Binding, BindingBlock, DataflowBlock, DataflowVar, Expr, Function, SeqExpr, Var, VarBinding,
)
from .expr_functor import PyExprMutator


class _Renamer(PyExprMutator):
    """Replaces uses of a variable, not its binding."""

    def __init__(self, old: Var, new: Expr) -> None:
        super().__init__(None)
        self.set_var_remap(old, new)


class DataflowBlockRewrite:
    """Changes one dataflow block of a function; see the head of the file."""

    def __init__(self, dfb: DataflowBlock, root_fn: Function) -> None:
        self._block: BindingBlock = dfb
        self._func = root_fn
        if not any(b is dfb for b in root_fn.body.blocks):
            raise ValueError("the block is no block of the function")
        self._names = {v.name_hint for v in (*root_fn.params, *get_var2val(root_fn))}

    def _set(self, block: DataflowBlock) -> None:
        seq = self._func.body
        blocks = [block if b is self._block else b for b in seq.blocks]
        if block not in blocks:  # it was empty, and such blocks are left out
            blocks.append(block)
        self._func = self._func.replace(body=SeqExpr(blocks, seq.body))
        self._block = block

    def _fresh(self, name: str) -> str:
        unique, number = name, 0
        while unique in self._names:
            number += 1
            unique = f"{name}{number}"
        self._names.add(unique)
        return unique

    def add_binding(self, binding: Binding) -> None:
        """Add a binding at the end of the block."""
        self._set(DataflowBlock((*self._block.bindings, binding)))
        self._names.add(binding.var.name_hint)

    def add(self, expr: Any, name: Any = None, is_dfvar: bool = False) -> Var:
        """Add a binding of a value at the end of the block; its variable.

        As in TVM `add(name, value)` is understood too.
        """
        if isinstance(expr, str):
            expr, name = name, expr
        builder = BlockBuilder()
        builder.begin_dataflow_block()
        value = builder.normalize(expr)
        inner = builder.end_block().bindings
        kind = DataflowVar if is_dfvar else Var
        var = kind(self._fresh(name or ("lv" if is_dfvar else "gv")), value.struct_info)
        self._set(DataflowBlock((*self._block.bindings, *inner, VarBinding(var, value))))
        return var

    def remove_unused(self, var: Var, allow_undef: bool = False) -> None:
        """Remove the binding of a variable that nothing uses."""
        bindings = self._block.bindings
        if all(b.var is not var for b in bindings):
            if allow_undef:
                return
            raise KeyError(f"{var.name_hint} is not bound in this block")
        users = [b.var.name_hint for b in bindings if var in free_vars(b.value)]
        outside = [b for block in self._func.body.blocks if block is not self._block
                   for b in block.bindings if var in free_vars(b.value)]
        if users or outside or var in free_vars(self._func.body.body):
            raise ValueError(f"{var.name_hint} is still used"
                             + (f", by {', '.join(users)}" if users else " outside the block"))
        self._set(DataflowBlock([b for b in bindings if b.var is not var]))

    def remove_all_unused(self) -> None:
        """Remove every binding that nothing uses."""
        from .analysis import remove_all_unused

        index = next(k for k, b in enumerate(self._func.body.blocks) if b is self._block)
        func = remove_all_unused(self._func)
        blocks = [b for b in func.body.blocks if isinstance(b, DataflowBlock)]
        before = sum(isinstance(b, DataflowBlock) for b in self._func.body.blocks[:index])
        self._func, self._block = func, blocks[before] if before < len(blocks) else (
            DataflowBlock(()))

    def replace_all_uses(self, old_var: Var, new_var: Expr) -> None:
        """Let everything after use `new_var` where it used `old_var`."""
        mutator = _Renamer(old_var, new_var)
        blocks, mine = [], self._block
        for block in self._func.body.blocks:
            new = mutator.visit_binding_block(block)
            blocks.append(new)
            if block is self._block:
                mine = new
        body = mutator.visit_expr(self._func.body.body)
        self._func = self._func.replace(body=SeqExpr(blocks, body))
        self._block = mine

    def mutated_dfb(self) -> BindingBlock:
        """The block as it is now."""
        return self._block

    def mutated_root_fn(self) -> Function:
        """The function with the block as it is now."""
        func = self._func
        return Function(func.params, func.body, None, func.is_pure, func.attrs)

    def mutate_irmodule(self, mod: IRModule) -> IRModule:
        """A copy of the module with the function in the place of the one it was made of."""
        new = mod.copy()
        symbol = (self._func.attrs or {}).get("global_symbol")
        if symbol is None:
            raise ValueError("the function has no global symbol: update the module yourself")
        new.update_func(new.get_global_var(str(symbol)), self.mutated_root_fn())
        return new


__all__ = ["DataflowBlockRewrite"]
