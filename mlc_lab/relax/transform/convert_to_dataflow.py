"""ConvertToDataflow: runs of bindings without effects become dataflow blocks.

before::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.exp(x)
        z = R.add(y, x)
        return z

after `ConvertToDataflow()`::

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.exp(x)
            z = R.add(y, x)
            R.output(z)
        return z
"""

from __future__ import annotations

from .canonicalize_bindings import canonicalize
from .rewriting import (
    Binding, BindingBlock, DataflowBlock, Function, If, Pass, contains_impure_call,
    join_blocks, make_function_pass, map_blocks, SeqExpr, with_body,
)


def ConvertToDataflow(min_size: int = 2) -> Pass:
    """Put runs of at least `min_size` bindings without effects or control flow into dataflow
    blocks; neighbouring dataflow blocks are joined."""
    def convert(func: Function) -> Function:
        new = map_blocks(func, lambda block: _split(block, min_size))
        if new is func:
            return func
        body = SeqExpr(join_blocks(new.body.blocks), new.body.body)
        return canonicalize(with_body(new, body))

    return make_function_pass("ConvertToDataflow", lambda func, mod: convert(func),
                              ConvertToDataflow.__doc__)


def _split(block: BindingBlock, min_size: int) -> BindingBlock | list[BindingBlock]:
    """An ordinary block as ordinary and dataflow blocks."""
    if type(block) is DataflowBlock:
        return block
    runs: list[tuple[bool, list[Binding]]] = []
    for binding in block.bindings:
        pure = type(binding.value) not in (If, Function) and not contains_impure_call(
            binding.value)
        if not runs or runs[-1][0] != pure:
            runs.append((pure, []))
        runs[-1][1].append(binding)
    if not any(pure and len(run) >= min_size for pure, run in runs):
        return block
    blocks: list[BindingBlock] = []
    for pure, run in runs:
        kind = DataflowBlock if pure and len(run) >= min_size else BindingBlock
        blocks.append(kind(run))
    return join_blocks(blocks)


__all__ = ["ConvertToDataflow"]
