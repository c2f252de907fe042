"""Tensor intrinsics made of the program itself: what a loop computes, and another way to do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc_lab.arith import Analyzer
from mlc_lab.backend.interp import InterpError, interpret
from mlc_lab.ir import dtype as dt
from mlc_lab.tir import PrimFunc, TensorIntrin, decl_buffer, op
from mlc_lab.tir.buffer import Buffer
from mlc_lab.tir.expr import BufferLoad, IterVar, PrimExpr, Range, Var
from mlc_lab.tir.functor import Mutator, free_vars, pre_order, substitute
from mlc_lab.tir.stmt import Block, BlockRealize, BufferRegion, BufferStore, For, Stmt


def made_from(block: Block, name: str, draw) -> bool:
    """Register an intrinsic that does what a block does; False if it is none.

    The implementation goes through the loops in another order where that gives the same, has no
    blocks or has those of the description, and takes parts of rows of any length or whole rows.
    """
    parts: dict[Buffer, BufferRegion] = {}
    for region in (*block.reads, *block.writes):
        parts.setdefault(region.buffer, region)
    sizes = {b: [op.as_int(r.extent) for r in part.region] for b, part in parts.items()}
    if not parts or block.match_buffers or block.alloc_buffers or any(
            None in size or np.prod(size) > 64 for size in sizes.values()):
        return False
    desc = _function(block, parts, sizes, block.body, strided=True)
    if desc is None:
        return False
    body = block.body
    if draw.chance(70):
        body = _Backwards().visit(body)
    if draw.chance(50):
        body = _WithoutBlocks().visit(body)
    impl = _function(block, parts, sizes, body, strided=not draw.chance(20))
    if impl is None or not _same(desc, impl):
        impl = desc
    TensorIntrin.register(name, desc, impl, override=True)
    return True


def _function(block: Block, parts: dict[Buffer, BufferRegion], sizes: dict[Buffer, list],
              body: Stmt, strided: bool) -> PrimFunc | None:
    """A function of the parts of buffers that a block touches; None if it needs more than those."""
    new = {}
    for buffer, shape in sizes.items():
        strides = [*(Var(f"s{k}", "int32") for k in range(len(shape) - 1)), 1][:len(shape)]
        new[buffer] = decl_buffer(shape, buffer.dtype, buffer.name, scope=buffer.scope,
                                  strides=strides if strided else None, offset_factor=1,
                                  elem_offset=Var("start", "int32"))
    to = _Part({b: [r.min for r in part.region] for b, part in parts.items()}, new)
    root = Block([], [_whole(new[r.buffer]) for r in block.reads],
                 [_whole(new[r.buffer]) for r in block.writes], "root", to.visit(body))
    known = {v for b in new.values() for v in (b.data, b.elem_offset, *b.strides)}
    if any(v not in known for v in free_vars(root)):
        return None
    params = [Var(f"p{k}", "handle") for k in range(len(new))]
    return PrimFunc(params, BlockRealize([], True, root), None,
                    dict(zip(params, new.values())))


def _whole(buffer: Buffer) -> BufferRegion:
    return BufferRegion(buffer, tuple(Range.from_min_extent(0, d) for d in buffer.shape))


class _Part(Mutator):
    """Accesses of buffers become those of parts, from where the parts start."""

    def __init__(self, starts: dict[Buffer, list[PrimExpr]], new: dict[Buffer, Buffer]) -> None:
        super().__init__()
        self.starts, self.new, self.analyzer = starts, new, Analyzer()

    def _indices(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        return tuple(self.analyzer.simplify(op.sub(i, s))
                     for i, s in zip(indices, self.starts[buffer]))

    def visit_BufferLoad(self, node: BufferLoad) -> Any:
        node = self.default(node)
        return BufferLoad(self.new[node.buffer], self._indices(node.buffer, node.indices)) if (
            node.buffer in self.new) else node

    def visit_BufferStore(self, node: BufferStore) -> Any:
        node = self.default(node)
        return BufferStore(self.new[node.buffer], node.value,
                           self._indices(node.buffer, node.indices)) if (
            node.buffer in self.new) else node

    def visit_BufferRegion(self, node: BufferRegion) -> Any:
        node = self.default(node)
        if node.buffer not in self.new:
            return node
        low = self._indices(node.buffer, [r.min for r in node.region])
        return BufferRegion(self.new[node.buffer], tuple(
            Range.from_min_extent(m, r.extent) for m, r in zip(low, node.region)))


class _Backwards(Mutator):
    """Loops that drive no reduction run from their end."""

    def visit_For(self, node: For) -> Any:
        new = self.default(node)
        for item in pre_order(node.body):
            if type(item) is BlockRealize and any(
                    iv.iter_type != IterVar.DataPar and node.loop_var in free_vars(value)
                    for iv, value in zip(item.block.iter_vars, item.iter_values)):
                return new
        last = op.add(node.min, op.sub(node.extent, 1))
        return new.replace(body=substitute(new.body, {
            node.loop_var: op.sub(op.add(last, node.min), node.loop_var)}))


class _WithoutBlocks(Mutator):
    """Blocks without an init become their bodies."""

    def visit_BlockRealize(self, node: BlockRealize) -> Any:
        new = self.default(node)
        block = new.block
        if block.init is not None or block.alloc_buffers or block.match_buffers or (
                not op.is_const_int(new.predicate, 1)):
            return new
        return substitute(block.body, {iv.var: v for iv, v in zip(block.iter_vars,
                                                                  new.iter_values)})


def _same(desc: PrimFunc, impl: PrimFunc) -> bool:
    """Whether the two compute the same of some numbers, few of which are equal."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        arrays = [rng.integers(0, 2 if dt.is_bool(b.dtype) else 100, [d.value for d in b.shape])
                  .astype(dt.numpy_dtype(b.dtype)) for b in desc.buffers]
        results = []
        for func in (desc, impl):
            mine = [a.copy() for a in arrays]
            try:
                interpret(func, *mine)
            except InterpError:
                return False
            results.append(mine)
        if not all(np.array_equal(a, b) for a, b in zip(*results)):
            return False
    return True
