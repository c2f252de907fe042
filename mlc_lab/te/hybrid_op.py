"""A computation written as loops (`te.hybrid.script`) as an operation of te.

Its loops are those of the program: each can be split, reordered, fused, made parallel. What stands
in a loop that is more than one loop is a block without iterators, so that every step is looked at
by what iterations touch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..tir.access import block_access_regions
from ..tir.buffer import Buffer
from ..tir.expr import IterVar
from ..tir.functor import Mutator
from ..tir.stmt import Block, BlockRealize, Stmt
from .tensor import ExternOp, Tensor

if TYPE_CHECKING:
    from ..schedule import Schedule as TirSchedule


class HybridOp(ExternOp):
    """Loops over buffers that stand for the inputs and the outputs.

    `nests` has, for each block in `body` in the order in which they stand, the axes of the loops
    directly around it, outermost first; `allocated` is memory of its own.
    """

    def __init__(self, name: str, inputs: Sequence[Tensor], in_buffers: Sequence[Buffer],
                 out_buffers: Sequence[Buffer], body: Stmt, nests: Sequence[Sequence[IterVar]],
                 allocated: Sequence[Buffer] = ()) -> None:
        super().__init__(name, "", None, inputs, in_buffers, out_buffers, body)
        self.nests = tuple(map(tuple, nests))
        self.allocated = tuple(allocated)
        self.axis = tuple(axis for nest in self.nests for axis in nest)


class _Blocks(Mutator):
    """Names the blocks without iterators anew, and says what each of them touches."""

    def __init__(self, fresh: Any) -> None:
        super().__init__()
        self.fresh = fresh

    def visit_Block(self, node: Block) -> Block:
        return touched(node.replace(name_hint=self.fresh(node.name_hint),
                                    body=self.visit(node.body)))


def touched(block: Block) -> Block:
    """A block with what its body reads and writes as its regions."""
    reads, writes, opaque = block_access_regions(block)
    return block.replace(reads=(*reads, *opaque), writes=(*writes, *opaque))


def hybrid_statement(body: Stmt, name: str, op: HybridOp, renamed: dict[Buffer, Buffer],
                     fresh: Any) -> BlockRealize:
    """The block of the operation: its loops, over the buffers of its function."""
    body = _Blocks(fresh).visit(body)
    own = tuple(renamed.get(b, b) for b in op.allocated)
    return BlockRealize((), True, touched(Block((), (), (), name, body, alloc_buffers=own)))


def hybrid_loops(sch: TirSchedule, block: Any, op: HybridOp) -> dict[IterVar, Any]:
    """The loop of each axis of the operation, whose block is given."""
    found: list[Any] = []

    def walk(outer: Any) -> None:
        for inner in sch.get_child_blocks(outer):
            found.append(inner)
            walk(inner)

    walk(block)
    table: dict[IterVar, Any] = {}
    for inner, nest in zip(found, op.nests):
        table.update(zip(nest, sch.get_loops(inner)))
    return table


__all__ = ["HybridOp", "hybrid_loops", "hybrid_statement", "touched"]
