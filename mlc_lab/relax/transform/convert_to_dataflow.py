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
    blocks. Next to a dataflow block of the function's body, fewer are enough: they join it."""
    def convert(func: Function) -> Function:
        known = {id(b) for block in _dataflow_blocks(func) for b in block.bindings}
        split = map_blocks(func, _split)
        if split is func:
            return func
        joined = with_body(split, SeqExpr(join_blocks(split.body.blocks), split.body.body))
        new = map_blocks(joined, lambda block: _kept(block, min_size, known))
        if all(id(b) in known for block in _dataflow_blocks(new) for b in block.bindings):
            return func
        body = SeqExpr(join_blocks(new.body.blocks), new.body.body)
        return canonicalize(with_body(new, body))

    return make_function_pass("ConvertToDataflow", lambda func, mod: convert(func),
                              ConvertToDataflow.__doc__)


def _dataflow_blocks(func: Function) -> list[BindingBlock]:
    found: list[BindingBlock] = []

    def note(block: BindingBlock) -> BindingBlock:
        if type(block) is DataflowBlock:
            found.append(block)
        return block

    map_blocks(func, note)
    return found


def _split(block: BindingBlock) -> BindingBlock | list[BindingBlock]:
    """An ordinary block as ordinary and dataflow blocks, of any size."""
    if type(block) is DataflowBlock:
        return block
    runs: list[tuple[bool, list[Binding]]] = []
    for binding in block.bindings:
        pure = type(binding.value) not in (If, Function) and not contains_impure_call(
            binding.value)
        if not runs or runs[-1][0] != pure:
            runs.append((pure, []))
        runs[-1][1].append(binding)
    if not any(pure for pure, _ in runs):
        return block
    return [(DataflowBlock if pure else BindingBlock)(run) for pure, run in runs]


def _kept(block: BindingBlock, min_size: int, known: set[int]) -> BindingBlock:
    """A dataflow block that is large enough, or was one before; else an ordinary block."""
    small = type(block) is DataflowBlock and len(block.bindings) < min_size
    if small and not any(id(b) in known for b in block.bindings):
        return BindingBlock(block.bindings)
    return block


__all__ = ["ConvertToDataflow"]
